use std::path::PathBuf;

use super::pickle::PickleError;

/// Why a checkpoint, or a tensor in it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path} is neither a PyTorch checkpoint nor a safetensors file", path = path.display())]
    UnknownFormat { path: PathBuf },
    #[error(
        "{path} is in PyTorch's format from before version 1.6, or a bare pickle: load it there and save \
         it again with torch.save",
        path = path.display()
    )]
    LegacyFormat { path: PathBuf },
    #[error("{path} is not a safetensors file: {reason}", path = path.display())]
    Safetensors { path: PathBuf, reason: String },
    #[error("{path} is a zip archive that cannot be read: {source}", path = path.display())]
    Archive {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path} is not a PyTorch checkpoint: {reason}", path = path.display())]
    Torch { path: PathBuf, reason: String },
    #[error("{path}: {source}", path = path.display())]
    Pickle { path: PathBuf, source: PickleError },
    #[error("there is no tensor `{0}`")]
    NoTensor(String),
    #[error("cannot read tensor `{name}`: {source}")]
    Tensor {
        name: String,
        source: std::io::Error,
    },
    #[error("tensor `{name}` is stored as {found}, expected floating point")]
    ElementType { name: String, found: String },
    #[error("tensor `{name}`: {reason}")]
    Storage { name: String, reason: String },
}
