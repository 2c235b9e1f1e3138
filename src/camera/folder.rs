//! A folder of images, played as a camera.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Frame, ImageError, Stamp, decode_compressed};

const DEFAULT_PERIOD_NANOSECONDS: i64 = 100_000_000;

/// The JPEG and PNG files of a folder in natural order (`frame2` before `frame10`).
#[derive(Debug, Clone)]
pub struct ImageFolder {
    paths: Vec<PathBuf>,
    period_nanoseconds: i64,
}

impl ImageFolder {
    /// Lists the files of `folder` that end in `jpg`, `jpeg` or `png` in any case; folders within it and hidden
    /// files do not count.
    ///
    /// # Errors
    /// [`ImageError::Unreadable`] for a folder that cannot be listed, [`ImageError::EmptyFolder`] for one
    /// without images.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, ImageError> {
        let folder = folder.as_ref();
        let unreadable = |source| ImageError::Unreadable {
            path: folder.to_owned(),
            source,
        };
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if is_image_name(&path) && path.is_file() {
                paths.push(path);
            }
        }
        if paths.is_empty() {
            return Err(ImageError::EmptyFolder(folder.to_owned()));
        }
        paths.sort_by(|a, b| natural_order(&name(a), &name(b)).then_with(|| a.cmp(b)));
        Ok(Self {
            paths,
            period_nanoseconds: DEFAULT_PERIOD_NANOSECONDS,
        })
    }

    /// Sets the time between two frames (0.1 s unless set): frame `i` is stamped `i` periods after zero.
    pub fn with_period(mut self, nanoseconds: i64) -> Self {
        self.period_nanoseconds = nanoseconds;
        self
    }

    pub fn len(&self) -> usize {
        self.paths.len()
    }

    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Stamp of the frame at `index`.
    pub fn stamp(&self, index: usize) -> Stamp {
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        Stamp(index.saturating_mul(self.period_nanoseconds))
    }

    /// Reads and decodes the image at `index`, as [`decode_compressed`] does.
    ///
    /// # Errors
    /// Those of reading and decoding, with the file's path.
    pub fn frame(&self, index: usize) -> Result<Frame, ImageError> {
        let len = self.len();
        let path = self
            .paths
            .get(index)
            .ok_or(ImageError::NoSuchImage { index, len })?;
        let bytes = fs::read(path).map_err(|source| ImageError::Unreadable {
            path: path.clone(),
            source,
        })?;
        let image = decode_compressed(&bytes).map_err(|source| ImageError::InFile {
            path: path.clone(),
            source: Box::new(source),
        })?;
        Ok(Frame {
            stamp: self.stamp(index),
            image,
        })
    }
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn is_image_name(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let known = ["jpg", "jpeg", "png"];
    known.iter().any(|k| extension.eq_ignore_ascii_case(k)) && !name(path).starts_with('.')
}

/// Compares runs of digits by their value and everything else by character.
fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (digits_a, rest_a) = split_digits(a);
        let (digits_b, rest_b) = split_digits(b);
        let order = if !digits_a.is_empty() && !digits_b.is_empty() {
            (a, b) = (rest_a, rest_b);
            let value_a = digits_a.trim_start_matches('0');
            let value_b = digits_b.trim_start_matches('0');
            (value_a.len(), value_a).cmp(&(value_b.len(), value_b))
        } else {
            let (mut chars_a, mut chars_b) = (a.chars(), b.chars());
            let (first_a, first_b) = (chars_a.next(), chars_b.next());
            (a, b) = (chars_a.as_str(), chars_b.as_str());
            if first_a.is_none() && first_b.is_none() {
                return Ordering::Equal;
            }
            first_a.cmp(&first_b)
        };
        if order.is_ne() {
            return order;
        }
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write_png(path: &Path, grey: u8) {
        let image = image::RgbImage::from_pixel(3, 2, image::Rgb([grey; 3]));
        image
            .save_with_format(path, image::ImageFormat::Png)
            .unwrap();
    }

    #[test]
    fn files_come_in_natural_order_with_steady_stamps() {
        let folder = tempfile::tempdir().unwrap();
        for (name, grey) in [
            ("f10.PNG", 10),
            ("f2.png", 2),
            ("f1.png", 1),
            (".f0.png", 0),
        ] {
            write_png(&folder.path().join(name), grey);
        }
        fs::write(folder.path().join("notes.txt"), "no image").unwrap();
        fs::create_dir(folder.path().join("f3.png")).unwrap();

        let images = ImageFolder::open(folder.path()).unwrap();
        assert_eq!(images.len(), 3);
        let frames: Vec<Frame> = (0..3).map(|i| images.frame(i).unwrap()).collect();
        let greys: Vec<u8> = frames
            .iter()
            .map(|f| f.image.get_pixel(0, 0).0[0])
            .collect();
        assert_eq!(greys, [1, 2, 10]);
        let stamps: Vec<i64> = frames.iter().map(|f| f.stamp.0).collect();
        assert_eq!(stamps, [0, 100_000_000, 200_000_000]);
        assert_eq!(images.with_period(5).stamp(2), Stamp(10));
    }

    #[test]
    fn faults_name_the_file_and_keep_their_reason() {
        let folder = tempfile::tempdir().unwrap();
        let empty = ImageFolder::open(folder.path()).unwrap_err();
        assert_eq!(empty.reason(), "empty_folder");
        let absent = ImageFolder::open(folder.path().join("absent")).unwrap_err();
        assert_eq!(absent.reason(), "unreadable_file");

        fs::write(folder.path().join("bad.jpg"), "text").unwrap();
        let images = ImageFolder::open(folder.path()).unwrap();
        let error = images.frame(0).unwrap_err();
        assert_eq!(error.reason(), "unknown_format");
        assert!(error.to_string().contains("bad.jpg"));
        assert_eq!(images.frame(1).unwrap_err().reason(), "no_such_image");
    }

    #[test]
    fn numbers_count_by_value() {
        let mut names = ["a10b", "a9b", "a09b", "b1", "a", "a9", "10", "9", "", "a9a"];
        names.sort_by(|a, b| natural_order(a, b).then_with(|| a.cmp(b)));
        assert_eq!(
            names,
            ["", "9", "10", "a", "a9", "a9a", "a09b", "a9b", "a10b", "b1"]
        );
    }

    proptest! {
        #[test]
        fn zero_padding_does_not_matter(a in 0u64..100_000, b in 0u64..100_000) {
            let (x, y) = (format!("img{a}.png"), format!("img{b:08}.png"));
            prop_assert_eq!(natural_order(&x, &y), a.cmp(&b));
        }

        #[test]
        fn the_order_is_total(a in "[a0-9.]{0,6}", b in "[a0-9.]{0,6}", c in "[a0-9.]{0,6}") {
            prop_assert_eq!(natural_order(&a, &b), natural_order(&b, &a).reverse());
            if natural_order(&a, &b).is_le() && natural_order(&b, &c).is_le() {
                prop_assert!(natural_order(&a, &c).is_le());
            }
        }
    }
}
