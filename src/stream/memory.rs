//! Where every byte of a stream goes, before it starts.

use std::fmt;
use std::str::FromStr;

use super::StreamConfig;
use super::config::LEAST_HISTORY;
use super::keyframe::{KeyframeInterval, Verdict};
use crate::camera::NetworkSize;
use crate::network::config::NetworkConfig;
use crate::network::grid::{PatchGrid, SPECIAL_TOKENS};
use crate::network::inputs::LEVELS;

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryItem {
    pub name: &'static str,
    /// Bytes allocated.
    pub reserved: u64,
    /// Bytes of them that are ever touched; the system gives memory for these only.
    pub used: u64,
    /// Whether the numbers are arithmetic, not estimates.
    pub exact: bool,
}

/// The memory of a stream after its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    pub items: Vec<MemoryItem>,
    /// Frames stored in full or in part.
    pub stored: usize,
    /// Rows of a token cache that are in use.
    pub attended_tokens: usize,
}

impl MemoryPlan {
    pub fn reserved(&self) -> u64 {
        self.items.iter().map(|item| item.reserved).sum()
    }

    pub fn used(&self) -> u64 {
        self.items.iter().map(|item| item.used).sum()
    }
}

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRequest<'a> {
    pub network: &'a NetworkConfig,
    pub size: NetworkSize,
    pub camera_num_iterations: usize,
    /// Bytes of the model's files.
    pub weights: u64,
    pub stream: &'a StreamConfig,
    /// Stored frames after which a window ends, where the stream is cut into windows.
    pub window_size: Option<usize>,
}

const F32: u64 = size_of::<f32>() as u64;

// Fitted to measurements on the CPU provider of ONNX Runtime 1.32; the sum of a plan was within 4 % of the resident memory for
// the demo network and for one of 384 channels. Beyond that size the estimates extrapolate.

/// Program, libraries and what ONNX Runtime keeps for itself: 49 to 57 MiB, according to how much of the libraries' files
/// the system maps at once.
const PROGRAM: u64 = 50 << 20;
/// Values that are live at the widest place of a block, for each channel of a token: some that do not depend on the MLP's
/// width, and some that are as wide.
const BLOCK_VALUES: (f64, f64) = (3.0, 4.0);
/// Values that are live at the widest place of a dense head, for each pixel: some, and some for each feature.
const DENSE_VALUES: (f64, f64) = (34.0, 1.58);

