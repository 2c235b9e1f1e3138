//! `lingbot_map plan`: where every byte of a stream goes, without running it.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::arguments::ExportArguments;
use super::stream_arguments::StreamArguments;
use crate::camera::NetworkSize;
use crate::model::input_size;
use crate::network::config::NetworkConfig;
use crate::network::export::{ExportOptions, weight_bytes};
use crate::network::manifest::Manifest;
use crate::stream::{MemoryPlan, MemoryRequest, StreamConfig};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Folder of an exported model [default: the official network]
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["config", "height", "width", "camera_num_iterations"])]
    model: Option<PathBuf>,
    #[command(flatten)]
    network: ExportArguments,
    #[command(flatten)]
    stream: StreamArguments,
    /// Plan for the memory after so many frames
    #[arg(long, value_name = "N", default_value_t = 1000)]
    frames: usize,
    /// Element type of weights, caches and activations
    #[arg(long, value_enum, default_value_t)]
    precision: PrecisionArgument,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub enum PrecisionArgument {
    #[default]
    Fp32,
}

/// What is planned for.
struct Subject {
    network: NetworkConfig,
    size: NetworkSize,
    camera_num_iterations: usize,
    weights: u64,
}

impl Subject {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        if let Some(folder) = &arguments.model {
            let manifest = Manifest::read(folder)?;
            return Ok(Self {
                weights: manifest.bytes(),
                network: manifest.network,
                size: manifest.size,
                camera_num_iterations: manifest.camera_num_iterations,
            });
        }
        let asked = &arguments.network;
        let network = match &asked.config {
            Some(file) => NetworkConfig::from_file(file)?,
            None => NetworkConfig::official(),
        };
        let options = ExportOptions {
            size: input_size(&network, asked.size.get(), None)?,
            camera_num_iterations: asked.camera_num_iterations.unwrap_or(network.cam_iters),
        };
        Ok(Self {
            weights: weight_bytes(&network, &options)?,
            size: options.size,
            camera_num_iterations: options.camera_num_iterations,
            network,
        })
    }

    fn request<'a>(
        &'a self,
        stream: &'a StreamConfig,
        window_size: Option<usize>,
    ) -> MemoryRequest<'a> {
        MemoryRequest {
            network: &self.network,
            size: self.size,
            camera_num_iterations: self.camera_num_iterations,
            weights: self.weights,
            stream,
            window_size,
        }
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    ensure!(arguments.frames > 0, "a plan needs at least one frame");
    let PrecisionArgument::Fp32 = arguments.precision;
    let subject = Subject::new(arguments)?;
    let mut stream = StreamConfig::of_model(&subject.network);
    arguments.stream.apply(&mut stream, arguments.frames);
    let windows = arguments.stream.windows(arguments.frames)?;
    let window_size = windows.map(|windows| windows.window_size);
    if let Some(budget) = stream.memory_budget {
        let bytes = budget
            .bytes()
            .context("the system does not say how much memory it has")?;
        stream = subject
            .request(&stream, window_size)
            .within(bytes, stream.memory_fit)?;
    }
    let plan = subject.request(&stream, window_size).plan(arguments.frames);
    let mut out = std::io::stdout();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &as_json(&plan, &stream))?;
        return Ok(writeln!(out)?);
    }
    write!(
        out,
        "{}",
        table(&plan, &stream, subject.size, arguments.frames)
    )?;
    Ok(())
}

fn as_json(plan: &MemoryPlan, stream: &StreamConfig) -> serde_json::Value {
    let items: Vec<_> = plan
        .items
        .iter()
        .map(|item| {
            json!({
                "name": item.name,
                "reserved_bytes": item.reserved,
                "used_bytes": item.used,
                "exact": item.exact,
            })
        })
        .collect();
    json!({
        "items": items,
        "reserved_bytes": plan.reserved(),
        "used_bytes": plan.used(),
        "stored_frames": plan.stored,
        "attended_tokens": plan.attended_tokens,
        "num_scale_frames": stream.num_scale_frames,
        "kv_cache_sliding_window": stream.kv_cache_sliding_window,
        "keyframe_interval": stream.keyframe_interval.to_string(),
        "history_frames": stream.history_frames,
    })
}

fn table(plan: &MemoryPlan, stream: &StreamConfig, size: NetworkSize, frames: usize) -> String {
    let mut text = format!(
        "{frames} frames of {}x{} (height x width), {} stored, window {}, keyframe interval {}",
        size.height,
        size.width,
        plan.stored,
        stream.kv_cache_sliding_window,
        stream.keyframe_interval
    );
    if let Some(history) = stream.history_frames {
        text += &format!(", history {history}");
    }
    text += &format!("\n\n{:28}{:>13}{:>13}\n", "MiB", "reserved", "used");
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut row = |name: &str, reserved: u64, used: u64| {
        text += &format!("{name:28}{:>13.1}{:>13.1}\n", mib(reserved), mib(used));
    };
    for item in &plan.items {
        let mark = if item.exact { "" } else { " (about)" };
        row(&format!("{}{mark}", item.name), item.reserved, item.used);
    }
    row("total", plan.reserved(), plan.used());
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        plan: Arguments,
    }

    fn subject(text: &str) -> anyhow::Result<Subject> {
        let line = std::iter::once("plan").chain(text.split_whitespace());
        Subject::new(&Line::try_parse_from(line)?.plan)
    }

    #[test]
    fn a_plan_needs_a_size_and_the_official_network_has_none() {
        assert!(subject("--config tests/golden/config.json").is_err());
        let tiny = subject("--config tests/golden/config.json --height 42 --width 84").unwrap();
        assert_eq!((tiny.size.height, tiny.camera_num_iterations), (42, 4));
        assert!(subject("--model tests --height 42 --width 84").is_err());
    }

    #[test]
    fn the_table_adds_up() {
        let tiny = subject("--config tests/golden/config.json --height 42 --width 84").unwrap();
        let stream = StreamConfig::of_model(&tiny.network);
        let plan = tiny.request(&stream, None).plan(500);
        let text = table(&plan, &stream, tiny.size, 500);
        assert_eq!(text.lines().count(), 4 + plan.items.len());
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        let total: f64 = last[1].parse().unwrap();
        assert!((total * f64::from(1 << 20) / plan.reserved() as f64 - 1.0).abs() < 1e-2);
    }
}
