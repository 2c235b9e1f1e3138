use super::*;
use crate::camera::ENCODINGS;
use proptest::prelude::*;

mod bayer;
mod yuv;

/// With rows as short as they can be.
fn raw<'a>(encoding: &'a str, width: u32, height: u32, data: &'a [u8]) -> RawImage<'a> {
    let layout = Encoding::named(encoding).map(|encoding| encoding.layout);
    RawImage {
        encoding,
        width,
        height,
        step: layout.map_or(0, |layout| layout.row_bytes(width) as u32),
        is_bigendian: false,
        data,
    }
}

fn reason(image: &RawImage) -> &'static str {
    decode_raw(image).unwrap_err().reason()
}

fn only_pixel(encoding: &str, data: &[u8]) -> [u8; 3] {
    let image = decode_raw(&raw(encoding, 1, 1, data)).unwrap();
    image.get_pixel(0, 0).0
}

#[test]
fn padding_of_rows_is_never_seen() {
    let mut data = Vec::new();
    for row in 0..3u8 {
        data.extend((0..15).map(|i| row * 15 + i));
        data.extend([0xFF; 5]);
    }
    let expected: Vec<u8> = (0..45).collect();
    let padded = |data| RawImage {
        step: 20,
        ..raw("rgb8", 5, 3, data)
    };
    let image = decode_raw(&padded(&data)).unwrap();
    assert_eq!(image.dimensions(), (5, 3));
    assert_eq!(image.as_raw(), &expected);

    let image = decode_raw(&padded(&data[..55])).unwrap();
    assert_eq!(image.as_raw(), &expected, "the last row lacks its padding");
}

#[test]
fn short_data_is_refused() {
    assert_eq!(reason(&raw("rgb8", 640, 480, &[0; 110_592])), "short_data");
    let padded = RawImage {
        step: 20,
        ..raw("rgb8", 5, 3, &[0; 54])
    };
    assert_eq!(reason(&padded), "short_data");
    assert_eq!(reason(&raw("mono8", 5, 3, &[])), "short_data");
}

#[test]
fn zero_sizes_and_steps_are_refused() {
    let image = raw("rgb8", 1280, 720, &[0; 64]);
    assert_eq!(reason(&RawImage { step: 0, ..image }), "step_too_small");
    assert_eq!(reason(&RawImage { height: 0, ..image }), "empty_image");
    assert_eq!(reason(&RawImage { width: 0, ..image }), "empty_image");
}

#[test]
fn a_step_in_pixels_is_refused() {
    let in_pixels = RawImage {
        step: 1280,
        ..raw("16UC1", 1280, 2, &[0; 5120])
    };
    assert_eq!(reason(&in_pixels), "step_too_small");
}

#[test]
fn absurd_sizes_neither_overflow_nor_allocate() {
    for encoding in &ENCODINGS {
        for (width, height, expected) in [
            (u32::MAX, u32::MAX, "too_large"),
            (u32::MAX, 1, "too_large"),
            (16, 8_000_000, "short_data"),
        ] {
            let image = RawImage {
                encoding: encoding.name,
                width,
                height,
                step: u32::MAX,
                is_bigendian: false,
                data: &[0; 64],
            };
            assert_eq!(reason(&image), expected, "{}", encoding.name);
        }
    }
}

#[test]
fn both_byte_orders_give_the_same_pixel() {
    for (encoding, samples) in [("mono16", 1), ("16UC1", 1), ("rgb16", 3), ("bgra16", 4)] {
        let big: Vec<u8> = [0x12, 0x02].repeat(samples);
        let little: Vec<u8> = [0x02, 0x12].repeat(samples);
        let big = RawImage {
            is_bigendian: true,
            ..raw(encoding, 1, 1, &big)
        };
        let image = decode_raw(&big).unwrap();
        assert_eq!(image.get_pixel(0, 0).0, [0x12; 3], "{encoding}");
        assert_eq!(only_pixel(encoding, &little), [0x12; 3], "{encoding}");
    }
}

#[test]
fn sixteen_bit_grey_is_scaled_over_the_full_range() {
    let data: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for encoding in ["mono16", "16UC1"] {
        let image = decode_raw(&raw(encoding, 256, 256, &data)).unwrap();
        for (value, pixel) in image.pixels().enumerate() {
            let expected = (value as f64 * 255.0 / 65535.0).round() as u8;
            assert_eq!(pixel.0, [expected; 3], "{encoding} {value}");
        }
    }
}

