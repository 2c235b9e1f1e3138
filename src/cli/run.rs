//! `lingbot_map run`: a folder of images becomes a map.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::{ArgGroup, Args};

use super::arguments::{ExportArguments, not_negative};
use super::interrupt::Interrupt;
use super::map_arguments::MapArguments;
use super::predictions::PredictionWriter;
use super::progress::{self, ExportBar};
use super::stream_arguments::StreamArguments;
use super::timings::{Summary, Timings, peak_memory};
use crate::camera::{Fit, ImageFolder};
use crate::map::{MapFormat, write_atomically};
use crate::mapper::{MapUpdate, Mapper, MapperConfig, MapperError};
use crate::model::{CheckpointSource, ModelSource, default_cache, resolve};
use crate::network::manifest::Manifest;
use crate::runtime::{Provider, RuntimeOptions};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["model", "checkpoint"]))]
pub struct Arguments {
    /// Folder of images (jpg, png), mapped in the natural order of their names
    #[arg(long, value_name = "FOLDER")]
    images: PathBuf,
    /// Folder of an exported model
    #[arg(long, value_name = "FOLDER", conflicts_with = "config")]
    model: Option<PathBuf>,
    /// PyTorch checkpoint (.pt) or safetensors file; exported once into the user's cache folder
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    #[command(flatten)]
    export: ExportArguments,
    /// Folder for trajectory.tum, map.ply, preview.png and timings.json
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
    /// Write the map in other formats too: pcd, glb (points and cameras), kitti (the path); several with commas
    #[arg(long, value_name = "FORMAT", value_delimiter = ',')]
    formats: Vec<MapFormat>,
    #[command(flatten)]
    stream: StreamArguments,
    #[command(flatten)]
    map: MapArguments,
    /// Leave a frame out before the network where nothing moved since the last one that ran: nine of ten patches changed
    /// their mean brightness (0 to 255) by no more than this [default: none is]
    #[arg(long, value_name = "BRIGHTNESS", value_parser = not_negative)]
    static_skip: Option<f32>,
    /// What is done with images of another size than the model's: crop, pad or reference
    #[arg(long, default_value_t)]
    fit: Fit,
    /// Where the network runs: auto, cpu, cuda or tensorrt
    #[arg(long, default_value_t)]
    provider: Provider,
    /// The ONNX Runtime shared library [default: searched for]
    #[arg(long, value_name = "FILE")]
    onnxruntime: Option<PathBuf>,
    /// Load the model without comparing its files with their checksums
    #[arg(long)]
    no_verify: bool,
    /// Also write the raw predictions, as a NumPy archive
    #[arg(long, value_name = "FILE")]
    save_predictions: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = ImageFolder::open(&arguments.images)?;
    // Nothing is worth keeping of an export that is stopped: the signal ends it.
    let model = arguments.model_folder(&folder)?;
    let interrupt = Interrupt::listen()?;
    let manifest = Manifest::read(&model)?;
    arguments.check(&manifest)?;
    let mapper_config = arguments.mapper(&manifest, folder.len())?;
    let start = Instant::now();
    let mut mapper = Mapper::open(&model, &arguments.runtime(), mapper_config)
        .with_context(|| format!("cannot run {}", model.display()))?;
    check_writable(&arguments.output)?;
    let mut walk = Walk::new(arguments.save_predictions.as_deref(), start.elapsed())?;
    let ended = walk.through(&folder, &mut mapper, &interrupt);
    // Whatever ended the walk, what was mapped until then is worth keeping.
    if mapper.trajectory().is_empty() {
        ended?;
        bail!("no frame was mapped: {}", walk.skipped_text());
    }
    walk.save(&mapper, folder.len(), interrupt.is_set(), &arguments.output)?;
    mapper.save_as(&arguments.formats, &arguments.output)?;
    ended?;
    interrupt.check()
}

/// A place that cannot take the results is told before hours of mapping.
fn check_writable(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .and_then(|()| tempfile::tempfile_in(folder).map(drop))
        .with_context(|| format!("cannot write to {}", folder.display()))
}

