//! ROS messages from the mapper's types. Poses and points that come in here are already in the map's axes.

use nalgebra::{Isometry3, Vector3};
use r2r::{
    builtin_interfaces::msg::Time,
    geometry_msgs::msg::{
        Point, Pose, PoseArray, PoseStamped, PoseWithCovarianceStamped, Quaternion, Transform,
        TransformStamped, Twist, Vector3 as RosVector3,
    },
    nav_msgs::msg::{Odometry, Path},
    std_msgs::msg::Header,
};

use crate::camera::Stamp;

mod camera_info;
mod cloud;
pub mod covariance;
mod image;

pub use camera_info::camera_info;
pub use cloud::{empty_cloud, set_size};
pub use image::{empty_image, set_pixels};

/// A pose and how uncertain it is.
#[derive(Debug, Clone)]
pub struct UncertainPose {
    pub pose: Isometry3<f64>,
    /// [`covariance`] of it.
    pub covariance: Vec<f64>,
}

pub fn header(stamp: Stamp, frame: &str) -> Header {
    let (sec, nanosec) = stamp.to_ros();
    Header {
        stamp: Time { sec, nanosec },
        frame_id: frame.to_string(),
    }
}

fn quaternion(pose: &Isometry3<f64>) -> Quaternion {
    let q = pose.rotation.coords;
    Quaternion {
        x: q.x,
        y: q.y,
        z: q.z,
        w: q.w,
    }
}

fn vector(v: &Vector3<f64>) -> RosVector3 {
    RosVector3 {
        x: v.x,
        y: v.y,
        z: v.z,
    }
}

pub fn pose(pose: &Isometry3<f64>) -> Pose {
    let t = pose.translation.vector;
    Pose {
        position: Point {
            x: t.x,
            y: t.y,
            z: t.z,
        },
        orientation: quaternion(pose),
    }
}

pub fn pose_stamped(stamp: Stamp, frame: &str, pose_in_frame: &Isometry3<f64>) -> PoseStamped {
    PoseStamped {
        header: header(stamp, frame),
        pose: pose(pose_in_frame),
    }
}

pub fn pose_with_covariance(
    stamp: Stamp,
    frame: &str,
    uncertain: &UncertainPose,
) -> PoseWithCovarianceStamped {
    let mut message = PoseWithCovarianceStamped {
        header: header(stamp, frame),
        ..Default::default()
    };
    message.pose.pose = pose(&uncertain.pose);
    message.pose.covariance.clone_from(&uncertain.covariance);
    message
}

pub fn transform(
    stamp: Stamp,
    parent: &str,
    child: &str,
    parent_from_child: &Isometry3<f64>,
) -> TransformStamped {
    TransformStamped {
        header: header(stamp, parent),
        child_frame_id: child.to_string(),
        transform: Transform {
            translation: vector(&parent_from_child.translation.vector),
            rotation: quaternion(parent_from_child),
        },
    }
}

/// `velocity`: linear and angular, in the child's axes.
pub fn odometry(
    stamp: Stamp,
    (frame, child): (&str, &str),
    frame_from_child: &UncertainPose,
    (linear, angular): (Vector3<f64>, Vector3<f64>),
) -> Odometry {
    let mut message = Odometry {
        header: header(stamp, frame),
        child_frame_id: child.to_string(),
        ..Default::default()
    };
    message.pose.pose = pose(&frame_from_child.pose);
    message
        .pose
        .covariance
        .clone_from(&frame_from_child.covariance);
    message.twist.twist = Twist {
        linear: vector(&linear),
        angular: vector(&angular),
    };
    message
}

/// Mean linear and angular velocity from one pose to the next, in the axes of the later one; zero without time between.
pub fn velocity(
    before: &(Stamp, Isometry3<f64>),
    after: &(Stamp, Isometry3<f64>),
) -> (Vector3<f64>, Vector3<f64>) {
    let seconds = (after.0.0 - before.0.0) as f64 * 1e-9;
    if seconds <= 0.0 {
        return (Vector3::zeros(), Vector3::zeros());
    }
    let step = after.1.translation.vector - before.1.translation.vector;
    let turn = before.1.rotation.inverse() * after.1.rotation;
    (
        after.1.rotation.inverse() * step / seconds,
        turn.scaled_axis() / seconds,
    )
}

/// `poses` in order.
pub fn path(stamp: Stamp, frame: &str, poses: &[(Stamp, Isometry3<f64>)]) -> Path {
    Path {
        header: header(stamp, frame),
        poses: poses
            .iter()
            .map(|(stamp, pose)| pose_stamped(*stamp, frame, pose))
            .collect(),
    }
}

pub fn pose_array(stamp: Stamp, frame: &str, poses: &[(Stamp, Isometry3<f64>)]) -> PoseArray {
    PoseArray {
        header: header(stamp, frame),
        poses: poses.iter().map(|(_, each)| pose(each)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn velocity_is_in_the_axes_of_the_moving_body() {
        let quarter = Vector3::new(0.0, 0.0, std::f64::consts::FRAC_PI_2);
        let before = (Stamp(0), Isometry3::rotation(quarter));
        let after = (
            Stamp(500_000_000),
            Isometry3::new(Vector3::new(0.0, 1.0, 0.0), quarter),
        );
        let (linear, angular) = velocity(&before, &after);
        assert!((linear - Vector3::new(2.0, 0.0, 0.0)).norm() < 1e-12);
        assert!(angular.norm() < 1e-12);
        assert_eq!(velocity(&after, &after).0, Vector3::zeros());
    }
}
