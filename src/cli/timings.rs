//! What a run took, for `timings.json`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::process;

/// Contents of `timings.json`.
#[derive(Debug, Serialize)]
pub struct Timings {
    pub version: &'static str,
    /// Images in the folder.
    pub images: usize,
    /// Whether the run was stopped before the last image.
    pub interrupted: bool,
    /// Images that could not be read, by reason.
    pub skipped: BTreeMap<&'static str, usize>,
    pub frames_mapped: u64,
    /// Frames left out before the network because nothing had moved.
    pub still_frames: u64,
    /// Windows that the stream was cut into.
    pub windows: usize,
    /// How often the network lost its way.
    pub collapses: u64,
    /// Frames that gave no pose or were refused, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    pub map_points: usize,
    pub provider: String,
    /// Of the network's input, pixels.
    pub height: u32,
    pub width: u32,
    /// Loading the model.
    pub open_seconds: f64,
    /// From the first image to the last.
    pub mapping_seconds: f64,
    /// The call that maps all scale frames.
    pub scale_call_seconds: f64,
    /// Reading and decoding an image.
    pub decode_seconds: Summary,
    /// Mapping one frame after the scale frames: fitting, network, filter, map.
    pub step_seconds: Summary,
    pub peak_memory_bytes: Option<u64>,
}

/// Durations in seconds.
#[derive(Debug, Default, Serialize, PartialEq)]
pub struct Summary {
    pub count: usize,
    pub total: f64,
    pub mean: f64,
    pub median: f64,
    pub p95: f64,
    pub max: f64,
}

impl Summary {
    pub fn new(durations: &[Duration]) -> Self {
        let mut seconds: Vec<f64> = durations.iter().map(Duration::as_secs_f64).collect();
        seconds.sort_by(f64::total_cmp);
        let total: f64 = seconds.iter().sum();
        let quantile = |q: f64| {
            let index = (q * seconds.len() as f64).ceil() as usize;
            seconds.get(index.saturating_sub(1)).copied().unwrap_or(0.0)
        };
        Self {
            count: seconds.len(),
            total,
            mean: total / seconds.len().max(1) as f64,
            median: quantile(0.5),
            p95: quantile(0.95),
            max: seconds.last().copied().unwrap_or(0.0),
        }
    }
}

/// The most memory that this process has held, where the system says so.
pub fn peak_memory() -> Option<u64> {
    process::memory("VmHWM")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_values() {
        let durations: Vec<Duration> = (1..=100).rev().map(Duration::from_secs).collect();
        let summary = Summary::new(&durations);
        assert_eq!(
            (summary.count, summary.total, summary.mean),
            (100, 5050.0, 50.5)
        );
        assert_eq!(
            (summary.median, summary.p95, summary.max),
            (50.0, 95.0, 100.0)
        );
        let one = Summary::new(&[Duration::from_secs(2)]);
        assert_eq!((one.median, one.p95, one.max), (2.0, 2.0, 2.0));
        assert_eq!(Summary::new(&[]), Summary::default());
    }

    #[test]
    fn peak_memory_is_more_than_nothing() {
        assert!(peak_memory().unwrap() > 1 << 20);
    }
}
