//! Relations that the sizes of a network have to satisfy.

use super::{ConfigError, NetworkConfig};

impl NetworkConfig {
    /// Checks every relation between the sizes, and that none of them is absurd: with a valid
    /// configuration no size computed from it overflows.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_ranges()?;
        self.validate_attention()?;
        self.validate_levels()?;
        self.validate_stream()
    }

    fn validate_ranges(&self) -> Result<(), ConfigError> {
        let ranges = [
            ("patch_size", self.patch_size, 1, 64),
            ("img_size", self.img_size, 1, 8192),
            ("embed_dim", self.embed_dim, 1, 8192),
            ("heads", self.heads, 1, 256),
            ("head_dim", self.head_dim, 4, 1024),
            ("dino_depth", self.dino_depth, 1, 256),
            ("dino_heads", self.dino_heads, 1, 256),
            ("depth", self.depth, 4, 256),
            ("cam_depth", self.cam_depth, 1, 64),
            ("cam_heads", self.cam_heads, 1, 256),
            ("cam_iters", self.cam_iters, 1, 64),
            ("dpt_features", self.dpt_features, 8, 8192),
            ("num_register_tokens", self.num_register_tokens, 1, 64),
            ("dino_register_tokens", self.dino_register_tokens, 1, 64),
            ("mlp_ratio", self.mlp_ratio, 1, 16),
        ];
        for (name, value, low, high) in ranges {
            ensure(value >= low && value <= high, || {
                format!("{name} is {value}, expected {low} to {high}")
            })?;
        }
        for channels in self.dpt_out {
            ensure(
                channels > 0 && channels <= 8192 && channels.is_multiple_of(4),
                || format!("dpt_out has {channels} channels, expected a multiple of 4 up to 8192"),
            )?;
        }
        let positive = [
            ("rope2d_base", self.rope2d_base),
            ("rope3d_theta", self.rope3d_theta),
            ("agg_norm_eps", self.agg_norm_eps),
            ("dino_norm_eps", self.dino_norm_eps),
            ("camera_norm_eps", self.camera_norm_eps),
            ("adaln_eps", self.adaln_eps),
            ("dpt_norm_eps", self.dpt_norm_eps),
        ];
        for (name, value) in positive {
            ensure(value.is_finite() && value > 0.0, || {
                format!("{name} is {value}, expected a positive number")
            })?;
        }
        Ok(())
    }

    fn validate_attention(&self) -> Result<(), ConfigError> {
        ensure(self.heads * self.head_dim == self.embed_dim, || {
            format!(
                "heads {} times head_dim {} is not embed_dim {}",
                self.heads, self.head_dim, self.embed_dim
            )
        })?;
        ensure(self.head_dim.is_multiple_of(4), || {
            format!("head_dim {} is not a multiple of 4", self.head_dim)
        })?;
        let split = self
            .fhw
            .iter()
            .try_fold(0usize, |sum, part| sum.checked_add(*part));
        ensure(split == Some(self.head_dim), || {
            format!(
                "fhw {:?} does not sum to head_dim {}",
                self.fhw, self.head_dim
            )
        })?;
        ensure(self.fhw.iter().all(|part| part.is_multiple_of(2)), || {
            format!("fhw {:?} has an odd part", self.fhw)
        })?;
        ensure(self.embed_dim.is_multiple_of(self.dino_heads), || {
            format!(
                "embed_dim {} does not divide into {} dino_heads",
                self.embed_dim, self.dino_heads
            )
        })?;
        ensure((2 * self.embed_dim).is_multiple_of(self.cam_heads), || {
            format!(
                "twice embed_dim {} does not divide into {} cam_heads",
                self.embed_dim, self.cam_heads
            )
        })?;
        ensure(!self.camera_rope, || {
            "camera_rope is not supported".to_owned()
        })?;
        ensure(
            self.num_special_tokens == self.num_register_tokens + 2,
            || {
                format!(
                    "num_special_tokens is {}, expected the camera token, {} registers and the scale token",
                    self.num_special_tokens, self.num_register_tokens
                )
            },
        )
    }

    fn validate_levels(&self) -> Result<(), ConfigError> {
        ensure(self.img_size.is_multiple_of(self.patch_size), || {
            format!(
                "img_size {} is not a multiple of patch_size {}",
                self.img_size, self.patch_size
            )
        })?;
        ensure(self.selected.is_sorted_by(|a, b| a < b), || {
            format!("selected {:?} is not strictly ascending", self.selected)
        })?;
        ensure(self.selected[3] == self.depth - 1, || {
            format!(
                "selected {:?} does not end at the last level {}, which the camera head reads",
                self.selected,
                self.depth - 1
            )
        })?;
        ensure(self.dpt_features.is_multiple_of(8), || {
            format!("dpt_features {} is not a multiple of 8", self.dpt_features)
        })
    }

    fn validate_stream(&self) -> Result<(), ConfigError> {
        let mut ranges = vec![
            ("window", self.window, 65_536),
            ("scale_frames", self.scale_frames, 1024),
        ];
        ranges.extend(self.input_h.map(|value| ("input_h", value, 16_384)));
        ranges.extend(self.input_w.map(|value| ("input_w", value, 16_384)));
        if let Some(demo) = &self.demo {
            for (name, value, high) in [
                ("demo.input_h", demo.input_h, 16_384),
                ("demo.input_w", demo.input_w, 16_384),
                ("demo.num_scale_frames", demo.num_scale_frames, 1024),
                ("demo.keyframe_interval", demo.keyframe_interval, 65_536),
            ] {
                ranges.extend(value.map(|value| (name, value, high)));
            }
        }
        for (name, value, high) in ranges {
            ensure(value >= 1 && value <= high, || {
                format!("{name} is {value}, expected 1 to {high}")
            })?;
        }
        Ok(())
    }
}

fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), ConfigError> {
    if condition {
        Ok(())
    } else {
        Err(ConfigError::Invalid(message()))
    }
}
