//! When images are rectified.

use std::fmt;
use std::str::FromStr;

use super::calibration::{CalibrationError, CameraModel};
use super::intrinsics::Intrinsics;

/// Whether a calibrated camera's images are rectified before they are mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rectify {
    /// Where the lens distorts, unless the topic's name says that it is done.
    #[default]
    Auto,
    Always,
    Never,
}

/// What is to be done with the images of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rectification {
    /// They come rectified.
    Done,
    /// They have to be.
    Needed,
    /// They stay as they are.
    Off,
}

impl Rectify {
    /// Decides by the name of the image topic: one with a part like `image_rect` or `image_rect_color` carries rectified
    /// images, as those of `image_proc` do.
    pub fn decide(self, image_topic: &str, model: &CameraModel) -> Rectification {
        let is_rectified = image_topic
            .split('/')
            .filter_map(|part| part.strip_prefix("image_rect"))
            .any(|rest| rest.is_empty() || rest.starts_with('_'));
        match self {
            Self::Always => Rectification::Needed,
            Self::Auto | Self::Never if is_rectified => Rectification::Done,
            Self::Auto if model.is_distorted() => Rectification::Needed,
            Self::Auto | Self::Never => Rectification::Off,
        }
    }
}

impl CameraModel {
    /// Of the images after the decision.
    pub fn intrinsics_after(&self, rectification: Rectification) -> Intrinsics {
        match rectification {
            Rectification::Done | Rectification::Needed => self.rectified_intrinsics(),
            Rectification::Off => self.intrinsics(),
        }
    }
}

impl fmt::Display for Rectify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        })
    }
}

impl FromStr for Rectify {
    type Err = CalibrationError;

    fn from_str(text: &str) -> Result<Self, CalibrationError> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(CalibrationError::UnknownRectify(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::CameraInfo;

    fn camera(d: &[f64]) -> CameraModel {
        let info = CameraInfo {
            width: 640,
            height: 480,
            distortion_model: "plumb_bob".to_owned(),
            d: d.to_owned(),
            k: [400.0, 0.0, 320.0, 0.0, 400.0, 240.0, 0.0, 0.0, 1.0],
            p: [
                350.0, 0.0, 320.0, 0.0, 0.0, 350.0, 240.0, 0.0, 0.0, 0.0, 1.0, 0.0,
            ],
            ..CameraInfo::default()
        };
        CameraModel::from_info(&info).unwrap().unwrap()
    }

    #[test]
    fn the_topic_and_the_lens_decide() {
        use Rectification::{Done, Needed, Off};
        let bent = camera(&[-0.2, 0.05, 0.0, 0.0, 0.0]);
        let straight = camera(&[0.0; 5]);
        for (topic, auto_bent, auto_straight, never) in [
            ("/camera/image_raw", Needed, Off, Off),
            ("image", Needed, Off, Off),
            ("/image_rectangles/image", Needed, Off, Off),
            ("/camera/image_rect", Done, Done, Done),
            ("/left/image_rect_color/compressed", Done, Done, Done),
            ("/camera/not_image_rect", Needed, Off, Off),
        ] {
            assert_eq!(Rectify::Auto.decide(topic, &bent), auto_bent, "{topic}");
            assert_eq!(
                Rectify::Auto.decide(topic, &straight),
                auto_straight,
                "{topic}"
            );
            assert_eq!(Rectify::Never.decide(topic, &bent), never, "{topic}");
            assert_eq!(Rectify::Always.decide(topic, &straight), Needed, "{topic}");
        }
    }

    #[test]
    fn rectified_images_have_the_projection_matrix() {
        let camera = camera(&[-0.2, 0.05, 0.0, 0.0, 0.0]);
        for (rectification, focal) in [
            (Rectification::Done, 350.0),
            (Rectification::Needed, 350.0),
            (Rectification::Off, 400.0),
        ] {
            assert_eq!(camera.intrinsics_after(rectification).fx, focal);
        }
    }

    #[test]
    fn names_are_read_as_written() {
        for rectify in [Rectify::Auto, Rectify::Always, Rectify::Never] {
            assert_eq!(rectify.to_string().parse::<Rectify>().unwrap(), rectify);
        }
        assert_eq!(
            "sometimes".parse::<Rectify>().unwrap_err().reason(),
            "unknown_rectify"
        );
    }
}
