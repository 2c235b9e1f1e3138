//! Which frames are stored, and that a frame stored afterwards is as good as one stored at once.

use crate::common::{Reference, export_golden, frames, golden, largest_error, small_stream};
use lingbot_map::camera::NetworkSize;
use lingbot_map::geometry::{CameraView, decode_pose, mean_flow};
use lingbot_map::network::grid::PatchGrid;
use lingbot_map::network::manifest::Manifest;
use lingbot_map::runtime::{Library, RuntimeOptions};
use lingbot_map::stream::{
    FrameRole, FrameType, GctStream, KeyframeInterval, Prediction, StepRunner, StreamConfig,
};
use ndarray::{Array2, ArrayView1, Axis, Ix2, s};
use ndarray_npy::NpzReader;

fn view(pose_enc: &[f32; 9]) -> CameraView {
    let size = NetworkSize::new(42, 84).unwrap();
    let (world_from_camera, intrinsics) = decode_pose(pose_enc, size).unwrap();
    CameraView {
        world_from_camera,
        intrinsics,
    }
}

fn pose(row: ArrayView1<f32>) -> [f32; 9] {
    std::array::from_fn(|i| row[i])
}

#[test]
fn flow_is_the_references() {
    let file = std::fs::File::open(golden().join("flow.npz")).unwrap();
    let expected: Array2<f64> = NpzReader::new(file)
        .unwrap()
        .by_name("current_reference_flow")
        .unwrap();
    let mut reference = Reference::open("kf1.npz");
    let poses = reference.array("pose_enc");
    let poses = poses.view().into_dimensionality::<Ix2>().unwrap();
    let depths = reference.array("depth");
    let (mut worst, mut nonzero) = (0.0f64, 0);
    for row in expected.outer_iter() {
        let (current, other) = (row[0] as usize, row[1] as usize);
        let depth = depths.index_axis(Axis(0), current);
        let flow = mean_flow(
            depth.into_dimensionality::<Ix2>().unwrap(),
            &view(&pose(poses.row(current))),
            &view(&pose(poses.row(other))),
        );
        let error = (flow - row[2]).abs();
        assert!(
            error <= 1e-3 * row[2] + 1e-3,
            "frame {current} against {other}: {flow}, expected {}",
            row[2]
        );
        worst = worst.max(error / (row[2] + 1.0));
        nonzero += usize::from(row[2] > 1.0);
    }
    println!(
        "{} flows, relative error at most {worst:.1e}",
        expected.nrows()
    );
    assert_eq!((expected.nrows(), nonzero), (70, 52));
}

fn runner(model: &std::path::Path, config: &StreamConfig) -> StepRunner {
    StepRunner::open(
        &Library::load(None).unwrap(),
        model,
        &Manifest::read(model).unwrap(),
        &RuntimeOptions::default(),
        config,
    )
    .unwrap()
}

