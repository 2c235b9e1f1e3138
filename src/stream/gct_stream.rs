use std::path::Path;
use std::time::Instant;

use image::RgbImage;
use nalgebra::Similarity3;
use ndarray::{Array2, Array3, ShapeError};

use super::StreamConfig;
use super::cache::{CacheError, CacheStatus};
use super::heads::{Dense, DenseHeads};
use super::keyframe::{KeyframeRule, Verdict};
use super::layout::FrameRole;
use super::memory::{BudgetError, MemoryRequest};
use super::step::{POSE_VALUES, StepError, StepRunner};
use super::watch::Symptom;
use crate::camera::NetworkSize;
use crate::geometry::{CameraView, decode_pose, mean_flow};
use crate::network::manifest::{Manifest, ManifestError};
use crate::runtime::{Library, Provider, RuntimeError, RuntimeOptions};
use crate::stages::StageTimes;

/// Why a stream could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error(transparent)]
    Model(#[from] ManifestError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Memory(#[from] CacheError),
    #[error("a dense head's output: {0}")]
    Output(#[from] ShapeError),
    #[error("stream settings: {0}")]
    Config(String),
    #[error(transparent)]
    Budget(#[from] BudgetError),
    #[error("the frame has {width}x{height} pixels, the model takes {size}")]
    FrameSize {
        width: u32,
        height: u32,
        size: NetworkSize,
    },
}

impl From<StepError> for StreamError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Memory(error) => Self::Memory(error),
            StepError::Runtime(error) => Self::Runtime(error),
        }
    }
}

/// What the stream did with a frame. The numbers are those of saved predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameType {
    /// One of the first frames, kept for ever.
    Scale = 0,
    /// Stored when it was seen, or right afterwards because it had moved enough.
    Keyframe = 1,
    /// Predicted and forgotten.
    Other = 2,
}

/// What the network says about one frame. Lengths are in the network's unit.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// Frames before this one since the start of the stream.
    pub index: u64,
    pub frame_type: FrameType,
    /// Translation, quaternion x y z w (not normalised) of the camera in the world; vertical and horizontal field of
    /// view, radians.
    pub pose_enc: [f32; POSE_VALUES],
    /// Distance along the optical axis, [height, width].
    pub depth: Array2<f32>,
    /// Confidence of the depth, from 1 on, [height, width].
    pub depth_conf: Array2<f32>,
    /// World points [height, width, 3] and their confidence, where the model has a head for them.
    pub world_points: Option<(Array3<f32>, Array2<f32>)>,
    /// Which window of the stream saw the frame, from 0 on.
    pub window: usize,
    /// What took the window's own predictions to the world of the first one; pose, depth and points are there already.
    pub world_from_window: Similarity3<f64>,
    /// Why the prediction is not to be trusted, where somebody watches.
    pub symptom: Option<Symptom>,
}

/// A stream of frames through the network.
///
/// Results equal those of an ever-growing cache from which old frames are evicted; memory does not grow but for the
/// special tokens of evicted frames and one camera row for each stored frame.
pub struct GctStream {
    manifest: Manifest,
    config: StreamConfig,
    step: StepRunner,
    heads: DenseHeads,
    keyframes: KeyframeRule,
    /// The last stored frame, against which flow is measured.
    reference: Option<CameraView>,
    /// Scale frames that wait for the first call, [frames, height, width, 3].
    waiting: Vec<u8>,
    /// Frames taken since the start.
    pushed: u64,
}

/// Settings with which the stream obeys its memory budget to the end.
fn within_budget(config: StreamConfig, manifest: &Manifest) -> Result<StreamConfig, StreamError> {
    let Some(budget) = config.memory_budget else {
        return Ok(config);
    };
    let Some(budget) = budget.bytes() else {
        let message = "the system does not say how much memory it has: give memory_budget in bytes";
        return Err(StreamError::Config(message.into()));
    };
    let request = MemoryRequest {
        network: &manifest.network,
        size: manifest.size,
        camera_num_iterations: manifest.camera_num_iterations,
        weights: manifest.bytes(),
        stream: &config,
        window_size: None,
    };
    let fitting = request.within(budget, config.memory_fit)?;
    if fitting.kv_cache_sliding_window != config.kv_cache_sliding_window {
        log::warn!(
            "the memory budget has no room for a window of {} frames: {} are kept",
            config.kv_cache_sliding_window,
            fitting.kv_cache_sliding_window
        );
    }
    log::info!(
        "memory budget: {} MiB, room for the special tokens of {} frames",
        budget >> 20,
        fitting.history_frames.unwrap_or(0)
    );
    fitting.validate()?;
    Ok(fitting)
}

impl GctStream {
    /// Loads an exported model and allocates its caches. With a memory budget, [`GctStream::config`] says what it made of
    /// the settings.
    pub fn open(
        folder: &Path,
        runtime: &RuntimeOptions,
        config: StreamConfig,
    ) -> Result<Self, StreamError> {
        config.validate()?;
        let manifest = Manifest::read(folder)?;
        if runtime.verify {
            let start = Instant::now();
            manifest.verify(folder)?;
            log::debug!(
                "checksums compared in {:.3} s",
                start.elapsed().as_secs_f64()
            );
        }
        let config = within_budget(config, &manifest)?;
        let library = Library::load(runtime.library.as_deref())?;
        let runtime = &runtime.resolve()?;
        let step = StepRunner::open(&library, folder, &manifest, runtime, &config)?;
        manifest.check_image(folder, step.image_shape())?;
        Ok(Self {
            step,
            heads: DenseHeads::open(&library, folder, &manifest, runtime)?,
            keyframes: config.keyframe_rule(),
            reference: None,
            waiting: Vec::new(),
            pushed: 0,
            manifest,
            config,
        })
    }

