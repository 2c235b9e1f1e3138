//! Every parameter of the node, declared once: name, type, default, range and description.
//!
//! The struct, the ROS parameters, `config/mapping.yaml` and `docs/parameters.md` all come from [`Parameters`]'s
//! table; two tests hold the files to it.

use std::fmt::Write;

use r2r::ParameterValue;

/// What a parameter's value may be, beyond its type.
#[derive(Debug, Clone, Copy)]
pub enum Range {
    Any,
    NotEmpty,
    OneOf(&'static [&'static str]),
    Integers(i64, i64),
    Numbers(f64, f64),
}

/// One row of the table.
#[derive(Debug, Clone)]
pub struct Declaration {
    pub name: &'static str,
    pub type_name: &'static str,
    pub default: ParameterValue,
    pub range: Range,
    pub description: &'static str,
}

#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ParameterError {
    #[error("there is no parameter of this name")]
    Unknown,
    #[error("is {found}, but must be {expected}")]
    Type {
        found: &'static str,
        expected: &'static str,
    },
    #[error("is {found}, but must be {allowed}")]
    Range { found: String, allowed: String },
}

/// A Rust type that a ROS parameter can have.
trait ParameterType: Sized {
    const NAME: &'static str;
    fn from_ros(value: &ParameterValue) -> Option<Self>;
    fn to_ros(&self) -> ParameterValue;
}

impl ParameterType for bool {
    const NAME: &'static str = "bool";
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::Bool(value) => Some(*value),
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::Bool(*self)
    }
}

impl ParameterType for i64 {
    const NAME: &'static str = "integer";
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::Integer(value) => Some(*value),
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::Integer(*self)
    }
}

impl ParameterType for f64 {
    const NAME: &'static str = "double";
    /// Takes integers too: whoever writes `2` for `2.0` means the same number.
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::Double(value) => Some(*value),
            ParameterValue::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::Double(*self)
    }
}

impl ParameterType for String {
    const NAME: &'static str = "string";
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::String(value) => Some(value.clone()),
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::String(self.clone())
    }
}

impl ParameterType for [f64; 6] {
    const NAME: &'static str = "array of 6 doubles";
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::DoubleArray(values) => values.as_slice().try_into().ok(),
            ParameterValue::IntegerArray(values) => {
                let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
                values.as_slice().try_into().ok()
            }
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::DoubleArray(self.to_vec())
    }
}

