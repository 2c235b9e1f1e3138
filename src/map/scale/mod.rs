//! How many metres the map's unit has.
//!
//! The network sees shapes, not sizes: the unit of its depths and positions is the metre only for models trained so. What
//! has a size must come from outside: the way that wheels have counted, or how high above the floor the camera is.

mod height;
mod odometry;

use std::fmt;

use nalgebra::{Isometry3, Point3, Vector3};

use super::MapPoint;
use height::HeightScale;
use odometry::OdometryScale;

/// A measured scale is taken once its relative standard deviation is this small.
const SURE: f64 = 0.01;
/// What is said of a scale that nobody knows: it may well be twice as much.
const UNKNOWN: f64 = 1.0;

/// Where the scale comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum ScaleSource {
    /// Lengths stay in the network's unit.
    #[default]
    None,
    /// Metres in a unit, and its relative standard deviation.
    Fixed { factor: f64, uncertainty: f64 },
    /// The camera's positions as odometry counts them.
    Odometry,
    /// The camera's height above the floor, in metres.
    CameraHeight(f64),
}

/// The scale as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    pub metres_per_unit: f64,
    /// Relative standard deviation.
    pub uncertainty: f64,
    /// Whether lengths are in metres: false until a source is sure.
    pub is_metric: bool,
}

impl Scale {
    pub const UNIT: Scale = Scale {
        metres_per_unit: 1.0,
        uncertainty: UNKNOWN,
        is_metric: false,
    };

    /// Positions and depths grow with the scale, rotations do not.
    pub fn of_pose(&self, pose: &Isometry3<f64>) -> Isometry3<f64> {
        let mut scaled = *pose;
        scaled.translation.vector *= self.metres_per_unit;
        scaled
    }

    pub fn of_point(&self, mut point: MapPoint) -> MapPoint {
        let factor = self.metres_per_unit as f32;
        point.position = point.position.map(|coordinate| coordinate * factor);
        point
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.4} m in a unit, within {:.1} %",
            self.metres_per_unit,
            100.0 * self.uncertainty
        )
    }
}

/// What a source has found so far.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Estimate {
    metres_per_unit: f64,
    /// Relative standard deviation.
    uncertainty: f64,
}

enum Estimator {
    Known,
    Odometry(OdometryScale),
    Height(HeightScale),
}

/// Follows a source until it is sure, and then keeps its scale for as long as the map lives: a map whose size changes
/// under a robot's feet is worse than one that is a percent too large.
pub struct ScaleKeeper {
    source: ScaleSource,
    estimator: Estimator,
    scale: Scale,
    latest: Option<Estimate>,
}

impl ScaleKeeper {
    pub fn new(source: ScaleSource) -> Self {
        let (estimator, scale) = match source {
            ScaleSource::None => (Estimator::Known, Scale::UNIT),
            ScaleSource::Fixed {
                factor,
                uncertainty,
            } => {
                let scale = Scale {
                    metres_per_unit: factor,
                    uncertainty,
                    is_metric: true,
                };
                (Estimator::Known, scale)
            }
            ScaleSource::Odometry => (Estimator::Odometry(OdometryScale::default()), Scale::UNIT),
            ScaleSource::CameraHeight(metres) => {
                (Estimator::Height(HeightScale::new(metres)), Scale::UNIT)
            }
        };
        Self {
            source,
            estimator,
            scale,
            latest: None,
        }
    }

    pub fn source(&self) -> ScaleSource {
        self.source
    }

    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The camera's position in the map's unit and, at the same time, in metres as odometry has it. Returns whether the
    /// scale has just become known.
    pub fn see_odometry(&mut self, in_map: Point3<f64>, in_metres: Point3<f64>) -> bool {
        let Estimator::Odometry(estimator) = &mut self.estimator else {
            return false;
        };
        if self.scale.is_metric {
            return false;
        }
        let found = estimator.see(in_map, in_metres);
        self.take(found)
    }

    /// The points of a frame and the place of its camera; `up` is a unit vector in the same world. Returns whether the
    /// scale has just become known.
    pub fn see_frame(
        &mut self,
        points: &[MapPoint],
        camera: &Point3<f64>,
        up: &Vector3<f64>,
    ) -> bool {
        let Estimator::Height(estimator) = &mut self.estimator else {
            return false;
        };
        if self.scale.is_metric {
            return false;
        }
        let found = estimator.see(points, camera, up);
        self.take(found)
    }

    fn take(&mut self, found: Option<Estimate>) -> bool {
        let Some(found) = found else { return false };
        self.latest = Some(found);
        if found.uncertainty > SURE {
            return false;
        }
        self.scale = Scale {
            metres_per_unit: found.metres_per_unit,
            uncertainty: found.uncertainty,
            is_metric: true,
        };
        true
    }

    /// A new map has a unit of its own.
    pub fn reset(&mut self) {
        *self = Self::new(self.source);
    }

    /// In words, for diagnostics.
    pub fn describe(&self) -> String {
        let name = match self.source {
            ScaleSource::None => return "none: lengths are in the network's unit".into(),
            ScaleSource::Fixed { .. } => "fixed",
            ScaleSource::Odometry => "odometry",
            ScaleSource::CameraHeight(_) => "camera height",
        };
        match self.latest {
            _ if self.scale.is_metric => format!("{name}: {}", self.scale),
            Some(Estimate { uncertainty, .. }) => format!(
                "{name}: not yet, known within {:.0} %; lengths are in the network's unit",
                100.0 * uncertainty
            ),
            None => format!("{name}: nothing measured yet; lengths are in the network's unit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_scale_is_known_at_once_and_again_after_a_reset() {
        let mut keeper = ScaleKeeper::new(ScaleSource::Fixed {
            factor: 2.5,
            uncertainty: 0.1,
        });
        for _ in 0..2 {
            let scale = keeper.scale();
            assert_eq!((scale.metres_per_unit, scale.is_metric), (2.5, true));
            let pose = scale.of_pose(&Isometry3::translation(1.0, 2.0, 3.0));
            assert_eq!(pose.translation.vector, Vector3::new(2.5, 5.0, 7.5));
            keeper.reset();
        }
        assert!(keeper.describe().starts_with("fixed: 2.5000 m"));
    }

    #[test]
    fn without_a_source_nothing_is_metric() {
        let mut keeper = ScaleKeeper::new(ScaleSource::None);
        assert!(!keeper.see_odometry(Point3::origin(), Point3::origin()));
        assert_eq!(keeper.scale(), Scale::UNIT);
    }
}
