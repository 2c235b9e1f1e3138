//! What a frame costs outside the network: decoding and fitting it, building its cloud, fusing that into the map.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use image::{Rgb, RgbImage};
use lingbot_map::camera::{
    CameraInfo, CameraModel, Fit, Fitter, NetworkSize, RawDecoder, RawImage, ReferenceMode,
    Undistortion, preprocess_reference,
};
use lingbot_map::geometry::Intrinsics;
use lingbot_map::map::{
    FrameView, GridView, PointFilter, Scale, VoxelMap, VoxelMapConfig, points_of_frame, write_grid,
    write_points,
};
use nalgebra::{Isometry3, Vector3};
use ndarray::Array2;

const WIDTH: u32 = 1280;
const HEIGHT: u32 = 720;

fn size() -> NetworkSize {
    NetworkSize::new(378, 518).expect("multiples of 14")
}

fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        Rgb([x as u8, y as u8, (x * y / 64) as u8])
    })
}

/// As raw as a camera sends it, with a decoder that keeps its buffers.
fn decode(c: &mut Criterion) {
    let data = picture(WIDTH, HEIGHT).into_raw();
    let mut group = c.benchmark_group("decode 1280x720");
    let mut copy = data.clone();
    group.bench_function("copy of an rgb8 image", |b| {
        b.iter(|| black_box(&mut copy).copy_from_slice(black_box(&data)))
    });
    let mut decoder = RawDecoder::default();
    let mut rgb = RgbImage::default();
    for (encoding, bytes_per_pixel) in [
        ("rgb8", 3),
        ("bgr8", 3),
        ("bgra8", 4),
        ("mono8", 1),
        ("mono16", 2),
        ("yuyv", 2),
        ("nv12", 1),
        ("bayer_rggb8", 1),
        ("bayer_rggb16", 2),
    ] {
        let step = WIDTH * bytes_per_pixel;
        let data = data.repeat(2);
        let image = RawImage {
            step,
            ..raw(encoding, &data)
        };
        group.bench_function(encoding, |b| {
            b.iter(|| decoder.decode(black_box(&image), &mut rgb))
        });
    }
}

fn raw<'a>(encoding: &'a str, data: &'a [u8]) -> RawImage<'a> {
    RawImage {
        encoding,
        width: WIDTH,
        height: HEIGHT,
        step: WIDTH * 3,
        is_bigendian: false,
        data,
    }
}

fn fit(c: &mut Criterion) {
    let data = picture(WIDTH, HEIGHT).into_raw();
    let mut group = c.benchmark_group("1280x720 rgb8");
    let mut decoder = RawDecoder::default();
    let mut rgb = RgbImage::default();
    for fit in [Fit::Crop, Fit::Reference] {
        let mut fitter = Fitter::new(size(), fit);
        group.bench_function(format!("decode and {fit} to 518x378"), |b| {
            b.iter(|| {
                let image = raw("rgb8", black_box(&data));
                decoder.decode(&image, &mut rgb).expect("a whole image");
                fitter.fit(&rgb)
            })
        });
    }
    let image = picture(WIDTH, HEIGHT);
    group.bench_function("the reference's preprocessing", |b| {
        b.iter(|| preprocess_reference(black_box(&image), ReferenceMode::Crop, 518))
    });
}

fn rectify(c: &mut Criterion) {
    let info = CameraInfo {
        width: WIDTH,
        height: HEIGHT,
        distortion_model: "plumb_bob".to_owned(),
        d: vec![-0.28, 0.07, 0.001, -0.0007, 0.0],
        k: [800.0, 0.0, 640.0, 0.0, 800.0, 360.0, 0.0, 0.0, 1.0],
        ..CameraInfo::default()
    };
    let model = CameraModel::from_info(&info).expect("a calibration");
    let model = model.expect("a calibrated camera");
    let undistortion = Undistortion::new(&model, WIDTH, HEIGHT).expect("the calibrated size");
    let image = picture(WIDTH, HEIGHT);
    let mut rectified = RgbImage::default();
    let mut group = c.benchmark_group("rectify 1280x720");
    group.bench_function("make the table", |b| {
        b.iter(|| Undistortion::new(black_box(&model), WIDTH, HEIGHT))
    });
    group.bench_function("an image", |b| {
        b.iter(|| undistortion.apply(black_box(&image), &mut rectified))
    });
}

