//! What all checkpoint formats share: tensors that lie at known places of a file.

use std::collections::BTreeMap;
use std::io;

use super::values::ElementType;
use super::{CheckpointError, TensorSource};

/// What a format knows of a tensor beside its place.
pub(super) trait TensorEntry {
    fn shape(&self) -> &[usize];
    fn element(&self) -> ElementType;
}

pub(super) trait TensorFile {
    type Entry: TensorEntry;

    fn entries(&self) -> &BTreeMap<String, Self::Entry>;

    /// All values of a tensor of floats, row-major.
    fn read(&self, entry: &Self::Entry) -> io::Result<Vec<f32>>;
}

impl<F: TensorFile> TensorSource for F {
    fn shape(&self, name: &str) -> Option<&[usize]> {
        self.entries().get(name).map(TensorEntry::shape)
    }

    fn names(&self) -> Vec<&str> {
        self.entries().keys().map(String::as_str).collect()
    }

    fn read_f32(&self, name: &str) -> Result<Vec<f32>, CheckpointError> {
        let entry = self
            .entries()
            .get(name)
            .ok_or_else(|| CheckpointError::NoTensor(name.to_owned()))?;
        if let ElementType::Other(found) = entry.element() {
            return Err(CheckpointError::ElementType {
                name: name.to_owned(),
                found: found.to_owned(),
            });
        }
        self.read(entry).map_err(|source| CheckpointError::Tensor {
            name: name.to_owned(),
            source,
        })
    }
}
