use super::*;
use proptest::prelude::*;

const K: [f64; 9] = [420.0, 0.0, 311.0, 0.0, 425.0, 247.0, 0.0, 0.0, 1.0];
const P: [f64; 12] = [
    380.0, 0.0, 320.0, 0.0, 0.0, 382.0, 240.0, 0.0, 0.0, 0.0, 1.0, 0.0,
];

type Place = (f64, f64);

fn info() -> CameraInfo {
    CameraInfo {
        width: 640,
        height: 480,
        k: K,
        p: P,
        ..CameraInfo::default()
    }
}

fn model(info: &CameraInfo) -> CameraModel {
    CameraModel::from_info(info).unwrap().unwrap()
}

fn reason(info: &CameraInfo) -> &'static str {
    CameraModel::from_info(info).unwrap_err().reason()
}

/// Computed with OpenCV 5.0: `initUndistortRectifyMap`, and that of `fisheye`, for the rotation vector
/// (0.02, -0.03, 0.01).
#[test]
fn every_lens_bends_as_opencvs_does() {
    #[rustfmt::skip]
    let r = [
        0.9995000583306112, -0.010297631831627843, -0.029893012156105903,
        0.00969770182836127, 0.9997500291653056, -0.020145316160805754,
        0.030092988823861425, 0.01984535115917247, 0.9993500758297945,
    ];
    let rational = [0.3, -0.12, 0.0009, -0.0004, 0.015, 0.62, -0.05, 0.03];
    let prism_and_tilt = [0.0012, -0.0004, -0.0015, 0.0006, 0.02, -0.015];
    let all = [&rational[..], &prism_and_tilt].concat();
    #[rustfmt::skip]
    let lenses: [(&str, &[f64], [Place; 5]); 4] = [
        ("plumb_bob", &[-0.28, 0.07, 0.0011, -0.0007, -0.008],
            [(49.4079, 53.5492), (323.6423, 255.4373), (572.5452, 78.7249), (110.9674, 412.3667), (594.0908, 456.2602)]),
        ("rational_polynomial", &rational,
            [(60.4491, 61.5715), (323.6419, 255.4368), (564.1587, 84.125), (114.3041, 409.6194), (574.5761, 441.6696)]),
        ("rational_polynomial", &all,
            [(65.0977, 64.3126), (323.6548, 255.4487), (564.8396, 83.5902), (114.3649, 409.4437), (579.9702, 445.0688)]),
        ("equidistant", &[0.05, -0.01, 0.004, -0.001],
            [(41.7155, 47.1861), (323.6426, 255.4366), (580.0262, 73.6725), (109.4827, 413.4841), (606.8815, 464.8097)]),
    ];
    let pixels = [
        (0.0, 0.0),
        (320.0, 240.0),
        (600.0, 50.0),
        (100.0, 400.0),
        (639.0, 479.0),
    ];
    for (name, d, expected) in lenses {
        let camera = model(&CameraInfo {
            distortion_model: name.to_owned(),
            d: d.to_vec(),
            r,
            ..info()
        });
        assert!(camera.is_distorted());
        for ((x, y), (u, v)) in pixels.into_iter().zip(expected) {
            let found = camera.source_of(x, y).unwrap();
            let close = (found.0 - u).abs() < 2e-4 && (found.1 - v).abs() < 2e-4;
            assert!(close, "{name} ({x}, {y}): {found:?}, expected ({u}, {v})");
        }
    }
}

#[test]
fn a_camera_of_zeros_is_uncalibrated() {
    assert_eq!(CameraModel::from_info(&CameraInfo::default()), Ok(None));
    let uncalibrated = CameraInfo {
        k: [0.0; 9],
        ..info()
    };
    assert_eq!(CameraModel::from_info(&uncalibrated), Ok(None));
}

#[test]
fn coefficients_of_zero_are_no_distortion_whatever_their_name() {
    for (name, d) in [
        ("", vec![]),
        ("plumb_bob", vec![0.0; 5]),
        ("plumb_bob", vec![]),
        ("none", vec![0.0; 3]),
        ("equidistant", vec![0.0; 4]),
    ] {
        let camera = model(&CameraInfo {
            distortion_model: name.to_owned(),
            d,
            p: [0.0; 12],
            ..info()
        });
        assert!(!camera.is_distorted(), "{name}");
        let (x, y) = camera.source_of(12.0, 34.0).unwrap();
        assert!((x - 12.0).abs() < 1e-9 && (y - 34.0).abs() < 1e-9);
    }
}

