//! PyTorch's format since version 1.6: a zip archive, uncompressed, of a pickle that describes the
//! tensors (`*/data.pkl`) and one entry for each storage (`*/data/KEY`).

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use zip::read::{ArchiveOffset, Config, ZipArchive};
use zip::{CompressionMethod, result::ZipError};

use super::CheckpointError;
use super::pickle::{self, Tensor};
use super::positioned::PositionedFile;
use super::values::{ByteOrder, ElementType, read_elements};

/// Largest pickle that is read. The released checkpoint's is about 300 kB.
const MAX_PICKLE_BYTES: u64 = 16 << 20;

type Archive = ZipArchive<PositionedFile>;

pub(super) struct TorchFile {
    archive: Archive,
    order: ByteOrder,
    tensors: BTreeMap<String, Entry>,
}

/// A tensor's place in its storage; checked to lie inside it when the file is opened.
struct Entry {
    index: usize,
    element: ElementType,
    storage_len: usize,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl TorchFile {
    pub fn open(path: &Path, file: PositionedFile) -> Result<Self, CheckpointError> {
        let config = Config {
            archive_offset: ArchiveOffset::Known(0),
        };
        let file_length = file.len();
        let mut archive =
            ZipArchive::with_config(config, file).map_err(|source| archive_error(path, source))?;
        let prefix = prefix(path, &archive)?;
        let order = byte_order(path, &mut archive, &prefix)?;
        let pickle = read_entry(path, &mut archive, &format!("{prefix}data.pkl"))?;
        let described = pickle::state_dict(&pickle).map_err(|source| CheckpointError::Pickle {
            path: path.to_path_buf(),
            source,
        })?;
        let mut tensors = BTreeMap::new();
        for (name, tensor) in described {
            let entry = locate(&mut archive, file_length, &prefix, name, tensor)?;
            tensors.insert(name.to_owned(), entry);
        }
        Ok(Self {
            archive,
            order,
            tensors,
        })
    }

    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|entry| entry.shape.as_slice())
    }

    pub fn names(&self) -> Vec<&str> {
        self.tensors.keys().map(String::as_str).collect()
    }

    pub fn read_f32(&self, name: &str) -> Result<Vec<f32>, CheckpointError> {
        let entry = self
            .tensors
            .get(name)
            .ok_or_else(|| CheckpointError::NoTensor(name.to_owned()))?;
        if let ElementType::Other(found) = entry.element {
            return Err(CheckpointError::ElementType {
                name: name.to_owned(),
                found: found.to_owned(),
            });
        }
        self.read_entry(entry)
            .map_err(|source| CheckpointError::Tensor {
                name: name.to_owned(),
                source,
            })
    }

    fn read_entry(&self, entry: &Entry) -> io::Result<Vec<f32>> {
        // The archive's directory is shared between clones; each has a read position of its own.
        let mut archive = self.archive.clone();
        let span = entry.span();
        if span == 0 {
            return Ok(Vec::new());
        }
        let whole = entry.offset == 0 && span == entry.storage_len;
        let stored = if whole {
            // Read to its end, an entry is also checked against its checksum.
            let mut reader = archive.by_index(entry.index)?;
            let values = read_elements(&mut reader, entry.element, self.order, span)?;
            io::copy(&mut reader, &mut io::sink())?;
            values
        } else {
            let mut reader = archive.by_index_seek(entry.index)?;
            let position = entry.element.size().unwrap_or(0) as u64 * entry.offset as u64;
            reader.seek(SeekFrom::Start(position))?;
            read_elements(&mut reader, entry.element, self.order, span)?
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

fn archive_error(path: &Path, source: ZipError) -> CheckpointError {
    CheckpointError::Archive {
        path: path.to_path_buf(),
        source,
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
        .file_names()
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

fn byte_order(
    path: &Path,
    archive: &mut Archive,
    prefix: &str,
) -> Result<ByteOrder, CheckpointError> {
    let name = format!("{prefix}byteorder");
    if archive.index_for_name(&name).is_none() {
        return Ok(ByteOrder::Little);
    }
    match read_entry(path, archive, &name)?.as_slice() {
        b"little" => Ok(ByteOrder::Little),
        b"big" => Ok(ByteOrder::Big),
        _ => Err(torch_error(
            path,
            "its byte order is neither little nor big",
        )),
    }
}

/// A small entry as a whole.
fn read_entry(path: &Path, archive: &mut Archive, name: &str) -> Result<Vec<u8>, CheckpointError> {
    let entry = archive
        .by_name(name)
        .map_err(|source| archive_error(path, source))?;
    if entry.compression() != CompressionMethod::Stored {
        return Err(torch_error(
            path,
            format!("`{name}` is compressed, which torch.save never does"),
        ));
    }
    if entry.size() > MAX_PICKLE_BYTES {
        return Err(torch_error(
            path,
            format!("`{name}` is larger than {MAX_PICKLE_BYTES} bytes"),
        ));
    }
    let mut bytes = Vec::new();
    entry
        .take(MAX_PICKLE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|source| archive_error(path, source.into()))?;
    Ok(bytes)
}

/// Finds a tensor's storage and checks that the archive holds exactly its bytes, uncompressed, so
/// that no tensor can be larger than the file.
fn locate(
    archive: &mut Archive,
    file_length: u64,
    prefix: &str,
    name: &str,
    tensor: Tensor<'_>,
) -> Result<Entry, CheckpointError> {
    let invalid = |reason: String| CheckpointError::Storage {
        name: name.to_owned(),
        reason,
    };
    let storage = tensor.storage;
    let key = format!("{prefix}data/{}", storage.key);
    let index = archive
        .index_for_name(&key)
        .ok_or_else(|| invalid(format!("the archive has no entry `{key}`")))?;
    let file = archive
        .by_index_raw(index)
        .map_err(|source| invalid(format!("entry `{key}`: {source}")))?;
    if file.compression() != CompressionMethod::Stored {
        return Err(invalid(format!(
            "entry `{key}` is compressed, which torch.save never does"
        )));
    }
    if file.encrypted() {
        return Err(invalid(format!("entry `{key}` is encrypted")));
    }
    let end = file.data_start().checked_add(file.compressed_size());
    if file.size() != file.compressed_size() || end.is_none_or(|end| end > file_length) {
        return Err(invalid(format!(
            "entry `{key}` lies outside the file: it is incomplete or damaged"
        )));
    }
    let holds = |size| (size as u64).checked_mul(storage.len as u64) == Some(file.size());
    if !storage.element.size().is_none_or(holds) {
        return Err(invalid(format!(
            "entry `{key}` has {} bytes, expected {} elements of {:?}",
            file.size(),
            storage.len,
            storage.element
        )));
    }
    Ok(Entry {
        index,
        element: storage.element,
        storage_len: storage.len,
        offset: tensor.offset,
        shape: tensor.shape,
        strides: tensor.strides,
    })
}
