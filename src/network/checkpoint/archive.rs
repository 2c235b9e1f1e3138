//! The directory of an uncompressed zip archive (PKWARE APPNOTE 6.3, ZIP64 included).
//!
//! Only what `torch.save` writes is understood: one disk, no archive comment, nothing before the
//! first entry, entries stored as they are. So the directory is where the end of the file says, and
//! no number in it can ask for more memory than the file has bytes.

use std::collections::HashMap;
use std::io::{self, Read};

use super::positioned::PositionedFile;

/// Largest directory that is read. The released checkpoint's is about 150 kB.
const MAX_DIRECTORY_BYTES: u64 = 64 << 20;

const END: u32 = 0x0605_4b50;
const END_BYTES: u64 = 22;
const LOCATOR_64: u32 = 0x0706_4b50;
const LOCATOR_64_BYTES: u64 = 20;
const END_64: u32 = 0x0606_4b50;
const END_64_BYTES: usize = 56;
const ENTRY: u32 = 0x0201_4b50;
const ENTRY_BYTES: usize = 46;
const LOCAL: u32 = 0x0403_4b50;
const LOCAL_BYTES: usize = 30;
const EXTRA_64: u16 = 1;
/// Stands in a 32-bit field whose value is in the ZIP64 record.
const IN_64: u64 = u32::MAX as u64;

const ENCRYPTED: u16 = 1;
const STORED: u16 = 0;

pub(super) struct Archive {
    file: PositionedFile,
    entries: HashMap<String, Header>,
}

/// What the directory says of an entry.
struct Header {
    flags: u16,
    method: u16,
    checksum: u32,
    compressed: u64,
    size: u64,
    position: u64,
}

/// An entry whose bytes are known to lie in the file as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub position: u64,
    pub size: u64,
    checksum: u32,
}

