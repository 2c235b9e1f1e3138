use ndarray::{Array1, Array2, Array3, Array4, Axis};

use crate::tool::{Tool, golden, largest_difference, npz};

/// Maps golden frames and compares the saved predictions with those of the reference.
fn golden_case(case: &str, interval: &str, frame_types: &[u8]) {
    let tool = Tool::new();
    tool.export_golden("model");
    let (images, output) = (golden("frames_A"), tool.path("out"));
    let predictions = tool.path("predictions.npz");
    tool.run(&[
        "run",
        "--images",
        &images,
        "--model",
        "model",
        "--output",
        &output.to_string_lossy(),
        "--keyframe-interval",
        interval,
        "--save-predictions",
        &predictions.to_string_lossy(),
    ]);
    let (mut found, mut expected) = (npz(&predictions), npz(golden(&format!("{case}.npz"))));
    let types: Array1<u8> = found.by_name("frame_type").unwrap();
    assert_eq!(types.to_vec(), frame_types);
    let pose: [Array2<f32>; 2] = [
        found.by_name("pose_enc").unwrap(),
        expected.by_name("pose_enc").unwrap(),
    ];
    assert!(largest_difference(&pose[0], &pose[1]) <= 2e-5);
    let depth: Array4<f32> = expected.by_name("depth").unwrap();
    let depth = depth.remove_axis(Axis(3));
    let found_depth: Array3<f32> = found.by_name("depth").unwrap();
    assert!(largest_difference(&found_depth, &depth) <= 1e-5);
    for (name, limit) in [("depth_conf", 2e-5), ("world_points_conf", 2e-5)] {
        let both: [Array3<f32>; 2] = [
            found.by_name(name).unwrap(),
            expected.by_name(name).unwrap(),
        ];
        assert!(largest_difference(&both[0], &both[1]) <= limit, "{name}");
    }
    let points: [Array4<f32>; 2] = [
        found.by_name("world_points").unwrap(),
        expected.by_name("world_points").unwrap(),
    ];
    assert!(largest_difference(&points[0], &points[1]) <= 5e-5);
}

#[test]
fn every_frame_a_keyframe_matches_the_reference() {
    let mut types = [1; 14];
    types[..3].fill(0);
    golden_case("kf1", "1", &types);
}

#[test]
fn every_other_frame_a_keyframe_matches_the_reference() {
    golden_case("kf2", "2", &[0, 0, 0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1]);
}
