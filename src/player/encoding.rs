//! Camera messages of a computed or decoded picture.

use clap::ValueEnum;
use r2r::sensor_msgs::msg::Image;

use crate::camera::Stamp;
use crate::node::messages::{empty_image, header, set_pixels};

/// Encodings that a player can send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum SentEncoding {
    #[default]
    Rgb8,
    Bgr8,
    Rgba8,
    Bgra8,
    Mono8,
}

impl SentEncoding {
    fn name(self) -> &'static str {
        match self {
            Self::Rgb8 => "rgb8",
            Self::Bgr8 => "bgr8",
            Self::Rgba8 => "rgba8",
            Self::Bgra8 => "bgra8",
            Self::Mono8 => "mono8",
        }
    }

    fn encode(self, rgb: &[u8]) -> Vec<u8> {
        let (pixels, _) = rgb.as_chunks::<3>();
        let pixels = pixels.iter();
        match self {
            Self::Rgb8 => rgb.to_vec(),
            Self::Bgr8 => pixels.flat_map(|&[r, g, b]| [b, g, r]).collect(),
            Self::Rgba8 => pixels.flat_map(|&[r, g, b]| [r, g, b, 255]).collect(),
            Self::Bgra8 => pixels.flat_map(|&[r, g, b]| [b, g, r, 255]).collect(),
            Self::Mono8 => pixels.map(luma).collect(),
        }
    }
}

/// ITU-R BT.601.
fn luma(&[r, g, b]: &[u8; 3]) -> u8 {
    ((77 * u32::from(r) + 150 * u32::from(g) + 29 * u32::from(b) + 128) >> 8) as u8
}

/// `rgb`: rows of red, green and blue without padding.
pub fn image(
    stamp: Stamp,
    frame: &str,
    (width, height): (u32, u32),
    rgb: &[u8],
    encoding: SentEncoding,
) -> Image {
    let data = encoding.encode(rgb);
    Image {
        header: header(stamp, frame),
        width,
        height,
        step: (data.len() / height.max(1) as usize) as u32,
        encoding: encoding.name().into(),
        data,
        ..Default::default()
    }
}

/// Depth in metres, 32FC1 (REP-118).
pub fn depth_image(stamp: Stamp, frame: &str, (width, height): (u32, u32), depth: &[f32]) -> Image {
    let mut image = empty_image();
    image.header = header(stamp, frame);
    set_pixels(
        &mut image,
        (height as usize, width as usize),
        depth.iter().copied(),
    );
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::decode_raw;
    use crate::node::input::raw_image;

    #[test]
    fn every_encoding_is_read_back_by_the_decoder() {
        let rgb: Vec<u8> = (0..5 * 3 * 3).map(|i| (i * 5) as u8).collect();
        for &encoding in SentEncoding::value_variants() {
            let message = image(Stamp(7), "camera", (5, 3), &rgb, encoding);
            let decoded = decode_raw(&raw_image(&message)).unwrap();
            if encoding == SentEncoding::Mono8 {
                let greys = rgb.as_chunks::<3>().0.iter().map(luma);
                assert!(
                    decoded
                        .pixels()
                        .zip(greys)
                        .all(|(p, grey)| p.0 == [grey; 3])
                );
            } else {
                assert_eq!(decoded.as_raw(), &rgb, "{encoding:?}");
            }
        }
    }
}
