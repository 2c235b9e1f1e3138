//! From a point on a solid to its place on one of the solid's faces, and back.

use nalgebra::{Point3, Vector3};

use super::solid::Solid;
use super::texture::{Atlas, Sum, Texture};

/// The six faces of a box in this order: the lower and the upper end of x, of y and of z. A cylinder's mantle is face 0,
/// its ends are faces 4 and 5.
pub(super) const FACES: usize = 6;

/// Colours of a solid's faces. A face's coordinates (u, v) are metres from its lower corner along the two other axes of
/// a box, in their order; around and up on a mantle.
pub(super) struct Surface {
    centre: [f32; 3],
    half: [f32; 3],
    cos: f32,
    sin: f32,
    round: bool,
    textures: [Texture; FACES],
}

impl Surface {
    pub fn new(solid: &Solid, textures: [Texture; FACES]) -> Self {
        let (cos, sin) = solid.turn();
        Self {
            centre: solid.centre().cast().into(),
            half: solid.half().cast().into(),
            cos: cos as f32,
            sin: sin as f32,
            round: matches!(solid, Solid::Cylinder { .. }),
            textures,
        }
    }

    /// Adds the colour at a point of the surface, given in the room's frame.
    #[inline]
    pub fn look_up(&self, point: [f32; 3], atlas: &Atlas, sum: &mut Sum) {
        let [x, y, z]: [f32; 3] = std::array::from_fn(|axis| point[axis] - self.centre[axis]);
        let (x, y) = (self.cos * x + self.sin * y, self.cos * y - self.sin * x);
        let [a, b, c] = self.half;
        let end = |lower: usize, along: f32| lower + usize::from(along > 0.0);
        // Distances inwards from the faces; the point is on the nearest.
        let from_ends = c - z.abs();
        let (face, u, v) = if self.round {
            if from_ends.abs() < (a - x.hypot(y)).abs() {
                (end(4, z), x + a, y + b)
            } else {
                (0, (y.atan2(x) + std::f32::consts::PI) * a, z + c)
            }
        } else {
            let (from_x, from_y) = ((a - x.abs()).abs(), (b - y.abs()).abs());
            if from_ends.abs() < from_x.min(from_y) {
                (end(4, z), x + a, y + b)
            } else if from_x < from_y {
                (end(0, x), y + b, z + c)
            } else {
                (end(2, y), x + a, z + c)
            }
        };
        atlas.look_up(&self.textures[face], u, v, sum);
    }
}

/// A face as it is painted.
pub(super) struct FaceShape {
    /// Metres along u and v.
    pub size: [f64; 2],
    face: usize,
}

/// The faces that a solid has, by number.
pub(super) fn faces(solid: &Solid) -> [Option<FaceShape>; FACES] {
    let half = solid.half();
    let round = matches!(solid, Solid::Cylinder { .. });
    std::array::from_fn(|face| {
        let size = match (face / 2, round) {
            (2, _) => [half.x, half.y],
            (0, true) => [std::f64::consts::PI * half.x, half.z],
            (_, true) => return None,
            (0, false) => [half.y, half.z],
            _ => [half.x, half.z],
        };
        let size = size.map(|half| 2.0 * half);
        Some(FaceShape { size, face })
    })
}

impl FaceShape {
    /// The point at (u, v) in the room's frame and the direction out of the solid there.
    pub fn place(&self, solid: &Solid, u: f64, v: f64) -> (Point3<f64>, Vector3<f64>) {
        let half = solid.half();
        let round = matches!(solid, Solid::Cylinder { .. });
        let sign = if self.face % 2 == 1 { 1.0 } else { -1.0 };
        let (local, normal) = match (self.face / 2, round) {
            (2, _) => (
                Vector3::new(u - half.x, v - half.y, sign * half.z),
                Vector3::z() * sign,
            ),
            (_, true) => {
                let (sin, cos) = (u / half.x - std::f64::consts::PI).sin_cos();
                (
                    Vector3::new(cos * half.x, sin * half.x, v - half.z),
                    Vector3::new(cos, sin, 0.0),
                )
            }
            (0, false) => (
                Vector3::new(sign * half.x, u - half.y, v - half.z),
                Vector3::x() * sign,
            ),
            _ => (
                Vector3::new(u - half.x, sign * half.y, v - half.z),
                Vector3::y() * sign,
            ),
        };
        let point = Point3::from(solid.centre() + solid.outward(local));
        (point, solid.outward(normal))
    }
}
