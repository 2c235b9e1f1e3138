//! Where the viewer stands.

use std::f32::consts::TAU;

use nalgebra::{Matrix3, Rotation3, Vector3};

use super::scene::{Scene, quantile};

/// A view of the scene: perspective, or parallel with the viewer far off.
pub(super) struct View {
    /// Rows: to the right, down and away from the viewer.
    axes: Matrix3<f32>,
    eye: Vector3<f32>,
    middle: (f32, f32),
    perspective: bool,
    /// Pixels for a unit of length: at any depth in a parallel view, at depth one in a perspective one.
    pub scale: f32,
}

/// A place in the picture: pixels, distance from the viewer, pixels for a unit of length there.
pub(super) struct Projected {
    pub x: f32,
    pub y: f32,
    pub depth: f32,
    pub scale: f32,
}

/// Share of a panel that the scene fills.
const FILL: f32 = 0.94;
/// Of the slanted view: below the horizon and across, radians.
const SLANT: f32 = 0.92;
const FIELD_OF_VIEW: f32 = 0.7;
const DIRECTIONS: u32 = 12;
const SAMPLE: usize = 20_000;

impl View {
    /// From straight above, the world's z up and its x to the right.
    pub fn from_above(scene: &Scene, (width, height): (u32, u32)) -> Self {
        let axes = Matrix3::new(1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0);
        let size = scene.high - scene.low;
        let scale = (width as f32 / size.x).min(height as f32 / size.z) * FILL;
        let mut eye = scene.centre();
        eye.y = scene.low.y - size.norm();
        Self {
            axes,
            eye,
            middle: (width as f32 / 2.0, height as f32 / 2.0),
            perspective: false,
            scale,
        }
    }

    /// At a slant from above, from the side that shows most of the surfaces' fronts, as near as the panel allows.
    pub fn slanted(scene: &Scene, (width, height): (u32, u32)) -> Self {
        let axes = best_direction(scene);
        let scale = width.min(height) as f32 / 2.0 / (FIELD_OF_VIEW / 2.0).tan();
        let mut view = Self {
            axes,
            eye: scene.centre(),
            middle: (width as f32 / 2.0, height as f32 / 2.0),
            perspective: true,
            scale,
        };
        let away = view.away();
        let places: Vec<Vector3<f32>> = sampled(scene, away)
            .chain(scene.path.iter().copied())
            .collect();
        // Move the eye sideways and back until the scene fills the panel.
        let room = [view.middle.0, view.middle.1].map(|half| half * FILL / scale);
        for _ in 0..4 {
            view.centre_on(&places);
            view.step_back(&places, room);
        }
        view
    }

    fn away(&self) -> Vector3<f32> {
        self.axes.row(2).transpose()
    }

    /// Shifts the eye so that the tangents to either side of the scene are equal.
    fn centre_on(&mut self, places: &[Vector3<f32>]) {
        let seen = places.iter().map(|p| self.axes * (p - self.eye));
        let seen: Vec<Vector3<f32>> = seen.filter(|p| p.z > 0.0).collect();
        let depth = quantile(&mut seen.iter().map(|p| p.z).collect::<Vec<_>>(), 0.5);
        for axis in 0..2 {
            let mut tangents: Vec<f32> = seen.iter().map(|p| p[axis] / p.z).collect();
            let low = quantile(&mut tangents, 0.005);
            let high = quantile(&mut tangents, 0.995);
            if let (Some(low), Some(high), Some(depth)) = (low, high, depth) {
                let shift = (low + high) / 2.0 * depth;
                self.eye += self.axes.row(axis).transpose() * shift;
            }
        }
    }

    /// Moves the eye along its sight until all but strays lie within the tangents of `room`.
    fn step_back(&mut self, places: &[Vector3<f32>], room: [f32; 2]) {
        let needed = |p: &Vector3<f32>| {
            let seen = self.axes * (p - self.eye);
            (seen.x.abs() / room[0]).max(seen.y.abs() / room[1]) - seen.z
        };
        let mut distances: Vec<f32> = places.iter().map(needed).collect();
        if let Some(distance) = quantile(&mut distances, 0.995) {
            self.eye -= self.away() * distance;
        }
    }

    /// The direction from the eye to a place.
    pub fn sight(&self, place: &Vector3<f32>) -> Vector3<f32> {
        if self.perspective {
            (place - self.eye).normalize()
        } else {
            self.away()
        }
    }

    /// `None` for what lies behind the eye.
    pub fn project(&self, place: &Vector3<f32>) -> Option<Projected> {
        let seen = self.axes * (place - self.eye);
        if seen.z <= 0.0 {
            return None;
        }
        let scale = if self.perspective {
            self.scale / seen.z
        } else {
            self.scale
        };
        Some(Projected {
            x: self.middle.0 + seen.x * scale,
            y: self.middle.1 + seen.y * scale,
            depth: seen.z,
            scale,
        })
    }
}

fn sampled(scene: &Scene, away: Vector3<f32>) -> impl Iterator<Item = Vector3<f32>> + '_ {
    let step = scene.points.len().div_ceil(SAMPLE).max(1);
    let shown = scene.shown(move |_| away).map(|point| point.position);
    shown.step_by(step)
}

/// The axes of a slanted view, turned about the vertical so that the most points face the viewer squarely.
fn best_direction(scene: &Scene) -> Matrix3<f32> {
    let step = scene.points.len().div_ceil(SAMPLE).max(1);
    let facing = |axes: &Matrix3<f32>| -> f32 {
        let away = axes.row(2).transpose();
        let normals = scene.points.iter().step_by(step).filter_map(|p| p.normal);
        normals.map(|normal| (-normal.dot(&away)).max(0.0)).sum()
    };
    let axes = |index: u32| {
        // The half step keeps walls along the world's axes off the line of sight.
        let turn = (index as f32 + 0.5) / DIRECTIONS as f32 * TAU;
        let rotation = Rotation3::from_axis_angle(&Vector3::x_axis(), SLANT)
            * Rotation3::from_axis_angle(&Vector3::y_axis(), turn);
        rotation.into_inner()
    };
    let best = (0..DIRECTIONS)
        .map(axes)
        .max_by(|a, b| facing(a).total_cmp(&facing(b)));
    best.unwrap_or_else(|| axes(0))
}
