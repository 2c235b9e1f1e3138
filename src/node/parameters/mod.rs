//! Every parameter of the node, declared once: name, type, default, range and description.
//!
//! The struct, the ROS parameters, `config/mapping.yaml` and `docs/parameters.md` all come from [`Parameters`]'s
//! table; two tests hold the files to it.

mod files;
mod kinds;

use r2r::ParameterValue;

use super::frames::frame_name;
use kinds::{ParameterType, check_range, type_of};

pub use files::{as_markdown, as_yaml};
pub use kinds::{ParameterError, Range, words};

/// One row of the table.
#[derive(Debug, Clone)]
pub struct Declaration {
    pub name: &'static str,
    pub type_name: &'static str,
    pub default: ParameterValue,
    pub range: Range,
    pub change: Change,
    pub description: &'static str,
}

/// When a parameter can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Before the node starts.
    Start,
    /// At any time.
    Live,
}

/// The ROS name of a field: its own where no other is given.
macro_rules! ros_name {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $ros:literal) => {
        $ros
    };
}

macro_rules! change {
    () => {
        Change::Start
    };
    (live) => {
        Change::Live
    };
}

macro_rules! parameters {
    ($($name:ident $(as $ros:literal)?: $type:ty = $default:expr, $range:expr, $description:literal $(, $change:ident)?;)*) => {
        /// The node's parameters, checked.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Parameters {
            $(#[doc = $description] pub $name: $type,)*
        }

        impl Default for Parameters {
            fn default() -> Self {
                Parameters { $($name: $default.into(),)* }
            }
        }

        impl Parameters {
            /// The table, in the order in which it is shown.
            pub fn table() -> Vec<Declaration> {
                let default = Parameters::default();
                vec![$(Declaration {
                    name: ros_name!($name $($ros)?),
                    type_name: <$type as ParameterType>::NAME,
                    default: default.$name.to_ros(),
                    range: $range,
                    change: change!($($change)?),
                    description: $description,
                },)*]
            }

            pub fn get(&self, name: &str) -> Option<ParameterValue> {
                match name {
                    $(ros_name!($name $($ros)?) => Some(self.$name.to_ros()),)*
                    _ => None,
                }
            }

            /// Sets one parameter; on an error nothing has changed.
            pub fn set(&mut self, name: &str, value: &ParameterValue) -> Result<(), ParameterError> {
                match name {
                    $(ros_name!($name $($ros)?) => {
                        let parsed = <$type as ParameterType>::from_ros(value).ok_or(ParameterError::Type {
                            found: type_of(value),
                            expected: <$type as ParameterType>::NAME,
                        })?;
                        check_range(&parsed.to_ros(), $range)?;
                        self.$name = parsed;
                    })*
                    _ => return Err(ParameterError::Unknown { nearest: nearest_name(name) }),
                }
                Ok(())
            }
        }
    };
}

