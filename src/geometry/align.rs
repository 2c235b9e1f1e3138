//! Alignment of two sequences of points by least squares (Umeyama, "Least-squares estimation of transformation
//! parameters between two point patterns", PAMI 1991).

use nalgebra::{
    Isometry3, Matrix3, Point3, Rotation3, Similarity3, Translation3, UnitQuaternion, Vector3,
};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use thiserror::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AlignError {
    #[error("{source_len} points cannot be aligned with {target_len}")]
    Length {
        source_len: usize,
        target_len: usize,
    },
    #[error("a point to align is not finite")]
    NotFinite,
    #[error("points that all coincide have no scale")]
    NoExtent,
}

struct Moments {
    source_mean: Vector3<f64>,
    target_mean: Vector3<f64>,
    /// Weighted sum of target times source transposed, both from their means.
    covariance: Matrix3<f64>,
    /// Weighted sum of the squared distances of the source's points from their mean.
    source_spread: f64,
}

/// The rigid motion that takes `source` onto `target` with the least sum of squared distances. Points on one line
/// leave the rotation about it open: any is returned.
///
/// # Errors
/// Sequences that are empty or of different lengths, points that are not finite.
pub fn align_rigid(
    source: &[Point3<f64>],
    target: &[Point3<f64>],
) -> Result<Isometry3<f64>, AlignError> {
    let moments = moments(source, target, |_| 1.0)?;
    let (rotation, _) = best_rotation(&moments.covariance);
    let translation = moments.target_mean - rotation * moments.source_mean;
    Ok(Isometry3::from_parts(
        Translation3::from(translation),
        rotation,
    ))
}

/// As [`align_rigid`], with a scale: the similarity that takes `source` onto `target`.
///
/// # Errors
/// As [`align_rigid`], and where the points of either sequence all coincide.
pub fn align_similarity(
    source: &[Point3<f64>],
    target: &[Point3<f64>],
) -> Result<Similarity3<f64>, AlignError> {
    similarity(&moments(source, target, |_| 1.0)?)
}

/// Rounds of reweighting; the weights hardly change after half of them.
const ROUNDS: usize = 12;
/// Triples of pairs that a robust alignment may start from: with a third of the pairs false, a triple is free of them three
/// times in ten.
const STARTS: usize = 64;

/// As [`align_similarity`], with a weight for each pair, and little attention to pairs that fit badly: least squares
/// repeated with weights that fall with the square of the distance left (Cauchy), against its median. It starts from the
/// alignment of all pairs or of some three, whichever leaves the smallest median: the reweighting alone cannot leave an
/// alignment that false pairs of one mind have turned.
///
/// # Errors
/// As [`align_similarity`], and weights that are not positive numbers.
pub fn align_similarity_robust(
    source: &[Point3<f64>],
    target: &[Point3<f64>],
    weights: &[f64],
) -> Result<Similarity3<f64>, AlignError> {
    same_length(source.len(), weights.len())?;
    if !weights
        .iter()
        .all(|weight| weight.is_finite() && *weight > 0.0)
    {
        return Err(AlignError::NotFinite);
    }
    let mut found = similarity(&moments(source, target, |i| weights[i])?)?;
    let mut left = Distances::default();
    let mut least = left.measure(&found, source, target);
    let mut random = Pcg32::seed_from_u64(0);
    for _ in 0..STARTS {
        let triple: [usize; 3] = std::array::from_fn(|_| random.next_u32() as usize % source.len());
        let Ok(start) = align_similarity(&triple.map(|i| source[i]), &triple.map(|i| target[i]))
        else {
            continue;
        };
        let median = left.measure(&start, source, target);
        if median < least {
            (found, least) = (start, median);
        }
    }
    for _ in 0..ROUNDS {
        let median = left.measure(&found, source, target);
        if median <= 0.0 {
            break;
        }
        let attention = |i: usize| weights[i] / (1.0 + (left.all[i] / median).powi(2));
        found = similarity(&moments(source, target, attention)?)?;
    }
    Ok(found)
}

/// What an alignment leaves between the points of each pair; the memory is reused.
#[derive(Default)]
struct Distances {
    all: Vec<f64>,
    sorted: Vec<f64>,
}

impl Distances {
    /// Returns their median. There must be a pair.
    fn measure(
        &mut self,
        found: &Similarity3<f64>,
        source: &[Point3<f64>],
        target: &[Point3<f64>],
    ) -> f64 {
        let pairs = source.iter().zip(target);
        self.all.clear();
        self.all.extend(pairs.map(|(s, t)| (found * s - t).norm()));
        self.sorted.clone_from(&self.all);
        let middle = self.sorted.len() / 2;
        let (_, median, _) = self.sorted.select_nth_unstable_by(middle, f64::total_cmp);
        *median
    }
}

