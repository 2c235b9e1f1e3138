//! The description that lies beside the graphs of an exported model.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::config::NetworkConfig;
use crate::camera::NetworkSize;

pub const MANIFEST: &str = "manifest.yaml";
pub const STEP_GRAPH: &str = "step.onnx";
pub const DEPTH_GRAPH: &str = "depth.onnx";
pub const POINTS_GRAPH: &str = "points.onnx";
pub const WEIGHTS: &str = "weights.data";

/// Changes whenever exported graphs or their inputs and outputs change.
pub const FORMAT: u32 = 1;

/// Refinement iterations of the camera head that an export may have; each adds caches. The trained network runs 4.
pub const MAX_CAMERA_ITERATIONS: usize = 16;

/// A manifest is a page or two of text; more is not one.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// What an exported model is: written by the exporter, read by the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// Version of this package that exported the model.
    pub exporter: String,
    pub precision: Precision,
    pub layout: CacheLayout,
    /// Height and width of the network's input, pixels.
    pub size: NetworkSize,
    pub camera_num_iterations: usize,
    pub network: NetworkConfig,
    /// Size and checksum of every other file of the folder, by name.
    pub files: BTreeMap<String, FileInfo>,
}

/// Element type of weights, caches and activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    Fp32,
}

/// Shape of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheLayout {
    /// [1, rows, channels]; a call is given the rows that it may attend, a prefix.
    TokenMajor,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    pub bytes: u64,
    pub sha256: String,
}

/// Why a folder is not a model that this version can run.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("{path} is not an exported model: cannot read it: {source}", path = path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path} is not a model manifest: {source}", path = path.display())]
    Syntax {
        path: PathBuf,
        source: serde_yaml::Error,
    },
    #[error("{path} has format {found}, this version reads {FORMAT}: export the model again", path = path.display())]
    Format { path: PathBuf, found: u32 },
    #[error("{path}: {reason}", path = path.display())]
    Invalid { path: PathBuf, reason: String },
    #[error("{path} has {found} bytes, its manifest says {expected}: the export is damaged or incomplete", path = path.display())]
    FileSize {
        path: PathBuf,
        found: u64,
        expected: u64,
    },
    #[error("{path} leads to {target}, out of the model's folder: put the file itself there", path = path.display(), target = target.display())]
    Outside { path: PathBuf, target: PathBuf },
    #[error("{path} is damaged: {files} differ from what was exported; export the model again", path = path.display())]
    Damaged { path: PathBuf, files: String },
}

/// What a manifest of any version begins with.
#[derive(Deserialize)]
struct Head {
    format: u32,
    #[serde(rename = "exporter")]
    _exporter: String,
}

impl Manifest {
    /// Whether a folder has a manifest of any version.
    pub(super) fn is_present(folder: &Path) -> bool {
        read_text(&folder.join(MANIFEST))
            .is_ok_and(|text| serde_yaml::from_str::<Head>(&text).is_ok())
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> u64 {
        let sizes = self.files.values().map(|file| file.bytes);
        sizes.fold(0, u64::saturating_add)
    }

    /// Compares every file with its checksum; reads all of them.
    ///
    /// # Errors
    /// [`ManifestError::Damaged`] with the names of those that differ, [`ManifestError::Read`].
    pub fn verify(&self, folder: &Path) -> Result<(), ManifestError> {
        let mut damaged = Vec::new();
        for (name, info) in &self.files {
            let path = folder.join(name);
            let hash = sha256(&path).map_err(|source| ManifestError::Read { path, source })?;
            if hex(&hash) != info.sha256 {
                damaged.push(name.clone());
            }
        }
        if damaged.is_empty() {
            return Ok(());
        }
        Err(ManifestError::Damaged {
            path: folder.to_owned(),
            files: damaged.join(", "),
        })
    }

    /// Compares the size with the image that the step graph takes, [frames, height, width, 3].
    ///
    /// # Errors
    /// [`ManifestError::Invalid`] where they differ.
    pub fn check_image(&self, folder: &Path, shape: &[i64]) -> Result<(), ManifestError> {
        let NetworkSize { height, width } = self.size;
        match *shape {
            [_, rows, columns, _] if rows == i64::from(height) && columns == i64::from(width) => {
                Ok(())
            }
            _ => Err(ManifestError::Invalid {
                path: folder.join(MANIFEST),
                reason: format!(
                    "size is {height}x{width}, but {STEP_GRAPH} takes an image of shape {shape:?}"
                ),
            }),
        }
    }

    /// Reads the manifest of an exported folder and checks that its files are there with the sizes it says.
    ///
    /// # Errors
    /// Those of [`Manifest::parse`]; [`ManifestError::Read`] for files that are not there, [`ManifestError::Outside`] for
    /// links to files elsewhere, [`ManifestError::FileSize`].
    pub fn read(folder: &Path) -> Result<Self, ManifestError> {
        let path = folder.join(MANIFEST);
        let read = |path: &Path, source| ManifestError::Read {
            path: path.to_owned(),
            source,
        };
        let text = read_text(&path).map_err(|source| read(&path, source))?;
        let manifest = Self::parse(&path, &text)?;
        let inside = fs::canonicalize(folder).map_err(|source| read(folder, source))?;
        for (name, file) in &manifest.files {
            let path = folder.join(name);
            let target = fs::canonicalize(&path).map_err(|source| read(&path, source))?;
            if !target.starts_with(&inside) {
                return Err(ManifestError::Outside { path, target });
            }
            let metadata = fs::metadata(&target).map_err(|source| read(&path, source))?;
            let (found, expected) = (metadata.len(), file.bytes);
            if !metadata.is_file() || found != expected {
                return Err(ManifestError::FileSize {
                    path,
                    found,
                    expected,
                });
            }
        }
        Ok(manifest)
    }

    /// Reads the text of a manifest and checks all that can be checked without the other files.
    ///
    /// # Errors
    /// [`ManifestError::Syntax`], [`ManifestError::Format`], and [`ManifestError::Invalid`] for sizes that no network has,
    /// files that are missing in the list, and names that are no plain file names: nothing outside the folder is a part
    /// of a model. `path` is for the message.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ManifestError> {
        let syntax = |source| ManifestError::Syntax {
            path: path.to_owned(),
            source,
        };
        let Head { format, .. } = serde_yaml::from_str(text).map_err(syntax)?;
        if format != FORMAT {
            return Err(ManifestError::Format {
                path: path.to_owned(),
                found: format,
            });
        }
        let manifest: Self = serde_yaml::from_str(text).map_err(syntax)?;
        manifest.check().map_err(|reason| ManifestError::Invalid {
            path: path.to_owned(),
            reason,
        })?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        let network = &self.network;
        network.validate().map_err(|error| error.to_string())?;
        if !(1..=MAX_CAMERA_ITERATIONS).contains(&self.camera_num_iterations) {
            return Err(format!(
                "camera_num_iterations is {}, expected 1 to {MAX_CAMERA_ITERATIONS}",
                self.camera_num_iterations
            ));
        }
        if let Some(name) = self.files.keys().find(|name| !is_plain_name(name)) {
            return Err(format!("{name:?} is not the name of a file of its folder"));
        }
        let points = network.enable_point.then_some(POINTS_GRAPH);
        let mut needed = [STEP_GRAPH, DEPTH_GRAPH, WEIGHTS].into_iter().chain(points);
        match needed.find(|name| !self.files.contains_key(*name)) {
            Some(name) => Err(format!("{name} is not listed")),
            None => Ok(()),
        }
    }
}

