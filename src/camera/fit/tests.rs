use super::*;
use proptest::prelude::*;
use std::path::Path;

fn golden(name: &str) -> RgbImage {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/preprocess");
    image::open(folder.join(name)).unwrap().into_rgb8()
}

/// Equality whose failure prints numbers instead of two pictures.
fn assert_same(found: &RgbImage, expected: &RgbImage, what: &str) {
    assert_eq!(found.dimensions(), expected.dimensions(), "{what}");
    let pairs = found.as_raw().iter().zip(expected.as_raw());
    let different: Vec<_> = pairs.enumerate().filter(|(_, (a, b))| a != b).collect();
    let first = different.first();
    assert!(
        different.is_empty(),
        "{what}: {} bytes differ, first {first:?}",
        different.len()
    );
}

fn size(height: u32, width: u32) -> NetworkSize {
    NetworkSize::new(height, width).unwrap()
}

/// Smooth, with another value in every channel.
fn gradient(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        Rgb([(x * 200 / width) as u8, (y * 200 / height) as u8, 40])
    })
}

#[test]
fn preprocessing_is_the_references_to_the_byte() {
    for picture in ["land", "tall"] {
        let source = golden(&format!("{picture}_src.png"));
        for (mode, name) in [
            (ReferenceMode::Crop, "crop84"),
            (ReferenceMode::Pad, "pad84"),
        ] {
            let expected = golden(&format!("{picture}_{name}.png"));
            let result = preprocess_reference(&source, mode, 84).unwrap();
            assert_same(&result, &expected, &format!("{picture} {name}"));
        }
    }
}

#[test]
fn fit_reference_is_the_references_rule_where_the_size_is_its_own() {
    for picture in ["land", "tall"] {
        let expected = golden(&format!("{picture}_crop84.png"));
        let mut fitter = Fitter::new(size(expected.height(), expected.width()), Fit::Reference);
        let (fitted, _) = fitter.fit(&golden(&format!("{picture}_src.png"))).unwrap();
        assert_same(&fitted, &expected, picture);
    }
}

#[test]
fn fit_reference_cuts_or_fills_other_heights() {
    let source = golden("land_src.png");
    let expected = golden("land_crop84.png");
    let (higher, _) = Fitter::new(size(84, 84), Fit::Reference)
        .fit(&source)
        .unwrap();
    assert_same(&higher, &golden("land_pad84.png"), "higher");
    let (lower, _) = Fitter::new(size(28, 84), Fit::Reference)
        .fit(&source)
        .unwrap();
    let rows = imageops::crop_imm(&expected, 0, 14, 84, 28).to_image();
    assert_same(&lower, &rows, "lower");
}

#[test]
fn a_picture_of_the_networks_size_passes_untouched() {
    let picture = golden("land_crop84.png");
    for fit in [Fit::Crop, Fit::Pad, Fit::Reference] {
        let mut fitter = Fitter::new(size(56, 84), fit);
        let (fitted, transform) = fitter.fit(&picture).unwrap();
        assert_same(&fitted, &picture, "untouched");
        assert_eq!(transform, PixelTransform::IDENTITY);
    }
}

#[test]
fn crop_covers_and_pad_is_white_outside() {
    let source = RgbImage::from_pixel(1280, 720, Rgb([10, 20, 30]));
    let (covered, transform) = Fitter::new(size(378, 518), Fit::Crop).fit(&source).unwrap();
    assert!(covered.pixels().all(|p| p.0 == [10, 20, 30]));
    assert_eq!((transform.scale_x, transform.scale_y), (0.525, 0.525));

    let (padded, transform) = Fitter::new(size(378, 518), Fit::Pad).fit(&source).unwrap();
    // 720 * 518/1280 = 291.4 rows, 43 white ones above and 44 below.
    for (_, y, pixel) in padded.enumerate_pixels() {
        let inside = (43..334).contains(&y);
        assert_eq!(
            pixel.0,
            if inside { [10, 20, 30] } else { [255; 3] },
            "row {y}"
        );
    }
    assert!((transform.offset_y - (43.0 - 0.5 + 0.5 * 291.0 / 720.0)).abs() < 1e-12);
}

#[test]
fn a_fitter_gives_the_same_after_pictures_of_other_sizes() {
    let mut fitter = Fitter::new(size(56, 84), Fit::Crop);
    let small = golden("tall_src.png");
    let (first, _) = fitter.fit(&small).unwrap();
    fitter.fit(&gradient(400, 300)).unwrap();
    assert_same(&fitter.fit(&small).unwrap().0, &first, "again");
}

