use super::*;

/// Luma that is blacker than black comes out black or as the formula has it, by its place in the row.
const BLACK: u8 = 16;

/// BT.601 of limited range.
fn rgb_of([y, u, v]: [u8; 3]) -> [f64; 3] {
    let y = f64::from(y - BLACK) * 255.0 / 219.0;
    let (u, v) = (f64::from(u) - 128.0, f64::from(v) - 128.0);
    let chroma = 255.0 / 224.0;
    [
        y + 2.0 * (1.0 - 0.299) * chroma * v,
        y - chroma
            * (2.0 * (1.0 - 0.114) * 0.114 / 0.587 * u + 2.0 * (1.0 - 0.299) * 0.299 / 0.587 * v),
        y + 2.0 * (1.0 - 0.114) * chroma * u,
    ]
    .map(|level| level.clamp(0.0, 255.0))
}

/// The library's integers are off by at most two levels.
fn assert_close(image: &RgbImage, yuv_at: impl Fn(u32, u32) -> [u8; 3], what: &str) {
    for (x, y, pixel) in image.enumerate_pixels() {
        let expected = rgb_of(yuv_at(x, y));
        for (found, expected) in pixel.0.iter().zip(expected) {
            assert!(
                (f64::from(*found) - expected).abs() < 3.0,
                "{what} ({x}, {y}): {pixel:?} for {:?}",
                yuv_at(x, y)
            );
        }
    }
}

#[test]
fn names_of_the_same_byte_order_give_the_same_picture() {
    // Y0 U Y1 V for two rows of four pixels: red, red, blue, blue over grey levels.
    let yuyv = [
        82, 90, 82, 240, 41, 240, 41, 110, 16, 128, 126, 128, 200, 128, 235, 128,
    ];
    let uyvy: Vec<u8> = yuyv
        .as_chunks::<2>()
        .0
        .iter()
        .flat_map(|&[a, b]| [b, a])
        .collect();
    let decode = |encoding, data| decode_raw(&raw(encoding, 4, 2, data)).unwrap();
    let image = decode("yuyv", &yuyv);
    let near = |x, y, expected: [u8; 3]| {
        let pixel = image.get_pixel(x, y).0;
        let worst = pixel.iter().zip(expected).map(|(a, b)| a.abs_diff(b)).max();
        assert!(worst <= Some(3), "({x}, {y}): {pixel:?}");
    };
    near(0, 0, [255, 0, 0]);
    near(1, 0, [255, 0, 0]);
    near(2, 0, [0, 0, 255]);
    near(3, 0, [0, 0, 255]);
    near(0, 1, [0; 3]);
    near(1, 1, [128; 3]);
    near(3, 1, [255; 3]);
    assert_eq!(decode("yuv422_yuy2", &yuyv), image);
    assert_eq!(decode("uyvy", &uyvy), image);
    assert_eq!(decode("yuv422", &uyvy), image);
    assert_eq!(reason(&raw("yuy2", 4, 2, &yuyv)), "unknown_encoding");
}

#[test]
fn planar_pictures_of_a_common_camera_are_converted() {
    let data = vec![128; 460_800];
    let image = decode_raw(&raw("nv12", 640, 480, &data)).unwrap();
    assert_eq!(image.dimensions(), (640, 480));
    assert_close(&image, |_, _| [128; 3], "nv12");
    assert_eq!(reason(&raw("nv12", 640, 480, &data[1..])), "short_data");
}

#[test]
fn odd_sides_are_refused_where_pixels_share_chroma() {
    let data = [128; 64];
    for (encoding, width, height) in [
        ("nv12", 5, 3),
        ("nv12", 4, 3),
        ("nv21", 5, 4),
        ("yuyv", 5, 2),
        ("yuv422", 1, 1),
    ] {
        let image = raw(encoding, width, height, &data);
        let error = decode_raw(&image).unwrap_err();
        assert_eq!(error.reason(), "unsupported_sides");
        assert!(error.to_string().contains(encoding), "{error}");
    }
    assert!(decode_raw(&raw("yuyv", 4, 3, &data)).is_ok());
    assert!(decode_raw(&raw("nv24", 5, 3, &data)).is_ok());
}

#[test]
fn a_step_of_two_channels_with_data_of_one_is_read_without_padding() {
    let data: Vec<u8> = (0..24).map(|i| i * 9).collect();
    let image = raw("nv12", 4, 4, &data);
    let expected = decode_raw(&image).unwrap();
    assert_eq!(
        decode_raw(&RawImage { step: 8, ..image }).unwrap(),
        expected
    );
    assert_eq!(reason(&RawImage { step: 7, ..image }), "short_data");
}

proptest! {
    #[test]
    fn packed_pixels_follow_the_formula(
        pairs in prop::collection::vec(any::<[u8; 4]>(), 1..40), swapped: bool,
    ) {
        let width = pairs.len() as u32 * 2;
        let (encoding, [luma, u, v]) = if swapped { ("uyvy", [1, 0, 2]) } else { ("yuyv", [0, 1, 3]) };
        let mut pairs = pairs;
        for pair in &mut pairs {
            pair[luma] = pair[luma].max(BLACK);
            pair[luma + 2] = pair[luma + 2].max(BLACK);
        }
        let image = decode_raw(&raw(encoding, width, 1, pairs.as_flattened())).unwrap();
        assert_close(&image, |x, _| {
            let pair = pairs[x as usize / 2];
            [pair[luma + x as usize % 2 * 2], pair[u], pair[v]]
        }, encoding);
    }

    #[test]
    fn planes_follow_the_formula(
        (width, height) in (1usize..20, 1usize..6), which in 0usize..4, seed: [u8; 32],
    ) {
        let (width, height) = (width * 2, height * 2);
        let encoding = ["nv12", "nv21", "nv24", "nv42"][which];
        let (share, v_first) = (if which < 2 { 2 } else { 1 }, which % 2);
        let length = width * height + width / share * (height / share) * 2;
        let mut data: Vec<u8> = (0..length)
            .map(|i| seed[i % 32].wrapping_add((i / 32 * 37) as u8))
            .collect();
        for luma in &mut data[..width * height] {
            *luma = BLACK.max(*luma);
        }
        let image = decode_raw(&raw(encoding, width as u32, height as u32, &data)).unwrap();
        assert_close(&image, |x, y| {
            let (x, y) = (x as usize, y as usize);
            let chroma = width * height + (y / share * (width / share) + x / share) * 2;
            [data[y * width + x], data[chroma + v_first], data[chroma + 1 - v_first]]
        }, encoding);
    }
}
