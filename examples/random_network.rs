//! Exports a network with random weights and streams noise through it: what a size costs, without its checkpoint.
//!
//! ```text
//! cargo run --release --example random_network -- export official FOLDER
//! cargo run --release --example random_network -- run FOLDER SCALE_FRAMES WINDOW FRAMES
//! ```
//!
//! The first command writes the model (official: 4.7 GB), the second prints seconds and memory, call by call.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use lingbot_map::camera::NetworkSize;
use lingbot_map::network::checkpoint::RandomWeights;
use lingbot_map::network::config::NetworkConfig;
use lingbot_map::network::export::{ExportOptions, export};
use lingbot_map::runtime::RuntimeOptions;
use lingbot_map::stream::{GctStream, StreamConfig};

/// The size at which a third of a billion multiplications cost what a robot's CPU can bear.
fn medium() -> NetworkConfig {
    NetworkConfig {
        embed_dim: 384,
        heads: 6,
        dino_depth: 12,
        dino_heads: 6,
        depth: 12,
        selected: [2, 5, 8, 11],
        cam_heads: 6,
        dpt_features: 64,
        dpt_out: [48, 96, 192, 384],
        ..NetworkConfig::official()
    }
}

fn main() -> anyhow::Result<()> {
    env_logger::init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["export", size, folder] => write(size, Path::new(folder)),
        ["run", folder, scale, window, frames] => run(
            Path::new(folder),
            scale.parse()?,
            window.parse()?,
            frames.parse()?,
        ),
        _ => bail!(
            "usage: random_network export official|medium FOLDER | run FOLDER SCALE_FRAMES WINDOW FRAMES"
        ),
    }
}

fn write(size: &str, folder: &Path) -> anyhow::Result<()> {
    let config = match size {
        "official" => NetworkConfig::official(),
        "medium" => medium(),
        _ => bail!("unknown size {size}: official or medium"),
    };
    let options = ExportOptions {
        size: NetworkSize::new(378, 518)?,
        camera_num_iterations: config.cam_iters,
    };
    let start = Instant::now();
    let manifest = export(
        &RandomWeights::new(&config, 1),
        &config,
        &options,
        folder,
        &mut |_| (),
    )?;
    let bytes: u64 = manifest.files.values().map(|file| file.bytes).sum();
    println!(
        "export: {:.1} s, {:.2} GB, peak memory {:.2} GB",
        start.elapsed().as_secs_f64(),
        bytes as f64 / 1e9,
        peak_memory()?
    );
    Ok(())
}

fn run(folder: &Path, num_scale_frames: usize, window: usize, frames: usize) -> anyhow::Result<()> {
    let config = StreamConfig {
        num_scale_frames,
        kv_cache_scale_frames: None,
        kv_cache_sliding_window: window,
        keyframe_interval: 1,
    };
    let start = Instant::now();
    let mut stream = GctStream::open(folder, &RuntimeOptions::default(), config)?;
    println!(
        "load: {:.1} s, peak memory {:.2} GB",
        start.elapsed().as_secs_f64(),
        peak_memory()?
    );
    let size = stream.manifest().size;
    for index in 0..frames {
        let noise = |x: u32, y: u32| {
            (x.wrapping_mul(31) ^ y.wrapping_mul(17)).wrapping_add(13 * index as u32) as u8
        };
        let image = image::RgbImage::from_fn(size.width, size.height, |x, y| {
            image::Rgb([noise(x, y), noise(y, x), noise(x + y, y)])
        });
        let start = Instant::now();
        let predictions = stream.push(&image)?;
        println!(
            "frame {index}: {} predictions, {:.2} s, {} tokens attended, peak memory {:.2} GB",
            predictions.len(),
            start.elapsed().as_secs_f64(),
            stream.token_cache().valid,
            peak_memory()?
        );
    }
    Ok(())
}

/// Largest resident memory of this process so far, GB.
fn peak_memory() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("no VmHWM in /proc/self/status")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024.0 / 1e9)
}
