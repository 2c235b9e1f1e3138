//! Light that does not move: lamps below the ceiling and the window, with the shadows that they make.

use nalgebra::{Point3, Vector3};

use super::Colour;
use super::solid::{Rays, Solid};

/// Points of a source.
const EACH: usize = 4;
const POINTS: usize = EACH * SOURCES.len();

/// A lamp or the window, taken as a few points.
struct Source {
    /// Of each point, nearby.
    colour: Colour,
    points: [[f32; 3]; EACH],
}

const SOURCES: [Source; 2] = [
    Source {
        colour: [0.31, 0.28, 0.24],
        points: [
            [0.05, -0.2, 2.6],
            [0.65, -0.2, 2.6],
            [0.05, 0.4, 2.6],
            [0.65, 0.4, 2.6],
        ],
    },
    Source {
        colour: [0.17, 0.2, 0.24],
        points: [
            [-0.5, 2.42, 1.2],
            [0.7, 2.42, 1.2],
            [-0.5, 2.42, 1.9],
            [0.7, 2.42, 1.9],
        ],
    },
];
/// Light that comes from everywhere.
const AMBIENT: f32 = 0.5;
/// Distance at which a source is half as strong as nearby, metres.
const HALF_DISTANCE: f32 = 3.0;
/// How far around a place other surfaces take ambient light from it, metres.
const CROWDING: f64 = 0.25;

/// Light that falls on a surface at `point` that faces along `normal`, where `distance` is the distance to the nearest
/// surface.
pub(super) fn light(
    solids: &[Solid],
    distance: impl Fn(Point3<f64>) -> f64,
    point: Point3<f64>,
    normal: Vector3<f64>,
) -> Colour {
    let free = distance(point + normal * CROWDING) / CROWDING;
    let ambient = AMBIENT * (0.4 + 0.6 * free.min(1.0)) as f32;
    let mut sum = [ambient; 3];
    // Just off the surface, so that it does not shade itself.
    let origin = (point + normal * 1e-3).coords.cast::<f32>();
    let normal = normal.cast::<f32>();
    let mut rays = Rays::<POINTS>::new(origin, 1.0);
    let places = || SOURCES.iter().flat_map(|source| &source.points);
    for (lane, place) in places().enumerate() {
        for axis in 0..3 {
            rays.direction[axis][lane] = place[axis] - origin[axis];
        }
    }
    for (id, solid) in (0..).zip(solids) {
        solid.trace(id, &mut rays);
    }
    for (lane, place) in places().enumerate() {
        if rays.t[lane] < 1.0 {
            continue;
        }
        let towards = Vector3::from(*place) - origin;
        let facing = normal.dot(&towards.normalize()).max(0.0);
        let weaker = 1.0 + towards.norm_squared() / (HALF_DISTANCE * HALF_DISTANCE);
        for (sum, colour) in sum.iter_mut().zip(SOURCES[lane / EACH].colour) {
            *sum += colour * facing / weaker;
        }
    }
    sum
}