impl Arguments {
    fn model_folder(&self, folder: &ImageFolder) -> anyhow::Result<PathBuf> {
        let Some(checkpoint) = &self.checkpoint else {
            return self.model.clone().context("no model is given");
        };
        let source = ModelSource::Checkpoint(CheckpointSource {
            checkpoint: checkpoint.clone(),
            config: self.export.config.clone(),
            size: self.export.size.get(),
            camera_num_iterations: self.export.camera_num_iterations,
        });
        let first = (0..folder.len()).find_map(|index| folder.frame(index).ok());
        let size = first.map(|frame| frame.image.dimensions());
        let mut bar = ExportBar::default();
        let resolved = resolve(&source, size, &default_cache()?, &mut |progress| {
            bar.update(progress)
        });
        bar.finish();
        resolved.with_context(|| format!("cannot use {}", checkpoint.display()))
    }

    /// An exported model cannot be another than it is.
    fn check(&self, manifest: &Manifest) -> anyhow::Result<()> {
        let size = (manifest.size.height, manifest.size.width);
        if let Some(asked) = self.export.size.get() {
            ensure!(
                asked == size,
                "the model takes {}x{} (height x width), not {}x{}: export it for that size",
                size.0,
                size.1,
                asked.0,
                asked.1
            );
        }
        if let Some(asked) = self.export.camera_num_iterations {
            let found = manifest.camera_num_iterations;
            ensure!(
                asked == found,
                "the model has {found} camera iterations, not {asked}: export it with those"
            );
        }
        Ok(())
    }

    fn runtime(&self) -> RuntimeOptions {
        RuntimeOptions {
            provider: self.provider,
            library: self.onnxruntime.clone(),
            verify: !self.no_verify,
            ..RuntimeOptions::default()
        }
    }

    fn mapper(&self, manifest: &Manifest, images: usize) -> anyhow::Result<MapperConfig> {
        let mut config = MapperConfig::of_model(manifest);
        self.stream.apply(&mut config.stream, images);
        config.windows = self.stream.windows(images)?;
        config.on_collapse = self.stream.on_collapse();
        config.prepare.fit = self.fit;
        config.static_skip = self.static_skip.map(f64::from);
        config.filter = self.map.filter();
        config.voxel = self.map.voxel();
        Ok(config)
    }
}

fn still_text(still: u64) -> String {
    match still {
        0 => String::new(),
        still => format!(" and {still} left out because nothing moved"),
    }
}

/// The images on their way into the map, and what that took.
struct Walk {
    predictions: Option<PredictionWriter>,
    start: Instant,
    open: Duration,
    decode: Vec<Duration>,
    /// The call that mapped all scale frames.
    scale_call: Duration,
    steps: Vec<Duration>,
    skipped: BTreeMap<&'static str, usize>,
}

impl Walk {
    fn new(predictions: Option<&Path>, open: Duration) -> anyhow::Result<Self> {
        Ok(Self {
            predictions: predictions.map(PredictionWriter::create).transpose()?,
            start: Instant::now(),
            open,
            decode: Vec::new(),
            scale_call: Duration::ZERO,
            steps: Vec::new(),
            skipped: BTreeMap::new(),
        })
    }

    fn through(
        &mut self,
        folder: &ImageFolder,
        mapper: &mut Mapper,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let bar = progress::frames("mapping", folder.len());
        let ended = (0..folder.len()).try_for_each(|index| -> anyhow::Result<()> {
            if !interrupt.is_set() {
                self.image(folder, index, mapper)?;
                bar.inc(1);
            }
            Ok(())
        });
        bar.finish_and_clear();
        ended?;
        if interrupt.is_set() {
            return Ok(());
        }
        let start = Instant::now();
        let updates = mapper.finish()?;
        if !updates.is_empty() {
            self.scale_call = start.elapsed();
        }
        self.keep(&updates)
    }

