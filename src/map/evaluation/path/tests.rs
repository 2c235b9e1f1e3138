use super::*;
use crate::camera::Stamp;
use crate::map::PathFile;
use crate::map::evaluation::pair;
use nalgebra::Vector3;
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

/// A path along a line, turned a little more at every pose, and what is wrong with its estimate.
fn drifting(offset: impl Fn(usize) -> Isometry3<f64>) -> Vec<PosePair> {
    let mut truth = Trajectory::new();
    let mut estimate = Trajectory::new();
    for i in 0..9 {
        let pose = Isometry3::new(
            Vector3::new(i as f64, 0.0, 0.0),
            Vector3::new(0.0, 0.1, 0.0) * i as f64,
        );
        truth.push(Stamp(i as i64 * 1_000_000_000), pose);
        estimate.push(Stamp(i as i64 * 1_000_000_000), pose * offset(i));
    }
    pair_by_time(&estimate, &truth).unwrap()
}

fn frames(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

#[test]
fn an_offset_of_the_whole_path_is_an_error_without_alignment_only() {
    let truth = path(&CORNERS);
    let motion = Isometry3::new(Vector3::new(3.0, 0.0, 4.0), Vector3::new(0.0, 0.3, 0.0));
    let shifted = Isometry3::translation(3.0, 0.0, 4.0);
    let errors = compare_paths(&moved(&truth, &shifted, 1.0, 0), &truth).unwrap();
    assert!((errors.ate_rmse_none - 5.0).abs() < 1e-12, "{errors:?}");
    assert!(errors.ate_rmse_se3 < 1e-9 && errors.rotation_max_none < 1e-7);
    let errors = compare_paths(&moved(&truth, &motion, 1.0, 0), &truth).unwrap();
    assert!((errors.rotation_median_none - 0.3).abs() < 1e-9);
    assert!((errors.rotation_max_none - 0.3).abs() < 1e-9);
    assert!(errors.rotation_median < 1e-6 && errors.rotation_max < 1e-6);
}

#[test]
fn one_wrong_rotation_is_the_largest_and_hardly_moves_the_median() {
    let pairs = drifting(|i| Isometry3::rotation(Vector3::z() * if i == 4 { 0.9 } else { 0.0 }));
    let errors = path_errors(&pairs).unwrap();
    assert!((errors.rotation_max_none - 0.9).abs() < 1e-9);
    assert!(errors.rotation_median_none < 1e-7, "{errors:?}");
    assert!(errors.rotation_max > 0.7 && errors.rotation_median < 0.15);
}

#[test]
fn relative_errors_are_those_of_the_motions() {
    // Every step is 0.02 longer along the true path's own axis and turns by 0.01 more.
    let steps = |i: usize| -> (Isometry3<f64>, Isometry3<f64>) {
        let step = Isometry3::new(Vector3::x(), Vector3::y() * 0.1);
        let wrong = step * Isometry3::new(Vector3::x() * 0.02, Vector3::y() * 0.01);
        let walk = |step: Isometry3<f64>| (0..i).fold(Isometry3::identity(), |at, _| at * step);
        (walk(wrong), walk(step))
    };
    let (mut estimate, mut truth) = (Trajectory::new(), Trajectory::new());
    for i in 0..6 {
        let (wrong, right) = steps(i);
        let elsewhere = Isometry3::new(Vector3::new(9.0, -5.0, 2.0), Vector3::new(1.0, 2.0, 0.5));
        estimate.push(Stamp(i as i64), elsewhere * wrong);
        truth.push(Stamp(i as i64), right);
    }
    let pairs = pair_by_order(&estimate, &truth);
    let errors = relative_errors(&pairs, frames(1), 1.0).unwrap();
    assert_eq!(errors.motions, 5);
    assert!((errors.translation_rmse - 0.02).abs() < 1e-9, "{errors:?}");
    assert!((errors.rotation_rmse - 0.01).abs() < 1e-9, "{errors:?}");
    let errors = relative_errors(&pairs, frames(5), 1.0).unwrap();
    assert_eq!(errors.motions, 1);
    assert!((errors.rotation_rmse - 0.05).abs() < 1e-9, "{errors:?}");
    assert_eq!(relative_errors(&pairs, frames(6), 1.0), None);
}

fn pair_by_order(estimate: &Trajectory, truth: &Trajectory) -> Vec<PosePair> {
    let poses = |path: &Trajectory| PathFile::Ordered(path.iter().map(|(_, p)| *p).collect());
    pair(&poses(estimate), &poses(truth)).unwrap()
}

#[test]
fn a_scale_belongs_to_the_paths_lengths() {
    let pairs = drifting(|_| Isometry3::identity());
    let halved: Vec<_> = pairs
        .iter()
        .map(|pair| {
            let mut pair = *pair;
            pair.estimate.translation.vector *= 0.5;
            pair
        })
        .collect();
    let unscaled = relative_errors(&halved, frames(1), 1.0).unwrap();
    assert!((unscaled.translation_rmse - 0.5).abs() < 1e-12);
    let scaled = relative_errors(&halved, frames(1), 2.0).unwrap();
    assert!(scaled.translation_rmse < 1e-12);
    let transform = Alignment::Sim3.transform(&halved).unwrap();
    let errors = pose_errors(&halved, &transform);
    assert!(errors.iter().all(|error| error.position < 1e-9));
    let none = Alignment::None.transform(&halved).unwrap();
    let last = pose_errors(&halved, &none).last().copied().unwrap();
    assert!((last.position - 4.0).abs() < 1e-12);
}

#[test]
fn nothing_is_no_path() {
    assert_eq!(path_errors(&[]), Err(EvaluationError::NoPairs));
    assert!(matches!(
        Alignment::Se3.transform(&[]),
        Err(EvaluationError::Align(_))
    ));
}
