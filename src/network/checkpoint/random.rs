//! Weights made up from a seed, for measuring networks nobody trained.

use std::collections::BTreeMap;

use super::{CheckpointError, TensorSource};
use crate::network::config::NetworkConfig;

/// Seeded random weights of a configuration's names, shapes and plausible scales.
///
/// Values of a tensor depend on seed and name only. They are scaled so that a network of any depth
/// neither vanishes nor overflows, and so that predicted poses stay valid: quaternions near the
/// identity, fields of view near one radian.
pub struct RandomWeights {
    seed: u64,
    shapes: BTreeMap<String, Vec<usize>>,
}

impl RandomWeights {
    pub fn new(config: &NetworkConfig, seed: u64) -> Self {
        Self {
            seed,
            shapes: config.expected_tensors().into_iter().collect(),
        }
    }
}

impl TensorSource for RandomWeights {
    fn shape(&self, name: &str) -> Option<&[usize]> {
        self.shapes.get(name).map(Vec::as_slice)
    }

    fn names(&self) -> Vec<&str> {
        self.shapes.keys().map(String::as_str).collect()
    }

    fn read_f32(&self, name: &str) -> Result<Vec<f32>, CheckpointError> {
        let shape = self
            .shapes
            .get(name)
            .ok_or_else(|| CheckpointError::NoTensor(name.to_owned()))?;
        let Scale { mean, deviation } = scale(name, shape);
        let stream = name.bytes().fold(mix(self.seed), |state, byte| {
            mix(state ^ u64::from(byte)).wrapping_add(GOLDEN_GAMMA)
        });
        let mut values: Vec<f32> = (0..shape.iter().product::<usize>() as u64)
            .map(|i| {
                mean + deviation * bell(mix(stream.wrapping_add(i.wrapping_mul(GOLDEN_GAMMA))))
            })
            .collect();
        if name == POSE_BIAS {
            for (value, centre) in values.iter_mut().zip(POSE_CENTRE) {
                *value += centre;
            }
        }
        Ok(values)
    }
}

/// Zeros of a configuration's names and shapes, for finding out what a network takes.
pub struct BlankWeights {
    shapes: BTreeMap<String, Vec<usize>>,
}

impl BlankWeights {
    pub fn new(config: &NetworkConfig) -> Self {
        Self {
            shapes: config.expected_tensors().into_iter().collect(),
        }
    }
}

impl TensorSource for BlankWeights {
    fn shape(&self, name: &str) -> Option<&[usize]> {
        self.shapes.get(name).map(Vec::as_slice)
    }

    fn names(&self) -> Vec<&str> {
        self.shapes.keys().map(String::as_str).collect()
    }

    fn read_f32(&self, name: &str) -> Result<Vec<f32>, CheckpointError> {
        match self.shapes.get(name) {
            Some(shape) => Ok(vec![0.0; shape.iter().product()]),
            None => Err(CheckpointError::NoTensor(name.to_owned())),
        }
    }
}

const POSE_BIAS: &str = "camera_head.pose_branch.fc2.bias";
/// One iteration's share, of four, of the identity rotation and fields of view of one radian.
const POSE_CENTRE: [f32; 9] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.25, 0.25];

struct Scale {
    mean: f32,
    deviation: f32,
}

fn scale(name: &str, shape: &[usize]) -> Scale {
    let (mean, deviation) = if name.ends_with(".gamma") {
        (0.01, 0.001)
    } else if name.ends_with(".bias") || name.ends_with("pos_embed") || name.contains("token") {
        // Tokens include `camera_head.token_norm.weight`, told apart by its single dimension.
        match shape {
            [_] if name.ends_with(".weight") => (1.0, 0.02),
            _ => (0.0, 0.02),
        }
    } else if shape.len() < 2 {
        (1.0, 0.02)
    } else if name == "camera_head.pose_branch.fc2.weight" {
        (0.0, 0.05 / fan_in(name, shape).sqrt())
    } else {
        (0.0, 1.0 / fan_in(name, shape).sqrt())
    };
    Scale { mean, deviation }
}

fn fan_in(name: &str, shape: &[usize]) -> f32 {
    // The two transposed convolutions store their inputs first, and their stride is their kernel.
    let transposed = name.contains("resize_layers.0.") || name.contains("resize_layers.1.");
    let inputs = if transposed {
        shape.iter().take(1).product::<usize>()
    } else {
        shape.iter().skip(1).product()
    };
    inputs.max(1) as f32
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64 (Steele, Lea and Flood, 2014): a bijection that scrambles.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Four uniform 16-bit numbers summed: nearly normal, mean 0, variance 1, within ±3.5.
fn bell(bits: u64) -> f32 {
    let sum = (bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48);
    // The variance of the sum is 4 * (2^32 - 1) / 12, that is (65536 / √3)².
    (sum as f32 - 131_070.0) * (1.732_050_8 / 65_536.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(seed: u64) -> RandomWeights {
        RandomWeights::new(&NetworkConfig::official(), seed)
    }

    fn moments(values: &[f32]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
        let variance = values
            .iter()
            .map(|v| (f64::from(*v) - mean).powi(2))
            .sum::<f64>()
            / n;
        (mean, variance.sqrt())
    }

    #[test]
    fn matrices_have_the_deviation_of_their_fan_in() {
        let source = weights(1);
        for (name, fan_in) in [
            ("aggregator.frame_blocks.3.attn.proj.weight", 1024.0),
            ("depth_head.scratch.layer1_rn.weight", 256.0 * 9.0),
            ("depth_head.resize_layers.0.weight", 256.0),
        ] {
            let values = source.read_f32(name).unwrap();
            let count: usize = source.shape(name).unwrap().iter().product();
            assert_eq!(values.len(), count);
            let (mean, deviation) = moments(&values);
            let expected = 1.0 / f64::sqrt(fan_in);
            assert!(mean.abs() < 0.01 * expected, "{name}: mean {mean}");
            assert!(
                (deviation / expected - 1.0).abs() < 0.01,
                "{name}: {deviation}"
            );
        }
    }

    #[test]
    fn norms_scale_by_about_one_and_layer_scales_by_about_a_hundredth() {
        let source = weights(1);
        for (name, expected) in [
            ("camera_head.token_norm.weight", 1.0),
            ("aggregator.global_blocks.0.attn.q_norm.weight", 1.0),
            ("aggregator.patch_embed.blocks.0.ls1.gamma", 0.01),
            ("camera_head.token_norm.bias", 0.0),
            ("aggregator.camera_token", 0.0),
        ] {
            let (mean, _) = moments(&source.read_f32(name).unwrap());
            assert!((mean - expected).abs() < 0.01, "{name}: {mean}");
        }
    }

    #[test]
    fn seed_and_name_decide_the_values() {
        let name = "aggregator.frame_blocks.0.attn.proj.bias";
        let values = weights(7).read_f32(name).unwrap();
        assert_eq!(values, weights(7).read_f32(name).unwrap());
        assert_ne!(values, weights(8).read_f32(name).unwrap());
        let other = "aggregator.frame_blocks.1.attn.proj.bias";
        assert_ne!(values, weights(7).read_f32(other).unwrap());
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        assert!(matches!(
            weights(1).read_f32("nothing"),
            Err(CheckpointError::NoTensor(name)) if name == "nothing"
        ));
    }
}
