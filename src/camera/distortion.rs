//! The lens distortions of `sensor_msgs/distortion_models`, by OpenCV's published formulas.

use std::f64::consts::FRAC_PI_2;

use nalgebra::{Matrix3, Vector3};

use super::CalibrationError;

/// What a lens does to the point where a ray meets the plane one unit before the camera.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Distortion {
    None,
    Polynomial(Polynomial),
    Equidistant(Equidistant),
}

/// `plumb_bob` and `rational_polynomial`, with OpenCV's thin prism and tilted sensor where there are as many
/// coefficients. <https://docs.opencv.org/4.x/d9/d0c/group__calib3d.html>
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Polynomial {
    numerator: [f64; 3],
    denominator: [f64; 3],
    tangential: [f64; 2],
    thin_prism: [f64; 4],
    tilt: Matrix3<f64>,
    /// Rays farther from the axis than this are not seen: there the polynomial turns back towards the middle.
    reach: f64,
}

/// `equidistant`, OpenCV's fisheye model: the angle to the axis becomes the distance from the middle.
/// <https://docs.opencv.org/4.x/db/d58/group__calib3d__fisheye.html>
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Equidistant {
    k: [f64; 4],
    /// Radians.
    reach: f64,
}

impl Distortion {
    /// A model whose coefficients are all zero is none, whatever its name.
    pub fn new(model: &str, coefficients: &[f64]) -> Result<Self, CalibrationError> {
        if coefficients.iter().any(|k| !k.is_finite()) {
            return Err(CalibrationError::NotFinite);
        }
        if coefficients.iter().all(|&k| k == 0.0) {
            return Ok(Self::None);
        }
        let wrong_count = |expected| CalibrationError::CoefficientCount {
            model: model.to_owned(),
            found: coefficients.len(),
            expected,
        };
        match model {
            // Some drivers name the one and send the coefficients of the other; more of them only add terms.
            "plumb_bob" | "rational_polynomial" => match coefficients.len() {
                4 | 5 | 8 | 12 | 14 => Ok(Self::Polynomial(Polynomial::new(coefficients))),
                _ => Err(wrong_count("4, 5, 8, 12 or 14")),
            },
            "equidistant" => {
                let k = coefficients.try_into().map_err(|_| wrong_count("4"))?;
                Ok(Self::Equidistant(Equidistant::new(k)))
            }
            _ => Err(CalibrationError::UnknownModel(model.to_owned())),
        }
    }

    /// `None` for rays beyond what the lens sees.
    pub fn distort(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        match self {
            Self::None => Some((x, y)),
            Self::Polynomial(lens) => lens.distort(x, y),
            Self::Equidistant(lens) => lens.distort(x, y),
        }
    }
}

impl Polynomial {
    /// In OpenCV's order: k1, k2, p1, p2, k3, k4, k5, k6, s1 to s4, τx, τy.
    fn new(coefficients: &[f64]) -> Self {
        let at = |index: usize| coefficients.get(index).copied().unwrap_or(0.0);
        let mut lens = Self {
            numerator: [at(0), at(1), at(4)],
            denominator: [at(5), at(6), at(7)],
            tangential: [at(2), at(3)],
            thin_prism: [at(8), at(9), at(10), at(11)],
            tilt: tilt(at(12), at(13)),
            reach: 0.0,
        };
        // tan of 84 degrees: a wider view is no business of this model.
        lens.reach = end_of_rise(10.0, |r| r * lens.radial(r * r));
        lens
    }

    fn radial(&self, r2: f64) -> f64 {
        let series = |[a, b, c]: [f64; 3]| 1.0 + r2 * (a + r2 * (b + r2 * c));
        series(self.numerator) / series(self.denominator)
    }

    fn distort(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let r2 = x * x + y * y;
        if r2 > self.reach * self.reach {
            return None;
        }
        let radial = self.radial(r2);
        let [p1, p2] = self.tangential;
        let [s1, s2, s3, s4] = self.thin_prism;
        let distorted_x =
            x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x) + r2 * (s1 + r2 * s2);
        let distorted_y =
            y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y + r2 * (s3 + r2 * s4);
        let tilted = self.tilt * Vector3::new(distorted_x, distorted_y, 1.0);
        Some((tilted.x / tilted.z, tilted.y / tilted.z))
    }
}

/// The projection onto a sensor that is turned by these angles in radians.
fn tilt(tau_x: f64, tau_y: f64) -> Matrix3<f64> {
    let (sin_x, cos_x) = tau_x.sin_cos();
    let (sin_y, cos_y) = tau_y.sin_cos();
    let about_x = Matrix3::new(1.0, 0.0, 0.0, 0.0, cos_x, sin_x, 0.0, -sin_x, cos_x);
    let about_y = Matrix3::new(cos_y, 0.0, -sin_y, 0.0, 1.0, 0.0, sin_y, 0.0, cos_y);
    let r = about_y * about_x;
    let onto_plane = Matrix3::new(
        r[(2, 2)],
        0.0,
        -r[(0, 2)],
        0.0,
        r[(2, 2)],
        -r[(1, 2)],
        0.0,
        0.0,
        1.0,
    );
    onto_plane * r
}

impl Equidistant {
    fn new(k: [f64; 4]) -> Self {
        let mut lens = Self { k, reach: 0.0 };
        lens.reach = end_of_rise(FRAC_PI_2, |theta| lens.distorted(theta));
        lens
    }

    fn distorted(&self, theta: f64) -> f64 {
        let t2 = theta * theta;
        let [k1, k2, k3, k4] = self.k;
        theta * (1.0 + t2 * (k1 + t2 * (k2 + t2 * (k3 + t2 * k4))))
    }

    fn distort(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let r = x.hypot(y);
        let theta = r.atan();
        if theta > self.reach {
            return None;
        }
        let scale = if r > 1e-8 {
            self.distorted(theta) / r
        } else {
            1.0
        };
        Some((x * scale, y * scale))
    }
}

/// How far from zero on `f` rises, `limit` at the most.
fn end_of_rise(limit: f64, f: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 4096;
    let at = |step: u32| limit * f64::from(step) / f64::from(STEPS);
    let falls = |&step: &u32| f(at(step)) <= f(at(step - 1));
    (1..=STEPS).find(falls).map_or(limit, |step| at(step - 1))
}
