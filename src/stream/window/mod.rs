//! A stream in windows: each starts with fresh caches and is aligned to the one before by the frames that both saw.

mod alignment;
mod live;
mod planned;

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use image::RgbImage;

use self::live::Live;
use self::planned::Planned;
use super::{CacheStatus, GctStream, KeyframeInterval, Prediction, StreamConfig, StreamError};
use crate::network::manifest::Manifest;
use crate::runtime::{Provider, RuntimeOptions};
use crate::stages::StageTimes;

/// How a stream is cut into windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Stored frames of a window, scale frames included; more than these.
    pub window_size: usize,
    /// Overlap of two windows in keyframes, at least the scale frames; only where the number of frames is known.
    pub overlap_keyframes: Option<usize>,
    /// Overlap in frames, where `overlap_keyframes` is absent; if this is too, as many as scale frames.
    pub overlap_size: Option<usize>,
    pub alignment: WindowAlignment,
    /// Frames of the whole stream, if known. Then windows are cut and stitched as the reference implementation does: the
    /// frames of an overlap come from the later window, so they come late. Else, live, a window ends when `window_size`
    /// frames are stored, and the next one starts with the last `num_scale_frames` stored frames in one call: no
    /// prediction is late or changed.
    pub frames: Option<usize>,
}

/// How a window is aligned to the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowAlignment {
    /// Rotation and position of the last common keyframe, scale by the median ratio of depths: the reference
    /// implementation's.
    #[default]
    Reference,
    /// The similarity that takes the points of all common keyframes onto each other best, weighted by confidence.
    Robust,
}

impl FromStr for WindowAlignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "reference" => Ok(Self::Reference),
            "robust" => Ok(Self::Robust),
            _ => Err("use reference or robust".into()),
        }
    }
}

/// What happens when the network has lost its way, as [`super::CollapseWatch`] sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCollapse {
    /// Nothing; nobody watches.
    #[default]
    GoOn,
    /// A new window starts with the last healthy stored frames; where there are too few, a new map.
    NewWindow,
    /// The stream starts anew, in a world of its own.
    NewMap,
}

impl FromStr for OnCollapse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "go_on" => Ok(Self::GoOn),
            "new_window" => Ok(Self::NewWindow),
            "new_map" => Ok(Self::NewMap),
            _ => Err("use go_on, new_window or new_map".into()),
        }
    }
}

/// The windows of a stream of known length, as ranges of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowPlan {
    pub windows: Vec<Range<usize>>,
    /// Frames that two windows share.
    pub overlap: usize,
}

impl WindowConfig {
    /// Cuts `frames` frames into windows.
    ///
    /// # Errors
    /// A window that does not exceed its overlap.
    pub fn plan(&self, frames: usize, stream: &StreamConfig) -> Result<WindowPlan, StreamError> {
        let scale = stream.num_scale_frames.min(frames);
        let interval = match stream.keyframe_interval {
            KeyframeInterval::Every(interval) => interval.max(1),
            KeyframeInterval::Auto => 1,
        };
        let overlap = match (self.overlap_keyframes, self.overlap_size) {
            (Some(keyframes), _) => keyframes.saturating_mul(interval).max(scale),
            (None, size) => size.unwrap_or(scale),
        };
        let streamed = self.window_size.saturating_sub(scale);
        let length = streamed.saturating_mul(interval).saturating_add(scale);
        let mut plan = WindowPlan {
            windows: Vec::new(),
            overlap: overlap.min(frames.saturating_sub(1)),
        };
        if frames <= length {
            plan.windows.push(0..frames);
            return Ok(plan);
        }
        if plan.overlap >= length {
            return Err(StreamError::Config(format!(
                "windows of {length} frames (window_size {}) do not exceed their overlap of {} frames",
                self.window_size, plan.overlap
            )));
        }
        let step = length - plan.overlap;
        let mut start = 0;
        while start + length < frames {
            plan.windows.push(start..start + length);
            start += step;
        }
        plan.windows.push(start..frames);
        Ok(plan)
    }

    fn validate(&self, stream: &StreamConfig) -> Result<(), StreamError> {
        if self.window_size <= stream.num_scale_frames {
            return Err(StreamError::Config(format!(
                "window_size is {}, it must be more than num_scale_frames, {}",
                self.window_size, stream.num_scale_frames
            )));
        }
        if self.overlap_keyframes == Some(0) || self.overlap_size == Some(0) {
            let message = "windows need an overlap of at least one frame";
            return Err(StreamError::Config(message.into()));
        }
        Ok(())
    }
}

