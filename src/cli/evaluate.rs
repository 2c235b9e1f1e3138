//! `lingbot_map evaluate`: a result against the truth, paired by time stamps.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{ArgGroup, Args};
use ndarray::{Array1, Array2, Array3, Axis};
use ndarray_npy::NpzReader;
use serde::Serialize;

use crate::camera::{ImageFolder, NetworkSize, Stamp};
use crate::geometry::decode_pose;
use crate::map::Trajectory;
use crate::map::evaluation::{DepthErrors, compare_depth, compare_paths};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("result").required(true).args(["trajectory", "predictions"]))]
pub struct Arguments {
    /// Camera path to compare, in TUM format
    #[arg(long, value_name = "FILE")]
    trajectory: Option<PathBuf>,
    /// Saved predictions to compare, path and depth
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    /// Folder with groundtruth.tum and, for depth, depth/NNNN.png (16 bit, millimetres, 0 unknown)
    #[arg(long, value_name = "FOLDER")]
    truth: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Evaluation {
    path: PathEvaluation,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<DepthEvaluation>,
}

/// Lengths in metres, angles in radians.
#[derive(Serialize)]
struct PathEvaluation {
    frames: usize,
    ate_rmse_se3: f64,
    /// `None` where a path stands still.
    ate_rmse_sim3: Option<f64>,
    scale: Option<f64>,
    rotation_median: f64,
}

/// Over all pixels of all frames; lengths in metres.
#[derive(Serialize)]
struct DepthEvaluation {
    frames: usize,
    abs_rel: f64,
    rmse: f64,
    delta_1_25: f64,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let truth = Trajectory::read_tum(arguments.truth.join("groundtruth.tum"))?;
    let (trajectory, depth) = match (&arguments.trajectory, &arguments.predictions) {
        (Some(path), _) => (Trajectory::read_tum(path)?, None),
        (None, Some(path)) => {
            let predictions = Predictions::read(path, &truth)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let depth = depth_errors(&predictions, &truth, &arguments.truth.join("depth"))?;
            (predictions.trajectory(), depth)
        }
        (None, None) => bail!("no result is given"),
    };
    let path = compare_paths(&trajectory, &truth)?;
    let evaluation = Evaluation {
        path: PathEvaluation {
            frames: path.poses,
            ate_rmse_se3: path.ate_rmse_se3,
            ate_rmse_sim3: path.ate_rmse_sim3,
            scale: path.scale,
            rotation_median: path.rotation_median,
        },
        depth,
    };
    if arguments.json {
        writeln!(
            std::io::stdout(),
            "{}",
            serde_json::to_string_pretty(&evaluation)?
        )?;
    } else {
        print(&evaluation)?;
    }
    Ok(())
}

fn print(evaluation: &Evaluation) -> std::io::Result<()> {
    let path = &evaluation.path;
    writeln!(
        std::io::stdout(),
        "path: ATE {:.3} m, rotation {:.2}°, {} frames",
        path.ate_rmse_se3,
        path.rotation_median.to_degrees(),
        path.frames
    )?;
    if let (Some(ate), Some(scale)) = (path.ate_rmse_sim3, path.scale) {
        writeln!(
            std::io::stdout(),
            "      ATE {ate:.3} m when scaled by {scale:.3}"
        )?;
    }
    if let Some(depth) = &evaluation.depth {
        writeln!(
            std::io::stdout(),
            "depth: AbsRel {:.3}, RMSE {:.3} m, δ<1.25 {:.3}, {} frames",
            depth.abs_rel,
            depth.rmse,
            depth.delta_1_25,
            depth.frames
        )?;
    }
    Ok(())
}

/// Saved predictions, frame by frame.
struct Predictions {
    stamps: Vec<Stamp>,
    pose_enc: Array2<f32>,
    /// [n, H, W]
    depth: Array3<f32>,
    size: NetworkSize,
}

impl Predictions {
    /// Without stamps of their own, predictions get those of the truth in order.
    fn read(path: &Path, truth: &Trajectory) -> anyhow::Result<Self> {
        let mut archive = NpzReader::new(File::open(path)?)?;
        let pose_enc: Array2<f32> = archive.by_name("pose_enc")?;
        let depth: Array3<f32> = archive.by_name("depth")?;
        let stamps: Vec<Stamp> = if archive.names()?.iter().any(|name| name == "stamp_ns") {
            let stamps: Array1<i64> = archive.by_name("stamp_ns")?;
            stamps.iter().copied().map(Stamp).collect()
        } else {
            truth
                .iter()
                .take(depth.len_of(Axis(0)))
                .map(|(stamp, _)| *stamp)
                .collect()
        };
        let (frames, height, width) = depth.dim();
        ensure!(
            pose_enc.dim() == (frames, 9) && stamps.len() == frames,
            "there are {frames} frames of depth, {} poses and {} stamps",
            pose_enc.nrows(),
            stamps.len()
        );
        Ok(Self {
            stamps,
            pose_enc,
            size: NetworkSize::new(u32::try_from(height)?, u32::try_from(width)?)?,
            depth,
        })
    }

