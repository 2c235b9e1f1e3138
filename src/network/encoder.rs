//! The patch encoder: DINOv2 with registers, on the image's bytes.

use super::config::NetworkConfig;
use super::export::ExportError;
use super::grid::{PATCH_SIZE, PatchGrid};
use super::layers::{Block, BlockShape, Net};
use super::onnx::Value;
use super::position::resize_square;

const KEY: &str = "aggregator.patch_embed";

/// Mean and standard deviation of ImageNet's channels, for values in 0..1.
const IMAGE_MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const IMAGE_STD: [f64; 3] = [0.229, 0.224, 0.225];

/// Image bytes [frames, height, width, 3] to patch tokens [frames, patches, dim].
pub(super) fn encode(
    net: &mut Net,
    config: &NetworkConfig,
    grid: PatchGrid,
    image: &Value,
) -> Result<Value, ExportError> {
    let dim = config.embed_dim;
    let prefix_tokens = 1 + config.dino_register_tokens;
    let tokens = prefix_tokens + grid.patch_count();

    let patches = embed_patches(net, dim, grid, image)?;
    net.graph.label(&patches, "encoder.patches");
    let (prefix, position) = position_embedding(net, config, grid)?;
    let patches = net
        .graph
        .reshape(&patches, &[-1, grid.patch_count() as i64, dim as i64]);
    let patches = net.graph.add(&patches, &position);
    let prefix = repeat_for_frames(net, &prefix, image, &[prefix_tokens, dim]);
    let x = net.graph.concat(&[&prefix, &patches], 1);
    let mut x = net.graph.reshape(&x, &[-1, dim as i64]);

    let shape = BlockShape {
        dim,
        heads: config.dino_heads,
        hidden: config.mlp_ratio * dim,
        epsilon: config.dino_norm_eps,
        rotary: None,
    };
    for layer in 0..config.dino_depth {
        let block = Block::load(net, &format!("{KEY}.blocks.{layer}"), &shape)?;
        x = block.apply(net, &x, |net, qkv| {
            let [q, k, v] = [qkv.q, qkv.k, qkv.v]
                .map(|x| net.graph.reshape(&x, &[-1, tokens as i64, dim as i64]));
            net.graph
                .multi_head_attention(&q, &k, &v, config.dino_heads)
        });
        net.graph.label(&x, format!("encoder.block_{layer}"));
    }
    let x = net.graph.reshape(&x, &[-1, tokens as i64, dim as i64]);
    let x = net.graph.slice(&x, 1, prefix_tokens as i64, tokens as i64);
    let norm = net.load_layer_norm(&format!("{KEY}.norm"), dim, config.dino_norm_eps)?;
    let tokens = net.layer_norm(&x, &norm);
    net.graph.label(&tokens, "encoder.tokens");
    Ok(tokens)
}

/// The patch convolution as a matrix product over [row, column, channel] bytes of a patch, [frames · patches, dim].
/// Division by 255 and the ImageNet normalisation are linear, so weight and bias absorb them.
fn embed_patches(
    net: &mut Net,
    dim: usize,
    grid: PatchGrid,
    image: &Value,
) -> Result<Value, ExportError> {
    let area = PATCH_SIZE * PATCH_SIZE;
    let key = format!("{KEY}.patch_embed.proj");
    let kernel = net.read(&format!("{key}.weight"), &[dim, 3, PATCH_SIZE, PATCH_SIZE])?;
    let bias = net.read(&format!("{key}.bias"), &[dim])?;
    let mut weight = Vec::with_capacity(kernel.len());
    let mut folded_bias = Vec::with_capacity(dim);
    for (kernel, &bias) in kernel.chunks_exact(3 * area).zip(&bias) {
        for pixel in 0..area {
            weight
                .extend((0..3).map(|c| {
                    (f64::from(kernel[c * area + pixel]) / (255.0 * IMAGE_STD[c])) as f32
                }));
        }
        let at_mean: f64 = (0..3)
            .map(|c| {
                kernel[c * area..(c + 1) * area]
                    .iter()
                    .map(|&w| f64::from(w))
                    .sum::<f64>()
                    * IMAGE_MEAN[c]
                    / IMAGE_STD[c]
            })
            .sum();
        folded_bias.push((f64::from(bias) - at_mean) as f32);
    }
    let weight = net
        .graph
        .weight(&format!("{key}.weight"), &[dim, area * 3], &weight)?;
    let bias = net
        .graph
        .weight(&format!("{key}.bias"), &[dim], &folded_bias)?;

    let patch = PATCH_SIZE as i64;
    let x = net.graph.reshape(
        image,
        &[
            -1,
            grid.rows() as i64,
            patch,
            grid.columns() as i64,
            patch * 3,
        ],
    );
    let x = net.graph.transpose(&x, &[0, 1, 3, 2, 4]);
    let x = net.graph.reshape(&x, &[-1, (area * 3) as i64]);
    let x = net.graph.cast_to_f32(&x);
    Ok(net.graph.gemm(&x, &weight, &bias))
}

