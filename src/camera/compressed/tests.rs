use super::*;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, Rgb};
use proptest::prelude::*;

/// Left half red, right half blue, a green row on top: no channel order or orientation can be mistaken.
fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        match (x < width / 2, y < height / 4) {
            (_, true) => Rgb([0, 200, 0]),
            (true, _) => Rgb([200, 0, 0]),
            (false, _) => Rgb([0, 0, 200]),
        }
    })
}

fn jpeg(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 95)
        .encode_image(image)
        .unwrap();
    bytes
}

fn png(width: u32, height: u32, data: &[u8], color: ExtendedColorType) -> Vec<u8> {
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(data, width, height, color)
        .unwrap();
    bytes
}

/// The JPEG with an EXIF segment of one entry, the orientation, and a thumbnail's markers behind it.
fn with_orientation(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let mut exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    exif.extend([0xFF, 0xD8, 0xFF, 0xD9]);
    let mut bytes = jpeg[..2].to_vec();
    bytes.extend([0xFF, 0xE1]);
    bytes.extend((exif.len() as u16 + 2).to_be_bytes());
    bytes.extend(exif);
    bytes.extend(&jpeg[2..]);
    bytes
}

fn close(a: Rgb<u8>, b: [u8; 3]) -> bool {
    a.0.iter().zip(b).all(|(&a, b)| a.abs_diff(b) <= 12)
}

#[test]
fn the_bytes_decide_and_channels_keep_their_order() {
    let original = picture(32, 32);
    let decoded = decode_compressed(&jpeg(&original)).unwrap();
    assert!(close(*decoded.get_pixel(4, 20), [200, 0, 0]));
    assert!(close(*decoded.get_pixel(28, 20), [0, 0, 200]));
    assert!(close(*decoded.get_pixel(16, 2), [0, 200, 0]));
    let bytes = png(32, 32, &original, ExtendedColorType::Rgb8);
    assert_eq!(decode_compressed(&bytes).unwrap(), original);
}

#[test]
fn format_strings_neither_choose_the_decoder_nor_swap_channels() {
    let original = picture(32, 32);
    let jpeg = jpeg(&original);
    let png = png(32, 32, &original, ExtendedColorType::Rgb8);
    let from_jpeg = decode_compressed(&jpeg).unwrap();
    for format in [
        "jpeg",
        "jpg",
        "",
        "png",
        "rgb8; jpeg compressed bgr8",
        "bayer_rggb8; jpeg compressed bgr8",
        ";",
    ] {
        let decoded = decode_compressed_message(format, &jpeg).unwrap();
        assert!(decoded == from_jpeg, "{format:?}");
        let decoded = decode_compressed_message(format, &png).unwrap();
        assert!(decoded == original, "{format:?}");
    }
}

#[test]
fn a_compressed_mosaic_gets_its_colours() {
    // Blue, green over green, red.
    let samples = [30, 100, 100, 200];
    let eight = png(2, 2, &samples, ExtendedColorType::L8);
    let wide: Vec<u8> = samples
        .iter()
        .flat_map(|&level| (u16::from(level) * 257).to_ne_bytes())
        .collect();
    let sixteen = png(2, 2, &wide, ExtendedColorType::L16);
    for (format, bytes) in [
        ("bayer_bggr8; png compressed ", &eight),
        ("bayer_bggr16; png compressed ", &sixteen),
    ] {
        let decoded = decode_compressed_message(format, bytes).unwrap();
        assert!(decoded.pixels().all(|p| p.0 == [200, 100, 30]), "{format}");
    }
    let grey = decode_compressed_message("mono8; png compressed ", &eight).unwrap();
    assert_eq!(grey.get_pixel(0, 0).0, [30; 3]);
}

#[test]
fn grey_pictures_become_rgb() {
    let bytes = png(2, 1, &[7, 200], ExtendedColorType::L8);
    assert_eq!(
        decode_compressed(&bytes).unwrap().as_raw(),
        &[7, 7, 7, 200, 200, 200]
    );
    let mut bytes = Vec::new();
    JpegEncoder::new(&mut bytes)
        .encode(&[128; 64], 8, 8, ExtendedColorType::L8)
        .unwrap();
    assert!(close(
        *decode_compressed(&bytes).unwrap().get_pixel(3, 3),
        [128; 3]
    ));
}

