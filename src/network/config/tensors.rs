//! Names and shapes of the state tensors.

use super::NetworkConfig;

/// The encoder's token for masked patches is trained but not used by inference.
pub(crate) const MASK_TOKEN: &str = "aggregator.patch_embed.mask_token";

/// Channels between the last two convolutions of a dense head.
const HEAD_CHANNELS: usize = 32;
/// Length of a pose encoding: translation, quaternion, two fields of view.
const POSE_DIM: usize = 9;

impl NetworkConfig {
    /// Names and shapes of all tensors the network reads, as the reference implementation stores
    /// them. The unused `mask_token` is left out.
    pub fn expected_tensors(&self) -> Vec<(String, Vec<usize>)> {
        let mut list = TensorList::default();
        self.encoder_tensors(&mut list);
        self.aggregator_tensors(&mut list);
        self.camera_head_tensors(&mut list);
        self.dense_head_tensors(&mut list, "depth_head", 2);
        if self.enable_point {
            self.dense_head_tensors(&mut list, "point_head", 4);
        }
        list.0
    }

    fn encoder_tensors(&self, list: &mut TensorList) {
        let (c, patch) = (self.embed_dim, self.patch_size);
        let grid = self.img_size / patch;
        let prefix = "aggregator.patch_embed";
        list.add(format!("{prefix}.cls_token"), [1, 1, c]);
        list.add(format!("{prefix}.pos_embed"), [1, 1 + grid * grid, c]);
        list.add(
            format!("{prefix}.register_tokens"),
            [1, self.dino_register_tokens, c],
        );
        list.affine(&format!("{prefix}.patch_embed.proj"), [c, 3, patch, patch]);
        for i in 0..self.dino_depth {
            list.block(&format!("{prefix}.blocks.{i}"), c, self.mlp_ratio, None);
        }
        list.norm(&format!("{prefix}.norm"), c);
    }

    fn aggregator_tensors(&self, list: &mut TensorList) {
        let c = self.embed_dim;
        list.add("aggregator.camera_token", [1, 2, 1, c]);
        list.add(
            "aggregator.register_token",
            [1, 2, self.num_register_tokens, c],
        );
        list.add("aggregator.scale_token", [1, 2, 1, c]);
        for kind in ["frame_blocks", "global_blocks"] {
            for i in 0..self.depth {
                let prefix = format!("aggregator.{kind}.{i}");
                list.block(&prefix, c, self.mlp_ratio, Some(self.head_dim));
            }
        }
    }

    fn camera_head_tensors(&self, list: &mut TensorList) {
        let (c, wide) = (self.embed_dim, 2 * self.embed_dim);
        list.add("camera_head.empty_pose_tokens", [1, 1, POSE_DIM]);
        for j in 0..self.cam_depth {
            list.block(
                &format!("camera_head.trunk.{j}"),
                wide,
                self.mlp_ratio,
                None,
            );
        }
        list.norm("camera_head.token_norm", wide);
        list.norm("camera_head.trunk_norm", wide);
        list.affine("camera_head.embed_pose", [wide, POSE_DIM]);
        list.affine("camera_head.poseLN_modulation.1", [3 * wide, wide]);
        list.affine("camera_head.pose_branch.fc1", [c, wide]);
        list.affine("camera_head.pose_branch.fc2", [POSE_DIM, c]);
    }

    fn dense_head_tensors(&self, list: &mut TensorList, head: &str, output_channels: usize) {
        let (wide, features, out) = (2 * self.embed_dim, self.dpt_features, self.dpt_out);
        list.norm(&format!("{head}.norm"), wide);
        for (k, channels) in out.into_iter().enumerate() {
            list.affine(&format!("{head}.projects.{k}"), [channels, wide, 1, 1]);
        }
        for (k, channels, kernel) in [(0, out[0], 4), (1, out[1], 2), (3, out[3], 3)] {
            let name = format!("{head}.resize_layers.{k}");
            list.affine(&name, [channels, channels, kernel, kernel]);
        }
        for (k, channels) in (1..).zip(out) {
            let name = format!("{head}.scratch.layer{k}_rn.weight");
            list.add(name, [features, channels, 3, 3]);
        }
        for k in 1..=4 {
            let fusion = format!("{head}.scratch.refinenet{k}");
            list.affine(&format!("{fusion}.out_conv"), [features, features, 1, 1]);
            // The deepest level is not fused with anything, so its first unit does not exist.
            let units = if k == 4 { 2..=2 } else { 1..=2 };
            for unit in units {
                for conv in 1..=2 {
                    let name = format!("{fusion}.resConfUnit{unit}.conv{conv}");
                    list.affine(&name, [features, features, 3, 3]);
                }
            }
        }
        let scratch = format!("{head}.scratch");
        let half = features / 2;
        list.affine(&format!("{scratch}.output_conv1"), [half, features, 3, 3]);
        list.affine(
            &format!("{scratch}.output_conv2.0"),
            [HEAD_CHANNELS, half, 3, 3],
        );
        list.affine(
            &format!("{scratch}.output_conv2.2"),
            [output_channels, HEAD_CHANNELS, 1, 1],
        );
    }
}

#[derive(Default)]
struct TensorList(Vec<(String, Vec<usize>)>);

impl TensorList {
    fn add<const N: usize>(&mut self, name: impl Into<String>, shape: [usize; N]) {
        self.0.push((name.into(), shape.to_vec()));
    }

    /// A linear or convolutional weight with its bias, one value for each output.
    fn affine<const N: usize>(&mut self, prefix: &str, shape: [usize; N]) {
        self.add(format!("{prefix}.weight"), shape);
        self.add(format!("{prefix}.bias"), [shape[0]]);
    }

    fn norm(&mut self, prefix: &str, channels: usize) {
        self.affine(prefix, [channels]);
    }

    /// A transformer block; `qk_norm` is the head size where queries and keys are normalised.
    fn block(&mut self, prefix: &str, channels: usize, mlp_ratio: usize, qk_norm: Option<usize>) {
        let hidden = mlp_ratio * channels;
        self.norm(&format!("{prefix}.norm1"), channels);
        self.affine(&format!("{prefix}.attn.qkv"), [3 * channels, channels]);
        if let Some(head_dim) = qk_norm {
            self.norm(&format!("{prefix}.attn.q_norm"), head_dim);
            self.norm(&format!("{prefix}.attn.k_norm"), head_dim);
        }
        self.affine(&format!("{prefix}.attn.proj"), [channels, channels]);
        self.add(format!("{prefix}.ls1.gamma"), [channels]);
        self.norm(&format!("{prefix}.norm2"), channels);
        self.affine(&format!("{prefix}.mlp.fc1"), [hidden, channels]);
        self.affine(&format!("{prefix}.mlp.fc2"), [channels, hidden]);
        self.add(format!("{prefix}.ls2.gamma"), [channels]);
    }
}
