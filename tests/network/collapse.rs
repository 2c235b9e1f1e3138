//! A camera that is covered for a moment: the network loses its way, and finds it again.

use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use lingbot_map::camera::{Frame, ImageFolder, NetworkSize, Stamp};
use lingbot_map::map::Trajectory;
use lingbot_map::mapper::{Mapper, MapperConfig, MapperState, MapperStatus};
use lingbot_map::network::checkpoint::Checkpoint;
use lingbot_map::network::config::NetworkConfig;
use lingbot_map::network::export::{ExportOptions, export};
use lingbot_map::network::manifest::Manifest;
use lingbot_map::runtime::RuntimeOptions;
use lingbot_map::stream::OnCollapse;

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo")
}

/// What a covered lens sees.
fn darkness() -> RgbImage {
    RgbImage::from_pixel(112, 84, Rgb([5, 5, 5]))
}

/// Forty frames of the walk, eight of darkness, forty of the walk.
fn map(on_collapse: OnCollapse) -> (MapperStatus, Trajectory, usize) {
    let model = tempfile::tempdir().unwrap();
    let config = NetworkConfig::from_file(&demo().join("config.json")).unwrap();
    let checkpoint = Checkpoint::open(&demo().join("weights.safetensors")).unwrap();
    let options = ExportOptions {
        size: NetworkSize::new(84, 112).unwrap(),
        camera_num_iterations: config.cam_iters,
    };
    export(&checkpoint, &config, &options, model.path(), &mut |_| ()).unwrap();
    let config = MapperConfig {
        on_collapse,
        ..MapperConfig::of_model(&Manifest::read(model.path()).unwrap())
    };
    let mut mapper = Mapper::open(model.path(), &RuntimeOptions::default(), config).unwrap();
    let walk = ImageFolder::open(demo().join("walk/rgb")).unwrap();
    let mut push = |index: usize, image: RgbImage| {
        let stamp = Stamp(index as i64 * 1_000_000_000);
        mapper.push(Frame { stamp, image }).unwrap();
    };
    for index in 0..40 {
        push(index, walk.frame(index).unwrap().image);
    }
    for index in 40..48 {
        push(index, darkness());
    }
    for index in 48..88 {
        push(index, walk.frame(index - 8).unwrap().image);
    }
    (
        mapper.status(),
        mapper.trajectory().clone(),
        mapper.map().len(),
    )
}

#[test]
fn a_covered_camera_is_noticed_and_the_map_goes_on_from_what_was_known() {
    let (status, path, points) = map(OnCollapse::NewWindow);
    println!("{status:?}");
    assert!(status.collapses >= 1 && status.windows as u64 == 1 + status.collapses);
    assert_eq!(status.state, MapperState::Mapping);
    let refused = status.rejected["collapse"];
    assert!(refused >= 6, "{refused} of 8 spoilt frames were noticed");
    assert_eq!(path.len() as u64 + refused, 88);
    assert!(points > 10_000);
    // What was mapped before and after is one path: it goes on where it was left.
    let (before, after): (Vec<_>, Vec<_>) =
        path.iter().partition(|(stamp, _)| stamp.0 < 40_000_000_000);
    let gap = after
        .iter()
        .find(|(stamp, _)| stamp.0 >= 48_000_000_000)
        .unwrap()
        .1;
    let gap = (gap.translation.vector - before.last().unwrap().1.translation.vector).norm();
    assert!(gap < 0.6, "the path goes on {gap} m away");
}

#[test]
fn a_new_map_starts_where_that_is_asked_for_and_nothing_happens_where_nobody_watches() {
    let (status, path, _) = map(OnCollapse::NewMap);
    println!("{status:?}");
    assert!(status.collapses >= 1);
    let first = path.iter().next().unwrap();
    assert!(first.0.0 > 40_000_000_000, "the old path is still there");
    let (status, path, _) = map(OnCollapse::GoOn);
    assert_eq!((status.collapses, status.windows, path.len()), (0, 1, 88));
}
