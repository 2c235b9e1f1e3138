//! Networks and images that benches and examples share.

use image::{Rgb, RgbImage};
use lingbot_map::camera::NetworkSize;
use lingbot_map::network::config::NetworkConfig;

/// A network of a sixth of the official parameters' width and half its depth.
pub fn medium_network() -> NetworkConfig {
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

/// An image without structure, another for every seed.
pub fn noise(size: NetworkSize, seed: u32) -> RgbImage {
    let value =
        |x: u32, y: u32| (x.wrapping_mul(31) ^ y.wrapping_mul(17)).wrapping_add(13 * seed) as u8;
    RgbImage::from_fn(size.width, size.height, |x, y| {
        Rgb([value(x, y), value(y, x), value(x + y, y)])
    })
}

/// Largest resident memory of this process so far, GB.
pub fn peak_memory_gb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        line.strip_prefix("VmHWM:")?
            .trim()
            .strip_suffix(" kB")?
            .trim()
            .parse::<f64>()
            .ok()
    });
    kib.map_or(f64::NAN, |kib| kib * 1024.0 / 1e9)
}
