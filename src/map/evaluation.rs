//! Comparison with a known truth.

use nalgebra::{Isometry3, Point3};
use ndarray::ArrayView2;
use thiserror::Error;

use super::Trajectory;
use crate::camera::Stamp;
use crate::geometry::{AlignError, align_rigid, align_rotations, align_similarity};

/// Two poses belong together when their stamps differ by no more.
const SAME_TIME_NANOSECONDS: u64 = 10_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EvaluationError {
    #[error("no pose of the path has a true pose within 10 ms")]
    NoPairs,
    #[error("the path cannot be aligned with the true one: {0}")]
    Align(#[from] AlignError),
    #[error("depth of {found:?} cannot be compared with a truth of {expected:?}")]
    Shape {
        found: [usize; 2],
        expected: [usize; 2],
    },
    #[error("no pixel has both a depth and a true one")]
    NoPixels,
}

/// Errors of depth over the pixels that have a true value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DepthErrors {
    /// Mean of |depth - truth| / truth.
    pub abs_rel: f64,
    /// Root of the mean squared error, in the truth's unit.
    pub rmse: f64,
    /// Share of pixels whose ratio to the truth, or of the truth to it, is below 1.25.
    pub delta_1_25: f64,
    /// How many pixels were compared.
    pub pixels: usize,
}

impl DepthErrors {
    /// The errors over all pixels of several frames; `None` for no frames.
    pub fn combined(frames: &[Self]) -> Option<Self> {
        let pixels: usize = frames.iter().map(|f| f.pixels).sum();
        if pixels == 0 {
            return None;
        }
        let mean = |of: fn(&Self) -> f64| {
            let sum: f64 = frames.iter().map(|f| of(f) * f.pixels as f64).sum();
            sum / pixels as f64
        };
        Some(Self {
            abs_rel: mean(|f| f.abs_rel),
            rmse: mean(|f| f.rmse.powi(2)).sqrt(),
            delta_1_25: mean(|f| f.delta_1_25),
            pixels,
        })
    }
}

/// Errors of a path after it was aligned with the truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathErrors {
    /// Absolute trajectory error: root of the mean squared distance after alignment by a rigid motion, in the
    /// truth's unit.
    pub ate_rmse_se3: f64,
    /// The same after alignment by a similarity; `None` where a path stands still, which has no scale.
    pub ate_rmse_sim3: Option<f64>,
    /// The scale of that similarity: true lengths over the path's.
    pub scale: Option<f64>,
    /// Median angle between the rotations and the true ones, radians, after the turn that brings them closest (the
    /// positions leave a turn open where a path is straight).
    pub rotation_median: f64,
    /// How many poses were compared.
    pub poses: usize,
}

/// Compares a path with the true one, pairing poses by their stamps (nearest, at most 10 ms apart).
///
/// # Errors
/// [`EvaluationError::NoPairs`], [`EvaluationError::Align`] for poses that are not finite.
pub fn compare_paths(
    estimate: &Trajectory,
    truth: &Trajectory,
) -> Result<PathErrors, EvaluationError> {
    let pairs = pairs(estimate, truth);
    if pairs.is_empty() {
        return Err(EvaluationError::NoPairs);
    }
    let place = |pose: &Isometry3<f64>| Point3::from(pose.translation.vector);
    let found: Vec<_> = pairs.iter().map(|(e, _)| place(e)).collect();
    let expected: Vec<_> = pairs.iter().map(|(_, t)| place(t)).collect();
    let rmse = |aligned: &dyn Fn(&Point3<f64>) -> Point3<f64>| {
        let pairs = found.iter().zip(&expected);
        let squares: f64 = pairs.map(|(f, e)| (aligned(f) - e).norm_squared()).sum();
        (squares / found.len() as f64).sqrt()
    };
    let rigid = align_rigid(&found, &expected)?;
    let similarity = match align_similarity(&found, &expected) {
        Ok(similarity) => Some(similarity),
        Err(AlignError::NoExtent) => None,
        Err(error) => return Err(error.into()),
    };
    let rotations: Vec<_> = pairs.iter().map(|(e, _)| e.rotation).collect();
    let true_rotations: Vec<_> = pairs.iter().map(|(_, t)| t.rotation).collect();
    let turn = align_rotations(&rotations, &true_rotations)?;
    let mut angles: Vec<f64> = pairs
        .iter()
        .map(|(e, t)| (turn * e.rotation).angle_to(&t.rotation))
        .collect();
    angles.sort_by(f64::total_cmp);
    Ok(PathErrors {
        ate_rmse_se3: rmse(&|p| rigid * p),
        ate_rmse_sim3: similarity.map(|s| rmse(&|p| s * p)),
        scale: similarity.map(|s| s.scaling()),
        rotation_median: median(&angles),
        poses: pairs.len(),
    })
}

