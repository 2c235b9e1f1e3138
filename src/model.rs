//! Where the model that runs comes from: an exported folder, or a checkpoint that is exported once
//! and kept.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

use crate::camera::{ImageError, NetworkSize, reference_size};
use crate::network::checkpoint::{Checkpoint, CheckpointError};
use crate::network::config::{ConfigError, NetworkConfig};
use crate::network::export::{self, ExportError, ExportOptions, ExportProgress};
use crate::network::manifest::{FORMAT, Manifest};

/// Why there is no model to run.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Size(ImageError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(
        "neither the configuration nor an image says which input size to export: give height and width"
    )]
    SizeUnknown,
    #[error("there is no folder for exported models: set XDG_CACHE_HOME or HOME")]
    NoCacheFolder,
    #[error("cannot use {path}: {source}", path = path.display())]
    Cache { path: PathBuf, source: io::Error },
}

/// A model, as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// The folder of an exported model.
    Exported(PathBuf),
    Checkpoint(CheckpointSource),
}

/// A checkpoint and what to export from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSource {
    pub checkpoint: PathBuf,
    /// Network configuration; see [`open_checkpoint`] for what happens without one.
    pub config: Option<PathBuf>,
    /// Height and width of the network input, pixels. Else the configuration's, else that of the
    /// reference implementation for the first image.
    pub size: Option<(u32, u32)>,
    /// Else the configuration's.
    pub camera_num_iterations: Option<usize>,
}

/// Opens a checkpoint and its configuration: the file given, else what the tensors of a network of
/// the official size say, else `config.json` beside the checkpoint.
pub fn open_checkpoint(
    path: &Path,
    config: Option<&Path>,
) -> Result<(Checkpoint, NetworkConfig), ModelError> {
    let checkpoint = Checkpoint::open(path)?;
    let config = match config {
        Some(file) => NetworkConfig::from_file(file)?,
        None => match NetworkConfig::infer(&checkpoint) {
            Err(ConfigError::NotInferable { difference }) => {
                let beside = path.with_file_name("config.json");
                if !beside.is_file() {
                    return Err(ConfigError::NotInferable { difference }.into());
                }
                log::info!(
                    "not of the official size ({difference}): sizes come from {}",
                    beside.display()
                );
                NetworkConfig::from_file(&beside)?
            }
            inferred => inferred?,
        },
    };
    Ok((checkpoint, config))
}

/// Height and width to export: those asked for, else the configuration's, else those that the
/// reference implementation would use for an image of the given width and height.
pub fn input_size(
    config: &NetworkConfig,
    asked: Option<(u32, u32)>,
    image: Option<(u32, u32)>,
) -> Result<NetworkSize, ModelError> {
    let configured = config
        .input_size()
        .map(|(height, width)| (pixels(height), pixels(width)));
    if let Some((height, width)) = asked.or(configured) {
        return NetworkSize::new(height, width).map_err(ModelError::Size);
    }
    let (width, height) = image.ok_or(ModelError::SizeUnknown)?;
    Ok(reference_size(width, height, pixels(config.img_size)))
}

