//! The map and its comparison with the truth, on the demo's walk.

use std::fs::File;
use std::path::{Path, PathBuf};

use image::RgbImage;
use lingbot_map::camera::{ImageFolder, NetworkSize};
use lingbot_map::geometry::{Intrinsics, decode_pose, rigid_from_rows};
use lingbot_map::map::evaluation::{DepthErrors, compare_depth, compare_paths};
use lingbot_map::map::{
    FrameView, MapPoint, PointFilter, PreviewSize, Trajectory, VoxelMap, VoxelMapConfig,
    points_of_frame, write_preview,
};
use lingbot_map::world::Room;
use nalgebra::{Isometry3, Point3};
use ndarray::{Array1, Array2, Array3, ArrayView2, Axis, s};
use ndarray_npy::NpzReader;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// The demo camera's fields of view, radians.
const VERTICAL: f64 = 1.0444127738121112;
const HORIZONTAL: f64 = 1.3089969389957472;
/// Length, width and height of the room that the walk is in, metres.
const ROOM: [f32; 3] = [6.0, 5.0, 2.8];

fn walk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo/walk")
}

fn size() -> NetworkSize {
    NetworkSize::new(84, 112).unwrap()
}

fn truth() -> Trajectory {
    Trajectory::read_tum(walk().join("groundtruth.tum")).unwrap()
}

/// True depth in metres; zero where there is none.
fn true_depth(index: usize) -> Array2<f32> {
    let path = walk().join(format!("depth/{index:04}.png"));
    let image = image::open(path).unwrap().into_luma16();
    let (width, height) = image.dimensions();
    let metres = image.iter().map(|&mm| f32::from(mm) / 1000.0).collect();
    Array2::from_shape_vec((height as usize, width as usize), metres).unwrap()
}

fn add_frame(
    map: &mut VoxelMap,
    image: &RgbImage,
    depth: ArrayView2<f32>,
    confidence: ArrayView2<f32>,
    world_from_camera: &Isometry3<f64>,
    intrinsics: &Intrinsics,
) {
    let view = FrameView {
        depth,
        confidence,
        image,
        kept: None,
        world_from_camera,
        intrinsics,
    };
    let mut points = Vec::new();
    points_of_frame(&view, &PointFilter::default(), &mut points);
    map.integrate(&points);
}

/// Length of what a direction sees of the points, but for a hundredth at either end.
fn extent(points: &[MapPoint], direction: [f32; 3]) -> f32 {
    let along = |p: &MapPoint| p.position.iter().zip(direction).map(|(c, d)| c * d).sum();
    let mut values: Vec<f32> = points.iter().map(along).collect();
    values.sort_by(f32::total_cmp);
    values[values.len() * 99 / 100] - values[values.len() / 100]
}

/// Where in the room the walk's first camera is.
fn room_from_world() -> Isometry3<f64> {
    #[derive(serde::Deserialize)]
    struct Camera {
        room_from_world: [[f64; 4]; 3],
    }
    let text = std::fs::read_to_string(walk().join("camera.yaml")).unwrap();
    let camera: Camera = serde_yaml::from_str(&text).unwrap();
    rigid_from_rows(&camera.room_from_world).unwrap()
}

/// The axes of the room as seen from the walk's first camera.
fn room_axes() -> [[f32; 3]; 3] {
    let axes = room_from_world().rotation.to_rotation_matrix();
    [0, 1, 2].map(|axis| axes.matrix().row(axis).transpose().cast().into())
}

/// Draws the map; with PREVIEW_FOLDER set, where it can be looked at.
fn check_picture(name: &str, points: &[MapPoint], trajectory: &Trajectory) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = std::env::var_os("PREVIEW_FOLDER");
    let folder = folder.map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let path = folder.join(name);
    write_preview(&path, points, trajectory, PreviewSize::default()).unwrap();
    let picture = image::open(path).unwrap().into_rgb8();
    let background = *picture.get_pixel(0, 0);
    for half in 0..2 {
        let shown = picture
            .enumerate_pixels()
            .filter(|(x, _, p)| x / 800 == half && **p != background);
        let share = shown.count() as f32 / (800.0 * 800.0);
        assert!((0.15..0.7).contains(&share), "{name}, half {half}: {share}");
    }
}

#[test]
fn true_depth_and_poses_make_the_room() {
    let images = ImageFolder::open(walk().join("rgb")).unwrap();
    let truth = truth();
    assert_eq!((images.len(), truth.len()), (240, 240));
    let k = Intrinsics::from_field_of_view(VERTICAL, HORIZONTAL, size());
    let sure = Array2::from_elem((84, 112), 2.0);
    let mut map = VoxelMap::new(VoxelMapConfig::default());
    for (index, (stamp, pose)) in truth.iter().enumerate() {
        let frame = images.frame(index).unwrap();
        assert_eq!(frame.stamp, *stamp);
        add_frame(
            &mut map,
            &frame.image,
            true_depth(index).view(),
            sure.view(),
            pose,
            &k,
        );
    }
    let points: Vec<MapPoint> = map.points().collect();
    assert!(
        (30_000..150_000).contains(&points.len()),
        "{}",
        points.len()
    );
    for (axis, side) in room_axes().into_iter().zip(ROOM) {
        let found = extent(&points, axis);
        assert!((found - side).abs() < 0.1, "{found} of {side} m");
    }
    check_picture("true.png", &points, &truth);
}

