//! What lives between frames: the cache of keys and values, and the stream of frames through the network.

mod cache;
mod gct_stream;
mod heads;
mod keyframe;
mod layout;
mod step;

pub use cache::{CacheError, CacheStatus, KvCache};
pub use gct_stream::{FrameType, GctStream, Prediction, StreamError};
pub use keyframe::KeyframeRule;
pub use layout::{CacheLayout, FrameRole, RowCopy, StepPlan};
pub use step::{StepError, StepRunner};

use crate::network::config::NetworkConfig;

/// How frames are streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// Frames of the first call, which see each other; at least 1.
    pub num_scale_frames: usize,
    /// First stored frames that are kept in full for ever; absent: as many as `num_scale_frames`.
    pub kv_cache_scale_frames: Option<usize>,
    /// Later frames that are kept in full; at least 1.
    pub kv_cache_sliding_window: usize,
    /// Every how many frames after the scale frames one is stored; at least 1.
    pub keyframe_interval: usize,
}

impl StreamConfig {
    /// Largest value of a setting; far beyond any memory, and small enough that no size overflows.
    const LARGEST: usize = 100_000;

    /// First stored frames that are kept in full for ever.
    pub fn kept_scale_frames(&self) -> usize {
        self.kv_cache_scale_frames.unwrap_or(self.num_scale_frames)
    }

    fn validate(&self) -> Result<(), StreamError> {
        for (name, value) in [
            ("num_scale_frames", self.num_scale_frames),
            ("kv_cache_scale_frames", self.kept_scale_frames()),
            ("kv_cache_sliding_window", self.kv_cache_sliding_window),
            ("keyframe_interval", self.keyframe_interval),
        ] {
            if !(1..=Self::LARGEST).contains(&value) {
                let message = format!(
                    "{name} is {value}, it must be between 1 and {}",
                    Self::LARGEST
                );
                return Err(StreamError::Config(message));
            }
        }
        if self.num_scale_frames > self.kept_scale_frames() + self.kv_cache_sliding_window {
            let message = "num_scale_frames exceeds kv_cache_scale_frames and kv_cache_sliding_window together";
            return Err(StreamError::Config(message.into()));
        }
        Ok(())
    }

    /// What a model was trained or published with.
    pub fn of_model(network: &NetworkConfig) -> Self {
        let demo = network.demo.as_ref();
        Self {
            num_scale_frames: demo
                .and_then(|demo| demo.num_scale_frames)
                .unwrap_or(network.scale_frames),
            kv_cache_scale_frames: None,
            kv_cache_sliding_window: network.window,
            keyframe_interval: demo.and_then(|demo| demo.keyframe_interval).unwrap_or(1),
        }
    }
}
