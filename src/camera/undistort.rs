//! Rectified images by a table made once.

use image::RgbImage;

use super::calibration::{CalibrationError, CameraModel};
use super::error::check_size;

/// Parts into which a pixel is divided.
const PARTS: u32 = 64;

/// Turns images of one camera into rectified ones of the same size: bilinear, at a 64th of a pixel. What the camera did
/// not see is black.
#[derive(Debug, Clone)]
pub struct Undistortion {
    width: u32,
    height: u32,
    table: Vec<Tap>,
    valid_fraction: f64,
}

/// The four source pixels of a rectified one.
#[derive(Debug, Clone, Copy)]
struct Tap {
    /// Byte of the top left one, with a pixel to its right and one below; [`Tap::OUTSIDE`] for none.
    offset: u32,
    /// Distance from it in [`PARTS`], 0 to 64.
    x: u8,
    y: u8,
}

impl Tap {
    const OUTSIDE: Self = Self {
        offset: u32::MAX,
        x: 0,
        y: 0,
    };
}

impl Undistortion {
    /// For images of `width` x `height` pixels, to which the model is scaled if it was calibrated at another resolution.
    ///
    /// # Errors
    /// Those of [`CameraModel::at_size`], and [`CalibrationError::Unrectifiable`] for a side of less than two pixels or
    /// more pixels than [`MAX_PIXELS`](super::MAX_PIXELS).
    pub fn new(model: &CameraModel, width: u32, height: u32) -> Result<Self, CalibrationError> {
        let model = model.at_size(width, height)?;
        if width < 2 || height < 2 || check_size(width, height).is_err() {
            return Err(CalibrationError::Unrectifiable { width, height });
        }
        let taps = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let table: Vec<Tap> = taps
            .map(|(x, y)| {
                let source = model.source_of(f64::from(x), f64::from(y));
                source
                    .and_then(|(x, y)| tap(x, y, width, height))
                    .unwrap_or(Tap::OUTSIDE)
            })
            .collect();
        let valid = table.iter().filter(|tap| tap.offset != u32::MAX).count();
        Ok(Self {
            width,
            height,
            valid_fraction: valid as f64 / table.len() as f64,
            table,
        })
    }

    /// How much of a rectified image the camera saw, 0 to 1.
    pub fn valid_fraction(&self) -> f64 {
        self.valid_fraction
    }

    /// Rectifies `source` into `rectified`, which is made anew only if its size is another.
    ///
    /// # Errors
    /// [`CalibrationError::SizeMismatch`] for images of another size than the table's.
    pub fn apply(
        &self,
        source: &RgbImage,
        rectified: &mut RgbImage,
    ) -> Result<(), CalibrationError> {
        if source.dimensions() != (self.width, self.height) {
            return Err(CalibrationError::SizeMismatch {
                width: source.width(),
                height: source.height(),
                calibrated_width: self.width,
                calibrated_height: self.height,
            });
        }
        if rectified.dimensions() != source.dimensions() {
            *rectified = RgbImage::new(self.width, self.height);
        }
        let row = self.width as usize * 3;
        let (out, _) = rectified.as_chunks_mut::<3>();
        for (out, tap) in out.iter_mut().zip(&self.table) {
            *out = sample(source, row, tap).unwrap_or_default();
        }
        Ok(())
    }
}

/// `None` for places outside the picture, whose pixels reach half a pixel beyond the outermost centres.
fn tap(x: f64, y: f64, width: u32, height: u32) -> Option<Tap> {
    let column = position(x, width)?;
    let row = position(y, height)?;
    let (left, x) = split(column, width);
    let (top, y) = split(row, height);
    Some(Tap {
        offset: (top * width + left) * 3,
        x,
        y,
    })
}

/// In [`PARTS`] of a pixel from the first centre.
fn position(place: f64, side: u32) -> Option<u32> {
    let last = f64::from(side - 1);
    let inside = (-0.5..=last + 0.5).contains(&place);
    inside.then(|| (place.clamp(0.0, last) * f64::from(PARTS)).round() as u32)
}

/// The pixel before a position, but never the last one, and the rest.
fn split(position: u32, side: u32) -> (u32, u8) {
    let pixel = (position / PARTS).min(side - 2);
    (pixel, (position - pixel * PARTS) as u8)
}

/// The three channels share a word, 21 bits for each: 255 * 64 * 64 and half of 64 * 64 need 20.
fn sample(image: &[u8], row: usize, tap: &Tap) -> Option<[u8; 3]> {
    let offset = tap.offset as usize;
    let top = image.get(offset..)?.first_chunk::<6>()?;
    let bottom = image.get(offset + row..)?.first_chunk::<6>()?;
    let spread = |r: u8, g: u8, b: u8| u64::from(r) | u64::from(g) << 21 | u64::from(b) << 42;
    let blend = |&[r, g, b, r2, g2, b2]: &[u8; 6]| {
        spread(r, g, b) * u64::from(PARTS - u32::from(tap.x))
            + spread(r2, g2, b2) * u64::from(tap.x)
    };
    const HALF: u64 = (PARTS * PARTS / 2) as u64;
    let sum = blend(top) * u64::from(PARTS - u32::from(tap.y)) + blend(bottom) * u64::from(tap.y);
    let sum = sum + (HALF | HALF << 21 | HALF << 42);
    Some([12, 33, 54].map(|bits| (sum >> bits) as u8))
}

#[cfg(test)]
mod tests;
