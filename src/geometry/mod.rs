//! Poses, intrinsics and alignment: pure functions of numbers.
//!
//! Camera frames have optical axes: x to the right, y down, z forward. `world_from_camera` takes a point in
//! the camera's frame to the world's.

mod align;
mod flow;
mod matrix;
mod pose;

pub use crate::camera::Intrinsics;
pub use align::{
    AlignError, align_rigid, align_rotations, align_similarity, align_similarity_robust,
};
pub use flow::{CameraView, mean_flow};
pub use matrix::{MatrixError, rigid_from_rows};
pub use pose::{PoseError, decode_pose, unproject};