fn similarity(moments: &Moments) -> Result<Similarity3<f64>, AlignError> {
    let (rotation, correlation) = best_rotation(&moments.covariance);
    let scale = correlation / moments.source_spread;
    if !(scale.is_finite() && scale > 0.0) {
        return Err(AlignError::NoExtent);
    }
    let translation = moments.target_mean - scale * (rotation * moments.source_mean);
    Ok(Similarity3::from_parts(
        Translation3::from(translation),
        rotation,
        scale,
    ))
}

/// The rotation that takes each of `source` (from the left) closest to its counterpart in `target`, by the sum of
/// squared differences of their matrices.
///
/// # Errors
/// Sequences that are empty or of different lengths, rotations that are not finite.
pub fn align_rotations(
    source: &[UnitQuaternion<f64>],
    target: &[UnitQuaternion<f64>],
) -> Result<UnitQuaternion<f64>, AlignError> {
    same_length(source.len(), target.len())?;
    let mut sum = Matrix3::zeros();
    for (s, t) in source.iter().zip(target) {
        sum += (t * s.inverse()).to_rotation_matrix().into_inner();
    }
    if !sum.iter().all(|value| value.is_finite()) {
        return Err(AlignError::NotFinite);
    }
    Ok(best_rotation(&sum).0)
}

fn same_length(source_len: usize, target_len: usize) -> Result<(), AlignError> {
    if source_len == target_len && source_len > 0 {
        return Ok(());
    }
    Err(AlignError::Length {
        source_len,
        target_len,
    })
}

/// `weight` of each pair, not all zero.
fn moments(
    source: &[Point3<f64>],
    target: &[Point3<f64>],
    weight: impl Fn(usize) -> f64,
) -> Result<Moments, AlignError> {
    same_length(source.len(), target.len())?;
    let finite = |p: &Point3<f64>| p.iter().all(|c| c.is_finite());
    if !source.iter().chain(target).all(finite) {
        return Err(AlignError::NotFinite);
    }
    let weights: Vec<f64> = (0..source.len()).map(weight).collect();
    let total: f64 = weights.iter().sum();
    let mean = |points: &[Point3<f64>]| {
        let weighted = points
            .iter()
            .zip(&weights)
            .map(|(p, weight)| p.coords * *weight);
        weighted.sum::<Vector3<f64>>() / total
    };
    let (source_mean, target_mean) = (mean(source), mean(target));
    let mut covariance = Matrix3::zeros();
    let mut source_spread = 0.0;
    for ((s, t), weight) in source.iter().zip(target).zip(&weights) {
        let s = s.coords - source_mean;
        covariance += (t.coords - target_mean) * s.transpose() * *weight;
        source_spread += s.norm_squared() * weight;
    }
    Ok(Moments {
        source_mean,
        target_mean,
        covariance,
        source_spread,
    })
}