    fn image(
        &mut self,
        folder: &ImageFolder,
        index: usize,
        mapper: &mut Mapper,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        let decoded = folder.frame(index);
        let step = Instant::now();
        let result = decoded.map_err(MapperError::from).and_then(|frame| {
            self.decode.push(step - start);
            mapper.push(frame)
        });
        match result {
            Ok(updates) => {
                match updates.len() {
                    0 => {}
                    1 => self.steps.push(step.elapsed()),
                    _ => self.scale_call = step.elapsed(),
                }
                self.keep(&updates)
            }
            Err(error @ MapperError::Image(_)) => {
                let count = self.skipped.entry(error.reason()).or_default();
                *count += 1;
                if *count == 1 {
                    log::warn!("image {index} is left out: {error}");
                }
                Ok(())
            }
            Err(error) => Err(error).with_context(|| format!("image {index}")),
        }
    }

    fn keep(&mut self, updates: &[MapUpdate]) -> anyhow::Result<()> {
        match &mut self.predictions {
            Some(writer) => updates
                .iter()
                .try_for_each(|update| writer.push(update.stamp, &update.prediction)),
            None => Ok(()),
        }
    }

    fn skipped_text(&self) -> String {
        let counts: Vec<String> = self
            .skipped
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        match counts.as_slice() {
            [] => "stopped before the first frames were complete".to_owned(),
            counts => counts.join(", "),
        }
    }

    fn save(
        self,
        mapper: &Mapper,
        images: usize,
        interrupted: bool,
        output: &Path,
    ) -> anyhow::Result<()> {
        let mapping = self.start.elapsed();
        let saved = mapper.save(output)?;
        let status = mapper.status();
        let timings = Timings {
            version: env!("CARGO_PKG_VERSION"),
            images,
            interrupted,
            skipped: self.skipped,
            frames_mapped: status.frames_mapped,
            still_frames: status.still_frames,
            windows: status.windows,
            collapses: status.collapses,
            rejected: status.rejected,
            map_points: status.map_points,
            provider: status.provider.to_string(),
            height: mapper.manifest().size.height,
            width: mapper.manifest().size.width,
            open_seconds: self.open.as_secs_f64(),
            mapping_seconds: mapping.as_secs_f64(),
            scale_call_seconds: self.scale_call.as_secs_f64(),
            decode_seconds: Summary::new(&self.decode),
            step_seconds: Summary::new(&self.steps),
            peak_memory_bytes: peak_memory(),
        };
        write_atomically(&output.join("timings.json"), |file| {
            serde_json::to_writer_pretty(&mut *file, &timings)?;
            file.write_all(b"\n")
        })?;
        if let Some(writer) = self.predictions {
            writer.finish()?;
        }
        writeln!(
            std::io::stdout(),
            "{} of {images} images mapped{}, {} points, {:.3} s a frame (median)",
            timings.frames_mapped,
            still_text(timings.still_frames),
            timings.map_points,
            timings.step_seconds.median
        )?;
        writeln!(std::io::stdout(), "preview: {}", saved.preview.display())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: Arguments,
    }

    fn parse(extra: &[&str]) -> Result<Arguments, clap::Error> {
        let given = ["run", "--images", "a", "--output", "b"];
        Line::try_parse_from([&given, extra].concat()).map(|line| line.run)
    }

    #[test]
    fn thresholds_are_numbers_from_0_on() {
        for flag in ["--conf-threshold", "--static-skip"] {
            let accepts =
                |value: &str| parse(&["--model", "m", &format!("{flag}={value}")]).is_ok();
            assert!(accepts("0") && accepts("1.5"));
            assert!(
                ["nan", "inf", "-1", "high"]
                    .into_iter()
                    .all(|value| !accepts(value))
            );
        }
    }

    #[test]
    fn a_model_or_a_checkpoint_has_to_be_given() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["--model", "m", "--checkpoint", "c"]).is_err());
        assert!(parse(&["--model", "m", "--config", "c"]).is_err());
        assert!(parse(&["--checkpoint", "c", "--height", "28"]).is_err());
        let both = ["--checkpoint", "c", "--height", "28", "--width", "42"];
        assert_eq!(parse(&both).unwrap().export.size.get(), Some((28, 42)));
    }
}
