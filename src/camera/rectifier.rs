//! A topic's images and its calibration, brought together.

use std::mem;

use image::RgbImage;

use super::calibration::{CalibrationError, CameraInfo, CameraModel};
use super::intrinsics::Intrinsics;
use super::rectify::{Rectification, Rectify};
use super::undistort::Undistortion;

/// Rectifies the images of one topic as its latest calibration and the policy ask for. Tables are made once for each
/// calibration and image size; buffers are kept.
#[derive(Debug)]
pub struct Rectifier {
    policy: Rectify,
    image_topic: String,
    info: Option<CameraInfo>,
    calibration: Result<Option<CameraModel>, CalibrationError>,
    latest: Option<Prepared>,
    buffer: RgbImage,
}

/// What is known of an image's camera.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibratedImage {
    /// Of the image as it is now.
    pub intrinsics: Intrinsics,
    /// How it came to be as it is.
    pub rectification: Rectification,
    /// At the image's resolution.
    pub camera: CameraModel,
}

#[derive(Debug)]
struct Prepared {
    size: (u32, u32),
    outcome: Result<(CalibratedImage, Option<Undistortion>), CalibrationError>,
}

impl Rectifier {
    pub fn new(policy: Rectify, image_topic: &str) -> Self {
        Self {
            policy,
            image_topic: image_topic.to_owned(),
            info: None,
            calibration: Ok(None),
            latest: None,
            buffer: RgbImage::default(),
        }
    }

    /// Takes the camera's calibration, which drivers send with every image; returns whether it is another than before.
    pub fn set_info(&mut self, info: CameraInfo) -> bool {
        if self.info.as_ref() == Some(&info) {
            return false;
        }
        self.calibration = CameraModel::from_info(&info);
        self.info = Some(info);
        self.latest = None;
        true
    }

    /// The latest calibration; `None` for a camera that is not calibrated, and before there was any.
    pub fn calibration(&self) -> Result<Option<&CameraModel>, &CalibrationError> {
        self.calibration.as_ref().map(Option::as_ref)
    }

    /// What is done with the camera's images; `None` without a usable calibration.
    pub fn decision(&self) -> Option<Rectification> {
        let model = self.calibration.as_ref().ok()?.as_ref()?;
        Some(self.policy.decide(&self.image_topic, model))
    }

    /// How much of a rectified image the camera saw, 0 to 1; `None` unless the last image was rectified.
    pub fn valid_fraction(&self) -> Option<f64> {
        let (_, undistortion) = self.latest.as_ref()?.outcome.as_ref().ok()?;
        undistortion.as_ref().map(Undistortion::valid_fraction)
    }

    /// Rectifies an image in its place, if it is to be. `None` without a usable calibration: the image stays as it is.
    ///
    /// # Errors
    /// Those of [`CameraModel::at_size`] and [`Undistortion::new`]; the image stays as it is.
    pub fn apply(
        &mut self,
        image: &mut RgbImage,
    ) -> Result<Option<&CalibratedImage>, CalibrationError> {
        let Ok(Some(model)) = &self.calibration else {
            return Ok(None);
        };
        let size = image.dimensions();
        let latest = self.latest.take().filter(|latest| latest.size == size);
        let latest = self.latest.insert(latest.unwrap_or_else(|| Prepared {
            size,
            outcome: prepare(model, self.policy.decide(&self.image_topic, model), size),
        }));
        let (calibrated, undistortion) = latest.outcome.as_ref().map_err(Clone::clone)?;
        if let Some(undistortion) = undistortion {
            undistortion.apply(image, &mut self.buffer)?;
            mem::swap(image, &mut self.buffer);
        }
        Ok(Some(calibrated))
    }
}

