//! Pictures of any size to the size of the network's input.

use std::fmt;
use std::str::FromStr;

use fast_image_resize::Resizer;
use image::{Rgb, RgbImage, imageops};

use super::error::check_size;
use super::resample::{Region, resample};
use super::size::{NetworkSize, scaled_height, whole_patches, whole_patches_near};
use super::{ImageError, pillow, reference_size};

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
    fn of(region: Region, width: u32, height: u32, left: i64, top: i64) -> Self {
        let scale_x = f64::from(width) / region.width;
        let scale_y = f64::from(height) / region.height;
        Self {
            scale_x,
            scale_y,
            offset_x: (0.5 - region.left) * scale_x - 0.5 + left as f64,
            offset_y: (0.5 - region.top) * scale_y - 0.5 + top as f64,
        }
    }
}

/// Fits pictures to the network's size. Keeps its buffers from one picture to the next.
pub struct Fitter {
    size: NetworkSize,
    fit: Fit,
    resizer: Resizer,
}

impl Fitter {
    pub fn new(size: NetworkSize, fit: Fit) -> Self {
        Self {
            size,
            fit,
            resizer: Resizer::new(),
        }
    }

    pub fn size(&self) -> NetworkSize {
        self.size
    }

    /// Returns the picture at the network's size and where its pixels came from. A picture that has the size
    /// already is returned as it is. Every other one goes through an antialiased bicubic filter:
    /// [`Fit::Reference`] through Pillow's, to the bit, the others through a faster one that rounds otherwise
    /// (at most three levels of 255 apart, more only where an edge overshoots).
    ///
    /// # Errors
    /// [`ImageError::Empty`] for a picture without pixels, [`ImageError::TooLarge`].
    pub fn fit(&mut self, image: &RgbImage) -> Result<(RgbImage, PixelTransform), ImageError> {
        check_size(image.width(), image.height())?;
        if image.dimensions() == (self.size.width, self.size.height) {
            return Ok((image.clone(), PixelTransform::IDENTITY));
        }
        match self.fit {
            Fit::Crop => self.crop(image),
            Fit::Pad => self.pad(image),
            Fit::Reference => self.reference(image),
        }
    }

    fn scales(&self, image: &RgbImage) -> (f64, f64) {
        (
            f64::from(self.size.width) / f64::from(image.width()),
            f64::from(self.size.height) / f64::from(image.height()),
        )
    }

    fn crop(&mut self, image: &RgbImage) -> Result<(RgbImage, PixelTransform), ImageError> {
        let NetworkSize { height, width } = self.size;
        let (scale_x, scale_y) = self.scales(image);
        let region = Region::centred(image, scale_x.max(scale_y), width, height);
        let fitted = resample(&mut self.resizer, image, region, width, height)?;
        let transform = PixelTransform::of(region, width, height, 0, 0);
        Ok((fitted, transform))
    }

    fn pad(&mut self, image: &RgbImage) -> Result<(RgbImage, PixelTransform), ImageError> {
        let (scale_x, scale_y) = self.scales(image);
        let scale = scale_x.min(scale_y);
        let scaled = |side: u32, limit: u32| {
            let side = (f64::from(side) * scale).round() as u32;
            side.clamp(1, limit)
        };
        let width = scaled(image.width(), self.size.width);
        let height = scaled(image.height(), self.size.height);
        let region = Region::whole(image);
        let inside = resample(&mut self.resizer, image, region, width, height)?;
        let left = centred(self.size.width, width);
        let top = centred(self.size.height, height);
        let transform = PixelTransform::of(region, width, height, left, top);
        Ok((
            on_white(&inside, self.size.width, self.size.height),
            transform,
        ))
    }

    fn reference(&mut self, image: &RgbImage) -> Result<(RgbImage, PixelTransform), ImageError> {
        let NetworkSize { height, width } = self.size;
        let processed = preprocess_reference(image, ReferenceMode::Crop, width)?;
        let scaled = scaled_height(image.width(), image.height(), width);
        let kept = reference_size(image.width(), image.height(), width).height;
        let top = centred(height, kept) - i64::from((scaled - kept) / 2);
        let transform = PixelTransform::of(Region::whole(image), width, scaled, 0, top);
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
