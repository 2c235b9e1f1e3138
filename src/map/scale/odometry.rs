use std::collections::VecDeque;

use nalgebra::Point3;

use super::Estimate;
use crate::geometry::align_similarity_robust;

/// Positions that are compared: old ones carry the drift of both.
const WINDOW: usize = 60;
/// Positions that lie closer together, in metres, say more about noise than about scale.
const STEP: f64 = 0.05;
/// Fewer positions say nothing.
const LEAST: usize = 30;

/// Scale from the way that odometry has counted: the similarity that takes the last positions of the map onto those of
/// the odometry, with little attention to those that do not fit (slipping wheels).
#[derive(Default)]
pub struct OdometryScale {
    in_map: VecDeque<Point3<f64>>,
    in_metres: VecDeque<Point3<f64>>,
}

impl OdometryScale {
    pub fn see(&mut self, in_map: Point3<f64>, in_metres: Point3<f64>) -> Option<Estimate> {
        let is_finite = |p: &Point3<f64>| p.iter().all(|c| c.is_finite());
        if !is_finite(&in_map) || !is_finite(&in_metres) {
            return None;
        }
        if let Some(last) = self.in_metres.back()
            && (in_metres - last).norm() < STEP
        {
            return None;
        }
        if self.in_map.len() == WINDOW {
            self.in_map.pop_front();
            self.in_metres.pop_front();
        }
        self.in_map.push_back(in_map);
        self.in_metres.push_back(in_metres);
        self.estimate()
    }

    fn estimate(&mut self) -> Option<Estimate> {
        if self.in_map.len() < LEAST {
            return None;
        }
        let (source, target) = (
            &*self.in_map.make_contiguous(),
            &*self.in_metres.make_contiguous(),
        );
        let weights = vec![1.0; source.len()];
        let found = align_similarity_robust(source, target, &weights).ok()?;
        let mut left: Vec<f64> = (source.iter().zip(target))
            .map(|(source, target)| (found * source - target).norm())
            .collect();
        left.sort_by(f64::total_cmp);
        let median = left[left.len() / 2];
        // Of a normal distribution in three directions, by its median; those far off count as not there.
        let deviation = median / 1.538;
        let kept = left
            .iter()
            .filter(|distance| **distance <= 4.0 * median)
            .count();
        let mean = target
            .iter()
            .map(|p| p.coords)
            .sum::<nalgebra::Vector3<f64>>()
            / target.len() as f64;
        let spread: f64 = target
            .iter()
            .map(|p| (p.coords - mean).norm_squared())
            .sum();
        let spread = spread * kept as f64 / target.len() as f64;
        let uncertainty = deviation / spread.sqrt();
        (spread > 0.0 && uncertainty.is_finite()).then_some(Estimate {
            metres_per_unit: found.scaling(),
            uncertainty,
        })
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::{Similarity3, Vector3};
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg32;

    use super::*;
    use crate::map::scale::{ScaleKeeper, ScaleSource};
    use crate::world::{Room, Style, Walk, WalkConfig};

    /// Roughly normal, standard deviation one.
    fn noise(random: &mut Pcg32) -> f64 {
        let sum: f64 = (0..12)
            .map(|_| f64::from(random.next_u32()) / f64::from(u32::MAX))
            .sum();
        sum - 6.0
    }

    /// Walks until the scale is known; returns its relative error, what was said of it, and the frames it took.
    fn measure(seed: u64, metres_per_unit: f64, wheel: f64, slips: bool) -> (f64, f64, usize) {
        let mut random = Pcg32::seed_from_u64(seed);
        let map_from_room = Similarity3::new(
            Vector3::new(1.0, -2.0, 0.5),
            Vector3::new(0.2, 1.0, -0.4),
            1.0 / metres_per_unit,
        );
        let mut keeper = ScaleKeeper::new(ScaleSource::Odometry);
        let room = Room::new();
        let walk = WalkConfig {
            seed,
            turn: std::f64::consts::PI,
            style: Style::Robot,
        };
        for (index, room_from_camera) in Walk::new(&room, &walk).take(600).enumerate() {
            let true_place = Point3::from(room_from_camera.translation.vector);
            let mut shake = |size: f64| Vector3::from_fn(|_, _| noise(&mut random) * size);
            let in_map = map_from_room * (true_place + shake(0.02));
            let mut in_metres = true_place + shake(wheel);
            if slips && index % 7 == 3 {
                in_metres += shake(0.8);
            }
            if keeper.see_odometry(in_map, in_metres) {
                let scale = keeper.scale();
                let error = scale.metres_per_unit / metres_per_unit - 1.0;
                return (error.abs(), scale.uncertainty, index);
            }
        }
        panic!("never sure: {}", keeper.describe());
    }

    #[test]
    fn the_scale_of_a_noisy_walk_is_found_within_two_percent_more_often_than_it_says() {
        let (mut within, mut worst) = (0, 0.0f64);
        for seed in 0..40 {
            let (error, said, _) = measure(seed, 0.37 + 0.1 * seed as f64, 0.01, seed % 2 == 1);
            assert!(said <= 0.01);
            worst = worst.max(error);
            within += usize::from(error < 0.02);
        }
        assert!(within >= 36 && worst < 0.04, "{within} of 40, {worst}");
    }

    #[test]
    fn standing_still_says_nothing() {
        let mut keeper = ScaleKeeper::new(ScaleSource::Odometry);
        for i in 0..200 {
            let jitter = 0.001 * f64::from(i % 3);
            assert!(
                !keeper.see_odometry(Point3::new(jitter, 0.0, 0.0), Point3::new(0.0, jitter, 0.0))
            );
        }
        assert!(!keeper.scale().is_metric);
    }
}
