//! Models whose files are not those that were exported.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::tool::{Tool, golden};

#[test]
fn damage_is_found_before_the_first_frame() {
    let tool = Tool::new();
    tool.export_golden("model");
    let frames = golden("frames_A");
    let run = [
        "run", "--images", &frames, "--model", "model", "--output", "out",
    ];

    let weights = tool.path("model/weights.data");
    let mut bytes = fs::read(&weights).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&weights, &bytes).unwrap();
    let said = tool.fail(&run);
    assert!(said.contains("weights.data differ"), "{said}");
    tool.run(&[&run[..], &["--no-verify"]].concat());

    bytes[middle] ^= 1;
    fs::write(&weights, &bytes).unwrap();
    let manifest = tool.path("model/manifest.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let edited = text.replacen("height: 42", "height: 56", 1);
    assert_ne!(text, edited);
    fs::write(&manifest, edited).unwrap();
    let said = tool.fail(&run);
    assert!(
        said.contains("size is 56x84") && said.contains("step.onnx"),
        "{said}"
    );
}

#[test]
fn an_export_ends_at_once_when_interrupted() {
    let tool = Tool::new();
    let run = [
        "run",
        "--images",
        &golden("frames_A"),
        "--checkpoint",
        "pipe",
        "--output",
        "out",
    ];
    // A checkpoint that never comes keeps the tool where it reads it.
    assert!(
        Command::new("mkfifo")
            .arg(tool.path("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let mut child = tool.command(&run).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(
        child.try_wait().unwrap().is_none(),
        "it waits for the checkpoint"
    );
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    for _ in 0..100 {
        if let Some(status) = child.try_wait().unwrap() {
            return assert!(!status.success());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    panic!("the signal was not heard");
}
