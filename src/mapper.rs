//! The walk of a frame: camera image, network input, prediction, map. Pure Rust; the ROS node and the command-line
//! tool are shells around it.

mod config;
mod status;

pub use config::{IntrinsicsSource, MapperConfig};
pub use status::{MapUpdate, MapperState, MapperStatus, SavedMap};

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

use nalgebra::{Isometry3, Point3, Vector3};

use crate::camera::{
    CameraInfo, Frame, ImageError, PrepareError, PreparedImage, Preparer, Rectification, Rectifier,
    Stamp, StaticGate,
};
use crate::geometry::decode_pose;
use crate::map::{
    FrameView, MapError, MapFormat, MapPoint, PointFilter, PreviewSize, ScaleKeeper, Trajectory,
    VoxelMap, points_of_frame, write_ply, write_preview,
};
use crate::network::manifest::Manifest;
use crate::runtime::RuntimeOptions;
use crate::stages::{Stage, StageTimes};
use crate::stream::{Prediction, StreamError, WindowedStream};

/// Why a frame was not mapped, or a map not made or saved.
#[derive(Debug, thiserror::Error)]
pub enum MapperError {
    /// The frame was refused; the map and the stream are as they were.
    #[error(transparent)]
    Image(#[from] PrepareError),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Map(#[from] MapError),
}

impl From<ImageError> for MapperError {
    fn from(error: ImageError) -> Self {
        Self::Image(error.into())
    }
}

impl MapperError {
    /// A stable label of the kind of fault, for counting.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Image(error) => error.reason(),
            Self::Stream(StreamError::Memory(_)) => "out_of_memory",
            Self::Stream(_) => "network_failed",
            Self::Map(_) => "map_failed",
        }
    }
}

/// Frames that are in the stream but not yet predicted.
struct Pending {
    stamp: Stamp,
    prepared: PreparedImage,
}

/// Turns frames into a map.
pub struct Mapper {
    stream: WindowedStream,
    preparer: Preparer,
    static_gate: Option<StaticGate>,
    intrinsics: IntrinsicsSource,
    filter: PointFilter,
    map: VoxelMap,
    scale: ScaleKeeper,
    trajectory: Trajectory,
    pending: VecDeque<Pending>,
    frames_in: u64,
    frames_mapped: u64,
    rejected: BTreeMap<&'static str, u64>,
    still_frames: u64,
    last_step: Duration,
    is_lost: bool,
    maps: u64,
    stages: StageTimes,
}

impl Mapper {
    /// Loads an exported model.
    pub fn open(
        model: &Path,
        runtime: &RuntimeOptions,
        config: MapperConfig,
    ) -> Result<Self, MapperError> {
        let stream = WindowedStream::open(
            model,
            runtime,
            config.stream,
            config.windows,
            config.on_collapse,
        )?;
        Ok(Self {
            preparer: Preparer::new(stream.manifest().size, config.prepare),
            static_gate: config.static_skip.map(StaticGate::new),
            intrinsics: config.intrinsics,
            stream,
            filter: config.filter,
            map: VoxelMap::new(config.voxel),
            scale: ScaleKeeper::new(config.scale),
            trajectory: Trajectory::default(),
            pending: VecDeque::new(),
            frames_in: 0,
            frames_mapped: 0,
            rejected: BTreeMap::new(),
            still_frames: 0,
            last_step: Duration::ZERO,
            is_lost: false,
            maps: 0,
            stages: StageTimes::default(),
        })
    }

    /// Maps the next frame. The first frames only gather; the one that completes them returns an update for each, later
    /// ones return one (in windows of a stream of known length, those of an overlap come with the next window). A prediction that is no pose is counted and leaves no trace in the map; so is, with `static_skip`, a frame in which
    /// nothing moved, and returns none.
    ///
    /// After an error of the network the mapper starts anew with the next frame, since the new stream has another
    /// world.
    pub fn push(&mut self, frame: Frame) -> Result<Vec<MapUpdate>, MapperError> {
        let start = Instant::now();
        self.frames_in += 1;
        let result = self.try_push(frame);
        if let Err(error) = &result {
            *self.rejected.entry(error.reason()).or_default() += 1;
        }
        self.last_step = start.elapsed();
        result
    }

    /// Maps the frames that still wait: scale frames of a stream that ends early, the overlap of a window with the next.
    pub fn finish(&mut self) -> Result<Vec<MapUpdate>, MapperError> {
        let result = self.stream.finish();
        self.absorb(result)
    }

