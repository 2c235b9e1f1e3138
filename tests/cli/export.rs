use serde_json::Value;

use crate::tool::{Tool, files};

#[test]
fn exports_are_equal_to_the_byte() {
    let tool = Tool::new();
    tool.export_golden("first");
    tool.export_golden("second");
    let first = files(&tool.path("first"));
    assert_eq!(first, files(&tool.path("second")));
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "depth.onnx",
            "manifest.yaml",
            "points.onnx",
            "step.onnx",
            "weights.data"
        ]
    );
}

#[test]
fn info_describes_the_installation_and_a_model() {
    let tool = Tool::new();
    tool.export_golden("model");
    let info: Value =
        serde_json::from_str(&tool.run(&["info", "--json", "--model", "model"])).unwrap();
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        info["model"]["size"],
        serde_json::json!({"height": 42, "width": 84})
    );
    assert_eq!(info["providers"][0]["name"], "cpu");
    assert!(
        info["onnxruntime"]["library"]["path"]
            .as_str()
            .unwrap()
            .contains("onnxruntime")
    );
    assert!(tool.run(&["info"]).contains("provider cpu: usable"));
}