/// The rotation R with the largest trace of Rᵀ·covariance, and that trace.
pub(super) fn best_rotation(covariance: &Matrix3<f64>) -> (UnitQuaternion<f64>, f64) {
    let svd = covariance.svd(true, true);
    let (Some(u), Some(v_t)) = (svd.u, svd.v_t) else {
        return (UnitQuaternion::identity(), 0.0);
    };
    // A mirroring is turned into a rotation along the direction that costs least.
    let mut signs = Vector3::repeat(1.0);
    if u.determinant() * v_t.determinant() < 0.0 {
        signs[svd.singular_values.imin()] = -1.0;
    }
    let rotation = u * Matrix3::from_diagonal(&signs) * v_t;
    let rotation =
        UnitQuaternion::from_rotation_matrix(&Rotation3::from_matrix_unchecked(rotation));
    (rotation, svd.singular_values.dot(&signs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point() -> impl Strategy<Value = Point3<f64>> {
        prop::array::uniform3(-10.0..10.0f64).prop_map(Point3::from)
    }

    fn motion() -> impl Strategy<Value = Isometry3<f64>> {
        (
            prop::array::uniform3(-5.0..5.0f64),
            prop::array::uniform3(-3.0..3.0f64),
        )
            .prop_map(|(t, r)| Isometry3::new(Vector3::from(t), Vector3::from(r)))
    }

    fn error(
        source: &[Point3<f64>],
        target: &[Point3<f64>],
        t: impl Fn(&Point3<f64>) -> Point3<f64>,
    ) -> f64 {
        source
            .iter()
            .zip(target)
            .map(|(s, g)| (t(s) - g).norm_squared())
            .sum()
    }

    proptest! {
        #[test]
        fn a_known_motion_is_found(
            points in prop::collection::vec(point(), 4..30), motion in motion(), scale in 0.1..10.0f64,
        ) {
            let moved: Vec<_> = points.iter().map(|p| motion * p).collect();
            let found = align_rigid(&points, &moved).unwrap();
            prop_assert!(error(&points, &moved, |p| found * p) < 1e-18 * 1e6);
            let scaled: Vec<_> = points.iter().map(|p| motion * (p * scale)).collect();
            let found = align_similarity(&points, &scaled).unwrap();
            prop_assert!((found.scaling() / scale - 1.0).abs() < 1e-9);
            prop_assert!(error(&points, &scaled, |p| found * p) < 1e-12 * scale * scale);
        }

        /// Straight paths, on which the rotation is not unique, and single points are aligned all the same.
        #[test]
        fn points_on_a_line_are_aligned(
            steps in prop::collection::vec(-10.0..10.0f64, 1..20), along in point(), motion in motion(),
        ) {
            prop_assume!(along.coords.norm() > 0.1);
            let points: Vec<_> = steps.iter().map(|s| Point3::from(along.coords * *s)).collect();
            let moved: Vec<_> = points.iter().map(|p| motion * p).collect();
            let found = align_rigid(&points, &moved).unwrap();
            prop_assert!(error(&points, &moved, |p| found * p) < 1e-9);
            let rotation = found.rotation.to_rotation_matrix();
            prop_assert!((rotation.matrix().determinant() - 1.0).abs() < 1e-9);
        }

        #[test]
        fn no_small_change_does_better(
            pairs in prop::collection::vec((point(), point()), 3..20),
            change in prop::array::uniform6(-0.05..0.05f64), grow in 0.95..1.05f64,
        ) {
            let (source, target): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            let [a, b, c, d, e, f] = change;
            let nudge = Isometry3::new(Vector3::new(a, b, c), Vector3::new(d, e, f));
            let rigid = align_rigid(&source, &target).unwrap();
            let best = error(&source, &target, |p| rigid * p);
            prop_assert!(best <= error(&source, &target, |p| nudge * rigid * p) + 1e-9);
            if let Ok(similar) = align_similarity(&source, &target) {
                let best_similar = error(&source, &target, |p| similar * p);
                prop_assert!(best_similar <= best + 1e-9);
                let other = |p: &Point3<f64>| nudge * (similar * p * grow);
                prop_assert!(best_similar <= error(&source, &target, other) + 1e-9);
            }
        }
    }

    proptest! {
        #[test]
        fn a_common_turn_of_all_rotations_is_found(
            turns in prop::collection::vec(motion(), 1..10), common in motion(),
        ) {
            let source: Vec<_> = turns.iter().map(|m| m.rotation).collect();
            let target: Vec<_> = source.iter().map(|r| common.rotation * r).collect();
            let found = align_rotations(&source, &target).unwrap();
            prop_assert!(found.angle_to(&common.rotation) < 1e-6);
        }
    }

    proptest! {
        /// A third of the pairs are false, and all of the same falsehood.
        #[test]
        fn false_pairs_hardly_move_a_robust_alignment(
            points in prop::collection::vec(point(), 30..60), motion in motion(), scale in 0.5..2.0f64, off in point(),
        ) {
            let right = |p: &Point3<f64>| motion * (p * scale);
            let target: Vec<_> = points.iter().enumerate()
                .map(|(i, p)| if i % 3 == 0 { right(p) + off.coords } else { right(p) })
                .collect();
            let weights: Vec<f64> = (0..points.len()).map(|i| 1.0 + (i % 4) as f64).collect();
            let found = align_similarity_robust(&points, &target, &weights).unwrap();
            let worst = points.iter().map(|p| (found * p - right(p)).norm()).fold(0.0, f64::max);
            prop_assert!(worst < 0.05 * (1.0 + off.coords.norm()), "{worst}");
        }
    }

    #[test]
    fn what_cannot_be_aligned_is_refused() {
        let p = Point3::new(1.0, 2.0, 3.0);
        let length = |source_len, target_len| AlignError::Length {
            source_len,
            target_len,
        };
        assert_eq!(align_rigid(&[], &[]), Err(length(0, 0)));
        assert_eq!(align_rigid(&[p], &[p, p]), Err(length(1, 2)));
        let bad = Point3::new(f64::NAN, 0.0, 0.0);
        assert_eq!(align_rigid(&[p], &[bad]), Err(AlignError::NotFinite));
        assert_eq!(
            align_similarity(&[p, p], &[p, p]),
            Err(AlignError::NoExtent)
        );
        assert!(align_rigid(&[p, p], &[p, p]).is_ok());
        assert_eq!(align_rotations(&[], &[]), Err(length(0, 0)));
        let two = [p, Point3::origin()];
        let robust = |weights: &[f64]| align_similarity_robust(&two, &two, weights).map(|_| ());
        assert_eq!(robust(&[1.0]), Err(length(2, 1)));
        assert_eq!(robust(&[1.0, 0.0]), Err(AlignError::NotFinite));
        assert_eq!(robust(&[1.0, 2.0]), Ok(()));
    }
}
