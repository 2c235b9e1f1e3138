//! Which pixels may become points of the map.

use std::path::Path;

use image::RgbImage;
use ndarray::Array2;

use super::calibration::CameraModel;
use super::crop::Crop;
use super::intrinsics::PixelTransform;
use super::size::NetworkSize;
use super::{ImageError, decode_compressed};

/// Tells the parts of the camera's pictures that are to be mapped from those that are not, such as the robot itself. Its
/// own size does not matter: it is laid over the whole picture as the camera sends it.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    image: Option<RgbImage>,
}

/// How a picture came to the network's size.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// Width and height of the camera's picture.
    pub picture: (u32, u32),
    /// For a picture that was rectified: the camera, of the picture's size.
    pub rectified: Option<CameraModel>,
    /// What was cut off the picture, after it was rectified.
    pub crop: Crop,
    /// From the picture, not cropped but rectified, to the network's.
    pub transform: PixelTransform,
    pub size: NetworkSize,
}

impl Mask {
    /// Keeps the pixels that are not black in any channel.
    pub fn new(image: RgbImage) -> Self {
        Self { image: Some(image) }
    }

    /// Reads the mask from a PNG or JPEG file; the latter smears its edges.
    ///
    /// # Errors
    /// [`ImageError::Unreadable`] and those of [`decode_compressed`], with the path.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        let bytes = std::fs::read(path).map_err(|source| ImageError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let image = decode_compressed(&bytes).map_err(|source| ImageError::InFile {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        Ok(Self::new(image))
    }

    /// The pixels `[row, column]` of the network's picture that may become points: those that show a part of the
    /// camera's picture which the mask keeps. Borders that the fit filled up, and what the camera did not see of a
    /// rectified picture, are left out without a mask too.
    pub fn on_network(&self, placement: &Placement) -> Array2<bool> {
        let shape = (
            placement.size.height as usize,
            placement.size.width as usize,
        );
        Array2::from_shape_fn(shape, |(row, column)| {
            placement
                .source_of(column as f64, row as f64)
                .is_some_and(|at| keeps(self.image.as_ref(), at))
        })
    }
}

/// `at`: parts of the picture's width and height.
fn keeps(image: Option<&RgbImage>, at: (f64, f64)) -> bool {
    let Some(image) = image else {
        return true;
    };
    let index = |part: f64, side: u32| (part * f64::from(side)) as u32;
    let x = index(at.0, image.width());
    let y = index(at.1, image.height());
    image
        .get_pixel_checked(x, y)
        .is_some_and(|pixel| pixel.0 != [0; 3])
}

impl Placement {
    /// The place in the camera's picture of a pixel of the network's, as parts of its width and height in 0..1.
    fn source_of(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let Crop {
            left,
            top,
            right,
            bottom,
        } = self.crop;
        let (width, height) = self.picture;
        let (mut x, mut y) = self.transform.source_of(x, y);
        if !inside(x, left, width.checked_sub(right)?)
            || !inside(y, top, height.checked_sub(bottom)?)
        {
            return None;
        }
        if let Some(camera) = &self.rectified {
            (x, y) = camera.source_of(x, y)?;
        }
        let seen = inside(x, 0, width) && inside(y, 0, height);
        let part = |place: f64, side: u32| (place + 0.5) / f64::from(side);
        seen.then(|| (part(x, width), part(y, height)))
    }
}

