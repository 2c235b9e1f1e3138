//! Where a window lies in the world of the one before.

use nalgebra::{Isometry3, Point3, Similarity3, Translation3, UnitQuaternion};

use super::WindowAlignment;
use crate::camera::{Intrinsics, NetworkSize};
use crate::geometry::{align_similarity_robust, decode_pose, unproject};
use crate::stream::{FrameType, Prediction};

/// Bounds of the scale between two windows.
const SCALES: (f64, f64) = (1e-3, 1e3);

/// Pixels of all frames together that a robust alignment looks at, about.
const SAMPLES: usize = 8192;

/// A frame as the window before saw it (in the world) and as the new window sees it (in its own).
pub(super) type Pair<'a> = (&'a Prediction, &'a Prediction);

/// The transform that takes the new window's predictions to the world. `None` where no common frame has a pose in both.
pub(super) fn align(
    alignment: WindowAlignment,
    pairs: &[Pair],
    size: NetworkSize,
) -> Option<Similarity3<f64>> {
    let stored = |frame: &Prediction| frame.frame_type != FrameType::Other;
    let mut common: Vec<Pair> = pairs
        .iter()
        .copied()
        .filter(|(old, new)| stored(old) && stored(new))
        .collect();
    if common.is_empty() {
        common.extend(pairs.first());
    }
    match alignment {
        WindowAlignment::Reference => reference(&common, size),
        WindowAlignment::Robust => robust(&common, size).or_else(|| reference(&common, size)),
    }
}

fn reference(pairs: &[Pair], size: NetworkSize) -> Option<Similarity3<f64>> {
    let pose = |frame: &Prediction| Some(decode_pose(&frame.pose_enc, size).ok()?.0);
    let (old, new) = pairs
        .iter()
        .rev()
        .find_map(|(old, new)| Some((pose(old)?, pose(new)?)))?;
    let scale = median_ratio(pairs).unwrap_or(1.0).clamp(SCALES.0, SCALES.1);
    let rotation = old.rotation * new.rotation.inverse();
    let translation = old.translation.vector - scale * (rotation * new.translation.vector);
    Some(Similarity3::from_parts(
        Translation3::from(translation),
        rotation,
        scale,
    ))
}

/// The lower median of the ratios of depths, pixel by pixel.
fn median_ratio(pairs: &[Pair]) -> Option<f64> {
    let mut ratios: Vec<f32> = pairs
        .iter()
        .flat_map(|(old, new)| old.depth.iter().zip(&new.depth))
        .filter(|(_, new)| new.abs() > f32::EPSILON)
        .map(|(old, new)| old / new)
        .filter(|ratio| ratio.is_finite())
        .collect();
    let middle = ratios.len().checked_sub(1)? / 2;
    let (_, median, _) = ratios.select_nth_unstable_by(middle, f32::total_cmp);
    Some(f64::from(*median))
}

fn robust(pairs: &[Pair], size: NetworkSize) -> Option<Similarity3<f64>> {
    let pixels = size.width as usize * size.height as usize * pairs.len();
    let stride = (pixels / SAMPLES).isqrt().max(1);
    let (mut source, mut target, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for (old, new) in pairs {
        let (Ok(seen), Ok(sees)) = (
            decode_pose(&old.pose_enc, size),
            decode_pose(&new.pose_enc, size),
        ) else {
            continue;
        };
        for row in (0..size.height as usize).step_by(stride) {
            for column in (0..size.width as usize).step_by(stride) {
                let at = [row, column];
                let Some(to) = point(old, at, &seen) else {
                    continue;
                };
                let Some(from) = point(new, at, &sees) else {
                    continue;
                };
                let confidence = f64::from(old.depth_conf[at].min(new.depth_conf[at]));
                // An error of depth grows with depth.
                let weight = confidence / f64::from(old.depth[at]).powi(2);
                if weight.is_finite() && weight > 0.0 {
                    source.push(from);
                    target.push(to);
                    weights.push(weight);
                }
            }
        }
    }
    let found = align_similarity_robust(&source, &target, &weights).ok()?;
    (SCALES.0..=SCALES.1)
        .contains(&found.scaling())
        .then_some(found)
}

fn point(
    frame: &Prediction,
    [row, column]: [usize; 2],
    (pose, intrinsics): &(Isometry3<f64>, Intrinsics),
) -> Option<Point3<f64>> {
    let depth = f64::from(*frame.depth.get([row, column])?);
    let point = pose * unproject(column as f64, row as f64, depth, intrinsics);
    (depth > 0.0 && point.iter().all(|value| value.is_finite())).then_some(point)
}

impl Prediction {
    /// Takes a window's own prediction to the world.
    pub(super) fn warp(&mut self, world_from_window: Similarity3<f64>) {
        self.world_from_window = world_from_window;
        let [x, y, z, i, j, k, w, _, _] = self.pose_enc.map(f64::from);
        let centre = world_from_window * Point3::new(x, y, z);
        let quaternion = nalgebra::Quaternion::new(w, i, j, k);
        if let Some(rotation) = UnitQuaternion::try_new(quaternion, 0.0) {
            let turned = world_from_window.isometry.rotation * rotation;
            for (value, turned) in self.pose_enc[3..7].iter_mut().zip(turned.coords.iter()) {
                *value = *turned as f32;
            }
        }
        for (value, moved) in self.pose_enc[..3].iter_mut().zip(centre.iter()) {
            *value = *moved as f32;
        }
        let scale = world_from_window.scaling() as f32;
        self.depth.mapv_inplace(|depth| depth * scale);
        if let Some((points, _)) = &mut self.world_points {
            for mut point in points.lanes_mut(ndarray::Axis(2)) {
                let here = Point3::new(point[0], point[1], point[2]).cast::<f64>();
                let there = world_from_window * here;
                for (value, moved) in point.iter_mut().zip(there.iter()) {
                    *value = *moved as f32;
                }
            }
        }
    }
}
