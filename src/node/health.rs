//! What the node knows about itself; written by the threads that work, read by the diagnostics.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use super::input::Refusal;
use crate::{mapper::MapperStatus, process};

#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Messages that arrived on the image topic.
    pub received: u64,
    pub last_arrival: Option<Instant>,
    /// Frames refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// New maps begun because the camera's clock went back.
    pub clock_jumps: u64,
    pub camera_frame: String,
    /// None until the model is loaded.
    pub mapper: Option<MapperStatus>,
    /// Time spent in the mapper, and the frames that came out of it.
    pub mapping_time: Duration,
    pub frames_mapped: u64,
}

impl Snapshot {
    pub fn seconds_per_frame(&self) -> Option<f64> {
        (self.frames_mapped > 0)
            .then(|| self.mapping_time.as_secs_f64() / self.frames_mapped as f64)
    }
}

#[derive(Debug, Default)]
pub struct Health(Mutex<Snapshot>);

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
        state.last_arrival = Some(Instant::now());
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

    #[test]
    fn refusals_are_counted_by_reason() {
        let health = Health::default();
        health.refuse(&Refusal::NotLater);
        health.refuse(&Refusal::NotLater);
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
    fn memory_of_this_process_is_known() {
        let (now, peak) = memory().unwrap();
        assert!(now > 1 << 20 && peak >= now / 2);
    }
}
