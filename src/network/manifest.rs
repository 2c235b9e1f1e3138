//! The description that lies beside the graphs of an exported model.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

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
        fs::read_to_string(folder.join(MANIFEST))
            .is_ok_and(|text| serde_yaml::from_str::<Head>(&text).is_ok())
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
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
    pub fn read(folder: &Path) -> Result<Self, ManifestError> {
        let path = folder.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(|source| ManifestError::Read {
            path: path.clone(),
            source,
        })?;
        let syntax = |source| ManifestError::Syntax {
            path: path.clone(),
            source,
        };
        let Head { format, .. } = serde_yaml::from_str(&text).map_err(syntax)?;
        if format != FORMAT {
            return Err(ManifestError::Format {
                path,
                found: format,
            });
        }
        let manifest: Self = serde_yaml::from_str(&text).map_err(syntax)?;
        let invalid = |reason: String| ManifestError::Invalid {
            path: path.clone(),
            reason,
        };
        manifest
            .network
            .validate()
            .map_err(|error| invalid(error.to_string()))?;
        if manifest.camera_num_iterations == 0 {
            return Err(invalid("camera_num_iterations is 0".into()));
        }
        let mut needed = vec![STEP_GRAPH, DEPTH_GRAPH, WEIGHTS];
        if manifest.network.enable_point {
            needed.push(POINTS_GRAPH);
        }
        for name in needed {
            let file = manifest
                .files
                .get(name)
                .ok_or_else(|| invalid(format!("{name} is not listed")))?;
            let path = folder.join(name);
            let found = fs::metadata(&path)
                .map_err(|source| ManifestError::Read {
                    path: path.clone(),
                    source,
                })?
                .len();
            if found != file.bytes {
                return Err(ManifestError::FileSize {
                    path,
                    found,
                    expected: file.bytes,
                });
            }
        }
        Ok(manifest)
    }
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
