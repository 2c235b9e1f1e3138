//! `lingbot_map memory-benchmark`: what a stream of any size takes, measured with random weights.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use image::RgbImage;

use super::plan::PrecisionArgument;
use super::random_model::{export_random, noise};
use super::stream_arguments::StreamArguments;
use crate::camera::{NetworkSize, PATCH};
use crate::map::{write_atomically, write_png};
use crate::network::config::NetworkConfig;
use crate::plot::{BLUE, Chart, ORANGE, Series, Style, draw};
use crate::process;
use crate::runtime::{Provider, RuntimeOptions};
use crate::stream::{OnCollapse, StreamConfig, StreamError, WindowedStream};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Network sizes (JSON) [default: the official network]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Rows of the network's input, pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 384)]
    height: u32,
    /// Columns of the network's input, pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 518)]
    width: u32,
    /// Edge of a patch, pixels
    #[arg(long, value_name = "PIXELS", default_value_t = PATCH, value_parser = clap::value_parser!(u32).range(PATCH as i64..=PATCH as i64))]
    patch_size: u32,
    /// What is done with a size that is not a multiple of the patch size
    #[arg(long, value_enum, default_value_t)]
    adjust_to_patch: Adjust,
    /// Measure after so many frames
    #[arg(long, value_name = "N", num_args = 1.., default_values_t = [64, 128, 256, 512, 1024])]
    frame_counts: Vec<usize>,
    #[command(flatten)]
    stream: StreamArguments,
    /// Refinement iterations of the camera head [default: the network's own]
    #[arg(long, value_name = "N")]
    camera_num_iterations: Option<usize>,
    /// Where predictions are kept; they leave an accelerator at once
    #[arg(long, value_enum, default_value_t)]
    output_device: OutputDevice,
    /// Where the network runs: auto, cpu, cuda or tensorrt
    #[arg(long, default_value_t)]
    provider: Provider,
    /// Element type of weights, caches and activations
    #[arg(long, value_enum, default_value_t)]
    precision: PrecisionArgument,
    /// Make all images before the first is used, and keep them
    #[arg(long)]
    materialize_inputs: bool,
    /// Frames that run first and do not count
    #[arg(long, value_name = "N", default_value_t = 0)]
    warmup_frames: usize,
    /// End at the first count for which there is no memory; else the others are marked too
    #[arg(long)]
    stop_on_oom: bool,
    /// CSV file to write; a plot of memory over frames is put beside it
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Adjust {
    #[default]
    Floor,
    Ceil,
    Error,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum OutputDevice {
    #[default]
    Cpu,
}

const COLUMNS: &str = "frames,status,requested_height,requested_width,effective_height,effective_width,provider,precision,seconds,peak_allocated_gib,peak_reserved_gib,cache_gib,error";

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (PrecisionArgument::Fp32, OutputDevice::Cpu) =
        (arguments.precision, arguments.output_device);
    let mut counts = arguments.frame_counts.clone();
    counts.sort_unstable();
    counts.dedup();
    ensure!(counts.first() != Some(&0), "a frame count is at least 1");
    let size = arguments.size()?;
    let network = match &arguments.config {
        Some(file) => NetworkConfig::from_file(file)?,
        None => NetworkConfig::official(),
    };
    let last = counts.last().copied().context("no frame counts")?;
    let mut stream = StreamConfig::of_model(&network);
    arguments.stream.apply(&mut stream, last);
    let windows = arguments.stream.windows(last)?;
    let model = export_random(&network, size, arguments.camera_num_iterations)?;
    let options = RuntimeOptions {
        provider: arguments.provider,
        ..RuntimeOptions::default()
    };
    let stream = WindowedStream::open(model.path(), &options, stream, windows, OnCollapse::GoOn)?;
    Benchmark {
        arguments,
        size,
        images: match arguments.materialize_inputs {
            true => (0..last).map(|index| noise(size, index)).collect(),
            false => Vec::new(),
        },
        stream,
        rows: Vec::new(),
    }
    .measure(&counts)
}

impl Arguments {
    fn size(&self) -> anyhow::Result<NetworkSize> {
        let adjusted = |pixels: u32| match self.adjust_to_patch {
            Adjust::Floor => pixels / self.patch_size * self.patch_size,
            Adjust::Ceil => pixels.next_multiple_of(self.patch_size),
            Adjust::Error => pixels,
        };
        Ok(NetworkSize::new(
            adjusted(self.height),
            adjusted(self.width),
        )?)
    }
}

struct Row {
    frames: usize,
    /// ok, oom or error
    status: &'static str,
    /// Absent where it is not ok.
    measured: Option<Measured>,
    error: String,
}

