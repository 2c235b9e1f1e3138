//! The node's publishers and what goes out on them.

use nalgebra::Isometry3;
use r2r::{
    Node, Publisher, QosProfile, WrappedTypesupport,
    geometry_msgs::msg::PoseStamped,
    nav_msgs::msg::{Odometry, Path},
    sensor_msgs::msg::PointCloud2,
    tf2_msgs::msg::TFMessage,
};

use super::{
    frames::{Frames, frame_name},
    messages,
    parameters::Parameters,
};
use crate::{
    camera::Stamp,
    mapper::{MapUpdate, Mapper},
};

struct Names {
    map: String,
    odom: String,
    base: String,
}

pub struct Outputs {
    frames: Frames,
    names: Names,
    map_to_odom: bool,
    odom_to_base: bool,
    path_max_poses: usize,
    points: Publisher<PointCloud2>,
    pose: Publisher<PoseStamped>,
    odometry: Publisher<Odometry>,
    path: Publisher<Path>,
    tf: Publisher<TFMessage>,
    /// The pose published last, for the velocity of the next.
    last: Option<(Stamp, Isometry3<f64>)>,
    /// Grows whenever map and path change; what was sent last and to how many listeners.
    revision: u64,
    sent_points: Sent,
    sent_path: Sent,
}

/// State of one output that is sent only when it changed or someone new listens.
#[derive(Default)]
struct Sent {
    revision: u64,
    listeners: usize,
}

impl Sent {
    /// Whether it is to be sent now; if so, it counts as sent.
    fn is_due(&mut self, revision: u64, listeners: usize) -> bool {
        let due = listeners > 0 && (revision != self.revision || listeners > self.listeners);
        self.listeners = listeners;
        if due {
            self.revision = revision;
        }
        due
    }
}

impl Outputs {
    pub fn new(node: &mut Node, parameters: &Parameters) -> r2r::Result<Outputs> {
        // Whoever comes late still gets the last map and path.
        let latched = || {
            QosProfile::default()
                .keep_last(1)
                .reliable()
                .transient_local()
        };
        let live = || QosProfile::default().keep_last(10).reliable();
        Ok(Outputs {
            frames: Frames::new(&parameters.camera_in_base),
            names: Names {
                map: frame_name(&parameters.map_frame, "map"),
                odom: frame_name(&parameters.odom_frame, "odom"),
                base: frame_name(&parameters.base_frame, "base_link"),
            },
            map_to_odom: parameters.publish_map_to_odom,
            odom_to_base: parameters.publish_odom_to_base,
            path_max_poses: usize::try_from(parameters.path_max_poses).unwrap_or(usize::MAX),
            points: node.create_publisher("~/points", latched())?,
            pose: node.create_publisher("~/pose", live())?,
            odometry: node.create_publisher("~/odometry", live())?,
            path: node.create_publisher("~/path", latched())?,
            tf: node.create_publisher("/tf", QosProfile::default().keep_last(100).reliable())?,
            last: None,
            revision: 0,
            sent_points: Sent::default(),
            sent_path: Sent::default(),
        })
    }

    /// Takes the parameters that may change while the node runs.
    pub fn set_parameters(&mut self, parameters: &Parameters) {
        self.map_to_odom = parameters.publish_map_to_odom;
        self.odom_to_base = parameters.publish_odom_to_base;
        self.path_max_poses = usize::try_from(parameters.path_max_poses).unwrap_or(usize::MAX);
    }

    /// Sends what belongs to one mapped frame: pose, odometry and transforms, all with the image's stamp.
    pub fn publish_update(&mut self, update: &MapUpdate) {
        self.revision += 1;
        let stamp = update.stamp;
        let map_from_base = self.frames.map_from_base(&update.world_from_camera);
        // There is no loop closure between odometry and map: they coincide.
        let map_from_odom = Isometry3::identity();
        let odom_from_base = map_from_base;
        let Names { map, odom, base } = &self.names;

        let mut transforms = Vec::with_capacity(2);
        if self.map_to_odom {
            transforms.push(messages::transform(stamp, map, odom, &map_from_odom));
        }
        if self.odom_to_base {
            transforms.push(messages::transform(stamp, odom, base, &odom_from_base));
        }
        if !transforms.is_empty() {
            tell(self.tf.publish(&TFMessage { transforms }), "/tf");
        }
        tell(
            self.pose
                .publish(&messages::pose_stamped(stamp, map, &map_from_base)),
            "pose",
        );

        let now = (stamp, odom_from_base);
        let velocity = messages::velocity(self.last.as_ref().unwrap_or(&now), &now);
        let odometry = messages::odometry(stamp, (odom, base), &odom_from_base, velocity);
        tell(self.odometry.publish(&odometry), "odometry");
        self.last = Some(now);
    }

    /// Sends the map and the path where they changed and someone listens. `stamp`: of the newest image in the map.
    pub fn publish_map(&mut self, mapper: &Mapper, stamp: Stamp) {
        if self
            .sent_points
            .is_due(self.revision, listeners(&self.points))
        {
            let map_from_world = self.frames.map_from_world();
            let cloud = messages::cloud(
                stamp,
                &self.names.map,
                &map_from_world,
                mapper.map().points(),
            );
            tell(self.points.publish(&cloud), "points");
        }
        if self.sent_path.is_due(self.revision, listeners(&self.path)) {
            let poses: Vec<_> = mapper
                .trajectory()
                .iter()
                .map(|(stamp, world_from_camera)| {
                    (*stamp, self.frames.map_from_base(world_from_camera))
                })
                .collect();
            let mut path = messages::path(&poses, &self.names.map, self.path_max_poses);
            path.header = messages::header(stamp, &self.names.map);
            tell(self.path.publish(&path), "path");
        }
    }

    /// The map was emptied: what listeners hold is no longer true.
    pub fn map_was_reset(&mut self) {
        self.revision += 1;
        self.last = None;
    }
}

fn listeners<T: WrappedTypesupport + 'static>(publisher: &Publisher<T>) -> usize {
    publisher
        .get_inter_process_subscription_count()
        .unwrap_or(0)
}

fn tell(result: r2r::Result<()>, topic: &str) {
    if let Err(error) = result {
        log::debug!("{topic} was not published: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::Sent;

    #[test]
    fn sent_when_changed_or_when_someone_new_listens() {
        let mut sent = Sent::default();
        assert!(!sent.is_due(1, 0), "nobody listens");
        assert!(sent.is_due(1, 1), "changed");
        assert!(!sent.is_due(1, 1), "nothing new");
        assert!(sent.is_due(1, 2), "one more listener");
        assert!(!sent.is_due(1, 1), "one listener less");
        assert!(sent.is_due(1, 2), "a new one in its place");
        assert!(!sent.is_due(2, 0), "nobody listens");
        assert!(sent.is_due(2, 1), "changed meanwhile");
    }
}
