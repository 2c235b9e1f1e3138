//! `lingbot_map profile`: where the time of each frame goes, over a run.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use serde::Serialize;

use super::interrupt::Interrupt;
use super::progress;
use super::random_model::{export_random, noise};
use super::stream_arguments::StreamArguments;
use super::timings::Summary;
use crate::camera::{Frame, ImageFolder, NetworkSize, Stamp};
use crate::map::write_png;
use crate::mapper::{Mapper, MapperConfig};
use crate::network::config::NetworkConfig;
use crate::network::manifest::Manifest;
use crate::plot::{BLUE, Chart, Colour, ORANGE, Series, Style, draw};
use crate::runtime::{Provider, RuntimeOptions};
use crate::stages::{Stage, StageTimes};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Folder of an exported model [default: random weights]
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["config", "height", "width", "camera_num_iterations"])]
    model: Option<PathBuf>,
    /// Network sizes (JSON) for random weights [default: the official network]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Rows of the network's input, pixels; a multiple of 14
    #[arg(long, value_name = "PIXELS", default_value_t = 378)]
    height: u32,
    /// Columns of the network's input, pixels; a multiple of 14
    #[arg(long, value_name = "PIXELS", default_value_t = 518)]
    width: u32,
    /// Refinement iterations of the camera head [default: the network's own]
    #[arg(long, value_name = "N")]
    camera_num_iterations: Option<usize>,
    /// Folder of images (jpg, png), again and again where there are fewer than frames [default: noise]
    #[arg(long, value_name = "FOLDER")]
    images: Option<PathBuf>,
    /// Frames of the run, scale frames included [default: all images, else 100]
    #[arg(long, value_name = "N")]
    frames: Option<usize>,
    #[command(flatten)]
    stream: StreamArguments,
    /// Where the network runs: auto, cpu, cuda or tensorrt
    #[arg(long, default_value_t)]
    provider: Provider,
    /// The ONNX Runtime shared library [default: searched for]
    #[arg(long, value_name = "FILE")]
    onnxruntime: Option<PathBuf>,
    /// Print JSON, with every frame's stages
    #[arg(long)]
    json: bool,
    /// PNG file for a plot of stages and frame rate over the run
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let source = arguments.source()?;
    let frames = arguments.frames.unwrap_or(match &source {
        Source::Images(folder) => folder.len(),
        Source::Noise => NOISE_FRAMES,
    });
    // Kept as long as the mapper lives.
    let random = match &arguments.model {
        Some(_) => None,
        None => Some(arguments.random_model()?),
    };
    let model = match (&arguments.model, &random) {
        (Some(folder), _) => folder.as_path(),
        (None, random) => random.as_ref().context("no model is given")?.path(),
    };
    let interrupt = Interrupt::listen()?;
    let manifest = Manifest::read(model)?;
    let mut config = MapperConfig::of_model(&manifest);
    arguments.stream.apply(&mut config.stream, frames);
    config.windows = arguments.stream.windows(frames)?;
    config.on_collapse = arguments.stream.on_collapse();
    let options = RuntimeOptions {
        provider: arguments.provider,
        library: arguments.onnxruntime.clone(),
        ..RuntimeOptions::default()
    };
    let start = Instant::now();
    let mut mapper = Mapper::open(model, &options, config)
        .with_context(|| format!("cannot run {}", model.display()))?;
    let open = start.elapsed();
    let run = measure(&mut mapper, &source, frames, &interrupt)?;
    let report = Report::new(&mapper, open, &run)?;
    if let Some(file) = &arguments.plot {
        write_png(file, &draw(&charts(&report), PLOT_WIDTH)?)?;
    }
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report)?,
        false => report.to_string(),
    };
    writeln!(std::io::stdout(), "{text}")?;
    interrupt.check()
}

const NOISE_FRAMES: usize = 100;
const PLOT_WIDTH: u32 = 1000;

/// Where frames come from.
enum Source {
    Images(ImageFolder),
    Noise,
}

impl Source {
    fn frame(&self, index: usize, size: NetworkSize) -> anyhow::Result<Frame> {
        match self {
            Self::Images(folder) => Ok(folder.frame(index % folder.len().max(1))?),
            Self::Noise => Ok(Frame {
                stamp: Stamp(index as i64),
                image: noise(size, index),
            }),
        }
    }
}

