//! What the mapper tells of its work.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use nalgebra::Isometry3;

use crate::camera::Stamp;
use crate::geometry::Intrinsics;
use crate::map::MapPoint;
use crate::runtime::Provider;
use crate::stream::{CacheStatus, Prediction};

/// What one frame added to the map.
#[derive(Clone, Debug)]
pub struct MapUpdate {
    /// The image's own stamp.
    pub stamp: Stamp,
    pub prediction: Prediction,
    /// Pose of the camera's optical frame; the world is the one the network predicts in, near the first camera.
    pub world_from_camera: Isometry3<f64>,
    /// At the network's resolution, as predicted.
    pub predicted: Intrinsics,
    /// The same of a calibrated camera.
    pub calibrated: Option<Intrinsics>,
    /// Those that the points were made with.
    pub intrinsics: Intrinsics,
    /// The frame's own points that passed the filter, in the world.
    pub points: Vec<MapPoint>,
}

/// What the mapper is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapperState {
    /// No frame has come yet.
    Waiting,
    /// Scale frames gather.
    Initialising {
        have: usize,
        need: usize,
    },
    Mapping,
    /// The last frame came out of the network as one that is not to be trusted, or as no pose at all.
    Lost,
}

/// Where the mapper stands.
#[derive(Clone, Debug)]
pub struct MapperStatus {
    pub state: MapperState,
    pub frames_in: u64,
    pub frames_mapped: u64,
    /// Frames that were not mapped, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Frames left out before the network because nothing had moved.
    pub still_frames: u64,
    /// The provider that really runs the network.
    pub provider: Provider,
    /// Rows are tokens.
    pub token_cache: CacheStatus,
    /// Rows are frames.
    pub camera_cache: CacheStatus,
    /// Windows of the stream begun so far.
    pub windows: usize,
    /// How often the network lost its way.
    pub collapses: u64,
    /// How long the last frame took from image to map.
    pub last_step: Duration,
    pub map_points: usize,
}

/// Files of a saved map.
#[derive(Clone, Debug)]
pub struct SavedMap {
    pub trajectory: PathBuf,
    pub map: PathBuf,
    pub preview: PathBuf,
}
