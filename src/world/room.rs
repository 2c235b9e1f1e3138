//! The furnished room: where its surfaces are.

use nalgebra::Point3;

use super::furniture;
use super::solid::Solid;
use super::surface::FACES;

/// Whoever carries the camera bumps into what stands or hangs between these heights, metres.
const BODY: [f64; 2] = [0.05, 1.9];

/// A surface of the room itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    West,
    East,
    South,
    North,
    Floor,
    Ceiling,
}

impl Face {
    /// In the order of a box's faces.
    pub const ALL: [Self; FACES] = [
        Self::West,
        Self::East,
        Self::South,
        Self::North,
        Self::Floor,
        Self::Ceiling,
    ];
}

/// The one furnished room.
pub struct Room {
    pub(super) shell: Solid,
    pub(super) furniture: Vec<Solid>,
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

impl Room {
    pub fn new() -> Self {
        let furniture = furniture::furniture().into_iter();
        Self {
            shell: furniture::shell(),
            furniture: furniture.map(|(solid, _)| solid).collect(),
        }
    }

    /// Distance in metres to the nearest surface, exact for every point in the room that is not inside furniture; inside
    /// furniture, to the nearest face of that piece.
    pub fn distance(&self, point: Point3<f64>) -> f64 {
        let signed = |solid: &Solid| solid.signed_distance(point).abs();
        let nearest = self.furniture.iter().map(signed);
        nearest.fold(signed(&self.shell), f64::min)
    }

    /// Horizontal distance in metres from a vertical line to the nearest wall and the nearest piece of furniture that
    /// somebody could walk into; negative inside of one or out of the room.
    pub fn clearance(&self, x: f64, y: f64) -> f64 {
        let hinders = |solid: &&Solid| {
            let (middle, half) = (solid.centre().z, solid.half().z);
            middle - half < BODY[1] && middle + half > BODY[0]
        };
        let walls = -self.shell.horizontal_distance(x, y);
        let furniture = self.furniture.iter().filter(hinders);
        furniture
            .map(|solid| solid.horizontal_distance(x, y))
            .fold(walls, f64::min)
    }
}