fn cloud(c: &mut Criterion) {
    let (height, width) = (378, 518);
    let image = picture(width as u32, height as u32);
    let depth = Array2::from_shape_fn((height, width), |(v, u)| {
        2.0 + (u as f32 / 90.0).sin() + (v as f32 / 70.0).cos()
    });
    let confidence = Array2::from_elem((height, width), 2.0);
    let pose = Isometry3::new(Vector3::new(1.0, 2.0, 3.0), Vector3::new(0.1, 0.2, 0.3));
    let intrinsics = Intrinsics::from_field_of_view(1.0, 1.3, size());
    let view = FrameView {
        depth: depth.view(),
        confidence: confidence.view(),
        image: &image,
        kept: None,
        world_from_camera: &pose,
        intrinsics: &intrinsics,
    };
    let mut points = Vec::new();
    points_of_frame(&view, &PointFilter::default(), &mut points);
    let mut group = c.benchmark_group("518x378 cloud");
    group.throughput(Throughput::Elements(points.len() as u64));
    let bytes = vec![1u8; points.len() * 20];
    let mut copy = vec![0u8; bytes.len()];
    group.bench_function("copy 20 bytes a point", |b| {
        b.iter(|| black_box(&mut copy).copy_from_slice(black_box(&bytes)))
    });
    let mut bytes_out = Vec::new();
    let camera_from_world = pose.inverse();
    group.bench_function("bytes of the points", |b| {
        b.iter(|| {
            let points = black_box(&points).iter().copied();
            write_points(&mut bytes_out, &Scale::UNIT, &camera_from_world, points)
        })
    });
    let grid = GridView {
        rows: height,
        columns: width,
        intrinsics: &intrinsics,
        camera_from_world: &camera_from_world,
        scale: &Scale::UNIT,
        frame_from_camera: &Isometry3::identity(),
    };
    group.bench_function("bytes of the points as a grid", |b| {
        b.iter(|| write_grid(&mut bytes_out, &grid, black_box(&points)))
    });
    let mut out = Vec::new();
    group.bench_function("points of a frame", |b| {
        b.iter(|| points_of_frame(black_box(&view), &PointFilter::default(), &mut out))
    });
    let mut map = VoxelMap::new(VoxelMapConfig::default());
    group.bench_function("integrate", |b| {
        b.iter(|| map.integrate(black_box(&points)))
    });
    // The camera moves on, so that every frame has new voxels, and at last the map is full.
    let moved = |frame: usize| {
        let mut points = points.clone();
        for point in &mut points {
            point.position[0] += frame as f32 * 0.1;
        }
        points
    };
    let path: Vec<_> = (0..40).map(moved).collect();
    let full = VoxelMapConfig {
        voxel_size: 0.01,
        max_points: 500_000,
        ..VoxelMapConfig::default()
    };
    for (name, config) in [
        ("fuse a frame of a moving camera", VoxelMapConfig::default()),
        ("fuse a frame into a full map", full),
    ] {
        let mut map = VoxelMap::new(config);
        let mut frames = path.iter().cycle();
        let mut out = Vec::new();
        group.bench_function(name, |b| {
            b.iter(|| {
                points_of_frame(black_box(&view), &PointFilter::default(), &mut out);
                frames
                    .next()
                    .into_iter()
                    .for_each(|points| map.integrate(points));
            })
        });
    }
}

criterion_group!(benches, decode, fit, rectify, cloud);
criterion_main!(benches);
