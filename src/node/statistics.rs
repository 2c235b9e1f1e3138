//! Rates and latencies of the last while.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Events and times that are remembered.
const KEPT: usize = 200;
/// Events that are older say nothing about now.
const WINDOW: Duration = Duration::from_secs(10);

/// How often something happens.
#[derive(Debug, Clone, Default)]
pub struct Rate(VecDeque<Instant>);

impl Rate {
    pub fn note(&mut self, now: Instant) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(now);
    }

    pub fn newest(&self) -> Option<Instant> {
        self.0.back().copied()
    }

    /// Events a second; 0 where it has stopped.
    pub fn per_second(&self, now: Instant) -> f64 {
        let recent = |event: &&Instant| now.duration_since(**event) <= WINDOW;
        let count = self.0.iter().filter(recent).count();
        let Some(first) = self.0.iter().find(recent) else {
            return 0.0;
        };
        let span = now.duration_since(*first).as_secs_f64();
        if count < 2 || span <= 0.0 {
            return 0.0;
        }
        count as f64 / span
    }
}

/// Times that something took.
#[derive(Debug, Clone, Default)]
pub struct Latencies(VecDeque<Duration>);

impl Latencies {
    pub fn note(&mut self, latency: Duration) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(latency);
    }

    /// The mean, and the time that 95 of 100 stay below.
    pub fn summary(&self) -> Option<(Duration, Duration)> {
        let mut sorted: Vec<Duration> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        let mean = sorted.iter().sum::<Duration>() / u32::try_from(sorted.len()).ok()?.max(1);
        let high = sorted.get((sorted.len() * 95).div_ceil(100).saturating_sub(1))?;
        Some((mean, *high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_counts_the_last_while_only() {
        let start = Instant::now();
        let mut rate = Rate::default();
        assert_eq!(rate.per_second(start), 0.0);
        for i in 0..300 {
            rate.note(start + Duration::from_millis(100 * i));
        }
        let now = rate.newest().unwrap();
        assert!((rate.per_second(now) - 10.0).abs() < 0.2);
        assert!((rate.per_second(now + Duration::from_secs(5)) - 5.0).abs() < 0.2);
        assert_eq!(rate.per_second(now + Duration::from_secs(60)), 0.0);
    }

    #[test]
    fn latencies_have_a_mean_and_a_high() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.summary(), None);
        for ms in (1..=300).rev() {
            latencies.note(Duration::from_millis(ms));
        }
        // Of the last 200, which took 200 to 1 ms.
        let (mean, high) = latencies.summary().unwrap();
        assert_eq!(mean, Duration::from_micros(100_500));
        assert_eq!(high, Duration::from_millis(190));
    }
}
