//! The file of large initializers that the graphs of one exported model share.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::proto::{DataLocation, DataType, StringStringEntryProto, TensorProto};

/// Offsets are multiples of the page size, so that ONNX Runtime can map tensors instead of copying them.
const ALIGNMENT: u64 = 4096;

/// Tensors below this many bytes stay inside the graph: padding them to a page each would cost more than it saves.
const INLINE_LIMIT: usize = 1024;

/// Writes initializers one after the other and remembers the checksum of all bytes.
pub struct WeightFile<'p> {
    /// Absent where bytes are only counted.
    file: Option<BufWriter<File>>,
    file_name: String,
    offset: u64,
    hash: Sha256,
    progress: &'p mut dyn FnMut(u64),
}

impl<'p> WeightFile<'p> {
    /// Creates the file; `progress` is told the bytes of weight data taken so far.
    pub fn create(path: &Path, progress: &'p mut dyn FnMut(u64)) -> io::Result<Self> {
        let file_name = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a weight file needs a UTF-8 file name",
                )
            })?
            .to_owned();
        Ok(Self {
            file: Some(BufWriter::with_capacity(1 << 20, File::create(path)?)),
            file_name,
            offset: 0,
            hash: Sha256::new(),
            progress,
        })
    }

    /// Writes nothing and counts the bytes that a file would have.
    pub fn counting(progress: &'p mut dyn FnMut(u64)) -> Self {
        Self {
            file: None,
            file_name: String::new(),
            offset: 0,
            hash: Sha256::new(),
            progress,
        }
    }

    /// Bytes so far.
    pub fn len(&self) -> u64 {
        self.offset
    }

    pub fn is_empty(&self) -> bool {
        self.offset == 0
    }

    /// Stores a float32 tensor (row-major) and returns the initializer that refers to it.
    pub fn store(
        &mut self,
        name: &str,
        shape: &[usize],
        values: &[f32],
    ) -> io::Result<TensorProto> {
        debug_assert_eq!(
            shape.iter().product::<usize>(),
            values.len(),
            "{name}: shape and values disagree"
        );
        let mut tensor = TensorProto {
            dims: shape.iter().map(|&n| n as i64).collect(),
            data_type: DataType::Float as i32,
            name: name.to_owned(),
            ..Default::default()
        };
        let bytes = little_endian(values);
        if bytes.len() < INLINE_LIMIT {
            tensor.raw_data = Some(bytes.into_owned());
            return Ok(tensor);
        }
        let padding = vec![0; (self.offset.next_multiple_of(ALIGNMENT) - self.offset) as usize];
        self.write(&padding)?;
        let entry = |key: &str, value: String| StringStringEntryProto {
            key: key.into(),
            value,
        };
        tensor.external_data = vec![
            entry("location", self.file_name.clone()),
            entry("offset", self.offset.to_string()),
            entry("length", bytes.len().to_string()),
        ];
        tensor.data_location = DataLocation::External as i32;
        self.write(&bytes)?;
        (self.progress)(self.offset);
        Ok(tensor)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
            self.hash.update(bytes);
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Flushes to disk and returns the length in bytes and the SHA-256 of the file.
    pub fn finish(mut self) -> io::Result<(u64, [u8; 32])> {
        if let Some(file) = &mut self.file {
            file.flush()?;
            file.get_ref().sync_all()?;
        }
        Ok((self.offset, self.hash.finalize().into()))
    }
}

/// ONNX stores raw tensor data in little-endian order; on little-endian machines this borrows.
fn little_endian(values: &[f32]) -> std::borrow::Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        bytemuck::cast_slice(values).into()
    } else {
        values
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<u8>>()
            .into()
    }
}
