//! Memory: what is planned is what is measured.

use serde_json::Value;

use crate::tool::Tool;

fn mebibytes(bytes: &Value) -> f64 {
    bytes.as_f64().unwrap() / f64::from(1 << 20)
}

/// A network of the demo's size at the resolution of the official one.
#[test]
fn a_plan_is_within_five_percent_of_what_is_measured() {
    let tool = Tool::new();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/models/demo/config.json");
    let shape = [
        "--config",
        config,
        "--height",
        "378",
        "--width",
        "518",
        "--num-scale-frames",
        "4",
    ];
    let output = tool.path("memory.csv");
    let measure = [
        &["memory-benchmark"][..],
        &shape,
        &["--frame-counts", "5", "4", "--output", "memory.csv"],
    ];
    tool.run(&measure.concat());
    let text = std::fs::read_to_string(&output).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0][..2], ["frames", "status"]);
    assert_eq!(
        rows[1][..8],
        ["4", "ok", "378", "518", "378", "518", "cpu", "fp32"]
    );
    assert!(image::open(output.with_extension("png")).unwrap().width() > 500);

    for row in &rows[1..] {
        let plan = [&["plan"][..], &shape, &["--frames", row[0], "--json"]].concat();
        let plan: Value = serde_json::from_str(&tool.run(&plan)).unwrap();
        let measured: f64 = row[9].parse::<f64>().unwrap() * 1024.0;
        let planned = mebibytes(&plan["used_bytes"]);
        println!(
            "{} frames: {planned:.1} MiB planned, {measured:.1} measured",
            row[0]
        );
        assert!(
            (planned / measured - 1.0).abs() < 0.05,
            "{planned} {measured}"
        );
        let caches: f64 = plan["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|item| {
                let name = item["name"].as_str().unwrap();
                name.starts_with("tokens") || name.starts_with("camera")
            })
            .map(|item| mebibytes(&item["reserved_bytes"]))
            .sum();
        let measured: f64 = row[11].parse::<f64>().unwrap() * 1024.0;
        assert!((caches - measured).abs() < 0.2, "{caches} {measured}");
    }
}

#[test]
fn the_official_network_is_planned_for_in_no_time_and_refused_where_it_does_not_fit() {
    let tool = Tool::new();
    let size = ["plan", "--height", "378", "--width", "518"];
    let text = tool.run(&[&size[..], &["--frames", "3000"]].concat());
    assert!(
        text.contains("weights") && text.contains("3000 stored"),
        "{text}"
    );
    let refused = tool.fail(&[&size[..], &["--vram", "12GiB"]].concat());
    assert!(
        refused.contains("kv_cache_sliding_window") && refused.contains("would fit"),
        "{refused}"
    );
    let fitted = tool.run(&[&size[..], &["--vram", "12GiB", "--memory-fit", "--json"]].concat());
    let fitted: Value = serde_json::from_str(&fitted).unwrap();
    assert!(mebibytes(&fitted["reserved_bytes"]) <= 12.0 * 1024.0);
    assert!(fitted["history_frames"].as_u64().unwrap() >= 16);
}

#[test]
fn sizes_that_are_no_multiple_of_a_patch_are_adjusted_or_refused() {
    let tool = Tool::new();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/config.json");
    let run = |adjust: &str| {
        let arguments = [
            "memory-benchmark",
            "--config",
            config,
            "--height",
            "50",
            "--width",
            "60",
            "--frame-counts",
            "3",
            "--adjust-to-patch",
            adjust,
            "--output",
            "m.csv",
        ];
        tool.try_run(&arguments).status.success().then(|| {
            let text = std::fs::read_to_string(tool.path("m.csv")).unwrap();
            let row: Vec<String> = text
                .lines()
                .nth(1)
                .unwrap()
                .split(',')
                .map(str::to_owned)
                .collect();
            row[2..6].join(" ")
        })
    };
    assert_eq!(run("floor").as_deref(), Some("50 60 42 56"));
    assert_eq!(run("ceil").as_deref(), Some("50 60 56 70"));
    assert_eq!(run("error"), None);
}