/// A stream of frames through the network, in one window or in many.
pub struct WindowedStream {
    stream: GctStream,
    course: Course,
}

enum Course {
    Single,
    Planned(Planned),
    Live(Live),
}

impl WindowedStream {
    /// Loads an exported model and allocates its caches, which all windows use in turn. Without `windows` there is one,
    /// until it collapses. Windows of a stream of known length are not watched.
    pub fn open(
        folder: &Path,
        runtime: &RuntimeOptions,
        config: StreamConfig,
        windows: Option<WindowConfig>,
        on_collapse: OnCollapse,
    ) -> Result<Self, StreamError> {
        let live = |window_size, alignment| {
            Course::Live(Live::new(
                window_size,
                config.num_scale_frames,
                alignment,
                on_collapse,
            ))
        };
        let course = match windows {
            None if on_collapse == OnCollapse::GoOn => Course::Single,
            None => live(usize::MAX, WindowAlignment::default()),
            Some(windows) => {
                windows.validate(&config)?;
                match windows.frames {
                    Some(frames) => Course::Planned(Planned::new(
                        windows.plan(frames, &config)?,
                        windows.alignment,
                    )),
                    None => live(windows.window_size, windows.alignment),
                }
            }
        };
        Ok(Self {
            stream: GctStream::open(folder, runtime, config)?,
            course,
        })
    }

    /// Takes the next frame; see [`GctStream::push`]. Predictions come in the order of the frames, each once.
    ///
    /// After an error that is not of memory the stream starts anew.
    pub fn push(&mut self, frame: &RgbImage) -> Result<Vec<Prediction>, StreamError> {
        let result = match &mut self.course {
            Course::Single => self.stream.push(frame),
            Course::Planned(course) => course.push(&mut self.stream, frame),
            Course::Live(course) => course.push(&mut self.stream, frame),
        };
        self.restart_on_error(result)
    }

    /// The predictions that are still to come, for a stream that has ended.
    pub fn finish(&mut self) -> Result<Vec<Prediction>, StreamError> {
        let result = match &mut self.course {
            Course::Single => self.stream.finish(),
            Course::Planned(course) => course.finish(&mut self.stream),
            Course::Live(course) => course.finish(&mut self.stream),
        };
        self.restart_on_error(result)
    }

    fn restart_on_error<T>(&mut self, result: Result<T, StreamError>) -> Result<T, StreamError> {
        if let Err(error) = &result
            && !matches!(
                error,
                StreamError::Memory(_) | StreamError::FrameSize { .. }
            )
        {
            self.reset();
        }
        result
    }

    /// Forgets all frames; memory stays allocated.
    pub fn reset(&mut self) {
        self.stream.reset();
        match &mut self.course {
            Course::Single => {}
            Course::Planned(course) => course.reset(),
            Course::Live(course) => course.reset(),
        }
    }

    /// Windows begun so far.
    pub fn windows(&self) -> usize {
        match &self.course {
            Course::Single => 1,
            Course::Planned(course) => course.window() + 1,
            Course::Live(course) => course.window() + 1,
        }
    }

    /// Collapses noticed so far.
    pub fn collapses(&self) -> u64 {
        match &self.course {
            Course::Single | Course::Planned(_) => 0,
            Course::Live(course) => course.collapses(),
        }
    }

    /// The model that runs.
    pub fn manifest(&self) -> &Manifest {
        self.stream.manifest()
    }

    pub fn config(&self) -> &StreamConfig {
        self.stream.config()
    }

    /// The provider that really runs the graphs.
    pub fn provider(&self) -> Provider {
        self.stream.provider()
    }

    /// Time spent in each stage since the model was loaded.
    pub fn stages(&self) -> StageTimes {
        self.stream.stages()
    }

    /// Scale frames that wait for their call.
    pub fn waiting_frames(&self) -> usize {
        self.stream.waiting_frames()
    }

    /// State of the token caches; rows are tokens.
    pub fn token_cache(&self) -> CacheStatus {
        self.stream.token_cache()
    }

    /// State of the camera head's caches; rows are frames.
    pub fn camera_cache(&self) -> CacheStatus {
        self.stream.camera_cache()
    }
}

#[cfg(test)]
mod tests;