/// What a network makes of true depth: depth that runs smoothly over the edges of
/// things, as the network's last layers do, and noise that grows with distance.
fn softened(depth: &Array2<f32>, rng: &mut Pcg32) -> Array2<f32> {
    let (height, width) = depth.dim();
    Array2::from_shape_fn((height, width), |(v, u)| {
        let rows = v.saturating_sub(1)..(v + 2).min(height);
        let columns = u.saturating_sub(1)..(u + 2).min(width);
        let mean = depth.slice(s![rows, columns]).mean().unwrap();
        let even = |rng: &mut Pcg32| rng.next_u32() as f32 / u32::MAX as f32 - 0.5;
        mean * (1.0 + 0.02 * (even(rng) + even(rng)))
    })
}

/// Of the points of a map made of the true path with softened depth: the share that is farther than ten centimetres
/// from all surfaces, and the median distance.
fn strays(filter: &PointFilter, config: VoxelMapConfig) -> (f64, f64) {
    let room = Room::new();
    let room_from_world = room_from_world();
    let images = ImageFolder::open(walk().join("rgb")).unwrap();
    let k = Intrinsics::from_field_of_view(VERTICAL, HORIZONTAL, size());
    let sure = Array2::from_elem((84, 112), 2.0);
    let mut rng = Pcg32::seed_from_u64(5);
    let mut map = VoxelMap::new(config);
    let mut points = Vec::new();
    for (index, (_, pose)) in truth().iter().enumerate() {
        let depth = softened(&true_depth(index), &mut rng);
        let view = FrameView {
            depth: depth.view(),
            confidence: sure.view(),
            image: &images.frame(index).unwrap().image,
            kept: None,
            world_from_camera: pose,
            intrinsics: &k,
        };
        points_of_frame(&view, filter, &mut points);
        map.integrate(&points);
    }
    let mut distances: Vec<f64> = map
        .points()
        .map(|p| room.distance(room_from_world * Point3::from(p.position.map(f64::from))))
        .collect();
    distances.sort_by(f64::total_cmp);
    let far = distances.iter().filter(|d| **d > 0.1).count();
    (
        far as f64 / distances.len() as f64,
        distances[distances.len() / 2],
    )
}

#[test]
fn filters_and_fusion_take_away_what_hangs_between_surfaces() {
    let all = PointFilter {
        depth_edge: None,
        ..PointFilter::default()
    };
    let once = VoxelMapConfig {
        min_observations: 1,
        ..VoxelMapConfig::default()
    };
    let unfiltered = strays(&all, once);
    let edges = strays(&PointFilter::default(), once);
    let both = strays(&PointFilter::default(), VoxelMapConfig::default());
    assert!(edges.0 < unfiltered.0 * 0.6, "{edges:?} {unfiltered:?}");
    assert!(
        both.0 < edges.0 * 0.8 && both.1 < edges.1,
        "{both:?} {unfiltered:?}"
    );
}

#[test]
fn the_references_predictions_have_the_errors_measured_for_them() {
    let mut npz = NpzReader::new(File::open(walk().join("reference.npz")).unwrap()).unwrap();
    let pose_enc: Array2<f32> = npz.by_name("pose_enc").unwrap();
    let depth_frames: Array1<i64> = npz.by_name("depth_frames").unwrap();
    let depth: Array3<f32> = npz.by_name("depth").unwrap();
    let confidence: Array3<f32> = npz.by_name("depth_conf").unwrap();
    let images = ImageFolder::open(walk().join("rgb")).unwrap();
    let truth = truth();

    let mut path = Trajectory::new();
    let mut cameras = Vec::new();
    for ((stamp, _), encoded) in truth.iter().zip(pose_enc.rows()) {
        let encoded: [f32; 9] = encoded.to_vec().try_into().unwrap();
        let (pose, intrinsics) = decode_pose(&encoded, size()).unwrap();
        path.push(*stamp, pose);
        cameras.push((pose, intrinsics));
    }
    let errors = compare_paths(&path, &truth).unwrap();
    // By an independent calculation with numpy.
    assert_eq!(errors.poses, 240);
    assert!((errors.ate_rmse_se3 - 0.120_823).abs() < 1e-6, "{errors:?}");
    assert!(
        (errors.rotation_median.to_degrees() - 2.5796).abs() < 0.01,
        "{errors:?}"
    );

    let mut map = VoxelMap::new(VoxelMapConfig {
        // Depth is there of every twentieth frame.
        min_observations: 1,
        ..VoxelMapConfig::default()
    });
    let mut depth_errors = Vec::new();
    for (slot, &index) in depth_frames.iter().enumerate() {
        let index = index as usize;
        let depth = depth.index_axis(Axis(0), slot);
        depth_errors.push(compare_depth(depth, true_depth(index).view()).unwrap());
        let image = images.frame(index).unwrap().image;
        let (pose, k) = &cameras[index];
        add_frame(
            &mut map,
            &image,
            depth,
            confidence.index_axis(Axis(0), slot),
            pose,
            k,
        );
    }
    let errors = DepthErrors::combined(&depth_errors).unwrap();
    assert!((errors.abs_rel - 0.020_840).abs() < 1e-5, "{errors:?}");
    assert!((errors.rmse - 0.067_387).abs() < 1e-5, "{errors:?}");
    assert!((errors.delta_1_25 - 0.999_823).abs() < 1e-5, "{errors:?}");
    let points: Vec<MapPoint> = map.points().collect();
    check_picture("reference.png", &points, &path);
}