macro_rules! parameters {
    ($($name:ident: $type:ty = $default:expr, $range:expr, $description:literal;)*) => {
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
                    name: stringify!($name),
                    type_name: <$type as ParameterType>::NAME,
                    default: default.$name.to_ros(),
                    range: $range,
                    description: $description,
                },)*]
            }

            pub fn get(&self, name: &str) -> Option<ParameterValue> {
                match name {
                    $(stringify!($name) => Some(self.$name.to_ros()),)*
                    _ => None,
                }
            }

            /// Sets one parameter; on an error nothing has changed.
            pub fn set(&mut self, name: &str, value: &ParameterValue) -> Result<(), ParameterError> {
                match name {
                    $(stringify!($name) => {
                        let parsed = <$type as ParameterType>::from_ros(value).ok_or(ParameterError::Type {
                            found: type_of(value),
                            expected: <$type as ParameterType>::NAME,
                        })?;
                        check_range(&parsed.to_ros(), $range)?;
                        self.$name = parsed;
                    })*
                    _ => return Err(ParameterError::Unknown),
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
        "Points with less confidence than this do not enter the map.";
    voxel_size: f64 = 0.0, Range::Numbers(0.0, 100.0),
        "Edge of the map's voxels in units of the map. 0: chosen from the depth of the first frames.";
    max_points: i64 = 2_000_000, Range::Integers(1, 100_000_000),
        "Most points that the map holds.";
    fit: String = "crop", Range::OneOf(&["crop", "pad", "reference"]),
        "How a frame comes to the network's size: crop (cover and crop the rest), pad (fit inside, white borders), reference.";
    map_frame: String = "map", Range::NotEmpty,
        "Frame of the map: z up, x forward, origin where the base was at the first frame.";
    odom_frame: String = "odom", Range::NotEmpty,
        "Frame of the odometry.";
    base_frame: String = "base_link", Range::NotEmpty,
        "Frame of the robot, whose pose is published.";
    camera_frame: String = "camera", Range::NotEmpty,
        "Name of the camera's frame where images carry none.";
    camera_in_base: [f64; 6] = [0.0; 6], Range::Numbers(-1000.0, 1000.0),
        "Place of the camera body (x forward, y left, z up) on the robot: x, y, z, roll, pitch, yaw in metres and radians.";
    publish_map_to_odom: bool = true, Range::Any,
        "Publish the link map to odom on /tf.";
    publish_odom_to_base: bool = true, Range::Any,
        "Publish the link odom to base_link on /tf. Off where wheels or an IMU publish it.";
    unset_stamp: String = "arrival", Range::OneOf(&["arrival", "refuse"]),
        "An image with stamp 0: arrival (takes the time of its arrival) or refuse.";
    clock_jump_seconds: f64 = 1.0, Range::Numbers(0.0, 1e6),
        "A stamp that goes back by more than this starts a new map (a bag that loops); by less, the frame is refused.";
    points_rate: f64 = 1.0, Range::Numbers(0.01, 100.0),
        "How often a second the map and the path are published, while they change and someone listens.";
    path_max_poses: i64 = 2000, Range::Integers(2, 1_000_000),
        "Most poses in a published path; a longer one is thinned out evenly.";
    output_dir: String = "lingbot_map_output", Range::NotEmpty,
        "Folder for saved maps; each is saved into a folder of its own, named by date and time.";
    save_on_exit: bool = false, Range::Any,
        "Save the map when the node ends.";
}

fn type_of(value: &ParameterValue) -> &'static str {
    match value {
        ParameterValue::NotSet => "not set",
        ParameterValue::Bool(_) => "a bool",
        ParameterValue::Integer(_) => "an integer",
        ParameterValue::Double(_) => "a double",
        ParameterValue::String(_) => "a string",
        _ => "an array of another type or length",
    }
}

fn check_range(value: &ParameterValue, range: Range) -> Result<(), ParameterError> {
    let inside = match (value, range) {
        (ParameterValue::Integer(value), Range::Integers(low, high)) => {
            (low..=high).contains(value)
        }
        (ParameterValue::Double(value), Range::Numbers(low, high)) => (low..=high).contains(value),
        (ParameterValue::DoubleArray(values), Range::Numbers(low, high)) => {
            values.iter().all(|value| (low..=high).contains(value))
        }
        (ParameterValue::String(value), Range::OneOf(allowed)) => allowed.contains(&value.as_str()),
        (ParameterValue::String(value), Range::NotEmpty) => !value.trim().is_empty(),
        _ => true,
    };
    if inside {
        return Ok(());
    }
    Err(ParameterError::Range {
        found: show(value),
        allowed: range.to_string(),
    })
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Range::Any => Ok(()),
            Range::NotEmpty => f.write_str("not empty"),
            Range::OneOf(allowed) => f.write_str(&allowed.join(" | ")),
            Range::Integers(low, high) => write!(f, "{low} to {high}"),
            Range::Numbers(low, high) => write!(f, "{low} to {high}"),
        }
    }
}

/// A value as YAML writes it.
fn show(value: &ParameterValue) -> String {
    match value {
        ParameterValue::Bool(value) => value.to_string(),
        ParameterValue::Integer(value) => value.to_string(),
        ParameterValue::Double(value) => format!("{value:?}"),
        ParameterValue::String(value) => format!("{value:?}"),
        ParameterValue::DoubleArray(values) => format!("{values:?}"),
        _ => String::new(),
    }
}

