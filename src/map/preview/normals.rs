//! Which way surfaces face.

use std::collections::HashMap;

use nalgebra::{Matrix3, SymmetricEigen, Vector3};
use rustc_hash::FxBuildHasher;

type Cell = [i32; 3];

/// A flat piece of the map. `facing` has length one and points to the side that the camera was on.
#[derive(Clone, Copy)]
pub(super) struct Surface {
    pub facing: Vector3<f32>,
}

/// Normals of the cells of a fine and of a coarse grid, from the spread of the points in and around each.
pub(super) struct Normals {
    levels: Vec<Level>,
    spacing: f32,
}

struct Level {
    cell: f32,
    surfaces: Grid<Surface>,
}

type Grid<T> = HashMap<Cell, T, FxBuildHasher>;

#[derive(Clone, Copy, Default)]
struct Moments {
    count: f32,
    sum: Vector3<f32>,
    squares: Matrix3<f32>,
}

/// Cells along the diagonal of the map, and how much thinner than wide a surface must lie: sharp surfaces show on the
/// fine grid, walls smeared by errors of depth and pose on the coarse one.
const LEVELS: [(f32, f32); 2] = [(60.0, 0.3), (24.0, 0.5)];
/// Points needed to tell a plane.
const FEWEST: f32 = 8.0;
/// Camera positions that are tried.
const CAMERAS: usize = 100;

impl Normals {
    /// `diagonal` is that of the box around the points.
    pub fn new(points: &[Vector3<f32>], cameras: &[Vector3<f32>], diagonal: f32) -> Self {
        let step = cameras.len().div_ceil(CAMERAS).max(1);
        let cameras: Vec<Vector3<f32>> = cameras.iter().step_by(step).copied().collect();
        let mut spacing = f32::INFINITY;
        let mut level = |(cells, thinness): (f32, f32)| {
            let cell = (diagonal / cells).max(f32::MIN_POSITIVE);
            let moments = moments(points, cell);
            spacing = spacing.min(typical_spacing(&moments, cell));
            let surface = |key| surface(key, cell, thinness, &moments, &cameras);
            let surfaces = moments
                .keys()
                .filter_map(|key| Some((*key, surface(*key)?)));
            Level {
                cell,
                surfaces: surfaces.collect(),
            }
        };
        Self {
            levels: LEVELS.map(&mut level).into(),
            spacing,
        }
    }

    pub fn at(&self, point: &Vector3<f32>) -> Option<Surface> {
        let mut found = self
            .levels
            .iter()
            .filter_map(|level| level.surfaces.get(&key(point, level.cell)));
        found.next().copied()
    }

    /// Typical distance between neighbouring points of a surface.
    pub fn spacing(&self) -> f32 {
        self.spacing
    }
}

fn moments(points: &[Vector3<f32>], cell: f32) -> Grid<Moments> {
    let mut moments: Grid<Moments> = HashMap::default();
    for point in points {
        let key = key(point, cell);
        // From the cell's corner, since squares of large coordinates lose their small differences.
        let local = point - corner(key, cell);
        let entry = moments.entry(key).or_default();
        entry.count += 1.0;
        entry.sum += local;
        entry.squares += local * local.transpose();
    }
    moments
}

fn key(point: &Vector3<f32>, cell: f32) -> Cell {
    [point.x, point.y, point.z].map(|c| (c / cell).floor() as i32)
}

fn corner(key: Cell, cell: f32) -> Vector3<f32> {
    Vector3::from(key.map(|index| index as f32 * cell))
}

fn surface(
    centre: Cell,
    cell: f32,
    thinness: f32,
    moments: &Grid<Moments>,
    cameras: &[Vector3<f32>],
) -> Option<Surface> {
    let mut total = Moments::default();
    for index in 0..27 {
        let offset = [index % 3 - 1, index / 3 % 3 - 1, index / 9 - 1];
        let neighbour = [0, 1, 2].map(|axis| centre[axis].saturating_add(offset[axis]));
        let Some(m) = moments.get(&neighbour) else {
            continue;
        };
        let shift = Vector3::from(offset.map(|o| o as f32 * cell));
        total.count += m.count;
        total.sum += m.sum + shift * m.count;
        total.squares += m.squares
            + m.sum * shift.transpose()
            + shift * m.sum.transpose()
            + shift * shift.transpose() * m.count;
    }
    if total.count < FEWEST {
        return None;
    }
    let mean = total.sum / total.count;
    let covariance = total.squares / total.count - mean * mean.transpose();
    let eigen = SymmetricEigen::new(covariance);
    let mut order = [0, 1, 2];
    order.sort_by(|&a, &b| eigen.eigenvalues[a].total_cmp(&eigen.eigenvalues[b]));
    let [thin, wide, _] = order.map(|i| eigen.eigenvalues[i].max(0.0).sqrt());
    if thin > thinness * wide {
        return None;
    }
    let normal: Vector3<f32> = eigen.eigenvectors.column(order[0]).into_owned();
    let place = corner(centre, cell) + mean;
    let towards = cameras
        .iter()
        .map(|camera| camera - place)
        .min_by(|a, b| a.norm_squared().total_cmp(&b.norm_squared()))?;
    let facing = if normal.dot(&towards) < 0.0 {
        -normal
    } else {
        normal
    };
    Some(Surface { facing })
}

fn typical_spacing(moments: &Grid<Moments>, cell: f32) -> f32 {
    let mut counts: Vec<f32> = moments.values().map(|m| m.count).collect();
    let typical = super::scene::quantile(&mut counts, 0.5).unwrap_or(1.0);
    cell / typical.sqrt()
}