impl MemoryRequest<'_> {
    /// The memory after `frames` frames. Of frames that only their flow can decide about, all count as stored.
    pub fn plan(&self, frames: usize) -> MemoryPlan {
        let stored = self.stored(frames);
        let grid = PatchGrid::from(self.size);
        let rules = self.stream.cache_rules(grid);
        let first = self.stream.first_segment(&rules);
        let kept = rules.kept_specials();
        let evicted = stored.saturating_sub(rules.full_frames());
        let limit = rules.history.unwrap_or(usize::MAX);
        let history = (kept * evicted).min(limit);
        let full = stored.min(rules.full_frames());
        let spare = usize::from(self.leaves_frames_unstored());

        let first_history = first.tokens - rules.capacity_for(0);
        let grown = match rules.history {
            Some(_) => first_history,
            None => grown(first_history, kept, history),
        };
        let token = self.token_row_bytes();
        let tokens = |rows: usize| rows as u64 * token;
        let frame = |frames: usize| tokens(frames * rules.frame_tokens);
        let camera = self.camera_row_bytes();
        let limit = self.stream.camera_limit().unwrap_or(usize::MAX);
        let camera_rows = stored.min(limit);
        let camera_capacity = match self.stream.camera_limit() {
            Some(_) => first.cameras,
            None => grown_cameras(first.cameras, camera_rows + spare),
        };
        let exact = |name, reserved, used| MemoryItem {
            name,
            reserved,
            used,
            exact: true,
        };
        let estimate = |name, bytes| MemoryItem {
            name,
            reserved: bytes,
            used: bytes,
            exact: false,
        };
        let scale = rules.scale_frames;
        let items = vec![
            exact("weights", self.weights, self.weights),
            exact("tokens: scale frames", frame(scale), frame(full.min(scale))),
            exact(
                "tokens: window",
                frame(rules.window),
                frame(full.saturating_sub(scale)),
            ),
            exact("tokens: specials", tokens(grown), tokens(history)),
            exact("tokens: spare frame", frame(1), frame(spare)),
            exact(
                "camera caches",
                camera_capacity as u64 * camera,
                (camera_rows + spare) as u64 * camera,
            ),
            exact(
                "images of the scale call",
                self.image_bytes(),
                self.image_bytes(),
            ),
            exact(
                "levels and tables of a call",
                self.call_bytes(),
                self.call_bytes(),
            ),
            estimate("activations", self.activation_bytes()),
            estimate("predictions", self.prediction_bytes()),
            estimate("program and libraries", PROGRAM),
        ];
        MemoryPlan {
            items,
            stored,
            attended_tokens: full * rules.frame_tokens + history,
        }
    }

    /// Bytes of one row of all token caches together.
    fn token_row_bytes(&self) -> u64 {
        2 * F32 * (self.network.depth * self.network.embed_dim) as u64
    }

    /// Bytes of one row of all camera caches together.
    fn camera_row_bytes(&self) -> u64 {
        let caches = self.camera_num_iterations * self.network.cam_depth;
        2 * F32 * (caches * 2 * self.network.embed_dim) as u64
    }

    /// Bytes that a further frame of history takes for ever.
    fn history_frame_bytes(&self) -> u64 {
        SPECIAL_TOKENS as u64 * self.token_row_bytes() + self.camera_row_bytes()
    }

    fn leaves_frames_unstored(&self) -> bool {
        self.stream.flow_threshold.is_some()
            || self.stream.keyframe_interval != KeyframeInterval::Every(1)
    }

    fn stored(&self, frames: usize) -> usize {
        let scale = self.stream.num_scale_frames.min(frames);
        let mut rule = self.stream.keyframe_rule();
        let streamed = (scale..frames).filter(|_| {
            let stored = rule.verdict() != Verdict::Forget;
            rule.advance(stored);
            stored
        });
        let stored = scale + streamed.count();
        self.window_size.map_or(stored, |size| stored.min(size))
    }

    fn scale_tokens(&self) -> u64 {
        (self.stream.num_scale_frames * PatchGrid::from(self.size).tokens()) as u64
    }

    fn pixels(&self) -> u64 {
        u64::from(self.size.height) * u64::from(self.size.width)
    }

    fn image_bytes(&self) -> u64 {
        3 * self.pixels() * self.stream.num_scale_frames as u64
    }

    /// Levels, and the rotary tables of frame and global blocks.
    fn call_bytes(&self) -> u64 {
        let (dim, half) = (self.network.embed_dim, self.network.head_dim / 2);
        self.scale_tokens() * F32 * (LEVELS.len() * 2 * dim + 4 * half) as u64
    }

    /// What ONNX Runtime holds at the widest place of the largest call.
    fn activation_bytes(&self) -> u64 {
        let width = BLOCK_VALUES.0 + BLOCK_VALUES.1 * self.network.mlp_ratio as f64;
        let block = self.scale_tokens() as f64 * self.network.embed_dim as f64 * width;
        let features = DENSE_VALUES.0 + DENSE_VALUES.1 * self.network.dpt_features as f64;
        let dense = self.pixels() as f64 * features;
        ((block + dense) * F32 as f64) as u64
    }

    /// Of a scale call, whose predictions come all at once.
    fn prediction_bytes(&self) -> u64 {
        let values = if self.network.enable_point { 6 } else { 2 };
        values * F32 * self.pixels() * self.stream.num_scale_frames as u64
    }

    /// The settings with which the stream stays within `budget` bytes for ever: a limited history and, with `fit`, a
    /// smaller window where there is no room for the one asked for.
    pub fn within(&self, budget: u64, fit: bool) -> Result<StreamConfig, BudgetError> {
        let needed = |window: usize| {
            let stream = StreamConfig {
                kv_cache_sliding_window: window,
                history_frames: Some(LEAST_HISTORY),
                ..*self.stream
            };
            let request = MemoryRequest {
                stream: &stream,
                ..*self
            };
            request.plan(usize::from(u16::MAX)).reserved()
        };
        let asked = self.stream.kv_cache_sliding_window;
        let fits = |window: &usize| needed(*window) <= budget;
        let window = match (fits(&asked), fit) {
            (true, _) => asked,
            (false, true) if fits(&1) => largest(asked, fits),
            (false, _) => {
                return Err(BudgetError {
                    budget,
                    needed: needed(asked),
                    window: fits(&1).then(|| largest(asked, fits)),
                });
            }
        };
        let room = (budget - needed(window)) / self.history_frame_bytes();
        let frames = LEAST_HISTORY + usize::try_from(room).unwrap_or(usize::MAX / 2);
        let frames = frames.min(StreamConfig::LARGEST);
        Ok(StreamConfig {
            kv_cache_sliding_window: window,
            history_frames: Some(
                self.stream
                    .history_frames
                    .map_or(frames, |own| own.min(frames)),
            ),
            ..*self.stream
        })
    }
}

