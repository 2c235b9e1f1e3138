use std::fs;
use std::process::Command;
use std::time::Duration;

use ndarray::{Array2, s};
use serde_json::Value;

use crate::tool::{Tool, demo, json, largest_difference, npz, ten_frames};

#[test]
fn ten_demo_frames_become_a_map() {
    let tool = Tool::new();
    let images = ten_frames(&tool, "0004-broken.png");
    let checkpoint = demo("weights.safetensors");
    let arguments = [
        "run",
        "--images",
        &images,
        "--checkpoint",
        &checkpoint,
        "--output",
        "out",
    ];
    let said = tool.run(&[&arguments[..], &["--save-predictions", "p.npz"]].concat());
    // ONNX Runtime keeps its device identifier and what it has to report there.
    assert!(!tool.path("cache/Microsoft").exists());
    assert!(said.contains("10 of 11 images mapped"), "{said}");

    let trajectory = fs::read_to_string(tool.path("out/trajectory.tum")).unwrap();
    assert_eq!(
        trajectory
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count(),
        10
    );
    assert!(
        fs::read(tool.path("out/map.ply"))
            .unwrap()
            .starts_with(b"ply\nformat binary_little_endian")
    );
    let preview = image::open(tool.path("out/preview.png"))
        .unwrap()
        .into_rgb8();
    let first = *preview.get_pixel(0, 0);
    assert!(
        preview.pixels().any(|pixel| *pixel != first),
        "the preview is empty"
    );

    let timings = json(&tool.path("out/timings.json"));
    assert_eq!(
        (&timings["images"], &timings["frames_mapped"]),
        (&11.into(), &10.into())
    );
    assert_eq!(timings["skipped"].as_object().unwrap().len(), 1);
    assert_eq!(
        (&timings["height"], &timings["width"]),
        (&84.into(), &112.into())
    );
    assert_eq!(timings["interrupted"], false);
    assert!(timings["map_points"].as_u64().unwrap() > 1000);

    let pose: Array2<f32> = npz(tool.path("p.npz")).by_name("pose_enc").unwrap();
    let reference: Array2<f32> = npz(demo("walk/reference.npz")).by_name("pose_enc").unwrap();
    let reference = reference.slice(s![..10, ..]);
    assert!(largest_difference(&pose, &reference) <= 1e-4);

    // A second run takes the model that the first has exported.
    let models = tool.path("cache/lingbot_map/models");
    let exported = || -> Vec<_> {
        let entries = fs::read_dir(&models)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let folders = entries.filter(|path| path.is_dir());
        folders
            .map(|path| {
                (
                    fs::metadata(path.join("manifest.yaml"))
                        .unwrap()
                        .modified()
                        .unwrap(),
                    path,
                )
            })
            .collect()
    };
    let before = exported();
    assert_eq!(before.len(), 1);
    tool.run(&arguments);
    assert_eq!(exported(), before);
}

#[test]
fn results_are_compared_with_the_truth() {
    let tool = Tool::new();
    let (images, checkpoint, truth) = (
        ten_frames(&tool, "0010.png"),
        demo("weights.safetensors"),
        demo("walk"),
    );
    let run = [
        "run",
        "--images",
        &images,
        "--checkpoint",
        &checkpoint,
        "--output",
        "out",
    ];
    tool.run(&[&run[..], &["--save-predictions", "p.npz"]].concat());
    let evaluate = |arguments: &[&str]| -> Value {
        let said = tool.run(&[&["evaluate", "--truth", &truth, "--json"], arguments].concat());
        serde_json::from_str(&said).unwrap()
    };
    let by_predictions = evaluate(&["--predictions", "p.npz"]);
    let number = |value: &Value| value.as_f64().unwrap();
    assert_eq!(by_predictions["path"]["frames"], 10);
    assert!(
        number(&by_predictions["path"]["ate_rmse_se3"]) < 0.2,
        "{by_predictions}"
    );
    assert!(
        number(&by_predictions["depth"]["abs_rel"]) < 0.1,
        "{by_predictions}"
    );
    assert!(
        number(&by_predictions["depth"]["delta_1_25"]) > 0.9,
        "{by_predictions}"
    );
    let by_trajectory = evaluate(&["--trajectory", "out/trajectory.tum"]);
    let difference = number(&by_trajectory["path"]["ate_rmse_se3"])
        - number(&by_predictions["path"]["ate_rmse_se3"]);
    assert!(difference.abs() < 1e-5, "{by_trajectory} {by_predictions}");
    let text = tool.run(&["evaluate", "--truth", &truth, "--predictions", "p.npz"]);
    assert!(text.contains("AbsRel") && text.contains("ATE"), "{text}");
}

#[test]
fn an_interrupted_run_keeps_what_is_done() {
    let tool = Tool::new();
    let (images, checkpoint) = (demo("walk/rgb"), demo("weights.safetensors"));
    let run = [
        "run",
        "--images",
        &images,
        "--checkpoint",
        &checkpoint,
        "--output",
        "out",
    ];
    let mut child = tool.command(&run).spawn().unwrap();
    // Long enough to export and begin on any machine; a faster one may be done, which is as good.
    std::thread::sleep(Duration::from_secs(3));
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    let status = child.wait().unwrap();
    let timings = json(&tool.path("out/timings.json"));
    assert_eq!(status.success(), timings["interrupted"] == false);
    let mapped = timings["frames_mapped"].as_u64().unwrap();
    if interrupt.success() && timings["interrupted"] == true {
        assert!(mapped < 240);
    } else {
        assert_eq!(mapped, 240);
    }
    let trajectory = fs::read_to_string(tool.path("out/trajectory.tum")).unwrap();
    assert_eq!(
        trajectory
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count() as u64,
        mapped
    );
}

#[test]
fn frames_in_which_nothing_moved_are_left_out() {
    let tool = Tool::new();
    let folder = tool.path("frames");
    fs::create_dir(&folder).unwrap();
    let walk = |index: usize| image::open(demo(&format!("walk/rgb/{index:04}.png"))).unwrap();
    // Ten frames, twelve more of the tenth with the noise of a sensor, and ten that walk on.
    let standing = (0..12).map(|_| 9);
    for (number, index) in (0..10).chain(standing).chain(10..20).enumerate() {
        let mut picture = walk(index).into_rgb8();
        for (place, value) in picture.iter_mut().enumerate() {
            let noise = (place as u32 + 7919 * number as u32).wrapping_mul(2_654_435_761) >> 29;
            *value = value.saturating_add(noise as u8);
        }
        picture
            .save(folder.join(format!("{number:04}.png")))
            .unwrap();
    }
    let (images, checkpoint) = (folder.to_string_lossy(), demo("weights.safetensors"));
    let run = [
        "run",
        "--images",
        &images,
        "--checkpoint",
        &checkpoint,
        "--output",
        "out",
    ];
    let said = tool.run(&[&run[..], &["--static-skip", "1"]].concat());
    assert!(
        said.contains("20 of 32 images mapped and 12 left out"),
        "{said}"
    );
    assert_eq!(json(&tool.path("out/timings.json"))["still_frames"], 12);
    let said = tool.run(&run);
    assert!(said.contains("32 of 32 images mapped,"), "{said}");
}
