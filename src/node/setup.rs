//! From the node's parameters to a mapper that is ready.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::parameters::Parameters;
use crate::{
    camera::{Crop, Mask, PrepareConfig},
    map::{PointFilter, ScaleSource, VoxelMapConfig},
    mapper::{Mapper, MapperConfig},
    model::{self, CheckpointSource, ModelSource},
    network::manifest::Manifest,
    runtime::{Library, RuntimeOptions},
    stream::{KeyframeInterval, WindowConfig},
};

/// Loads the model and builds the mapper. Takes seconds, or minutes where a checkpoint has to be exported first.
pub fn open_mapper(parameters: &Parameters) -> anyhow::Result<Mapper> {
    if parameters.model.trim().is_empty() {
        bail!(
            "parameter model is not set: give an exported model folder or a checkpoint file, \
             for example model:=/path/to/lingbot-map.pt with the launch file"
        );
    }
    let runtime = RuntimeOptions {
        provider: parameters
            .provider
            .parse()
            .map_err(anyhow::Error::msg)
            .context("parameter provider")?,
        library: given_path(&parameters.onnxruntime_library),
        ..RuntimeOptions::default()
    };
    // A missing library is told before a checkpoint is exported, which can take minutes.
    Library::load(runtime.library.as_deref())?;
    let folder = resolve_model(parameters)?;
    let mut config = MapperConfig::of_model(&Manifest::read(&folder)?);
    apply(parameters, &mut config)?;
    log::info!("loading {}", folder.display());
    Mapper::open(&folder, &runtime, config)
        .with_context(|| format!("model {} cannot be used", folder.display()))
}

/// Width and height of the image that a checkpoint is exported for where nothing else says so: the node loads its model
/// before it sees an image, and most cameras are 4:3.
const COMMON_IMAGE: (u32, u32) = (640, 480);

fn resolve_model(parameters: &Parameters) -> anyhow::Result<PathBuf> {
    let mut tenths = 0;
    model::resolve(
        &model_source(parameters)?,
        Some(COMMON_IMAGE),
        &model::default_cache()?,
        &mut |progress| {
            let done = 10 * progress.done_bytes / progress.total_bytes.max(1);
            if done > tenths {
                tenths = done;
                log::info!("exporting the model: {} %", 10 * done);
            }
        },
    )
    .with_context(|| format!("model {} cannot be used", parameters.model))
}

fn model_source(parameters: &Parameters) -> anyhow::Result<ModelSource> {
    let path = PathBuf::from(&parameters.model);
    if !path.exists() {
        bail!("parameter model: there is no {}", path.display());
    }
    if path.is_dir() {
        return Ok(ModelSource::Exported(path));
    }
    let size = match (
        given_count(parameters.height),
        given_count(parameters.width),
    ) {
        (Some(height), Some(width)) => Some((height, width)),
        _ => None,
    };
    Ok(ModelSource::Checkpoint(CheckpointSource {
        checkpoint: path,
        config: given_path(&parameters.model_config),
        size,
        camera_num_iterations: None,
    }))
}

/// What was set takes the place of what the model brings.
fn apply(parameters: &Parameters, config: &mut MapperConfig) -> anyhow::Result<()> {
    let set = |target: &mut usize, value: i64| *target = given_count(value).unwrap_or(*target);
    set(
        &mut config.stream.num_scale_frames,
        parameters.num_scale_frames,
    );
    set(
        &mut config.stream.kv_cache_sliding_window,
        parameters.kv_cache_sliding_window,
    );
    let stream = &mut config.stream;
    stream.kv_cache_scale_frames = given_count(parameters.kv_cache_scale_frames);
    stream.kv_cache_cross_frame_special = parameters.kv_cache_cross_frame_special;
    stream.kv_cache_include_scale_frames = parameters.kv_cache_include_scale_frames;
    if parameters.keyframe_interval < 0 {
        stream.keyframe_interval = KeyframeInterval::Auto;
    } else if let Some(interval) = given_count(parameters.keyframe_interval) {
        stream.keyframe_interval = KeyframeInterval::Every(interval);
    }
    let threshold = parameters.flow_threshold;
    stream.flow_threshold = (threshold > 0.0).then_some(threshold);
    stream.max_non_keyframe_gap = given_count(parameters.max_non_keyframe_gap);
    stream.history_frames = given_count(parameters.history_frames);
    stream.memory_budget = match parameters.memory_budget.trim() {
        "" => None,
        budget => Some(
            budget
                .parse()
                .map_err(anyhow::Error::msg)
                .context("parameter memory_budget")?,
        ),
    };
    stream.memory_fit = parameters.memory_fit;
    config.on_collapse = parameters
        .on_collapse
        .parse()
        .map_err(anyhow::Error::msg)
        .context("parameter on_collapse")?;
    if parameters.mode == "windowed" {
        config.windows = Some(WindowConfig {
            window_size: usize::try_from(parameters.window_size)?,
            overlap_keyframes: None,
            overlap_size: None,
            alignment: parameters
                .window_alignment
                .parse()
                .map_err(anyhow::Error::msg)
                .context("parameter window_alignment")?,
            frames: None,
        });
    }
    let skip = parameters.static_skip;
    config.static_skip = (skip > 0.0).then_some(skip);
    config.filter = filter(parameters);
    config.voxel = VoxelMapConfig {
        voxel_size: parameters.voxel_size as f32,
        max_points: usize::try_from(parameters.max_points)?,
        min_observations: u32::try_from(parameters.min_observations)?,
    };
    config.scale = scale(parameters, config.scale);
    config.prepare = prepare(parameters)?;
    config.intrinsics = (parameters.intrinsics.parse())
        .map_err(anyhow::Error::msg)
        .context("parameter intrinsics")?;
    Ok(())
}