/// The content of `config/mapping.yaml`.
pub fn as_yaml() -> String {
    let mut text = String::from(
        "# All parameters of the mapping node with their defaults, made by: mapping_node --parameters-yaml\n\
         /**:\n  ros__parameters:\n",
    );
    for row in Parameters::table() {
        let range = match row.range {
            Range::Any => String::new(),
            range => format!(" [{range}]"),
        };
        let _ = writeln!(
            text,
            "    # {}{range}\n    {}: {}",
            row.description,
            row.name,
            show(&row.default)
        );
    }
    text
}

/// The content of `docs/parameters.md`.
pub fn as_markdown() -> String {
    let mut text = String::from(
        "# Parameters of the mapping node\n\n\
         Made by `mapping_node --parameters-markdown`. All are read at the start and fixed from then on.\n\n\
         | name | type | default | range | meaning |\n|---|---|---|---|---|\n",
    );
    for row in Parameters::table() {
        let range = row.range.to_string().replace('|', "\\|");
        let _ = writeln!(
            text,
            "| `{}` | {} | `{}` | {range} | {} |",
            row.name,
            row.type_name,
            show(&row.default),
            row.description
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_files_equal_the_table() {
        let root = env!("CARGO_MANIFEST_DIR");
        for (file, content) in [
            ("config/mapping.yaml", as_yaml()),
            ("docs/parameters.md", as_markdown()),
        ] {
            let shipped = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
            assert_eq!(
                shipped, content,
                "{file} is old: make it anew as its first lines say"
            );
        }
    }

    #[test]
    fn the_yaml_parses_back_to_the_defaults() {
        let yaml: serde_yaml::Value = serde_yaml::from_str(&as_yaml()).unwrap();
        let parameters = yaml["/**"]["ros__parameters"].as_mapping().unwrap();
        assert_eq!(parameters.len(), Parameters::table().len());
        assert_eq!(
            yaml["/**"]["ros__parameters"]["max_points"].as_i64(),
            Some(2_000_000)
        );
        assert_eq!(
            yaml["/**"]["ros__parameters"]["voxel_size"].as_f64(),
            Some(0.0)
        );
    }

    #[test]
    fn an_integer_is_taken_for_a_number_but_not_the_reverse() {
        let mut parameters = Parameters::default();
        parameters
            .set("conf_threshold", &ParameterValue::Integer(2))
            .unwrap();
        assert_eq!(parameters.conf_threshold, 2.0);
        parameters
            .set(
                "camera_in_base",
                &ParameterValue::IntegerArray(vec![1, 0, 0, 0, 0, 0]),
            )
            .unwrap();
        assert_eq!(parameters.camera_in_base[0], 1.0);
        assert!(matches!(
            parameters.set("max_points", &ParameterValue::Double(2.0)),
            Err(ParameterError::Type {
                found: "a double",
                expected: "integer"
            })
        ));
    }

    #[test]
    fn values_outside_the_range_are_refused_and_change_nothing() {
        let mut parameters = Parameters::default();
        for (name, value) in [
            ("provider", ParameterValue::String("gpu".into())),
            ("points_rate", ParameterValue::Double(f64::NAN)),
            ("points_rate", ParameterValue::Double(0.0)),
            ("map_frame", ParameterValue::String(" ".into())),
            ("max_points", ParameterValue::Integer(-1)),
            (
                "camera_in_base",
                ParameterValue::DoubleArray(vec![f64::INFINITY; 6]),
            ),
        ] {
            assert!(
                matches!(
                    parameters.set(name, &value),
                    Err(ParameterError::Range { .. })
                ),
                "{name}"
            );
        }
        assert!(
            parameters
                .set("camera_in_base", &ParameterValue::DoubleArray(vec![0.0; 5]))
                .is_err()
        );
        assert_eq!(
            parameters.set("points_rat", &ParameterValue::Double(1.0)),
            Err(ParameterError::Unknown)
        );
        assert_eq!(parameters, Parameters::default());
    }

    #[test]
    fn every_row_can_be_read_and_set() {
        let mut parameters = Parameters::default();
        for row in Parameters::table() {
            assert_eq!(parameters.get(row.name), Some(row.default.clone()));
            parameters.set(row.name, &row.default).unwrap();
        }
    }
}
