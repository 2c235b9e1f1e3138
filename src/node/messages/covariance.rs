//! How uncertain a published pose is.
//!
//! The network gives no covariance. What it does give is a confidence `c` for every depth, trained with the loss
//! `c * error - alpha * ln(c)` (DUSt3R, VGGT), whose optimum is `c = alpha / error`: the error that it expects of a
//! depth is `alpha / c`. The mean of it over a frame, relative to the depth, is taken as the frame's relative error: the
//! rotation's standard deviation in radians, and by the mean depth the position's. On top of it comes the unknown
//! scale: a share of the distance from the map's origin. This is a model that orders frames by how sure the network is,
//! not a calibrated probability: drift over many frames is not in it.

use nalgebra::{Matrix3, Vector3};
use ndarray::Array2;

/// `alpha` of the training of VGGT, from which the released networks descend.
const ALPHA: f64 = 0.2;
/// Pixels from one to the next that are looked at, in rows and columns: the mean over hundreds is as good as over all.
const STRIDE: usize = 7;

/// Relative error of a frame's depth and its mean depth; `None` without a pixel of finite confidence and positive depth.
pub fn depth_error(depth: &Array2<f32>, confidence: &Array2<f32>) -> Option<(f64, f64)> {
    let (mut error, mut mean, mut count) = (0.0, 0.0, 0.0);
    for (depths, confidences) in (depth.rows().into_iter().zip(confidence.rows())).step_by(STRIDE) {
        for (&depth, &confidence) in depths.iter().zip(confidences).step_by(STRIDE) {
            if depth > 0.0 && depth.is_finite() && confidence >= 1.0 {
                error += ALPHA / f64::from(confidence);
                mean += f64::from(depth);
                count += 1.0;
            }
        }
    }
    (count > 0.0).then(|| {
        (
            error / count / (mean / count).max(f64::EPSILON),
            mean / count,
        )
    })
}

/// The 6x6 matrix of `geometry_msgs/PoseWithCovariance`, row by row: x, y, z, then turns about the fixed axes.
/// `position`: from the map's origin; `scale_uncertainty`: relative standard deviation of the map's unit.
pub fn covariance(
    (relative_error, mean_depth): (f64, f64),
    position: &Vector3<f64>,
    scale_uncertainty: f64,
) -> Vec<f64> {
    let of_depth = (relative_error * mean_depth).powi(2);
    let of_scale = position * scale_uncertainty;
    // A wrong scale moves the position along its own direction only.
    let of_position = Matrix3::from_diagonal_element(of_depth) + of_scale * of_scale.transpose();
    let mut matrix = vec![0.0; 36];
    for row in 0..3 {
        for column in 0..3 {
            matrix[row * 6 + column] = of_position[(row, column)];
        }
        matrix[(row + 3) * 7] = relative_error.powi(2);
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surer_frames_have_smaller_errors() {
        let depth = Array2::from_elem((20, 30), 2.0);
        let error = |c: f32| depth_error(&depth, &Array2::from_elem((20, 30), c)).unwrap();
        let (relative, mean) = error(2.0);
        assert!((relative - 0.05).abs() < 1e-9 && mean == 2.0);
        assert!((error(10.0).0 - 0.01).abs() < 1e-9);
        let nothing = Array2::from_elem((20, 30), f32::NAN);
        assert_eq!(depth_error(&nothing, &depth), None);
        assert_eq!(depth_error(&depth, &nothing), None);
    }

    #[test]
    fn an_unknown_scale_is_an_error_along_the_way() {
        let matrix = covariance((0.01, 2.0), &Vector3::new(3.0, 4.0, 0.0), 0.5);
        assert!((matrix[0] - (0.0004 + 2.25)).abs() < 1e-12);
        assert!((matrix[1] - 3.0).abs() < 1e-12 && matrix[1] == matrix[6]);
        assert!((matrix[14] - 0.0004).abs() < 1e-12);
        assert_eq!([matrix[21], matrix[28], matrix[35]], [1e-4; 3]);
        assert_eq!(matrix.len(), 36);
    }
}
