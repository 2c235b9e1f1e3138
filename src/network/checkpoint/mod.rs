//! Where the network's weights come from.

mod archive;
mod error;
mod pickle;
mod positioned;
mod random;
mod report;
mod safetensors_file;
mod tensor_file;
mod torch_file;
mod values;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use error::CheckpointError;
pub use pickle::PickleError;
use positioned::PositionedFile;
pub use random::{BlankWeights, RandomWeights};
pub use report::TensorReport;
use safetensors_file::SafetensorsFile;
use torch_file::TorchFile;

use crate::network::config::NetworkConfig;

/// Named tensors that can be read one at a time.
pub trait TensorSource {
    /// Shape of a tensor, outermost dimension first; `None` when there is no such tensor.
    fn shape(&self, name: &str) -> Option<&[usize]>;

    /// All names, sorted.
    fn names(&self) -> Vec<&str>;

    /// All values of a tensor in row-major order, as 32-bit floats whatever they are stored as.
    fn read_f32(&self, name: &str) -> Result<Vec<f32>, CheckpointError>;
}

/// A file of trained weights: a PyTorch checkpoint (`torch.save`, version 1.6 or newer) with the
/// tensors at its top level or under `model`, or a safetensors file.
///
/// Opening reads names and shapes; values are read tensor by tensor. Nothing in the file is ever
/// run, and the memory taken is bounded by the file's own size.
pub struct Checkpoint(Box<dyn TensorSource>);

impl Checkpoint {
    /// Opens a checkpoint; its format is told by its content.
    ///
    /// # Errors
    /// When the file cannot be read, is incomplete, is in neither format, or its pickle refers to
    /// anything but tensors.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let read = |source| CheckpointError::Read {
            path: path.to_path_buf(),
            source,
        };
        let file = File::open(path)
            .and_then(PositionedFile::new)
            .map_err(read)?;
        let mut beginning = Vec::new();
        file.at(0)
            .take(9)
            .read_to_end(&mut beginning)
            .map_err(read)?;
        let source: Box<dyn TensorSource> = match beginning.as_slice() {
            [b'P', b'K', 3, 4, ..] => Box::new(TorchFile::open(path, file)?),
            [0x80, 2..=5, ..] => {
                return Err(CheckpointError::LegacyFormat {
                    path: path.to_path_buf(),
                });
            }
            [_, _, _, _, _, _, _, _, b'{'] => Box::new(SafetensorsFile::open(path, file)?),
            _ => {
                return Err(CheckpointError::UnknownFormat {
                    path: path.to_path_buf(),
                });
            }
        };
        Ok(Self(source))
    }

    /// Compares the checkpoint's tensors with those a network needs.
    pub fn check(&self, config: &NetworkConfig) -> TensorReport {
        TensorReport::new(self, config)
    }
}

impl TensorSource for Checkpoint {
    fn shape(&self, name: &str) -> Option<&[usize]> {
        self.0.shape(name)
    }

    fn names(&self) -> Vec<&str> {
        self.0.names()
    }

    fn read_f32(&self, name: &str) -> Result<Vec<f32>, CheckpointError> {
        self.0.read_f32(name)
    }
}

#[cfg(test)]
mod tests;