#[derive(Clone, Copy)]
struct Measured {
    seconds: f64,
    /// The most memory that was resident, and that was mapped.
    allocated: f64,
    reserved: f64,
    cache: f64,
}

struct Benchmark<'a> {
    arguments: &'a Arguments,
    size: NetworkSize,
    images: Vec<RgbImage>,
    stream: WindowedStream,
    rows: Vec<Row>,
}

impl Benchmark<'_> {
    fn measure(mut self, counts: &[usize]) -> anyhow::Result<()> {
        for index in 0..self.arguments.warmup_frames {
            self.stream.push(&noise(self.size, index))?;
        }
        self.stream.reset();
        let (mut pushed, mut failure) = (0, None);
        let start = Instant::now();
        for &count in counts {
            while failure.is_none() && pushed < count {
                failure = self.push(pushed).err();
                pushed += 1;
            }
            let row = match &failure {
                None => Row {
                    frames: count,
                    status: "ok",
                    measured: Some(self.measured(start)),
                    error: String::new(),
                },
                Some(error) => Row {
                    frames: count,
                    status: if is_out_of_memory(error) {
                        "oom"
                    } else {
                        "error"
                    },
                    measured: None,
                    error: error.to_string(),
                },
            };
            self.rows.push(row);
            self.save()?;
            match &failure {
                Some(error) if !is_out_of_memory(error) => break,
                Some(_) if self.arguments.stop_on_oom => break,
                _ => {}
            }
        }
        // Drawing takes memory of its own, so it waits for the last measurement.
        self.draw()?;
        match failure {
            Some(error) if !is_out_of_memory(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn push(&mut self, index: usize) -> Result<(), StreamError> {
        match self.images.get(index) {
            Some(image) => self.stream.push(image).map(drop),
            None => self.stream.push(&noise(self.size, index)).map(drop),
        }
    }

    fn measured(&self, start: Instant) -> Measured {
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        let cache = self.stream.token_cache().bytes + self.stream.camera_cache().bytes;
        Measured {
            seconds: start.elapsed().as_secs_f64(),
            allocated: process::memory("VmHWM").map_or(f64::NAN, gib),
            reserved: process::memory("VmPeak").map_or(f64::NAN, gib),
            cache: gib(cache as u64),
        }
    }

    /// The file is whole after every row.
    fn save(&self) -> anyhow::Result<()> {
        let text = self.csv()?;
        write_atomically(&self.arguments.output, |file| {
            file.write_all(text.as_bytes())
        })?;
        Ok(())
    }

    fn draw(&self) -> anyhow::Result<()> {
        if let Some(chart) = self.chart() {
            let picture = draw(&[chart], 800)?;
            let path = self.arguments.output.with_extension("png");
            write_png(&path, &picture)?;
        }
        Ok(())
    }

    fn csv(&self) -> Result<String, std::fmt::Error> {
        let Arguments { height, width, .. } = self.arguments;
        let mut text = format!("{COLUMNS}\n");
        for row in &self.rows {
            write!(
                text,
                "{},{},{height},{width},{},{},{},fp32",
                row.frames,
                row.status,
                self.size.height,
                self.size.width,
                self.stream.provider()
            )?;
            match row.measured {
                Some(m) => write!(
                    text,
                    ",{:.3},{:.4},{:.4},{:.4}",
                    m.seconds, m.allocated, m.reserved, m.cache
                )?,
                None => text.push_str(",,,,"),
            }
            writeln!(text, ",\"{}\"", row.error.replace('"', "'"))?;
        }
        Ok(text)
    }

    fn chart(&self) -> Option<Chart> {
        let measured: Vec<(f64, Measured)> = self
            .rows
            .iter()
            .filter_map(|row| Some((row.frames as f64, row.measured?)))
            .collect();
        if measured.is_empty() {
            return None;
        }
        let series = |label: &str, colour, value: fn(&Measured) -> f64| Series {
            label: Some(label.to_owned()),
            colour,
            style: Style::Line(2),
            points: measured
                .iter()
                .map(|(frames, m)| [*frames, value(m)])
                .collect(),
        };
        Some(Chart {
            title: format!("Memory at {}x{}", self.size.height, self.size.width),
            x_label: "frames".into(),
            y_label: "GiB".into(),
            series: vec![
                series("resident", BLUE, |m| m.allocated),
                series("caches", ORANGE, |m| m.cache),
            ],
            equal_axes: false,
            height: 500,
        })
    }
}

fn is_out_of_memory(error: &StreamError) -> bool {
    matches!(error, StreamError::Memory(_))
}
