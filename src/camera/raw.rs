//! `sensor_msgs/Image` to RGB.

mod bayer;
mod color;
mod yuv;

use image::RgbImage;

use super::ImageError;
use super::encoding::{Depth, Encoding, Layout, Planes};
use super::error::check_size;

/// The fields of a `sensor_msgs/Image`.
#[derive(Debug, Clone, Copy)]
pub struct RawImage<'a> {
    pub encoding: &'a str,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Bytes from the start of a row to the start of the next.
    pub step: u32,
    /// Order of the bytes of 16-bit samples.
    pub is_bigendian: bool,
    pub data: &'a [u8],
}

/// Decodes raw images. Keeps its buffer from one image to the next.
#[derive(Debug, Default)]
pub struct RawDecoder {
    narrowed: Vec<u8>,
}

impl RawDecoder {
    /// Decodes an image of one of the [`ENCODINGS`](super::ENCODINGS) into `rgb`, which is made anew only if its size is
    /// another. After an error `rgb` holds what it held.
    ///
    /// Alpha is dropped, the colours stay as they are. 16-bit samples are scaled so that 65535 becomes 255. Bayer
    /// mosaics are filled in bilinearly, mirrored at the edges. YUV is BT.601 of limited range (luma 16 to 235), as
    /// `cv_bridge` reads it. Bytes between the end of a row's pixels and the next row are never read, and the last row
    /// may lack them.
    ///
    /// # Errors
    /// Unknown encodings, sizes without pixels or beyond [`MAX_PIXELS`](super::MAX_PIXELS), odd sides where chroma is
    /// shared between pixels, a `step` shorter than a row, and less data than the size asks for.
    pub fn decode(&mut self, image: &RawImage, rgb: &mut RgbImage) -> Result<(), ImageError> {
        let layout = Encoding::named(image.encoding)?.layout;
        let rows = check(image, layout)?;
        if rgb.dimensions() != (image.width, image.height) {
            *rgb = RgbImage::new(image.width, image.height);
        }
        let rows = match layout.depth() {
            Depth::Eight => rows,
            Depth::Sixteen => self.narrow(&rows, image.is_bigendian),
        };
        match layout {
            Layout::Color(order, _) => color::from_color(&rows, order, rgb),
            Layout::Grey(_) => color::from_grey(&rows, rgb),
            Layout::Bayer(mosaic, _) => bayer::demosaic(&rows, mosaic, rgb),
            Layout::Yuv422(packing) => yuv::from_packed(&rows, packing, rgb)?,
            Layout::SemiPlanar(planes) => yuv::from_planes(&rows, planes, rgb)?,
        }
        Ok(())
    }

    /// Scales 16-bit samples to the nearest of 256 levels: 65535 = 255 * 257.
    fn narrow(&mut self, rows: &Rows, is_bigendian: bool) -> Rows<'_> {
        let level = |sample: u16| ((u32::from(sample) * 255 + 32_895) >> 16) as u8;
        self.narrowed.clear();
        for row in rows.iter() {
            let (samples, _) = row.as_chunks::<2>();
            if is_bigendian {
                let samples = samples.iter().map(|&pair| level(u16::from_be_bytes(pair)));
                self.narrowed.extend(samples);
            } else {
                let samples = samples.iter().map(|&pair| level(u16::from_le_bytes(pair)));
                self.narrowed.extend(samples);
            }
        }
        let length = rows.length / 2;
        Rows {
            data: &self.narrowed,
            step: length,
            length,
            count: rows.count,
        }
    }
}

/// Decodes a single image, as [`RawDecoder::decode`] does.
///
/// # Errors
/// Those of [`RawDecoder::decode`].
pub fn decode_raw(image: &RawImage) -> Result<RgbImage, ImageError> {
    let mut rgb = RgbImage::default();
    RawDecoder::default().decode(image, &mut rgb)?;
    Ok(rgb)
}

/// The rows of a picture, in bytes. `data` reaches to the end of the last row at least, and of the chroma after it
/// where that has a plane of its own; `length` is neither zero nor more than `step`.
struct Rows<'a> {
    data: &'a [u8],
    step: usize,
    length: usize,
    count: usize,
}

impl<'a> Rows<'a> {
    /// The row's pixels, without what may follow them.
    fn get(&self, index: usize) -> &'a [u8] {
        let start = index * self.step;
        &self.data[start..start + self.length]
    }

    fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.count).map(|index| self.get(index))
    }
}

fn check<'a>(image: &RawImage<'a>, layout: Layout) -> Result<Rows<'a>, ImageError> {
    let &RawImage {
        width,
        height,
        step,
        data,
        ..
    } = image;
    check_size(width, height)?;
    if let Some(needed) = layout.refuses(width, height) {
        let encoding = image.encoding.to_owned();
        return Err(ImageError::UnsupportedSides {
            encoding,
            width,
            height,
            needed,
        });
    }
    let row = layout.row_bytes(width);
    if u64::from(step) < row {
        return Err(ImageError::StepTooSmall { step, needed: row });
    }
    let found = data.len() as u64;
    let needed = needed_bytes(layout, u64::from(step), row, u64::from(height));
    let tight = needed_bytes(layout, row, row, u64::from(height));
    // Older versions of image_encodings.hpp give these encodings two channels: drivers that reckon with them state
    // twice the step of the data that they send.
    let is_doubled = matches!(layout, Layout::SemiPlanar(_)) && u64::from(step) == 2 * row;
    let step = if found >= needed {
        u64::from(step)
    } else if is_doubled && found >= tight {
        row
    } else {
        let found = data.len();
        return Err(ImageError::ShortData { found, needed });
    };
    Ok(Rows {
        data,
        step: step as usize,
        length: row as usize,
        count: height as usize,
    })
}

/// Bytes of the data up to the last pixel's.
fn needed_bytes(layout: Layout, step: u64, row: u64, height: u64) -> u64 {
    match layout {
        Layout::SemiPlanar(Planes::Nv12 | Planes::Nv21) => {
            step * height + step * (height / 2 - 1) + row
        }
        Layout::SemiPlanar(Planes::Nv24 | Planes::Nv42) => {
            step * height + 2 * step * (height - 1) + 2 * row
        }
        _ => step * (height - 1) + row,
    }
}

#[cfg(test)]
mod tests;