/// The largest number from 1 to below `end` that `fits`, as 1 does.
fn largest(end: usize, fits: impl Fn(&usize) -> bool) -> usize {
    let (mut fitting, mut too_large) = (1, end);
    while too_large - fitting > 1 {
        let middle = fitting.midpoint(too_large);
        if fits(&middle) {
            fitting = middle;
        } else {
            too_large = middle;
        }
    }
    fitting
}

/// Rows for special tokens after the caches have moved as often as `needed` rows took, `step` at a time.
fn grown(first: usize, step: usize, needed: usize) -> usize {
    let mut rows = first;
    while rows < needed {
        rows = 2 * (rows + step);
    }
    rows
}

/// The same for the camera caches, which double what they need.
fn grown_cameras(first: usize, needed: usize) -> usize {
    grown(first, 1, needed)
}

/// A memory budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBudget {
    Bytes(u64),
    /// Four fifths of what the system has available at the start.
    Auto,
}

impl MemoryBudget {
    /// In bytes; `None` where the system does not say what it has.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Auto => Some(available_memory()? / 5 * 4),
        }
    }
}

/// Memory that the system can give without swapping.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

impl FromStr for MemoryBudget {
    type Err = String;

    /// `auto`, or a number with one of the units KiB, MiB, GiB, KB, MB, GB, or of bytes.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let digits = text
            .trim_end_matches(|c: char| c.is_ascii_alphabetic())
            .trim_end();
        let unit = match text[digits.len()..].trim() {
            "" | "B" => 1.0,
            "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "KiB" => f64::from(1 << 10),
            "MiB" => f64::from(1 << 20),
            "GiB" => f64::from(1 << 30),
            unit => {
                return Err(format!(
                    "unknown unit {unit:?}: use KiB, MiB, GiB, KB, MB or GB"
                ));
            }
        };
        match digits.parse::<f64>() {
            Ok(number) if number > 0.0 && number * unit < 1e18 => {
                Ok(Self::Bytes((number * unit) as u64))
            }
            _ => Err("use auto, or a size such as 4GiB".into()),
        }
    }
}

/// A budget that is too small for the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BudgetError {
    pub budget: u64,
    pub needed: u64,
    /// The largest window that would fit.
    pub window: Option<usize>,
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        write!(
            f,
            "the memory budget is {} MiB, the settings need {} MiB: ",
            mib(self.budget),
            mib(self.needed)
        )?;
        match self.window {
            Some(window) => write!(f, "kv_cache_sliding_window {window} would fit"),
            None => write!(
                f,
                "no window fits, a smaller image size or a larger budget is needed"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
