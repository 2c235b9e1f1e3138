//! ROS messages from the mapper's types. Poses and points that come in here are already in the map's axes.

use nalgebra::{Isometry3, Vector3};
use r2r::{
    builtin_interfaces::msg::Time,
    geometry_msgs::msg::{
        Point, Pose, PoseStamped, Quaternion, Transform, TransformStamped, Twist,
        Vector3 as RosVector3,
    },
    nav_msgs::msg::{Odometry, Path},
    sensor_msgs::msg::{PointCloud2, PointField},
    std_msgs::msg::Header,
};

use super::frames::transform_point;
use crate::{camera::Stamp, map::MapPoint};

/// Bytes of one point in a cloud: x, y, z, rgb and confidence, four bytes each.
const POINT_STEP: usize = 20;

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
    frame_from_child: &Isometry3<f64>,
    (linear, angular): (Vector3<f64>, Vector3<f64>),
) -> Odometry {
    let mut message = Odometry {
        header: header(stamp, frame),
        child_frame_id: child.to_string(),
        ..Default::default()
    };
    message.pose.pose = pose(frame_from_child);
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

/// A path of at most `max_poses` poses, thinned evenly; the first and the last pose are always in it.
pub fn path(poses: &[(Stamp, Isometry3<f64>)], frame: &str, max_poses: usize) -> Path {
    let stamp = poses.last().map_or(Stamp(0), |(stamp, _)| *stamp);
    let last = poses.len().saturating_sub(1);
    let stride = last.div_ceil(max_poses.saturating_sub(1).max(1)).max(1);
    let mut kept: Vec<usize> = (0..poses.len()).step_by(stride).collect();
    if kept.last().is_some_and(|index| *index != last) {
        kept.push(last);
    }
    Path {
        header: header(stamp, frame),
        poses: kept
            .into_iter()
            .map(|index| pose_stamped(poses[index].0, frame, &poses[index].1))
            .collect(),
    }
}

/// A dense unorganised cloud, the points carried into the map's axes by `map_from_world`.
pub fn cloud(
    stamp: Stamp,
    frame: &str,
    map_from_world: &Isometry3<f32>,
    points: impl Iterator<Item = MapPoint>,
) -> PointCloud2 {
    let mut data = Vec::with_capacity(points.size_hint().0 * POINT_STEP);
    for point in points {
        for coordinate in transform_point(map_from_world, point.position) {
            data.extend_from_slice(&coordinate.to_le_bytes());
        }
        data.extend_from_slice(&packed_rgb(point.color).to_le_bytes());
        data.extend_from_slice(&point.confidence.to_le_bytes());
    }
    let width = (data.len() / POINT_STEP) as u32;
    let field = |name: &str, offset: u32| PointField {
        name: name.to_string(),
        offset,
        datatype: PointField::FLOAT32 as u8,
        count: 1,
    };
    PointCloud2 {
        header: header(stamp, frame),
        height: 1,
        width,
        fields: vec![
            field("x", 0),
            field("y", 4),
            field("z", 8),
            field("rgb", 12),
            field("confidence", 16),
        ],
        is_bigendian: false,
        point_step: POINT_STEP as u32,
        row_step: data.len() as u32,
        data,
        is_dense: true,
    }
}

/// 0x00RRGGBB, the bits that PCL and RViz read from the float field "rgb".
fn packed_rgb([red, green, blue]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, red, green, blue])
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::Isometry3;

    fn point(position: [f32; 3], color: [u8; 3]) -> MapPoint {
        MapPoint {
            position,
            color,
            confidence: 2.5,
        }
    }

    #[test]
    fn a_cloud_has_the_documented_layout_and_colours() {
        let points = [
            point([1.0, 2.0, 3.0], [255, 0, 0]),
            point([0.0; 3], [0, 255, 0]),
            point([0.0; 3], [0, 0, 255]),
        ];
        let message = cloud(
            Stamp(1_500_000_000),
            "map",
            &Isometry3::identity(),
            points.into_iter(),
        );
        assert_eq!(
            (
                message.width,
                message.height,
                message.point_step,
                message.row_step
            ),
            (3, 1, 20, 60)
        );
        assert_eq!(
            (message.header.stamp.sec, message.header.stamp.nanosec),
            (1, 500_000_000)
        );
        let names: Vec<&str> = message
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .collect();
        assert_eq!(names, ["x", "y", "z", "rgb", "confidence"]);
        let word = |point: usize, field: usize| {
            let at = point * 20 + field * 4;
            u32::from_le_bytes(message.data[at..at + 4].try_into().unwrap())
        };
        assert_eq!(f32::from_bits(word(0, 1)), 2.0);
        assert_eq!(
            [word(0, 3), word(1, 3), word(2, 3)],
            [0x00FF_0000, 0x0000_FF00, 0x0000_00FF]
        );
        assert_eq!(f32::from_bits(word(2, 4)), 2.5);
        assert!(message.is_dense && !message.is_bigendian);
    }

    #[test]
    fn an_empty_cloud_is_legal() {
        let message = cloud(Stamp(1), "map", &Isometry3::identity(), std::iter::empty());
        assert_eq!((message.width, message.height, message.row_step), (0, 1, 0));
        assert_eq!(message.fields.len(), 5);
    }

    #[test]
    fn a_long_path_keeps_its_ends_and_its_bound() {
        for (length, bound) in [(0, 2), (1, 2), (2, 2), (100, 10), (1000, 2), (7, 7), (8, 7)] {
            let poses: Vec<_> = (0..length)
                .map(|i| (Stamp(i), Isometry3::translation(i as f64, 0.0, 0.0)))
                .collect();
            let message = path(&poses, "map", bound);
            assert!(
                message.poses.len() <= bound,
                "{length} poses gave {}",
                message.poses.len()
            );
            if length > 0 {
                assert_eq!(message.poses[0].pose.position.x, 0.0);
                assert_eq!(
                    message.poses.last().unwrap().pose.position.x,
                    (length - 1) as f64
                );
            }
        }
    }

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
