//! Sizes read off the shapes of the state tensors.

use std::collections::BTreeSet;

use super::{ConfigError, NetworkConfig};
use crate::network::checkpoint::TensorSource;

impl NetworkConfig {
    /// Infers the configuration of a checkpoint of the official size from its tensors.
    ///
    /// The position embedding, patch size, register counts and the presence of a point head may
    /// differ from the official network. The number of heads, the selected levels and the rotary
    /// split leave no trace in the tensors, so a checkpoint of any other size is refused with
    /// [`ConfigError::NotInferable`].
    pub fn infer(source: &dyn TensorSource) -> Result<Self, ConfigError> {
        let official = Self::official();
        let tensors = Shapes(source);
        let [embed_dim, _, patch_size, _] =
            tensors.get("aggregator.patch_embed.patch_embed.proj.weight")?;
        let [_, positions, _] = tensors.get("aggregator.patch_embed.pos_embed")?;
        let [_, dino_register_tokens, _] = tensors.get("aggregator.patch_embed.register_tokens")?;
        let [_, _, num_register_tokens, _] = tensors.get("aggregator.register_token")?;
        let [head_dim] = tensors.get("aggregator.global_blocks.0.attn.q_norm.weight")?;
        let [hidden, _] = tensors.get("aggregator.global_blocks.0.mlp.fc1.weight")?;
        let [dpt_features, _, _, _] =
            tensors.get("depth_head.scratch.refinenet1.out_conv.weight")?;
        let mut dpt_out = [0; 4];
        for (k, channels) in dpt_out.iter_mut().enumerate() {
            [*channels, _, _, _] = tensors.get(&format!("depth_head.projects.{k}.weight"))?;
        }
        let grid = square_root(positions.saturating_sub(1)).ok_or_else(|| {
            ConfigError::UnexpectedShape {
                name: "aggregator.patch_embed.pos_embed".to_owned(),
                found: vec![1, positions, embed_dim],
                expected: "[1, 1 + n², C]",
            }
        })?;
        let inferred = Self {
            img_size: grid.saturating_mul(patch_size),
            patch_size,
            embed_dim,
            head_dim,
            dino_depth: tensors.blocks("aggregator.patch_embed.blocks."),
            depth: tensors.blocks("aggregator.global_blocks."),
            cam_depth: tensors.blocks("camera_head.trunk."),
            dpt_features,
            dpt_out,
            num_special_tokens: num_register_tokens.saturating_add(2),
            num_register_tokens,
            dino_register_tokens,
            mlp_ratio: hidden / embed_dim.max(1),
            enable_point: source.shape("point_head.norm.weight").is_some(),
            ..official.clone()
        };
        for (name, found, expected) in [
            ("embed_dim", embed_dim, official.embed_dim),
            ("head_dim", head_dim, official.head_dim),
            ("dino_depth", inferred.dino_depth, official.dino_depth),
            ("depth", inferred.depth, official.depth),
            ("cam_depth", inferred.cam_depth, official.cam_depth),
        ] {
            if found != expected {
                return Err(ConfigError::NotInferable {
                    difference: format!("{name} {found} instead of {expected}"),
                });
            }
        }
        inferred.validate()?;
        Ok(inferred)
    }
}

struct Shapes<'a>(&'a dyn TensorSource);

impl Shapes<'_> {
    fn get<const N: usize>(&self, name: &str) -> Result<[usize; N], ConfigError> {
        let shape = self
            .0
            .shape(name)
            .ok_or_else(|| ConfigError::MissingTensor(name.to_owned()))?;
        shape.try_into().map_err(|_| ConfigError::UnexpectedShape {
            name: name.to_owned(),
            found: shape.to_vec(),
            expected: match N {
                1 => "one dimension",
                2 => "two dimensions",
                3 => "three dimensions",
                _ => "four dimensions",
            },
        })
    }

    /// How many numbered blocks there are below a prefix such as `camera_head.trunk.`.
    fn blocks(&self, prefix: &str) -> usize {
        self.0
            .names()
            .into_iter()
            .filter_map(|name| name.strip_prefix(prefix)?.split('.').next()?.parse().ok())
            .collect::<BTreeSet<usize>>()
            .len()
    }
}

fn square_root(value: usize) -> Option<usize> {
    let root = value.isqrt();
    (root > 0 && root * root == value).then_some(root)
}
