//! What the node knows about itself; written by the threads that work, read by the diagnostics.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use super::{
    input::Refusal,
    statistics::{Latencies, Rate},
};
use crate::{camera::Stamp, mapper::MapperStatus, process};

#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Messages that arrived on the image topic.
    pub received: u64,
    pub arrivals: Rate,
    /// Frames refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// New maps begun because the camera's clock went back.
    pub clock_jumps: u64,
    /// New maps begun after a gap, and because images came in another size.
    pub new_maps_by_gap: u64,
    pub new_maps_by_size: u64,
    /// Longer times between two images than expected.
    pub gaps: u64,
    pub publishers: Publishers,
    /// What is known of the camera's calibration, in words.
    pub calibration: String,
    pub field_of_view: Option<FieldOfView>,
    pub camera_frame: String,
    /// None until the model is loaded.
    pub mapper: Option<MapperStatus>,
    /// Time spent in the mapper, and the frames that came out of it.
    pub mapping_time: Duration,
    pub frames_mapped: u64,
    pub mapped: Rate,
    /// From the arrival of an image to the last message about it.
    pub latencies: Latencies,
    /// Stamp of the newest mapped image.
    pub last_mapped: Option<Stamp>,
    /// Keyframes of this map, scale frames included.
    pub keyframes: u64,
    pub is_paused: bool,
    /// What is known of the map's unit, in words.
    pub scale: String,
    /// Images that came while the node was paused.
    pub paused_frames: u64,
    /// Transforms of other nodes that could not be used, and poses for which their odometry was missing.
    pub unusable_transforms: u64,
    pub odometry_missing: u64,
}

impl Snapshot {
    pub fn seconds_per_frame(&self) -> Option<f64> {
        (self.frames_mapped > 0)
            .then(|| self.mapping_time.as_secs_f64() / self.frames_mapped as f64)
    }
}

/// Horizontal, in degrees, of the network's picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldOfView {
    /// Mean of the last frames.
    pub predicted: f64,
    pub calibrated: f64,
}

impl FieldOfView {
    pub fn difference(&self) -> f64 {
        (self.predicted - self.calibrated).abs()
    }
}

/// Who sends images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Publishers {
    pub seen: usize,
    /// Why none of their images can arrive, in words; absent where they can, and without any.
    pub mismatch: Option<String>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publisher {
    /// Of its node, in full.
    pub node: String,
    pub message_type: String,
    pub is_best_effort: bool,
}

impl Publishers {
    pub fn new(found: &[Publisher], expected_type: &str, asks_reliable: bool) -> Publishers {
        let mismatch = |publisher: &Publisher| {
            if publisher.message_type != expected_type {
                return Some(format!(
                    "{} sends {}, not {expected_type}: set image_topic or image_transport",
                    publisher.node, publisher.message_type,
                ));
            }
            (asks_reliable && publisher.is_best_effort).then(|| {
                format!(
                    "{} offers best effort, the node asks for reliable: set qos.reliability to best_effort",
                    publisher.node
                )
            })
        };
        Publishers {
            seen: found.len(),
            // One that fits is enough.
            mismatch: found.iter().map(mismatch).reduce(Option::and).flatten(),
        }
    }
}

#[derive(Debug, Default)]
pub struct Health(Mutex<Snapshot>);

/// Whether the n-th event of a kind is worth a line in the log: the first, the tenth, the hundredth ...
pub fn is_told(count: u64) -> bool {
    count > 0 && 10u64.pow(count.ilog10()) == count
}

impl Health {
    pub fn lock(&self) -> MutexGuard<'_, Snapshot> {
        // Counters stay true whatever thread ended while it held them.
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn snapshot(&self) -> Snapshot {
        self.lock().clone()
    }

    pub fn arrival(&self) {
        let mut state = self.lock();
        state.received += 1;
        state.arrivals.note(Instant::now());
    }

    /// Counts a new map that a clock began which went back.
    pub fn clock_jump(&self) {
        let mut state = self.lock();
        state.clock_jumps += 1;
        if is_told(state.clock_jumps) {
            log::warn!(
                "the camera's clock went back: a new map begins ({} so far)",
                state.clock_jumps
            );
        }
    }

    /// Notes who sends images; a mismatch is told when it comes up.
    pub fn publishers(&self, publishers: Publishers) {
        let mut state = self.lock();
        if state.publishers.mismatch != publishers.mismatch
            && let Some(mismatch) = &publishers.mismatch
        {
            log::warn!("no image can arrive: {mismatch}");
        }
        state.publishers = publishers;
    }

    /// Counts a refusal; the first of its kind is told in the log.
    pub fn refuse(&self, refusal: &Refusal) {
        let reason = refusal.reason();
        let mut state = self.lock();
        let count = state.refused.entry(reason).or_default();
        *count += 1;
        if *count == 1 {
            log::warn!(
                "a frame is refused: {refusal} (more of this kind are only counted, see /diagnostics: {reason})"
            );
        }
    }
}

/// Resident memory of this process now and at its peak, in bytes.
pub fn memory() -> Option<(u64, u64)> {
    Some((process::memory("VmRSS")?, process::memory("VmHWM")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::order::Disorder;

    #[test]
    fn events_are_told_at_powers_of_ten() {
        let told: Vec<u64> = (0..=1000).filter(|count| is_told(*count)).collect();
        assert_eq!(told, [1, 10, 100, 1000]);
    }

    #[test]
    fn refusals_are_counted_by_reason() {
        let health = Health::default();
        health.refuse(&Disorder::NotLater.into());
        health.refuse(&Disorder::NotLater.into());
        health.refuse(&Refusal::UnsetStamp);
        let refused = health.snapshot().refused;
        assert_eq!(refused.get("stamp_not_later"), Some(&2));
        assert_eq!(refused.get("unset_stamp"), Some(&1));
    }

    #[test]
    fn seconds_per_frame_needs_a_frame() {
        let mut state = Snapshot {
            mapping_time: Duration::from_secs(6),
            ..Default::default()
        };
        assert_eq!(state.seconds_per_frame(), None);
        state.frames_mapped = 4;
        assert_eq!(state.seconds_per_frame(), Some(1.5));
    }

    #[test]
    fn a_publisher_that_cannot_be_heard_is_told_unless_another_can() {
        let publisher = |message_type: &str, is_best_effort| Publisher {
            node: "/camera".into(),
            message_type: message_type.into(),
            is_best_effort,
        };
        let image = "sensor_msgs/msg/Image";
        let mismatch = |found: &[Publisher], asks_reliable| {
            Publishers::new(found, image, asks_reliable).mismatch
        };
        let best_effort = publisher(image, true);
        assert_eq!(mismatch(&[], true), None);
        assert_eq!(mismatch(std::slice::from_ref(&best_effort), false), None);
        let told = mismatch(std::slice::from_ref(&best_effort), true).unwrap();
        assert!(told.contains("/camera offers best effort"), "{told}");
        assert_eq!(
            mismatch(&[best_effort, publisher(image, false)], true),
            None
        );
        let told = mismatch(&[publisher("std_msgs/msg/String", false)], false).unwrap();
        assert!(told.contains("std_msgs/msg/String"), "{told}");
    }

    #[test]
    fn memory_of_this_process_is_known() {
        let (now, peak) = memory().unwrap();
        assert!(now > 1 << 20 && peak >= now / 2);
    }
}
