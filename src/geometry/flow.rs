//! How far the picture moves from one view to another.

use nalgebra::{Isometry3, Point3};
use ndarray::ArrayView2;

use super::{Intrinsics, unproject};

/// Where a camera is and how it projects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CameraView {
    pub world_from_camera: Isometry3<f64>,
    pub intrinsics: Intrinsics,
}

/// Distance of sampled pixels in both directions.
const GRID: usize = 8;
/// Depths, in front of either camera, below which a point says nothing.
const NEAREST: f64 = 1e-6;

/// Mean optical flow, in pixels: how far the points of the current picture, whose `depth` [height, width] is known, lie
/// from their pixels when the reference camera looks at them (SPEC of the reference implementation's keyframe rule).
///
/// Points behind the reference camera do not count; 0 when none is left, so a view turned fully away has no flow.
pub fn mean_flow(depth: ArrayView2<f32>, current: &CameraView, reference: &CameraView) -> f64 {
    let reference_from_current = reference.world_from_camera.inverse() * current.world_from_camera;
    let k = &reference.intrinsics;
    let (mut sum, mut count) = (0.0, 0u32);
    for ((row, column), &depth) in depth.indexed_iter() {
        if !row.is_multiple_of(GRID) || !column.is_multiple_of(GRID) || f64::from(depth) <= NEAREST
        {
            continue;
        }
        let (u, v) = (column as f64, row as f64);
        let point = unproject(u, v, f64::from(depth), &current.intrinsics);
        let Point3 { coords: seen } = reference_from_current * point;
        if seen.z <= NEAREST {
            continue;
        }
        let moved_u = k.fx * seen.x / seen.z + k.cx - u;
        let moved_v = k.fy * seen.y / seen.z + k.cy - v;
        let moved = moved_u.hypot(moved_v);
        if moved.is_finite() {
            sum += moved;
            count += 1;
        }
    }
    if count == 0 {
        0.0
    } else {
        sum / f64::from(count)
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::{Translation3, UnitQuaternion, Vector3};
    use ndarray::Array2;

    use super::*;

    const K: Intrinsics = Intrinsics {
        fx: 50.0,
        fy: 40.0,
        cx: 32.0,
        cy: 24.0,
    };

    fn view(x: f64, turn: f64) -> CameraView {
        CameraView {
            world_from_camera: Isometry3::from_parts(
                Translation3::new(x, 0.0, 0.0),
                UnitQuaternion::new(Vector3::new(0.0, turn, 0.0)),
            ),
            intrinsics: K,
        }
    }

    #[test]
    fn a_wall_moves_by_the_parallax_of_its_depth() {
        let wall = Array2::from_elem((48, 64), 2.0f32);
        // f · baseline / depth.
        let flow = mean_flow(wall.view(), &view(0.1, 0.0), &view(0.0, 0.0));
        assert!((flow - 2.5).abs() < 1e-9, "{flow}");
        assert!(mean_flow(wall.view(), &view(0.3, 0.2), &view(0.3, 0.2)) < 1e-9);
    }

    #[test]
    fn what_neither_camera_can_see_does_not_count() {
        let wall = Array2::from_elem((48, 64), 2.0f32);
        let away = view(0.0, std::f64::consts::PI);
        assert_eq!(mean_flow(wall.view(), &view(0.0, 0.0), &away), 0.0);
        let nothing = Array2::from_elem((48, 64), f32::NAN);
        assert_eq!(
            mean_flow(nothing.view(), &view(0.1, 0.0), &view(0.0, 0.0)),
            0.0
        );
        // Half of the samples at infinity: the others decide.
        let mut half = wall.clone();
        half.slice_mut(ndarray::s![.., 32..]).fill(f32::INFINITY);
        let flow = mean_flow(half.view(), &view(0.1, 0.0), &view(0.0, 0.0));
        assert!((flow - 2.5).abs() < 1e-9, "{flow}");
    }
}