    /// The valid poses.
    fn trajectory(&self) -> Trajectory {
        let mut trajectory = Trajectory::new();
        for (stamp, row) in self.stamps.iter().zip(self.pose_enc.rows()) {
            let encoding: Result<[f32; 9], _> = row.to_vec().try_into();
            if let Some((pose, _)) = encoding
                .ok()
                .and_then(|encoding| decode_pose(&encoding, self.size).ok())
            {
                trajectory.push(*stamp, pose);
            }
        }
        trajectory
    }
}

/// As for poses: stamps read from text need not be equal to the nanosecond.
const SAME_TIME_NANOSECONDS: i64 = 10_000_000;

/// Compares each frame with the truth's at the same time; `None` when the truth has no depth.
fn depth_errors(
    predictions: &Predictions,
    truth: &Trajectory,
    folder: &Path,
) -> anyhow::Result<Option<DepthEvaluation>> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let files = ImageFolder::open(folder)?;
    let true_depth: BTreeMap<Stamp, &PathBuf> = truth
        .iter()
        .map(|(stamp, _)| *stamp)
        .zip(files.paths())
        .collect();
    let mut errors = Vec::new();
    for (stamp, predicted) in predictions
        .stamps
        .iter()
        .zip(predictions.depth.axis_iter(Axis(0)))
    {
        let around = Stamp(stamp.0.saturating_sub(SAME_TIME_NANOSECONDS))
            ..=Stamp(stamp.0.saturating_add(SAME_TIME_NANOSECONDS));
        let nearest = true_depth
            .range(around)
            .min_by_key(|(other, _)| other.0.abs_diff(stamp.0));
        if let Some((_, path)) = nearest {
            let compared = compare_depth(predicted, read_depth(path)?.view());
            errors.push(compared.with_context(|| path.display().to_string())?);
        }
    }
    Ok(
        DepthErrors::combined(&errors).map(|combined| DepthEvaluation {
            frames: errors.len(),
            abs_rel: combined.abs_rel,
            rmse: combined.rmse,
            delta_1_25: combined.delta_1_25,
        }),
    )
}

/// Depth in metres; zero where it is not known.
fn read_depth(path: &Path) -> anyhow::Result<Array2<f32>> {
    let image = image::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let image::DynamicImage::ImageLuma16(image) = image else {
        bail!("{} is not a 16-bit grey image", path.display());
    };
    let (width, height) = image.dimensions();
    let metres = image
        .into_raw()
        .into_iter()
        .map(|millimetres| f32::from(millimetres) / 1000.0);
    Ok(Array2::from_shape_vec(
        (height as usize, width as usize),
        metres.collect(),
    )?)
}
