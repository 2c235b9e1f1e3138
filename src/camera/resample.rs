//! Fast antialiased bicubic resampling of a part of a picture.

use fast_image_resize::images::{TypedCroppedImage, TypedImage, TypedImageRef};
use fast_image_resize::pixels::U8x3;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use image::RgbImage;

use super::ImageError;
use super::crop::View;

/// The part of a view to resample, in pixels from its top left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Region {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Region {
    pub fn whole((width, height): (u32, u32)) -> Self {
        Self {
            left: 0.0,
            top: 0.0,
            width: f64::from(width),
            height: f64::from(height),
        }
    }

    /// The centred part that `scale` turns into `width` x `height` pixels, or all of a side that is shorter.
    pub fn centred(available: (u32, u32), scale: f64, width: u32, height: u32) -> Self {
        let (left, width) = centred_span(available.0, f64::from(width) / scale);
        let (top, height) = centred_span(available.1, f64::from(height) / scale);
        Self {
            left,
            top,
            width,
            height,
        }
    }
}

fn centred_span(available: u32, wanted: f64) -> (f64, f64) {
    let available = f64::from(available);
    // A margin of rounding error is none.
    if wanted >= available - 1e-9 * available {
        (0.0, available)
    } else {
        ((available - wanted) / 2.0, wanted)
    }
}

/// Resamples `region` of `view` to `width` x `height` pixels with the Keys kernel (a = -0.5), widened when
/// scaling down. Samples outside the region but inside the view take part in the filter.
pub(super) fn resample(
    resizer: &mut Resizer,
    view: View,
    region: Region,
    width: u32,
    height: u32,
) -> Result<RgbImage, ImageError> {
    let failed = |error: &dyn std::fmt::Display| ImageError::Resize(error.to_string());
    let Region {
        left,
        top,
        width: columns,
        height: rows,
    } = region;
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::CatmullRom))
        .use_alpha(false)
        .crop(left, top, columns, rows);
    // The typed call: the dynamic one would compile every pixel type that the library knows into this crate.
    let image = view.image;
    let source = TypedImageRef::<U8x3>::from_buffer(image.width(), image.height(), image.as_raw())
        .map_err(|e| failed(&e))?;
    let source = TypedCroppedImage::new(source, view.left, view.top, view.width, view.height)
        .map_err(|e| failed(&e))?;
    let mut result = RgbImage::new(width, height);
    let mut target =
        TypedImage::<U8x3>::from_buffer(width, height, &mut result).map_err(|e| failed(&e))?;
    resizer
        .resize_typed(&source, &mut target, &options)
        .map_err(|e| failed(&e))?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::{Crop, pillow};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Half a level for each rounding, and what the second pass (weights of absolute sum 1.5) makes of the first.
        /// The contrast is small enough that no overshoot is clipped, which the two orders of passes do elsewhere.
        #[test]
        fn differs_from_pillow_by_rounding_only(
            (width, height) in (8u32..80, 8u32..80), (w, h) in (4u32..100, 4u32..100), seed: u32,
        ) {
            let image = RgbImage::from_fn(width, height, |x, y| {
                let noise = (x.wrapping_mul(0x9E37_79B9) ^ y.wrapping_mul(0x85EB_CA6B)).wrapping_add(seed);
                let [a, b, c, _] = noise.wrapping_mul(0xC2B2_AE35).to_be_bytes();
                image::Rgb([a, b, c].map(|level| 64 + level / 2))
            });
            let view = Crop::default().view(&image).unwrap();
            let region = Region::whole((width, height));
            let fast = resample(&mut Resizer::new(), view, region, w, h).unwrap();
            let exact = pillow::resize(&image, w, h);
            let pairs = fast.as_raw().iter().zip(exact.as_raw());
            let worst = pairs.map(|(a, b)| a.abs_diff(*b)).max();
            prop_assert!(worst <= Some(3), "{worst:?}");
        }
    }
}
