use std::path::PathBuf;

/// Why a checkpoint, or a tensor in it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("there is no tensor `{0}`")]
    NoTensor(String),
}
