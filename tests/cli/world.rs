//! `lingbot_map world`: what it writes, read back.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use image::{DynamicImage, GenericImageView};
use lingbot_map::map::Trajectory;
use lingbot_map::world::Room;
use nalgebra::{Isometry3, Matrix3, Point3, Rotation3, Translation3, UnitQuaternion, Vector3};
use ndarray::{Array3, Array4, Axis, s};
use ndarray_npy::read_npy;
use serde::Deserialize;
use serde_json::Value;

use crate::tool::{Tool, files};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Camera {
    width: u32,
    height: u32,
    fx: f64,
    fy: f64,
    cx: f64,
    cy: f64,
    depth_unit: f64,
    room_from_world: Option<[[f64; 4]; 3]>,
    seed: u64,
}

impl Camera {
    fn read(folder: &Path) -> Self {
        serde_yaml::from_slice(&fs::read(folder.join("camera.yaml")).unwrap()).unwrap()
    }
}

fn transform(rows: [[f64; 4]; 3]) -> Isometry3<f64> {
    let matrix = Matrix3::from_fn(|row, column| rows[row][column]);
    let rotation = Rotation3::from_matrix_unchecked(matrix);
    let translation = Vector3::from_fn(|row, _| rows[row][3]);
    Isometry3::from_parts(
        Translation3::from(translation),
        UnitQuaternion::from_rotation_matrix(&rotation),
    )
}

fn picture(folder: &Path, name: &str) -> DynamicImage {
    image::open(folder.join(name)).unwrap()
}

const SIZE: [&str; 4] = ["--width", "56", "--height", "42"];

fn write(tool: &Tool, output: &str, extra: &[&str]) {
    let command = ["world", "--output", output];
    tool.run(&[&command[..], &SIZE, extra].concat());
}

#[test]
fn depth_and_poses_of_a_folder_lead_to_the_rooms_surfaces() {
    let tool = Tool::new();
    let walk = ["--trajectory", "5", "--frames", "4", "--stride", "20"];
    write(&tool, "walk", &walk);
    let folder = tool.path("walk");
    let entries: BTreeSet<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = ["camera.yaml", "depth", "groundtruth.tum", "rgb"];
    assert!(entries.iter().eq(expected), "{entries:?}");

    let camera = Camera::read(&folder);
    assert_eq!((camera.width, camera.height, camera.seed), (56, 42, 5));
    assert_eq!((camera.cx, camera.cy), (28.0, 21.0));
    assert_eq!(camera.depth_unit, 0.001);
    let focal_length = 28.0 / 37.5f64.to_radians().tan();
    assert!((camera.fx - focal_length).abs() < 1e-9 && camera.fx == camera.fy);

    let truth = Trajectory::read_tum(folder.join("groundtruth.tum")).unwrap();
    let stamps: Vec<i64> = truth.iter().map(|(stamp, _)| stamp.0).collect();
    assert_eq!(stamps, [0, 100_000_000, 200_000_000, 300_000_000]);
    let (_, first) = truth.iter().next().unwrap();
    assert!(first.translation.vector.norm() < 1e-9 && first.rotation.angle() < 1e-9);

    let room = Room::new();
    let room_from_world = transform(camera.room_from_world.unwrap());
    for (index, (_, world_from_camera)) in truth.iter().enumerate() {
        let rgb = picture(&folder, &format!("rgb/{index:04}.png"));
        assert!(matches!(rgb, DynamicImage::ImageRgb8(_)));
        assert_eq!(rgb.dimensions(), (56, 42));
        let DynamicImage::ImageLuma16(depth) = picture(&folder, &format!("depth/{index:04}.png"))
        else {
            panic!("depth {index} has not 16 bits");
        };
        assert_eq!(depth.dimensions(), (56, 42));
        for (u, v, value) in depth.enumerate_pixels() {
            let ray = Vector3::new(
                (f64::from(u) - camera.cx) / camera.fx,
                (f64::from(v) - camera.cy) / camera.fy,
                1.0,
            );
            let depth = f64::from(value.0[0]) * camera.depth_unit;
            let place = room_from_world * world_from_camera * Point3::from(ray * depth);
            // Half a millimetre of rounding along a ray that is up to 1.4 times as long as its depth.
            let off = room.distance(place);
            assert!(off < 8e-4, "frame {index}, pixel {u}, {v}: {off} m");
        }
    }
}

