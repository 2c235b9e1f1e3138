//! PyTorch's format since version 1.6: a zip archive, uncompressed, of a pickle that describes the
//! tensors (`*/data.pkl`) and one entry for each storage (`*/data/KEY`).

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use super::CheckpointError;
use super::archive::{Archive, Stored};
use super::pickle::{self, Tensor};
use super::positioned::PositionedFile;
use super::tensor_file::{TensorEntry, TensorFile};
use super::values::{ByteOrder, ElementType, read_elements};

/// Largest pickle that is read. The released checkpoint's is about 300 kB.
const MAX_PICKLE_BYTES: u64 = 16 << 20;

pub(super) struct TorchFile {
    archive: Archive,
    order: ByteOrder,
    tensors: BTreeMap<String, Entry>,
}

/// A tensor's place in its storage; checked to lie inside it when the file is opened.
pub(super) struct Entry {
    storage: Stored,
    element: ElementType,
    storage_len: usize,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl TorchFile {
    pub fn open(path: &Path, file: PositionedFile) -> Result<Self, CheckpointError> {
        let archive = Archive::open(file).map_err(|source| CheckpointError::Archive {
            path: path.to_path_buf(),
            source,
        })?;
        let prefix = prefix(path, &archive)?;
        let order = byte_order(path, &archive, &prefix)?;
        let pickle = read_entry(path, &archive, &format!("{prefix}data.pkl"))?.unwrap_or_default();
        let described = pickle::state_dict(&pickle).map_err(|source| CheckpointError::Pickle {
            path: path.to_path_buf(),
            source,
        })?;
        let mut tensors = BTreeMap::new();
        for (name, tensor) in described {
            let entry = locate(&archive, &prefix, name, tensor)?;
            tensors.insert(name.to_owned(), entry);
        }
        Ok(Self {
            archive,
            order,
            tensors,
        })
    }
}

impl TensorEntry for Entry {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn element(&self) -> ElementType {
        self.element
    }
}

impl TensorFile for TorchFile {
    type Entry = Entry;

    fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.tensors
    }

    fn read(&self, entry: &Entry) -> io::Result<Vec<f32>> {
        let span = entry.span();
        if span == 0 {
            return Ok(Vec::new());
        }
        let read = |reader: &mut dyn Read| read_elements(reader, entry.element, self.order, span);
        // Only a storage that is read as a whole can be checked against its checksum.
        let stored = if span == entry.storage_len {
            self.archive.read_checked(entry.storage, read)?
        } else {
            let offset = entry.element.size().unwrap_or(0) as u64 * entry.offset as u64;
            read(&mut self.archive.reader_at(entry.storage, offset))?
        };
        if entry.is_contiguous() {
            Ok(stored)
        } else {
            entry.gather(&stored)
        }
    }
}

impl Entry {
    /// Elements of the storage from the view's first to its last, inclusive.
    fn span(&self) -> usize {
        if self.shape.contains(&0) {
            return 0;
        }
        let steps = self.shape.iter().zip(&self.strides);
        1 + steps.map(|(n, stride)| (n - 1) * stride).sum::<usize>()
    }

    fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (n, stride) in self.shape.iter().zip(&self.strides).rev() {
            if *n != 1 && *stride != expected {
                return false;
            }
            expected *= n;
        }
        true
    }

    /// The view's elements in row-major order, from the stored elements it spans.
    fn gather(&self, stored: &[f32]) -> io::Result<Vec<f32>> {
        let len = self.shape.iter().product();
        let mut values = Vec::new();
        values.try_reserve_exact(len)?;
        let mut index = vec![0; self.shape.len()];
        let mut position = 0;
        for _ in 0..len {
            values.push(*stored.get(position).ok_or(io::ErrorKind::InvalidData)?);
            for ((i, n), stride) in index.iter_mut().zip(&self.shape).zip(&self.strides).rev() {
                *i += 1;
                position += stride;
                if *i < *n {
                    break;
                }
                position -= *n * stride;
                *i = 0;
            }
        }
        Ok(values)
    }
}

fn torch_error(path: &Path, reason: impl Into<String>) -> CheckpointError {
    CheckpointError::Torch {
        path: path.to_path_buf(),
        reason: reason.into(),
    }
}

/// The folder of the archive that everything lies in, with its slash.
fn prefix(path: &Path, archive: &Archive) -> Result<String, CheckpointError> {
    let mut found = archive
        .names()
        .filter_map(|name| name.strip_suffix("data.pkl"))
        .filter(|prefix| prefix.ends_with('/') && prefix.matches('/').count() == 1);
    match (found.next(), found.next()) {
        (Some(prefix), None) => Ok(prefix.to_owned()),
        (None, _) => Err(torch_error(
            path,
            "it is a zip archive without `*/data.pkl`",
        )),
        (Some(_), Some(_)) => Err(torch_error(path, "it has several `*/data.pkl`")),
    }
}

fn byte_order(path: &Path, archive: &Archive, prefix: &str) -> Result<ByteOrder, CheckpointError> {
    match read_entry(path, archive, &format!("{prefix}byteorder"))?.as_deref() {
        None | Some(b"little") => Ok(ByteOrder::Little),
        Some(b"big") => Ok(ByteOrder::Big),
        Some(_) => Err(torch_error(
            path,
            "its byte order is neither little nor big",
        )),
    }
}

/// A small entry as a whole, where there is one of that name.
fn read_entry(
    path: &Path,
    archive: &Archive,
    name: &str,
) -> Result<Option<Vec<u8>>, CheckpointError> {
    let invalid = |reason: String| torch_error(path, format!("entry `{name}`: {reason}"));
    let Some(entry) = archive
        .find(name)
        .map_err(|error| invalid(error.to_string()))?
    else {
        return Ok(None);
    };
    if entry.size > MAX_PICKLE_BYTES {
        return Err(invalid(format!(
            "it is larger than {MAX_PICKLE_BYTES} bytes"
        )));
    }
    let read = |reader: &mut dyn Read| {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map(|_| bytes)
    };
    let bytes = archive.read_checked(entry, read);
    bytes.map(Some).map_err(|error| invalid(error.to_string()))
}

/// Finds a tensor's storage and checks that the archive holds exactly its bytes, so that no tensor
/// can be larger than the file.
fn locate(
    archive: &Archive,
    prefix: &str,
    name: &str,
    tensor: Tensor<'_>,
) -> Result<Entry, CheckpointError> {
    let storage = tensor.storage;
    let key = format!("{prefix}data/{}", storage.key);
    let invalid = |reason: String| CheckpointError::Storage {
        name: name.to_owned(),
        reason: format!("entry `{key}`: {reason}"),
    };
    let found = archive
        .find(&key)
        .map_err(|error| invalid(error.to_string()))?;
    let stored = found.ok_or_else(|| invalid("the archive has no such entry".to_owned()))?;
    let holds = |size| (size as u64).checked_mul(storage.len as u64) == Some(stored.size);
    if !storage.element.size().is_none_or(holds) {
        return Err(invalid(format!(
            "it has {} bytes, expected {} elements of {:?}",
            stored.size, storage.len, storage.element
        )));
    }
    Ok(Entry {
        storage: stored,
        element: storage.element,
        storage_len: storage.len,
        offset: tensor.offset,
        shape: tensor.shape,
        strides: tensor.strides,
    })
}
