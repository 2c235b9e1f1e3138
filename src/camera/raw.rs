//! `sensor_msgs/Image` to RGB.

use image::RgbImage;

use super::ImageError;
use super::error::check_size;

/// How the bytes of one pixel become RGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Rgb,
    Bgr,
    Rgba,
    Bgra,
    Mono,
    Mono16,
}

impl Layout {
    /// By the names of `sensor_msgs/image_encodings.hpp`. The OpenCV type names say nothing of the channels'
    /// order: they are read in OpenCV's own, blue first.
    fn of_encoding(encoding: &str) -> Option<Self> {
        Some(match encoding {
            "rgb8" => Self::Rgb,
            "bgr8" | "8UC3" => Self::Bgr,
            "rgba8" => Self::Rgba,
            "bgra8" | "8UC4" => Self::Bgra,
            "mono8" | "8UC1" => Self::Mono,
            "mono16" | "16UC1" => Self::Mono16,
            _ => return None,
        })
    }

    fn bytes_per_pixel(self) -> usize {
        match self {
            Self::Mono => 1,
            Self::Mono16 => 2,
            Self::Rgb | Self::Bgr => 3,
            Self::Rgba | Self::Bgra => 4,
        }
    }
}

/// Decodes the fields of a `sensor_msgs/Image`.
///
/// Encodings: `rgb8`, `bgr8`, `rgba8`, `bgra8`, `mono8`, `mono16`, and the type names `8UC1` (as `mono8`),
/// `8UC3` (as `bgr8`), `8UC4` (as `bgra8`) and `16UC1` (as `mono16`). Alpha is dropped, the colours stay as they
/// are. 16-bit grey is scaled so that 65535 becomes 255. `step` is the length of a row in bytes; bytes between
/// the end of a row's pixels and the next row are never read, and the last row may lack them.
///
/// # Errors
/// Unknown encodings, sizes without pixels or beyond [`MAX_PIXELS`](super::MAX_PIXELS), a `step` shorter than a
/// row, and less data than the size asks for.
pub fn decode_raw(
    encoding: &str,
    width: u32,
    height: u32,
    step: u32,
    is_bigendian: bool,
    data: &[u8],
) -> Result<RgbImage, ImageError> {
    let layout = Layout::of_encoding(encoding)
        .ok_or_else(|| ImageError::UnknownEncoding(encoding.to_owned()))?;
    check_size(width, height)?;
    let row = u64::from(width) * layout.bytes_per_pixel() as u64;
    if u64::from(step) < row {
        return Err(ImageError::StepTooSmall { step, needed: row });
    }
    let needed = u64::from(height - 1) * u64::from(step) + row;
    if (data.len() as u64) < needed {
        return Err(ImageError::ShortData {
            found: data.len(),
            needed,
        });
    }
    let rows = data
        .chunks(step as usize)
        .take(height as usize)
        .filter_map(|bytes| bytes.get(..row as usize));
    let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
    for pixels in rows {
        append_rgb(&mut rgb, pixels, layout, is_bigendian);
    }
    let found = data.len();
    RgbImage::from_raw(width, height, rgb).ok_or(ImageError::ShortData { found, needed })
}

fn append_rgb(rgb: &mut Vec<u8>, pixels: &[u8], layout: Layout, is_bigendian: bool) {
    match layout {
        Layout::Rgb => rgb.extend_from_slice(pixels),
        Layout::Bgr => append_each::<3>(rgb, pixels, |[b, g, r]| [r, g, b]),
        Layout::Rgba => append_each::<4>(rgb, pixels, |[r, g, b, _]| [r, g, b]),
        Layout::Bgra => append_each::<4>(rgb, pixels, |[b, g, r, _]| [r, g, b]),
        Layout::Mono => append_each::<1>(rgb, pixels, |[grey]| [grey; 3]),
        Layout::Mono16 if is_bigendian => {
            append_each::<2>(rgb, pixels, |pair| [to_8_bit(u16::from_be_bytes(pair)); 3]);
        }
        Layout::Mono16 => {
            append_each::<2>(rgb, pixels, |pair| [to_8_bit(u16::from_le_bytes(pair)); 3]);
        }
    }
}

fn append_each<const N: usize>(
    rgb: &mut Vec<u8>,
    pixels: &[u8],
    convert: impl Fn([u8; N]) -> [u8; 3],
) {
    let (pixels, _) = pixels.as_chunks::<N>();
    let start = rgb.len();
    rgb.resize(start + pixels.len() * 3, 0);
    let (out, _) = rgb[start..].as_chunks_mut::<3>();
    for (out, pixel) in out.iter_mut().zip(pixels) {
        *out = convert(*pixel);
    }
}

/// The nearest of 256 levels: 65535 = 255 * 257.
fn to_8_bit(value: u16) -> u8 {
    ((u32::from(value) + 128) / 257) as u8
}

#[cfg(test)]
mod tests;