/// Of sorted values; of an even number the mean of the middle two.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len().saturating_sub(1) / 2..=sorted.len() / 2;
    let values = sorted.get(middle).unwrap_or_default();
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn pairs(estimate: &Trajectory, truth: &Trajectory) -> Vec<(Isometry3<f64>, Isometry3<f64>)> {
    let mut sorted: Vec<&(Stamp, Isometry3<f64>)> = truth.iter().collect();
    sorted.sort_by_key(|(stamp, _)| *stamp);
    let nearest = |stamp: Stamp| {
        let after = sorted.partition_point(|(s, _)| *s < stamp);
        let around = [after.checked_sub(1), Some(after)];
        let candidates = around.into_iter().flatten().filter_map(|i| sorted.get(i));
        candidates
            .map(|(s, pose)| (s.0.abs_diff(stamp.0), *pose))
            .filter(|(difference, _)| *difference <= SAME_TIME_NANOSECONDS)
            .min_by_key(|(difference, _)| *difference)
    };
    let paired = estimate
        .iter()
        .filter_map(|(stamp, pose)| Some((*pose, nearest(*stamp)?.1)));
    paired.collect()
}

/// Compares depth with the true depth, pixel by pixel and without alignment. Pixels whose truth is not finite and
/// positive do not count; a depth that is not is an error of the whole truth.
///
/// # Errors
/// [`EvaluationError::Shape`], [`EvaluationError::NoPixels`].
pub fn compare_depth(
    depth: ArrayView2<f32>,
    truth: ArrayView2<f32>,
) -> Result<DepthErrors, EvaluationError> {
    if depth.dim() != truth.dim() {
        let shape = |array: &ArrayView2<f32>| [array.nrows(), array.ncols()];
        return Err(EvaluationError::Shape {
            found: shape(&depth),
            expected: shape(&truth),
        });
    }
    let (mut relative, mut squares, mut close, mut pixels) = (0.0, 0.0, 0usize, 0usize);
    for (&depth, &truth) in depth.iter().zip(&truth) {
        let (depth, truth) = (f64::from(depth), f64::from(truth));
        if !(truth.is_finite() && truth > 0.0) {
            continue;
        }
        let depth = if depth.is_finite() {
            depth.max(0.0)
        } else {
            0.0
        };
        let error = (depth - truth).abs();
        relative += error / truth;
        squares += error * error;
        close += usize::from(depth < 1.25 * truth && truth < 1.25 * depth);
        pixels += 1;
    }
    if pixels == 0 {
        return Err(EvaluationError::NoPixels);
    }
    let count = pixels as f64;
    Ok(DepthErrors {
        abs_rel: relative / count,
        rmse: (squares / count).sqrt(),
        delta_1_25: close as f64 / count,
        pixels,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::Vector3;
    use ndarray::array;
    use proptest::prelude::*;

    fn path(points: &[[f64; 3]]) -> Trajectory {
        let mut path = Trajectory::new();
        for (i, p) in points.iter().enumerate() {
            let turn = Vector3::new(0.1, 0.2, 0.3) * i as f64;
            path.push(
                Stamp(i as i64 * 100_000_000),
                Isometry3::new(Vector3::from(*p), turn),
            );
        }
        path
    }

    fn moved(path: &Trajectory, motion: &Isometry3<f64>, scale: f64, delay: i64) -> Trajectory {
        let mut result = Trajectory::new();
        for (stamp, pose) in path.iter() {
            let mut pose = *pose;
            pose.translation.vector *= scale;
            result.push(Stamp(stamp.0 + delay), motion * pose);
        }
        result
    }

    const CORNERS: [[f64; 3]; 5] = [
        [0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0],
        [1.0, 2.0, 0.0],
        [1.0, 2.0, 3.0],
        [0.0, 1.0, 3.0],
    ];

    proptest! {
        #[test]
        fn a_moved_path_has_no_error_and_a_scaled_one_only_without_scale(
            t in prop::array::uniform3(-5.0..5.0f64), r in prop::array::uniform3(-2.0..2.0f64),
            scale in 0.3..3.0f64, delay in -9_000_000i64..9_000_000,
        ) {
            let truth = path(&CORNERS);
            let motion = Isometry3::new(Vector3::from(t), Vector3::from(r));
            let errors = compare_paths(&moved(&truth, &motion, 1.0, delay), &truth).unwrap();
            prop_assert!(errors.ate_rmse_se3 < 1e-9 && errors.rotation_median < 1e-6);
            prop_assert_eq!(errors.poses, 5);
            let errors = compare_paths(&moved(&truth, &motion, scale, delay), &truth).unwrap();
            prop_assert!(errors.ate_rmse_sim3.unwrap() < 1e-9);
            prop_assert!((errors.scale.unwrap() * scale - 1.0).abs() < 1e-9);
            // What the scale takes off the spread of the corners is left.
            let places: Vec<_> = CORNERS.iter().map(|p| Vector3::from(*p)).collect();
            let mean = places.iter().sum::<Vector3<f64>>() / 5.0;
            let spread = (places.iter().map(|p| (p - mean).norm_squared()).sum::<f64>() / 5.0).sqrt();
            prop_assert!((errors.ate_rmse_se3 - (scale - 1.0).abs() * spread).abs() < 1e-9);
        }
    }

    #[test]
    fn rotations_are_compared_after_their_common_turn() {
        let truth = path(&CORNERS);
        let wobble = [0.0, 0.05, -0.05, 0.05, -0.05];
        let mut turned = Trajectory::new();
        for ((stamp, pose), wobble) in truth.iter().zip(wobble) {
            let wobble = Isometry3::rotation(Vector3::new(0.0, wobble, 0.0));
            let common = Isometry3::rotation(Vector3::new(0.4, 0.0, 0.9));
            turned.push(*stamp, common * pose * wobble);
        }
        let errors = compare_paths(&turned, &truth).unwrap();
        assert!(errors.ate_rmse_se3 < 1e-9);
        assert!((errors.rotation_median - 0.05).abs() < 0.005, "{errors:?}");
    }

    #[test]
    fn poses_without_a_true_one_do_not_count() {
        let truth = path(&CORNERS);
        let mut estimate = truth.clone();
        estimate.push(Stamp(10_000_000_000), Isometry3::translation(1e6, 0.0, 0.0));
        assert_eq!(compare_paths(&estimate, &truth).unwrap().poses, 5);
        let apart = moved(&truth, &Isometry3::identity(), 1.0, 50_000_000);
        assert_eq!(compare_paths(&apart, &truth), Err(EvaluationError::NoPairs));
    }

    #[test]
    fn a_camera_that_stands_still_has_no_scale() {
        let still = path(&[[1.0, 1.0, 1.0]; 4]);
        let errors = compare_paths(&still, &still).unwrap();
        assert_eq!(
            (errors.ate_rmse_se3, errors.ate_rmse_sim3, errors.scale),
            (0.0, None, None)
        );
    }

    #[test]
    fn depth_errors_are_those_of_the_literature() {
        let truth = array![[1.0, 2.0, 4.0, 0.0], [1.0, f32::NAN, 10.0, 2.0]];
        let depth = array![[1.1, 2.0, 5.0, 9.0], [0.7, 1.0, 13.0, f32::NAN]];
        let errors = compare_depth(depth.view(), truth.view()).unwrap();
        assert_eq!(errors.pixels, 6);
        assert!((errors.abs_rel - (0.1 + 0.0 + 0.25 + 0.3 + 0.3 + 1.0) / 6.0).abs() < 1e-6);
        let squares = 0.01 + 0.0 + 1.0 + 0.09 + 9.0 + 4.0;
        assert!((errors.rmse - (squares / 6.0f64).sqrt()).abs() < 1e-6);
        // 5/4 is the bound itself; only 1.1 and 2 are within it.
        assert_eq!(errors.delta_1_25, 2.0 / 6.0);
    }

    #[test]
    fn frames_combine_pixel_by_pixel() {
        let truth = array![[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]];
        let depth = array![[1.5f32, 2.1, 2.0, 4.0, 9.0, 6.5]];
        let whole = compare_depth(depth.view(), truth.view()).unwrap();
        let part = |from: isize, to: isize| {
            let range = ndarray::s![.., from..to];
            compare_depth(depth.slice(range), truth.slice(range)).unwrap()
        };
        let combined = DepthErrors::combined(&[part(0, 1), part(1, 6)]).unwrap();
        assert_eq!(combined.pixels, whole.pixels);
        assert!((combined.abs_rel - whole.abs_rel).abs() < 1e-12);
        assert!((combined.rmse - whole.rmse).abs() < 1e-12);
        assert!((combined.delta_1_25 - whole.delta_1_25).abs() < 1e-12);
        assert_eq!(DepthErrors::combined(&[]), None);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let (small, large) = (array![[1.0f32]], array![[1.0f32, 2.0]]);
        let shape = EvaluationError::Shape {
            found: [1, 1],
            expected: [1, 2],
        };
        assert_eq!(compare_depth(small.view(), large.view()), Err(shape));
        let none = array![[0.0f32]];
        assert_eq!(
            compare_depth(small.view(), none.view()),
            Err(EvaluationError::NoPixels)
        );
    }
}
