use super::*;
use image::Rgb;

/// The channel that the filter over a pixel lets through.
fn channel(pattern: &str, x: u32, y: u32) -> usize {
    match pattern.as_bytes()[(y % 2 * 2 + x % 2) as usize] {
        b'r' => 0,
        b'g' => 1,
        _ => 2,
    }
}

fn mosaic_of(scene: &RgbImage, pattern: &str) -> Vec<u8> {
    let samples = scene.enumerate_pixels();
    samples
        .map(|(x, y, pixel)| pixel.0[channel(pattern, x, y)])
        .collect()
}

/// A flat scene has one answer, whatever the interpolation; the channels are far apart, so that no pattern passes for
/// another.
#[test]
fn the_four_patterns_show_one_scene_with_its_colours() {
    let color = [200, 100, 30];
    for (width, height) in [(6, 4), (5, 3), (2, 2), (3, 7)] {
        let scene = RgbImage::from_pixel(width, height, Rgb(color));
        for pattern in ["rggb", "bggr", "gbrg", "grbg"] {
            let data = mosaic_of(&scene, pattern);
            let encoding = format!("bayer_{pattern}8");
            let image = decode_raw(&raw(&encoding, width, height, &data)).unwrap();
            assert_eq!(image, scene, "{pattern} {width}x{height}");

            let wide: Vec<u8> = data.iter().flat_map(|&level| [level, level]).collect();
            let encoding = format!("bayer_{pattern}16");
            let image = decode_raw(&raw(&encoding, width, height, &wide)).unwrap();
            assert_eq!(image, scene, "{pattern} {width}x{height}, 16 bit");
        }
    }
}

#[test]
fn a_mosaic_with_the_step_of_a_colour_picture_is_read_by_its_step() {
    let scene = RgbImage::from_pixel(4, 4, Rgb([9, 80, 250]));
    let data: Vec<u8> = mosaic_of(&scene, "rggb")
        .chunks(4)
        .flat_map(|row| [row, &[0xFF; 8]].concat())
        .collect();
    let padded = RawImage {
        step: 12,
        ..raw("bayer_rggb8", 4, 4, &data)
    };
    assert_eq!(decode_raw(&padded).unwrap(), scene);
}

#[test]
fn a_mosaic_needs_a_whole_pattern() {
    for (width, height) in [(1, 2), (2, 1), (1, 1)] {
        let image = raw("bayer_grbg8", width, height, &[0; 2]);
        assert_eq!(reason(&image), "unsupported_sides");
    }
}

proptest! {
    /// The mean, rounded up at the half, of the samples of a colour in the three by three pixels about one; green
    /// pixels see each other colour along one line.
    #[test]
    fn missing_colours_are_means_of_their_neighbours(
        (width, height) in (2i64..12, 2i64..12), which in 0usize..4, seed: [u8; 16],
    ) {
        let pattern = ["rggb", "bggr", "gbrg", "grbg"][which];
        let data: Vec<u8> = (0..width * height)
            .map(|i| seed[i as usize % 16].wrapping_mul((i / 16 * 2 + 1) as u8))
            .collect();
        let image = raw("", width as u32, height as u32, &data);
        let name = format!("bayer_{pattern}8");
        let image = decode_raw(&RawImage { encoding: &name, step: width as u32, ..image }).unwrap();
        let mirrored = |i: i64, n: i64| if i < 0 { -i } else if i >= n { 2 * n - 2 - i } else { i };
        for (x, y, pixel) in image.enumerate_pixels() {
            for wanted in 0..3 {
                let (mut sum, mut count) = (0, 0);
                for (dx, dy) in (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy))) {
                    let (u, v) = (mirrored(i64::from(x) + dx, width), mirrored(i64::from(y) + dy, height));
                    let own = channel(pattern, x, y) == wanted;
                    let centre = (dx, dy) == (0, 0);
                    if channel(pattern, u as u32, v as u32) == wanted && own == centre {
                        sum += i64::from(data[(v * width + u) as usize]);
                        count += 1;
                    }
                }
                prop_assert_eq!(i64::from(pixel.0[wanted]), (sum + count / 2) / count, "{} {}", x, y);
            }
        }
    }
}