fn prepare(
    model: &CameraModel,
    rectification: Rectification,
    (width, height): (u32, u32),
) -> Result<(CalibratedImage, Option<Undistortion>), CalibrationError> {
    let camera = model.at_size(width, height)?;
    let undistortion = match rectification {
        Rectification::Needed => Some(Undistortion::new(&camera, width, height)?),
        Rectification::Done | Rectification::Off => None,
    };
    let calibrated = CalibratedImage {
        intrinsics: camera.intrinsics_after(rectification),
        rectification,
        camera,
    };
    Ok((calibrated, undistortion))
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    fn info(k1: f64) -> CameraInfo {
        CameraInfo {
            width: 64,
            height: 48,
            distortion_model: "plumb_bob".to_owned(),
            d: vec![k1, 0.0, 0.0, 0.0, 0.0],
            k: [40.0, 0.0, 31.5, 0.0, 40.0, 23.5, 0.0, 0.0, 1.0],
            ..CameraInfo::default()
        }
    }

    fn picture(width: u32, height: u32) -> RgbImage {
        RgbImage::from_fn(width, height, |x, y| Rgb([x as u8 * 3, y as u8 * 3, 50]))
    }

    #[test]
    fn without_a_calibration_images_stay_as_they_are() {
        let mut rectifier = Rectifier::new(Rectify::Always, "image");
        let mut image = picture(64, 48);
        for info in [
            None,
            Some(CameraInfo::default()),
            Some(CameraInfo {
                distortion_model: "unheard of".to_owned(),
                ..info(0.1)
            }),
        ] {
            if let Some(info) = info {
                assert!(rectifier.set_info(info));
            }
            assert_eq!(rectifier.apply(&mut image), Ok(None));
            assert!(image == picture(64, 48));
        }
        let error = rectifier.calibration().unwrap_err();
        assert_eq!(error.reason(), "unknown_distortion_model");
    }

    #[test]
    fn a_distorted_camera_is_rectified_by_the_table_of_its_size() {
        let mut rectifier = Rectifier::new(Rectify::Auto, "image_raw");
        assert!(rectifier.set_info(info(0.2)));
        assert!(!rectifier.set_info(info(0.2)), "as before");
        let model = CameraModel::from_info(&info(0.2)).unwrap().unwrap();
        for (width, height) in [(64, 48), (32, 24), (64, 48)] {
            let mut image = picture(width, height);
            let mut expected = RgbImage::default();
            let table = Undistortion::new(&model, width, height).unwrap();
            table.apply(&image, &mut expected).unwrap();
            let calibrated = rectifier.apply(&mut image).unwrap().unwrap();
            assert_eq!(calibrated.rectification, Rectification::Needed);
            assert_eq!(calibrated.intrinsics.fx, 40.0 * f64::from(width) / 64.0);
            assert!(image == expected, "{width}x{height}");
            assert_eq!(rectifier.valid_fraction(), Some(table.valid_fraction()));
        }
    }

    #[test]
    fn a_new_calibration_takes_the_place_of_the_old() {
        let mut rectifier = Rectifier::new(Rectify::Auto, "image_raw");
        rectifier.set_info(info(0.2));
        rectifier.apply(&mut picture(64, 48)).unwrap();
        assert!(rectifier.set_info(info(0.0)));
        let mut image = picture(64, 48);
        let calibrated = rectifier.apply(&mut image).unwrap().unwrap();
        assert_eq!(calibrated.rectification, Rectification::Off);
        assert!(image == picture(64, 48));
        assert_eq!(rectifier.valid_fraction(), None);
    }

    #[test]
    fn an_image_of_another_shape_is_an_error_and_the_next_may_be_right() {
        let mut rectifier = Rectifier::new(Rectify::Auto, "image_raw");
        rectifier.set_info(info(0.2));
        let mut image = picture(64, 64);
        let error = rectifier.apply(&mut image).unwrap_err();
        assert_eq!(error.reason(), "calibration_size");
        assert!(image == picture(64, 64));
        assert!(rectifier.apply(&mut picture(64, 48)).is_ok());
    }
}