impl Archive {
    pub fn open(file: PositionedFile) -> io::Result<Self> {
        let (position, length) = directory(&file)?;
        if length > MAX_DIRECTORY_BYTES {
            return Err(invalid("its directory is too large"));
        }
        if position
            .checked_add(length)
            .is_none_or(|end| end > file.len())
        {
            return Err(invalid("its directory lies outside the file"));
        }
        let mut bytes = vec![0; length as usize];
        file.at(position).read_exact(&mut bytes)?;
        let mut fields = Fields(&bytes);
        let mut entries = HashMap::new();
        while !fields.0.is_empty() {
            let (name, header) = fields.entry()?;
            if entries.insert(name, header).is_some() {
                return Err(invalid("two entries have the same name"));
            }
        }
        Ok(Self { file, entries })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Finds an entry; `None` when there is none of that name.
    pub fn find(&self, name: &str) -> io::Result<Option<Stored>> {
        let Some(header) = self.entries.get(name) else {
            return Ok(None);
        };
        if header.flags & ENCRYPTED != 0 {
            return Err(invalid("it is encrypted"));
        }
        if header.method != STORED || header.compressed != header.size {
            return Err(invalid("it is compressed, which torch.save never does"));
        }
        let position = self.data_position(header)?;
        if position
            .checked_add(header.size)
            .is_none_or(|end| end > self.file.len())
        {
            return Err(invalid(
                "it lies outside the file, which is incomplete or damaged",
            ));
        }
        Ok(Some(Stored {
            position,
            size: header.size,
            checksum: header.checksum,
        }))
    }

    /// The header before an entry's bytes repeats its name and may have more extra fields than the
    /// directory, so only its lengths say where the bytes begin.
    fn data_position(&self, header: &Header) -> io::Result<u64> {
        let mut bytes = [0; LOCAL_BYTES];
        self.file.at(header.position).read_exact(&mut bytes)?;
        let mut fields = Fields(&bytes);
        fields.signature(LOCAL)?;
        fields.skip(22)?;
        let after = u64::from(fields.u16()?) + u64::from(fields.u16()?);
        let position = header.position.checked_add(LOCAL_BYTES as u64 + after);
        position.ok_or_else(|| invalid("an entry lies outside the file"))
    }

    /// A reader that starts at a byte of an entry; it does not end with the entry.
    pub fn reader_at(&self, entry: Stored, offset: u64) -> PositionedFile {
        self.file.at(entry.position.saturating_add(offset))
    }

    /// Hands a reader of a whole entry to `read`, then checks what was read against the checksum.
    pub fn read_checked<T>(
        &self,
        entry: Stored,
        read: impl FnOnce(&mut dyn Read) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut reader = Checked {
            inner: self.reader_at(entry, 0).take(entry.size),
            hasher: crc32fast::Hasher::new(),
        };
        let value = read(&mut reader)?;
        io::copy(&mut reader, &mut io::sink())?;
        if reader.hasher.finalize() != entry.checksum {
            return Err(invalid(
                "its bytes do not match its checksum: the file is damaged",
            ));
        }
        Ok(value)
    }
}

/// Position and length of the directory.
fn directory(file: &PositionedFile) -> io::Result<(u64, u64)> {
    let end = file
        .len()
        .checked_sub(END_BYTES)
        .ok_or_else(|| invalid("it is incomplete"))?;
    let mut bytes = [0; END_BYTES as usize];
    file.at(end).read_exact(&mut bytes)?;
    let mut fields = Fields(&bytes);
    fields
        .signature(END)
        .map_err(|_| invalid("its end is missing: the file is incomplete"))?;
    fields.skip(8)?;
    let (length, position) = (fields.u32()?, fields.u32()?);
    match directory_64(file, end)? {
        Some(directory) => Ok(directory),
        None => Ok((position.into(), length.into())),
    }
}

fn directory_64(file: &PositionedFile, end: u64) -> io::Result<Option<(u64, u64)>> {
    let Some(locator) = end.checked_sub(LOCATOR_64_BYTES) else {
        return Ok(None);
    };
    let mut bytes = [0; LOCATOR_64_BYTES as usize];
    file.at(locator).read_exact(&mut bytes)?;
    let mut fields = Fields(&bytes);
    if fields.signature(LOCATOR_64).is_err() {
        return Ok(None);
    }
    fields.skip(4)?;
    let mut bytes = [0; END_64_BYTES];
    file.at(fields.u64()?).read_exact(&mut bytes)?;
    let mut fields = Fields(&bytes);
    fields.signature(END_64)?;
    fields.skip(36)?;
    let (length, position) = (fields.u64()?, fields.u64()?);
    Ok(Some((position, length)))
}

/// Little-endian fields, one after another.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| invalid("its directory is incomplete"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let taken = self.take(N)?;
        taken
            .try_into()
            .map_err(|_| invalid("its directory is incomplete"))
    }

    fn skip(&mut self, count: usize) -> io::Result<()> {
        self.take(count).map(drop)
    }

    fn u16(&mut self) -> io::Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn signature(&mut self, expected: u32) -> io::Result<()> {
        if self.u32()? == expected {
            Ok(())
        } else {
            Err(invalid("its directory is damaged"))
        }
    }

    fn entry(&mut self) -> io::Result<(String, Header)> {
        let mut fixed = Fields(self.take(ENTRY_BYTES)?);
        fixed.signature(ENTRY)?;
        fixed.skip(4)?;
        let (flags, method) = (fixed.u16()?, fixed.u16()?);
        fixed.skip(4)?;
        let checksum = fixed.u32()?;
        let (compressed, size) = (fixed.u32()?.into(), fixed.u32()?.into());
        let (name, extra, comment) = (fixed.u16()?, fixed.u16()?, fixed.u16()?);
        fixed.skip(8)?;
        let position = fixed.u32()?.into();
        let name = str::from_utf8(self.take(name.into())?);
        let name = name.map_err(|_| invalid("a name in its directory is not UTF-8"))?;
        let mut header = Header {
            flags,
            method,
            checksum,
            compressed,
            size,
            position,
        };
        header.widen(Fields(self.take(extra.into())?))?;
        self.skip(comment.into())?;
        Ok((name.to_owned(), header))
    }
}

impl Header {
    /// Takes the values that did not fit 32 bits from the extra field made for them.
    fn widen(&mut self, mut extra: Fields<'_>) -> io::Result<()> {
        let wide = [&mut self.size, &mut self.compressed, &mut self.position];
        let mut wide: Vec<&mut u64> = wide.into_iter().filter(|value| **value == IN_64).collect();
        while !wide.is_empty() && !extra.0.is_empty() {
            let (id, length) = (extra.u16()?, extra.u16()?);
            let mut values = Fields(extra.take(length.into())?);
            if id == EXTRA_64 {
                for value in wide.drain(..) {
                    *value = values.u64()?;
                }
            }
        }
        Ok(())
    }
}