parameters! {
    image_topic: String = "image", Range::NotEmpty,
        "Topic of the camera's images. With image_transport compressed the node listens to the topic below it, /compressed.";
    image_transport: String = "raw", Range::OneOf(&["raw", "compressed"]),
        "raw (sensor_msgs/Image) or compressed (sensor_msgs/CompressedImage, JPEG or PNG).";
    camera_info_topic: String = "", Range::Any,
        "Topic of the camera's calibration (sensor_msgs/CameraInfo), which need not be there. Empty: camera_info beside the images.";
    qos_reliability as "qos.reliability": String = "best_effort", Range::OneOf(&["best_effort", "reliable"]),
        "How images and calibration are subscribed to. best_effort takes every publisher; reliable only one that is reliable too, and loses no image.";
    qos_depth as "qos.depth": i64 = 2, Range::Integers(1, 100),
        "Images that may wait between the transport and the node. The newest is mapped in any case.";
    rectify: String = "auto", Range::OneOf(&["auto", "always", "never"]),
        "Whether images are rectified by the calibration: auto (where the lens distorts, unless the topic is an image_rect), always (images without a calibration are refused) or never.";
    intrinsics: String = "predicted", Range::OneOf(&["predicted", "calibrated"]),
        "Whose focal lengths turn depth into points: the network's, or the camera's where it is calibrated.";
    field_of_view_warning: f64 = 10.0, Range::Numbers(0.1, 180.0),
        "Difference in degrees between the predicted and the calibrated field of view from which on it is reported.", live;
    crop: [i64; 4] = [0; 4], Range::Integers(0, 100_000),
        "Pixels cut off every image at the left, top, right and bottom, such as a burned-in border.";
    mask_image: String = "", Range::Any,
        "PNG file laid over the whole image: what is black in it is not mapped, such as the robot itself. Empty: none.";
    model: String = "", Range::Any,
        "Exported model folder, or a checkpoint file (.pt, .safetensors), which is exported once into a cache. Must be given.";
    model_config: String = "", Range::Any,
        "Network sizes for a checkpoint file (JSON). Empty: the official sizes where they fit, else config.json beside the checkpoint.";
    height: i64 = 0, Range::Integers(0, 4096),
        "Height in pixels at which a checkpoint is exported, a multiple of 14. 0: the configuration's, else that of the reference rule for a 4:3 image.";
    width: i64 = 0, Range::Integers(0, 4096),
        "Width in pixels at which a checkpoint is exported, a multiple of 14. 0: the configuration's, else that of the reference rule for a 4:3 image.";
    provider: String = "auto", Range::OneOf(&["auto", "cpu", "cuda", "tensorrt"]),
        "Where the network runs. auto takes the best one that works; any other is used or the start fails.";
    onnxruntime_library: String = "", Range::Any,
        "Path of libonnxruntime.so. Empty: ORT_DYLIB_PATH, else the installed place.";
    num_scale_frames: i64 = 0, Range::Integers(0, 64),
        "Frames that fix the map's scale together at the start. 0: the model's own number.";
    kv_cache_sliding_window: i64 = 0, Range::Integers(0, 4096),
        "Keyframes whose tokens stay in the cache. 0: the model's own number.";
    kv_cache_scale_frames: i64 = 0, Range::Integers(0, 4096),
        "First frames whose tokens stay in the cache for ever. 0: as many as num_scale_frames.";
    kv_cache_cross_frame_special: bool = true, Range::Any,
        "Keep the special tokens of keyframes that leave the window.";
    kv_cache_include_scale_frames: bool = true, Range::Any,
        "Keep the first frames when the window is full.";
    keyframe_interval: i64 = 0, Range::Integers(-1, 1000),
        "Every how many frames one may be a keyframe. 0: the model's own number; -1: doubles as the stream grows, to stay within 320 stored frames.";
    flow_threshold: f64 = 0.0, Range::Numbers(0.0, 10_000.0),
        "Of the frames that the interval admits, those are keyframes whose picture moved by more than this since the last one: mean optical flow in pixels of the network's input. 0: all.";
    max_non_keyframe_gap: i64 = 0, Range::Integers(0, 100_000),
        "Frames after which one is a keyframe whatever interval and flow say. 0: 30 with a flow threshold, else no limit.";
    static_skip: f64 = 0.0, Range::Numbers(0.0, 255.0),
        "Leave a frame out before the network where nothing moved since the last one that ran: nine of ten patches of 14x14 pixels changed their mean brightness (0 to 255) by no more than this. 0: none is.";
    mode: String = "streaming", Range::OneOf(&["streaming", "windowed"]),
        "streaming (one window) or windowed: fresh caches whenever window_size frames are stored, aligned to what was before.";
    window_size: i64 = 64, Range::Integers(2, 100_000),
        "Stored frames of a window, scale frames included.";
    window_alignment: String = "reference", Range::OneOf(&["reference", "robust"]),
        "How a window is aligned: reference (by the last common keyframe) or robust (by the points of all).";
    on_collapse: String = "go_on", Range::OneOf(&["go_on", "new_window", "new_map"]),
        "When the network loses its way: go_on, new_window (from the last frames it knew well) or new_map.";
    history_frames: i64 = 0, Range::Integers(0, 100_000),
        "Keyframes that have left the window of which something is remembered, at most about. 0: all.";
    memory_budget: String = "", Range::Any,
        "Bytes that the stream may take, such as 4GiB, or auto: four fifths of what is available. Limits the history. Empty: no limit.";
    memory_fit: bool = false, Range::Any,
        "Make the window smaller where the memory budget has no room for it; else that is an error.";
    conf_threshold: f64 = 1.5, Range::Numbers(0.0, 1000.0),
        "Points with less confidence than this do not enter the map.", live;
    conf_percentile: f64 = 0.0, Range::Numbers(0.0, 100.0),
        "Percent of each frame's pixels, the least sure ones, that do not enter the map either.", live;
    depth_edge: f64 = 0.05, Range::Numbers(0.0, 1000.0),
        "Pixels whose depth differs from a neighbour's by more than this share do not enter the map: what hangs between two surfaces. 0: all do.", live;
    max_depth: f64 = 0.0, Range::Numbers(0.0, 1e6),
        "What is farther away, in units of the map, does not enter it. 0: everything does.", live;
    border: i64 = 0, Range::Integers(0, 10_000),
        "Pixels along each side of the network's picture that do not enter the map.", live;
    voxel_size: f64 = 0.0, Range::Numbers(0.0, 100.0),
        "Edge of the map's voxels in units of the map. 0: follows the scene.";
    max_points: i64 = 2_000_000, Range::Integers(1, 100_000_000),
        "Most points that the map holds. New ones then take the place of seldom seen and old ones.";
    min_observations: i64 = 2, Range::Integers(1, 1000),
        "Points that fewer frames have seen are not part of the map.";
    fit: String = "crop", Range::OneOf(&["crop", "pad", "reference"]),
        "How a frame comes to the network's size: crop (cover and crop the rest), pad (fit inside, white borders), reference.";
    map_frame: String = "map", Range::NotEmpty,
        "Frame of the map: z up, x forward, origin where the base was at the first frame.";
    odom_frame: String = "odom", Range::NotEmpty,
        "Frame of the odometry.";
    base_frame: String = "base_link", Range::NotEmpty,
        "Frame of the robot, whose pose is published.";
    camera_frame: String = "camera_optical_frame", Range::NotEmpty,
        "Name of the camera's frame where images carry none.";
    camera_axes: String = "auto", Range::OneOf(&["auto", "optical", "body"]),
        "Axes of the camera's frame: optical (x right, y down, z forward), body (x forward, y left, z up) or auto: optical where the name ends with optical or optical_frame (REP-103).";
    camera_in_base: [f64; 6] = [0.0; 6], Range::Numbers(-1000.0, 1000.0),
        "Place of the camera body (x forward, y left, z up) on the robot where /tf does not know it: x, y, z, roll, pitch, yaw in metres and radians.";
    publish_map_to_odom: bool = true, Range::Any,
        "Publish the link map to odom on /tf.", live;
    publish_odom_to_base: bool = true, Range::Any,
        "Publish the link odom to base_link on /tf. Where another node publishes it, map to odom is composed with that; off, it is waited for.", live;
    publish_base_to_camera: bool = true, Range::Any,
        "Publish base_link to the camera's frame on /tf_static, by camera_in_base, where no other node places the camera.", live;
    transform_timeout: f64 = 0.1, Range::Numbers(0.0, 10.0),
        "Seconds to wait for transforms of other nodes at the time of an image.";
    transform_tolerance: f64 = 0.5, Range::Numbers(0.0, 60.0),
        "Seconds by which map to odom is dated ahead beside the odometry of others, so that it holds until the next image.", live;
    scale_source as "scale.source": String = "model", Range::OneOf(&["model", "none", "fixed", "odometry", "camera_height"]),
        "What says how many metres the network's unit has: model (its configuration, if that says so), none, fixed (scale.factor), odometry (other nodes' odom to base_link) or camera_height (above the floor). Lengths become metres once it is sure.";
    scale_factor as "scale.factor": f64 = 1.0, Range::Numbers(1e-6, 1e6),
        "Metres in a unit of the network, for scale.source fixed. 1 for a model trained in metres.";
    scale_uncertainty as "scale.uncertainty": f64 = 0.05, Range::Numbers(0.0, 10.0),
        "Relative standard deviation of scale.factor, for the covariances.";
    scale_camera_height as "scale.camera_height": f64 = 0.0, Range::Numbers(0.0, 1000.0),
        "Height of the camera above the floor in metres, for scale.source camera_height.";
    unset_stamp: String = "arrival", Range::OneOf(&["arrival", "refuse"]),
        "An image with stamp 0: arrival (takes the time of its arrival) or refuse.", live;
    clock_jump_seconds: f64 = 1.0, Range::Numbers(0.0, 1e6),
        "Stamps that go back by more than this start a new map (a bag that loops), once a second image confirms it; by less, the image is refused.", live;
    gap_warning_seconds: f64 = 0.5, Range::Numbers(0.001, 1e6),
        "Longer times between two images are counted as gaps.", live;
    new_map_gap_seconds: f64 = 0.0, Range::Numbers(0.0, 1e6),
        "A gap longer than this starts a new map. 0: no gap does.", live;
    size_change: String = "new_map", Range::OneOf(&["new_map", "refuse"]),
        "Images of another size than before: new_map begins one with them, refuse drops them.", live;
    autostart: bool = true, Range::Any,
        "Map from the start; else the node waits, paused, for ~/pause with false.";
    map_rate: f64 = 1.0, Range::Numbers(0.01, 100.0),
        "How often a second the map, the path and the keyframes are published, while they change and someone listens.", live;
    map_max_points: i64 = 500_000, Range::Integers(1, 100_000_000),
        "Most points in a published map; a larger one is thinned out evenly. Saved maps have all.", live;
    organised_points: bool = false, Range::Any,
        "Publish ~/points as a grid like the picture, NaN where a pixel has no point; else only the points.", live;
    output_reliability: String = "reliable", Range::OneOf(&["reliable", "best_effort"]),
        "How ~/points, ~/depth and ~/confidence are offered. reliable is heard by every subscriber; best_effort only by those that ask for it.";
    path_max_poses: i64 = 2000, Range::Integers(2, 1_000_000),
        "Most poses in a published path, and most keyframes; a longer one is thinned out evenly.", live;
    output_dir: String = "lingbot_map_output", Range::NotEmpty,
        "Folder for saved maps; each is saved into a folder of its own, named by date and time.", live;
    map_formats: String = "", Range::SomeOf(&["pcd", "glb", "kitti"]),
        "Files that are saved beside map.ply, trajectory.tum and preview.png: pcd (the points), glb (points and cameras), kitti (the path); several with commas.", live;
    save_on_exit: bool = false, Range::Any,
        "Save the map when the node ends.", live;
}

