//! Names of the camera's topics.

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
}
