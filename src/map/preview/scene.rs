//! What is worth showing of a map.

use std::collections::HashSet;

use nalgebra::Vector3;

use super::normals::{Normals, Surface};
use crate::map::{MapPoint, Trajectory};

/// A point with the direction that its surface faces, where there is one.
pub(super) struct ScenePoint {
    pub position: Vector3<f32>,
    pub color: [u8; 3],
    pub normal: Option<Vector3<f32>>,
}

/// The map without strays, its extent and the camera's path. The y axis points down.
pub(super) struct Scene {
    pub points: Vec<ScenePoint>,
    pub path: Vec<Vector3<f32>>,
    pub low: Vector3<f32>,
    pub high: Vector3<f32>,
    /// Typical distance between neighbouring points of a surface.
    pub spacing: f32,
    /// Where there is a ceiling: what lies above this height (smaller y) hides the room.
    pub ceiling: Option<f32>,
}

const SAMPLE: usize = 100_000;
/// Shares of the points that may be strays, and how much of the extent beyond is shown all the same.
const STRAYS: (f32, f32) = (0.01, 0.99);
const BEYOND: f32 = 0.1;
/// The upper part of the extent is a ceiling, and is cut, where it covers at least this share of the floor plan: walls
/// only line it.
const UPPER_PART: f32 = 0.25;
const COVERED: f32 = 0.4;
const PLAN_CELLS: f32 = 24.0;

impl Scene {
    /// `None` for a map and a path without a single finite point.
    pub fn new(points: &[MapPoint], trajectory: &Trajectory) -> Option<Self> {
        let finite = |p: &Vector3<f32>| p.iter().all(|c| c.is_finite() && c.abs() < 1e15);
        let path: Vec<Vector3<f32>> = trajectory
            .iter()
            .map(|(_, pose)| pose.translation.vector.cast::<f32>())
            .filter(finite)
            .collect();
        let positions: Vec<(Vector3<f32>, [u8; 3])> = points
            .iter()
            .map(|p| (Vector3::from(p.position), p.color))
            .filter(|(p, _)| finite(p))
            .collect();
        let (low, high) = extent(&positions, &path)?;
        let inside = |p: &Vector3<f32>| p >= &low && p <= &high;
        let kept: Vec<_> = positions.into_iter().filter(|(p, _)| inside(p)).collect();

        let places: Vec<Vector3<f32>> = kept.iter().map(|(p, _)| *p).collect();
        let normals = Normals::new(&places, &path, (high - low).norm());
        let spacing = normals.spacing();
        let points: Vec<ScenePoint> = kept
            .into_iter()
            .map(|(position, color)| ScenePoint {
                position,
                color,
                normal: normals.at(&position).map(|Surface { facing }| facing),
            })
            .collect();
        let ceiling = ceiling(&points, low, high);
        Some(Self {
            points,
            path,
            low,
            high,
            spacing,
            ceiling,
        })
    }

    pub fn centre(&self) -> Vector3<f32> {
        (self.low + self.high) / 2.0
    }

    /// The points that a viewer who looks along `sight` (a function of the place) should see: not the ceiling, and
    /// nothing that turns its back.
    pub fn shown<'a>(
        &'a self,
        sight: impl Fn(&Vector3<f32>) -> Vector3<f32> + 'a,
    ) -> impl Iterator<Item = &'a ScenePoint> {
        self.points.iter().filter(move |point| {
            let below = self
                .ceiling
                .is_none_or(|ceiling| point.position.y > ceiling);
            let faces = |normal: Vector3<f32>| normal.dot(&sight(&point.position)) < 0.1;
            below && point.normal.is_none_or(faces)
        })
    }
}

fn extent(
    positions: &[(Vector3<f32>, [u8; 3])],
    path: &[Vector3<f32>],
) -> Option<(Vector3<f32>, Vector3<f32>)> {
    let step = positions.len().div_ceil(SAMPLE).max(1);
    let mut low = Vector3::repeat(f32::INFINITY);
    let mut high = Vector3::repeat(f32::NEG_INFINITY);
    for axis in 0..3 {
        let mut values: Vec<f32> = positions
            .iter()
            .step_by(step)
            .map(|(p, _)| p[axis])
            .collect();
        if let Some(value) = quantile(&mut values, STRAYS.0) {
            low[axis] = value;
        }
        if let Some(value) = quantile(&mut values, STRAYS.1) {
            high[axis] = value;
        }
        let beyond = (high[axis] - low[axis]).max(0.0) * BEYOND;
        low[axis] -= beyond;
        high[axis] += beyond;
    }
    for place in path {
        low = low.inf(place);
        high = high.sup(place);
    }
    if !low.iter().chain(high.iter()).all(|c| c.is_finite()) {
        return None;
    }
    // A single point still needs room around it.
    let least = ((high - low).norm() * 0.01).max(1e-6 * high.abs().max().max(1.0));
    let room = (high - low).map(|side| (least - side).max(0.0) / 2.0);
    Some((low - room, high + room))
}

fn ceiling(points: &[ScenePoint], low: Vector3<f32>, high: Vector3<f32>) -> Option<f32> {
    let size = high - low;
    let cut = low.y + size.y * UPPER_PART;
    let cell = size.x.max(size.z) / PLAN_CELLS;
    let mut all = HashSet::new();
    let mut upper = HashSet::new();
    for point in points {
        let place = (point.position - low) / cell;
        let key = (place.x as u32, place.z as u32);
        all.insert(key);
        if point.position.y < cut {
            upper.insert(key);
        }
    }
    (upper.len() as f32 > COVERED * all.len() as f32).then_some(cut)
}

/// The value below which a share of the values lies.
pub(super) fn quantile(values: &mut [f32], share: f32) -> Option<f32> {
    let index = (share * values.len().saturating_sub(1) as f32).round() as usize;
    if index >= values.len() {
        return None;
    }
    Some(*values.select_nth_unstable_by(index, f32::total_cmp).1)
}
