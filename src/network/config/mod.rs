//! Every size of the network, in one struct.

mod infer;
mod tensors;
mod validate;

pub(crate) use tensors::MASK_TOKEN;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Why a network configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path} is not a network configuration: {source}", path = path.display())]
    Syntax {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("network configuration: {0}")]
    Invalid(String),
    #[error(
        "the checkpoint has no tensor `{0}`, so the network's sizes cannot be inferred from it"
    )]
    MissingTensor(String),
    #[error("tensor `{name}` has shape {found:?}, expected {expected}")]
    UnexpectedShape {
        name: String,
        found: Vec<usize>,
        expected: &'static str,
    },
    #[error(
        "the checkpoint is not of the official size ({difference}), and its number of heads, selected \
         levels and rotary split cannot be read from its tensors: give a configuration file"
    )]
    NotInferable { difference: String },
}

/// Activation of the depth channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DepthActivation {
    #[default]
    Exp,
}

/// Activation of the three point channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointActivation {
    #[default]
    InvLog,
}

/// Activation of the confidence channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceActivation {
    #[default]
    Expp1,
}

/// How a small trained model wants to be run; every field is optional in the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DemoDefaults {
    /// Rows of the network input, pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_h: Option<usize>,
    /// Columns of the network input, pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_w: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_scale_frames: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyframe_interval: Option<usize>,
    /// Metres in one unit of the network's depth and translation, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metres_per_unit: Option<f64>,
}

/// Every size of a GCTStream network and the defaults of its stream.
///
/// The sizes without a default below have to be in a configuration file; unknown keys are ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkConfig {
    /// Side of the square image the position embedding was trained for, pixels.
    pub img_size: usize,
    /// Side of a patch, pixels.
    #[serde(default = "official::patch_size")]
    pub patch_size: usize,
    /// Channels C of a token.
    pub embed_dim: usize,
    /// Attention heads of the frame and global blocks.
    pub heads: usize,
    /// Channels of one head, C / heads.
    #[serde(default = "official::head_dim")]
    pub head_dim: usize,
    /// Channels of a head that rotate with frame, row and column; they sum to `head_dim`.
    pub fhw: [usize; 3],
    /// Blocks of the patch encoder.
    pub dino_depth: usize,
    /// Attention heads of the patch encoder.
    pub dino_heads: usize,
    /// Frame blocks, and as many global blocks.
    pub depth: usize,
    /// Levels whose output the heads read, ascending; the last one is `depth - 1`.
    pub selected: [usize; 4],
    /// Blocks of the camera head's trunk.
    pub cam_depth: usize,
    /// Attention heads of the camera head's trunk, over 2C channels.
    pub cam_heads: usize,
    /// Refinement iterations of the camera head.
    pub cam_iters: usize,
    /// Channels of the depth head's fusion path.
    pub dpt_features: usize,
    /// Channels of the depth head's four levels before fusion.
    pub dpt_out: [usize; 4],
    /// Special tokens of a frame: camera, registers and scale.
    #[serde(default = "official::num_special_tokens")]
    pub num_special_tokens: usize,
    /// Register tokens of a frame in the aggregator.
    #[serde(default = "official::num_register_tokens")]
    pub num_register_tokens: usize,
    /// Register tokens inside the patch encoder.
    #[serde(default = "official::num_register_tokens")]
    pub dino_register_tokens: usize,
    /// Hidden channels of every block's MLP, as a multiple of its channels.
    #[serde(default = "official::mlp_ratio")]
    pub mlp_ratio: usize,
    /// Frequency base of the frame blocks' two-dimensional rotary embedding.
    #[serde(default = "official::rope2d_base")]
    pub rope2d_base: f64,
    /// Frequency base of the global blocks' three-dimensional rotary embedding.
    #[serde(default = "official::rope3d_theta")]
    pub rope3d_theta: f64,
    /// Layer norm epsilon of the frame and global blocks.
    #[serde(default = "official::norm_eps")]
    pub agg_norm_eps: f64,
    /// Layer norm epsilon of the patch encoder.
    #[serde(default = "official::small_norm_eps")]
    pub dino_norm_eps: f64,
    /// Layer norm epsilon of the camera head.
    #[serde(default = "official::norm_eps")]
    pub camera_norm_eps: f64,
    /// Epsilon of the camera head's modulated layer norm, which has no affine part.
    #[serde(default = "official::small_norm_eps")]
    pub adaln_eps: f64,
    /// Layer norm epsilon of the depth and point heads.
    #[serde(default = "official::norm_eps")]
    pub dpt_norm_eps: f64,
    /// Whether the network has a head for world points.
    #[serde(default)]
    pub enable_point: bool,
    /// Rotary embedding in the camera head; only `false` is supported.
    #[serde(default)]
    pub camera_rope: bool,
    #[serde(default)]
    pub depth_activation: DepthActivation,
    #[serde(default)]
    pub point_activation: PointActivation,
    #[serde(default)]
    pub conf_activation: ConfidenceActivation,
    /// Rows of the network input that the model was made for, pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_h: Option<usize>,
    /// Columns of the network input that the model was made for, pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_w: Option<usize>,
    /// Default of `kv_cache_sliding_window`: frames kept in full after the scale frames.
    #[serde(default = "official::window")]
    pub window: usize,
    /// Default of `num_scale_frames`: frames of the first call, kept for ever.
    #[serde(default = "official::scale_frames")]
    pub scale_frames: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demo: Option<DemoDefaults>,
}

