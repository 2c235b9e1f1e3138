//! The safetensors format: a JSON header, then the tensors one after another.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata};

use super::CheckpointError;
use super::positioned::PositionedFile;
use super::tensor_file::{TensorEntry, TensorFile};
use super::values::{ByteOrder, ElementType, read_elements};

/// Longest header that is read. The released network's would be about 200 kB.
const MAX_HEADER_BYTES: u64 = 16 << 20;
/// Bytes of the header's length, which begins the file.
const LENGTH_BYTES: u64 = 8;

pub(super) struct SafetensorsFile {
    file: PositionedFile,
    tensors: BTreeMap<String, Entry>,
}

pub(super) struct Entry {
    element: ElementType,
    shape: Vec<usize>,
    len: usize,
    position: u64,
}

impl SafetensorsFile {
    pub fn open(path: &Path, file: PositionedFile) -> Result<Self, CheckpointError> {
        let invalid = |reason: &str| CheckpointError::Safetensors {
            path: path.to_path_buf(),
            reason: reason.to_owned(),
        };
        let read = |source| CheckpointError::Read {
            path: path.to_path_buf(),
            source,
        };
        let mut length = [0; LENGTH_BYTES as usize];
        file.at(0).read_exact(&mut length).map_err(read)?;
        let length = u64::from_le_bytes(length);
        let data_start = length.saturating_add(LENGTH_BYTES);
        if length > MAX_HEADER_BYTES {
            return Err(invalid("its header is too large"));
        }
        if data_start > file.len() {
            return Err(invalid("it ends inside its header"));
        }
        let mut header = vec![0; length as usize];
        file.at(LENGTH_BYTES)
            .read_exact(&mut header)
            .map_err(read)?;
        // Parsing also checks that shapes, element types and offsets agree, and that the tensors
        // follow one another without gap or overlap.
        let metadata: Metadata =
            serde_json::from_slice(&header).map_err(|e| invalid(&e.to_string()))?;
        if data_start.checked_add(metadata.data_len() as u64) != Some(file.len()) {
            return Err(invalid(
                "its length is not what its header says: it is incomplete or damaged",
            ));
        }
        let tensors = metadata
            .tensors()
            .into_iter()
            .map(|(name, info)| {
                let entry = Entry {
                    element: element_type(info.dtype),
                    len: info.shape.iter().product(),
                    shape: info.shape.clone(),
                    position: data_start + info.data_offsets.0 as u64,
                };
                (name, entry)
            })
            .collect();
        Ok(Self { file, tensors })
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

impl TensorFile for SafetensorsFile {
    type Entry = Entry;

    fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.tensors
    }

    fn read(&self, entry: &Entry) -> io::Result<Vec<f32>> {
        let mut reader = self.file.at(entry.position);
        read_elements(&mut reader, entry.element, ByteOrder::Little, entry.len)
    }
}

fn element_type(dtype: Dtype) -> ElementType {
    match dtype {
        Dtype::F64 => ElementType::F64,
        Dtype::F32 => ElementType::F32,
        Dtype::F16 => ElementType::F16,
        Dtype::BF16 => ElementType::Bf16,
        Dtype::I64 => ElementType::Other("int64"),
        Dtype::I32 => ElementType::Other("int32"),
        Dtype::I16 => ElementType::Other("int16"),
        Dtype::I8 => ElementType::Other("int8"),
        Dtype::U8 => ElementType::Other("uint8"),
        Dtype::BOOL => ElementType::Other("bool"),
        _ => ElementType::Other("a type that no weight has"),
    }
}
