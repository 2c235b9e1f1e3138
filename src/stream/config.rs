use super::StreamError;
use super::cameras::CameraLayout;
use super::keyframe::{KeyframeInterval, KeyframeRule, TRAINED_VIEWS};
use super::layout::CacheRules;
use super::memory::MemoryBudget;
use crate::network::config::NetworkConfig;
use crate::network::grid::{PatchGrid, SPECIAL_TOKENS};

/// How frames are streamed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamConfig {
    /// Frames of the first call, which see each other; at least 1.
    pub num_scale_frames: usize,
    /// First stored frames that are kept in full for ever; absent: as many as `num_scale_frames`.
    pub kv_cache_scale_frames: Option<usize>,
    /// Later frames that are kept in full; at least 1.
    pub kv_cache_sliding_window: usize,
    /// Whether the special tokens of frames that leave the window stay.
    pub kv_cache_cross_frame_special: bool,
    /// Whether the scale frames stay when the window is full for the first time; else they leave whole. From then on
    /// exactly the window stays in full, where the reference implementation lets it grow by the scale frames' number before
    /// it cuts it back.
    pub kv_cache_include_scale_frames: bool,
    /// Every how many frames after the scale frames one is stored.
    pub keyframe_interval: KeyframeInterval,
    /// Mean optical flow, pixels, above which a frame that the interval admits is stored; absent: all that it admits.
    pub flow_threshold: Option<f64>,
    /// Frames after which one is stored whatever interval and flow say; absent: 30 with a flow threshold, else no limit.
    pub max_non_keyframe_gap: Option<usize>,
    /// Frames that have left the window of which something is remembered, at most about; absent: all. Special tokens have
    /// room for so many frames, or half as many more with their registers alone; camera caches for so many.
    pub history_frames: Option<usize>,
    /// Bytes that the stream may take; decides `history_frames`. Absent: as many as it takes.
    pub memory_budget: Option<MemoryBudget>,
    /// Whether a window that a budget has no room for is made smaller; else that is an error.
    pub memory_fit: bool,
}

impl Default for StreamConfig {
    /// The numbers that the released network was trained with.
    fn default() -> Self {
        Self {
            num_scale_frames: 8,
            kv_cache_scale_frames: None,
            kv_cache_sliding_window: 64,
            kv_cache_cross_frame_special: true,
            kv_cache_include_scale_frames: true,
            keyframe_interval: KeyframeInterval::Every(1),
            flow_threshold: None,
            max_non_keyframe_gap: None,
            history_frames: None,
            memory_budget: None,
            memory_fit: false,
        }
    }
}

/// Rows of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheRows {
    pub tokens: usize,
    pub cameras: usize,
}

/// Evicted frames that the first segment of a growing cache has room for.
const FIRST_SEGMENT_FRAMES: usize = 64;

impl StreamConfig {
    /// Largest value of a setting; far beyond any memory, and small enough that no size overflows.
    pub(super) const LARGEST: usize = 100_000;

    /// First stored frames that are kept in full for ever.
    pub fn kept_scale_frames(&self) -> usize {
        self.kv_cache_scale_frames.unwrap_or(self.num_scale_frames)
    }

    /// What a model was trained or published with.
    pub fn of_model(network: &NetworkConfig) -> Self {
        let demo = network.demo.as_ref();
        Self {
            num_scale_frames: demo
                .and_then(|demo| demo.num_scale_frames)
                .unwrap_or(network.scale_frames),
            kv_cache_sliding_window: network.window,
            keyframe_interval: KeyframeInterval::Every(
                demo.and_then(|demo| demo.keyframe_interval).unwrap_or(1),
            ),
            ..Self::default()
        }
    }

    pub(super) fn validate(&self) -> Result<(), StreamError> {
        let interval = match self.keyframe_interval {
            KeyframeInterval::Every(interval) => interval,
            KeyframeInterval::Auto => 1,
        };
        for (name, value) in [
            ("num_scale_frames", self.num_scale_frames),
            ("kv_cache_scale_frames", self.kept_scale_frames()),
            ("kv_cache_sliding_window", self.kv_cache_sliding_window),
            ("keyframe_interval", interval),
            (
                "max_non_keyframe_gap",
                self.max_non_keyframe_gap.unwrap_or(1),
            ),
            (
                "history_frames",
                self.history_frames.unwrap_or(LEAST_HISTORY),
            ),
        ] {
            if !(1..=Self::LARGEST).contains(&value) {
                let message = format!(
                    "{name} is {value}, it must be between 1 and {}",
                    Self::LARGEST
                );
                return Err(StreamError::Config(message));
            }
        }
        if let Some(threshold) = self.flow_threshold
            && !(threshold >= 0.0 && threshold.is_finite())
        {
            let message = format!("flow_threshold is {threshold}, it must be pixels from 0 on");
            return Err(StreamError::Config(message));
        }
        if self.num_scale_frames > self.kept_scale_frames() + self.kv_cache_sliding_window {
            let message = "num_scale_frames exceeds kv_cache_scale_frames and kv_cache_sliding_window together";
            return Err(StreamError::Config(message.into()));
        }
        Ok(())
    }

    pub(super) fn keyframe_rule(&self) -> KeyframeRule {
        KeyframeRule::new(
            self.keyframe_interval,
            self.flow_threshold,
            self.max_non_keyframe_gap,
        )
    }

    /// Frames kept in full.
    fn full_frames(&self) -> usize {
        self.kept_scale_frames() + self.kv_cache_sliding_window
    }

    /// Evicted frames that are remembered at most.
    fn history_limit(&self) -> Option<usize> {
        let trained = match self.keyframe_interval {
            KeyframeInterval::Every(_) => None,
            KeyframeInterval::Auto => Some(TRAINED_VIEWS.saturating_sub(self.full_frames())),
        };
        let limit = trained.into_iter().chain(self.history_frames).min()?;
        Some(limit.max(LEAST_HISTORY))
    }

    /// Rows that stay in a camera cache at most.
    pub(super) fn camera_limit(&self) -> Option<usize> {
        Some(self.full_frames() + self.history_limit()?)
    }

    pub(super) fn cache_rules(&self, grid: PatchGrid) -> CacheRules {
        CacheRules {
            frame_tokens: grid.tokens(),
            special_tokens: SPECIAL_TOKENS,
            scale_frames: self.kept_scale_frames(),
            window: self.kv_cache_sliding_window,
            keep_specials: self.kv_cache_cross_frame_special,
            keep_scale_frames: self.kv_cache_include_scale_frames,
            history: self.history_limit().map(|frames| frames * SPECIAL_TOKENS),
        }
    }

    pub(super) fn camera_layout(&self) -> CameraLayout {
        CameraLayout::new(
            self.kept_scale_frames(),
            self.kv_cache_sliding_window,
            self.camera_limit(),
        )
    }

    /// Rows allocated at the start: all that there will ever be where the history is limited.
    pub(super) fn first_segment(&self, rules: &CacheRules) -> CacheRows {
        let tokens = match rules.history {
            Some(rows) => rows,
            None => FIRST_SEGMENT_FRAMES * rules.kept_specials(),
        };
        CacheRows {
            tokens: rules.capacity_for(tokens),
            cameras: match self.camera_limit() {
                // A frame that is not stored takes a row too.
                Some(limit) => limit + 1,
                None => self.full_frames() + FIRST_SEGMENT_FRAMES,
            },
        }
    }
}

/// Evicted frames that any limit leaves room for; fewer could not be thinned evenly.
pub(super) const LEAST_HISTORY: usize = 16;
