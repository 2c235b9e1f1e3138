//! Exports a network with random weights and streams noise through it: what a size costs, without its checkpoint.
//!
//! ```text
//! cargo run --release --example random_network -- export official FOLDER
//! cargo run --release --example random_network -- run FOLDER SCALE_FRAMES WINDOW FRAMES
//! ```
//!
//! The first command writes the model (official: 4.7 GB), the second prints seconds and memory, call by call.

#[path = "../benches/support/mod.rs"]
mod support;

use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use lingbot_map::camera::NetworkSize;
use lingbot_map::network::checkpoint::RandomWeights;
use lingbot_map::network::config::NetworkConfig;
use lingbot_map::network::export::{ExportOptions, export};
use lingbot_map::runtime::RuntimeOptions;
use lingbot_map::stream::{GctStream, StreamConfig};
use support::{medium_network, noise, peak_memory_gb};

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
        "medium" => medium_network(),
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
    let bytes = manifest.bytes();
    println!(
        "export: {:.1} s, {:.2} GB, peak memory {:.2} GB",
        start.elapsed().as_secs_f64(),
        bytes as f64 / 1e9,
        peak_memory_gb()
    );
    Ok(())
}

fn run(folder: &Path, num_scale_frames: usize, window: usize, frames: u32) -> anyhow::Result<()> {
    let config = StreamConfig {
        num_scale_frames,
        kv_cache_sliding_window: window,
        ..StreamConfig::default()
    };
    let start = Instant::now();
    let mut stream = GctStream::open(folder, &RuntimeOptions::default(), config)?;
    println!(
        "load: {:.1} s, peak memory {:.2} GB",
        start.elapsed().as_secs_f64(),
        peak_memory_gb()
    );
    let size = stream.manifest().size;
    for index in 0..frames {
        let image = noise(size, index);
        let start = Instant::now();
        let predictions = stream.push(&image)?;
        println!(
            "frame {index}: {} predictions, {:.2} s, {} tokens attended, peak memory {:.2} GB",
            predictions.len(),
            start.elapsed().as_secs_f64(),
            stream.token_cache().valid,
            peak_memory_gb()
        );
    }
    Ok(())
}
