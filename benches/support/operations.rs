//! How much arithmetic a step is.

use lingbot_map::camera::NetworkSize;
use lingbot_map::network::config::NetworkConfig;
use lingbot_map::network::grid::PatchGrid;

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
