//! Networks, images and counts that benches share.

use image::{Rgb, RgbImage};
use lingbot_map::camera::NetworkSize;
use lingbot_map::network::config::NetworkConfig;
use lingbot_map::network::grid::PatchGrid;

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

/// Floating-point operations of matrix products and convolutions in one step and its depth head; a multiplication and
/// an addition count as two. Everything else (norms, activations, softmax) is left out.
pub fn step_operations(
    network: &NetworkConfig,
    size: NetworkSize,
    attended: usize,
    cached_frames: usize,
) -> u64 {
    let grid = PatchGrid::from(size);
    let (c, p, patches) = (network.embed_dim, grid.tokens(), grid.patch_count());
    // qkv, projection and two MLP layers; scores and weighted values.
    let block = |tokens: usize, keys: usize, c: usize| {
        2 * tokens * c * c * (4 + 2 * network.mlp_ratio) + 4 * tokens * keys * c
    };
    let encoder_tokens = patches + 1 + network.dino_register_tokens;
    let encoder =
        2 * patches * 588 * c + network.dino_depth * block(encoder_tokens, encoder_tokens, c);
    let aggregator = network.depth * (block(p, p, c) + block(p, attended, c));
    let camera = network.cam_iters
        * (network.cam_depth * block(1, cached_frames, 2 * c)
            + 2 * 3 * (2 * c) * (2 * c)
            + 2 * c * 2 * c);
    (encoder + aggregator + camera + depth_head_operations(network, grid)) as u64
}

fn depth_head_operations(network: &NetworkConfig, grid: PatchGrid) -> usize {
    let (rows, columns, f) = (grid.rows(), grid.columns(), network.dpt_features);
    let patches = rows * columns;
    let [o0, o1, o2, o3] = network.dpt_out;
    let extents = [
        16 * patches,
        4 * patches,
        patches,
        rows.div_ceil(2) * columns.div_ceil(2),
    ];
    let projections = 2 * patches * 2 * network.embed_dim * (o0 + o1 + o2 + o3);
    let resizes =
        2 * extents[0] * o0 * o0 + 2 * extents[1] * o1 * o1 + 2 * extents[3] * o3 * o3 * 9;
    let to_features: usize = extents
        .iter()
        .zip(network.dpt_out)
        .map(|(extent, o)| 2 * extent * o * f * 9)
        .sum();
    // Two residual units of two convolutions at each extent but the coarsest, which has one unit; a 1x1 mix.
    let fusion: usize = extents
        .iter()
        .zip([4, 4, 4, 2])
        .map(|(extent, convs)| 2 * extent * f * f * (9 * convs + 1))
        .sum();
    let output = 2 * 64 * patches * f * (f / 2) * 9
        + 2 * grid.height() * grid.width() * (f / 2 * 32 * 9 + 32 * 2);
    projections + resizes + to_features + fusion + output
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
