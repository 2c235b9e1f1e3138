//! A network of any size without a checkpoint, and images without a camera: enough to measure time and memory.

use anyhow::Context;
use image::{Rgb, RgbImage};

use super::progress::ExportBar;
use crate::camera::NetworkSize;
use crate::network::checkpoint::RandomWeights;
use crate::network::config::NetworkConfig;
use crate::network::export::{ExportOptions, export};

/// A model that lives as long as the result.
pub fn export_random(
    network: &NetworkConfig,
    size: NetworkSize,
    iterations: Option<usize>,
) -> anyhow::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir().context("cannot make a folder for the model")?;
    let options = ExportOptions {
        size,
        camera_num_iterations: iterations.unwrap_or(network.cam_iters),
    };
    let mut bar = ExportBar::default();
    let source = RandomWeights::new(network, 1);
    let exported = export(&source, network, &options, folder.path(), &mut |progress| {
        bar.update(progress)
    });
    bar.finish();
    exported?;
    Ok(folder)
}

/// An image without structure, another for every seed.
pub fn noise(size: NetworkSize, seed: usize) -> RgbImage {
    let value = |x: u32, y: u32| {
        (x.wrapping_mul(37) ^ y.wrapping_mul(19)).wrapping_add(seed as u32 * 11) as u8
    };
    RgbImage::from_fn(size.width, size.height, |x, y| {
        Rgb([value(x, y), value(y, x), value(x + y, x)])
    })
}
