//! The size of voxels that suits a scene.

use super::MapPoint;

/// Fewer points say nothing of a scene's size.
const FEWEST_POINTS: usize = 100;
const VOXELS_PER_REACH: f32 = 80.0;
/// How many times larger than a reach asks for voxels may be where pixels are coarse.
const COARSEST: f32 = 3.0;

/// Edge of the voxels for a cloud in the order of a frame's pixels; `None` for one of too few finite points, or without
/// any extent. Voxels smaller than the distance of neighbouring pixels' points would hardly ever hold two of them.
pub(super) fn for_cloud(points: &[MapPoint]) -> Option<f32> {
    let finite = points
        .iter()
        .filter(|p| p.position.iter().all(|c| c.is_finite()));
    let positions: Vec<[f32; 3]> = finite.map(|p| p.position).collect();
    if positions.len() < FEWEST_POINTS {
        return None;
    }
    let middle = [0, 1, 2].map(|axis| median(positions.iter().map(|p| p[axis]).collect()));
    let reach = median(positions.iter().map(|p| distance(p, &middle)).collect());
    let neighbours = positions.iter().zip(positions.iter().skip(1));
    let spacing = median(neighbours.map(|(a, b)| distance(a, b)).collect());
    let finest = reach / VOXELS_PER_REACH;
    let size = spacing.min(finest * COARSEST).max(finest);
    (size > 0.0 && size.is_finite()).then_some(size)
}

fn distance(a: &[f32; 3], b: &[f32; 3]) -> f32 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f32>().sqrt()
}

fn median(mut values: Vec<f32>) -> f32 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return f32::NAN;
    }
    *values.select_nth_unstable_by(middle, f32::total_cmp).1
}
