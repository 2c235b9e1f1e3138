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

use nalgebra::{Isometry3, Matrix3, Rotation3, Translation3, UnitQuaternion};

/// Camera body (REP-103 body axes) from optical axes: x_body = z_optical, y_body = -x_optical, z_body = -y_optical.
pub fn body_from_optical() -> Isometry3<f64> {
    let rotation = Matrix3::new(0.0, 0.0, 1.0, -1.0, 0.0, 0.0, 0.0, -1.0, 0.0);
    let rotation = Rotation3::from_matrix_unchecked(rotation);
    Isometry3::from_parts(
        Translation3::identity(),
        UnitQuaternion::from_rotation_matrix(&rotation),
    )
}

/// Whether a camera's frame has optical axes. `axes`: optical, body, or auto: by the suffix that REP-103 asks for.
pub fn is_optical(camera_frame: &str, axes: &str) -> bool {
    match axes {
        "optical" => true,
        "body" => false,
        _ => camera_frame.ends_with("optical") || camera_frame.ends_with("optical_frame"),
    }
}

/// `base_from_body`, for the parameter: x, y, z, roll, pitch, yaw of the camera body in metres and radians.
pub fn camera_in_base([x, y, z, roll, pitch, yaw]: [f64; 6]) -> Isometry3<f64> {
    Isometry3::from_parts(
        Translation3::new(x, y, z),
        UnitQuaternion::from_euler_angles(roll, pitch, yaw),
    )
}

/// The frames of one map.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    /// Where the camera was on the robot at the map's first frame. There the map lies.
    map_from_world: Option<Isometry3<f64>>,
}

impl Frames {
    /// The robot's pose in the map, from a pose of the camera with lengths in metres; `base_from_optical`: where the camera is on it at that time. The first that is asked
    /// for places the map.
    pub fn map_from_base(
        &mut self,
        world_from_optical: &Isometry3<f64>,
        base_from_optical: &Isometry3<f64>,
    ) -> Isometry3<f64> {
        let map_from_world = *self.map_from_world.get_or_insert(*base_from_optical);
        let mut pose = map_from_world * world_from_optical * base_from_optical.inverse();
        // Products of many unit quaternions drift; what is published has length one.
        pose.rotation = UnitQuaternion::new_normalize(pose.rotation.into_inner());
        pose
    }

    /// The same pose of the robot where lengths of the network have grown by a factor.
    pub fn rescaled(
        &self,
        map_from_base: &Isometry3<f64>,
        base_from_optical: &Isometry3<f64>,
        factor: f64,
    ) -> Isometry3<f64> {
        let map_from_world = self.map_from_world();
        let mut world_from_optical = map_from_world.inverse() * map_from_base * base_from_optical;
        world_from_optical.translation.vector *= factor;
        map_from_world * world_from_optical * base_from_optical.inverse()
    }

    /// Carries the network's points, in metres, into the map.
    pub fn map_from_world(&self) -> Isometry3<f64> {
        self.map_from_world.unwrap_or_else(body_from_optical)
    }

