//! Pictures of any size to the size of the network's input.

use std::fmt;
use std::str::FromStr;

use fast_image_resize::Resizer;
use image::{Rgb, RgbImage, imageops};

use super::crop::{Crop, View};
use super::error::check_size;
use super::resample::{Region, resample};
use super::size::{NetworkSize, scaled_height, whole_patches, whole_patches_near};
use super::{ImageError, PixelTransform, pillow, reference_size};

const WHITE: Rgb<u8> = Rgb([255; 3]);

/// How a picture whose shape is not the network's is made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// Scaled to cover the network's size; what is over at the sides is cut off evenly.
    #[default]
    Crop,
    /// Scaled to lie inside the network's size; the rest is white.
    Pad,
    /// The reference implementation's rule for the network's width ([`reference_size`]): scaled to that width
    /// with the height rounded to whole patches, so that the two axes scale a little differently, and the
    /// middle rows kept of a picture taller than wide. If the height then is not the network's, it is cut or
    /// filled up with white evenly.
    Reference,
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Crop => "crop",
            Self::Pad => "pad",
            Self::Reference => "reference",
        })
    }
}

impl FromStr for Fit {
    type Err = ImageError;

    fn from_str(text: &str) -> Result<Self, ImageError> {
        match text {
            "crop" => Ok(Self::Crop),
            "pad" => Ok(Self::Pad),
            "reference" => Ok(Self::Reference),
            _ => Err(ImageError::UnknownFit(text.to_owned())),
        }
    }
}

/// Fits pictures to the network's size. Keeps its buffers from one picture to the next.
pub struct Fitter {
    size: NetworkSize,
    fit: Fit,
    crop: Crop,
    resizer: Resizer,
}

impl Fitter {
    pub fn new(size: NetworkSize, fit: Fit) -> Self {
        Self {
            size,
            fit,
            crop: Crop::default(),
            resizer: Resizer::new(),
        }
    }

    /// Cuts this off every picture first. What is cut off has no part in the filter either.
    pub fn with_crop(mut self, crop: Crop) -> Self {
        self.crop = crop;
        self
    }

    pub fn size(&self) -> NetworkSize {
        self.size
    }

    pub fn crop(&self) -> Crop {
        self.crop
    }

    /// Returns the picture at the network's size and where its pixels came from, in pixels of `image`. A picture
    /// that has the size already is returned as it is. Every other one goes through an antialiased bicubic filter:
    /// [`Fit::Reference`] through Pillow's, to the bit, the others through a faster one that rounds otherwise
    /// (at most three levels of 255 apart, more only where an edge overshoots).
    ///
    /// # Errors
    /// [`ImageError::Empty`] for a picture without pixels, [`ImageError::TooLarge`], [`ImageError::NothingLeft`] for
    /// one that is cropped away.
    pub fn fit(&mut self, image: &RgbImage) -> Result<(RgbImage, PixelTransform), ImageError> {
        check_size(image.width(), image.height())?;
        let view = self.crop.view(image)?;
        let (fitted, transform) = if view.dimensions() == (self.size.width, self.size.height) {
            (view.to_image().into_owned(), PixelTransform::IDENTITY)
        } else {
            match self.fit {
                Fit::Crop => self.cover(view)?,
                Fit::Pad => self.pad(view)?,
                Fit::Reference => self.reference(view)?,
            }
        };
        Ok((fitted, transform.before_crop(view.left, view.top)))
    }

    fn scales(&self, view: View) -> (f64, f64) {
        (
            f64::from(self.size.width) / f64::from(view.width),
            f64::from(self.size.height) / f64::from(view.height),
        )
    }

    fn cover(&mut self, view: View) -> Result<(RgbImage, PixelTransform), ImageError> {
        let NetworkSize { height, width } = self.size;
        let (scale_x, scale_y) = self.scales(view);
        let region = Region::centred(view.dimensions(), scale_x.max(scale_y), width, height);
        let fitted = resample(&mut self.resizer, view, region, width, height)?;
        let transform = PixelTransform::of(region, width, height, 0, 0);
        Ok((fitted, transform))
    }

