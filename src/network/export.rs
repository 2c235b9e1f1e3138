//! From a checkpoint to a folder that ONNX Runtime can run.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::aggregator;
use super::camera_head;
use super::checkpoint::{BlankWeights, CheckpointError, TensorReport, TensorSource};
use super::config::{ConfigError, NetworkConfig};
use super::dpt_head::{self, DenseHead};
use super::grid::{PATCH_SIZE, SPECIAL_TOKENS};
use super::inputs::{self, StepInputs};
use super::layers::Net;
use super::manifest::{
    CacheLayout, DEPTH_GRAPH, FORMAT, FileInfo, MANIFEST, MAX_CAMERA_ITERATIONS, Manifest,
    POINTS_GRAPH, Precision, STEP_GRAPH, WEIGHTS, hex,
};
use super::onnx::{GraphBuilder, WeightFile};
use crate::camera::NetworkSize;

/// Why a model could not be exported. Nothing is left in the output folder then.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    InvalidConfig(#[from] ConfigError),
    #[error("the checkpoint does not fit the configuration: {0}")]
    Incomplete(TensorReport),
    #[error("the checkpoint has no tensor `{0}`")]
    MissingTensor(String),
    #[error("tensor `{name}` has shape {found:?}, expected {expected:?}")]
    WrongShape {
        name: String,
        found: Vec<usize>,
        expected: Vec<usize>,
    },
    #[error("the exporter cannot build this network: {0}")]
    Config(String),
    #[error("{path} exists and is not an exported model: choose another folder", path = .0.display())]
    OutputInUse(PathBuf),
    #[error("cannot write the model: {0}")]
    Write(#[from] io::Error),
}

/// What can be chosen about an exported model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// Image size that the model will take.
    pub size: NetworkSize,
    /// Refinement iterations of the camera head; the network was trained with 4.
    pub camera_num_iterations: usize,
}

/// Bytes of weight data written, and to be written in all (an estimate from the checkpoint's shapes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportProgress {
    pub done_bytes: u64,
    pub total_bytes: u64,
}

/// Writes the model to `output`, which appears only when it is complete. An exported model that is already there is
/// replaced, any other folder with something in it is left alone. The same input gives the same bytes.
pub fn export(
    source: &dyn TensorSource,
    config: &NetworkConfig,
    options: &ExportOptions,
    output: &Path,
    progress: &mut dyn FnMut(ExportProgress),
) -> Result<Manifest, ExportError> {
    check(source, config, options)?;
    if is_in_use(output)? {
        return Err(ExportError::OutputInUse(output.to_owned()));
    }
    // A link or a relative path that exists is followed: the folder itself is what gets replaced.
    let output = &fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
    let parent = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent)?;
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".export-{name}-");
    remove_remains(parent, &prefix)?;
    // Removed again when anything below fails.
    let (partial, _lock) = claim_folder(parent, &prefix)?;
    let manifest = write_model(source, config, options, partial.path(), progress)?;
    replace_folder(partial.path(), output)?;
    // There is nothing left at its place to remove.
    let _ = partial.keep();
    Ok(manifest)
}

/// A new folder in `parent` that is locked while it is written: what has the prefix and no lock is of a killed export.
fn claim_folder(parent: &Path, prefix: &str) -> io::Result<(tempfile::TempDir, File)> {
    loop {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?;
        // Another export to the same place may have cleared it away before it was locked.
        let lock = match File::open(folder.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            lock => lock?,
        };
        lock.lock()?;
        if folder.path().exists() {
            return Ok((folder, lock));
        }
    }
}

