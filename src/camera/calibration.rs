//! `sensor_msgs/CameraInfo`: what is known of a calibrated camera.

use nalgebra::{Matrix3, Rotation3, Vector3};
use thiserror::Error;

use super::distortion::Distortion;
use super::intrinsics::{Intrinsics, PixelTransform};
use super::resample::Region;

/// A calibration that cannot be used. [`CalibrationError::reason`] names the kind for counters.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CalibrationError {
    #[error("the calibration holds a value that is not finite")]
    NotFinite,
    #[error("focal lengths of {fx} and {fy} pixels are not both positive")]
    FocalLength { fx: f64, fy: f64 },
    #[error("unknown distortion model {0:?}: plumb_bob, rational_polynomial or equidistant")]
    UnknownModel(String),
    #[error("{found} coefficients for the distortion model {model}, which has {expected}")]
    CoefficientCount {
        model: String,
        found: usize,
        expected: &'static str,
    },
    #[error("the rectification matrix is no rotation")]
    NotARotation,
    #[error("the region of interest does not lie in the calibrated {width}x{height} pixels")]
    RegionOutside { width: u32, height: u32 },
    #[error(
        "an image of {width}x{height} is no scaled picture of the calibrated \
         {calibrated_width}x{calibrated_height}"
    )]
    SizeMismatch {
        width: u32,
        height: u32,
        calibrated_width: u32,
        calibrated_height: u32,
    },
    #[error("images of {width}x{height} cannot be rectified")]
    Unrectifiable { width: u32, height: u32 },
    #[error("unknown value {0:?} of rectify: auto, always or never")]
    UnknownRectify(String),
}

impl CalibrationError {
    /// A stable label of the kind of fault, for counting.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFinite => "calibration_not_finite",
            Self::FocalLength { .. } => "focal_length",
            Self::UnknownModel(_) => "unknown_distortion_model",
            Self::CoefficientCount { .. } => "distortion_coefficients",
            Self::NotARotation => "rectification_matrix",
            Self::RegionOutside { .. } => "region_outside",
            Self::SizeMismatch { .. } => "calibration_size",
            Self::Unrectifiable { .. } => "unrectifiable_size",
            Self::UnknownRectify(_) => "unknown_rectify",
        }
    }
}

/// The fields of a `sensor_msgs/CameraInfo`, named and ordered as there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CameraInfo {
    pub width: u32,
    pub height: u32,
    pub distortion_model: String,
    pub d: Vec<f64>,
    pub k: [f64; 9],
    pub r: [f64; 9],
    pub p: [f64; 12],
    pub binning_x: u32,
    pub binning_y: u32,
    pub roi: RegionOfInterest,
}

/// The part of the sensor that is sent, in its own pixels. All zero: the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegionOfInterest {
    pub x_offset: u32,
    pub y_offset: u32,
    pub width: u32,
    pub height: u32,
}

/// A calibrated camera, in pixels of the pictures that it sends.
#[derive(Debug, Clone, PartialEq)]
pub struct CameraModel {
    /// Width and height, where the calibration states them.
    size: Option<(u32, u32)>,
    distorted: Intrinsics,
    rectified: Intrinsics,
    rectified_from_camera: Rotation3<f64>,
    distortion: Distortion,
}

impl CameraModel {
    /// Reads a calibration; `None` for a camera that is not calibrated, whose first element of K is zero (the rule of
    /// `CameraInfo.msg`).
    ///
    /// K and P follow the region of interest and the binning as in `image_geometry`: the region's corner is taken off
    /// the principal point, then all is divided by the binning. An R of zeros counts as the identity. A P without
    /// positive focal lengths or with a principal point outside the picture counts as K.
    ///
    /// # Errors
    /// Values that are not finite, focal lengths that are not positive, a distortion that is not known, an R that is no
    /// rotation, and a region of interest beyond the calibrated size.
    pub fn from_info(info: &CameraInfo) -> Result<Option<Self>, CalibrationError> {
        if info.k[0] == 0.0 {
            return Ok(None);
        }
        let matrices = info.k.iter().chain(&info.r).chain(&info.p);
        if matrices.into_iter().any(|value| !value.is_finite()) {
            return Err(CalibrationError::NotFinite);
        }
        let [fx, _, cx, _, fy, cy, ..] = info.k;
        if fx <= 0.0 || fy <= 0.0 {
            return Err(CalibrationError::FocalLength { fx, fy });
        }
        let k = Intrinsics { fx, fy, cx, cy };
        let p = projection(info).unwrap_or(k);
        Ok(Some(Self {
            size: sent_size(info)?,
            distorted: as_sent(k, info),
            rectified: as_sent(p, info),
            rectified_from_camera: rectification(&info.r)?,
            distortion: Distortion::new(&info.distortion_model, &info.d)?,
        }))
    }

