//! Streams in windows: the reference implementation's results, and a live stream that never takes anything back.

use std::path::Path;

use crate::common::{Reference, export_golden, frames, golden, golden_config, largest_error};
use image::RgbImage;
use lingbot_map::camera::{Frame, Stamp};
use lingbot_map::mapper::{Mapper, MapperConfig, MapperState};
use lingbot_map::network::manifest::Manifest;
use lingbot_map::runtime::RuntimeOptions;
use lingbot_map::stream::{
    FrameType, GctStream, KeyframeInterval, OnCollapse, Prediction, StreamConfig, WindowAlignment,
    WindowConfig, WindowedStream,
};
use ndarray::{Axis, s};

fn stream_config(interval: usize) -> StreamConfig {
    StreamConfig {
        num_scale_frames: 3,
        kv_cache_sliding_window: golden_config().window,
        keyframe_interval: KeyframeInterval::Every(interval),
        ..StreamConfig::default()
    }
}

fn windows(
    window_size: usize,
    overlap_keyframes: Option<usize>,
    frames: Option<usize>,
) -> WindowConfig {
    WindowConfig {
        window_size,
        overlap_keyframes,
        overlap_size: None,
        alignment: WindowAlignment::Reference,
        frames,
    }
}

fn open(model: &Path, interval: usize, windows: WindowConfig) -> WindowedStream {
    let options = RuntimeOptions::default();
    WindowedStream::open(
        model,
        &options,
        stream_config(interval),
        Some(windows),
        OnCollapse::GoOn,
    )
    .unwrap()
}

/// Pose encodings may differ by the quaternion's sign and length.
fn like(found: &[f32; 9], expected: &[f32]) -> [f32; 9] {
    let product: f32 = (3..7).map(|i| found[i] * expected[i]).sum();
    let length = found[3..7]
        .iter()
        .map(|value| value * value)
        .sum::<f32>()
        .sqrt();
    let mut pose = *found;
    for value in &mut pose[3..7] {
        *value *= product.signum() / length;
    }
    pose
}

fn check(name: &str, interval: usize, config: WindowConfig) {
    let model = export_golden(42, 84);
    let mut stream = open(model.path(), interval, config);
    let mut predictions = Vec::new();
    for image in &frames(&golden().join("frames_long"), 40) {
        predictions.extend(stream.push(image).unwrap());
    }
    predictions.extend(stream.finish().unwrap());
    assert_eq!(predictions.len(), 40);

    let mut reference = Reference::open(name);
    let poses = reference.array("pose_enc");
    let (depths, confidences) = (reference.array("depth"), reference.array("depth_conf"));
    let (mut pose_error, mut depth_error, mut conf_error) = (0.0f32, 0.0f32, 0.0f32);
    for (index, found) in predictions.iter().enumerate() {
        assert_eq!(found.index, index as u64);
        let pose = poses.index_axis(Axis(0), index);
        let expected: Vec<f32> = pose.iter().copied().collect();
        pose_error = pose_error.max(largest_error(&like(&found.pose_enc, &expected), &expected));
        let depth = depths.index_axis(Axis(0), index);
        depth_error = depth_error.max(largest_error(&found.depth, depth.iter()));
        let confidence = confidences.index_axis(Axis(0), index);
        conf_error = conf_error.max(largest_error(&found.depth_conf, confidence.iter()));
    }
    println!(
        "{name}: poses {pose_error:.1e}, depth {depth_error:.1e}, confidence {conf_error:.1e}"
    );
    assert!(pose_error <= 1e-4 && depth_error <= 1e-4 && conf_error <= 1e-4);

    let scales = reference.array("chunk_scales");
    let transforms = reference.array("chunk_transforms");
    assert_eq!(stream.windows(), scales.len());
    for (window, scale) in scales.iter().enumerate() {
        let member = predictions.iter().find(|p| p.window == window).unwrap();
        let found = member.world_from_window;
        assert!(
            (found.scaling() - f64::from(*scale)).abs() < 1e-4,
            "scale of {window}"
        );
        let matrix = found.isometry.to_homogeneous().map(|value| value as f32);
        let expected = transforms.slice(s![window, .., ..]);
        // nalgebra's matrices run down the columns.
        let error = largest_error(matrix.transpose().iter(), expected.iter());
        assert!(
            error < 1e-4,
            "window {window} is placed wrongly by {error:e}"
        );
    }
}

fn frame_types(name: &str, interval: usize, config: WindowConfig) -> (Vec<u8>, Vec<u8>) {
    let file = std::fs::File::open(golden().join(name)).unwrap();
    let expected: ndarray::Array1<u8> = ndarray_npy::NpzReader::new(file)
        .unwrap()
        .by_name("frame_type")
        .unwrap();
    let model = export_golden(42, 84);
    let mut stream = open(model.path(), interval, config);
    let mut types = Vec::new();
    for image in &frames(&golden().join("frames_long"), 40) {
        types.extend(
            stream
                .push(image)
                .unwrap()
                .iter()
                .map(|p| p.frame_type as u8),
        );
    }
    types.extend(stream.finish().unwrap().iter().map(|p| p.frame_type as u8));
    (types, expected.to_vec())
}

#[test]
fn windows_with_every_frame_a_keyframe() {
    check("windowed_kf1.npz", 1, windows(8, Some(3), Some(40)));
}

