//! A robot that maps all day: thousands of frames through the tiny network of tests/golden, and the memory they leave.
//!
//! A process of its own, so that nothing else moves the resident memory that is measured.

use std::path::Path;

use image::{Rgb, RgbImage};
use lingbot_map::camera::NetworkSize;
use lingbot_map::network::checkpoint::Checkpoint;
use lingbot_map::network::config::NetworkConfig;
use lingbot_map::network::export::{ExportOptions, export};
use lingbot_map::network::manifest::Manifest;
use lingbot_map::runtime::{Library, RuntimeOptions, forced_copies};
use lingbot_map::stream::{FrameRole, MemoryRequest, StepRunner, StreamConfig};

const EDGE: u32 = 28;
/// Of a frame: four patches and six special tokens.
const TOKENS: usize = 10;

fn image(index: usize) -> RgbImage {
    let value = |x: u32, y: u32| (x * 7 + y * 13 + 31 * index as u32) as u8;
    RgbImage::from_fn(EDGE, EDGE, |x, y| {
        Rgb([value(x, y), value(y, x), value(x, x)])
    })
}

/// Memory of this process that no file backs, bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap();
    1024 * line
        .split_whitespace()
        .next()
        .unwrap()
        .parse::<usize>()
        .unwrap()
}

fn config(history_frames: Option<usize>) -> StreamConfig {
    StreamConfig {
        num_scale_frames: 3,
        kv_cache_sliding_window: 4,
        history_frames,
        ..StreamConfig::default()
    }
}

/// The tiny network with one iteration of its camera head, as small as it gets.
fn export_tiny(folder: &Path) -> Manifest {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let options = ExportOptions {
        size: NetworkSize::new(EDGE, EDGE).unwrap(),
        camera_num_iterations: 1,
    };
    let config = NetworkConfig::from_file(&golden.join("config.json")).unwrap();
    let checkpoint = Checkpoint::open(&golden.join("weights.safetensors")).unwrap();
    export(&checkpoint, &config, &options, folder, &mut |_| ()).unwrap()
}

fn start(model: &Path, config: &StreamConfig) -> StepRunner {
    let library = Library::load(None).unwrap();
    let manifest = Manifest::read(model).unwrap();
    let options = RuntimeOptions {
        threads: 1,
        ..RuntimeOptions::default()
    };
    let mut runner = StepRunner::open(&library, model, &manifest, &options, config).unwrap();
    let scale: Vec<u8> = (0..3).flat_map(|index| image(index).into_raw()).collect();
    runner.scale_call(&scale, 3, Vec::new()).unwrap();
    runner
}

fn step(runner: &mut StepRunner, index: usize, role: FrameRole) {
    runner
        .step(image(index).as_raw(), role, Vec::new())
        .unwrap();
}

#[test]
fn ten_thousand_frames_take_what_was_planned() {
    let model = tempfile::tempdir().unwrap();
    let manifest = export_tiny(model.path());
    let planned = |config: &StreamConfig, frames: usize| {
        let request = MemoryRequest {
            network: &manifest.network,
            size: manifest.size,
            camera_num_iterations: manifest.camera_num_iterations,
            weights: manifest.bytes(),
            stream: config,
            window_size: None,
        };
        let plan = request.plan(frames);
        let caches = |name: &str| name.starts_with("tokens") || name.starts_with("camera");
        let caches = plan.items.iter().filter(|item| caches(item.name));
        (
            plan.attended_tokens,
            caches.map(|item| item.reserved as usize).sum::<usize>(),
        )
    };

    // Without a limit: three thousand keyframes, each of which leaves its special tokens and a camera row.
    let free = config(None);
    let mut whole = start(model.path(), &free);
    let history = 40;
    let limited = config(Some(history));
    let mut thinned = start(model.path(), &limited);
    for index in 3..3000 {
        step(&mut whole, index, FrameRole::Keyframe);
        if index < 3 + 4 + history {
            // Until the limit bites there is no difference.
            step(&mut thinned, index, FrameRole::Keyframe);
            assert_eq!(whole.pose(0), thinned.pose(0), "frame {index}");
        }
        if index % 1000 == 999 || index == 100 {
            let (tokens, caches) = (whole.token_cache(), whole.camera_cache());
            assert_eq!(tokens.valid, 7 * TOKENS + 6 * (index + 1 - 7));
            assert_eq!(caches.valid, index + 1);
            assert_eq!(
                planned(&free, index + 1),
                (tokens.valid, tokens.bytes + caches.bytes)
            );
        }
    }
    assert_eq!(whole.token_cache().moves, 6, "{:?}", whole.token_cache());
    drop(whole);

    // With a limit: every third frame a keyframe, some of them promoted.
    let run = |runner: &mut StepRunner, frames: std::ops::Range<usize>| {
        for index in frames {
            let role = if index % 6 == 0 {
                FrameRole::Keyframe
            } else {
                FrameRole::Other
            };
            step(runner, index, role);
            if index % 6 == 3 {
                assert!(runner.promote());
            }
        }
    };
    run(&mut thinned, 47..1000);
    let (full, attended) = (resident(), thinned.token_cache());
    run(&mut thinned, 1000..10_000);
    let (end, status) = (resident(), thinned.token_cache());
    println!("{full} bytes resident after 1000 frames, {end} after 10,000; {status:?}");
    assert!(end.abs_diff(full) * 100 < full, "{full} became {end}");
    assert_eq!((status.bytes, status.moves), (attended.bytes, 0));
    assert!(
        status.valid.abs_diff(attended.valid) <= 4,
        "{attended:?} {status:?}"
    );
    assert!(status.valid <= 7 * TOKENS + 6 * history);
    let cameras = thinned.camera_cache();
    assert_eq!((cameras.valid, cameras.moves), (7 + history, 0));
    assert_eq!(planned(&limited, 10_000).1, status.bytes + cameras.bytes);
    assert!(thinned.pose(0).iter().all(|value| value.is_finite()));
    assert_eq!(forced_copies(), 0);
}
