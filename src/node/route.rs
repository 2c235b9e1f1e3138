use nalgebra::Isometry3;

use crate::camera::Stamp;

/// Poses in the order of their times, thinned out evenly as they grow: never more than twice the bound are held, never
/// more than the bound shown.
#[derive(Default)]
pub struct Route {
    poses: Vec<(Stamp, Isometry3<f64>)>,
    /// Of the poses that come, one in so many is held.
    stride: usize,
    /// Poses that came since the last one held.
    since: usize,
    newest: Option<(Stamp, Isometry3<f64>)>,
}

impl Route {
    pub fn push(&mut self, stamp: Stamp, pose: Isometry3<f64>, bound: usize) {
        self.newest = Some((stamp, pose));
        self.since += 1;
        if self.poses.is_empty() || self.since >= self.stride.max(1) {
            self.poses.push((stamp, pose));
            self.since = 0;
        }
        while self.poses.len() >= 2 * bound.max(2) {
            let mut index = 0;
            self.poses.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride = 2 * self.stride.max(1);
            // The newest one held may be gone: the next comes a stride after the one before it.
            self.since = self.stride / 2;
        }
    }

    /// At most `bound` poses, the first and the newest among them.
    pub fn thinned(&self, bound: usize) -> Vec<(Stamp, Isometry3<f64>)> {
        let last = self.poses.len().saturating_sub(1);
        let stride = last.div_ceil(bound.saturating_sub(2).max(1)).max(1);
        let mut kept: Vec<_> = self.poses.iter().step_by(stride).copied().collect();
        if let Some(newest) = self.newest
            && kept.last() != Some(&newest)
        {
            kept.truncate(bound.saturating_sub(1).max(1));
            kept.push(newest);
        }
        kept
    }

    /// Changes every pose.
    pub fn change(&mut self, changed: impl Fn(&Isometry3<f64>) -> Isometry3<f64>) {
        for (_, pose) in self.poses.iter_mut().chain(&mut self.newest) {
            *pose = changed(pose);
        }
    }

    pub fn clear(&mut self) {
        *self = Route::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_route_keeps_its_ends_its_order_and_its_bound() {
        for (length, bound) in [
            (0, 2),
            (1, 2),
            (2, 2),
            (100, 10),
            (10_000, 3),
            (7, 7),
            (8, 7),
            (5000, 700),
        ] {
            let mut route = Route::default();
            for i in 0..length {
                route.push(Stamp(i), Isometry3::translation(i as f64, 0.0, 0.0), bound);
                assert!(route.poses.len() <= 2 * bound.max(2));
            }
            let shown = route.thinned(bound);
            assert!(shown.len() <= bound, "{length} {bound}: {}", shown.len());
            let stamps: Vec<i64> = shown.iter().map(|(stamp, _)| stamp.0).collect();
            assert!(stamps.is_sorted_by(|a, b| a < b), "{stamps:?}");
            if length > 0 {
                assert_eq!(stamps.first(), Some(&0));
                assert_eq!(stamps.last(), Some(&(length - 1)));
            }
            if bound >= 7 && length >= 7 {
                assert!(shown.len() > bound / 3, "{length} {bound}: {}", shown.len());
                let largest = stamps
                    .windows(2)
                    .map(|pair| pair[1] - pair[0])
                    .max()
                    .unwrap();
                assert!(
                    largest <= 4 * length / bound as i64 + 4,
                    "{length} {bound}: {largest}"
                );
            }
        }
    }
}
