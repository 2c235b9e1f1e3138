//! Arguments that say how frames are streamed.

use anyhow::ensure;
use clap::{Args, ValueEnum};

use crate::stream::{
    KeyframeInterval, MemoryBudget, OnCollapse, StreamConfig, WindowAlignment, WindowConfig,
};

/// How frames are streamed; the model's own settings where nothing is given.
#[derive(Debug, Args)]
pub struct StreamArguments {
    /// Frames of the first call, which see each other and are kept for ever
    #[arg(long, value_name = "N")]
    num_scale_frames: Option<usize>,
    /// Later frames that are kept in full
    #[arg(long, value_name = "N")]
    kv_cache_sliding_window: Option<usize>,
    /// First frames that are kept in full for ever [default: as many as scale frames]
    #[arg(long, value_name = "N")]
    kv_cache_scale_frames: Option<usize>,
    /// Whether the special tokens of frames that leave the window stay (true or false)
    #[arg(long, value_name = "BOOL")]
    kv_cache_cross_frame_special: Option<bool>,
    /// Whether the scale frames stay when the window is full (true or false)
    #[arg(long, value_name = "BOOL")]
    kv_cache_include_scale_frames: Option<bool>,
    /// Every how many frames one may be stored; auto: the smallest interval that keeps the images within 320 stored frames
    #[arg(long, value_name = "N|auto")]
    keyframe_interval: Option<KeyframeInterval>,
    /// Of the frames that the interval admits, store those whose picture moved by more than this since the last stored
    /// one: mean optical flow, pixels of the network's input
    #[arg(long, value_name = "PIXELS")]
    flow_threshold: Option<f64>,
    /// Store a frame after this many, whatever interval and flow say [default: 30 with --flow-threshold, else none]
    #[arg(long, value_name = "N")]
    max_non_keyframe_gap: Option<usize>,
    /// Frames that have left the window of which something is remembered, at most about; the others are thinned out
    /// evenly [default: all]
    #[arg(long, value_name = "N")]
    history_frames: Option<usize>,
    /// Bytes that the stream may take, such as 4GiB, or auto: four fifths of what the system has available. The history is
    /// limited to what fits
    #[arg(long, value_name = "SIZE|auto", visible_alias = "vram")]
    memory_budget: Option<MemoryBudget>,
    /// Make the window smaller where the memory budget has no room for it
    #[arg(long, requires = "memory_budget")]
    memory_fit: bool,
    /// One window, or windows with fresh caches, each aligned to the one before
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// Stored frames of a window, scale frames included [default: 64]
    #[arg(long, value_name = "N")]
    window_size: Option<usize>,
    /// Frames that two windows share, counted in keyframes [default: as many frames as scale frames]
    #[arg(long, value_name = "N", conflicts_with = "overlap_size")]
    overlap_keyframes: Option<usize>,
    /// Frames that two windows share
    #[arg(long, value_name = "N")]
    overlap_size: Option<usize>,
    /// How a window is aligned to the one before: reference (the last common keyframe) or robust (the points of all)
    /// [default: reference]
    #[arg(long, value_name = "HOW")]
    window_alignment: Option<WindowAlignment>,
    /// When the network loses its way: go_on, new_window (from the last frames it knew well) or new_map
    #[arg(long, value_name = "WHAT")]
    on_collapse: Option<OnCollapse>,
    /// Stream as a node does, as if the number of images were not known
    #[arg(long, conflicts_with_all = ["overlap_keyframes", "overlap_size"])]
    live: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, ValueEnum)]
enum Mode {
    #[default]
    Streaming,
    Windowed,
}

/// Stored frames of a window where nothing is given, as in the reference implementation's demo.
const WINDOW_SIZE: usize = 64;

impl StreamArguments {
    /// `images` is how many there are to map.
    pub fn apply(&self, config: &mut StreamConfig, images: usize) {
        for (setting, asked) in [
            (&mut config.num_scale_frames, self.num_scale_frames),
            (
                &mut config.kv_cache_sliding_window,
                self.kv_cache_sliding_window,
            ),
        ] {
            *setting = asked.unwrap_or(*setting);
        }
        for (setting, asked) in [
            (
                &mut config.kv_cache_cross_frame_special,
                self.kv_cache_cross_frame_special,
            ),
            (
                &mut config.kv_cache_include_scale_frames,
                self.kv_cache_include_scale_frames,
            ),
        ] {
            *setting = asked.unwrap_or(*setting);
        }
        config.kv_cache_scale_frames = self.kv_cache_scale_frames.or(config.kv_cache_scale_frames);
        config.keyframe_interval = match self.keyframe_interval {
            None => config.keyframe_interval,
            // A window is within the range by itself.
            Some(KeyframeInterval::Auto) if self.mode == Mode::Windowed => {
                KeyframeInterval::Every(1)
            }
            Some(KeyframeInterval::Auto) if !self.live => {
                KeyframeInterval::for_frames(images, config.num_scale_frames)
            }
            Some(interval) => interval,
        };
        config.flow_threshold = self.flow_threshold.or(config.flow_threshold);
        config.max_non_keyframe_gap = self.max_non_keyframe_gap.or(config.max_non_keyframe_gap);
        config.history_frames = self.history_frames.or(config.history_frames);
        config.memory_budget = self.memory_budget.or(config.memory_budget);
        config.memory_fit |= self.memory_fit;
    }

