//! Points of a map against the surfaces that they should lie on.

use nalgebra::Point3;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::{EvaluationError, quantile};

/// A bounded number of points drawn evenly from any number of them: the same points for the same input.
#[derive(Debug, Clone)]
pub struct PointSample {
    points: Vec<Point3<f64>>,
    limit: usize,
    seen: u64,
    rng: Pcg32,
}

impl PointSample {
    /// A sample of at most `limit` points.
    pub fn new(limit: usize) -> Self {
        Self {
            points: Vec::new(),
            limit,
            seen: 0,
            rng: Pcg32::seed_from_u64(0),
        }
    }

    /// Offers a point (reservoir sampling: Vitter, "Random sampling with a reservoir", 1985, algorithm R).
    pub fn push(&mut self, point: Point3<f64>) {
        self.seen += 1;
        if self.points.len() < self.limit {
            self.points.push(point);
            return;
        }
        let place = (u128::from(self.rng.next_u64()) * u128::from(self.seen)) >> 64;
        if let Some(kept) = usize::try_from(place)
            .ok()
            .and_then(|place| self.points.get_mut(place))
        {
            *kept = point;
        }
    }

    pub fn points(&self) -> &[Point3<f64>] {
        &self.points
    }
}

/// Distances of points from the nearest true surface, in its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SurfaceErrors {
    pub mean: f64,
    pub median: f64,
    /// Nine points of ten are no farther away.
    pub p90: f64,
    /// How many points were measured.
    pub points: usize,
}

/// Measures every point by `distance`.
///
/// # Errors
/// [`EvaluationError::NoPoints`].
pub fn surface_errors(
    points: &[Point3<f64>],
    distance: impl FnMut(&Point3<f64>) -> f64,
) -> Result<SurfaceErrors, EvaluationError> {
    if points.is_empty() {
        return Err(EvaluationError::NoPoints);
    }
    let mut distances: Vec<f64> = points.iter().map(distance).collect();
    distances.sort_by(f64::total_cmp);
    Ok(SurfaceErrors {
        mean: distances.iter().sum::<f64>() / distances.len() as f64,
        median: quantile(&distances, 0.5),
        p90: quantile(&distances, 0.9),
        points: distances.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_from_a_plane_are_summed_up() {
        let heights = [0.3, -0.1, 0.0, 0.2, -0.4];
        let points = heights.map(|z| Point3::new(7.0, -7.0, z));
        let errors = surface_errors(&points, |point| point.z.abs()).unwrap();
        assert_eq!((errors.points, errors.median), (5, 0.2));
        assert!((errors.mean - 0.2).abs() < 1e-12);
        assert!((errors.p90 - 0.36).abs() < 1e-12);
        let none = surface_errors(&[], |point| point.z);
        assert_eq!(none, Err(EvaluationError::NoPoints));
    }

    #[test]
    fn a_sample_is_bounded_even_and_always_the_same() {
        let sample = |count: u32| {
            let mut sample = PointSample::new(1000);
            for x in 0..count {
                sample.push(Point3::new(f64::from(x), 0.0, 0.0));
            }
            sample
        };
        assert_eq!(sample(900).points().len(), 900);
        let large = sample(50_000);
        assert_eq!(large.points().len(), 1000);
        assert_eq!(large.points(), sample(50_000).points());
        // The mean of a thousand even draws is within four standard errors of the middle.
        let mean = large.points().iter().map(|p| p.x).sum::<f64>() / 1000.0;
        assert!((mean - 25_000.0).abs() < 4.0 * 50_000.0 / (12.0 * 1000.0f64).sqrt());
    }
}
