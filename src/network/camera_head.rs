//! The camera head: refines the pose of each frame over several iterations, with caches over frames.

use super::config::NetworkConfig;
use super::export::ExportError;
use super::inputs::StepInputs;
use super::layers::{Block, BlockShape, Net};
use super::onnx::Value;

const KEY: &str = "camera_head";

/// Size of a pose encoding: translation, quaternion, two fields of view.
const POSE: usize = 9;

/// The last level [frames, tokens, 2 dim] to pose encodings [frames, 9].
pub(super) fn decode_pose(
    net: &mut Net,
    config: &NetworkConfig,
    iterations: usize,
    inputs: &StepInputs,
    level: &Value,
) -> Result<Value, ExportError> {
    let dim = 2 * config.embed_dim;
    let token_norm =
        net.load_layer_norm(&format!("{KEY}.token_norm"), dim, config.camera_norm_eps)?;
    let adaptive_norm = net.plain_layer_norm("camera_head.adaptive_norm", dim, config.adaln_eps)?;
    let embed_pose = net.load_linear(&format!("{KEY}.embed_pose"), dim, POSE)?;
    let modulation = net.load_linear(&format!("{KEY}.poseLN_modulation.1"), 3 * dim, dim)?;
    let shape = BlockShape {
        dim,
        heads: config.cam_heads,
        hidden: config.mlp_ratio * dim,
        epsilon: config.camera_norm_eps,
        rotary: None,
    };
    let mut trunk = Vec::with_capacity(config.cam_depth);
    for block in 0..config.cam_depth {
        trunk.push(Block::load(net, &format!("{KEY}.trunk.{block}"), &shape)?);
    }
    let trunk_norm =
        net.load_layer_norm(&format!("{KEY}.trunk_norm"), dim, config.camera_norm_eps)?;
    let fc1 = net.load_linear(&format!("{KEY}.pose_branch.fc1"), dim / 2, dim)?;
    let fc2 = net.load_linear(&format!("{KEY}.pose_branch.fc2"), POSE, dim / 2)?;
    let empty_pose = net.load(&format!("{KEY}.empty_pose_tokens"), &[1, 1, POSE])?;

    let camera_token = net.graph.scalar_int(0);
    let x = net.graph.gather(level, &camera_token, 1);
    let x = net.layer_norm(&x, &token_norm);
    net.graph.label(&x, "camera_head.token_norm");
    let normalised = net.layer_norm(&x, &adaptive_norm);

    let mut pose: Option<Value> = None;
    for iteration in 0..iterations {
        let previous = match &pose {
            Some(pose) => pose.clone(),
            None => net.graph.reshape(&empty_pose, &[1, POSE as i64]),
        };
        let embedded = net.linear(&previous, &embed_pose);
        let embedded = net.graph.silu(&embedded);
        let modulation = net.linear(&embedded, &modulation);
        let mut part = |i: usize| {
            net.graph
                .slice(&modulation, 1, (i * dim) as i64, ((i + 1) * dim) as i64)
        };
        let (shift, scale, gate) = (part(0), part(1), part(2));

        // gate · (a · (1 + scale) + shift) + x
        let scaled = net.graph.mul(&normalised, &scale);
        let scaled = net.graph.add(&normalised, &scaled);
        let shifted = net.graph.add(&scaled, &shift);
        let gated = net.graph.mul(&shifted, &gate);
        let mut y = net.graph.add(&gated, &x);

        for (j, block) in trunk.iter().enumerate() {
            y = block.apply(net, &y, |net, qkv| {
                let [q, k, v] =
                    [qkv.q, qkv.k, qkv.v].map(|x| net.graph.reshape(&x, &[1, -1, dim as i64]));
                let (k, v) = inputs.camera_cache(iteration, j).store(
                    net,
                    &k,
                    &v,
                    &inputs.camera_write_index,
                );
                net.graph.multi_head_attention(&q, &k, &v, config.cam_heads)
            });
            net.graph
                .label(&y, format!("camera_head.trunk_{iteration}_{j}"));
        }
        let y = net.layer_norm(&y, &trunk_norm);
        let y = net.linear(&y, &fc1);
        let y = net.graph.gelu(&y);
        let delta = net.linear(&y, &fc2);
        net.graph
            .label(&delta, format!("camera_head.delta_{iteration}"));
        pose = Some(match pose {
            Some(pose) => net.graph.add(&pose, &delta),
            None => delta,
        });
    }
    let pose = pose.ok_or_else(|| {
        ExportError::Config("the camera head needs at least one iteration".into())
    })?;
    // Only the field of view is activated, and only at the end: iterations see the raw values.
    let placement = net.graph.slice(&pose, 1, 0, 7);
    let field_of_view = net.graph.slice(&pose, 1, 7, POSE as i64);
    let field_of_view = net.graph.relu(&field_of_view);
    Ok(net.graph.concat(&[&placement, &field_of_view], 1))
}
