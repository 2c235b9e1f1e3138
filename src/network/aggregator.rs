//! The aggregator: alternating attention within each frame and over all frames that the cache keeps.

use super::config::NetworkConfig;
use super::encoder;
use super::export::ExportError;
use super::grid::{PatchGrid, SPECIAL_TOKENS};
use super::inputs::StepInputs;
use super::layers::{Block, BlockShape, Net};
use super::onnx::Value;
use super::rope;

/// The levels that the heads read, each [frames, tokens, 2 dim]: frame and global features side by side.
pub(super) struct Levels {
    /// The four levels of the dense heads.
    pub selected: Vec<Value>,
    /// The level of the last block, which the camera head reads.
    pub last: Value,
}

pub(super) fn aggregate(
    net: &mut Net,
    config: &NetworkConfig,
    grid: PatchGrid,
    inputs: &StepInputs,
) -> Result<Levels, ExportError> {
    let (dim, heads) = (config.embed_dim, config.heads);
    let patches = encoder::encode(net, config, grid, &inputs.image)?;
    let special = special_tokens(net, config, inputs)?;
    let x = net.graph.concat(&[&special, &patches], 1);
    let mut x = net.graph.reshape(&x, &[-1, dim as i64]);

    let (frame_order, global_order) = (
        rope::frame_order(config.head_dim),
        rope::global_order(config.head_dim),
    );
    let shape = |rotary| BlockShape {
        dim,
        heads,
        hidden: config.mlp_ratio * dim,
        epsilon: config.agg_norm_eps,
        rotary,
    };
    let per_frame = [-1, grid.tokens() as i64, dim as i64];
    let all_frames = [1, -1, dim as i64];
    let mut selected = Vec::new();
    let mut last = None;
    for layer in 0..config.depth {
        let frame_block = Block::load(
            net,
            &format!("aggregator.frame_blocks.{layer}"),
            &shape(Some(&frame_order)),
        )?;
        let frame_features = frame_block.apply(net, &x, |net, qkv| {
            let [q, k, v] = [qkv.q, qkv.k, qkv.v].map(|x| net.graph.reshape(&x, &per_frame));
            let [q, k] = [q, k].map(|x| {
                net.graph
                    .rotary_embedding(&x, &inputs.frame_cos, &inputs.frame_sin, heads)
            });
            net.graph.multi_head_attention(&q, &k, &v, heads)
        });
        net.graph
            .label(&frame_features, format!("aggregator.frame_block_{layer}"));
        let global_block = Block::load(
            net,
            &format!("aggregator.global_blocks.{layer}"),
            &shape(Some(&global_order)),
        )?;
        let global_features = global_block.apply(net, &frame_features, |net, qkv| {
            let [q, k, v] = [qkv.q, qkv.k, qkv.v].map(|x| net.graph.reshape(&x, &all_frames));
            let [q, k] = [q, k].map(|x| {
                net.graph
                    .rotary_embedding(&x, &inputs.global_cos, &inputs.global_sin, heads)
            });
            let (k, v) = inputs
                .global_cache(layer)
                .store(net, &k, &v, &inputs.write_index);
            net.graph.multi_head_attention(&q, &k, &v, heads)
        });
        net.graph
            .label(&global_features, format!("aggregator.global_block_{layer}"));
        let is_last = layer + 1 == config.depth;
        if is_last || config.selected.contains(&layer) {
            let [frame, global] =
                [&frame_features, &global_features].map(|x| net.graph.reshape(x, &per_frame));
            let level = net.graph.concat(&[&frame, &global], 2);
            if config.selected.contains(&layer) {
                selected.push(level.clone());
            }
            last = Some(level);
        }
        x = global_features;
    }
    let last = last.ok_or_else(|| ExportError::Config("the aggregator has no blocks".into()))?;
    Ok(Levels { selected, last })
}

/// Camera, register and scale tokens [frames, 6, dim]. Each comes in two variants: one for the first frame (camera and
/// registers) or the scale frames (scale), one for all others; the caller says which.
fn special_tokens(
    net: &mut Net,
    config: &NetworkConfig,
    inputs: &StepInputs,
) -> Result<Value, ExportError> {
    let (dim, registers) = (config.embed_dim, config.num_register_tokens);
    if 2 + registers != SPECIAL_TOKENS {
        return Err(ExportError::Config(format!(
            "num_register_tokens is {registers}, this exporter knows {}",
            SPECIAL_TOKENS - 2
        )));
    }
    let camera = net.load("aggregator.camera_token", &[1, 2, 1, dim])?;
    let register = net.load("aggregator.register_token", &[1, 2, registers, dim])?;
    let scale = net.load("aggregator.scale_token", &[1, 2, 1, dim])?;
    let mut pick = |table: &Value, count: usize, variant: &Value| {
        let variants = net.graph.reshape(table, &[2, count as i64, dim as i64]);
        net.graph.gather(&variants, variant, 0)
    };
    let camera = pick(&camera, 1, &inputs.first_variant);
    let register = pick(&register, registers, &inputs.first_variant);
    let scale = pick(&scale, 1, &inputs.scale_variant);
    Ok(net.graph.concat(&[&camera, &register, &scale], 1))
}
