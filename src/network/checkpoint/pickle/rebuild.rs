//! The few calls a pickle may make: they describe tensors and run nothing.

use super::PickleError;
use super::value::{Global, Heap, Object, Storage, Tensor, Value};

/// PyTorch's own limit on dimensions.
const MAX_RANK: usize = 64;

/// `callable(*arguments)` for the callables that are understood.
pub(super) fn reduce<'a>(
    heap: &mut Heap<'a>,
    callable: Value,
    arguments: Value,
) -> Result<Value, PickleError> {
    let Value::Global(global) = callable else {
        return Err(PickleError::Unexpected("a known callable"));
    };
    let arguments = heap.tuple(arguments)?;
    match global {
        Global::OrderedDict if arguments.is_empty() => heap.add(Object::Dict(Vec::new())),
        Global::OrderedDict => Err(PickleError::Unexpected("an empty OrderedDict")),
        Global::RebuildTensor => {
            let tensor = tensor(heap, arguments)?;
            heap.add(Object::Tensor(tensor))
        }
        Global::RebuildParameter => match arguments {
            [data, ..] if matches!(heap.get(*data), Some(Object::Tensor(_))) => Ok(*data),
            _ => Err(PickleError::Unexpected("a parameter's tensor")),
        },
        Global::Storage(_) => Err(PickleError::Unexpected("a storage by reference")),
    }
}

/// A reference to a storage kept elsewhere: `("storage", type, key, location, length)`.
pub(super) fn persistent<'a>(heap: &mut Heap<'a>, id: Value) -> Result<Value, PickleError> {
    let storage = match heap.tuple(id)? {
        [
            kind,
            Value::Global(Global::Storage(element)),
            key,
            _location,
            length,
        ] if heap.text(*kind)? == "storage" => Storage {
            key: heap.text(*key)?,
            element: *element,
            len: size(*length)?,
        },
        _ => return Err(PickleError::Unexpected("a storage")),
    };
    heap.add(Object::Storage(storage))
}

/// `_rebuild_tensor_v2(storage, offset, size, stride, …)`; what follows concerns gradients.
fn tensor<'a>(heap: &Heap<'a>, arguments: &[Value]) -> Result<Tensor<'a>, PickleError> {
    let [storage, offset, shape, strides, ..] = arguments else {
        return Err(PickleError::Unexpected(
            "a tensor's storage, offset, size and stride",
        ));
    };
    let Some(Object::Storage(storage)) = heap.get(*storage) else {
        return Err(PickleError::Unexpected("a tensor's storage"));
    };
    let mut tensor = Tensor {
        storage: *storage,
        offset: size(*offset)?,
        shape: sizes(heap.tuple(*shape)?)?,
        strides: sizes(heap.tuple(*strides)?)?,
    };
    if tensor.shape.len() != tensor.strides.len() {
        return Err(PickleError::Unexpected("as many strides as dimensions"));
    }
    for (dimension, stride) in tensor.shape.iter().zip(&mut tensor.strides) {
        // Never taken, such a step may be any number.
        if *dimension == 1 {
            *stride = 0;
        }
    }
    let (len, end) = tensor.extent().ok_or(PickleError::OutOfStorage)?;
    if end > storage.len {
        return Err(PickleError::OutOfStorage);
    }
    if len > storage.len {
        return Err(PickleError::Expanded);
    }
    Ok(tensor)
}

impl Tensor<'_> {
    /// Number of elements, and one past the last element of the storage that the view reaches.
    fn extent(&self) -> Option<(usize, usize)> {
        let len = self
            .shape
            .iter()
            .try_fold(1usize, |n, d| n.checked_mul(*d))?;
        if len == 0 {
            return Some((0, self.offset));
        }
        let mut last = self.offset;
        for (dimension, stride) in self.shape.iter().zip(&self.strides) {
            last = last.checked_add((dimension - 1).checked_mul(*stride)?)?;
        }
        Some((len, last.checked_add(1)?))
    }
}

fn sizes(values: &[Value]) -> Result<Vec<usize>, PickleError> {
    if values.len() > MAX_RANK {
        return Err(PickleError::Limit("dimensions"));
    }
    values.iter().map(|value| size(*value)).collect()
}

fn size(value: Value) -> Result<usize, PickleError> {
    match value {
        Value::Int(value) => usize::try_from(value).ok(),
        _ => None,
    }
    .ok_or(PickleError::Unexpected("a size"))
}
