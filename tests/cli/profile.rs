//! Where the time of a run goes.

use serde_json::Value;

use crate::tool::{Tool, demo, golden};

#[test]
fn a_profile_splits_each_frame_into_stages() {
    let tool = Tool::new();
    let (config, images) = (golden("config.json"), demo("walk/rgb"));
    let arguments = [
        "profile",
        "--config",
        &config,
        "--height",
        "42",
        "--width",
        "84",
        "--frames",
        "12",
        "--num-scale-frames",
        "2",
        "--images",
        &images,
    ];
    let with = |extra: &[&str]| tool.run(&[&arguments[..], extra].concat());
    let report: Value = serde_json::from_str(&with(&["--json", "--plot", "p.png"])).unwrap();
    assert!(image::open(tool.path("p.png")).unwrap().width() > 500);
    let frames = report["frames"].as_array().unwrap();
    assert_eq!(frames.len(), 10);
    for frame in frames {
        let stages = frame["stages"].as_object().unwrap();
        let sum: f64 = stages.values().map(|time| time.as_f64().unwrap()).sum();
        let total = frame["seconds"].as_f64().unwrap();
        assert!((sum / total - 1.0).abs() < 1e-6, "{frame}");
        for stage in ["decode", "prepare", "step", "depth_head"] {
            assert!(stages[stage].as_f64().unwrap() > 0.0, "{frame}");
        }
    }
    assert!(report["frames_per_second"]["90"].as_f64().unwrap() > 0.0);
    let text = with(&[]);
    assert!(
        text.contains("depth_head") && text.contains("at 50 %"),
        "{text}"
    );
    let short = tool.fail(&[
        "profile", "--config", &config, "--height", "42", "--width", "84", "--frames", "2",
    ]);
    assert!(short.contains("--frames"), "{short}");
}
