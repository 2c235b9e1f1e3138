//! Which pose of a path belongs to which true one.

use nalgebra::Isometry3;

use super::EvaluationError;
use crate::camera::Stamp;
use crate::map::{PathFile, Trajectory};

/// Two poses belong together when their stamps differ by no more.
const SAME_TIME_NANOSECONDS: u64 = 10_000_000;

/// A pose and the true one, both camera-to-world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PosePair {
    pub estimate: Isometry3<f64>,
    pub truth: Isometry3<f64>,
    /// Where they stand in their paths.
    pub estimate_index: usize,
    pub truth_index: usize,
    /// The estimate's time; `None` where poses are paired by order.
    pub stamp: Option<Stamp>,
}

/// Pairs two paths by time where both have times, else by order.
///
/// # Errors
/// [`EvaluationError::NoPairs`]; [`EvaluationError::Count`] for paths to pair by order that differ in length.
pub fn pair(estimate: &PathFile, truth: &PathFile) -> Result<Vec<PosePair>, EvaluationError> {
    if let (PathFile::Timed(estimate), PathFile::Timed(truth)) = (estimate, truth) {
        return pair_by_time(estimate, truth);
    }
    if estimate.len() != truth.len() {
        return Err(EvaluationError::Count {
            estimate: estimate.len(),
            truth: truth.len(),
        });
    }
    let pairs: Vec<_> = estimate
        .poses()
        .zip(truth.poses())
        .enumerate()
        .map(|(index, (estimate, truth))| PosePair {
            estimate: *estimate,
            truth: *truth,
            estimate_index: index,
            truth_index: index,
            stamp: None,
        })
        .collect();
    some(pairs)
}

/// Pairs every pose with the true one nearest in time, at most 10 ms away; others are left out. The pairs are in the
/// order of time.
///
/// # Errors
/// [`EvaluationError::NoPairs`].
pub fn pair_by_time(
    estimate: &Trajectory,
    truth: &Trajectory,
) -> Result<Vec<PosePair>, EvaluationError> {
    let mut sorted: Vec<_> = truth.iter().enumerate().collect();
    sorted.sort_by_key(|(_, (stamp, _))| *stamp);
    let nearest = |stamp: Stamp| {
        let after = sorted.partition_point(|(_, (s, _))| *s < stamp);
        let around = [after.checked_sub(1), Some(after)];
        let candidates = around.into_iter().flatten().filter_map(|i| sorted.get(i));
        candidates
            .map(|(index, (s, pose))| (s.0.abs_diff(stamp.0), *index, *pose))
            .filter(|(difference, ..)| *difference <= SAME_TIME_NANOSECONDS)
            .min_by_key(|(difference, ..)| *difference)
    };
    let mut pairs: Vec<_> = estimate
        .iter()
        .enumerate()
        .filter_map(|(estimate_index, (stamp, pose))| {
            let (_, truth_index, truth) = nearest(*stamp)?;
            Some(PosePair {
                estimate: *pose,
                truth,
                estimate_index,
                truth_index,
                stamp: Some(*stamp),
            })
        })
        .collect();
    pairs.sort_by_key(|pair| pair.stamp);
    some(pairs)
}

fn some(pairs: Vec<PosePair>) -> Result<Vec<PosePair>, EvaluationError> {
    if pairs.is_empty() {
        return Err(EvaluationError::NoPairs);
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(times: &[i64]) -> Trajectory {
        let mut path = Trajectory::new();
        for (index, milliseconds) in times.iter().enumerate() {
            let pose = Isometry3::translation(index as f64, 0.0, 0.0);
            path.push(Stamp(milliseconds * 1_000_000), pose);
        }
        path
    }

    fn ordered(count: usize) -> PathFile {
        PathFile::Ordered(vec![Isometry3::identity(); count])
    }

    #[test]
    fn the_nearest_true_pose_within_ten_milliseconds_counts() {
        let (estimate, truth) = (timed(&[300, 104, 0, 211]), timed(&[200, 100, 109, 10]));
        let pairs = pair_by_time(&estimate, &truth).unwrap();
        let indices: Vec<_> = pairs
            .iter()
            .map(|p| (p.estimate_index, p.truth_index))
            .collect();
        assert_eq!(indices, [(2, 3), (1, 1)]);
        assert_eq!(pairs[0].truth.translation.x, 3.0);
        let apart = pair_by_time(&timed(&[50]), &truth);
        assert_eq!(apart, Err(EvaluationError::NoPairs));
    }

    #[test]
    fn without_times_the_order_counts() {
        let pairs = pair(&PathFile::Timed(timed(&[700, 900])), &ordered(2)).unwrap();
        assert_eq!(
            (
                pairs[1].truth_index,
                pairs[1].estimate_index,
                pairs[1].stamp
            ),
            (1, 1, None)
        );
        let count = EvaluationError::Count {
            estimate: 3,
            truth: 2,
        };
        assert_eq!(pair(&ordered(3), &ordered(2)), Err(count));
        assert_eq!(
            pair(&ordered(0), &ordered(0)),
            Err(EvaluationError::NoPairs)
        );
    }
}