#[test]
fn a_promoted_frame_is_a_keyframe_for_all_that_follow() {
    let model = export_golden(42, 84);
    let tokens = PatchGrid::from(NetworkSize::new(42, 84).unwrap()).tokens();
    let images = frames(&golden().join("frames_A"), 14);
    let scale: Vec<u8> = images[..3]
        .iter()
        .flat_map(|image| image.to_vec())
        .collect();
    let (mut promoted, mut stored) = (
        runner(model.path(), &small_stream()),
        runner(model.path(), &small_stream()),
    );
    assert!(!promoted.promote(), "nothing has run");
    for runner in [&mut promoted, &mut stored] {
        runner.scale_call(&scale, 3, Vec::new()).unwrap();
        assert!(!runner.promote(), "scale frames are stored already");
    }
    // Until the window is full a frame sees the same either way, so all that follows is the same to the last bit.
    for (index, image) in images[3..7].iter().enumerate() {
        let image = image.as_raw();
        stored.step(image, FrameRole::Keyframe, Vec::new()).unwrap();
        if index % 2 == 0 {
            promoted.step(image, FrameRole::Other, Vec::new()).unwrap();
            assert!(promoted.promote());
            assert!(!promoted.promote(), "only once");
        } else {
            promoted
                .step(image, FrameRole::Keyframe, Vec::new())
                .unwrap();
        }
        assert_eq!(promoted.pose(0), stored.pose(0), "frame {index}");
        assert_eq!(promoted.token_cache(), stored.token_cache());
        assert_eq!(promoted.camera_cache(), stored.camera_cache());
    }
    // From then on a keyframe loses sight of the oldest frame before it runs and a promoted one afterwards; it is kept as
    // it ran, in the oldest frame's place, whose special tokens stay.
    for (index, image) in images[7..14].iter().enumerate() {
        let valid = promoted.token_cache().valid;
        promoted
            .step(image.as_raw(), FrameRole::Other, Vec::new())
            .unwrap();
        let slot = (3 + index % 4) * tokens;
        let names = ["global_key_0", "global_value_4"];
        let row = |runner: &StepRunner, name: &str, row: usize| {
            runner.cache_row(name, row).unwrap().to_vec()
        };
        let block = |runner: &StepRunner, name: &str, start: usize, rows: usize| -> Vec<Vec<f32>> {
            (start..start + rows)
                .map(|i| row(runner, name, i))
                .collect()
        };
        let ran = names.map(|name| block(&promoted, name, valid, tokens));
        let oldest = names.map(|name| block(&promoted, name, slot, 6));
        let camera = row(&promoted, "camera_key_3_1", 7 + index);
        assert!(promoted.promote());
        for (i, name) in names.into_iter().enumerate() {
            assert_eq!(block(&promoted, name, slot, tokens), ran[i], "{name}");
            assert_eq!(block(&promoted, name, valid, 6), oldest[i], "{name}");
        }
        assert_eq!(row(&promoted, "camera_key_3_1", 7 + index), camera);
        assert_eq!(promoted.token_cache().valid, 7 * tokens + 6 * (index + 1));
        assert_eq!(promoted.camera_cache().valid, 8 + index);
    }
}

fn predict(config: StreamConfig) -> Vec<Prediction> {
    let model = export_golden(42, 84);
    let mut stream = GctStream::open(model.path(), &RuntimeOptions::default(), config).unwrap();
    let images = frames(&golden().join("frames_long"), 24);
    let mut predictions = Vec::new();
    for image in &images {
        predictions.extend(stream.push(image).unwrap());
    }
    let types: Vec<u8> = predictions.iter().map(|p| p.frame_type as u8).collect();
    println!("{config:?}: {types:?}");
    let stored = types.iter().filter(|&&kind| kind < 2).count();
    assert_eq!(stream.camera_cache().valid, stored);
    assert_eq!(
        stream.token_cache().valid,
        24 * stored.min(7) + 6 * stored.saturating_sub(7)
    );
    predictions
}

#[test]
fn frames_are_stored_as_their_own_flow_says() {
    let threshold = 150.0;
    let predictions = predict(StreamConfig {
        flow_threshold: Some(threshold),
        max_non_keyframe_gap: Some(5),
        ..small_stream()
    });
    let (mut reference, mut since) = (2, 1);
    let mut by_flow = 0;
    for index in 3..24 {
        let depth = predictions[index].depth.slice(s![.., ..]);
        let flow = mean_flow(
            depth,
            &view(&predictions[index].pose_enc),
            &view(&predictions[reference].pose_enc),
        );
        let expected = index == 3 || flow > threshold || since >= 5;
        by_flow += usize::from(flow > threshold);
        let stored = predictions[index].frame_type == FrameType::Keyframe;
        assert_eq!(stored, expected, "frame {index} moved by {flow}");
        since += 1;
        if stored {
            (reference, since) = (index, 1);
        }
    }
    assert!((1..21).contains(&by_flow), "{by_flow} decide nothing");
}

#[test]
fn frames_that_are_not_stored_leave_no_trace() {
    let config = StreamConfig {
        flow_threshold: Some(1e9),
        max_non_keyframe_gap: Some(4),
        ..small_stream()
    };
    let by_gap = predict(config);
    let by_interval = predict(StreamConfig {
        keyframe_interval: KeyframeInterval::Every(4),
        ..small_stream()
    });
    for (a, b) in by_gap.iter().zip(&by_interval) {
        assert_eq!(a.frame_type, b.frame_type);
    }
    // The window is not full before frame 15: until then promotion and storing at once are the same.
    let poses = |predictions: &[Prediction]| -> Vec<f32> {
        predictions[..16].iter().flat_map(|p| p.pose_enc).collect()
    };
    assert_eq!(largest_error(&poses(&by_gap), &poses(&by_interval)), 0.0);
}
