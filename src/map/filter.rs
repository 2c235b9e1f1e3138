//! Which pixels of a frame are worth a point.

use ndarray::ArrayView2;

/// Which of a frame's pixels become points. Lengths are in the map's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointFilter {
    /// Pixels of less confidence are left out. The reference implementation's viewers use 1.5.
    pub conf_threshold: f32,
    /// Share of each frame's pixels, the least sure ones, that is left out as well: percent, 0 to 100.
    pub conf_percentile: f32,
    /// Pixels whose depth differs from a neighbour's by more than this share of the nearer one are left out: at the
    /// edges of things, depth runs smoothly from one surface to the next through places where there is nothing ("flying
    /// pixels"). `None` keeps them.
    pub depth_edge: Option<f32>,
    /// What is farther away along the optical axis is left out.
    pub max_depth: Option<f32>,
    /// Pixels at each side of the image that are left out.
    pub border: usize,
}

impl Default for PointFilter {
    fn default() -> Self {
        Self {
            conf_threshold: 1.5,
            conf_percentile: 0.0,
            depth_edge: Some(0.05),
            max_depth: None,
            border: 0,
        }
    }
}

/// A filter made ready for one frame.
pub(super) struct FrameFilter<'a> {
    depth: ArrayView2<'a, f32>,
    confidence: ArrayView2<'a, f32>,
    least_confidence: f32,
    /// One more than the share, so that depths at an edge have this ratio.
    edge_ratio: Option<f32>,
    max_depth: f32,
    border: usize,
}

impl<'a> FrameFilter<'a> {
    /// `depth` and `confidence` [H, W].
    pub fn new(
        filter: &PointFilter,
        depth: ArrayView2<'a, f32>,
        confidence: ArrayView2<'a, f32>,
    ) -> Self {
        let percentile = confidence_at(confidence, filter.conf_percentile);
        Self {
            depth,
            confidence,
            least_confidence: percentile.map_or(filter.conf_threshold, |found| {
                found.max(filter.conf_threshold)
            }),
            edge_ratio: filter.depth_edge.map(|share| 1.0 + share),
            max_depth: filter.max_depth.unwrap_or(f32::INFINITY),
            border: filter.border,
        }
    }

    /// Depth and confidence of a pixel that becomes a point, if the mask allows it.
    pub fn get(&self, row: usize, column: usize) -> Option<(f32, f32)> {
        let depth = *self.depth.get([row, column])?;
        let confidence = *self.confidence.get([row, column])?;
        // Comparisons with NaN are false.
        let sure = confidence >= self.least_confidence && confidence.is_finite();
        let near = depth > 0.0 && depth.is_finite() && depth <= self.max_depth;
        let (height, width) = self.depth.dim();
        let inside = |at: usize, side: usize| at >= self.border && at + self.border < side;
        let kept = sure && near && inside(row, height) && inside(column, width);
        let smooth = || {
            self.edge_ratio
                .is_none_or(|ratio| !self.is_edge(row, column, depth, ratio))
        };
        (kept && smooth()).then_some((depth, confidence))
    }

    fn is_edge(&self, row: usize, column: usize, depth: f32, ratio: f32) -> bool {
        let places = [
            (row.wrapping_sub(1), column),
            (row + 1, column),
            (row, column.wrapping_sub(1)),
            (row, column + 1),
        ];
        let mut neighbours = places
            .into_iter()
            .filter_map(|(row, column)| self.depth.get([row, column]));
        neighbours.any(|&other| other > depth * ratio || other * ratio < depth)
    }
}