#[test]
fn arrays_hold_the_same_frames_as_folders_walk_after_walk() {
    let tool = Tool::new();
    let walks = ["--trajectory", "8", "--frames", "3", "--walks", "2"];
    write(
        &tool,
        "arrays",
        &[&walks[..], &["--format", "npy"]].concat(),
    );
    let folder = tool.path("arrays");
    let rgb: Array4<u8> = read_npy(folder.join("rgb.npy")).unwrap();
    let depth: Array3<u16> = read_npy(folder.join("depth.npy")).unwrap();
    let poses: Array3<f32> = read_npy(folder.join("room_from_camera.npy")).unwrap();
    assert_eq!(rgb.shape(), [6, 42, 56, 3]);
    assert_eq!(depth.shape(), [6, 42, 56]);
    assert_eq!(poses.shape(), [6, 3, 4]);
    assert!(Camera::read(&folder).room_from_world.is_none());

    for (seed, first) in [("8", 0), ("9", 3)] {
        write(&tool, seed, &["--trajectory", seed, "--frames", "3"]);
        let folder = tool.path(seed);
        let room_from_world = transform(Camera::read(&folder).room_from_world.unwrap());
        let truth = Trajectory::read_tum(folder.join("groundtruth.tum")).unwrap();
        for (index, (_, world_from_camera)) in truth.iter().enumerate() {
            let frame = first + index;
            let png = picture(&folder, &format!("rgb/{index:04}.png")).into_rgb8();
            assert!(rgb.index_axis(Axis(0), frame).iter().eq(png.as_raw()));
            let png = picture(&folder, &format!("depth/{index:04}.png")).into_luma16();
            assert!(depth.index_axis(Axis(0), frame).iter().eq(png.as_raw()));
            let expected = (room_from_world * world_from_camera).to_homogeneous();
            for ((row, column), value) in poses.slice(s![frame, .., ..]).indexed_iter() {
                let off = f64::from(*value) - expected[(row, column)];
                assert!(off.abs() < 1e-6, "frame {frame}, {row}, {column}: {off}");
            }
        }
    }
    assert_ne!(rgb.slice(s![0, .., .., ..]), rgb.slice(s![3, .., .., ..]));
}

#[test]
fn the_truth_agrees_with_itself() {
    let tool = Tool::new();
    write(&tool, "walk", &["--trajectory", "1", "--frames", "12"]);
    let arguments = ["--trajectory", "walk/groundtruth.tum", "--truth", "walk"];
    let text = tool.run(&[&["evaluate", "--json"], &arguments[..]].concat());
    let evaluation: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(evaluation["path"]["frames"], 12);
    assert!(evaluation["path"]["ate_rmse_se3"].as_f64().unwrap() < 1e-9);
}

#[test]
fn only_its_own_folders_are_written_again() {
    let tool = Tool::new();
    write(&tool, "walk", &["--trajectory", "1", "--frames", "4"]);
    let other = ["--trajectory", "2", "--frames", "2", "--style", "robot"];
    write(&tool, "walk", &other);
    write(&tool, "fresh", &other);
    for kind in ["rgb", "depth", "."] {
        let list = |folder: &str| {
            let folder = tool.path(folder).join(kind);
            if kind == "." {
                vec![(
                    "camera.yaml".into(),
                    fs::read(folder.join("camera.yaml")).unwrap(),
                )]
            } else {
                files(&folder)
            }
        };
        assert_eq!(list("walk"), list("fresh"), "{kind}");
    }

    // A run that was killed leaves no camera.yaml, but its mark.
    fs::remove_file(tool.path("walk/camera.yaml")).unwrap();
    let again = [
        "world",
        "--output",
        "walk",
        "--trajectory",
        "1",
        "--frames",
        "1",
    ];
    assert!(tool.fail(&again).contains("holds other files"));
    fs::write(tool.path("walk/.lingbot_map_world_unfinished"), "").unwrap();
    tool.run(&again);
    assert_eq!(files(&tool.path("walk/rgb")).len(), 1);

    fs::create_dir(tool.path("photos")).unwrap();
    fs::write(tool.path("photos/0000.png"), "mine").unwrap();
    let photos = [
        "world",
        "--output",
        "photos",
        "--trajectory",
        "1",
        "--frames",
        "1",
    ];
    assert!(tool.fail(&photos).contains("holds other files"));
    assert_eq!(
        files(&tool.path("photos")),
        [("0000.png".into(), b"mine".to_vec())]
    );
}

#[test]
fn impossible_walks_are_refused() {
    let tool = Tool::new();
    let start = ["world", "--output", "walk", "--trajectory", "1"];
    for (extra, reason) in [
        (&["--frames", "0"][..], "--frames"),
        (&["--frames", "3", "--walks", "2"], "--format npy"),
        (&["--frames", "3", "--fov", "180"], "field of view"),
        (&["--frames", "3", "--fov", "nan"], "field of view"),
        (&["--frames", "3", "--turn", "200"], "turn"),
        (&["--frames", "3", "--width", "0"], "--width"),
        (
            &["--frames", "4000000000", "--walks", "9", "--format", "npy"],
            "too many frames",
        ),
    ] {
        let text = tool.fail(&[&start[..], extra].concat());
        assert!(text.contains(reason), "{extra:?}: {text}");
        assert!(!tool.path("walk").exists(), "{extra:?}");
    }
}
