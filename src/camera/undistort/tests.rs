use super::*;
use crate::camera::CameraInfo;
use image::Rgb;
use proptest::prelude::*;

const WIDTH: u32 = 200;
const HEIGHT: u32 = 150;

fn camera(name: &str, d: &[f64], p: [f64; 12]) -> CameraModel {
    let info = CameraInfo {
        width: WIDTH,
        height: HEIGHT,
        distortion_model: name.to_owned(),
        d: d.to_owned(),
        k: [110.0, 0.0, 97.0, 0.0, 112.0, 76.0, 0.0, 0.0, 1.0],
        p,
        ..CameraInfo::default()
    };
    CameraModel::from_info(&info).unwrap().unwrap()
}

/// Brightness, at a place, of a soft spot about another.
fn spot(about: (f64, f64), at: (f64, f64)) -> f64 {
    let (dx, dy) = (at.0 - about.0, at.1 - about.1);
    200.0 * (-(dx * dx + dy * dy) / (2.0 * 2.5 * 2.5)).exp()
}

/// The place that the lens moves to (u, v), if there is one.
fn straightened(camera: &CameraModel, u: f64, v: f64) -> Option<(f64, f64)> {
    let (mut x, mut y) = (u, v);
    for _ in 0..200 {
        let (found_u, found_v) = camera.source_of(x, y)?;
        (x, y) = (x + 0.5 * (u - found_u), y + 0.5 * (v - found_v));
    }
    Some((x, y))
}

fn centroid(image: &RgbImage, about: (f64, f64)) -> (f64, f64) {
    let (mut sum, mut x_sum, mut y_sum) = (0.0, 0.0, 0.0);
    for (x, y, pixel) in image.enumerate_pixels() {
        let (x, y) = (f64::from(x), f64::from(y));
        if (x - about.0).hypot(y - about.1) < 12.0 {
            let weight = f64::from(pixel.0[1]);
            sum += weight;
            x_sum += weight * x;
            y_sum += weight * y;
        }
    }
    (x_sum / sum, y_sum / sum)
}

/// A grid of spots is drawn as the lens shows it, and found where it is.
#[test]
fn a_distorted_grid_becomes_straight() {
    for (name, d) in [
        ("plumb_bob", &[-0.25, 0.06, 0.001, -0.0008, 0.0][..]),
        (
            "rational_polynomial",
            &[0.3, -0.12, 0.0009, -0.0004, 0.015, 0.62, -0.05, 0.03],
        ),
        ("equidistant", &[0.05, -0.01, 0.004, -0.001]),
    ] {
        let camera = camera(name, d, [0.0; 12]);
        let grid: Vec<(f64, f64)> = (0..20)
            .map(|i| {
                (
                    f64::from(i % 5) * 36.0 + 28.0,
                    f64::from(i / 5) * 32.0 + 27.0,
                )
            })
            .collect();
        let image = RgbImage::from_fn(WIDTH, HEIGHT, |u, v| {
            let at = straightened(&camera, f64::from(u), f64::from(v));
            let level = at.map_or(0.0, |at| grid.iter().map(|&place| spot(place, at)).sum());
            Rgb([0, level.round() as u8, 0])
        });
        let mut straight = RgbImage::default();
        let undistortion = Undistortion::new(&camera, WIDTH, HEIGHT).unwrap();
        undistortion.apply(&image, &mut straight).unwrap();
        let mut moved: f64 = 0.0;
        for place in grid {
            let (x, y) = centroid(&straight, place);
            let off = (x - place.0).hypot(y - place.1);
            assert!(off < 0.03, "{name} {place:?}: found at ({x}, {y})");
            let source = camera.source_of(place.0, place.1).unwrap();
            moved = moved.max((source.0 - place.0).hypot(source.1 - place.1));
        }
        assert!(moved > 5.0, "{name} moves {moved} pixels at the most");
    }
}

#[test]
fn a_straight_camera_leaves_its_pictures_as_they_are() {
    let image = RgbImage::from_fn(WIDTH, HEIGHT, |x, y| Rgb([x as u8, y as u8, (x * y) as u8]));
    let undistortion = Undistortion::new(&camera("", &[], [0.0; 12]), WIDTH, HEIGHT).unwrap();
    let mut out = RgbImage::default();
    undistortion.apply(&image, &mut out).unwrap();
    assert!(out == image);
    assert_eq!(undistortion.valid_fraction(), 1.0);
}

