//! JPEG and PNG data to RGB.

use std::any::Any;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};

use super::encoding::Encoding;
use super::error::{MAX_PIXELS, check_size};
use super::{ImageError, RawImage, decode_raw};

/// Decodes a JPEG or PNG file.
///
/// The bytes decide what it is. The EXIF orientation is applied, alpha is laid over white, 16-bit channels are scaled to
/// 8 bit and grey becomes RGB.
///
/// # Errors
/// Data of any other format, data that ends early or is damaged, images without pixels or beyond
/// [`MAX_PIXELS`](super::MAX_PIXELS). A panic of the decoder is caught and reported as
/// [`ImageError::DecoderPanic`].
pub fn decode_compressed(bytes: &[u8]) -> Result<RgbImage, ImageError> {
    contain_panic(|| decode(bytes, None))
}

/// Decodes a `sensor_msgs/CompressedImage`, as [`decode_compressed`] does.
///
/// Its format string tells only one thing that the bytes do not: that grey samples are a Bayer mosaic, as in
/// `"bayer_rggb8; png compressed "`, which `compressed_image_transport` makes of such an image.
///
/// # Errors
/// Those of [`decode_compressed`].
pub fn decode_compressed_message(format: &str, bytes: &[u8]) -> Result<RgbImage, ImageError> {
    let source = format.split(';').next().unwrap_or_default();
    let mosaic = Encoding::named(source.trim())
        .ok()
        .and_then(Encoding::eight_bit_mosaic);
    contain_panic(|| decode(bytes, mosaic))
}

fn contain_panic<T>(work: impl FnOnce() -> Result<T, ImageError>) -> Result<T, ImageError> {
    // The work only borrows its input, so nothing half-changed outlives a panic.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|payload| Err(ImageError::DecoderPanic(panic_text(payload.as_ref()))))
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("unknown reason").to_owned()
}

/// `mosaic`: the encoding of a grey picture's samples.
fn decode(bytes: &[u8], mosaic: Option<&str>) -> Result<RgbImage, ImageError> {
    let format = match image::guess_format(bytes) {
        Ok(format @ (ImageFormat::Jpeg | ImageFormat::Png)) => format,
        _ => return Err(ImageError::UnknownFormat),
    };
    // The JPEG decoder fills what is missing with grey instead of reporting it.
    if format == ImageFormat::Jpeg && !jpeg_is_complete(bytes) {
        return Err(ImageError::Truncated);
    }
    let undecodable = |error: image::ImageError| match error {
        image::ImageError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            ImageError::Truncated
        }
        error => ImageError::Undecodable(error.to_string()),
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits());
    let mut decoder = reader.into_decoder().map_err(undecodable)?;
    let (width, height) = decoder.dimensions();
    check_size(width, height)?;
    let orientation = decoder.orientation().map_err(undecodable)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(undecodable)?;
    if let Some(encoding) = mosaic.filter(|_| !image.color().has_color()) {
        return demosaic(encoding, image);
    }
    image.apply_orientation(orientation);
    Ok(if image.color().has_alpha() {
        over_white(image)
    } else {
        image.into_rgb8()
    })
}

fn demosaic(encoding: &str, image: DynamicImage) -> Result<RgbImage, ImageError> {
    let samples = image.into_luma8();
    decode_raw(&RawImage {
        encoding,
        width: samples.width(),
        height: samples.height(),
        step: samples.width(),
        is_bigendian: false,
        data: &samples,
    })
}

/// 16-bit RGBA of the largest size, and as much again for the decoder's own buffers.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_PIXELS * 8 * 2);
    limits
}

fn over_white(image: DynamicImage) -> RgbImage {
    let image = image.into_rgba8();
    let mut rgb = RgbImage::new(image.width(), image.height());
    for (out, pixel) in rgb.pixels_mut().zip(image.pixels()) {
        let [r, g, b, alpha] = pixel.0.map(u32::from);
        let blend = |c: u32| ((c * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        out.0 = [blend(r), blend(g), blend(b)];
    }
    rgb
}

/// Whether the end-of-image marker follows the entropy-coded data (ITU T.81, B.1.1). Segments are skipped by
/// their length, so that the end marker of an embedded thumbnail does not count.
fn jpeg_is_complete(bytes: &[u8]) -> bool {
    const SOI: u8 = 0xD8;
    const EOI: u8 = 0xD9;
    const TEM: u8 = 0x01;
    let mut rest = bytes;
    loop {
        // Between segments stand fill bytes, after a start of scan the entropy-coded data, in which 0xFF is
        // followed by zero or a restart marker.
        let Some(at) = rest
            .windows(2)
            .position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0xD0..=0xD7 | 0xFF))
        else {
            return false;
        };
        let Some((&[_, marker], after)) = rest[at..].split_first_chunk::<2>() else {
            return false;
        };
        rest = match marker {
            EOI => return true,
            SOI | TEM => after,
            _ => {
                let Some(length) = after.first_chunk::<2>() else {
                    return false;
                };
                let Some(after) = after.get(usize::from(u16::from_be_bytes(*length))..) else {
                    return false;
                };
                after
            }
        };
    }
}

#[cfg(test)]
mod tests;
