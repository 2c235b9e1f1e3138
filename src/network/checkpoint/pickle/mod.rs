//! A reader of the pickles that `torch.save` writes for weights.
//!
//! A pickle is a program. This machine understands the part of its language that builds plain data
//! and describes tensors; names of anything else are refused before they could be called, so
//! nothing from the file is ever run. Its memory is bounded by the limits below.

mod machine;
mod rebuild;
mod value;

use std::collections::BTreeMap;

use machine::Machine;
pub(super) use value::Tensor;
use value::{Heap, Object, Value};

/// Why a pickle is not read as weights.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PickleError {
    #[error("the pickle ends in the middle of an instruction")]
    Truncated,
    #[error(
        "the pickle refers to `{0}`, which is not part of a tensor: refused, nothing was run. Save the \
         weights alone: torch.save(model.state_dict(), path)"
    )]
    RefusedGlobal(String),
    #[error(
        "the pickle uses instruction {opcode:#04x} at byte {position}, which weights do not need: refused"
    )]
    RefusedInstruction { opcode: u8, position: usize },
    #[error("the pickle is malformed: expected {0}")]
    Unexpected(&'static str),
    #[error("the pickle has more {0} than weights would")]
    Limit(&'static str),
    #[error("a tensor reaches beyond the end of its storage")]
    OutOfStorage,
    #[error(
        "a tensor has more elements than its storage (an expanded view): save it after .contiguous()"
    )]
    Expanded,
    #[error("there is no dictionary of tensors at the top level or under `model`")]
    NoTensors,
}

/// Reads the tensors of a state dictionary, at the top level or under `model`.
///
/// Entries that are not tensors are left out.
pub(super) fn state_dict(pickle: &[u8]) -> Result<BTreeMap<&str, Tensor<'_>>, PickleError> {
    let (heap, root) = Machine::new(pickle).run()?;
    let top = heap.dict(root).map_err(|_| PickleError::NoTensors)?;
    let model = top
        .iter()
        .rev()
        .find(|(key, _)| heap.text(*key) == Ok("model"))
        .and_then(|(_, value)| heap.dict(*value).ok());
    let tensors = tensors(&heap, model.unwrap_or(top));
    if tensors.is_empty() {
        return Err(PickleError::NoTensors);
    }
    Ok(tensors)
}

fn tensors<'a>(heap: &Heap<'a>, dict: &[(Value, Value)]) -> BTreeMap<&'a str, Tensor<'a>> {
    dict.iter()
        .filter_map(|(key, value)| match heap.get(*value) {
            Some(Object::Tensor(tensor)) => Some((heap.text(*key).ok()?, tensor.clone())),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
pub(super) mod test_support;
#[cfg(test)]
mod tests;
