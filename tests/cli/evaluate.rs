//! `lingbot_map evaluate` on a computed walk, whose truth is exact.

use std::fs::{self, File};
use std::path::Path;

use lingbot_map::camera::Stamp;
use lingbot_map::map::{MapPoint, Trajectory, write_ply};
use ndarray::{Array1, Array2, Array3, s};
use ndarray_npy::NpzWriter;
use serde_json::Value;

use crate::tool::{Tool, demo};

const FRAMES: usize = 5;
const SIZE: (usize, usize) = (42, 56);

/// What a network would predict.
#[derive(Clone)]
struct Predictions {
    pose_enc: Array2<f32>,
    depth: Array3<f32>,
    depth_conf: Array3<f32>,
    stamp_ns: Array1<i64>,
}

impl Predictions {
    /// The truth itself.
    fn of_truth(truth: &Path) -> Self {
        let (height, width) = SIZE;
        let path = Trajectory::read_tum(truth.join("groundtruth.tum")).unwrap();
        let mut predictions = Self {
            pose_enc: Array2::zeros((FRAMES, 9)),
            depth: Array3::zeros((FRAMES, height, width)),
            depth_conf: Array3::from_elem((FRAMES, height, width), 2.0),
            stamp_ns: path.iter().map(|(stamp, _)| stamp.0).collect(),
        };
        let horizontal = 75f64.to_radians();
        let vertical = 2.0 * ((horizontal / 2.0).tan() * height as f64 / width as f64).atan();
        for (index, (_, pose)) in path.iter().enumerate() {
            let (t, q) = (pose.translation.vector, pose.rotation.coords);
            let encoding = [t.x, t.y, t.z, q.x, q.y, q.z, q.w, vertical, horizontal];
            let encoding = Array1::from_iter(encoding.map(|value| value as f32));
            predictions.pose_enc.row_mut(index).assign(&encoding);
            let image = image::open(truth.join(format!("depth/{index:04}.png"))).unwrap();
            for (u, v, value) in image.into_luma16().enumerate_pixels() {
                predictions.depth[[index, v as usize, u as usize]] = f32::from(value[0]) / 1000.0;
            }
        }
        predictions
    }

    fn write(&self, path: &Path) {
        let mut archive = NpzWriter::new(File::create(path).unwrap());
        archive.add_array("pose_enc", &self.pose_enc).unwrap();
        archive.add_array("depth", &self.depth).unwrap();
        archive.add_array("depth_conf", &self.depth_conf).unwrap();
        archive.add_array("stamp_ns", &self.stamp_ns).unwrap();
        archive.finish().unwrap();
    }
}

/// A tool with a walk, and what a perfect network would say of it.
fn walk() -> (Tool, Predictions) {
    let tool = Tool::new();
    tool.run(&[
        "world",
        "--output",
        "truth",
        "--trajectory",
        "3",
        "--frames",
        "5",
        "--stride",
        "9",
        "--width",
        "56",
        "--height",
        "42",
    ]);
    let predictions = Predictions::of_truth(&tool.path("truth"));
    (tool, predictions)
}

impl Tool {
    fn evaluate(&self, arguments: &[&str]) -> Value {
        let said = self.run(&[&["evaluate", "--truth", "truth", "--json"], arguments].concat());
        serde_json::from_str(&said).unwrap()
    }
}

fn number(value: &Value, place: &str) -> f64 {
    let number = value.pointer(place).and_then(Value::as_f64);
    number.unwrap_or_else(|| panic!("{place} of {value}"))
}

#[test]
fn the_truth_itself_has_no_errors() {
    let (tool, predictions) = walk();
    predictions.write(&tool.path("p.npz"));
    let figures = tool.evaluate(&["--predictions", "p.npz", "--rpe-delta", "2"]);
    assert_eq!(figures["align"], "none");
    assert_eq!(figures["path"]["frames"], 5);
    assert_eq!(
        (
            &figures["path"]["rpe_delta"],
            &figures["path"]["rpe_motions"]
        ),
        (&2.into(), &3.into())
    );
    for name in [
        "ate_rmse_none",
        "ate_rmse_se3",
        "ate_rmse_sim3",
        "rpe_translation_rmse_se3",
        "rpe_translation_rmse_sim3",
        "rpe_rotation_rmse",
        "rotation_median_none",
        "rotation_max_none",
        "rotation_median",
        "rotation_max",
    ] {
        assert!(
            number(&figures["path"], &format!("/{name}")) < 1e-5,
            "{figures}"
        );
    }
    assert!((number(&figures, "/path/scale") - 1.0).abs() < 1e-5);
    assert!(number(&figures, "/depth/abs_rel") < 1e-5, "{figures}");
    assert_eq!(figures["depth"]["delta_1_25"], 1.0);
    assert_eq!(figures["depth"]["frames"], 5);
    // Depth is rounded to the millimetre.
    assert!(number(&figures, "/surface/p90") < 1e-3, "{figures}");
    assert_eq!(figures["surface"]["points"], 5 * 42 * 56);
}

