//! Comparison with a known truth.

mod depth;
mod pairs;
mod path;
mod surface;

use thiserror::Error;

pub use self::depth::{DepthErrors, compare_depth};
pub use self::pairs::{PosePair, pair, pair_by_time};
pub use self::path::{
    Alignment, PathErrors, PoseDifference, RelativeErrors, compare_paths, path_errors, pose_errors,
    relative_errors,
};
pub use self::surface::{PointSample, SurfaceErrors, surface_errors};
use crate::geometry::AlignError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EvaluationError {
    #[error("no pose of the path has a true pose within 10 ms")]
    NoPairs,
    #[error(
        "a path of {estimate} poses cannot be paired by order with a true one of {truth}: without times both must \
         have as many"
    )]
    Count { estimate: usize, truth: usize },
    #[error("the path cannot be aligned with the true one: {0}")]
    Align(#[from] AlignError),
    #[error("depth of {found:?} cannot be compared with a truth of {expected:?}")]
    Shape {
        found: [usize; 2],
        expected: [usize; 2],
    },
    #[error("no pixel has both a depth and a true one")]
    NoPixels,
    #[error("there are no points to measure")]
    NoPoints,
}

/// Of sorted values, the one below which the share `share` of them lies, interpolated between neighbours; NaN for no
/// values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    match (sorted.get(below), sorted.get(above)) {
        (Some(below), Some(above)) => below + (above - below) * place.fract(),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let values = [1.0, 2.0, 4.0, 8.0];
        for (share, expected) in [(0.0, 1.0), (0.5, 3.0), (0.9, 6.8), (1.0, 8.0)] {
            assert!((quantile(&values, share) - expected).abs() < 1e-12);
        }
        assert_eq!(quantile(&[7.0], 0.9), 7.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