    /// Forgets the map, the path and all frames; counters go on.
    pub fn reset(&mut self) {
        self.stream.reset();
        self.pending.clear();
        self.begin_map();
    }

    fn begin_map(&mut self) {
        self.map.clear();
        self.trajectory.clear();
        self.scale.reset();
        self.is_lost = false;
        self.maps += 1;
    }

    /// How often the map began anew, for whatever reason: a new map has another world.
    pub fn maps_begun(&self) -> u64 {
        self.maps
    }

    /// Takes the camera's calibration for the frames to come. A first one that has them rectified starts anew: the
    /// frames before it showed another picture. Returns whether the calibration is another than before.
    pub fn set_camera_info(&mut self, info: CameraInfo) -> bool {
        let had = matches!(self.preparer.rectifier().calibration(), Ok(Some(_)));
        let changed = self.preparer.set_info(info);
        let rectifies = self.preparer.rectifier().decision() == Some(Rectification::Needed);
        if changed && !had && rectifies && self.state() != MapperState::Waiting {
            self.reset();
        }
        changed
    }

    /// What is known of the camera.
    pub fn rectifier(&self) -> &Rectifier {
        self.preparer.rectifier()
    }

    /// What is known of the map's unit.
    pub fn scale(&self) -> &ScaleKeeper {
        &self.scale
    }

    /// Tells where the camera of an update was, in metres and in a frame that does not jump. Returns whether the scale
    /// has just become known by it.
    pub fn see_odometry(&mut self, update: &MapUpdate, odom_from_camera: &Isometry3<f64>) -> bool {
        let position = |pose: &Isometry3<f64>| Point3::from(pose.translation.vector);
        let in_map = position(&update.world_from_camera);
        self.scale.see_odometry(in_map, position(odom_from_camera))
    }

    /// Tells which way is up in the network's world, for the camera's height above the floor. Returns whether the scale
    /// has just become known.
    pub fn see_floor(&mut self, update: &MapUpdate, up: &Vector3<f64>) -> bool {
        let camera = Point3::from(update.world_from_camera.translation.vector);
        self.scale.see_frame(&update.points, &camera, up)
    }

    /// For the frames to come; what is in the map stays.
    pub fn set_filter(&mut self, filter: PointFilter) {
        self.filter = filter;
    }

    /// Time spent in each stage since the model was loaded; decoding is the caller's.
    pub fn stages(&self) -> StageTimes {
        self.stages + self.stream.stages()
    }

    /// The model that runs.
    pub fn manifest(&self) -> &Manifest {
        self.stream.manifest()
    }

    pub fn map(&self) -> &VoxelMap {
        &self.map
    }

    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// Writes `trajectory.tum`, `map.ply` and `preview.png`, each whole or not at all, in metres where the scale is known.
    pub fn save(&self, folder: &Path) -> Result<SavedMap, MapperError> {
        std::fs::create_dir_all(folder).map_err(|source| MapError::Write {
            path: folder.to_owned(),
            source,
        })?;
        let saved = SavedMap {
            trajectory: folder.join("trajectory.tum"),
            map: folder.join("map.ply"),
            preview: folder.join("preview.png"),
        };
        let (points, trajectory) = self.scaled();
        trajectory.write_tum(&saved.trajectory)?;
        write_ply(&saved.map, points.iter().copied())?;
        write_preview(&saved.preview, &points, &trajectory, PreviewSize::default())?;
        Ok(saved)
    }

    /// Writes the map in other formats too, each file whole or not at all.
    pub fn save_as(&self, formats: &[MapFormat], folder: &Path) -> Result<(), MapperError> {
        if formats.is_empty() {
            return Ok(());
        }
        let (points, trajectory) = self.scaled();
        for format in formats {
            format.write(folder, &points, &trajectory)?;
        }
        Ok(())
    }

    /// Points and path in the unit that files are written in.
    fn scaled(&self) -> (Vec<MapPoint>, Trajectory) {
        let scale = self.scale.scale();
        let points = self.map.points().map(|point| scale.of_point(point));
        (points.collect(), self.trajectory.scaled(&scale))
    }

    pub fn state(&self) -> MapperState {
        let need = self.stream.config().num_scale_frames;
        match self.stream.waiting_frames() {
            0 if self.stream.token_cache().valid == 0 => MapperState::Waiting,
            0 if self.is_lost => MapperState::Lost,
            0 => MapperState::Mapping,
            have => MapperState::Initialising { have, need },
        }
    }

