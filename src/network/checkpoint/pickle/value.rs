//! What a pickle of weights may consist of.

use std::collections::HashMap;

use super::PickleError;
use crate::network::checkpoint::values::ElementType;

/// Most objects, stack entries and remembered values of one pickle. The released checkpoint makes
/// about ten thousand.
const LIMIT: usize = 1 << 20;

/// A value on the machine's stack. Everything that owns memory lies in [`Heap`], so that nesting
/// and cycles cost nothing to copy and nothing to drop.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
    /// Plain data whose value no tensor depends on: None, booleans, floats, bytes, integers beyond
    /// 64 bits.
    Plain,
    Int(i64),
    Global(Global),
    Object(usize),
}

/// The only names that a pickle may refer to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    Storage(ElementType),
}

impl Global {
    pub fn find(module: &str, name: &str) -> Result<Self, PickleError> {
        let storage = |name| Some(Self::Storage(ElementType::of_torch_storage(name)?));
        let known = match (module, name) {
            ("collections", "OrderedDict") => Some(Self::OrderedDict),
            ("torch._utils", "_rebuild_tensor_v2") => Some(Self::RebuildTensor),
            ("torch._utils", "_rebuild_parameter") => Some(Self::RebuildParameter),
            ("torch" | "torch.storage", name) => storage(name),
            _ => None,
        };
        known.ok_or_else(|| PickleError::RefusedGlobal(printable(module, name)))
    }
}

/// `module.name`, safe to print whatever it contains.
fn printable(module: &str, name: &str) -> String {
    const LONGEST: usize = 200;
    format!("{module}.{name}")
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[derive(Debug)]
pub(super) enum Object<'a> {
    Text(&'a str),
    Tuple(Vec<Value>),
    List,
    Dict(Vec<(Value, Value)>),
    Storage(Storage<'a>),
    Tensor(Tensor<'a>),
}

/// A storage's entry in the archive.
#[derive(Debug, Clone, Copy)]
pub(in crate::network::checkpoint) struct Storage<'a> {
    pub key: &'a str,
    pub element: ElementType,
    /// Number of elements.
    pub len: usize,
}

/// A view of a storage. Every index it reaches is below the storage's length, and it has no more
/// elements than the storage.
#[derive(Debug, Clone)]
pub(in crate::network::checkpoint) struct Tensor<'a> {
    pub storage: Storage<'a>,
    /// First element.
    pub offset: usize,
    pub shape: Vec<usize>,
    /// In elements.
    pub strides: Vec<usize>,
}

/// Everything a pickle has made, and what it remembers.
#[derive(Debug, Default)]
pub(super) struct Heap<'a> {
    objects: Vec<Object<'a>>,
    memo: HashMap<u32, Value>,
}

impl<'a> Heap<'a> {
    pub fn add(&mut self, object: Object<'a>) -> Result<Value, PickleError> {
        within_limit(self.objects.len(), "objects")?;
        self.objects.push(object);
        Ok(Value::Object(self.objects.len() - 1))
    }

    pub fn get(&self, value: Value) -> Option<&Object<'a>> {
        match value {
            Value::Object(index) => self.objects.get(index),
            _ => None,
        }
    }

    pub fn get_mut(&mut self, value: Value) -> Option<&mut Object<'a>> {
        match value {
            Value::Object(index) => self.objects.get_mut(index),
            _ => None,
        }
    }

    pub fn text(&self, value: Value) -> Result<&'a str, PickleError> {
        match self.get(value) {
            Some(Object::Text(text)) => Ok(text),
            _ => Err(PickleError::Unexpected("a string")),
        }
    }

    pub fn tuple(&self, value: Value) -> Result<&[Value], PickleError> {
        match self.get(value) {
            Some(Object::Tuple(items)) => Ok(items),
            _ => Err(PickleError::Unexpected("a tuple")),
        }
    }

    pub fn dict(&self, value: Value) -> Result<&[(Value, Value)], PickleError> {
        match self.get(value) {
            Some(Object::Dict(items)) => Ok(items),
            _ => Err(PickleError::Unexpected("a dictionary")),
        }
    }

    pub fn remember(&mut self, index: u32, value: Value) -> Result<(), PickleError> {
        within_limit(self.memo.len(), "remembered values")?;
        self.memo.insert(index, value);
        Ok(())
    }

    pub fn remember_next(&mut self, value: Value) -> Result<(), PickleError> {
        let index =
            u32::try_from(self.memo.len()).map_err(|_| PickleError::Limit("remembered values"))?;
        self.remember(index, value)
    }

    pub fn recall(&self, index: u32) -> Result<Value, PickleError> {
        let found = self.memo.get(&index).copied();
        found.ok_or(PickleError::Unexpected("a remembered value"))
    }
}

pub(super) fn within_limit(len: usize, what: &'static str) -> Result<(), PickleError> {
    if len < LIMIT {
        Ok(())
    } else {
        Err(PickleError::Limit(what))
    }
}
