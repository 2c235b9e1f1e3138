//! Depth images against true ones.

use ndarray::ArrayView2;

use super::EvaluationError;

/// Errors of depth over the pixels that have a true value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DepthErrors {
    /// Mean of |depth - truth| / truth.
    pub abs_rel: f64,
    /// Root of the mean squared error, in the truth's unit.
    pub rmse: f64,
    /// Share of pixels whose ratio to the truth, or of the truth to it, is below 1.25.
    pub delta_1_25: f64,
    /// How many pixels were compared.
    pub pixels: usize,
}

impl DepthErrors {
    /// The errors over all pixels of several frames; `None` for no frames.
    pub fn combined(frames: &[Self]) -> Option<Self> {
        let pixels: usize = frames.iter().map(|f| f.pixels).sum();
        if pixels == 0 {
            return None;
        }
        let mean = |of: fn(&Self) -> f64| {
            let sum: f64 = frames.iter().map(|f| of(f) * f.pixels as f64).sum();
            sum / pixels as f64
        };
        Some(Self {
            abs_rel: mean(|f| f.abs_rel),
            rmse: mean(|f| f.rmse.powi(2)).sqrt(),
            delta_1_25: mean(|f| f.delta_1_25),
            pixels,
        })
    }
}

/// Compares depth with the true depth, pixel by pixel and without alignment. Pixels whose truth is not finite and
/// positive do not count; a depth that is not is an error of the whole truth.
///
/// # Errors
/// [`EvaluationError::Shape`], [`EvaluationError::NoPixels`].
pub fn compare_depth(
    depth: ArrayView2<f32>,
    truth: ArrayView2<f32>,
) -> Result<DepthErrors, EvaluationError> {
    if depth.dim() != truth.dim() {
        let shape = |array: &ArrayView2<f32>| [array.nrows(), array.ncols()];
        return Err(EvaluationError::Shape {
            found: shape(&depth),
            expected: shape(&truth),
        });
    }
    let (mut relative, mut squares, mut close, mut pixels) = (0.0, 0.0, 0usize, 0usize);
    for (&depth, &truth) in depth.iter().zip(&truth) {
        let (depth, truth) = (f64::from(depth), f64::from(truth));
        if !(truth.is_finite() && truth > 0.0) {
            continue;
        }
        let depth = if depth.is_finite() {
            depth.max(0.0)
        } else {
            0.0
        };
        let error = (depth - truth).abs();
        relative += error / truth;
        squares += error * error;
        close += usize::from(depth < 1.25 * truth && truth < 1.25 * depth);
        pixels += 1;
    }
    if pixels == 0 {
        return Err(EvaluationError::NoPixels);
    }
    let count = pixels as f64;
    Ok(DepthErrors {
        abs_rel: relative / count,
        rmse: (squares / count).sqrt(),
        delta_1_25: close as f64 / count,
        pixels,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn depth_errors_are_those_of_the_literature() {
        let truth = array![[1.0, 2.0, 4.0, 0.0], [1.0, f32::NAN, 10.0, 2.0]];
        let depth = array![[1.1, 2.0, 5.0, 9.0], [0.7, 1.0, 13.0, f32::NAN]];
        let errors = compare_depth(depth.view(), truth.view()).unwrap();
        assert_eq!(errors.pixels, 6);
        assert!((errors.abs_rel - (0.1 + 0.0 + 0.25 + 0.3 + 0.3 + 1.0) / 6.0).abs() < 1e-6);
        let squares = 0.01 + 0.0 + 1.0 + 0.09 + 9.0 + 4.0;
        assert!((errors.rmse - (squares / 6.0f64).sqrt()).abs() < 1e-6);
        // 5/4 is the bound itself; only 1.1 and 2 are within it.
        assert_eq!(errors.delta_1_25, 2.0 / 6.0);
    }

    #[test]
    fn frames_combine_pixel_by_pixel() {
        let truth = array![[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]];
        let depth = array![[1.5f32, 2.1, 2.0, 4.0, 9.0, 6.5]];
        let whole = compare_depth(depth.view(), truth.view()).unwrap();
        let part = |from: isize, to: isize| {
            let range = ndarray::s![.., from..to];
            compare_depth(depth.slice(range), truth.slice(range)).unwrap()
        };
        let combined = DepthErrors::combined(&[part(0, 1), part(1, 6)]).unwrap();
        assert_eq!(combined.pixels, whole.pixels);
        assert!((combined.abs_rel - whole.abs_rel).abs() < 1e-12);
        assert!((combined.rmse - whole.rmse).abs() < 1e-12);
        assert!((combined.delta_1_25 - whole.delta_1_25).abs() < 1e-12);
        assert_eq!(DepthErrors::combined(&[]), None);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let (small, large) = (array![[1.0f32]], array![[1.0f32, 2.0]]);
        let shape = EvaluationError::Shape {
            found: [1, 1],
            expected: [1, 2],
        };
        assert_eq!(compare_depth(small.view(), large.view()), Err(shape));
        let none = array![[0.0f32]];
        assert_eq!(
            compare_depth(small.view(), none.view()),
            Err(EvaluationError::NoPixels)
        );
    }
}
