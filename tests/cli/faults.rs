use std::fs;

use crate::tool::{Tool, demo, golden, project};

#[test]
fn faults_are_named() {
    let tool = Tool::new();
    tool.export_golden("model");
    fs::create_dir(tool.path("empty")).unwrap();
    let (frames, weights, config) = (
        golden("frames_A"),
        golden("weights.safetensors"),
        golden("config.json"),
    );
    let (hostile, legacy) = (
        project("tests/data/hostile.pt"),
        project("tests/data/legacy.pt"),
    );
    let (linear, other) = (project("tests/data/linear.pt"), demo("config.json"));
    let export = |checkpoint: &str, extra: &[&str]| {
        tool.fail(
            &[
                &["export", "--checkpoint", checkpoint, "--output", "out"],
                extra,
            ]
            .concat(),
        )
    };
    let size = ["--height", "42", "--width", "84"];
    let golden_config = ["--config", &config];
    let run = |extra: &[&str]| tool.fail(&[&["run", "--output", "out"], extra].concat());
    let cases = [
        (export("absent.pt", &size), "absent.pt"),
        (export(&hostile, &size), "posix.system"),
        (export(&legacy, &size), "before version 1.6"),
        (export(&linear, &size), "aggregator."),
        (
            export(&linear, &[&size[..], &golden_config].concat()),
            "missing (383)",
        ),
        (
            export(&weights, &[&size[..], &["--config", &other]].concat()),
            "found [1, 2, 1, 32], expected [1, 2, 1, 128]",
        ),
        (
            export(
                &weights,
                &[&["--height", "43", "--width", "84"], &golden_config[..]].concat(),
            ),
            "84x43",
        ),
        (export(&weights, &["--height", "42"]), "--width"),
        (export(&weights, &golden_config), "height and width"),
        (run(&["--images", "absent", "--model", "model"]), "absent"),
        (run(&["--images", "empty", "--model", "model"]), "empty"),
        (
            run(&["--images", &frames, "--model", "empty"]),
            "manifest.yaml",
        ),
        (run(&["--images", &frames]), "--model"),
        (
            run(&[
                "--images",
                &frames,
                "--model",
                "model",
                "--checkpoint",
                &weights,
            ]),
            "cannot be used with",
        ),
        (
            run(&[
                "--images", &frames, "--model", "model", "--height", "56", "--width", "84",
            ]),
            "56x84",
        ),
        (
            run(&[
                "--images",
                &frames,
                "--model",
                "model",
                "--camera-num-iterations",
                "2",
            ]),
            "camera iterations",
        ),
        (
            run(&["--images", &frames, "--model", "model", "--provider", "gpu"]),
            "tensorrt",
        ),
        (
            run(&[
                "--images",
                &frames,
                "--model",
                "model",
                "--keyframe-interval",
                "0",
            ]),
            "--keyframe-interval",
        ),
        (
            run(&[
                "--images",
                &frames,
                "--model",
                "model",
                "--onnxruntime",
                "absent.so",
            ]),
            "absent.so",
        ),
        (tool.fail(&["info", "--model", "empty"]), "manifest.yaml"),
    ];
    for (text, expected) in cases {
        assert!(text.contains(expected), "expected {expected}: {text}");
    }
    assert!(!tool.path("out").exists());
    assert!(!tool.path("hostile_pickle_was_run").exists());
}