/// The class and register tokens [1, 1 + registers, dim], the class token with its position, and the position of the
/// patches [1, patches, dim]. Registers have no position.
fn position_embedding(
    net: &mut Net,
    config: &NetworkConfig,
    grid: PatchGrid,
) -> Result<(Value, Value), ExportError> {
    let dim = config.embed_dim;
    let edge = config.img_size / PATCH_SIZE;
    let table = net.read(&format!("{KEY}.pos_embed"), &[1, 1 + edge * edge, dim])?;
    let (class_position, patch_positions) = table.split_at(dim);
    let mut prefix = net.read(&format!("{KEY}.cls_token"), &[1, 1, dim])?;
    prefix
        .iter_mut()
        .zip(class_position)
        .for_each(|(token, position)| *token += position);
    prefix.extend(net.read(
        &format!("{KEY}.register_tokens"),
        &[1, config.dino_register_tokens, dim],
    )?);
    let prefix = net.graph.weight(
        "encoder.prefix",
        &[1, 1 + config.dino_register_tokens, dim],
        &prefix,
    )?;

    let position = interpolated_positions(patch_positions, edge, dim, grid);
    let position =
        net.graph
            .weight("encoder.position", &[1, grid.patch_count(), dim], &position)?;
    Ok((prefix, position))
}

/// The learned positions [edge, edge, dim] as they are for the grid they were learned on, resized for any other.
fn interpolated_positions(learned: &[f32], edge: usize, dim: usize, grid: PatchGrid) -> Vec<f32> {
    if grid.rows() == edge && grid.columns() == edge {
        learned.to_vec()
    } else {
        resize_square(learned, edge, dim, grid.rows(), grid.columns())
    }
}

/// `x` [1, …] repeated along the first axis as often as `like` has frames.
fn repeat_for_frames(net: &mut Net, x: &Value, like: &Value, rest: &[usize]) -> Value {
    let frames = net.graph.shape(like, 0, 1);
    let rest: Vec<i64> = rest.iter().map(|&n| n as i64).collect();
    let rest = net.graph.ints(&rest);
    let shape = net.graph.concat(&[&frames, &rest], 0);
    net.graph.expand(x, &shape)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use ndarray::Array3;
    use ndarray_npy::NpzReader;

    use super::*;
    use crate::camera::{NetworkSize, PATCH};
    use crate::network::checkpoint::{Checkpoint, TensorSource};

    /// Grids of every shape against the reference implementation's interpolation, the native one included.
    #[test]
    fn positions_are_those_of_the_reference() {
        const EDGE: usize = 4;
        const DIM: usize = 32;
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let checkpoint = Checkpoint::open(&golden.join("weights.safetensors")).unwrap();
        let learned = checkpoint
            .read_f32("aggregator.patch_embed.pos_embed")
            .unwrap();
        let mut reference =
            NpzReader::new(File::open(golden.join("pos_embed_interp.npz")).unwrap()).unwrap();
        for (rows, columns) in [(4, 6), (7, 5), (2, 3), (4, 4), (3, 9), (27, 37)] {
            let expected: Array3<f32> = reference.by_name(&format!("{rows}x{columns}")).unwrap();
            let grid = PatchGrid::from(NetworkSize::new(rows * PATCH, columns * PATCH).unwrap());
            let found = interpolated_positions(&learned[DIM..], EDGE, DIM, grid);
            assert_eq!(found.len(), (expected.len() - DIM));
            let worst = found
                .iter()
                .zip(expected.iter().skip(DIM))
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            println!("{rows}x{columns}: {worst:e}");
            assert!(
                worst <= 1e-6,
                "{rows}x{columns}: positions differ by {worst:e}"
            );
        }
    }
}
