//! Camera paths against true ones: absolute, relative and rotation errors.

use std::num::NonZeroUsize;

use nalgebra::{Isometry3, Point3, Similarity3};

use super::{EvaluationError, PosePair, pair_by_time, quantile};
use crate::geometry::{AlignError, align_rigid, align_rotations, align_similarity};
use crate::map::Trajectory;

/// How a path is brought onto the true one before they are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Alignment {
    /// Not at all: both are in the same world.
    #[default]
    None,
    /// By the rigid motion that leaves the positions the least squared distance.
    Se3,
    /// By such a motion with a scale.
    Sim3,
}

impl Alignment {
    /// The transform from the path's world to the truth's.
    ///
    /// # Errors
    /// [`EvaluationError::Align`] for no pairs, poses that are not finite, and a path without extent where a scale is
    /// asked for.
    pub fn transform(self, pairs: &[PosePair]) -> Result<Similarity3<f64>, EvaluationError> {
        let places = |of: fn(&PosePair) -> &Isometry3<f64>| -> Vec<_> {
            pairs.iter().map(|pair| place(of(pair))).collect()
        };
        let (found, expected) = (places(|pair| &pair.estimate), places(|pair| &pair.truth));
        Ok(match self {
            Self::None => Similarity3::identity(),
            Self::Se3 => Similarity3::from_isometry(align_rigid(&found, &expected)?, 1.0),
            Self::Sim3 => align_similarity(&found, &expected)?,
        })
    }
}

fn place(pose: &Isometry3<f64>) -> Point3<f64> {
    Point3::from(pose.translation.vector)
}

/// How far one pose is from the true one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoseDifference {
    /// Distance of the positions, in the truth's unit.
    pub position: f64,
    /// Angle between the rotations, radians.
    pub rotation: f64,
}

/// The error of every pose after `transform` has brought the path into the truth's world.
pub fn pose_errors(pairs: &[PosePair], transform: &Similarity3<f64>) -> Vec<PoseDifference> {
    let turn = transform.isometry.rotation;
    let error = |pair: &PosePair| PoseDifference {
        position: (transform * place(&pair.estimate) - place(&pair.truth)).norm(),
        rotation: (turn * pair.estimate.rotation).angle_to(&pair.truth.rotation),
    };
    pairs.iter().map(error).collect()
}

/// Errors of a whole path. Lengths are in the truth's unit, angles in radians.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathErrors {
    /// Absolute trajectory error: root of the mean squared distance of the positions, without alignment.
    pub ate_rmse_none: f64,
    /// The same after alignment by a rigid motion.
    pub ate_rmse_se3: f64,
    /// The same after alignment by a similarity; `None` where a path stands still, which has no scale.
    pub ate_rmse_sim3: Option<f64>,
    /// The scale of that similarity: true lengths over the path's.
    pub scale: Option<f64>,
    /// Median angle between the rotations and the true ones, without alignment.
    pub rotation_median_none: f64,
    /// The largest of these angles.
    pub rotation_max_none: f64,
    /// Median angle after the turn that brings all rotations closest (the positions leave a turn open where a path is
    /// straight).
    pub rotation_median: f64,
    /// The largest of these angles.
    pub rotation_max: f64,
    /// How many poses were compared.
    pub poses: usize,
}

/// Compares a path with the true one, pairing poses by their stamps (nearest, at most 10 ms apart).
///
/// # Errors
/// As [`pair_by_time`] and [`path_errors`].
pub fn compare_paths(
    estimate: &Trajectory,
    truth: &Trajectory,
) -> Result<PathErrors, EvaluationError> {
    path_errors(&pair_by_time(estimate, truth)?)
}

/// # Errors
/// [`EvaluationError::NoPairs`], [`EvaluationError::Align`] for poses that are not finite.
pub fn path_errors(pairs: &[PosePair]) -> Result<PathErrors, EvaluationError> {
    if pairs.is_empty() {
        return Err(EvaluationError::NoPairs);
    }
    let ate = |transform: &Similarity3<f64>| {
        rms(pose_errors(pairs, transform).iter().map(|e| e.position))
    };
    let rigid = Alignment::Se3.transform(pairs)?;
    let similarity = match Alignment::Sim3.transform(pairs) {
        Ok(similarity) => Some(similarity),
        Err(EvaluationError::Align(AlignError::NoExtent)) => None,
        Err(error) => return Err(error),
    };
    let rotations: Vec<_> = pairs.iter().map(|pair| pair.estimate.rotation).collect();
    let true_rotations: Vec<_> = pairs.iter().map(|pair| pair.truth.rotation).collect();
    let turn = align_rotations(&rotations, &true_rotations)?;
    let angles = |transform: &Similarity3<f64>| {
        let errors = pose_errors(pairs, transform);
        let mut angles: Vec<f64> = errors.iter().map(|e| e.rotation).collect();
        angles.sort_by(f64::total_cmp);
        (quantile(&angles, 0.5), quantile(&angles, 1.0))
    };
    let (rotation_median_none, rotation_max_none) = angles(&Similarity3::identity());
    let turn = Isometry3::from_parts(Default::default(), turn);
    let (rotation_median, rotation_max) = angles(&Similarity3::from_isometry(turn, 1.0));
    Ok(PathErrors {
        ate_rmse_none: ate(&Similarity3::identity()),
        ate_rmse_se3: ate(&rigid),
        ate_rmse_sim3: similarity.as_ref().map(ate),
        scale: similarity.map(|s| s.scaling()),
        rotation_median_none,
        rotation_max_none,
        rotation_median,
        rotation_max,
        poses: pairs.len(),
    })
}

/// Relative pose error (RPE): how far motions between two poses are from the true motions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelativeErrors {
    /// Root of the mean squared length of the motions' difference, in the truth's unit.
    pub translation_rmse: f64,
    /// Root of the mean squared angle of the motions' difference, radians.
    pub rotation_rmse: f64,
    /// How many motions were compared.
    pub motions: usize,
}

/// Compares the motions from every pose to the one `delta` pairs later, with the path's lengths multiplied by `scale`;
/// no rigid alignment changes them. `None` for a path that is too short.
pub fn relative_errors(
    pairs: &[PosePair],
    delta: NonZeroUsize,
    scale: f64,
) -> Option<RelativeErrors> {
    let later = pairs.iter().skip(delta.get());
    let differences: Vec<Isometry3<f64>> = pairs
        .iter()
        .zip(later)
        .map(|(from, to)| {
            let mut motion = from.estimate.inv_mul(&to.estimate);
            motion.translation.vector *= scale;
            from.truth.inv_mul(&to.truth).inv_mul(&motion)
        })
        .collect();
    (!differences.is_empty()).then(|| RelativeErrors {
        translation_rmse: rms(differences.iter().map(|d| d.translation.vector.norm())),
        rotation_rmse: rms(differences.iter().map(|d| d.rotation.angle())),
        motions: differences.len(),
    })
}

/// Root of the mean square.
fn rms(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    (values.map(|value| value * value).sum::<f64>() / count).sqrt()
}

#[cfg(test)]
mod tests;