impl Parameters {
    /// Sets one parameter while the node runs.
    ///
    /// # Errors
    /// Those of [`Parameters::set`], and [`ParameterError::Fixed`] for one that is only read at the start, unless it is
    /// set to what it is.
    pub fn change(&mut self, name: &str, value: &ParameterValue) -> Result<(), ParameterError> {
        let before = self.get(name);
        let mut changed = self.clone();
        changed.set(name, value)?;
        let is_live = Parameters::table()
            .iter()
            .any(|row| row.name == name && row.change == Change::Live);
        if !is_live && changed.get(name) != before {
            return Err(ParameterError::Fixed);
        }
        *self = changed;
        Ok(())
    }
}

/// The parameter whose name is nearest to a misspelt one, if any is near.
fn nearest_name(name: &str) -> Option<&'static str> {
    let likeness = |row: &Declaration| strsim::damerau_levenshtein(name, row.name);
    let nearest = Parameters::table().into_iter().min_by_key(likeness)?;
    (likeness(&nearest) <= 1 + name.len() / 5).then_some(nearest.name)
}

/// Values that are each allowed, but not together.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum Conflict {
    #[error("parameters {0} and {1} both name the frame {2:?}: each needs a frame of its own")]
    SameFrame(&'static str, &'static str, String),
    #[error("parameters height and width belong together: set both or none")]
    HalfASize,
    #[error("scale.source camera_height needs the height: set scale.camera_height")]
    NoCameraHeight,
}

impl Parameters {
    /// # Errors
    /// Values that contradict each other.
    pub fn check(&self) -> Result<(), Conflict> {
        let frames = [
            ("map_frame", &self.map_frame),
            ("odom_frame", &self.odom_frame),
            ("base_frame", &self.base_frame),
        ];
        let frames = frames.map(|(parameter, name)| (parameter, frame_name(name, "")));
        for (index, (parameter, name)) in frames.iter().enumerate() {
            let mut before = frames.iter().take(index);
            if let Some((other, _)) = before.find(|(_, other)| other == name) {
                return Err(Conflict::SameFrame(other, parameter, name.clone()));
            }
        }
        if (self.height > 0) != (self.width > 0) {
            return Err(Conflict::HalfASize);
        }
        if self.scale_source == "camera_height" && self.scale_camera_height <= 0.0 {
            return Err(Conflict::NoCameraHeight);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