/// Sizes beyond 32 bits become one that is refused.
fn pixels(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// The folder of a model that can be run.
///
/// A checkpoint is exported into `cache` the first time, which calls `progress`; later calls with
/// the same checkpoint and options return the same folder at once. `image` is the width and height
/// of the first image, for a checkpoint whose input size nothing else decides. Two processes may
/// call this at the same time: the second waits for the first.
pub fn resolve(
    source: &ModelSource,
    image: Option<(u32, u32)>,
    cache: &Path,
    progress: &mut dyn FnMut(ExportProgress),
) -> Result<PathBuf, ModelError> {
    let source = match source {
        ModelSource::Exported(folder) => return Ok(folder.clone()),
        ModelSource::Checkpoint(source) => source,
    };
    let (checkpoint, config) = open_checkpoint(&source.checkpoint, source.config.as_deref())?;
    let options = ExportOptions {
        size: input_size(&config, source.size, image)?,
        camera_num_iterations: source.camera_num_iterations.unwrap_or(config.cam_iters),
    };
    let name = cache_name(&source.checkpoint, &config, &options)
        .map_err(|error| cache_error(&source.checkpoint, error))?;
    let folder = cache.join(name);
    // Looked at before anything is written: the cache may be read-only and whole.
    if is_exported(&folder, &config, &options) {
        log::info!("using the model exported before in {}", folder.display());
        return Ok(folder);
    }
    let _lock = lock(cache).map_err(|error| cache_error(cache, error))?;
    // Another process may have exported it meanwhile.
    if is_exported(&folder, &config, &options) {
        log::info!("using the model exported before in {}", folder.display());
        return Ok(folder);
    }
    remove_remains(cache, &folder).map_err(|error| cache_error(cache, error))?;
    export::export(&checkpoint, &config, &options, &folder, progress)?;
    Ok(folder)
}

/// Where exported models are kept: `lingbot_map/models` in the user's cache folder (XDG Base
/// Directory Specification).
pub fn default_cache() -> Result<PathBuf, ModelError> {
    let absolute = |variable| {
        let path = env::var_os(variable).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Ok(base
        .ok_or(ModelError::NoCacheFolder)?
        .join("lingbot_map/models"))
}

fn cache_error(path: &Path, source: io::Error) -> ModelError {
    ModelError::Cache {
        path: path.to_path_buf(),
        source,
    }
}

/// A name for everything that decides what an export contains. The checkpoint is told by path,
/// length and time of change: reading gigabytes at every start would cost more than it saves.
fn cache_name(
    checkpoint: &Path,
    config: &NetworkConfig,
    options: &ExportOptions,
) -> io::Result<String> {
    let path = fs::canonicalize(checkpoint)?;
    let metadata = fs::metadata(&path)?;
    let changed = metadata
        .modified()?
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let key = serde_json::to_string(&(
        env!("CARGO_PKG_VERSION"),
        FORMAT,
        path.to_string_lossy(),
        metadata.len(),
        changed.as_nanos().to_string(),
        config,
        options.size,
        options.camera_num_iterations,
    ))?;
    let hash = Sha256::digest(key.as_bytes());
    let hash: String = hash
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let NetworkSize { height, width } = options.size;
    Ok(format!("{stem}-{height}x{width}-{hash}"))
}

fn is_exported(folder: &Path, config: &NetworkConfig, options: &ExportOptions) -> bool {
    Manifest::read(folder).is_ok_and(|manifest| {
        manifest.network == *config
            && manifest.size == options.size
            && manifest.camera_num_iterations == options.camera_num_iterations
    })
}

/// Held while the cache is looked at or changed; released when dropped, or when the process ends.
fn lock(cache: &Path) -> io::Result<File> {
    fs::create_dir_all(cache)?;
    let file = File::create(cache.join(".lock"))?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        log::info!("another process is exporting a model, waiting for it");
        file.lock()?;
    }
    Ok(file)
}

/// Clears away a damaged model and what exports left that were killed. Only with the lock held, so
/// nobody is writing any of it.
fn remove_remains(cache: &Path, folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(cache)? {
        let entry = entry?;
        let partial = entry.file_name().to_string_lossy().starts_with(".export-");
        if partial || entry.path() == folder {
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden")
            .join(name)
    }

    fn source(checkpoint: PathBuf) -> CheckpointSource {
        CheckpointSource {
            checkpoint,
            config: Some(golden("config.json")),
            size: Some((28, 42)),
            camera_num_iterations: None,
        }
    }

    /// Resolves and says whether that exported anything.
    fn resolve_in(cache: &Path, source: &CheckpointSource) -> (PathBuf, bool) {
        let mut exported = false;
        let source = ModelSource::Checkpoint(source.clone());
        let folder = resolve(&source, None, cache, &mut |_| exported = true).unwrap();
        Manifest::read(&folder).unwrap();
        (folder, exported)
    }

    #[test]
    fn a_checkpoint_is_exported_once() {
        let cache = tempfile::tempdir().unwrap();
        let source = source(golden("weights.safetensors"));
        let (folder, exported) = resolve_in(cache.path(), &source);
        assert!(exported && folder.starts_with(cache.path()));
        assert_eq!(resolve_in(cache.path(), &source), (folder.clone(), false));
        let fewer = CheckpointSource {
            camera_num_iterations: Some(1),
            ..source.clone()
        };
        let (other, exported) = resolve_in(cache.path(), &fewer);
        assert!(exported && other != folder);
        assert_eq!(Manifest::read(&other).unwrap().camera_num_iterations, 1);
    }

    #[test]
    fn a_changed_checkpoint_is_exported_again() {
        let cache = tempfile::tempdir().unwrap();
        let checkpoint = cache.path().join("weights.safetensors");
        fs::copy(golden("weights.safetensors"), &checkpoint).unwrap();
        let source = source(checkpoint.clone());
        let models = cache.path().join("models");
        let (before, _) = resolve_in(&models, &source);
        let file = File::options().append(true).open(&checkpoint).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
        let (after, exported) = resolve_in(&models, &source);
        assert!(exported && before != after);
    }

    #[test]
    fn damage_and_remains_of_a_killed_export_are_cleared_away() {
        let cache = tempfile::tempdir().unwrap();
        let source = source(golden("weights.safetensors"));
        let (folder, _) = resolve_in(cache.path(), &source);
        fs::remove_file(folder.join("manifest.yaml")).unwrap();
        let partial = cache.path().join(".export-killed");
        fs::create_dir(&partial).unwrap();
        fs::write(partial.join("weights.data"), b"half").unwrap();
        assert_eq!(resolve_in(cache.path(), &source), (folder, true));
        assert!(!partial.exists());
    }

    #[test]
    fn an_exported_folder_is_taken_as_it_is() {
        let folder = PathBuf::from("somewhere");
        let source = ModelSource::Exported(folder.clone());
        let unused = Path::new("/nonexistent");
        assert_eq!(resolve(&source, None, unused, &mut |_| {}).unwrap(), folder);
    }

    #[test]
    fn the_input_size_is_the_one_asked_for_then_the_configured_then_the_images() {
        let mut config = NetworkConfig::official();
        let size = |config: &_, asked, image| {
            input_size(config, asked, image).map(|size| (size.height, size.width))
        };
        let image = Some((640, 480));
        assert!(matches!(
            size(&config, None, None),
            Err(ModelError::SizeUnknown)
        ));
        assert_eq!(size(&config, None, image).unwrap(), (392, 518));
        config.input_h = Some(84);
        config.input_w = Some(112);
        assert_eq!(size(&config, None, image).unwrap(), (84, 112));
        assert_eq!(size(&config, Some((28, 42)), image).unwrap(), (28, 42));
        assert!(matches!(
            size(&config, Some((30, 42)), image),
            Err(ModelError::Size(_))
        ));
    }

    #[test]
    fn a_configuration_beside_the_checkpoint_is_found() {
        let (_, config) = open_checkpoint(&golden("weights.safetensors"), None).unwrap();
        assert_eq!(config.embed_dim, 32);
        let alone = tempfile::tempdir().unwrap();
        let path = alone.path().join("weights.safetensors");
        fs::copy(golden("weights.safetensors"), &path).unwrap();
        let error = open_checkpoint(&path, None).err().unwrap().to_string();
        assert!(
            error.contains("embed_dim 32") && error.contains("configuration file"),
            "{error}"
        );
    }
}