impl Arguments {
    fn source(&self) -> anyhow::Result<Source> {
        Ok(match &self.images {
            Some(folder) => Source::Images(ImageFolder::open(folder)?),
            None => Source::Noise,
        })
    }

    fn random_model(&self) -> anyhow::Result<tempfile::TempDir> {
        let network = match &self.config {
            Some(file) => NetworkConfig::from_file(file)?,
            None => NetworkConfig::official(),
        };
        let size = NetworkSize::new(self.height, self.width)?;
        export_random(&network, size, self.camera_num_iterations)
    }
}

/// What one frame took.
struct FrameTimes {
    stages: StageTimes,
    total: Duration,
}

struct Run {
    /// The call that maps all scale frames.
    scale_call: Duration,
    /// Frames after it, in order.
    frames: Vec<FrameTimes>,
}

fn measure(
    mapper: &mut Mapper,
    source: &Source,
    frames: usize,
    interrupt: &Interrupt,
) -> anyhow::Result<Run> {
    let size = mapper.manifest().size;
    let bar = progress::frames("profiling", frames);
    let mut run = Run {
        scale_call: Duration::ZERO,
        frames: Vec::with_capacity(frames),
    };
    let mut decode = StageTimes::default();
    for index in 0..frames {
        if interrupt.is_set() {
            break;
        }
        let before = mapper.stages() + decode;
        let is_step = mapper.status().token_cache.valid > 0;
        let mut start = Instant::now();
        let frame = source.frame(index, size)?;
        match source {
            Source::Images(_) => decode.add_since(Stage::Decode, start),
            // Noise is made, not decoded: that is no part of a frame's time.
            Source::Noise => start = Instant::now(),
        }
        mapper.push(frame)?;
        let total = start.elapsed();
        if is_step {
            run.frames.push(FrameTimes {
                stages: mapper.stages() + decode - before,
                total,
            });
        } else {
            run.scale_call = total;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(run)
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    version: &'static str,
    provider: String,
    /// Of the network's input, pixels.
    height: u32,
    width: u32,
    /// Loading the model.
    open_seconds: f64,
    /// The call that maps all scale frames; the numbers below are of the frames after it.
    scale_call_seconds: f64,
    frame_seconds: Summary,
    /// By name; `other` is what no stage measures.
    stage_seconds: BTreeMap<&'static str, Summary>,
    /// Around so many per cent of the run.
    frames_per_second: BTreeMap<&'static str, f64>,
    frames: Vec<FrameReport>,
}

/// Seconds of one frame.
#[derive(Serialize)]
struct FrameReport {
    seconds: f64,
    stages: BTreeMap<&'static str, f64>,
}

const OTHER: &str = "other";

fn stages_of(frame: &FrameTimes) -> impl Iterator<Item = (&'static str, Duration)> {
    let other = frame.total.saturating_sub(frame.stages.total());
    Stage::ALL
        .map(|stage| (stage.name(), frame.stages.of(stage)))
        .into_iter()
        .chain([(OTHER, other)])
}

impl Report {
    fn new(mapper: &Mapper, open: Duration, run: &Run) -> anyhow::Result<Self> {
        ensure!(
            !run.frames.is_empty(),
            "the run has no frames after the {} scale frames: give more with --frames",
            mapper.status().frames_in
        );
        let totals: Vec<Duration> = run.frames.iter().map(|frame| frame.total).collect();
        let mut stages: BTreeMap<&'static str, Vec<Duration>> = BTreeMap::new();
        for (name, time) in run.frames.iter().flat_map(stages_of) {
            stages.entry(name).or_default().push(time);
        }
        let rates = [("10", 0.1), ("50", 0.5), ("90", 0.9)];
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            provider: mapper.status().provider.to_string(),
            height: mapper.manifest().size.height,
            width: mapper.manifest().size.width,
            open_seconds: open.as_secs_f64(),
            scale_call_seconds: run.scale_call.as_secs_f64(),
            frame_seconds: Summary::new(&totals),
            stage_seconds: stages
                .iter()
                .map(|(name, times)| (*name, Summary::new(times)))
                .collect(),
            frames_per_second: rates.map(|(name, at)| (name, rate_at(&totals, at))).into(),
            frames: run.frames.iter().map(FrameReport::new).collect(),
        })
    }
}

impl FrameReport {
    fn new(frame: &FrameTimes) -> Self {
        Self {
            seconds: frame.total.as_secs_f64(),
            stages: stages_of(frame)
                .map(|(name, time)| (name, time.as_secs_f64()))
                .collect(),
        }
    }
}