pub fn filter(parameters: &Parameters) -> PointFilter {
    let given = |value: f64| (value > 0.0).then_some(value as f32);
    PointFilter {
        conf_threshold: parameters.conf_threshold as f32,
        conf_percentile: parameters.conf_percentile as f32,
        depth_edge: given(parameters.depth_edge),
        max_depth: given(parameters.max_depth),
        border: usize::try_from(parameters.border).unwrap_or(0),
    }
}

fn scale(parameters: &Parameters, of_model: ScaleSource) -> ScaleSource {
    match parameters.scale_source.as_str() {
        "fixed" => ScaleSource::Fixed {
            factor: parameters.scale_factor,
            uncertainty: parameters.scale_uncertainty,
        },
        "odometry" => ScaleSource::Odometry,
        "camera_height" => ScaleSource::CameraHeight(parameters.scale_camera_height),
        "none" => ScaleSource::None,
        _ => of_model,
    }
}

fn prepare(parameters: &Parameters) -> anyhow::Result<PrepareConfig> {
    let side = |pixels: i64| u32::try_from(pixels).context("parameter crop");
    let [left, top, right, bottom] = parameters.crop;
    Ok(PrepareConfig {
        rectify: parameters.rectify.parse().context("parameter rectify")?,
        image_topic: parameters.image_topic.clone(),
        crop: Crop {
            left: side(left)?,
            top: side(top)?,
            right: side(right)?,
            bottom: side(bottom)?,
        },
        fit: parameters.fit.parse().context("parameter fit")?,
        mask: match given_path(&parameters.mask_image) {
            Some(path) => Mask::open(&path).context("parameter mask_image")?,
            None => Mask::default(),
        },
    })
}

fn given_path(text: &str) -> Option<PathBuf> {
    (!text.trim().is_empty()).then(|| PathBuf::from(text))
}

/// A count that is set, or None for "the model's own".
fn given_count<T: TryFrom<i64>>(value: i64) -> Option<T> {
    if value > 0 {
        T::try_from(value).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_must_be_given() {
        let error = open_mapper(&Parameters::default()).err().unwrap();
        assert!(error.to_string().contains("model is not set"));
        let nowhere = Parameters {
            model: "/nowhere/at/all".into(),
            ..Default::default()
        };
        assert!(
            model_source(&nowhere)
                .unwrap_err()
                .to_string()
                .contains("/nowhere/at/all")
        );
    }

    #[test]
    fn a_folder_is_an_exported_model_and_a_file_a_checkpoint() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut parameters = Parameters {
            model: file.path().parent().unwrap().display().to_string(),
            ..Default::default()
        };
        assert!(matches!(
            model_source(&parameters),
            Ok(ModelSource::Exported(_))
        ));
        parameters.model = file.path().display().to_string();
        parameters.height = 84;
        parameters.width = 112;
        let Ok(ModelSource::Checkpoint(source)) = model_source(&parameters) else {
            panic!("a file")
        };
        assert_eq!((source.size, source.config), (Some((84, 112)), None));
    }

    #[test]
    fn zero_means_the_models_own() {
        assert_eq!(given_count::<usize>(0), None);
        assert_eq!(given_count::<usize>(-1), None);
        assert_eq!(given_count::<u32>(8), Some(8));
    }
}