/// The confidence that `percent` of all pixels with a finite one do not reach; `None` where that is none of them.
fn confidence_at(confidence: ArrayView2<f32>, percent: f32) -> Option<f32> {
    if percent.is_nan() || percent <= 0.0 {
        return None;
    }
    let mut values: Vec<f32> = confidence
        .iter()
        .copied()
        .filter(|c| c.is_finite())
        .collect();
    let place = (f64::from(percent.min(100.0)) / 100.0 * values.len() as f64) as usize;
    if place >= values.len() {
        // All of them are to go.
        return Some(f32::INFINITY);
    }
    Some(*values.select_nth_unstable_by(place, f32::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    const OPEN: PointFilter = PointFilter {
        conf_threshold: 0.0,
        conf_percentile: 0.0,
        depth_edge: None,
        max_depth: None,
        border: 0,
    };

    fn kept(filter: PointFilter, depth: &Array2<f32>, confidence: &Array2<f32>) -> Vec<Vec<bool>> {
        let filter = FrameFilter::new(&filter, depth.view(), confidence.view());
        let row = |row| {
            (0..depth.ncols())
                .map(|column| filter.get(row, column).is_some())
                .collect()
        };
        (0..depth.nrows()).map(row).collect()
    }

    fn row(filter: PointFilter, depth: &[f32]) -> Vec<bool> {
        let depth = Array2::from_shape_vec((1, depth.len()), depth.to_vec()).unwrap();
        let confidence = Array2::from_elem(depth.dim(), 2.0);
        kept(filter, &depth, &confidence).remove(0)
    }

    #[test]
    fn both_sides_of_a_jump_and_what_hangs_between_are_left_out() {
        let filter = PointFilter {
            depth_edge: Some(0.1),
            ..OPEN
        };
        let depth = [1.0, 1.09, 1.09, 1.5, 1.9, 2.0, 2.0];
        let expected = [true, true, false, false, false, true, true];
        assert_eq!(row(filter, &depth), expected);
        assert_eq!(row(OPEN, &depth), [true; 7]);
        // The same surfaces ten times as far away have the same edges.
        assert_eq!(row(filter, &depth.map(|d| d * 10.0)), expected);
    }

    #[test]
    fn jumps_from_row_to_row_count_too() {
        let filter = PointFilter {
            depth_edge: Some(0.1),
            ..OPEN
        };
        let depth = array![[1.0f32, 1.0], [1.0, 1.0], [1.0, 2.0]];
        let found = kept(filter, &depth, &Array2::from_elem((3, 2), 2.0));
        assert_eq!(found, [[true, true], [true, false], [false, false]]);
    }

    #[test]
    fn a_slanted_plane_has_no_edges() {
        let filter = PointFilter {
            depth_edge: Some(0.1),
            ..OPEN
        };
        // Inverse depth is linear in a plane: here the floor from a twentieth of the picture below the horizon on.
        let floor: Vec<f32> = (11..400).map(|row| 400.0 / row as f32).collect();
        assert_eq!(row(filter, &floor), vec![true; floor.len()]);
    }

    #[test]
    fn the_least_sure_share_of_each_frame_goes() {
        let depth = Array2::from_elem((2, 5), 1.0);
        let confidence = array![[9.0f32, 1.0, 5.0, 3.0, 7.0], [2.0, 8.0, 4.0, 6.0, 10.0]];
        let count = |conf_percentile: f32, conf_threshold: f32| {
            let filter = PointFilter {
                conf_percentile,
                conf_threshold,
                ..OPEN
            };
            let all = kept(filter, &depth, &confidence).concat();
            all.into_iter().filter(|kept| *kept).count()
        };
        assert_eq!([0.0, 30.0, 100.0].map(|p| count(p, 0.0)), [10, 7, 0]);
        assert_eq!(count(f32::NAN, 0.0), 10);
        // The stricter of both counts.
        assert_eq!((count(30.0, 6.0), count(80.0, 6.0)), (5, 2));
    }

    #[test]
    fn far_pixels_and_those_at_the_border_are_left_out() {
        let filter = PointFilter {
            max_depth: Some(3.0),
            ..OPEN
        };
        assert_eq!(row(filter, &[1.0, 3.0, 3.1]), [true, true, false]);
        let ones = Array2::from_elem((4, 5), 1.0);
        let count = |border: usize| {
            let all = kept(PointFilter { border, ..OPEN }, &ones, &ones).concat();
            all.into_iter().filter(|kept| *kept).count()
        };
        assert_eq!([0, 1, 2, usize::MAX / 2].map(count), [20, 6, 0, 0]);
    }
}