/// Frames per second over the tenth of a run that lies around a share `at` of it.
fn rate_at(times: &[Duration], at: f64) -> f64 {
    let count = (times.len() / 10).max(1);
    let middle = (at * times.len() as f64) as usize;
    let first = middle
        .saturating_sub(count / 2)
        .min(times.len().saturating_sub(count));
    let around: Duration = times.iter().skip(first).take(count).sum();
    count as f64 / around.as_secs_f64()
}

/// Stages in the order of a frame's way.
fn stage_names() -> impl Iterator<Item = &'static str> {
    Stage::ALL.map(Stage::name).into_iter().chain([OTHER])
}

impl Display for Report {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Summary { count, total, .. } = self.frame_seconds;
        writeln!(
            out,
            "{count} frames after the scale call ({:.3} s) at {}x{} on {}",
            self.scale_call_seconds, self.height, self.width, self.provider
        )?;
        writeln!(
            out,
            "{:<12} {:>9} {:>9} {:>9} {:>7}",
            "stage", "mean ms", "median", "p95", "share"
        )?;
        let rows = stage_names().filter_map(|name| Some((name, self.stage_seconds.get(name)?)));
        for (name, times) in rows.chain([("frame", &self.frame_seconds)]) {
            writeln!(
                out,
                "{name:<12} {:>9.3} {:>9.3} {:>9.3} {:>6.1}%",
                1e3 * times.mean,
                1e3 * times.median,
                1e3 * times.p95,
                100.0 * times.total / total
            )?;
        }
        let rates: Vec<String> = self
            .frames_per_second
            .iter()
            .map(|(at, rate)| format!("{rate:.2} at {at} %"))
            .collect();
        write!(out, "frames per second: {}", rates.join(", "))
    }
}

/// Of the same set as the two of the plots, in the order of the stages.
const COLOURS: [Colour; 9] = [
    Colour(153, 153, 153),
    Colour(86, 180, 233),
    Colour(240, 228, 66),
    BLUE,
    ORANGE,
    Colour(204, 121, 167),
    Colour(0, 158, 115),
    Colour(230, 159, 0),
    Colour(0, 0, 0),
];
/// Share of a frame from which on a stage is drawn.
const VISIBLE: f64 = 0.005;

fn charts(report: &Report) -> [Chart; 2] {
    let over_run = |value: &dyn Fn(&FrameReport) -> Option<f64>| -> Vec<[f64; 2]> {
        let frames = report.frames.iter().enumerate();
        frames
            .filter_map(|(index, frame)| Some([index as f64, value(frame)?]))
            .collect()
    };
    let is_visible = |name: &str| {
        let times = report.stage_seconds.get(name);
        times.is_some_and(|times| times.total > VISIBLE * report.frame_seconds.total)
    };
    let stages = stage_names()
        .zip(COLOURS)
        .filter(|(name, _)| is_visible(name))
        .map(|(name, colour)| Series {
            label: Some(name.to_owned()),
            colour,
            style: Style::Line(1),
            points: over_run(&|frame| Some(1e3 * frame.stages.get(name)?)),
        });
    let rate = Series {
        label: None,
        colour: BLUE,
        style: Style::Line(1),
        points: over_run(&|frame| Some(1.0 / frame.seconds)),
    };
    let chart = |title: String, y_label: &str, series| Chart {
        title,
        x_label: "frame after the scale call".into(),
        y_label: y_label.into(),
        series,
        equal_axes: false,
        height: 400,
    };
    let size = format!("{}x{} on {}", report.height, report.width, report.provider);
    [
        chart(
            format!("Time of a frame by stage, {size}"),
            "ms",
            stages.collect(),
        ),
        chart("Frames per second".into(), "1/s", vec![rate]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_tenth_around_its_place() {
        // 100 frames that take 1 s, 2 s, ... 100 s.
        let times: Vec<Duration> = (1..=100).map(Duration::from_secs).collect();
        let rate = |first: u64| 10.0 / (first..first + 10).sum::<u64>() as f64;
        assert_eq!(rate_at(&times, 0.1), rate(6));
        assert_eq!(rate_at(&times, 0.5), rate(46));
        assert_eq!(rate_at(&times, 0.9), rate(86));
        assert_eq!(rate_at(&times, 1.0), rate(91));
        assert_eq!(rate_at(&[Duration::from_millis(500)], 0.9), 2.0);
    }
}