#[test]
fn what_was_not_seen_is_black_and_counted() {
    // The rectified picture has twice the view: a quarter of it was seen.
    #[rustfmt::skip]
    let p = [55.0, 0.0, 99.5, 0.0, 0.0, 56.0, 74.5, 0.0, 0.0, 0.0, 1.0, 0.0];
    let undistortion = Undistortion::new(&camera("", &[], p), WIDTH, HEIGHT).unwrap();
    assert!((undistortion.valid_fraction() - 0.25).abs() < 0.01);
    let image = RgbImage::from_pixel(WIDTH, HEIGHT, Rgb([9, 200, 31]));
    let mut out = RgbImage::from_pixel(WIDTH, HEIGHT, Rgb([77; 3]));
    undistortion.apply(&image, &mut out).unwrap();
    let black = out.pixels().filter(|pixel| pixel.0 == [0; 3]).count();
    let seen = out.pixels().filter(|pixel| pixel.0 == [9, 200, 31]).count();
    assert_eq!(black + seen, (WIDTH * HEIGHT) as usize);
    let fraction = seen as f64 / f64::from(WIDTH * HEIGHT);
    assert_eq!(fraction, undistortion.valid_fraction());
}

#[test]
fn images_of_another_size_are_refused_and_a_buffer_is_kept() {
    let undistortion = Undistortion::new(&camera("", &[], [0.0; 12]), WIDTH, HEIGHT).unwrap();
    let mut out = RgbImage::default();
    let error = undistortion
        .apply(&RgbImage::new(WIDTH, HEIGHT + 1), &mut out)
        .unwrap_err();
    assert_eq!(error.reason(), "calibration_size");
    let image = RgbImage::new(WIDTH, HEIGHT);
    undistortion.apply(&image, &mut out).unwrap();
    let place = out.as_ptr();
    undistortion.apply(&image, &mut out).unwrap();
    assert_eq!(out.as_ptr(), place);

    let sizeless = CameraInfo {
        k: [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        ..CameraInfo::default()
    };
    let sizeless = CameraModel::from_info(&sizeless).unwrap().unwrap();
    for (width, height) in [(1, 9), (9, 1), (0, 0), (60_000, 60_000)] {
        let error = Undistortion::new(&sizeless, width, height).unwrap_err();
        assert_eq!(error.reason(), "unrectifiable_size");
    }
}

proptest! {
    /// Against the bilinear formula in real numbers, at places rounded as the table's.
    #[test]
    fn samples_are_bilinear(
        (width, height) in (2u32..9, 2u32..9), (x, y) in (-1.0..9.0f64, -1.0..9.0f64), seed: [u8; 16],
    ) {
        let image = RgbImage::from_fn(width, height, |x, y| {
            let at = |channel: u32| seed[((x * 3 + y * 7 + channel) % 16) as usize];
            Rgb([at(0), at(1), at(2)])
        });
        let within = |place: f64, side: u32| (-0.5..=f64::from(side) - 0.5).contains(&place);
        let tap = tap(x, y, width, height);
        prop_assert_eq!(tap.is_some(), within(x, width) && within(y, height));
        let Some(tap) = tap else { return Ok(()) };
        let found = sample(&image, width as usize * 3, &tap).unwrap();
        let rounded = |place: f64, side: u32| {
            (place.clamp(0.0, f64::from(side - 1)) * 64.0).round() / 64.0
        };
        let (x, y) = (rounded(x, width), rounded(y, height));
        let level = |x: f64, y: f64, channel: usize| {
            let (x, y) = ((x as u32).min(width - 1), (y as u32).min(height - 1));
            f64::from(image.get_pixel(x, y).0[channel])
        };
        for (channel, found) in found.into_iter().enumerate() {
            let (fx, fy) = (x.fract(), y.fract());
            let top = level(x, y, channel) * (1.0 - fx) + level(x + 1.0, y, channel) * fx;
            let bottom = level(x, y + 1.0, channel) * (1.0 - fx) + level(x + 1.0, y + 1.0, channel) * fx;
            let expected = top * (1.0 - fy) + bottom * fy;
            prop_assert!((f64::from(found) - expected).abs() <= 0.5 + 1e-9, "{found} {expected}");
        }
    }
}
