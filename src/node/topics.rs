//! Names of the camera's topics.

use super::parameters::Parameters;

const COMPRESSED: &str = "/compressed";

/// The topic that is really listened to: transports other than raw have one below the base topic.
pub fn image_topic(base: &str, transport: &str) -> String {
    let base = base.trim_end_matches('/');
    if transport == "compressed" && !base.ends_with(COMPRESSED) {
        format!("{base}{COMPRESSED}")
    } else {
        base.to_string()
    }
}

/// The topic of the calibration that belongs to an image topic: `camera_info` beside it, as `image_transport` has it.
pub fn camera_info_topic(image_topic: &str) -> String {
    let base = image_topic.trim_end_matches('/');
    let base = base.strip_suffix(COMPRESSED).unwrap_or(base);
    match base.rsplit_once('/') {
        Some((namespace, _)) => format!("{namespace}/camera_info"),
        None => "camera_info".to_string(),
    }
}

/// The camera's topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    /// As subscribed to.
    pub image: String,
    pub camera_info: String,
    /// In full, after remapping.
    pub image_resolved: String,
    /// Type of the messages on the image topic.
    pub image_type: &'static str,
}

impl Topics {
    /// `arguments`: the command line, for remappings.
    pub fn new(
        parameters: &Parameters,
        node: NodeName,
        arguments: impl Iterator<Item = String>,
    ) -> Topics {
        let image = image_topic(&parameters.image_topic, &parameters.image_transport);
        let given = parameters.camera_info_topic.trim();
        Topics {
            camera_info: if given.is_empty() {
                camera_info_topic(&image)
            } else {
                given.to_string()
            },
            image_resolved: resolve(&image, node, arguments),
            image_type: if parameters.image_transport == "compressed" {
                "sensor_msgs/msg/CompressedImage"
            } else {
                "sensor_msgs/msg/Image"
            },
            image,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct NodeName<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

/// The full name of a topic, as ROS finds it: expanded, then remapped by the first rule that fits. r2r does not tell.
fn resolve(topic: &str, node: NodeName, arguments: impl Iterator<Item = String>) -> String {
    let expanded = expand(topic, node);
    let mut arguments = arguments.skip_while(|argument| argument != "--ros-args");
    while let Some(argument) = arguments.next() {
        if !matches!(argument.as_str(), "-r" | "--remap") {
            continue;
        }
        let rule = arguments.next().unwrap_or_default();
        let Some((from, to)) = rule.split_once(":=") else {
            continue;
        };
        let from = match from.split_once(':') {
            Some((only_for, from)) if only_for == node.name => from,
            Some(_) => continue,
            None => from,
        };
        if !from.starts_with("__") && expand(from, node) == expanded {
            return expand(to, node);
        }
    }
    expanded
}

fn expand(topic: &str, node: NodeName) -> String {
    let namespace = node.namespace.trim_end_matches('/');
    match topic.strip_prefix("~/") {
        Some(own) => format!("{namespace}/{}/{own}", node.name),
        None if topic.starts_with('/') => topic.to_string(),
        None => format!("{namespace}/{topic}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_images_lie_below_the_base_topic() {
        for (base, transport, expected) in [
            ("/camera/image_raw", "raw", "/camera/image_raw"),
            (
                "/camera/image_raw",
                "compressed",
                "/camera/image_raw/compressed",
            ),
            (
                "/camera/image_raw/compressed",
                "compressed",
                "/camera/image_raw/compressed",
            ),
        ] {
            assert_eq!(image_topic(base, transport), expected);
        }
    }

    #[test]
    fn the_calibration_lies_beside_the_images() {
        for (image_topic, expected) in [
            ("/camera/image_raw", "/camera/camera_info"),
            ("/camera/image_raw/compressed", "/camera/camera_info"),
            ("image", "camera_info"),
            ("/image", "/camera_info"),
            ("front/image/", "front/camera_info"),
        ] {
            assert_eq!(camera_info_topic(image_topic), expected);
        }
    }

    #[test]
    fn topics_are_found_where_ros_finds_them() {
        let node = NodeName {
            namespace: "/front",
            name: "mapper",
        };
        let resolved = |topic: &str, arguments: &str| {
            resolve(
                topic,
                node,
                arguments.split_whitespace().map(str::to_string),
            )
        };
        for (topic, arguments, expected) in [
            ("/image", "", "/image"),
            ("image", "", "/front/image"),
            ("~/image", "", "/front/mapper/image"),
            ("image", "node --ros-args -r image:=/cam/rgb", "/cam/rgb"),
            (
                "image",
                "node --ros-args --remap /front/image:=rgb",
                "/front/rgb",
            ),
            ("image", "node -r image:=/cam/rgb", "/front/image"),
            (
                "image",
                "--ros-args -r other:image:=/cam -r mapper:image:=/cam2",
                "/cam2",
            ),
            ("image", "--ros-args -r __ns:=/front -r", "/front/image"),
        ] {
            assert_eq!(resolved(topic, arguments), expected, "{topic} {arguments}");
        }
        let root = NodeName {
            namespace: "/",
            name: "mapper",
        };
        assert_eq!(resolve("image", root, std::iter::empty()), "/image");
    }

    #[test]
    fn a_calibration_topic_that_is_given_is_taken() {
        let root = NodeName {
            namespace: "/",
            name: "mapper",
        };
        let topics = |given: &str| {
            let parameters = Parameters {
                image_topic: "/cam/image".into(),
                image_transport: "compressed".into(),
                camera_info_topic: given.into(),
                ..Default::default()
            };
            Topics::new(&parameters, root, std::iter::empty())
        };
        assert_eq!(topics("").camera_info, "/cam/camera_info");
        assert_eq!(topics("/calib").camera_info, "/calib");
        assert_eq!(topics("").image_resolved, "/cam/image/compressed");
    }
}
