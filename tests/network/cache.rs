//! The caches of a running stream: written in place, growing by moves, the same results all the while.

use crate::common::{export_golden, frames, golden, largest_error};
use lingbot_map::network::grid::PatchGrid;
use lingbot_map::network::manifest::Manifest;
use lingbot_map::runtime::{Library, RuntimeOptions, forced_copies};
use lingbot_map::stream::{FrameRole, GctStream, StepRunner, StreamConfig};

fn config(window: usize) -> StreamConfig {
    StreamConfig {
        num_scale_frames: 3,
        kv_cache_sliding_window: window,
        ..StreamConfig::default()
    }
}

#[test]
fn keys_and_values_appear_in_the_arenas_rows_and_nowhere_else() {
    let model = export_golden(42, 84);
    let manifest = Manifest::read(model.path()).unwrap();
    let library = Library::load(None).unwrap();
    let mut runner = StepRunner::open(
        &library,
        model.path(),
        &manifest,
        &RuntimeOptions::default(),
        &config(4),
    )
    .unwrap();
    let tokens = PatchGrid::from(manifest.size).tokens();
    let images = frames(&golden().join("frames_A"), 12);
    let scale: Vec<u8> = images[..3]
        .iter()
        .flat_map(|image| image.as_raw())
        .copied()
        .collect();
    let rows = |runner: &StepRunner, name: &str, range: std::ops::Range<usize>| -> Vec<f32> {
        range
            .flat_map(|row| runner.cache_row(name, row).unwrap().to_vec())
            .collect()
    };
    let is_zero = |values: &[f32]| values.iter().all(|&v| v == 0.0);
    let names = ["global_key_0", "global_value_4"];

    runner.scale_call(&scale, 3, Vec::new()).unwrap();
    for name in names {
        for row in 0..3 * tokens {
            assert!(
                !is_zero(runner.cache_row(name, row).unwrap()),
                "{name} row {row} was not written"
            );
        }
        assert!(
            is_zero(&rows(&runner, name, 3 * tokens..5 * tokens)),
            "{name} was written past its rows"
        );
    }
    assert!(!is_zero(runner.cache_row("camera_value_3_1", 2).unwrap()));
    assert!(is_zero(runner.cache_row("camera_value_3_1", 3).unwrap()));

    let before = names.map(|name| rows(&runner, name, 0..3 * tokens));
    for image in &images[3..7] {
        runner
            .step(image.as_raw(), FrameRole::Keyframe, Vec::new())
            .unwrap();
    }
    // The window is full: the next frame takes the place of the first of it, whose special tokens move to the tail.
    let oldest = names.map(|name| rows(&runner, name, 3 * tokens..3 * tokens + 6));
    let second = names.map(|name| rows(&runner, name, 4 * tokens..5 * tokens));
    runner
        .step(images[7].as_raw(), FrameRole::Keyframe, Vec::new())
        .unwrap();
    for (i, name) in names.into_iter().enumerate() {
        assert_eq!(
            rows(&runner, name, 0..3 * tokens),
            before[i],
            "scale frames never change"
        );
        assert_eq!(
            rows(&runner, name, 7 * tokens..7 * tokens + 6),
            oldest[i],
            "evicted special tokens"
        );
        assert_ne!(
            rows(&runner, name, 3 * tokens..3 * tokens + 6),
            oldest[i],
            "the slot has a new frame"
        );
        assert_eq!(
            rows(&runner, name, 4 * tokens..5 * tokens),
            second[i],
            "other slots stay"
        );
    }

    // A frame that is not stored is written to the spare rows and leaves the valid ones as they are.
    let valid = runner.token_cache().valid;
    let kept = names.map(|name| rows(&runner, name, 0..valid));
    runner
        .step(images[8].as_raw(), FrameRole::Other, Vec::new())
        .unwrap();
    assert_eq!(runner.token_cache().valid, valid);
    for (i, name) in names.into_iter().enumerate() {
        assert_eq!(rows(&runner, name, 0..valid), kept[i]);
        assert!(!is_zero(&rows(&runner, name, valid..valid + tokens)));
    }
    assert_eq!(
        forced_copies(),
        0,
        "ONNX Runtime copied a cache instead of writing in place"
    );
}

#[test]
fn a_long_stream_moves_its_caches_and_repeats_exactly_after_a_reset() {
    let model = export_golden(42, 84);
    let images = frames(&golden().join("frames_long"), 40);
    let mut stream = GctStream::open(model.path(), &RuntimeOptions::default(), config(2)).unwrap();
    let first_capacity = stream.token_cache().capacity;
    let mut run = |count: usize| -> Vec<[f32; 9]> {
        stream.reset();
        let mut poses = Vec::new();
        for index in 0..count {
            let predictions = stream.push(&images[index % images.len()]).unwrap();
            poses.extend(predictions.iter().map(|p| p.pose_enc));
        }
        let moves = (stream.token_cache().moves, stream.camera_cache().moves);
        println!(
            "{count} frames: {:?}, {:?}",
            stream.token_cache(),
            stream.camera_cache()
        );
        assert_eq!(stream.token_cache().valid, 5 * 24 + 6 * (count - 5));
        assert!(
            moves.0 > 0 && moves.1 > 0,
            "{count} frames fit the first segment: {moves:?}"
        );
        poses
    };
    let grown = run(150);
    // The second run finds the large caches of the first, and must not see what they held.
    let again = run(150);
    assert_eq!(grown.len(), 150);
    assert_eq!(
        largest_error(grown.iter().flatten(), again.iter().flatten()),
        0.0
    );
    assert!(stream.token_cache().capacity > first_capacity);
    assert_eq!(forced_copies(), 0);
}

#[test]
fn a_stream_that_ends_early_maps_the_scale_frames_it_has() {
    let model = export_golden(42, 84);
    let images = frames(&golden().join("frames_A"), 3);
    let mut stream = GctStream::open(
        model.path(),
        &RuntimeOptions::default(),
        StreamConfig {
            num_scale_frames: 8,
            ..config(4)
        },
    )
    .unwrap();
    assert!(stream.push(&images[0]).unwrap().is_empty());
    assert!(stream.push(&images[1]).unwrap().is_empty());
    assert_eq!(stream.waiting_frames(), 2);
    assert_eq!(stream.finish().unwrap().len(), 2);
    assert!(stream.finish().unwrap().is_empty());
    assert_eq!(stream.push(&images[2]).unwrap()[0].index, 2);
    assert!(stream.push(&image::RgbImage::new(84, 56)).is_err());
}