/// Clears away what killed exports to the same place have left.
fn remove_remains(parent: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let is_partial = entry.file_name().to_string_lossy().starts_with(prefix);
        if !is_partial || !entry.file_type()?.is_dir() {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else {
            continue;
        };
        if folder.try_lock().is_ok() {
            log::info!(
                "removing what a stopped export left: {}",
                entry.path().display()
            );
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn check(
    source: &dyn TensorSource,
    config: &NetworkConfig,
    options: &ExportOptions,
) -> Result<(), ExportError> {
    config.validate()?;
    if config.patch_size != PATCH_SIZE || config.num_special_tokens != SPECIAL_TOKENS {
        let message = format!(
            "patches of {PATCH_SIZE} pixels and {SPECIAL_TOKENS} special tokens are built in"
        );
        return Err(ExportError::Config(message));
    }
    if !(1..=MAX_CAMERA_ITERATIONS).contains(&options.camera_num_iterations) {
        let message =
            format!("camera_num_iterations must be between 1 and {MAX_CAMERA_ITERATIONS}");
        return Err(ExportError::Config(message));
    }
    let report = TensorReport::new(source, config);
    if !report.is_complete() {
        return Err(ExportError::Incomplete(report));
    }
    if !report.unexpected.is_empty() {
        log::warn!("the checkpoint has tensors that this network does not use: {report}");
    }
    Ok(())
}

fn write_model(
    source: &dyn TensorSource,
    config: &NetworkConfig,
    options: &ExportOptions,
    folder: &Path,
    progress: &mut dyn FnMut(ExportProgress),
) -> Result<Manifest, ExportError> {
    let total_bytes = config
        .expected_tensors()
        .iter()
        .map(|(_, shape)| 4 * shape.iter().product::<usize>() as u64)
        .sum();
    let mut report = |done: u64| {
        progress(ExportProgress {
            done_bytes: done.min(total_bytes),
            total_bytes,
        })
    };
    let mut weights = WeightFile::create(&folder.join(WEIGHTS), &mut report)?;
    let graphs = build_graphs(source, config, options, &mut weights)?;
    let (bytes, sha256) = weights.finish()?;
    report(total_bytes);

    let mut manifest = Manifest {
        format: FORMAT,
        exporter: env!("CARGO_PKG_VERSION").into(),
        precision: Precision::Fp32,
        layout: CacheLayout::TokenMajor,
        size: options.size,
        camera_num_iterations: options.camera_num_iterations,
        network: config.clone(),
        files: [(
            WEIGHTS.to_owned(),
            FileInfo {
                bytes,
                sha256: hex(&sha256),
            },
        )]
        .into(),
    };
    for (name, graph) in graphs {
        fs::write(folder.join(name), &graph)?;
        let info = FileInfo {
            bytes: graph.len() as u64,
            sha256: hex(&Sha256::digest(&graph)),
        };
        manifest.files.insert(name.to_owned(), info);
    }
    let text = serde_yaml::to_string(&manifest).map_err(io::Error::other)?;
    fs::write(folder.join(MANIFEST), text)?;
    Ok(manifest)
}

/// All graphs of a model, by file name.
fn build_graphs(
    source: &dyn TensorSource,
    config: &NetworkConfig,
    options: &ExportOptions,
    weights: &mut WeightFile,
) -> Result<Vec<(&'static str, Vec<u8>)>, ExportError> {
    let mut graphs = vec![(STEP_GRAPH, step_graph(source, config, options, weights)?)];
    let depth = dense_graph(source, config, options, DenseHead::Depth, weights)?;
    graphs.push((DEPTH_GRAPH, depth));
    if config.enable_point {
        let points = dense_graph(source, config, options, DenseHead::Points, weights)?;
        graphs.push((POINTS_GRAPH, points));
    }
    Ok(graphs)
}

/// Bytes of the weight file that [`export`] would write, without any weights.
///
/// # Errors
/// As [`export`], but for those of a checkpoint.
pub fn weight_bytes(config: &NetworkConfig, options: &ExportOptions) -> Result<u64, ExportError> {
    let source = BlankWeights::new(config);
    check(&source, config, options)?;
    let mut ignore = |_| ();
    let mut weights = WeightFile::counting(&mut ignore);
    build_graphs(&source, config, options, &mut weights)?;
    Ok(weights.len())
}

/// Tokens of the whole call to pose encodings and dense-head levels, with all caches.
fn step_graph(
    source: &dyn TensorSource,
    config: &NetworkConfig,
    options: &ExportOptions,
    weights: &mut WeightFile,
) -> Result<Vec<u8>, ExportError> {
    let (grid, iterations) = (options.size.into(), options.camera_num_iterations);
    let mut net = Net {
        graph: GraphBuilder::new("step", weights),
        source,
    };
    let step_inputs = StepInputs::declare(&mut net.graph, config, iterations, grid);
    let levels = aggregator::aggregate(&mut net, config, grid, &step_inputs)?;
    let pose = camera_head::decode_pose(&mut net, config, iterations, &step_inputs, &levels.last)?;
    inputs::declare_outputs(&mut net.graph, config, grid, &pose, &levels.selected);
    Ok(net.graph.finish())
}

fn dense_graph(
    source: &dyn TensorSource,
    config: &NetworkConfig,
    options: &ExportOptions,
    head: DenseHead,
    weights: &mut WeightFile,
) -> Result<Vec<u8>, ExportError> {
    let mut net = Net {
        graph: GraphBuilder::new(head.graph_name(), weights),
        source,
    };
    dpt_head::build(&mut net, config, options.size.into(), head)?;
    Ok(net.graph.finish())
}

/// Whether there is something at `output` that is neither an empty folder nor an exported model and nothing else.
fn is_in_use(output: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(output) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(true),
        Err(error) => return Err(error),
    };
    let names: Vec<_> = entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<_>>()?;
    let ours = [MANIFEST, STEP_GRAPH, DEPTH_GRAPH, POINTS_GRAPH, WEIGHTS];
    let only_ours = names.iter().all(|name| ours.iter().any(|our| name == our));
    let is_model = only_ours && Manifest::is_present(output);
    Ok(!names.is_empty() && !is_model)
}

/// Puts a finished folder in place of `target`. At every moment `target` is whole or absent.
fn replace_folder(finished: &Path, target: &Path) -> io::Result<()> {
    if target.exists() {
        let mut aside = finished.as_os_str().to_owned();
        aside.push(".old");
        fs::rename(target, &aside)?;
        fs::rename(finished, target)?;
        fs::remove_dir_all(&aside)
    } else {
        fs::rename(finished, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_export_left_is_cleared_away_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let prefix = ".export-model-";
        let killed = place.path().join(".export-model-killed");
        let other = place.path().join(".export-another-killed");
        for folder in [&killed, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(WEIGHTS), "half").unwrap();
        }
        let (running, lock) = claim_folder(place.path(), prefix).unwrap();
        remove_remains(place.path(), prefix).unwrap();
        assert!(!killed.exists() && other.exists() && running.path().exists());
        drop(lock);
        remove_remains(place.path(), prefix).unwrap();
        assert!(!running.path().exists());
    }

    /// What would be deleted by an export to a folder must be a model and nothing else.
    #[test]
    fn only_empty_folders_and_exported_models_are_replaced() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("model");
        assert!(!is_in_use(&folder).unwrap(), "nothing there");
        fs::create_dir(&folder).unwrap();
        assert!(!is_in_use(&folder).unwrap(), "an empty folder");
        fs::write(folder.join(MANIFEST), "kind: Deployment").unwrap();
        assert!(is_in_use(&folder).unwrap(), "somebody else's manifest");
        fs::write(folder.join(MANIFEST), "format: 0\nexporter: 0.0.1\n").unwrap();
        assert!(!is_in_use(&folder).unwrap(), "a model of another version");
        fs::write(folder.join("weights.safetensors"), "").unwrap();
        assert!(is_in_use(&folder).unwrap(), "a checkpoint beside it");
        assert!(is_in_use(&folder.join(MANIFEST)).unwrap(), "a file");
    }
}
