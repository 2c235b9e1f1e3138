//! Files that are whole or not there.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, RgbImage};
use thiserror::Error;

/// A file of the map that could not be written or read.
#[derive(Debug, Error)]
pub enum MapError {
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}, line {line}: {reason}", path.display())]
    Parse {
        path: PathBuf,
        line: usize,
        reason: String,
    },
}

/// Writes a file beside `path` and renames it to `path` when it is complete and on the disk: `path` holds either its
/// old content or all of the new one.
///
/// # Errors
/// [`MapError::Write`] with the first fault of `write` or of the file system; nothing is left behind then.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), MapError> {
    replace(path, write).map_err(|source| MapError::Write {
        path: path.to_owned(),
        source,
    })
}

/// Writes a picture as PNG, as [`write_atomically`] does.
///
/// # Errors
/// [`MapError::Write`].
pub fn write_png(path: &Path, picture: &RgbImage) -> Result<(), MapError> {
    let (width, height) = picture.dimensions();
    write_atomically(path, |out| {
        PngEncoder::new(out)
            .write_image(picture.as_raw(), width, height, ExtendedColorType::Rgb8)
            .map_err(io::Error::other)
    })
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut beside = tempfile::Builder::new();
    beside.prefix(".").suffix(".part");
    // A temporary file is private; a map is as readable as any other new file.
    let permissions = new_file_permissions();
    if let Some(permissions) = permissions {
        beside.permissions(permissions);
    }
    let mut file = BufWriter::new(beside.tempfile_in(folder)?);
    write(&mut file)?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The rename is lasting once the folder is on the disk too; not every file system can do this.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(unix)]
fn new_file_permissions() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    // What the process's umask leaves of it.
    Some(Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn new_file_permissions() -> Option<Permissions> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn the_new_content_replaces_the_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.ply");
        for content in ["first", "second, longer"] {
            write_atomically(&path, |out| out.write_all(content.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(names(folder.path()), ["map.ply"]);
    }

    #[test]
    fn a_fault_half_way_keeps_the_old_file_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.ply");
        fs::write(&path, "old").unwrap();
        let error = write_atomically(&path, |out| {
            out.write_all(&[0; 100_000])?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
        assert!(error.to_string().contains("map.ply"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["map.ply"]);
    }

    #[test]
    fn places_that_cannot_be_written_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [folder.path().join("absent/map.ply"), file.join("map.ply")] {
            let error = write_atomically(&path, |_| Ok(())).unwrap_err();
            assert!(
                error.to_string().contains(path.to_str().unwrap()),
                "{error}"
            );
        }
        assert!(
            write_atomically(folder.path(), |_| Ok(())).is_err(),
            "a folder is no file"
        );
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_as_readable_as_any_new_one() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("ours"), folder.path().join("plain"));
        write_atomically(&ours, |_| Ok(())).unwrap();
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
