//! The steady beat of a camera.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, Interval, interval};

use crate::camera::Stamp;

/// Gives image `i` the time `start + i / rate`, and waits for it.
pub struct Pace {
    period: Duration,
    ticks: Interval,
    start: Stamp,
    first: Option<Instant>,
    sent: u32,
}

impl Pace {
    /// Begins now. `rate`: images a second.
    pub fn new(rate: f64) -> anyhow::Result<Self> {
        let period = Duration::from_secs_f64(1.0 / rate);
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        Ok(Self {
            period,
            ticks: interval(period),
            start: Stamp(i64::try_from(now.as_nanos())?),
            first: None,
            sent: 0,
        })
    }

    /// Waits until the next image is due and returns its stamp. One that is late is due at once.
    pub async fn tick(&mut self) -> Stamp {
        self.ticks.tick().await;
        self.first.get_or_insert_with(Instant::now);
        let since = (self.period * self.sent).as_nanos();
        self.sent += 1;
        Stamp(self.start.0.saturating_add(since as i64))
    }

    /// Images a second, from the first tick to the last; `None` before the second.
    pub fn measured(&self) -> Option<f64> {
        let seconds = self.first?.elapsed().as_secs_f64();
        (self.sent > 1).then(|| f64::from(self.sent - 1) / seconds)
    }
}
