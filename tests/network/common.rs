//! What the golden tests share: the tiny random network, its frames and its reference results.

use std::fs::File;
use std::path::{Path, PathBuf};

use image::RgbImage;
use lingbot_map::camera::NetworkSize;
use lingbot_map::network::checkpoint::Checkpoint;
use lingbot_map::network::config::NetworkConfig;
use lingbot_map::network::export::{ExportOptions, export};
use lingbot_map::stream::StreamConfig;
use ndarray::{ArrayD, IxDyn};
use ndarray_npy::NpzReader;

pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

pub fn golden_config() -> NetworkConfig {
    NetworkConfig::from_file(&golden().join("config.json")).unwrap()
}

/// Three scale frames and a window of four, every frame a keyframe.
pub fn small_stream() -> StreamConfig {
    StreamConfig {
        num_scale_frames: 3,
        kv_cache_sliding_window: 4,
        ..StreamConfig::default()
    }
}

/// Exports the tiny network for one image size into a folder that lives as long as the result.
pub fn export_golden(height: u32, width: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = Checkpoint::open(&golden().join("weights.safetensors")).unwrap();
    let config = golden_config();
    let options = ExportOptions {
        size: NetworkSize::new(height, width).unwrap(),
        camera_num_iterations: config.cam_iters,
    };
    export(&checkpoint, &config, &options, folder.path(), &mut |_| ()).unwrap();
    folder
}

/// The frames of a folder in order.
pub fn frames(folder: &Path, count: usize) -> Vec<RgbImage> {
    (0..count)
        .map(|i| {
            image::open(folder.join(format!("{i:03}.png")))
                .unwrap()
                .to_rgb8()
        })
        .collect()
}

pub struct Reference(NpzReader<File>);

impl Reference {
    pub fn open(name: &str) -> Self {
        Self::of(&golden().join(name))
    }

    pub fn of(path: &Path) -> Self {
        Self(NpzReader::new(File::open(path).unwrap()).unwrap())
    }

    /// An array with axes of length one dropped at the end.
    pub fn array(&mut self, name: &str) -> ArrayD<f32> {
        let array: ArrayD<f32> = self.0.by_name(name).unwrap();
        let array = array.as_standard_layout().into_owned();
        let mut shape = array.shape().to_vec();
        while shape.len() > 1 && shape.last() == Some(&1) {
            shape.pop();
        }
        array.into_shape_with_order(IxDyn(&shape)).unwrap()
    }
}

/// Largest absolute difference; not a number if there is one that is not.
pub fn largest_error<'a>(
    found: impl IntoIterator<Item = &'a f32>,
    expected: impl IntoIterator<Item = &'a f32>,
) -> f32 {
    let (mut found, mut expected) = (found.into_iter(), expected.into_iter());
    let mut largest = 0.0f32;
    loop {
        match (found.next(), expected.next()) {
            (Some(a), Some(b)) if (a - b).is_finite() => largest = largest.max((a - b).abs()),
            (None, None) => return largest,
            (Some(_), Some(_)) => return f32::NAN,
            _ => panic!("different numbers of values"),
        }
    }
}