/// Values of the released network that a configuration file may leave out.
mod official {
    pub fn patch_size() -> usize {
        14
    }
    pub fn head_dim() -> usize {
        64
    }
    pub fn num_special_tokens() -> usize {
        6
    }
    pub fn num_register_tokens() -> usize {
        4
    }
    pub fn mlp_ratio() -> usize {
        4
    }
    pub fn rope2d_base() -> f64 {
        100.0
    }
    pub fn rope3d_theta() -> f64 {
        10_000.0
    }
    pub fn norm_eps() -> f64 {
        1e-5
    }
    pub fn small_norm_eps() -> f64 {
        1e-6
    }
    pub fn window() -> usize {
        64
    }
    pub fn scale_frames() -> usize {
        8
    }
}

/// A configuration file is a page of text; more is not one.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl NetworkConfig {
    /// The released LingBot-Map network, with the defaults of the reference implementation's demo.
    pub fn official() -> Self {
        Self {
            img_size: 518,
            patch_size: official::patch_size(),
            embed_dim: 1024,
            heads: 16,
            head_dim: official::head_dim(),
            fhw: [20, 22, 22],
            dino_depth: 24,
            dino_heads: 16,
            depth: 24,
            selected: [4, 11, 17, 23],
            cam_depth: 4,
            cam_heads: 16,
            cam_iters: 4,
            dpt_features: 256,
            dpt_out: [256, 512, 1024, 1024],
            num_special_tokens: official::num_special_tokens(),
            num_register_tokens: official::num_register_tokens(),
            dino_register_tokens: official::num_register_tokens(),
            mlp_ratio: official::mlp_ratio(),
            rope2d_base: official::rope2d_base(),
            rope3d_theta: official::rope3d_theta(),
            agg_norm_eps: official::norm_eps(),
            dino_norm_eps: official::small_norm_eps(),
            camera_norm_eps: official::norm_eps(),
            adaln_eps: official::small_norm_eps(),
            dpt_norm_eps: official::norm_eps(),
            enable_point: false,
            camera_rope: false,
            depth_activation: DepthActivation::Exp,
            point_activation: PointActivation::InvLog,
            conf_activation: ConfidenceActivation::Expp1,
            input_h: None,
            input_w: None,
            window: official::window(),
            scale_frames: official::scale_frames(),
            demo: None,
        }
    }

    /// Reads and validates a JSON configuration file.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let read = |source| ConfigError::Read {
            path: path.to_path_buf(),
            source,
        };
        if std::fs::metadata(path).map_err(read)?.len() > MAX_FILE_BYTES {
            return Err(ConfigError::Invalid(format!(
                "{} is larger than {MAX_FILE_BYTES} bytes",
                path.display()
            )));
        }
        let text = std::fs::read(path).map_err(read)?;
        let config: Self = serde_json::from_slice(&text).map_err(|source| ConfigError::Syntax {
            path: path.to_path_buf(),
            source,
        })?;
        config.validate()?;
        Ok(config)
    }

    /// Height and width in pixels of the input that the model was made for, where the file says so.
    pub fn input_size(&self) -> Option<(usize, usize)> {
        let demo = self.demo.as_ref();
        let height = self.input_h.or(demo.and_then(|demo| demo.input_h));
        let width = self.input_w.or(demo.and_then(|demo| demo.input_w));
        height.zip(width)
    }
}

#[cfg(test)]
mod tests;