    pub fn on_collapse(&self) -> OnCollapse {
        self.on_collapse.unwrap_or_default()
    }

    /// How `images` images are cut into windows.
    pub fn windows(&self, images: usize) -> anyhow::Result<Option<WindowConfig>> {
        if self.mode == Mode::Windowed {
            return Ok(Some(WindowConfig {
                window_size: self.window_size.unwrap_or(WINDOW_SIZE),
                overlap_keyframes: self.overlap_keyframes,
                overlap_size: self.overlap_size,
                alignment: self.window_alignment.unwrap_or_default(),
                frames: (!self.live).then_some(images),
            }));
        }
        let overlap = self.overlap_keyframes.or(self.overlap_size);
        ensure!(
            self.window_size.or(overlap).is_none() && self.window_alignment.is_none(),
            "windows are cut with --mode windowed only"
        );
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        stream: StreamArguments,
    }

    fn parse(text: &str) -> Result<StreamArguments, clap::Error> {
        let line = std::iter::once("run").chain(text.split_whitespace());
        Line::try_parse_from(line).map(|line| line.stream)
    }

    #[test]
    fn stream_settings_replace_the_models() {
        let model = StreamConfig {
            num_scale_frames: 4,
            kv_cache_sliding_window: 8,
            ..StreamConfig::default()
        };
        let settings = |extra: &str| {
            let mut config = model;
            parse(extra).unwrap().apply(&mut config, 1000);
            config
        };
        assert_eq!(settings(""), model);
        let expected = StreamConfig {
            num_scale_frames: 2,
            kv_cache_scale_frames: Some(6),
            kv_cache_sliding_window: 3,
            kv_cache_cross_frame_special: false,
            kv_cache_include_scale_frames: false,
            keyframe_interval: KeyframeInterval::Every(5),
            flow_threshold: Some(2.5),
            max_non_keyframe_gap: Some(7),
            history_frames: Some(90),
            memory_budget: Some(MemoryBudget::Bytes(1 << 30)),
            memory_fit: true,
        };
        assert_eq!(
            settings(
                "--num-scale-frames 2 --kv-cache-sliding-window 3 --kv-cache-scale-frames 6 \
                 --kv-cache-cross-frame-special false --kv-cache-include-scale-frames false \
                 --keyframe-interval 5 --flow-threshold 2.5 --max-non-keyframe-gap 7 \
                 --history-frames 90 --memory-budget 1GiB --memory-fit"
            ),
            expected
        );
        assert_eq!(
            settings("--keyframe-interval auto").keyframe_interval,
            KeyframeInterval::Every(4)
        );
        let auto = |extra: &str| settings(&format!("--keyframe-interval auto {extra}"));
        assert_eq!(auto("--live").keyframe_interval, KeyframeInterval::Auto);
        assert_eq!(
            auto("--mode windowed").keyframe_interval,
            KeyframeInterval::Every(1)
        );
        assert!(parse("--keyframe-interval 0").is_err());
    }

    #[test]
    fn windows_are_cut_only_where_they_are_asked_for() {
        let windows = |text: &str| parse(text).unwrap().windows(500);
        assert_eq!(windows("").unwrap(), None);
        assert!(windows("--window-size 20").is_err());
        assert!(windows("--overlap-size 20").is_err());
        let expected = WindowConfig {
            window_size: 20,
            overlap_keyframes: Some(3),
            overlap_size: None,
            alignment: WindowAlignment::Robust,
            frames: Some(500),
        };
        let asked =
            "--mode windowed --window-size 20 --overlap-keyframes 3 --window-alignment robust";
        assert_eq!(windows(asked).unwrap(), Some(expected));
        let live = windows("--mode windowed --live").unwrap().unwrap();
        assert_eq!((live.window_size, live.frames), (WINDOW_SIZE, None));
        assert!(parse("--mode windowed --live --overlap-size 4").is_err());
    }
}