#[test]
fn a_result_of_half_the_size_is_right_once_it_is_scaled() {
    let (tool, mut predictions) = walk();
    predictions
        .pose_enc
        .slice_mut(s![.., ..3])
        .map_inplace(|t| *t *= 0.5);
    predictions.depth *= 0.5;
    // Wrong points that nobody is sure of.
    predictions.depth.slice_mut(s![.., ..10, ..]).fill(50.0);
    predictions.depth_conf.slice_mut(s![.., ..10, ..]).fill(1.2);
    predictions.write(&tool.path("p.npz"));
    let evaluate = |align| tool.evaluate(&["--predictions", "p.npz", "--align", align]);
    let figures = evaluate("sim3");
    assert!((number(&figures, "/path/scale") - 2.0).abs() < 1e-4);
    assert!(number(&figures, "/path/ate_rmse_sim3") < 1e-4);
    assert!(number(&figures, "/path/ate_rmse_se3") > 0.01);
    assert!(number(&figures, "/surface/p90") < 2e-3, "{figures}");
    assert!(number(&evaluate("none"), "/surface/median") > 0.1);
    assert!(number(&evaluate("se3"), "/surface/median") > 0.1);
    let all = tool.evaluate(&[
        "--predictions",
        "p.npz",
        "--align",
        "sim3",
        "--conf-threshold",
        "1",
    ]);
    assert!(number(&all, "/surface/p90") > 10.0, "{all}");
    let text = tool.run(&["evaluate", "--truth", "truth", "--predictions", "p.npz"]);
    for part in [
        "ATE RMSE",
        "RPE RMSE over 1 frame",
        "Sim(3)",
        "AbsRel",
        "δ<1.25",
        "90 % within",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_saved_map_is_measured_in_the_room() {
    let (tool, _) = walk();
    // Points that lie where the first cameras are: in the air.
    let path = Trajectory::read_tum(tool.path("truth/groundtruth.tum")).unwrap();
    let points: Vec<_> = path
        .iter()
        .map(|(_, pose)| MapPoint {
            position: pose.translation.vector.cast().into(),
            color: [0; 3],
            confidence: 2.0,
        })
        .collect();
    write_ply(&tool.path("map.ply"), points.into_iter()).unwrap();
    let figures = tool.evaluate(&["--map", "map.ply"]);
    assert_eq!(figures["surface"]["points"], 5);
    // A camera that people carry is neither in a wall nor farther from all of them than the room allows.
    assert!(
        (0.1..2.5).contains(&number(&figures, "/surface/median")),
        "{figures}"
    );
    assert!(figures.get("path").is_none() && figures.get("depth").is_none());
    let shifted = "--map map.ply --trajectory shifted.tum --align se3";
    let mut estimate = Trajectory::new();
    for (stamp, pose) in path.iter() {
        let mut pose = *pose;
        pose.translation.vector.x += 100.0;
        estimate.push(Stamp(stamp.0 + 5_000_000), pose);
    }
    estimate.write_tum(tool.path("shifted.tum")).unwrap();
    let moved = tool.evaluate(&shifted.split(' ').collect::<Vec<_>>());
    assert!((number(&moved, "/path/ate_rmse_none") - 100.0).abs() < 1e-6);
    // The map is brought along: from where it was, 100 m away.
    assert!(number(&moved, "/surface/median") > 90.0, "{moved}");
}

#[test]
fn paths_in_kittis_format_are_paired_by_order() {
    let (tool, _) = walk();
    let path = Trajectory::read_tum(tool.path("truth/groundtruth.tum")).unwrap();
    let rows = kitti_rows(&path);
    fs::write(tool.path("poses.txt"), rows.join("\n")).unwrap();
    fs::write(tool.path("short.txt"), rows[..3].join("\n")).unwrap();
    let figures = tool.evaluate(&["--trajectory", "poses.txt"]);
    assert_eq!(figures["path"]["frames"], 5);
    assert!(number(&figures, "/path/ate_rmse_none") < 1e-6);
    let error = tool.fail(&["evaluate", "--truth", "truth", "--trajectory", "short.txt"]);
    assert!(
        error.contains("3 poses") && error.contains("of 5"),
        "{error}"
    );
    // Alone, and as the truth of a path with times.
    let figures = tool.run(&[
        "evaluate",
        "--truth",
        "poses.txt",
        "--trajectory",
        "truth/groundtruth.tum",
    ]);
    assert!(figures.contains("5 poses"), "{figures}");
}

fn kitti_rows(path: &Trajectory) -> Vec<String> {
    let row = |pose: &nalgebra::Isometry3<f64>| {
        let matrix = pose.to_homogeneous();
        let numbers = (0..3).flat_map(|row| (0..4).map(move |column| (row, column)));
        let numbers: Vec<_> = numbers.map(|place| matrix[place].to_string()).collect();
        numbers.join(" ")
    };
    path.iter().map(|(_, pose)| row(pose)).collect()
}

#[test]
fn a_plot_appears_whole() {
    let (tool, predictions) = walk();
    predictions.write(&tool.path("p.npz"));
    tool.evaluate(&[
        "--predictions",
        "p.npz",
        "--plot",
        "plot.png",
        "--align",
        "se3",
    ]);
    let plot = image::open(tool.path("plot.png")).unwrap().into_rgb8();
    assert_eq!(plot.dimensions(), (1200, 1400));
    let pixel = *plot.get_pixel(0, 0);
    assert!(plot.pixels().filter(|p| **p != pixel).count() > 10_000);
    let said = tool.fail(&[
        "evaluate",
        "--truth",
        "truth",
        "--predictions",
        "p.npz",
        "--plot",
        "absent/plot.png",
    ]);
    assert!(said.contains("absent/plot.png"), "{said}");
    assert!(!tool.path("absent").exists());
}

#[test]
fn what_cannot_be_compared_is_named() {
    let (tool, good) = walk();
    let wrong = |name: &str, change: &dyn Fn(&mut Predictions)| {
        let mut predictions = good.clone();
        change(&mut predictions);
        predictions.write(&tool.path(name));
        tool.fail(&["evaluate", "--truth", "truth", "--predictions", name])
    };
    let fail = |arguments: &str| {
        let arguments: Vec<_> = arguments.split(' ').collect();
        tool.fail(&[&["evaluate"], &arguments[..]].concat())
    };
    write_ply(&tool.path("empty.ply"), std::iter::empty()).unwrap();
    fs::write(tool.path("text"), "no numbers").unwrap();
    std::fs::create_dir(tool.path("unplaced")).unwrap();
    std::fs::copy(
        demo("walk/groundtruth.tum"),
        tool.path("unplaced/groundtruth.tum"),
    )
    .unwrap();
    let cases = [
        (
            wrong("pose.npz", &|p| p.pose_enc[[2, 4]] = f32::NAN),
            "frame 2: the network's pose holds a value",
        ),
        (
            wrong("depth.npz", &|p| p.depth[[3, 0, 0]] = f32::NAN),
            "frame 3 has depth that is not finite",
        ),
        (
            wrong("conf.npz", &|p| p.depth_conf[[1, 0, 0]] = f32::NAN),
            "frame 1 has confidence",
        ),
        (
            wrong("times.npz", &|p| p.stamp_ns += 50_000_000),
            "within 10 ms",
        ),
        (
            wrong("count.npz", &|p| p.depth = Array3::zeros((4, 42, 56))),
            "do not belong together",
        ),
        (
            wrong("size.npz", &|p| {
                p.depth = Array3::ones((FRAMES, 28, 42));
                p.depth_conf = Array3::ones((FRAMES, 28, 42));
            }),
            "[28, 42]",
        ),
        (
            wrong("unsure.npz", &|p| p.depth_conf.fill(1.0)),
            "no points",
        ),
        (fail("--truth truth --predictions text"), "text"),
        (fail("--truth truth --predictions absent.npz"), "absent.npz"),
        (
            fail("--truth truth --map empty.ply"),
            "empty.ply holds no points",
        ),
        (fail("--truth truth --map text"), "not a point cloud"),
        (fail("--truth truth --map absent.ply"), "absent.ply"),
        (fail("--truth truth --trajectory text"), "text, line 1"),
        (
            fail("--truth absent --trajectory truth/groundtruth.tum"),
            "absent",
        ),
        (fail("--truth unplaced --map empty.ply"), "room_from_world"),
        (fail("--truth truth"), "required"),
        (
            fail("--truth truth --map empty.ply --align sim3"),
            "required",
        ),
        (
            fail("--truth truth --map empty.ply --plot p.png"),
            "required",
        ),
        (
            fail("--truth truth --map empty.ply --predictions pose.npz"),
            "cannot be used with",
        ),
        (
            fail("--truth truth --trajectory truth/groundtruth.tum --rpe-delta 0"),
            "--rpe-delta",
        ),
    ];
    for (text, part) in cases {
        assert!(text.contains(part), "{part}: {text}");
    }

    good.write(&tool.path("p.npz"));
    fs::remove_file(tool.path("truth/depth/0004.png")).unwrap();
    let text = fail("--truth truth --predictions p.npz");
    assert!(
        text.contains("4 images") && text.contains("5 poses"),
        "{text}"
    );
    for (description, part) in [("width: 3", "missing field"), ("[", "camera.yaml")] {
        fs::write(tool.path("truth/camera.yaml"), description).unwrap();
        let text = fail("--truth truth --predictions p.npz");
        assert!(text.contains(part), "{text}");
    }
}