struct Checked {
    inner: io::Take<PositionedFile>,
    hasher: crc32fast::Hasher,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    fn archive(large: bool, entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, bytes) in entries {
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .large_file(large);
            writer.start_file(*name, options).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn open(bytes: &[u8]) -> io::Result<Archive> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Archive::open(PositionedFile::new(file).unwrap())
    }

    fn read(archive: &Archive, name: &str) -> io::Result<Vec<u8>> {
        let entry = archive.find(name)?.ok_or(io::ErrorKind::NotFound)?;
        archive.read_checked(entry, |reader| {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes)?;
            Ok(bytes)
        })
    }

    #[test]
    fn entries_are_found_and_read() {
        for large in [false, true] {
            let archive = open(&archive(large, &[("a/x", b"hello"), ("a/y", b"")])).unwrap();
            let mut names: Vec<&str> = archive.names().collect();
            names.sort_unstable();
            assert_eq!(names, ["a/x", "a/y"]);
            assert_eq!(read(&archive, "a/x").unwrap(), b"hello");
            assert_eq!(read(&archive, "a/y").unwrap(), b"");
            assert_eq!(archive.find("a/z").unwrap(), None);
        }
    }

    /// Rewrites an archive's end with ZIP64 records, as for one beyond 4 GiB.
    fn with_end_64(mut bytes: Vec<u8>) -> Vec<u8> {
        let end = bytes.split_off(bytes.len() - END_BYTES as usize);
        let mut fields = Fields(&end[12..]);
        let (length, position) = (fields.u32().unwrap(), fields.u32().unwrap());
        let end_64 = bytes.len() as u64;
        bytes.extend(END_64.to_le_bytes());
        bytes.extend([0; 36]);
        bytes.extend(u64::from(length).to_le_bytes());
        bytes.extend(u64::from(position).to_le_bytes());
        bytes.extend(LOCATOR_64.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(end_64.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(END.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend([0xff; 12]);
        bytes.extend([0; 2]);
        bytes
    }

    #[test]
    fn a_zip64_end_is_followed() {
        let bytes = with_end_64(archive(true, &[("a/x", b"hello")]));
        assert_eq!(read(&open(&bytes).unwrap(), "a/x").unwrap(), b"hello");
    }

    #[test]
    fn a_directory_that_claims_too_much_allocates_nothing() {
        let bytes = with_end_64(archive(false, &[("a/x", b"hello")]));
        let length = bytes.len() - 22 - 20 - 16;
        for (value, expected) in [
            (u64::MAX, "too large"),
            (1 << 26, "outside the file"),
            (40, "incomplete"),
        ] {
            let mut bytes = bytes.clone();
            bytes[length..length + 8].copy_from_slice(&value.to_le_bytes());
            let text = open(&bytes).err().unwrap().to_string();
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn entries_outside_the_file_are_refused() {
        let bytes = archive(false, &[("a/x", b"hello")]);
        let directory = bytes
            .windows(4)
            .position(|b| b == ENTRY.to_le_bytes())
            .unwrap();
        let with = |offset: usize, value: u32| {
            let mut bytes = bytes.clone();
            bytes[directory + offset..][..4].copy_from_slice(&value.to_le_bytes());
            open(&bytes).unwrap().find("a/x")
        };
        assert!(with(42, 1 << 30).is_err());
        assert!(with(42, 1).is_err());
        // Size and compressed size differ: it would have to be unpacked.
        assert!(
            with(24, 1 << 30)
                .unwrap_err()
                .to_string()
                .contains("compressed")
        );
        let mut both = bytes.clone();
        both[directory + 20..][..8].copy_from_slice(&[0, 0, 0, 0x40, 0, 0, 0, 0x40]);
        let text = open(&both).unwrap().find("a/x").unwrap_err().to_string();
        assert!(text.contains("outside the file"), "{text}");
    }

    #[test]
    fn doubled_names_and_changed_bytes_are_noticed() {
        let mut bytes = archive(false, &[("a/x", b"hello"), ("a/y", b"there")]);
        let start = bytes.windows(5).position(|b| b == b"hello").unwrap();
        bytes[start] = b'j';
        let archive = open(&bytes).unwrap();
        assert!(
            read(&archive, "a/x")
                .unwrap_err()
                .to_string()
                .contains("checksum")
        );
        assert_eq!(read(&archive, "a/y").unwrap(), b"there");
        let name = bytes.windows(3).rposition(|b| b == b"a/y").unwrap();
        bytes[name + 2] = b'x';
        assert!(
            open(&bytes)
                .err()
                .unwrap()
                .to_string()
                .contains("same name")
        );
    }
}
