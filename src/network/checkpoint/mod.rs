//! Where the network's weights come from.

mod error;
mod random;
mod report;

pub use error::CheckpointError;
pub use random::RandomWeights;
pub use report::TensorReport;

/// Named tensors that can be read one at a time.
pub trait TensorSource {
    /// Shape of a tensor, outermost dimension first; `None` when there is no such tensor.
    fn shape(&self, name: &str) -> Option<&[usize]>;

    /// All names, sorted.
    fn names(&self) -> Vec<&str>;

    /// All values of a tensor in row-major order, as 32-bit floats whatever they are stored as.
    fn read_f32(&self, name: &str) -> Result<Vec<f32>, CheckpointError>;
}
