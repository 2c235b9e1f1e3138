//! The figures, as a table and as JSON.

use std::fmt::{self, Display, Formatter};
use std::num::NonZeroUsize;

use serde::Serialize;

use crate::map::evaluation::{
    Alignment, DepthErrors, EvaluationError, PosePair, SurfaceErrors, path_errors, relative_errors,
};

/// Every figure; scripts read these names.
#[derive(Serialize)]
pub struct Report {
    /// Of the surface figures and the plot.
    align: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<DepthReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<SurfaceReport>,
}

/// Lengths in metres, angles in radians; `null` for a scale of a path that stands still, and for relative errors of
/// one that is too short. `_none`, `_se3` and `_sim3` name the alignment; `rotation_median` and `rotation_max` are
/// after the turn that brings all rotations closest.
#[derive(Serialize)]
pub struct PathReport {
    frames: usize,
    ate_rmse_none: f64,
    ate_rmse_se3: f64,
    ate_rmse_sim3: Option<f64>,
    scale: Option<f64>,
    rpe_delta: NonZeroUsize,
    rpe_motions: usize,
    rpe_translation_rmse_se3: Option<f64>,
    rpe_translation_rmse_sim3: Option<f64>,
    rpe_rotation_rmse: Option<f64>,
    rotation_median_none: f64,
    rotation_max_none: f64,
    rotation_median: f64,
    rotation_max: f64,
}

impl PathReport {
    pub fn new(pairs: &[PosePair], rpe_delta: NonZeroUsize) -> Result<Self, EvaluationError> {
        let absolute = path_errors(pairs)?;
        let relative = relative_errors(pairs, rpe_delta, 1.0);
        let scaled = absolute
            .scale
            .and_then(|scale| relative_errors(pairs, rpe_delta, scale));
        Ok(Self {
            frames: absolute.poses,
            ate_rmse_none: absolute.ate_rmse_none,
            ate_rmse_se3: absolute.ate_rmse_se3,
            ate_rmse_sim3: absolute.ate_rmse_sim3,
            scale: absolute.scale,
            rpe_delta,
            rpe_motions: relative.map_or(0, |errors| errors.motions),
            rpe_translation_rmse_se3: relative.map(|errors| errors.translation_rmse),
            rpe_translation_rmse_sim3: scaled.map(|errors| errors.translation_rmse),
            rpe_rotation_rmse: relative.map(|errors| errors.rotation_rmse),
            rotation_median_none: absolute.rotation_median_none,
            rotation_max_none: absolute.rotation_max_none,
            rotation_median: absolute.rotation_median,
            rotation_max: absolute.rotation_max,
        })
    }
}

/// Over all pixels of all frames; lengths in metres.
#[derive(Serialize)]
pub struct DepthReport {
    frames: usize,
    pixels: usize,
    abs_rel: f64,
    rmse: f64,
    delta_1_25: f64,
}

impl DepthReport {
    pub fn new(errors: &DepthErrors, frames: usize) -> Self {
        Self {
            frames,
            pixels: errors.pixels,
            abs_rel: errors.abs_rel,
            rmse: errors.rmse,
            delta_1_25: errors.delta_1_25,
        }
    }
}

/// Metres.
#[derive(Serialize)]
pub struct SurfaceReport {
    points: usize,
    mean: f64,
    median: f64,
    p90: f64,
}

impl SurfaceReport {
    pub fn new(errors: &SurfaceErrors) -> Self {
        Self {
            points: errors.points,
            mean: errors.mean,
            median: errors.median,
            p90: errors.p90,
        }
    }
}

impl Report {
    pub fn new(alignment: Alignment) -> Self {
        let align = match alignment {
            Alignment::None => "none",
            Alignment::Se3 => "se3",
            Alignment::Sim3 => "sim3",
        };
        Self {
            align,
            path: None,
            depth: None,
            surface: None,
        }
    }
}

const METRES: &str = "m";
const DEGREES: &str = "°";

/// A title and the heads of its columns.
fn head(f: &mut Formatter, title: &str, columns: &[&str]) -> fmt::Result {
    write!(f, "{title:<29}")?;
    columns
        .iter()
        .try_for_each(|column| write!(f, "{column:>11}"))?;
    writeln!(f)
}

/// A figure in its columns; `None` leaves one out.
fn row(f: &mut Formatter, name: &str, unit: &str, values: &[Option<f64>]) -> fmt::Result {
    write!(f, "  {name:<24} {unit:<2}")?;
    for value in values {
        match value {
            Some(value) => write!(f, "{value:>11.4}")?,
            None => write!(f, "{:>11}", "-")?,
        }
    }
    writeln!(f)
}

impl Display for PathReport {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let title = format!("path, {} poses", self.frames);
        head(f, &title, &["unaligned", "SE(3)", "Sim(3)"])?;
        let ate = [Some(self.ate_rmse_none), Some(self.ate_rmse_se3)];
        let ate = [ate[0], ate[1], self.ate_rmse_sim3];
        row(f, "ATE RMSE", METRES, &ate)?;
        let over = match self.rpe_delta.get() {
            1 => "1 frame".to_owned(),
            frames => format!("{frames} frames"),
        };
        let unscaled = self.rpe_translation_rmse_se3;
        let relative = [unscaled, unscaled, self.rpe_translation_rmse_sim3];
        row(f, &format!("RPE RMSE over {over}"), METRES, &relative)?;
        let rotation = self.rpe_rotation_rmse.map(f64::to_degrees);
        row(f, "", DEGREES, &[rotation; 3])?;
        row(f, "scale", "", &[Some(1.0), Some(1.0), self.scale])?;
        head(f, "rotation error", &["unaligned", "turned"])?;
        let degrees = |values: [f64; 2]| values.map(|value| Some(value.to_degrees()));
        let median = degrees([self.rotation_median_none, self.rotation_median]);
        row(f, "median", DEGREES, &median)?;
        let largest = degrees([self.rotation_max_none, self.rotation_max]);
        row(f, "largest", DEGREES, &largest)
    }
}

impl Display for DepthReport {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        head(f, &format!("depth, {} frames", self.frames), &[])?;
        row(f, "AbsRel", "", &[Some(self.abs_rel)])?;
        row(f, "RMSE", METRES, &[Some(self.rmse)])?;
        row(f, "δ<1.25", "", &[Some(self.delta_1_25)])
    }
}

impl Display for SurfaceReport {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        row(f, "mean", METRES, &[Some(self.mean)])?;
        row(f, "median", METRES, &[Some(self.median)])?;
        row(f, "90 % within", METRES, &[Some(self.p90)])
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        if let Some(path) = &self.path {
            path.fmt(f)?;
        }
        if let Some(depth) = &self.depth {
            depth.fmt(f)?;
        }
        if let Some(surface) = &self.surface {
            let align = match self.align {
                "none" => "unaligned",
                align => align,
            };
            let title = format!("surface, {} points", surface.points);
            head(f, &title, &[align])?;
            surface.fmt(f)?;
        }
        Ok(())
    }
}
