//! What the network says about a camera.

use std::f64::consts::PI;

use nalgebra::{Isometry3, Point3, Quaternion, Translation3, UnitQuaternion};
use thiserror::Error;

use crate::camera::{Intrinsics, NetworkSize};

/// A pose encoding without a pose in it.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum PoseError {
    #[error("the network's pose holds a value that is not finite")]
    NotFinite,
    #[error("the network's rotation is a zero quaternion")]
    ZeroQuaternion,
    #[error("the network's field of view of {radians} rad is not between 0 and π")]
    FieldOfView { radians: f64 },
}

impl PoseError {
    /// A stable label of the kind of fault, for counting.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFinite => "pose_not_finite",
            Self::ZeroQuaternion => "zero_quaternion",
            Self::FieldOfView { .. } => "field_of_view",
        }
    }
}

/// Decodes the nine numbers that the network gives for a frame: the camera's position (in the network's unit of
/// length), its rotation as a quaternion x, y, z, w of any length, and the vertical and horizontal field of view
/// in radians.
///
/// Returns `world_from_camera`, as the released checkpoints mean it, and the intrinsics for pictures of `size`.
///
/// # Errors
/// Values that are not finite, a zero quaternion, and fields of view outside (0, π).
pub fn decode_pose(
    pose_enc: &[f32; 9],
    size: NetworkSize,
) -> Result<(Isometry3<f64>, Intrinsics), PoseError> {
    if pose_enc.iter().any(|value| !value.is_finite()) {
        return Err(PoseError::NotFinite);
    }
    let [tx, ty, tz, x, y, z, w, vertical, horizontal] = pose_enc.map(f64::from);
    let quaternion = Quaternion::new(w, x, y, z);
    if quaternion.norm_squared() == 0.0 {
        return Err(PoseError::ZeroQuaternion);
    }
    for radians in [vertical, horizontal] {
        if radians <= 0.0 || radians >= PI {
            return Err(PoseError::FieldOfView { radians });
        }
    }
    let world_from_camera = Isometry3::from_parts(
        Translation3::new(tx, ty, tz),
        UnitQuaternion::from_quaternion(quaternion),
    );
    let intrinsics = Intrinsics::from_field_of_view(vertical, horizontal, size);
    Ok((world_from_camera, intrinsics))
}

/// The point in the camera's frame that the pixel with the indices `u` (column) and `v` (row) sees at `depth`,
/// measured along the optical axis and in its unit.
pub fn unproject(u: f64, v: f64, depth: f64, k: &Intrinsics) -> Point3<f64> {
    Point3::new((u - k.cx) / k.fx * depth, (v - k.cy) / k.fy * depth, depth)
}

#[cfg(test)]
mod tests;
