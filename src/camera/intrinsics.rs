//! Pinhole cameras and how they follow their picture to another size.

use super::resample::Region;
use super::size::NetworkSize;

/// Where a source pixel lies in the network's picture: `network = source * scale + offset`.
///
/// Coordinates are pixels with integer values at pixel centres, x to the right and y down. Intrinsics follow
/// by `f * scale` and `c * scale + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelTransform {
    pub scale_x: f64,
    pub scale_y: f64,
    pub offset_x: f64,
    pub offset_y: f64,
}

impl PixelTransform {
    pub const IDENTITY: Self = Self {
        scale_x: 1.0,
        scale_y: 1.0,
        offset_x: 0.0,
        offset_y: 0.0,
    };

    /// Of `region` scaled to `width` x `height` pixels whose corner lands on the pixel `(left, top)`. Pixel edges
    /// lie half a pixel before the centres.
    pub(super) fn of(region: Region, width: u32, height: u32, left: i64, top: i64) -> Self {
        let scale_x = f64::from(width) / region.width;
        let scale_y = f64::from(height) / region.height;
        Self {
            scale_x,
            scale_y,
            offset_x: (0.5 - region.left) * scale_x - 0.5 + left as f64,
            offset_y: (0.5 - region.top) * scale_y - 0.5 + top as f64,
        }
    }

    /// The source pixel at the place of a pixel of the network's picture.
    pub fn source_of(&self, x: f64, y: f64) -> (f64, f64) {
        (
            (x - self.offset_x) / self.scale_x,
            (y - self.offset_y) / self.scale_y,
        )
    }

    /// The same for a source that has `left` columns and `top` rows more at its edges.
    pub(super) fn before_crop(self, left: u32, top: u32) -> Self {
        Self {
            offset_x: self.offset_x - f64::from(left) * self.scale_x,
            offset_y: self.offset_y - f64::from(top) * self.scale_y,
            ..self
        }
    }
}

/// A pinhole camera: focal lengths and principal point in pixels of its picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intrinsics {
    pub fx: f64,
    pub fy: f64,
    pub cx: f64,
    pub cy: f64,
}

impl Intrinsics {
    /// A camera that looks through the middle of the picture, as the network assumes it: fields of view in
    /// radians, the principal point at half the size.
    pub fn from_field_of_view(vertical: f64, horizontal: f64, size: NetworkSize) -> Self {
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        Self {
            fx: width / 2.0 / (horizontal / 2.0).tan(),
            fy: height / 2.0 / (vertical / 2.0).tan(),
            cx: width / 2.0,
            cy: height / 2.0,
        }
    }

    /// The vertical and horizontal field of view in radians that the network would state for these focal lengths: those
    /// of a camera that looks through the middle of its picture.
    pub fn field_of_view(&self, size: NetworkSize) -> (f64, f64) {
        let angle = |side: u32, focal: f64| 2.0 * (f64::from(side) / 2.0 / focal).atan();
        (angle(size.height, self.fy), angle(size.width, self.fx))
    }

    /// Of the network's picture, where `self` is the source's and `transform` says how that was fitted.
    pub fn through(&self, transform: &PixelTransform) -> Self {
        Self {
            fx: self.fx * transform.scale_x,
            fy: self.fy * transform.scale_y,
            cx: self.cx * transform.scale_x + transform.offset_x,
            cy: self.cy * transform.scale_y + transform.offset_y,
        }
    }

    /// With calibrated focal lengths, at the same resolution, in place of the predicted ones. The principal point stays:
    /// the network's depth is that of a camera that looks through the middle of the picture.
    pub fn with_focal_lengths_of(&self, calibrated: &Self) -> Self {
        Self {
            fx: calibrated.fx,
            fy: calibrated.fy,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::{Fit, Fitter};
    use image::RgbImage;
    use proptest::prelude::*;

    #[test]
    fn a_calibrated_camera_is_compared_with_the_prediction_at_the_networks_size() {
        // 1280x720 is scaled by 0.525 to cover 518x378; 77 degrees are seen across the whole width, less of it is kept.
        let calibrated = Intrinsics {
            fx: 800.0,
            fy: 800.0,
            cx: 639.5,
            cy: 359.5,
        };
        let size = NetworkSize::new(378, 518).unwrap();
        let mut fitter = Fitter::new(size, Fit::Crop);
        let (_, transform) = fitter.fit(&RgbImage::new(1280, 720)).unwrap();
        let fitted = calibrated.through(&transform);
        assert!((fitted.fx - 420.0).abs() < 1e-9 && (fitted.fy - 420.0).abs() < 1e-9);
        assert!((fitted.cx - 258.5).abs() < 1e-9 && (fitted.cy - 188.5).abs() < 1e-9);
        let (vertical, horizontal) = fitted.field_of_view(size);
        assert!((horizontal - 2.0 * (259.0f64 / 420.0).atan()).abs() < 1e-12);
        assert!((vertical - 2.0 * (189.0f64 / 420.0).atan()).abs() < 1e-12);

        let predicted = Intrinsics::from_field_of_view(1.0, 1.3, size);
        let corrected = predicted.with_focal_lengths_of(&fitted);
        assert_eq!((corrected.fx, corrected.fy), (fitted.fx, fitted.fy));
        assert_eq!((corrected.cx, corrected.cy), (259.0, 189.0));
    }

    proptest! {
        #[test]
        fn a_field_of_view_survives_both_ways(vertical in 0.1..3.0f64, horizontal in 0.1..3.0f64) {
            let size = NetworkSize::new(378, 518).unwrap();
            let k = Intrinsics::from_field_of_view(vertical, horizontal, size);
            let (v, h) = k.field_of_view(size);
            prop_assert!((v - vertical).abs() < 1e-9 && (h - horizontal).abs() < 1e-9);
        }

        /// A point of the scene projects to the same pixel whether the picture is fitted or the camera.
        #[test]
        fn intrinsics_follow_the_picture(
            (sx, sy) in (0.1..2.0f64, 0.1..2.0f64), (ox, oy) in (-50.0..50.0f64, -50.0..50.0f64),
            (x, y) in (-1.0..1.0f64, -1.0..1.0f64),
        ) {
            let k = Intrinsics { fx: 400.0, fy: 410.0, cx: 310.0, cy: 250.0 };
            let t = PixelTransform { scale_x: sx, scale_y: sy, offset_x: ox, offset_y: oy };
            let fitted = k.through(&t);
            let (u, v) = t.source_of(x * fitted.fx + fitted.cx, y * fitted.fy + fitted.cy);
            prop_assert!((u - (x * k.fx + k.cx)).abs() < 1e-6);
            prop_assert!((v - (y * k.fy + k.cy)).abs() < 1e-6);
        }
    }
}
