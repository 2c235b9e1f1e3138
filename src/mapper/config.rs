//! The settings of the walk.

use std::str::FromStr;

use crate::camera::PrepareConfig;
use crate::map::{PointFilter, ScaleSource, VoxelMapConfig};
use crate::network::manifest::Manifest;
use crate::stream::{OnCollapse, StreamConfig, WindowConfig};

/// Relative standard deviation of a scale that a network has learnt.
const MODEL_UNCERTAINTY: f64 = 0.05;

/// How frames become a map.
#[derive(Clone, Debug)]
pub struct MapperConfig {
    pub stream: StreamConfig,
    /// How the stream is cut into windows; absent: one window.
    pub windows: Option<WindowConfig>,
    /// What happens when the network has lost its way.
    pub on_collapse: OnCollapse,
    /// How frames come to the network's size.
    pub prepare: PrepareConfig,
    /// Change of a patch's mean brightness, 0 to 255, up to which a picture shows nothing new and is left out before the
    /// network; absent: none is.
    pub static_skip: Option<f64>,
    pub intrinsics: IntrinsicsSource,
    pub filter: PointFilter,
    pub voxel: VoxelMapConfig,
    pub scale: ScaleSource,
}

/// Whose focal lengths turn depth into points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntrinsicsSource {
    /// Those that the network sees in each frame.
    #[default]
    Predicted,
    /// The camera's own, where it is calibrated.
    Calibrated,
}

impl FromStr for IntrinsicsSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "predicted" => Ok(Self::Predicted),
            "calibrated" => Ok(Self::Calibrated),
            _ => Err(format!(
                "unknown intrinsics {text:?}: predicted or calibrated"
            )),
        }
    }
}

impl MapperConfig {
    /// The stream settings of a model and the defaults of everything else.
    pub fn of_model(manifest: &Manifest) -> Self {
        Self {
            stream: StreamConfig::of_model(&manifest.network),
            windows: None,
            on_collapse: OnCollapse::default(),
            prepare: PrepareConfig::default(),
            static_skip: None,
            intrinsics: IntrinsicsSource::default(),
            filter: PointFilter::default(),
            voxel: VoxelMapConfig::default(),
            scale: scale_of_model(manifest),
        }
    }
}

/// A model that was trained in metres says so.
fn scale_of_model(manifest: &Manifest) -> ScaleSource {
    let defaults = manifest.network.demo.as_ref();
    match defaults.and_then(|defaults| defaults.metres_per_unit) {
        Some(factor) if factor.is_finite() && factor > 0.0 => ScaleSource::Fixed {
            factor,
            uncertainty: MODEL_UNCERTAINTY,
        },
        _ => ScaleSource::None,
    }
}