    /// A new map begins.
    pub fn reset(&mut self) {
        self.map_from_world = None;
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

#[cfg(test)]
mod tests {
    use nalgebra::{Point3, Vector3};
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    fn carried(transform: &Isometry3<f64>, point: [f64; 3]) -> [f64; 3] {
        (transform * Point3::from(point))
            .coords
            .map(|c| (c * 1e6).round() / 1e6)
            .into()
    }

    /// Places the map with the camera at `camera_in_base`, then asks for the pose of the robot.
    fn pose(place: [f64; 6], world_from_optical: &Isometry3<f64>) -> (Frames, Isometry3<f64>) {
        let base_from_optical = camera_in_base(place) * body_from_optical();
        let mut frames = Frames::default();
        frames.map_from_base(&Isometry3::identity(), &base_from_optical);
        let pose = frames.map_from_base(world_from_optical, &base_from_optical);
        (frames, pose)
    }

    #[test]
    fn what_the_camera_sees_ahead_left_and_up_lies_on_x_y_and_z_of_the_map() {
        let (frames, _) = pose([0.0; 6], &Isometry3::identity());
        let map_from_world = frames.map_from_world();
        assert_eq!(carried(&map_from_world, [0.0, 0.0, 1.0]), [1.0, 0.0, 0.0]);
        assert_eq!(carried(&map_from_world, [-1.0, 0.0, 0.0]), [0.0, 1.0, 0.0]);
        assert_eq!(carried(&map_from_world, [0.0, -1.0, 0.0]), [0.0, 0.0, 1.0]);
    }

    #[test]
    fn the_map_starts_at_the_base_whatever_the_camera_place() {
        let place = [0.2, -0.1, 0.5, 0.0, 0.3, FRAC_PI_2];
        let (frames, start) = pose(place, &Isometry3::identity());
        assert!(start.translation.vector.norm() < 1e-12 && start.rotation.angle() < 1e-12);
        // The first camera's own centre is where the camera sits on the robot.
        let centre = carried(&frames.map_from_world(), [0.0; 3]);
        assert_eq!(centre, [0.2, -0.1, 0.5]);
    }

    #[test]
    fn forward_and_turning_left_in_the_image_is_forward_and_turning_left_of_the_robot() {
        // Turning left is a negative turn about the optical y, which points down.
        let turn = Vector3::new(0.0, -FRAC_PI_2, 0.0);
        let (_, pose) = pose([0.0; 6], &Isometry3::new(Vector3::new(0.0, 0.0, 2.0), turn));
        assert!((pose.translation.vector - Vector3::new(2.0, 0.0, 0.0)).norm() < 1e-12);
        assert!((pose.rotation.scaled_axis() - Vector3::new(0.0, 0.0, FRAC_PI_2)).norm() < 1e-12);
    }

    #[test]
    fn a_camera_that_looks_left_moves_the_robot_sideways() {
        let forward = Isometry3::translation(0.0, 0.0, 1.0);
        let (_, pose) = pose([0.0, 0.0, 0.0, 0.0, 0.0, FRAC_PI_2], &forward);
        assert!((pose.translation.vector - Vector3::new(0.0, 1.0, 0.0)).norm() < 1e-12);
    }

    #[test]
    fn a_camera_that_turns_on_a_robot_at_rest_leaves_the_robot_at_rest() {
        let mount = |yaw| camera_in_base([0.3, 0.0, 0.5, 0.0, 0.1, yaw]) * body_from_optical();
        let mut frames = Frames::default();
        frames.map_from_base(&Isometry3::identity(), &mount(0.0));
        let seen = mount(0.0).inverse() * mount(0.7);
        let pose = frames.map_from_base(&seen, &mount(0.7));
        assert!(pose.translation.vector.norm() < 1e-12 && pose.rotation.angle() < 1e-9);
    }

    #[test]
    fn a_grown_world_moves_the_camera_and_not_its_place_on_the_robot() {
        let base_from_optical =
            camera_in_base([0.3, 0.1, 0.5, 0.0, 0.2, 0.4]) * body_from_optical();
        let mut frames = Frames::default();
        frames.map_from_base(&Isometry3::identity(), &base_from_optical);
        let mut seen = Isometry3::new(Vector3::new(0.4, -0.1, 1.0), Vector3::new(0.1, 0.6, 0.0));
        let small = frames.map_from_base(&seen, &base_from_optical);
        seen.translation.vector *= 2.5;
        let large = frames.map_from_base(&seen, &base_from_optical);
        let rescaled = frames.rescaled(&small, &base_from_optical, 2.5);
        assert!((large.inverse() * rescaled).translation.vector.norm() < 1e-12);
    }

    #[test]
    fn optical_frames_are_known_by_their_suffix() {
        for (name, axes, expected) in [
            ("camera_optical_frame", "auto", true),
            ("left_optical", "auto", true),
            ("camera_link", "auto", false),
            ("optical_bench/camera", "auto", false),
            ("camera_link", "optical", true),
            ("camera_optical_frame", "body", false),
        ] {
            assert_eq!(is_optical(name, axes), expected, "{name} {axes}");
        }
    }

    #[test]
    fn frame_names_lose_their_slash_and_are_never_empty() {
        assert_eq!(frame_name("/camera", "x"), "camera");
        assert_eq!(frame_name("camera_link", "x"), "camera_link");
        assert_eq!(frame_name("", "x"), "x");
        assert_eq!(frame_name(" / ", "x"), "x");
    }
}