#[test]
fn windows_with_every_second_frame_a_keyframe() {
    let config = windows(8, Some(2), Some(40));
    check("windowed_kf2.npz", 2, config);
    let (found, expected) = frame_types("windowed_kf2.npz", 2, config);
    assert_eq!(found, expected);
}

#[test]
fn windows_that_overlap_by_the_scale_frames() {
    check(
        "windowed_default_overlap.npz",
        1,
        windows(10, None, Some(40)),
    );
}

#[test]
fn a_stream_that_is_shorter_or_longer_than_planned_loses_no_frame() {
    let model = export_golden(42, 84);
    let images = frames(&golden().join("frames_long"), 40);
    for (count, overlap) in [(2, 3), (7, 3), (8, 3), (10, 3), (24, 5), (40, 3)] {
        let mut stream = open(model.path(), 1, windows(8, Some(overlap), Some(24)));
        let mut indices = Vec::new();
        for image in &images[..count] {
            indices.extend(stream.push(image).unwrap().iter().map(|p| p.index));
        }
        indices.extend(stream.finish().unwrap().iter().map(|p| p.index));
        assert!(indices.into_iter().eq(0..count as u64), "{count} frames");
    }
}

fn live(model: &Path, images: &[RgbImage], window_size: usize) -> (Vec<Prediction>, Vec<usize>) {
    let mut stream = open(model, 2, windows(window_size, None, None));
    let (mut predictions, mut tokens) = (Vec::new(), Vec::new());
    for (index, image) in images.iter().enumerate() {
        let new = stream.push(image).unwrap();
        let expected = match index {
            0 | 1 => 0,
            2 => 3,
            _ => 1,
        };
        assert_eq!(new.len(), expected, "frame {index}");
        predictions.extend(new);
        tokens.push(stream.token_cache().valid);
    }
    assert!(stream.finish().unwrap().is_empty());
    (predictions, tokens)
}

#[test]
fn a_live_stream_changes_windows_with_one_scale_call_and_takes_nothing_back() {
    let model = export_golden(42, 84);
    let images = frames(&golden().join("frames_long"), 40);
    let (predictions, tokens) = live(model.path(), &images, 6);
    assert_eq!(predictions.len(), 40);
    // Three scale frames, then every second frame: the sixth stored frame is frame 7.
    let changes: Vec<usize> = (1..40)
        .filter(|&i| predictions[i].window != predictions[i - 1].window)
        .collect();
    assert_eq!(changes, [8, 13, 18, 23, 28, 33, 38]);
    for &change in &changes {
        // The three frames of the scale call and the new one, which is the first streamed and so stored.
        assert_eq!(tokens[change], 4 * 24);
        assert_eq!(predictions[change].frame_type, FrameType::Keyframe);
    }
    for (index, prediction) in predictions.iter().enumerate() {
        assert_eq!(prediction.index, index as u64);
    }
    // Until the first change it is the plain stream.
    let mut plain =
        GctStream::open(model.path(), &RuntimeOptions::default(), stream_config(2)).unwrap();
    let mut expected = Vec::new();
    for image in &images[..8] {
        expected.extend(plain.push(image).unwrap());
    }
    for (a, b) in predictions.iter().zip(&expected) {
        assert_eq!(a.pose_enc, b.pose_enc);
    }
    // The new window starts as a stream of its three frames does, moved to where the last of them was.
    plain.reset();
    let mut fresh = Vec::new();
    for index in [3, 5, 7, 8] {
        fresh.extend(plain.push(&images[index]).unwrap());
    }
    let moved = predictions[8].world_from_window;
    let [x, y, z] = std::array::from_fn(|i| f64::from(fresh[2].pose_enc[i]));
    let [u, v, w] = std::array::from_fn(|i| f64::from(predictions[7].pose_enc[i]));
    let error = moved * nalgebra::Point3::new(x, y, z) - nalgebra::Point3::new(u, v, w);
    assert!(error.norm() < 1e-5, "{error}");
    let scale = moved.scaling() as f32;
    let expected: Vec<f32> = fresh[3].depth.iter().map(|depth| depth * scale).collect();
    assert!(largest_error(&predictions[8].depth, &expected) < 1e-4);
}

#[test]
fn a_mapper_maps_windows_and_says_so() {
    let model = export_golden(42, 84);
    let manifest = Manifest::read(model.path()).unwrap();
    let images = frames(&golden().join("frames_long"), 20);
    for (frames, windows_expected) in [(Some(20), 4), (None, 4)] {
        let config = MapperConfig {
            stream: stream_config(1),
            windows: Some(windows(8, None, frames)),
            ..MapperConfig::of_model(&manifest)
        };
        let mut mapper = Mapper::open(model.path(), &RuntimeOptions::default(), config).unwrap();
        let mut updates = Vec::new();
        for (index, image) in images.iter().enumerate() {
            let frame = Frame {
                stamp: Stamp(index as i64),
                image: image.clone(),
            };
            updates.extend(mapper.push(frame).unwrap());
        }
        updates.extend(mapper.finish().unwrap());
        let stamps: Vec<i64> = updates.iter().map(|update| update.stamp.0).collect();
        assert_eq!(stamps, (0..20).collect::<Vec<_>>());
        let status = mapper.status();
        assert_eq!(
            (status.frames_mapped, status.windows),
            (20, windows_expected)
        );
        assert_eq!(status.state, MapperState::Mapping);
        mapper.reset();
        assert_eq!(mapper.status().windows, 1);
    }
}
