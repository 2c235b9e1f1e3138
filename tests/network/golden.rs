//! Streams the tiny network of tests/golden and compares every output with the reference implementation's.

use crate::common::{Reference, export_golden, frames, golden, golden_config, largest_error};
use lingbot_map::runtime::{RuntimeOptions, forced_copies};
use lingbot_map::stream::{FrameType, GctStream, KeyframeInterval, Prediction, StreamConfig};
use ndarray::Axis;

struct Case {
    name: &'static str,
    frames: &'static str,
    size: (u32, u32),
    count: usize,
    num_scale_frames: usize,
    keyframe_interval: usize,
}

impl Case {
    fn predict(&self) -> Vec<Prediction> {
        let (height, width) = self.size;
        let model = export_golden(height, width);
        let config = StreamConfig {
            num_scale_frames: self.num_scale_frames,
            // The reference ran all cases with the caches of one configuration.
            kv_cache_scale_frames: Some(golden_config().scale_frames),
            kv_cache_sliding_window: golden_config().window,
            keyframe_interval: KeyframeInterval::Every(self.keyframe_interval),
            ..StreamConfig::default()
        };
        let mut stream = GctStream::open(model.path(), &RuntimeOptions::default(), config).unwrap();
        let mut predictions = Vec::new();
        for frame in frames(&golden().join(self.frames), self.count) {
            predictions.extend(stream.push(&frame).unwrap());
        }
        predictions
    }

    /// The largest absolute errors that are allowed are those of float32 arithmetic in another order.
    fn check(&self) {
        let predictions = self.predict();
        assert_eq!(predictions.len(), self.count);
        let mut reference = Reference::open(&format!("{}.npz", self.name));
        let mut check = |name: &str, bound: f32, values: &dyn Fn(&Prediction) -> Vec<f32>| {
            let expected = reference.array(name);
            let worst = predictions
                .iter()
                .zip(expected.axis_iter(Axis(0)))
                .map(|(prediction, expected)| largest_error(&values(prediction), expected.iter()))
                .fold(0.0, f32::max);
            println!("{}: {name} differs by at most {worst:.2e}", self.name);
            assert!(
                worst <= bound,
                "{}: {name} differs by {worst:e}, allowed {bound:e}",
                self.name
            );
        };
        check("pose_enc", 2e-5, &|p| p.pose_enc.to_vec());
        check("depth", 1e-5, &|p| p.depth.iter().copied().collect());
        check("depth_conf", 2e-5, &|p| {
            p.depth_conf.iter().copied().collect()
        });
        let points = |p: &Prediction| {
            p.world_points
                .clone()
                .expect("this network has a point head")
        };
        check("world_points", 5e-5, &|p| points(p).0.into_iter().collect());
        check("world_points_conf", 2e-5, &|p| {
            points(p).1.into_iter().collect()
        });
        for (index, prediction) in predictions.iter().enumerate() {
            assert_eq!(prediction.index, index as u64);
            let expected = match index.checked_sub(self.num_scale_frames) {
                None => FrameType::Scale,
                Some(k) if k % self.keyframe_interval == 0 => FrameType::Keyframe,
                Some(_) => FrameType::Other,
            };
            assert_eq!(prediction.frame_type, expected, "frame {index}");
        }
        assert_eq!(
            forced_copies(),
            0,
            "a cache was copied instead of written in place"
        );
    }
}

#[test]
fn every_frame_a_keyframe_with_eviction() {
    let case = Case {
        name: "kf1",
        frames: "frames_A",
        size: (42, 84),
        count: 14,
        num_scale_frames: 3,
        keyframe_interval: 1,
    };
    case.check();
}

#[test]
fn every_second_frame_a_keyframe() {
    let case = Case {
        name: "kf2",
        frames: "frames_A",
        size: (42, 84),
        count: 14,
        num_scale_frames: 3,
        keyframe_interval: 2,
    };
    case.check();
}

#[test]
fn portrait() {
    let case = Case {
        name: "portrait_98x70",
        frames: "frames_portrait_98x70",
        size: (98, 70),
        count: 9,
        num_scale_frames: 3,
        keyframe_interval: 1,
    };
    case.check();
}

#[test]
fn square_on_the_native_position_grid() {
    let case = Case {
        name: "square_56x56_native_grid",
        frames: "frames_square_56x56",
        size: (56, 56),
        count: 8,
        num_scale_frames: 2,
        keyframe_interval: 1,
    };
    case.check();
}
