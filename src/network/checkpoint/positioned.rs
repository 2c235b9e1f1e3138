//! A file read at positions of its own, so that several readers can share it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct PositionedFile {
    file: Arc<File>,
    length: u64,
    position: u64,
}

impl PositionedFile {
    pub fn new(file: File) -> io::Result<Self> {
        Ok(Self {
            length: file.metadata()?.len(),
            file: Arc::new(file),
            position: 0,
        })
    }

    pub fn len(&self) -> u64 {
        self.length
    }

    /// Another reader of the same file, starting at `position`.
    pub fn at(&self, position: u64) -> Self {
        Self {
            position,
            ..self.clone()
        }
    }
}

impl Read for PositionedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for PositionedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