#[test]
fn faults_are_told_apart() {
    let with = |distortion_model: &str, d: &[f64]| CameraInfo {
        distortion_model: distortion_model.to_owned(),
        d: d.to_owned(),
        ..info()
    };
    assert_eq!(reason(&with("brown", &[0.1])), "unknown_distortion_model");
    assert_eq!(
        reason(&with("plumb_bob", &[0.1; 3])),
        "distortion_coefficients"
    );
    assert_eq!(
        reason(&with("equidistant", &[0.1; 5])),
        "distortion_coefficients"
    );
    assert_eq!(
        reason(&with("plumb_bob", &[f64::NAN; 5])),
        "calibration_not_finite"
    );
    let mut broken = info();
    broken.k[2] = f64::INFINITY;
    assert_eq!(reason(&broken), "calibration_not_finite");
    let mut broken = info();
    broken.k[4] = -1.0;
    assert_eq!(reason(&broken), "focal_length");
    let mut broken = info();
    broken.r = [0.5; 9];
    assert_eq!(reason(&broken), "rectification_matrix");
    let mut broken = info();
    broken.roi = RegionOfInterest {
        x_offset: 600,
        y_offset: 0,
        width: 100,
        height: 100,
    };
    assert_eq!(reason(&broken), "region_outside");
}

#[test]
fn an_unusable_projection_counts_as_the_camera_matrix() {
    let mut outside = P;
    outside[2] = 900.0;
    for p in [[0.0; 12], outside, P.map(|value| -value)] {
        let camera = model(&CameraInfo { p, ..info() });
        assert_eq!(camera.rectified_intrinsics(), camera.intrinsics());
    }
    assert_eq!(model(&info()).rectified_intrinsics().fx, 380.0);
}

#[test]
fn regions_and_binning_move_the_intrinsics_as_image_geometry_does() {
    let camera = model(&CameraInfo {
        binning_x: 2,
        binning_y: 4,
        roi: RegionOfInterest {
            x_offset: 100,
            y_offset: 40,
            width: 320,
            height: 240,
        },
        ..info()
    });
    let k = camera.intrinsics();
    assert_eq!((k.fx, k.fy), (210.0, 106.25));
    assert_eq!((k.cx, k.cy), (105.5, 51.75));
    assert_eq!(camera.rectified_intrinsics().cx, 110.0);
    assert!(camera.at_size(160, 60).is_ok());
    assert_eq!(
        camera.at_size(640, 480).unwrap_err().reason(),
        "calibration_size"
    );
}

#[test]
fn another_resolution_of_the_same_shape_scales_and_another_shape_is_refused() {
    let camera = model(&info());
    let half = camera.at_size(320, 240).unwrap();
    let k = half.intrinsics();
    assert_eq!((k.fx, k.fy), (210.0, 212.5));
    assert_eq!((k.cx, k.cy), (155.25, 123.25));
    assert!(half.at_size(640, 480).unwrap().intrinsics().cx - 311.0 < 1e-9);
    assert_eq!(camera.at_size(640, 480).unwrap(), camera);
    for (width, height) in [(641, 480), (213, 160), (320, 241)] {
        assert!(camera.at_size(width, height).is_ok(), "{width}x{height}");
    }
    for (width, height) in [(640, 360), (480, 640), (0, 0), (1, 480)] {
        let error = camera.at_size(width, height).unwrap_err();
        assert_eq!(error.reason(), "calibration_size", "{width}x{height}");
    }
    let sizeless = model(&CameraInfo {
        width: 0,
        height: 0,
        ..info()
    });
    assert_eq!(
        sizeless.at_size(800, 300).unwrap().intrinsics(),
        camera.intrinsics()
    );
}

/// A barrel's polynomial turns back: without an end, the corners of a wide rectified picture would show the middle again.
#[test]
fn what_the_lens_does_not_see_has_no_source() {
    let mut wide = info();
    wide.distortion_model = "plumb_bob".to_owned();
    wide.d = vec![-0.3, 0.0, 0.0, 0.0, 0.0];
    (wide.p[0], wide.p[5]) = (100.0, 100.0);
    let camera = model(&wide);
    assert!(camera.source_of(320.0, 240.0).is_some());
    // The rise ends at a radius of 1/sqrt(0.9), 105 pixels from the middle.
    assert!(camera.source_of(424.0, 240.0).is_some());
    assert_eq!(camera.source_of(427.0, 240.0), None);
}

proptest! {
    /// Whatever a driver sends, a camera comes out that gives finite places or none.
    #[test]
    fn any_numbers_give_a_camera_or_a_reason(
        k in prop::array::uniform9(prop::num::f64::ANY), d in prop::collection::vec(prop::num::f64::ANY, 0..15),
        name in prop::sample::select(vec!["plumb_bob", "rational_polynomial", "equidistant", ""]),
        (width, height) in (0u32..3000, 0u32..3000), binning_x: u32, x_offset: u32,
    ) {
        let roi = RegionOfInterest { x_offset, ..RegionOfInterest::default() };
        let info = CameraInfo {
            width, height, k, d, binning_x, roi, distortion_model: name.to_owned(), ..CameraInfo::default()
        };
        match CameraModel::from_info(&info) {
            Ok(Some(camera)) => {
                let _ = camera.source_of(10.0, 20.0);
                let _ = camera.at_size(640, 480);
            }
            Ok(None) => prop_assert_eq!(k[0], 0.0),
            Err(error) => prop_assert!(!error.reason().is_empty()),
        }
    }
}
