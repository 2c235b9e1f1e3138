use super::*;
use proptest::prelude::*;

fn reason(encoding: &str, width: u32, height: u32, step: u32, data: &[u8]) -> &'static str {
    decode_raw(encoding, width, height, step, false, data)
        .unwrap_err()
        .reason()
}

#[test]
fn padding_of_rows_is_never_seen() {
    let mut data = Vec::new();
    for row in 0..3u8 {
        data.extend((0..15).map(|i| row * 15 + i));
        data.extend([0xFF; 5]);
    }
    let expected: Vec<u8> = (0..45).collect();
    let image = decode_raw("rgb8", 5, 3, 20, false, &data).unwrap();
    assert_eq!(image.dimensions(), (5, 3));
    assert_eq!(image.as_raw(), &expected);

    data.truncate(55);
    let image = decode_raw("rgb8", 5, 3, 20, false, &data).unwrap();
    assert_eq!(image.as_raw(), &expected, "the last row lacks its padding");
}

#[test]
fn short_data_is_refused() {
    assert_eq!(
        reason("rgb8", 640, 480, 1920, &vec![0; 110_592]),
        "short_data"
    );
    assert_eq!(reason("rgb8", 5, 3, 20, &[0; 54]), "short_data");
    assert_eq!(reason("mono8", 5, 3, 5, &[]), "short_data");
}

#[test]
fn zero_sizes_and_steps_are_refused() {
    assert_eq!(reason("rgb8", 1280, 720, 0, &[0; 64]), "step_too_small");
    assert_eq!(reason("rgb8", 1280, 0, 3840, &[0; 64]), "empty_image");
    assert_eq!(reason("rgb8", 0, 720, 3840, &[0; 64]), "empty_image");
}

#[test]
fn a_step_in_pixels_is_refused() {
    assert_eq!(reason("16UC1", 1280, 2, 1280, &[0; 5120]), "step_too_small");
    assert_eq!(reason("rgb8", 5, 3, 14, &[0; 64]), "step_too_small");
}

#[test]
fn absurd_sizes_neither_overflow_nor_allocate() {
    assert_eq!(
        reason("rgba8", u32::MAX, u32::MAX, u32::MAX, &[0; 64]),
        "too_large"
    );
    assert_eq!(
        reason("rgba8", u32::MAX, 1, u32::MAX, &[0; 64]),
        "too_large"
    );
    assert_eq!(
        reason("mono8", 16, 8_000_000, u32::MAX, &[0; 64]),
        "short_data"
    );
}

#[test]
fn both_byte_orders_give_the_same_pixel() {
    let big = decode_raw("mono16", 1, 1, 2, true, &[0x01, 0x02]).unwrap();
    let little = decode_raw("mono16", 1, 1, 2, false, &[0x02, 0x01]).unwrap();
    assert_eq!(big.get_pixel(0, 0).0, [1; 3]);
    assert_eq!(big, little);
}

#[test]
fn sixteen_bit_grey_is_scaled_over_the_full_range() {
    let data: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for encoding in ["mono16", "16UC1"] {
        let image = decode_raw(encoding, 256, 256, 512, false, &data).unwrap();
        for (value, pixel) in image.pixels().enumerate() {
            let expected = (value as f64 * 255.0 / 65535.0).round() as u8;
            assert_eq!(pixel.0, [expected; 3], "{encoding} {value}");
        }
    }
}

#[test]
fn type_names_have_documented_channels() {
    let blue = decode_raw("8UC3", 1, 1, 3, false, &[255, 0, 0]).unwrap();
    assert_eq!(blue.get_pixel(0, 0).0, [0, 0, 255]);
    let blue = decode_raw("8UC4", 1, 1, 4, false, &[255, 0, 0, 9]).unwrap();
    assert_eq!(blue.get_pixel(0, 0).0, [0, 0, 255]);
    let grey = decode_raw("8UC1", 1, 1, 1, false, &[77]).unwrap();
    assert_eq!(grey.get_pixel(0, 0).0, [77; 3]);
}

#[test]
fn alpha_zero_keeps_the_colours() {
    let rgba = decode_raw("rgba8", 1, 1, 4, false, &[10, 20, 30, 0]).unwrap();
    let bgra = decode_raw("bgra8", 1, 1, 4, false, &[30, 20, 10, 0]).unwrap();
    assert_eq!(rgba.get_pixel(0, 0).0, [10, 20, 30]);
    assert_eq!(bgra, rgba);
}

#[test]
fn unknown_encodings_are_named() {
    for encoding in ["", "RGB8", "rgb8; jpeg compressed bgr8", "32FC1"] {
        let error = decode_raw(encoding, 1, 1, 4, false, &[0; 4]).unwrap_err();
        assert_eq!(error.reason(), "unknown_encoding");
        assert!(error.to_string().contains(&format!("{encoding:?}")));
    }
}

proptest! {
    #[test]
    fn nothing_that_arrives_panics(
        encoding in prop::sample::select(vec!["rgb8", "bgra8", "mono8", "mono16", "8UC3", "x"]),
        width in 0u32..70, height in 0u32..70, step in 0u32..300, big: bool,
        data in prop::collection::vec(any::<u8>(), 0..4000),
    ) {
        if let Ok(image) = decode_raw(encoding, width, height, step, big, &data) {
            prop_assert_eq!(image.dimensions(), (width, height));
        }
    }

    #[test]
    fn step_and_order_do_not_change_the_picture(
        width in 1u32..20, height in 1u32..20, padding in 0u32..9, seed: u8,
    ) {
        let picture = RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([x as u8 ^ seed, y as u8, (x * y) as u8])
        });
        let step = width * 3 + padding;
        let mut rgb = Vec::new();
        let mut bgr = Vec::new();
        for row in picture.rows() {
            for p in row {
                rgb.extend(p.0);
                bgr.extend(p.0.iter().rev());
            }
            rgb.extend(vec![seed; padding as usize]);
            bgr.extend(vec![seed; padding as usize]);
        }
        prop_assert_eq!(&decode_raw("rgb8", width, height, step, false, &rgb).unwrap(), &picture);
        prop_assert_eq!(&decode_raw("bgr8", width, height, step, true, &bgr).unwrap(), &picture);
    }
}
