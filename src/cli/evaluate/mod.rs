//! `lingbot_map evaluate`: a result against the truth.

mod figure;
mod predictions;
mod report;
mod truth;

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{ArgGroup, Args, ValueEnum};
use nalgebra::{Point3, Similarity3};

use self::predictions::Predictions;
use self::report::{DepthReport, PathReport, Report, SurfaceReport};
use self::truth::Truth;
use crate::map::evaluation::{
    Alignment, DepthErrors, PointSample, PosePair, compare_depth, pair, surface_errors,
};
use crate::map::{PathFile, PointFilter, read_ply, write_png};
use crate::world::Room;

/// So many points of a map are measured at most, drawn evenly from all of them.
const MEASURED_POINTS: usize = 100_000;

#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("result").required(true).multiple(true).args(["trajectory", "predictions", "map"]),
    group = ArgGroup::new("path").args(["trajectory", "predictions"]),
)]
pub struct Arguments {
    /// Saved predictions to compare: path, depth, and the points that they make
    #[arg(long, value_name = "FILE", conflicts_with = "map")]
    predictions: Option<PathBuf>,
    /// Camera path to compare: TUM, or KITTI (12 numbers a line, paired by order)
    #[arg(long, value_name = "FILE")]
    trajectory: Option<PathBuf>,
    /// Saved map to measure (map.ply): how far its points are from the true surfaces
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// What `lingbot_map world` writes: groundtruth.tum (or KITTI poses in it), depth/ (16-bit images) and camera.yaml,
    /// each needed only for what is compared with it; or a path alone
    #[arg(long, value_name = "FOLDER|FILE")]
    truth: PathBuf,
    /// How the result is brought onto the true path for the surface figures and the plot
    #[arg(long, value_enum, default_value_t, requires = "path")]
    align: Align,
    /// Relative pose error over so many frames
    #[arg(long, value_name = "FRAMES", default_value = "1", requires = "path")]
    rpe_delta: NonZeroUsize,
    /// Measure only points of this confidence and more [default: 1.5 for predictions; of a map all]
    #[arg(long, value_name = "CONFIDENCE")]
    conf_threshold: Option<f32>,
    /// Draw both paths from above, and the errors over time
    #[arg(long, value_name = "FILE.png", requires = "path")]
    plot: Option<PathBuf>,
    /// Print JSON: metres, radians
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Align {
    /// Not at all: both start with the first camera as their world
    #[default]
    None,
    /// By the best rigid motion
    Se3,
    /// By the best rigid motion and scale
    Sim3,
}

impl From<Align> for Alignment {
    fn from(align: Align) -> Self {
        match align {
            Align::None => Self::None,
            Align::Se3 => Self::Se3,
            Align::Sim3 => Self::Sim3,
        }
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let truth = Truth::open(&arguments.truth)?;
    let alignment = Alignment::from(arguments.align);
    let predictions = match &arguments.predictions {
        Some(path) => Some(read_predictions(path)?),
        None => None,
    };
    let path = match (&arguments.trajectory, &predictions) {
        (Some(path), _) => Some(PathFile::read(path)?),
        (None, Some(predictions)) => Some(predictions.path()),
        (None, None) => None,
    };
    let mut report = Report::new(alignment);
    let mut transform = Similarity3::identity();
    if let Some(path) = path {
        let pairs = pair(&path, &truth.path()?)?;
        transform = alignment.transform(&pairs)?;
        report.path = Some(PathReport::new(&pairs, arguments.rpe_delta)?);
        if let Some(predictions) = &predictions {
            report.depth = depth_report(predictions, &truth, &pairs)?;
        }
        if let Some(file) = &arguments.plot {
            let picture = figure::draw(&pairs, alignment, truth.room_from_world.as_ref())?;
            write_png(file, &picture)?;
        }
    }
    report.surface = surface_report(arguments, &truth, predictions.as_ref(), &transform)?;
    let text = if arguments.json {
        serde_json::to_string_pretty(&report)?
    } else {
        report.to_string()
    };
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

fn read_predictions(path: &Path) -> anyhow::Result<Predictions> {
    Predictions::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Compares each paired frame with the truth's; `None` when the truth has no depth.
fn depth_report(
    predictions: &Predictions,
    truth: &Truth,
    pairs: &[PosePair],
) -> anyhow::Result<Option<DepthReport>> {
    let Some(images) = truth.depth_images()? else {
        return Ok(None);
    };
    let mut frames = Vec::new();
    for pair in pairs {
        let (Some(depth), Some(path)) = (
            predictions.depth(pair.estimate_index),
            images.get(pair.truth_index),
        ) else {
            bail!("a pose has no depth image");
        };
        let compared = compare_depth(depth, truth.read_depth(path)?.view());
        frames.push(compared.with_context(|| path.display().to_string())?);
    }
    Ok(DepthErrors::combined(&frames).map(|errors| DepthReport::new(&errors, frames.len())))
}

/// Measures the map's or the predictions' points; `None` when the truth is not in the room.
fn surface_report(
    arguments: &Arguments,
    truth: &Truth,
    predictions: Option<&Predictions>,
    transform: &Similarity3<f64>,
) -> anyhow::Result<Option<SurfaceReport>> {
    let Some(room_from_world) = truth.room_from_world else {
        ensure!(
            arguments.map.is_none(),
            "a map cannot be measured: {} does not say where in the room it is (room_from_world in camera.yaml)",
            arguments.truth.display()
        );
        return Ok(None);
    };
    let mut sample = PointSample::new(MEASURED_POINTS);
    if let Some(path) = &arguments.map {
        sample_map(path, arguments.conf_threshold, &mut sample)?;
    } else if let Some(predictions) = predictions {
        let default = PointFilter::default().conf_threshold;
        predictions.sample_points(arguments.conf_threshold.unwrap_or(default), &mut sample);
    } else {
        return Ok(None);
    }
    let room = Room::new();
    let errors = surface_errors(sample.points(), |point| {
        room.distance(room_from_world * (transform * point))
    })?;
    Ok(Some(SurfaceReport::new(&errors)))
}

fn sample_map(
    path: &Path,
    conf_threshold: Option<f32>,
    sample: &mut PointSample,
) -> anyhow::Result<()> {
    let mut all_finite = true;
    read_ply(path, |point| {
        let position = Point3::from(point.position.map(f64::from));
        all_finite &= position.iter().all(|c| c.is_finite());
        if conf_threshold.is_none_or(|threshold| point.confidence >= threshold) {
            sample.push(position);
        }
    })?;
    ensure!(
        all_finite,
        "{} holds points that are not finite",
        path.display()
    );
    ensure!(
        !sample.points().is_empty(),
        "{} holds no points to measure",
        path.display()
    );
    Ok(())
}
