//! The topics that the node publishes on.

use r2r::{
    Node, Publisher, QosProfile, WrappedTypesupport,
    geometry_msgs::msg::{PoseArray, PoseStamped, PoseWithCovarianceStamped},
    nav_msgs::msg::{Odometry, Path},
    sensor_msgs::msg::{CameraInfo, Image, PointCloud2},
    tf2_msgs::msg::TFMessage,
};

use crate::node::parameters::Parameters;

pub struct Publishers {
    pub points: Publisher<PointCloud2>,
    pub map: Publisher<PointCloud2>,
    pub pose: Publisher<PoseStamped>,
    pub pose_with_covariance: Publisher<PoseWithCovarianceStamped>,
    pub odometry: Publisher<Odometry>,
    pub path: Publisher<Path>,
    pub keyframes: Publisher<PoseArray>,
    pub depth: Publisher<Image>,
    pub depth_info: Publisher<CameraInfo>,
    pub confidence: Publisher<Image>,
    pub tf: Publisher<TFMessage>,
    pub tf_static: Publisher<TFMessage>,
}

impl Publishers {
    pub fn new(node: &mut Node, parameters: &Parameters) -> r2r::Result<Publishers> {
        // Whoever comes late still gets the last one.
        let latched = || {
            QosProfile::default()
                .keep_last(1)
                .reliable()
                .transient_local()
        };
        let live = || QosProfile::default().keep_last(10).reliable();
        let large = || {
            if parameters.output_reliability == "best_effort" {
                QosProfile::sensor_data().keep_last(1)
            } else {
                QosProfile::default().keep_last(1).reliable()
            }
        };
        Ok(Publishers {
            points: node.create_publisher("~/points", large())?,
            map: node.create_publisher("~/map", latched())?,
            pose: node.create_publisher("~/pose", live())?,
            pose_with_covariance: node.create_publisher("~/pose_with_covariance", live())?,
            odometry: node.create_publisher("~/odometry", live())?,
            path: node.create_publisher("~/path", latched())?,
            keyframes: node.create_publisher("~/keyframes", latched())?,
            depth: node.create_publisher("~/depth/image", large())?,
            depth_info: node.create_publisher("~/depth/camera_info", large())?,
            confidence: node.create_publisher("~/confidence/image", large())?,
            tf: node.create_publisher("/tf", QosProfile::default().keep_last(100).reliable())?,
            tf_static: node.create_publisher("/tf_static", latched())?,
        })
    }
}

/// How many listen to a topic in other processes.
pub fn listeners<T: WrappedTypesupport + 'static>(publisher: &Publisher<T>) -> usize {
    publisher
        .get_inter_process_subscription_count()
        .unwrap_or(0)
}

/// Publishes; what cannot be sent is only noted, since the next will be.
pub fn send<T: WrappedTypesupport + 'static>(publisher: &Publisher<T>, message: &T) {
    if let Err(error) = publisher.publish(message) {
        log::debug!("a message was not published: {error}");
    }
}
