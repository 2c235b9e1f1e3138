//! What a computed camera knows and a real one does not, on topics below `~/truth`.

use nalgebra::Isometry3;
use r2r::geometry_msgs::msg::PoseStamped;
use r2r::nav_msgs::msg::Path;
use r2r::sensor_msgs::msg;
use r2r::{Node, Publisher, QosProfile};

use super::encoding::depth_image;
use crate::camera::Stamp;
use crate::node::messages::{path, pose_stamped};
use crate::node::route::Route;
use crate::world::Image;

/// The frame of the walk's first camera, with its optical axes.
const WORLD: &str = "world";
/// Frames between two messages of the path, which grows.
const PATH_FRAMES: usize = 10;
const PATH_MAX_POSES: usize = 2000;

pub struct TruthTopics {
    pose: Publisher<PoseStamped>,
    path: Publisher<Path>,
    depth: Publisher<msg::Image>,
    /// `world_from_camera`.
    route: Route,
    frames: usize,
}

impl TruthTopics {
    pub fn new(node: &mut Node) -> r2r::Result<Self> {
        let latched = QosProfile::default()
            .keep_last(1)
            .reliable()
            .transient_local();
        Ok(Self {
            pose: node.create_publisher("~/truth/pose", QosProfile::default())?,
            path: node.create_publisher("~/truth/path", latched)?,
            depth: node.create_publisher("~/truth/depth", QosProfile::default().keep_last(2))?,
            route: Route::default(),
            frames: 0,
        })
    }

    pub fn publish(&mut self, stamp: Stamp, world_from_camera: Isometry3<f64>) -> r2r::Result<()> {
        self.route.push(stamp, world_from_camera, PATH_MAX_POSES);
        self.frames += 1;
        self.pose
            .publish(&pose_stamped(stamp, WORLD, &world_from_camera))?;
        if self.frames % PATH_FRAMES == 1 {
            self.path
                .publish(&path(stamp, WORLD, &self.route.thinned(PATH_MAX_POSES)))?;
        }
        Ok(())
    }

    /// Only where someone listens.
    pub fn publish_depth(
        &self,
        stamp: Stamp,
        frame: &str,
        size: (u32, u32),
        image: &Image,
    ) -> r2r::Result<()> {
        if self.depth.get_inter_process_subscription_count()? > 0 {
            let message = depth_image(stamp, frame, size, &image.depth);
            self.depth.publish(&message)?;
        }
        Ok(())
    }
}