#[test]
fn type_names_are_read_in_opencvs_order_and_say_so() {
    for (encoding, read_as, data, expected) in [
        ("8UC3", "bgr8", &[255, 0, 0][..], [0, 0, 255]),
        ("8UC4", "bgra8", &[255, 0, 0, 9], [0, 0, 255]),
        ("8UC1", "mono8", &[77], [77; 3]),
        ("16UC3", "bgr16", &[0, 255, 0, 0, 0, 0], [0, 0, 254]),
        ("16UC4", "bgra16", &[0, 255, 0, 0, 0, 0, 9, 9], [0, 0, 254]),
        ("16UC1", "mono16", &[0, 77], [77; 3]),
    ] {
        assert_eq!(only_pixel(encoding, data), expected, "{encoding}");
        let encoding = Encoding::named(encoding).unwrap();
        assert_eq!(encoding.assumed, Some(read_as));
    }
    assert_eq!(Encoding::named("bgr8").unwrap().assumed, None);
}

#[test]
fn alpha_zero_keeps_the_colours() {
    assert_eq!(only_pixel("rgba8", &[10, 20, 30, 0]), [10, 20, 30]);
    assert_eq!(only_pixel("bgra8", &[30, 20, 10, 0]), [10, 20, 30]);
    let data = [0, 10, 0, 20, 0, 30, 0, 0];
    assert_eq!(only_pixel("rgba16", &data), [10, 20, 30]);
}

#[test]
fn a_decoder_gives_the_same_after_other_images_and_keeps_its_buffers() {
    let grey: Vec<u8> = (0..24).collect();
    let expected = decode_raw(&raw("mono16", 4, 3, &grey)).unwrap();
    let mut decoder = RawDecoder::default();
    let mut rgb = RgbImage::default();
    let large = vec![200; 64 * 64 * 6];
    decoder
        .decode(&raw("rgb16", 64, 64, &large), &mut rgb)
        .unwrap();
    decoder
        .decode(&raw("mono16", 4, 3, &grey), &mut rgb)
        .unwrap();
    assert_eq!(rgb, expected);

    let place = rgb.as_ptr();
    let short = raw("mono16", 4, 3, &grey[..20]);
    assert!(decoder.decode(&short, &mut rgb).is_err());
    assert_eq!(rgb, expected, "left alone by an error");
    decoder
        .decode(&raw("mono8", 4, 3, &grey), &mut rgb)
        .unwrap();
    assert_eq!(rgb.as_ptr(), place);
}

proptest! {
    #[test]
    fn nothing_that_arrives_panics(
        index in 0..ENCODINGS.len(),
        width in 0u32..40, height in 0u32..40, step in 0u32..200, big: bool,
        data in prop::collection::vec(any::<u8>(), 0..8000),
    ) {
        let image = RawImage {
            encoding: ENCODINGS[index].name,
            width,
            height,
            step,
            is_bigendian: big,
            data: &data,
        };
        if let Ok(rgb) = decode_raw(&image) {
            prop_assert_eq!(rgb.dimensions(), (width, height));
        }
    }

    /// Padding, also where the last row lacks it, changes the picture of no encoding.
    #[test]
    fn steps_do_not_change_the_picture(
        index in 0..ENCODINGS.len(), width in 1u32..20, height in 1u32..12, padding in 1u32..9, seed: u64,
    ) {
        let encoding = &ENCODINGS[index];
        let (width, height) = (width * 2, height * 2);
        let row = encoding.layout.row_bytes(width) as usize;
        // Chroma that is not shared has rows of twice the luma's length, at twice its step.
        let (chroma_rows, chroma_row) = match encoding.layout {
            Layout::SemiPlanar(Planes::Nv12 | Planes::Nv21) => (height / 2, row),
            Layout::SemiPlanar(Planes::Nv24 | Planes::Nv42) => (height, 2 * row),
            _ => (0, row),
        };
        let lengths = std::iter::repeat_n(row, height as usize);
        let lengths = lengths.chain(std::iter::repeat_n(chroma_row, chroma_rows as usize));
        let (mut tight, mut padded, mut noise) = (Vec::new(), Vec::new(), seed);
        for length in lengths {
            let start = tight.len();
            for _ in 0..length {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                tight.push((noise >> 56) as u8);
            }
            padded.extend(&tight[start..]);
            padded.extend(vec![0xAB; padding as usize * (length / row)]);
        }
        padded.truncate(padded.len() - padding as usize);
        let expected = decode_raw(&raw(encoding.name, width, height, &tight)).unwrap();
        let step = row as u32 + padding;
        let image = RawImage { step, ..raw(encoding.name, width, height, &padded) };
        prop_assert_eq!(decode_raw(&image).unwrap(), expected);
    }
}