/// Nothing of a border shows, and the transform speaks of the whole picture.
#[test]
fn a_crop_is_as_if_the_border_had_never_been_there() {
    let crop = Crop {
        left: 7,
        top: 3,
        right: 2,
        bottom: 11,
    };
    let inner = gradient(300, 200);
    let mut bordered = RgbImage::from_pixel(309, 214, Rgb([255, 0, 255]));
    imageops::replace(&mut bordered, &inner, 7, 3);
    for fit in [Fit::Crop, Fit::Pad, Fit::Reference] {
        for network in [size(56, 84), size(196, 294)] {
            let (expected, plain) = Fitter::new(network, fit).fit(&inner).unwrap();
            let mut fitter = Fitter::new(network, fit).with_crop(crop);
            let (fitted, transform) = fitter.fit(&bordered).unwrap();
            assert_same(&fitted, &expected, &fit.to_string());
            let at = transform.source_of(40.0, 20.0);
            let inside = plain.source_of(40.0, 20.0);
            assert!((at.0 - 7.0 - inside.0).abs() < 1e-9, "{fit}");
            assert!((at.1 - 3.0 - inside.1).abs() < 1e-9, "{fit}");
        }
    }
    let (kept, transform) = Fitter::new(size(56, 84), Fit::Crop)
        .with_crop(Crop {
            left: 1,
            bottom: 2,
            ..Crop::default()
        })
        .fit(&gradient(85, 58))
        .unwrap();
    assert_eq!(kept.get_pixel(5, 5), gradient(85, 58).get_pixel(6, 5));
    assert_eq!((transform.offset_x, transform.offset_y), (-1.0, 0.0));
}

#[test]
fn a_crop_of_everything_is_refused() {
    for crop in [
        Crop {
            left: 6,
            right: 4,
            ..Crop::default()
        },
        Crop {
            top: u32::MAX,
            bottom: u32::MAX,
            ..Crop::default()
        },
    ] {
        let mut fitter = Fitter::new(size(56, 84), Fit::Crop).with_crop(crop);
        let error = fitter.fit(&RgbImage::new(10, 10)).unwrap_err();
        assert_eq!(error.reason(), "cropped_away");
    }
}

#[test]
fn pictures_without_pixels_are_refused() {
    let empty = RgbImage::new(0, 20);
    for fit in [Fit::Crop, Fit::Pad, Fit::Reference] {
        let error = Fitter::new(size(56, 84), fit).fit(&empty).unwrap_err();
        assert_eq!(error.reason(), "empty_image");
    }
    let error = preprocess_reference(&empty, ReferenceMode::Pad, 84).unwrap_err();
    assert_eq!(error.reason(), "empty_image");
}

#[test]
fn names_are_read_as_written() {
    for fit in [Fit::Crop, Fit::Pad, Fit::Reference] {
        assert_eq!(fit.to_string().parse::<Fit>().unwrap(), fit);
    }
    assert_eq!(
        "stretch".parse::<Fit>().unwrap_err().reason(),
        "unknown_fit"
    );
}

/// Centre of mass of what is not black, in pixels.
fn centroid(image: &RgbImage) -> (f64, f64) {
    let mut sums = (0.0, 0.0, 0.0);
    for (x, y, pixel) in image.enumerate_pixels() {
        let weight = f64::from(pixel.0[0]);
        sums = (
            sums.0 + weight,
            sums.1 + weight * f64::from(x),
            sums.2 + weight * f64::from(y),
        );
    }
    (sums.1 / sums.0, sums.2 / sums.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A bright square is found where the transform says.
    #[test]
    fn the_transform_tells_where_pixels_went(
        width in 100u32..300, height in 100u32..300, reference: bool,
        x in 0.3..0.7f64, y in 0.4..0.6f64,
    ) {
        let (left, top) = ((x * f64::from(width)) as u32, (y * f64::from(height)) as u32);
        let source = RgbImage::from_fn(width, height, |x, y| {
            let inside = (left..left + 12).contains(&x) && (top..top + 12).contains(&y);
            Rgb([if inside { 200 } else { 0 }; 3])
        });
        let fit = if reference { Fit::Reference } else { Fit::Crop };
        let (fitted, t) = Fitter::new(size(126, 126), fit).fit(&source).unwrap();
        let mut fitted = fitted;
        for pixel in fitted.pixels_mut().filter(|p| **p == WHITE) {
            pixel.0 = [0; 3];
        }
        let found = centroid(&fitted);
        let expected = (
            f64::from(left * 2 + 11) / 2.0 * t.scale_x + t.offset_x,
            f64::from(top * 2 + 11) / 2.0 * t.scale_y + t.offset_y,
        );
        let visible = (8.0..118.0).contains(&expected.0) && (8.0..118.0).contains(&expected.1);
        prop_assume!(visible);
        prop_assert!((found.0 - expected.0).abs() < 0.1, "{found:?} {expected:?}");
        prop_assert!((found.1 - expected.1).abs() < 0.1, "{found:?} {expected:?}");
    }

    /// Scales stay isotropic, and the source's centre lands on the network's centre.
    #[test]
    fn crop_and_pad_keep_shape_and_centre(width in 1u32..500, height in 1u32..500, pad: bool) {
        let network = size(56, 84);
        let fit = if pad { Fit::Pad } else { Fit::Crop };
        let (fitted, t) = Fitter::new(network, fit).fit(&RgbImage::new(width, height)).unwrap();
        prop_assert_eq!(fitted.dimensions(), (84, 56));
        let centre_x = (f64::from(width) - 1.0) / 2.0 * t.scale_x + t.offset_x;
        let centre_y = (f64::from(height) - 1.0) / 2.0 * t.scale_y + t.offset_y;
        // The odd pixel of the margin moves a padded picture by half a pixel.
        let tolerance = if pad { 0.5 } else { 1e-9 };
        prop_assert!((centre_x - 41.5).abs() <= tolerance + 1e-9);
        prop_assert!((centre_y - 27.5).abs() <= tolerance + 1e-9);
        if !pad {
            prop_assert!((t.scale_x / t.scale_y - 1.0).abs() < 1e-9);
        }
    }
}
