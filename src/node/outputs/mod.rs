//! What goes out: messages about each mapped frame, and now and then the map and the way.

mod links;
mod mount;
mod publishers;
mod sent;

use std::sync::Arc;

use nalgebra::{Isometry3, Vector3};
use r2r::{
    Node,
    sensor_msgs::msg::{Image, PointCloud2},
    tf2_msgs::msg::TFMessage,
};

use super::{
    frames::{Frames, frame_name},
    messages::{self, UncertainPose, covariance},
    parameters::Parameters,
    route::Route,
    tree::TransformTree,
};
use crate::{
    camera::Stamp,
    map::{GridView, Scale, write_grid, write_points},
    mapper::{MapUpdate, Mapper},
    stream::FrameType,
};
use links::Links;
use mount::{Mount, Source};
use publishers::{Publishers, listeners, send};
use sent::Sent;

/// The frames' names.
#[derive(Debug, Clone)]
pub struct Names {
    pub map: String,
    pub odom: String,
    pub base: String,
}

/// Messages that are filled anew for every frame.
struct Buffers {
    points: PointCloud2,
    map: PointCloud2,
    depth: Image,
    confidence: Image,
}

pub struct Outputs {
    parameters: Arc<Parameters>,
    publishers: Publishers,
    tree: Arc<TransformTree>,
    names: Names,
    frames: Frames,
    mount: Mount,
    links: Links,
    buffers: Buffers,
    path: Route,
    keyframes: Route,
    /// The camera's frame that `/tf_static` was told of.
    placed: Option<String>,
    /// The pose published last, for the velocity of the next.
    last: Option<(Stamp, Isometry3<f64>)>,
    /// Grows whenever map and path change.
    revision: u64,
    sent_map: Sent,
    sent_path: Sent,
    sent_keyframes: Sent,
}

impl Outputs {
    pub fn new(
        node: &mut Node,
        parameters: Arc<Parameters>,
        tree: Arc<TransformTree>,
    ) -> r2r::Result<Outputs> {
        Ok(Outputs {
            publishers: Publishers::new(node, &parameters)?,
            names: Names {
                map: frame_name(&parameters.map_frame, "map"),
                odom: frame_name(&parameters.odom_frame, "odom"),
                base: frame_name(&parameters.base_frame, "base_link"),
            },
            frames: Frames::default(),
            mount: Mount::new(&parameters),
            links: Links::new(&parameters),
            buffers: Buffers {
                points: messages::empty_cloud(),
                map: messages::empty_cloud(),
                depth: messages::empty_image(),
                confidence: messages::empty_image(),
            },
            tree,
            path: Route::default(),
            keyframes: Route::default(),
            placed: None,
            last: None,
            revision: 0,
            sent_map: Sent::default(),
            sent_path: Sent::default(),
            sent_keyframes: Sent::default(),
            parameters,
        })
    }

    /// Takes the parameters that may change while the node runs.
    pub fn set_parameters(&mut self, parameters: Arc<Parameters>) {
        self.links.set_parameters(&parameters);
        self.parameters = parameters;
    }

    /// Poses whose map → odom could not be composed with the odometry of others.
    pub fn odometry_missing(&self) -> u64 {
        self.links.missing()
    }

    /// Sends what belongs to one mapped frame, all with the image's stamp and with lengths by the scale. `camera`: the
    /// images' frame.
    pub fn publish_update(&mut self, update: &MapUpdate, camera: &str, scale: &Scale) {
        self.revision += 1;
        let stamp = update.stamp;
        let base = self.names.base.clone();
        if self.mount.look(&self.tree, &base, camera, stamp) == Source::Parameter {
            self.place_camera(camera, stamp);
        }
        let world_from_camera = scale.of_pose(&update.world_from_camera);
        let map_from_base =
            (self.frames).map_from_base(&world_from_camera, self.mount.base_from_optical());
        self.publish_pose(update, map_from_base, scale);
        self.publish_points(update, camera, scale);
        self.publish_pictures(update, camera, scale);
    }

    /// Where the camera is, by the odometry of others.
    pub fn odom_from_camera(&self, stamp: Stamp) -> Option<Isometry3<f64>> {
        let odom_from_base = self.links.odometry(&self.tree, &self.names, stamp)?;
        Some(odom_from_base * self.mount.base_from_optical())
    }

    /// A unit vector in the network's world.
    pub fn up_in_world(&self) -> Vector3<f64> {
        self.frames.map_from_world().inverse() * Vector3::z()
    }

    /// Lengths have become metres: what was published of this map is of another size.
    pub fn scale_is_known(&mut self, scale: &Scale) {
        let base_from_optical = self.mount.base_from_optical();
        let rescale = |pose: &Isometry3<f64>| {
            (self.frames).rescaled(pose, base_from_optical, scale.metres_per_unit)
        };
        self.path.change(rescale);
        self.keyframes.change(rescale);
        self.last = None;
        self.revision += 1;
    }