/// Whether a place lies in the pixels from `first` to before `end`, which reach half a pixel beyond their centres.
fn inside(place: f64, first: u32, end: u32) -> bool {
    (f64::from(first)..f64::from(end)).contains(&(place + 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::{CameraInfo, Fit, Fitter};
    use image::Rgb;
    use proptest::prelude::*;

    const SIZE: NetworkSize = NetworkSize {
        height: 42,
        width: 56,
    };

    fn placement(picture: (u32, u32), fit: Fit, crop: Crop) -> Placement {
        let mut fitter = Fitter::new(SIZE, fit).with_crop(crop);
        let (_, transform) = fitter.fit(&RgbImage::new(picture.0, picture.1)).unwrap();
        Placement {
            picture,
            rectified: None,
            crop,
            transform,
            size: SIZE,
        }
    }

    /// The right half is kept.
    fn right_half(width: u32, height: u32) -> Mask {
        Mask::new(RgbImage::from_fn(width, height, |x, _| {
            Rgb([0, if x * 2 < width { 0 } else { 1 }, 0])
        }))
    }

    #[test]
    fn a_mask_of_any_size_covers_the_whole_picture() {
        let placement = placement((640, 480), Fit::Crop, Crop::default());
        for (width, height) in [(640, 480), (2, 1), (1280, 77)] {
            let mask = right_half(width, height);
            let kept = mask.on_network(&placement);
            assert_eq!(kept.dim(), (42, 56));
            for ((row, column), &kept) in kept.indexed_iter() {
                assert_eq!(kept, column >= 28, "{row} {column}");
            }
        }
    }

    #[test]
    fn borders_of_the_fit_and_cropped_parts_are_left_out() {
        let everything = |placement| Mask::default().on_network(&placement);
        let covered = everything(placement((640, 480), Fit::Crop, Crop::default()));
        assert!(covered.iter().all(|&kept| kept));
        // 112x42 becomes 56x21 between 10 white rows and 11.
        let padded = everything(placement((112, 42), Fit::Pad, Crop::default()));
        for ((row, _), &kept) in padded.indexed_iter() {
            assert_eq!(kept, (10..31).contains(&row), "{row}");
        }
        // The white rows lie where the picture was before it was cropped.
        let crop = Crop {
            top: 21,
            bottom: 21,
            ..Crop::default()
        };
        let cropped = everything(placement((112, 84), Fit::Pad, crop));
        assert_eq!(cropped, padded);
    }

    #[test]
    fn a_mask_follows_the_lens() {
        let info = CameraInfo {
            width: 64,
            height: 48,
            distortion_model: "plumb_bob".to_owned(),
            d: vec![0.4, 0.0, 0.0, 0.0, 0.0],
            k: [40.0, 0.0, 31.5, 0.0, 40.0, 23.5, 0.0, 0.0, 1.0],
            ..CameraInfo::default()
        };
        let camera = CameraModel::from_info(&info).unwrap().unwrap();
        let straight = placement((64, 48), Fit::Crop, Crop::default());
        let bent = Placement {
            rectified: Some(camera.clone()),
            ..straight.clone()
        };
        let mask = Mask::new(RgbImage::from_fn(64, 48, |x, _| {
            Rgb([if x < 8 { 0 } else { 255 }; 3])
        }));
        // Column 7 of 56 shows x = 7.93 of the rectified picture, and the lens moves that outwards.
        assert!(mask.on_network(&straight)[[21, 7]]);
        assert!(!mask.on_network(&bent)[[21, 7]]);
        assert!(!Mask::default().on_network(&bent)[[0, 0]], "not seen");
        assert!(mask.on_network(&straight)[[21, 7]]);
    }

    #[test]
    fn a_mask_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mask.png");
        let error = Mask::open(&path).unwrap_err();
        assert_eq!(error.reason(), "unreadable_file");
        image::GrayImage::from_raw(2, 1, vec![0, 1])
            .unwrap()
            .save_with_format(&path, image::ImageFormat::Png)
            .unwrap();
        let mask = Mask::open(&path).unwrap();
        let placement = placement((640, 480), Fit::Crop, Crop::default());
        assert!(!mask.on_network(&placement)[[20, 27]]);
        assert!(mask.on_network(&placement)[[20, 28]]);
        std::fs::write(&path, "text").unwrap();
        let error = Mask::open(&path).unwrap_err();
        assert_eq!(error.reason(), "unknown_format");
        assert!(error.to_string().contains("mask.png"));
    }

    proptest! {
        /// The nearest pixel of a mask of the picture's size.
        #[test]
        fn a_pixel_is_kept_by_the_mask_nearest_to_its_source(
            (width, height) in (20u32..90, 20u32..90), which in 0usize..3, seed: u32,
        ) {
            let image = RgbImage::from_fn(width, height, |x, y| {
                let noise = (x.wrapping_mul(0x9E37_79B9) ^ y.wrapping_mul(0x85EB_CA6B)).wrapping_mul(seed | 1);
                Rgb([(noise >> 31) as u8; 3])
            });
            let fit = [Fit::Crop, Fit::Pad, Fit::Reference][which];
            let placement = placement((width, height), fit, Crop::default());
            let kept = Mask::new(image.clone()).on_network(&placement);
            for ((row, column), &kept) in kept.indexed_iter() {
                let (x, y) = placement.transform.source_of(column as f64, row as f64);
                let near_edge = |v: f64| ((v + 0.5) - (v + 0.5).round()).abs() < 1e-6;
                if near_edge(x) || near_edge(y) {
                    continue;
                }
                let (x, y) = (x.round(), y.round());
                let seen = (0.0..f64::from(width)).contains(&x) && (0.0..f64::from(height)).contains(&y);
                let expected = seen && image.get_pixel(x as u32, y as u32).0 != [0; 3];
                prop_assert_eq!(kept, expected, "{} {}", row, column);
            }
        }
    }
}