/// Whether a name, joined to a folder, is a file in this folder: no path, and neither `.` nor `..`.
fn is_plain_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!(components.next(), Some(Component::Normal(part)) if part == name)
        && components.next().is_none()
}

/// The whole of a small text file.
fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = fs::File::open(path)?;
    file.take(MAX_MANIFEST_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_MANIFEST_BYTES {
        let reason = format!("it is larger than {MAX_MANIFEST_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(text)
}

fn sha256(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = fs::File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.finalize().into()),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// The text form of a checksum.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model folder with the given names in its manifest besides those that are needed.
    fn model(extra: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("model");
        fs::create_dir(&folder).unwrap();
        let file = FileInfo {
            bytes: 3,
            sha256: String::new(),
        };
        let needed = [STEP_GRAPH, DEPTH_GRAPH, WEIGHTS];
        for name in needed {
            fs::write(folder.join(name), "abc").unwrap();
        }
        let names = needed.iter().chain(extra);
        let manifest = Manifest {
            format: FORMAT,
            exporter: "test".into(),
            precision: Precision::Fp32,
            layout: CacheLayout::TokenMajor,
            size: NetworkSize::new(28, 42).unwrap(),
            camera_num_iterations: 4,
            network: NetworkConfig::official(),
            files: names
                .map(|name| ((*name).to_owned(), file.clone()))
                .collect(),
        };
        let text = serde_yaml::to_string(&manifest).unwrap();
        fs::write(folder.join(MANIFEST), text).unwrap();
        (place, folder)
    }

    #[test]
    fn nothing_outside_the_folder_is_a_part_of_a_model() {
        let (place, folder) = model(&[]);
        Manifest::read(&folder).unwrap();
        fs::write(place.path().join("secret"), "abc").unwrap();
        for name in [
            "../secret",
            "/dev/zero",
            "..",
            ".",
            "",
            "a/../../secret",
            "a/",
        ] {
            let (_place, folder) = model(&[name]);
            let error = Manifest::read(&folder).unwrap_err().to_string();
            assert!(error.contains("not the name of a file"), "{error}");
        }
        fs::remove_file(folder.join(WEIGHTS)).unwrap();
        std::os::unix::fs::symlink(place.path().join("secret"), folder.join(WEIGHTS)).unwrap();
        let error = Manifest::read(&folder).unwrap_err();
        assert!(matches!(error, ManifestError::Outside { .. }), "{error}");
    }

    #[test]
    fn a_manifest_without_end_is_not_read_to_its_end() {
        let (_place, folder) = model(&[]);
        fs::write(folder.join(MANIFEST), vec![b'#'; 2 << 20]).unwrap();
        let error = Manifest::read(&folder).unwrap_err().to_string();
        assert!(error.contains("larger than"), "{error}");
    }
}
