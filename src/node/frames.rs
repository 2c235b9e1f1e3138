//! The frames between the network's world and the robot. This is the one place where axes change.
//!
//! The network's world is the first camera frame with optical axes (x right, y down, z forward). ROS bodies and maps
//! have x forward, y left, z up (REP-103). `map` is placed where the robot's base was at the first frame, so that it
//! starts level and forward for an upright robot:
//!
//! ```text
//! map_from_base(t) = map_from_world * world_from_optical(t) * optical_from_base,   map_from_world = base_from_optical
//! ```
//!
//! Lengths are in the unit of the map. It is metres only when a scale source says so; until then a lever arm given in
//! metres by `camera_in_base` is only as right as the scale.

use nalgebra::{Isometry3, Matrix3, Point3, Rotation3, Translation3, UnitQuaternion};

/// Camera body (REP-103 body axes) from optical axes: x_body = z_optical, y_body = -x_optical, z_body = -y_optical.
fn body_from_optical() -> UnitQuaternion<f64> {
    let rotation = Matrix3::new(0.0, 0.0, 1.0, -1.0, 0.0, 0.0, 0.0, -1.0, 0.0);
    UnitQuaternion::from_rotation_matrix(&Rotation3::from_matrix_unchecked(rotation))
}

#[derive(Debug, Clone)]
pub struct Frames {
    base_from_optical: Isometry3<f64>,
}

impl Frames {
    /// `camera_in_base`: x, y, z, roll, pitch, yaw of the camera body on the robot, in metres and radians.
    pub fn new(camera_in_base: &[f64; 6]) -> Frames {
        let [x, y, z, roll, pitch, yaw] = *camera_in_base;
        let rotation = UnitQuaternion::from_euler_angles(roll, pitch, yaw) * body_from_optical();
        Frames {
            base_from_optical: Isometry3::from_parts(Translation3::new(x, y, z), rotation),
        }
    }

    /// The robot's pose in the map.
    pub fn map_from_base(&self, world_from_optical: &Isometry3<f64>) -> Isometry3<f64> {
        let mut pose =
            self.base_from_optical * world_from_optical * self.base_from_optical.inverse();
        // Products of many unit quaternions drift; what is published has length one.
        pose.rotation = UnitQuaternion::new_normalize(pose.rotation.into_inner());
        pose
    }

    /// The fixed transform that carries the network's points into the map.
    pub fn map_from_world(&self) -> Isometry3<f32> {
        self.base_from_optical.cast()
    }
}

/// A frame name as tf2 wants it: without the leading slash of old times; the fallback where nothing is left.
pub fn frame_name(name: &str, fallback: &str) -> String {
    let name = name.trim().trim_start_matches('/');
    if name.is_empty() {
        fallback.to_string()
    } else {
        name.to_string()
    }
}

/// Applies a transform to a point as the map stores it.
pub fn transform_point(transform: &Isometry3<f32>, position: [f32; 3]) -> [f32; 3] {
    (transform * Point3::from(position)).coords.into()
}

#[cfg(test)]
mod tests {
    use nalgebra::Vector3;
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    fn close(a: [f32; 3], b: [f32; 3]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6)
    }

    #[test]
    fn what_the_camera_sees_ahead_left_and_up_lies_on_x_y_and_z_of_the_map() {
        let map_from_world = Frames::new(&[0.0; 6]).map_from_world();
        assert!(close(
            transform_point(&map_from_world, [0.0, 0.0, 1.0]),
            [1.0, 0.0, 0.0]
        ));
        assert!(close(
            transform_point(&map_from_world, [-1.0, 0.0, 0.0]),
            [0.0, 1.0, 0.0]
        ));
        assert!(close(
            transform_point(&map_from_world, [0.0, -1.0, 0.0]),
            [0.0, 0.0, 1.0]
        ));
    }

    #[test]
    fn the_map_starts_at_the_base_whatever_the_camera_place() {
        let frames = Frames::new(&[0.2, -0.1, 0.5, 0.0, 0.3, FRAC_PI_2]);
        let start = frames.map_from_base(&Isometry3::identity());
        assert!(start.translation.vector.norm() < 1e-12 && start.rotation.angle() < 1e-12);
        // The first camera's own centre is where the camera sits on the robot.
        assert!(close(
            transform_point(&frames.map_from_world(), [0.0; 3]),
            [0.2, -0.1, 0.5]
        ));
    }

    #[test]
    fn forward_and_turning_left_in_the_image_is_forward_and_turning_left_of_the_robot() {
        let frames = Frames::new(&[0.0; 6]);
        // Turning left is a negative turn about the optical y, which points down.
        let world_from_optical = Isometry3::new(
            Vector3::new(0.0, 0.0, 2.0),
            Vector3::new(0.0, -FRAC_PI_2, 0.0),
        );
        let pose = frames.map_from_base(&world_from_optical);
        assert!((pose.translation.vector - Vector3::new(2.0, 0.0, 0.0)).norm() < 1e-12);
        assert!((pose.rotation.scaled_axis() - Vector3::new(0.0, 0.0, FRAC_PI_2)).norm() < 1e-12);
    }

    #[test]
    fn a_camera_that_looks_left_moves_the_robot_sideways() {
        let frames = Frames::new(&[0.0, 0.0, 0.0, 0.0, 0.0, FRAC_PI_2]);
        let pose = frames.map_from_base(&Isometry3::translation(0.0, 0.0, 1.0));
        assert!((pose.translation.vector - Vector3::new(0.0, 1.0, 0.0)).norm() < 1e-12);
    }

    #[test]
    fn frame_names_lose_their_slash_and_are_never_empty() {
        assert_eq!(frame_name("/camera", "x"), "camera");
        assert_eq!(frame_name("camera_link", "x"), "camera_link");
        assert_eq!(frame_name("", "x"), "x");
        assert_eq!(frame_name(" / ", "x"), "x");
    }
}