    fn publish_pose(&mut self, update: &MapUpdate, map_from_base: Isometry3<f64>, scale: &Scale) {
        let (stamp, prediction) = (update.stamp, &update.prediction);
        let located = (self.links).locate(&self.tree, &self.names, stamp, &map_from_base);
        if !located.transforms.is_empty() {
            self.tree.note_own(&located.transforms);
            let transforms = located.transforms;
            send(&self.publishers.tf, &TFMessage { transforms });
        }
        let bound = usize::try_from(self.parameters.path_max_poses).unwrap_or(usize::MAX);
        self.path.push(stamp, map_from_base, bound);
        if prediction.frame_type != FrameType::Other {
            self.keyframes.push(stamp, map_from_base, bound);
        }

        let Names { map, odom, base } = &self.names;
        send(
            &self.publishers.pose,
            &messages::pose_stamped(stamp, map, &map_from_base),
        );
        // A frame without a depth to judge by is one that the network knows nothing about.
        let (error, mean_depth) =
            covariance::depth_error(&prediction.depth, &prediction.depth_conf)
                .unwrap_or((1.0, 1.0));
        let uncertain = UncertainPose {
            covariance: covariance::covariance(
                (error, mean_depth * scale.metres_per_unit),
                &map_from_base.translation.vector,
                scale.uncertainty,
            ),
            pose: map_from_base,
        };
        send(
            &self.publishers.pose_with_covariance,
            &messages::pose_with_covariance(stamp, map, &uncertain),
        );
        let now = (stamp, map_from_base);
        let velocity = messages::velocity(self.last.as_ref().unwrap_or(&now), &now);
        // Beside the odometry of others, ours is no odometry of that frame.
        let frame = if located.has_outside_odometry {
            map
        } else {
            odom
        };
        send(
            &self.publishers.odometry,
            &messages::odometry(stamp, (frame, base), &uncertain, velocity),
        );
        self.last = Some(now);
    }

    /// Tells once where the camera is on the robot, so that its pictures and points can be shown on the map.
    fn place_camera(&mut self, camera: &str, stamp: Stamp) {
        let is_told = self.placed.as_deref() == Some(camera);
        let is_taken = camera == self.names.base || self.tree.parent_of(camera).is_some();
        if is_told || is_taken || !self.parameters.publish_base_to_camera {
            return;
        }
        let base_from_camera = self.mount.base_from_camera(camera);
        let link = messages::transform(stamp, &self.names.base, camera, &base_from_camera);
        let transforms = vec![link];
        self.tree.note_own(&transforms);
        send(&self.publishers.tf_static, &TFMessage { transforms });
        self.placed = Some(camera.to_string());
    }

    /// This frame's points, in the camera's frame.
    fn publish_points(&mut self, update: &MapUpdate, camera: &str, scale: &Scale) {
        if listeners(&self.publishers.points) == 0 {
            return;
        }
        let cloud = &mut self.buffers.points;
        cloud.header = messages::header(update.stamp, camera);
        let frame_from_camera = self.mount.camera_from_optical(camera);
        let camera_from_world = update.world_from_camera.inverse();
        if self.parameters.organised_points {
            let (height, width) = update.prediction.depth.dim();
            let view = GridView {
                rows: height,
                columns: width,
                intrinsics: &update.intrinsics,
                camera_from_world: &camera_from_world,
                scale,
                frame_from_camera: &frame_from_camera,
            };
            let filled = write_grid(&mut cloud.data, &view, &update.points);
            messages::set_size(cloud, height, filled == height * width);
        } else {
            let frame_from_world = frame_from_camera * scale.of_pose(&camera_from_world);
            let points = update.points.iter().copied();
            write_points(&mut cloud.data, scale, &frame_from_world, points);
            messages::set_size(cloud, 1, true);
        }
        send(&self.publishers.points, cloud);
    }

    /// Depth and confidence as pictures.
    fn publish_pictures(&mut self, update: &MapUpdate, camera: &str, scale: &Scale) {
        let Publishers {
            depth,
            depth_info,
            confidence,
            ..
        } = &self.publishers;
        let header = messages::header(update.stamp, camera);
        let prediction = &update.prediction;
        for (publisher, image, pixels, factor) in [
            (
                depth,
                &mut self.buffers.depth,
                &prediction.depth,
                scale.metres_per_unit as f32,
            ),
            (
                confidence,
                &mut self.buffers.confidence,
                &prediction.depth_conf,
                1.0,
            ),
        ] {
            if listeners(publisher) > 0 {
                image.header = header.clone();
                let scaled = pixels.iter().map(|pixel| pixel * factor);
                messages::set_pixels(image, pixels.dim(), scaled);
                send(publisher, image);
            }
        }
        if listeners(depth_info) > 0 {
            let size = prediction.depth.dim();
            let info = messages::camera_info(header, size, &update.intrinsics);
            send(depth_info, &info);
        }
    }

    /// Sends the map and the way where they changed and someone listens. `stamp`: of the newest image in the map.
    pub fn publish_map(&mut self, mapper: &Mapper, stamp: Stamp) {
        let Publishers {
            map,
            path,
            keyframes,
            ..
        } = &self.publishers;
        let frame = &self.names.map;
        if self.sent_map.is_due(self.revision, listeners(map)) {
            let cloud = &mut self.buffers.map;
            cloud.header = messages::header(stamp, frame);
            let points = mapper.map().points();
            let bound = usize::try_from(self.parameters.map_max_points).unwrap_or(usize::MAX);
            let stride = points.len().div_ceil(bound.max(1)).max(1);
            let map_from_world = self.frames.map_from_world();
            let scale = mapper.scale().scale();
            write_points(
                &mut cloud.data,
                &scale,
                &map_from_world,
                points.step_by(stride),
            );
            messages::set_size(cloud, 1, true);
            send(map, cloud);
        }
        let bound = usize::try_from(self.parameters.path_max_poses).unwrap_or(usize::MAX);
        if self.sent_path.is_due(self.revision, listeners(path)) {
            let message = messages::path(stamp, frame, &self.path.thinned(bound));
            send(path, &message);
        }
        if (self.sent_keyframes).is_due(self.revision, listeners(keyframes)) {
            let message = messages::pose_array(stamp, frame, &self.keyframes.thinned(bound));
            send(keyframes, &message);
        }
    }

    /// The map was emptied: what listeners hold is no longer true.
    pub fn map_was_reset(&mut self) {
        self.revision += 1;
        self.last = None;
        self.frames.reset();
        self.mount.reset();
        self.path.clear();
        self.keyframes.clear();
    }
}
