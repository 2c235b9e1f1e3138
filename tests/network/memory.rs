//! What a stream allocates is what was planned.

use crate::common::{export_golden, frames, golden, golden_config, small_stream};
use lingbot_map::network::export::{ExportOptions, weight_bytes};
use lingbot_map::network::manifest::{Manifest, WEIGHTS};
use lingbot_map::runtime::RuntimeOptions;
use lingbot_map::stream::{
    GctStream, KeyframeInterval, MemoryBudget, MemoryPlan, MemoryRequest, StreamConfig, StreamError,
};

fn plan(manifest: &Manifest, stream: &StreamConfig, frames: usize) -> MemoryPlan {
    let request = MemoryRequest {
        network: &manifest.network,
        size: manifest.size,
        camera_num_iterations: manifest.camera_num_iterations,
        weights: manifest.bytes(),
        stream,
        window_size: None,
    };
    request.plan(frames)
}

fn caches(plan: &MemoryPlan) -> usize {
    let caches = |name: &str| name.starts_with("tokens") || name.starts_with("camera");
    let items = plan.items.iter().filter(|item| caches(item.name));
    items.map(|item| item.reserved as usize).sum()
}

#[test]
fn weights_are_counted_without_any() {
    for (height, width) in [(42, 84), (56, 56)] {
        let model = export_golden(height, width);
        let manifest = Manifest::read(model.path()).unwrap();
        let options = ExportOptions {
            size: manifest.size,
            camera_num_iterations: manifest.camera_num_iterations,
        };
        let counted = weight_bytes(&golden_config(), &options).unwrap();
        assert_eq!(counted, manifest.files[WEIGHTS].bytes);
    }
}

#[test]
fn caches_are_as_large_as_planned_under_every_policy() {
    let model = export_golden(42, 84);
    let manifest = Manifest::read(model.path()).unwrap();
    let images = frames(&golden().join("frames_A"), 14);
    let policies = [
        small_stream(),
        StreamConfig {
            keyframe_interval: KeyframeInterval::Every(3),
            ..small_stream()
        },
        StreamConfig {
            kv_cache_scale_frames: Some(5),
            history_frames: Some(20),
            ..small_stream()
        },
        StreamConfig {
            keyframe_interval: KeyframeInterval::Auto,
            ..small_stream()
        },
        StreamConfig {
            kv_cache_cross_frame_special: false,
            ..small_stream()
        },
    ];
    for config in policies {
        let mut stream = GctStream::open(model.path(), &RuntimeOptions::default(), config).unwrap();
        for index in 0..120 {
            stream.push(&images[index % 14]).unwrap();
        }
        let plan = plan(&manifest, &config, 120);
        let (tokens, cameras) = (stream.token_cache(), stream.camera_cache());
        assert_eq!(caches(&plan), tokens.bytes + cameras.bytes, "{config:?}");
        if config.history_frames.is_none() {
            assert_eq!(
                (plan.attended_tokens, plan.stored),
                (tokens.valid, cameras.valid)
            );
        }
    }
}

#[test]
fn a_budget_is_obeyed_or_refused_before_the_first_frame() {
    let model = export_golden(42, 84);
    let manifest = Manifest::read(model.path()).unwrap();
    let images = frames(&golden().join("frames_A"), 14);
    let open = |budget: u64, memory_fit: bool| {
        let config = StreamConfig {
            memory_budget: Some(MemoryBudget::Bytes(budget)),
            memory_fit,
            ..small_stream()
        };
        GctStream::open(model.path(), &RuntimeOptions::default(), config)
    };
    let least = plan(
        &manifest,
        &StreamConfig {
            history_frames: Some(16),
            ..small_stream()
        },
        1000,
    )
    .reserved();
    let budget = least + 200_000;
    let mut stream = open(budget, false).unwrap();
    let config = *stream.config();
    assert!(config.history_frames.unwrap() > 16);
    for index in 0..100 {
        stream.push(&images[index % 14]).unwrap();
    }
    assert!(plan(&manifest, &config, 100).reserved() <= budget);
    assert_eq!(
        (stream.token_cache().moves, stream.camera_cache().moves),
        (0, 0)
    );
    assert_eq!(
        caches(&plan(&manifest, &config, 100)),
        stream.token_cache().bytes + stream.camera_cache().bytes
    );

    let refused = open(least - 1, false).err().unwrap();
    let StreamError::Budget(error) = refused else {
        panic!("{refused}");
    };
    assert_eq!(error.window, Some(3));
    assert_eq!(
        open(least - 1, true)
            .unwrap()
            .config()
            .kv_cache_sliding_window,
        3
    );
    assert!(open(1 << 20, true).is_err());
}

#[test]
fn a_stream_forgets_whole_frames_or_scale_frames_where_it_is_told_to() {
    let model = export_golden(42, 84);
    let images = frames(&golden().join("frames_A"), 14);
    let valid = |config: StreamConfig| {
        let mut stream = GctStream::open(model.path(), &RuntimeOptions::default(), config).unwrap();
        let mut valid = Vec::new();
        for image in &images {
            for prediction in stream.push(image).unwrap() {
                assert!(prediction.pose_enc.iter().all(|value| value.is_finite()));
            }
            valid.push(stream.token_cache().valid);
        }
        valid
    };
    assert_eq!(
        valid(small_stream())[6..9],
        [7 * 24, 7 * 24 + 6, 7 * 24 + 12]
    );
    let no_specials = StreamConfig {
        kv_cache_cross_frame_special: false,
        ..small_stream()
    };
    assert_eq!(valid(no_specials)[6..9], [7 * 24; 3]);
    let no_scale_frames = StreamConfig {
        kv_cache_include_scale_frames: false,
        ..small_stream()
    };
    assert_eq!(
        valid(no_scale_frames)[6..9],
        [7 * 24, 4 * 24 + 6, 4 * 24 + 12]
    );
}