    /// The model that runs.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub fn config(&self) -> &StreamConfig {
        &self.config
    }

    /// The provider that really runs the graphs.
    pub fn provider(&self) -> Provider {
        self.step.provider()
    }

    /// Time spent in each stage since the model was loaded.
    pub fn stages(&self) -> StageTimes {
        self.step.stages() + self.heads.stages()
    }

    /// Scale frames that wait for the first call.
    pub fn waiting_frames(&self) -> usize {
        if self.step.stored() == 0 {
            self.pushed as usize
        } else {
            0
        }
    }

    /// State of the token caches; rows are tokens.
    pub fn token_cache(&self) -> CacheStatus {
        self.step.token_cache()
    }

    /// State of the camera head's caches; rows are frames.
    pub fn camera_cache(&self) -> CacheStatus {
        self.step.camera_cache()
    }

    /// Takes the next frame, which must have the model's size. The first frames only gather; the call that completes
    /// them returns a prediction for each, later calls return one.
    ///
    /// When the network fails to run, the stream starts anew: what the failed call has written is not known.
    pub fn push(&mut self, frame: &RgbImage) -> Result<Vec<Prediction>, StreamError> {
        let size = self.manifest.size;
        if frame.dimensions() != (size.width, size.height) {
            let (width, height) = frame.dimensions();
            return Err(StreamError::FrameSize {
                width,
                height,
                size,
            });
        }
        if self.step.stored() > 0 {
            return self.step(frame.as_raw());
        }
        self.waiting.extend_from_slice(frame.as_raw());
        self.pushed += 1;
        if self.pushed as usize == self.config.num_scale_frames {
            self.scale_call()
        } else {
            Ok(Vec::new())
        }
    }

    /// Ends the gathering of scale frames with those that there are; for a stream that ends early.
    pub fn finish(&mut self) -> Result<Vec<Prediction>, StreamError> {
        if self.waiting_frames() == 0 {
            Ok(Vec::new())
        } else {
            self.scale_call()
        }
    }

    /// Forgets all frames; memory stays allocated.
    pub fn reset(&mut self) {
        self.step.reset();
        self.keyframes = self.config.keyframe_rule();
        self.reference = None;
        self.waiting = Vec::new();
        self.pushed = 0;
    }

    fn scale_call(&mut self) -> Result<Vec<Prediction>, StreamError> {
        let frames = self.pushed as usize;
        let image = std::mem::take(&mut self.waiting);
        let result = self
            .step
            .scale_call(&image, frames, Vec::new())
            .map_err(StreamError::from);
        let result = result.and_then(|()| {
            (0..frames)
                .map(|frame| self.predict(frame, frame as u64, FrameType::Scale))
                .collect::<Result<Vec<_>, _>>()
        });
        // The scale call is the only large one: what it needed beyond a step goes back.
        self.step.release_buffers();
        match &result {
            Ok(predictions) => predictions.iter().for_each(|frame| self.refer_to(frame)),
            Err(_) => self.reset(),
        }
        result
    }

    fn step(&mut self, image: &[u8]) -> Result<Vec<Prediction>, StreamError> {
        let verdict = self.keyframes.verdict();
        let (role, frame_type) = match verdict {
            Verdict::Store => (FrameRole::Keyframe, FrameType::Keyframe),
            Verdict::Forget | Verdict::Await => (FrameRole::Other, FrameType::Other),
        };
        if let Err(error) = self.step.step(image, role, Vec::new()) {
            if matches!(error, StepError::Runtime(_)) {
                self.reset();
            }
            return Err(error.into());
        }
        let index = self.pushed;
        self.pushed += 1;
        let mut prediction = self.predict(0, index, frame_type)?;
        if verdict == Verdict::Await && self.keyframes.accepts(self.flow(&prediction)) {
            self.step.promote();
            prediction.frame_type = FrameType::Keyframe;
        }
        let stored = prediction.frame_type == FrameType::Keyframe;
        self.keyframes.advance(stored);
        if stored {
            self.refer_to(&prediction);
        }
        Ok(vec![prediction])
    }

    /// How far a frame moved against the last stored one, pixels. A prediction without a pose shows no motion: it is not
    /// worth storing.
    fn flow(&self, prediction: &Prediction) -> f64 {
        let current = self.view(prediction);
        current
            .zip(self.reference)
            .map_or(0.0, |(current, reference)| {
                mean_flow(prediction.depth.view(), &current, &reference)
            })
    }

    fn view(&self, prediction: &Prediction) -> Option<CameraView> {
        let (world_from_camera, intrinsics) =
            decode_pose(&prediction.pose_enc, self.manifest.size).ok()?;
        Some(CameraView {
            world_from_camera,
            intrinsics,
        })
    }

    fn refer_to(&mut self, prediction: &Prediction) {
        self.reference = self.view(prediction).or(self.reference);
    }

    /// The prediction for a frame of the last call.
    fn predict(
        &mut self,
        frame: usize,
        index: u64,
        frame_type: FrameType,
    ) -> Result<Prediction, StreamError> {
        let Dense {
            depth,
            depth_conf,
            world_points,
        } = self.heads.run(self.step.levels(frame))?;
        Ok(Prediction {
            index,
            frame_type,
            pose_enc: self.step.pose(frame),
            depth,
            depth_conf,
            world_points,
            window: 0,
            world_from_window: Similarity3::identity(),
            symptom: None,
        })
    }
}
