//! Everything between a decoded picture and the network: rectification, crop, fit, and which pixels count.

use std::sync::Arc;

use image::RgbImage;
use ndarray::Array2;
use thiserror::Error;

use super::{
    CalibrationError, CameraInfo, Crop, Fit, Fitter, ImageError, Intrinsics, Mask, NetworkSize,
    Placement, Rectification, Rectifier, Rectify,
};

/// Why a picture did not come to the network.
#[derive(Debug, Error)]
pub enum PrepareError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
}

impl PrepareError {
    /// A stable label of the kind of fault, for counting.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Image(error) => error.reason(),
            Self::Calibration(error) => error.reason(),
        }
    }
}

/// How pictures come to the network.
#[derive(Debug, Clone, Default)]
pub struct PrepareConfig {
    pub rectify: Rectify,
    /// Tells whether its images come rectified ([`Rectify::decide`]).
    pub image_topic: String,
    pub crop: Crop,
    pub fit: Fit,
    pub mask: Mask,
}

/// A picture as the network takes it.
#[derive(Debug, Clone)]
pub struct PreparedImage {
    pub image: RgbImage,
    /// Pixels `[row, column]` that may become points.
    pub kept: Arc<Array2<bool>>,
    /// Of `image`, for a calibrated camera.
    pub calibrated: Option<Intrinsics>,
}

/// Prepares the pictures of one camera.
pub struct Preparer {
    rectifier: Rectifier,
    fitter: Fitter,
    mask: Mask,
    /// The mask of the last picture.
    latest: Option<(Placement, Arc<Array2<bool>>)>,
}

impl Preparer {
    pub fn new(size: NetworkSize, config: PrepareConfig) -> Self {
        Self {
            rectifier: Rectifier::new(config.rectify, &config.image_topic),
            fitter: Fitter::new(size, config.fit).with_crop(config.crop),
            mask: config.mask,
            latest: None,
        }
    }

    /// Takes the camera's calibration; returns whether it is another than before.
    pub fn set_info(&mut self, info: CameraInfo) -> bool {
        self.rectifier.set_info(info)
    }

    pub fn rectifier(&self) -> &Rectifier {
        &self.rectifier
    }

    /// # Errors
    /// Those of [`Rectifier::apply`] and [`Fitter::fit`].
    pub fn prepare(&mut self, mut image: RgbImage) -> Result<PreparedImage, PrepareError> {
        let calibrated = self.rectifier.apply(&mut image)?.cloned();
        let (fitted, transform) = self.fitter.fit(&image)?;
        let is_rectified =
            |calibrated: &super::CalibratedImage| calibrated.rectification == Rectification::Needed;
        let placement = Placement {
            picture: image.dimensions(),
            rectified: calibrated
                .as_ref()
                .filter(|calibrated| is_rectified(calibrated))
                .map(|calibrated| calibrated.camera.clone()),
            crop: self.fitter.crop(),
            transform,
            size: self.fitter.size(),
        };
        Ok(PreparedImage {
            image: fitted,
            kept: self.kept(placement),
            calibrated: calibrated.map(|calibrated| calibrated.intrinsics.through(&transform)),
        })
    }

    fn kept(&mut self, placement: Placement) -> Arc<Array2<bool>> {
        match &self.latest {
            Some((latest, kept)) if *latest == placement => Arc::clone(kept),
            _ => {
                let kept = Arc::new(self.mask.on_network(&placement));
                self.latest = Some((placement, Arc::clone(&kept)));
                kept
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;

    const SIZE: NetworkSize = NetworkSize {
        height: 42,
        width: 56,
    };

    fn info(k1: f64) -> CameraInfo {
        CameraInfo {
            width: 112,
            height: 84,
            distortion_model: "plumb_bob".to_owned(),
            d: vec![k1, 0.0, 0.0, 0.0, 0.0],
            k: [80.0, 0.0, 55.5, 0.0, 80.0, 41.5, 0.0, 0.0, 1.0],
            ..CameraInfo::default()
        }
    }

    fn picture() -> RgbImage {
        RgbImage::from_fn(112, 84, |x, y| Rgb([x as u8 * 2, y as u8 * 3, 50]))
    }

    #[test]
    fn an_uncalibrated_picture_is_fitted_only() {
        let mut preparer = Preparer::new(SIZE, PrepareConfig::default());
        let prepared = preparer.prepare(picture()).unwrap();
        let (fitted, _) = Fitter::new(SIZE, Fit::Crop).fit(&picture()).unwrap();
        assert!(prepared.image == fitted);
        assert!(prepared.kept.iter().all(|kept| *kept));
        assert_eq!(prepared.calibrated, None);
    }

    #[test]
    fn a_calibrated_one_is_rectified_cropped_and_masked() {
        let mut preparer = Preparer::new(
            SIZE,
            PrepareConfig {
                image_topic: "/camera/image_raw".into(),
                crop: Crop {
                    left: 28,
                    ..Crop::default()
                },
                mask: Mask::new(RgbImage::from_fn(2, 2, |_, y| Rgb([y as u8; 3]))),
                ..PrepareConfig::default()
            },
        );
        assert!(preparer.set_info(info(-0.1)));
        let prepared = preparer.prepare(picture()).unwrap();
        // 84 x 84 are left, of which 84 x 63 are seen at two thirds.
        let k = prepared.calibrated.unwrap();
        assert!((k.fx - 80.0 * 2.0 / 3.0).abs() < 1e-9, "{k:?}");
        assert!(
            (k.cx - ((55.5 - 28.0 + 0.5) * 2.0 / 3.0 - 0.5)).abs() < 1e-9,
            "{k:?}"
        );
        let rows: Vec<bool> = prepared.kept.column(28).to_vec();
        assert!(!rows[..20].contains(&true) && !rows[22..].contains(&false));
        assert!(preparer.rectifier().valid_fraction().is_some());

        let again = preparer.prepare(picture()).unwrap();
        assert!(Arc::ptr_eq(&prepared.kept, &again.kept), "made once");
    }

    #[test]
    fn a_picture_of_another_shape_than_the_calibrated_is_refused() {
        let mut preparer = Preparer::new(SIZE, PrepareConfig::default());
        preparer.set_info(info(0.0));
        let error = preparer.prepare(RgbImage::new(84, 84)).unwrap_err();
        assert_eq!(error.reason(), "calibration_size");
        let error = preparer.prepare(RgbImage::new(0, 0)).unwrap_err();
        assert_eq!(error.reason(), "calibration_size");
        let mut uncalibrated = Preparer::new(SIZE, PrepareConfig::default());
        let error = uncalibrated.prepare(RgbImage::new(0, 0)).unwrap_err();
        assert_eq!(error.reason(), "empty_image");
    }
}