#[test]
fn sixteen_bit_channels_are_scaled() {
    let data: Vec<u8> = [0u16, 257, 65535]
        .into_iter()
        .flat_map(u16::to_ne_bytes)
        .collect();
    let bytes = png(1, 1, &data, ExtendedColorType::Rgb16);
    assert_eq!(decode_compressed(&bytes).unwrap().as_raw(), &[0, 1, 255]);
}

#[test]
fn alpha_is_laid_over_white() {
    let data = [10, 20, 30, 255, 10, 20, 30, 0, 0, 100, 200, 128];
    let bytes = png(3, 1, &data, ExtendedColorType::Rgba8);
    let expected = [10, 20, 30, 255, 255, 255, 127, 177, 227];
    assert_eq!(decode_compressed(&bytes).unwrap().as_raw(), &expected);
}

#[test]
fn exif_orientation_is_applied() {
    let plain = jpeg(&picture(48, 32));
    let upright = decode_compressed(&plain).unwrap();
    let oriented = |orientation| decode_compressed(&with_orientation(&plain, orientation)).unwrap();
    assert_eq!(oriented(1), upright);
    assert_eq!(oriented(3), image::imageops::rotate180(&upright));
    assert_eq!(oriented(6), image::imageops::rotate90(&upright));
    assert_eq!(oriented(8), image::imageops::rotate270(&upright));
}

#[test]
fn data_that_ends_early_is_refused() {
    let original = picture(64, 64);
    let jpeg = with_orientation(&jpeg(&original), 1);
    let png = png(64, 64, &original, ExtendedColorType::Rgb8);
    for whole in [&jpeg, &png] {
        for length in [whole.len() / 2, whole.len() - 20, 24, 4] {
            assert!(
                decode_compressed(&whole[..length]).is_err(),
                "{length} bytes"
            );
        }
    }
    assert_eq!(
        decode_compressed(&jpeg[..jpeg.len() / 2])
            .unwrap_err()
            .reason(),
        "truncated"
    );
}

#[test]
fn bytes_after_the_end_are_ignored() {
    let mut bytes = jpeg(&picture(16, 16));
    let expected = decode_compressed(&bytes).unwrap();
    bytes.extend([0; 40]);
    assert_eq!(decode_compressed(&bytes).unwrap(), expected);
}

#[test]
fn nothing_and_text_are_refused() {
    for bytes in [
        &b""[..],
        b"hello, this is no image",
        b"GIF89a\x01\0\x01\0",
        &[0; 100],
    ] {
        assert_eq!(
            decode_compressed(bytes).unwrap_err().reason(),
            "unknown_format"
        );
    }
}

#[test]
fn a_header_that_asks_for_too_much_is_refused() {
    let mut bytes = png(1, 1, &[0; 3], ExtendedColorType::Rgb8);
    let ihdr = 16;
    bytes[ihdr..ihdr + 4].copy_from_slice(&60_000u32.to_be_bytes());
    bytes[ihdr + 4..ihdr + 8].copy_from_slice(&60_000u32.to_be_bytes());
    let crc = crc32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.to_be_bytes());
    assert_eq!(decode_compressed(&bytes).unwrap_err().reason(), "too_large");
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| {
        if crc & 1 == 1 {
            0xEDB8_8320 ^ (crc >> 1)
        } else {
            crc >> 1
        }
    };
    !bytes
        .iter()
        .fold(!0, |crc, &b| (0..8).fold(crc ^ u32::from(b), step))
}

#[test]
fn a_panic_of_the_decoder_is_contained() {
    let error = contain_panic::<()>(|| panic!("table {} out of range", 5)).unwrap_err();
    assert_eq!(error.reason(), "decoder_panic");
    assert!(error.to_string().contains("table 5 out of range"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_data_never_escapes_as_a_panic(
        damage in prop::collection::vec((0.0..1.0f64, any::<u8>()), 1..20), use_png: bool,
    ) {
        let original = picture(24, 16);
        let mut bytes = if use_png {
            png(24, 16, &original, ExtendedColorType::Rgb8)
        } else {
            jpeg(&original)
        };
        for (place, value) in damage {
            let at = (place * bytes.len() as f64) as usize;
            bytes[at] = value;
        }
        if let Err(error) = decode_compressed(&bytes) {
            prop_assert!(!error.reason().is_empty());
        }
    }
}