    pub fn status(&self) -> MapperStatus {
        MapperStatus {
            state: self.state(),
            frames_in: self.frames_in,
            frames_mapped: self.frames_mapped,
            rejected: self.rejected.clone(),
            still_frames: self.still_frames,
            provider: self.stream.provider(),
            token_cache: self.stream.token_cache(),
            camera_cache: self.stream.camera_cache(),
            windows: self.stream.windows(),
            collapses: self.stream.collapses(),
            last_step: self.last_step,
            map_points: self.map.len(),
        }
    }

    fn try_push(&mut self, frame: Frame) -> Result<Vec<MapUpdate>, MapperError> {
        let start = Instant::now();
        let prepared = self.preparer.prepare(frame.image)?;
        let is_still = self.is_still(&prepared);
        self.stages.add_since(Stage::Prepare, start);
        if is_still {
            self.still_frames += 1;
            return Ok(Vec::new());
        }
        let result = self.stream.push(&prepared.image);
        self.pending.push_back(Pending {
            stamp: frame.stamp,
            prepared,
        });
        self.absorb(result)
    }

    /// Whether a frame needs no network: nothing moved since the last one that ran, and that one was mapped.
    fn is_still(&mut self, prepared: &PreparedImage) -> bool {
        let is_mapping = self.state() == MapperState::Mapping;
        match &mut self.static_gate {
            Some(gate) if is_mapping => gate.is_still(&prepared.image),
            Some(gate) => {
                gate.reset();
                false
            }
            None => false,
        }
    }

    /// Takes the predictions of a call into the map.
    fn absorb(
        &mut self,
        result: Result<Vec<Prediction>, StreamError>,
    ) -> Result<Vec<MapUpdate>, MapperError> {
        match result {
            Ok(predictions) => {
                let updates = predictions
                    .into_iter()
                    .filter_map(|prediction| self.integrate(prediction))
                    .collect();
                // A stream that has started anew has another world.
                if self.stream.token_cache().valid == 0 && self.stream.waiting_frames() == 0 {
                    self.begin_map();
                }
                Ok(updates)
            }
            Err(StreamError::Memory(error)) => {
                // The frame was refused before it touched anything.
                self.pending.pop_back();
                Err(StreamError::Memory(error).into())
            }
            Err(error) => {
                self.reset();
                Err(error.into())
            }
        }
    }

    /// `None` for a prediction that is no pose.
    fn integrate(&mut self, prediction: Prediction) -> Option<MapUpdate> {
        let Pending { stamp, prepared } = self.pending.pop_front()?;
        if let Some(symptom) = prediction.symptom {
            log::debug!("frame {} is not mapped: {symptom:?}", prediction.index);
            *self.rejected.entry("collapse").or_default() += 1;
            self.is_lost = true;
            return None;
        }
        let PreparedImage {
            image,
            kept,
            calibrated,
        } = prepared;
        let (world_from_camera, predicted) =
            match decode_pose(&prediction.pose_enc, self.stream.manifest().size) {
                Ok(decoded) => decoded,
                Err(error) => {
                    log::debug!("frame {} has no pose: {error}", prediction.index);
                    *self.rejected.entry("invalid_pose").or_default() += 1;
                    self.is_lost = true;
                    return None;
                }
            };
        let intrinsics = match (self.intrinsics, &calibrated) {
            (IntrinsicsSource::Calibrated, Some(calibrated)) => {
                predicted.with_focal_lengths_of(calibrated)
            }
            _ => predicted,
        };
        let start = Instant::now();
        let mut points = Vec::new();
        let view = FrameView {
            depth: prediction.depth.view(),
            confidence: prediction.depth_conf.view(),
            image: &image,
            kept: Some(kept.view()),
            world_from_camera: &world_from_camera,
            intrinsics: &intrinsics,
        };
        points_of_frame(&view, &self.filter, &mut points);
        self.stages.add_since(Stage::Points, start);
        let start = Instant::now();
        self.map.integrate(&points);
        self.stages.add_since(Stage::Fusion, start);
        self.trajectory.push(stamp, world_from_camera);
        self.frames_mapped += 1;
        self.is_lost = false;
        Some(MapUpdate {
            stamp,
            prediction,
            world_from_camera,
            predicted,
            calibrated,
            intrinsics,
            points,
        })
    }
}