    fn pad(&mut self, view: View) -> Result<(RgbImage, PixelTransform), ImageError> {
        let (scale_x, scale_y) = self.scales(view);
        let scale = scale_x.min(scale_y);
        let scaled = |side: u32, limit: u32| {
            let side = (f64::from(side) * scale).round() as u32;
            side.clamp(1, limit)
        };
        let width = scaled(view.width, self.size.width);
        let height = scaled(view.height, self.size.height);
        let region = Region::whole(view.dimensions());
        let inside = resample(&mut self.resizer, view, region, width, height)?;
        let left = centred(self.size.width, width);
        let top = centred(self.size.height, height);
        let transform = PixelTransform::of(region, width, height, left, top);
        Ok((
            on_white(&inside, self.size.width, self.size.height),
            transform,
        ))
    }

    fn reference(&mut self, view: View) -> Result<(RgbImage, PixelTransform), ImageError> {
        let NetworkSize { height, width } = self.size;
        let processed = preprocess_reference(&view.to_image(), ReferenceMode::Crop, width)?;
        let scaled = scaled_height(view.width, view.height, width);
        let kept = reference_size(view.width, view.height, width).height;
        let top = centred(height, kept) - i64::from((scaled - kept) / 2);
        let region = Region::whole(view.dimensions());
        let transform = PixelTransform::of(region, width, scaled, 0, top);
        Ok((on_white(&processed, width, height), transform))
    }
}

/// First pixel of `inner` pixels centred in `outer`; negative where `inner` is the longer one. An odd pixel goes
/// to the right or to the bottom.
fn centred(outer: u32, inner: u32) -> i64 {
    (i64::from(outer) - i64::from(inner)).div_euclid(2)
}

/// The picture in the middle of a white one, cut where it is larger.
fn on_white(image: &RgbImage, width: u32, height: u32) -> RgbImage {
    if image.dimensions() == (width, height) {
        return image.clone();
    }
    let mut canvas = RgbImage::from_pixel(width, height, WHITE);
    let (left, top) = (
        centred(width, image.width()),
        centred(height, image.height()),
    );
    imageops::replace(&mut canvas, image, left, top);
    canvas
}

/// The two modes of the reference implementation's image loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceMode {
    /// `target` pixels wide, the height in whole patches, the middle `target` rows of a higher one.
    Crop,
    /// The longer side `target` pixels, the other in whole patches, centred on a white square.
    Pad,
}

/// Preprocesses a single picture as the reference implementation's image loader does, byte for byte: resampled
/// with Pillow's antialiased bicubic filter. `target` (518 for the released checkpoints) is a multiple of 14.
///
/// # Errors
/// [`ImageError::Empty`] for a picture without pixels, [`ImageError::TooLarge`].
pub fn preprocess_reference(
    image: &RgbImage,
    mode: ReferenceMode,
    target: u32,
) -> Result<RgbImage, ImageError> {
    let (width, height) = image.dimensions();
    check_size(width, height)?;
    let target = whole_patches(target);
    let (new_width, new_height) = match mode {
        ReferenceMode::Pad if height > width => {
            let scale = f64::from(target) / f64::from(height);
            (whole_patches_near(f64::from(width) * scale), target)
        }
        ReferenceMode::Crop | ReferenceMode::Pad => (target, scaled_height(width, height, target)),
    };
    check_size(new_width, new_height)?;
    let scaled = pillow::resize(image, new_width, new_height);
    Ok(match mode {
        ReferenceMode::Pad => on_white(&scaled, target, target),
        ReferenceMode::Crop if new_height > target => {
            let top = (new_height - target) / 2;
            imageops::crop_imm(&scaled, 0, top, target, target).to_image()
        }
        ReferenceMode::Crop => scaled,
    })
}

#[cfg(test)]
mod tests;