    /// The same camera for images of another resolution of the same shape: each side may be off by a pixel from
    /// rounding. A calibration that states no size is taken for one of this size.
    ///
    /// # Errors
    /// [`CalibrationError::SizeMismatch`] for images of another shape.
    pub fn at_size(&self, width: u32, height: u32) -> Result<Self, CalibrationError> {
        let mut model = self.clone();
        model.size = Some((width, height));
        let (calibrated_width, calibrated_height) = match self.size {
            Some(size) if size != (width, height) => size,
            _ => return Ok(model),
        };
        let of = |side: u32, calibrated: u32| f64::from(side) / f64::from(calibrated);
        let (scale_x, scale_y) = (of(width, calibrated_width), of(height, calibrated_height));
        let off_x = (f64::from(calibrated_width) * scale_y - f64::from(width)).abs();
        let off_y = (f64::from(calibrated_height) * scale_x - f64::from(height)).abs();
        // Also false for an image or a calibration without pixels.
        if !(off_x <= 1.0 || off_y <= 1.0) || width == 0 || height == 0 {
            return Err(CalibrationError::SizeMismatch {
                width,
                height,
                calibrated_width,
                calibrated_height,
            });
        }
        let whole = Region::whole((calibrated_width, calibrated_height));
        let scaling = PixelTransform::of(whole, width, height, 0, 0);
        model.distorted = self.distorted.through(&scaling);
        model.rectified = self.rectified.through(&scaling);
        Ok(model)
    }

    /// Whether the lens bends straight lines.
    pub fn is_distorted(&self) -> bool {
        self.distortion != Distortion::None
    }

    /// Of the images as they come from the sensor. They describe a distorted one only near its middle.
    pub fn intrinsics(&self) -> Intrinsics {
        self.distorted
    }

    /// Of rectified images: P, or K where there is no usable P.
    pub fn rectified_intrinsics(&self) -> Intrinsics {
        self.rectified
    }

    /// The place in the sensor's image of a pixel of the rectified one, which may lie outside of it. `None` for what
    /// the lens does not see.
    pub fn source_of(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let k = &self.rectified;
        let ray = Vector3::new((x - k.cx) / k.fx, (y - k.cy) / k.fy, 1.0);
        let ray = self.rectified_from_camera.inverse_transform_vector(&ray);
        if ray.z <= 0.0 {
            return None;
        }
        let (x, y) = self.distortion.distort(ray.x / ray.z, ray.y / ray.z)?;
        let k = &self.distorted;
        Some((x * k.fx + k.cx, y * k.fy + k.cy))
    }
}

/// The left part of P, if it can be one.
fn projection(info: &CameraInfo) -> Option<Intrinsics> {
    let [fx, _, cx, _, _, fy, cy, ..] = info.p;
    let within = |centre: f64, side: u32| side == 0 || (0.0..=f64::from(side)).contains(&centre);
    let usable = fx > 0.0 && fy > 0.0 && within(cx, info.width) && within(cy, info.height);
    usable.then_some(Intrinsics { fx, fy, cx, cy })
}

/// From the sensor's pixels to those of the pictures that are sent.
fn as_sent(k: Intrinsics, info: &CameraInfo) -> Intrinsics {
    let binning_x = f64::from(info.binning_x.max(1));
    let binning_y = f64::from(info.binning_y.max(1));
    Intrinsics {
        fx: k.fx / binning_x,
        fy: k.fy / binning_y,
        cx: (k.cx - f64::from(info.roi.x_offset)) / binning_x,
        cy: (k.cy - f64::from(info.roi.y_offset)) / binning_y,
    }
}

fn sent_size(info: &CameraInfo) -> Result<Option<(u32, u32)>, CalibrationError> {
    let &CameraInfo {
        width, height, roi, ..
    } = info;
    let extent = |side: u32, region: u32| if region == 0 { side } else { region };
    let (columns, rows) = (extent(width, roi.width), extent(height, roi.height));
    let is_whole = roi.width == 0 && roi.height == 0;
    if width > 0 && height > 0 && !is_whole {
        let right = u64::from(roi.x_offset) + u64::from(columns);
        let bottom = u64::from(roi.y_offset) + u64::from(rows);
        if right > u64::from(width) || bottom > u64::from(height) {
            return Err(CalibrationError::RegionOutside { width, height });
        }
    }
    let (columns, rows) = (
        columns / info.binning_x.max(1),
        rows / info.binning_y.max(1),
    );
    Ok((columns > 0 && rows > 0).then_some((columns, rows)))
}

fn rectification(r: &[f64; 9]) -> Result<Rotation3<f64>, CalibrationError> {
    if r.iter().all(|&value| value == 0.0) {
        return Ok(Rotation3::identity());
    }
    let matrix = Matrix3::from_row_slice(r);
    let off = (matrix * matrix.transpose() - Matrix3::identity()).amax();
    // Written with a few digits in a calibration file.
    if off > 1e-2 || matrix.determinant() <= 0.0 {
        return Err(CalibrationError::NotARotation);
    }
    Ok(Rotation3::from_matrix(&matrix))
}

#[cfg(test)]
mod tests;
