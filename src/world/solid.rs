//! The shapes that the room is made of: exact distances and fast ray bundles.

use nalgebra::{Point3, Vector3};

/// Rays of one origin that are traced together. The arrays are laid out for vector instructions.
pub(super) struct Rays<const N: usize> {
    pub origin: Vector3<f32>,
    /// Room axes, of any length: `t` is measured in it.
    pub direction: [[f32; N]; 3],
    /// Where each ray ends: the nearest surface met so far.
    pub t: [f32; N],
    /// The solid of that surface.
    pub hit: [u32; N],
}

impl<const N: usize> Rays<N> {
    /// A bundle without directions that reaches as far as `t`.
    pub fn new(origin: Vector3<f32>, t: f32) -> Self {
        Self {
            origin,
            direction: [[1.0; N]; 3],
            t: [t; N],
            hit: [u32::MAX; N],
        }
    }

    fn shorten(&mut self, lane: usize, t: f32, hit: bool, id: u32) {
        let nearer = hit & (t < self.t[lane]);
        self.t[lane] = if nearer { t } else { self.t[lane] };
        self.hit[lane] = if nearer { id } else { self.hit[lane] };
    }
}

/// A box or an upright cylinder; metres, room axes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Solid {
    /// A box turned about the vertical through its centre.
    Cuboid {
        centre: Vector3<f64>,
        half: Vector3<f64>,
        /// Cosine and sine of the turn from the room's x axis to the box's.
        turn: (f64, f64),
    },
    Cylinder {
        centre: Vector3<f64>,
        radius: f64,
        half_height: f64,
    },
}

impl Solid {
    /// A box that spans `x`, `y` and `z`.
    pub fn span(x: [f64; 2], y: [f64; 2], z: [f64; 2]) -> Self {
        let middle = |[from, to]: [f64; 2]| (from + to) / 2.0;
        let half = |[from, to]: [f64; 2]| (to - from) / 2.0;
        Self::Cuboid {
            centre: Vector3::new(middle(x), middle(y), middle(z)),
            half: Vector3::new(half(x), half(y), half(z)),
            turn: (1.0, 0.0),
        }
    }

    /// A box of `size` that stands on height `floor` around (`x`, `y`), turned by `degrees`.
    pub fn turned(x: f64, y: f64, floor: f64, size: [f64; 3], degrees: f64) -> Self {
        let half = Vector3::from(size) / 2.0;
        let (sin, cos) = degrees.to_radians().sin_cos();
        Self::Cuboid {
            centre: Vector3::new(x, y, floor + half.z),
            half,
            turn: (cos, sin),
        }
    }

    /// An upright cylinder around (`x`, `y`) that spans `z`.
    pub fn cylinder(x: f64, y: f64, radius: f64, z: [f64; 2]) -> Self {
        Self::Cylinder {
            centre: Vector3::new(x, y, (z[0] + z[1]) / 2.0),
            radius,
            half_height: (z[1] - z[0]) / 2.0,
        }
    }

    pub fn centre(&self) -> Vector3<f64> {
        match self {
            Self::Cuboid { centre, .. } | Self::Cylinder { centre, .. } => *centre,
        }
    }

    /// Half the extent along the solid's own axes.
    pub fn half(&self) -> Vector3<f64> {
        match self {
            Self::Cuboid { half, .. } => *half,
            Self::Cylinder {
                radius,
                half_height,
                ..
            } => Vector3::new(*radius, *radius, *half_height),
        }
    }

    /// Cosine and sine of the turn from the room's x axis to the solid's.
    pub fn turn(&self) -> (f64, f64) {
        match self {
            Self::Cuboid { turn, .. } => *turn,
            Self::Cylinder { .. } => (1.0, 0.0),
        }
    }

    /// The direction of room axes in the solid's own.
    pub fn inward(&self, direction: Vector3<f64>) -> Vector3<f64> {
        let (cos, sin) = self.turn();
        Vector3::new(
            cos * direction.x + sin * direction.y,
            cos * direction.y - sin * direction.x,
            direction.z,
        )
    }

    /// The direction of the solid's own axes in the room's.
    pub fn outward(&self, direction: Vector3<f64>) -> Vector3<f64> {
        let (cos, sin) = self.turn();
        Vector3::new(
            cos * direction.x - sin * direction.y,
            cos * direction.y + sin * direction.x,
            direction.z,
        )
    }

    /// The corners of the box around the solid, corner `i` at the upper end of axis `a` where bit `a` of `i` is set.
    pub fn corners(&self) -> [Point3<f64>; 8] {
        let half = self.half();
        std::array::from_fn(|corner| {
            let sign = |axis: usize| if corner >> axis & 1 == 1 { 1.0 } else { -1.0 };
            let signs = Vector3::new(sign(0), sign(1), sign(2));
            Point3::from(self.centre() + self.outward(half.component_mul(&signs)))
        })
    }

    /// Signed distance to the surface: negative inside.
    pub fn signed_distance(&self, point: Point3<f64>) -> f64 {
        let local = self.inward(point.coords - self.centre());
        match self {
            Self::Cuboid { half, .. } => box_distance(&(local.abs() - half).into()),
            Self::Cylinder {
                radius,
                half_height,
                ..
            } => box_distance(&[local.xy().norm() - radius, local.z.abs() - half_height]),
        }
    }

    /// Horizontal distance from a vertical line to the solid's outline seen from above; negative within it.
    pub fn horizontal_distance(&self, x: f64, y: f64) -> f64 {
        let local = self.inward(Vector3::new(x, y, 0.0) - self.centre());
        match self {
            Self::Cuboid { half, .. } => {
                box_distance(&[local.x.abs() - half.x, local.y.abs() - half.y])
            }
            Self::Cylinder { radius, .. } => local.xy().norm() - radius,
        }
    }

    /// Shortens the rays that meet the solid from outside.
    pub fn trace<const N: usize>(&self, id: u32, rays: &mut Rays<N>) {
        let origin = rays.origin.cast::<f64>() - self.centre();
        let origin = self.inward(origin).cast::<f32>();
        match self {
            Self::Cuboid { half, .. } => {
                let (cos, sin) = (self.turn().0 as f32, self.turn().1 as f32);
                trace_box(id, rays, origin, half.cast(), cos, sin);
            }
            Self::Cylinder {
                radius,
                half_height,
                ..
            } => trace_cylinder(id, rays, origin, *radius as f32, *half_height as f32),
        }
    }

    /// Shortens the rays to where they leave the box, for rays from within it.
    pub fn trace_inside<const N: usize>(&self, id: u32, rays: &mut Rays<N>) {
        let origin = rays.origin - self.centre().cast::<f32>();
        let half = self.half().cast::<f32>();
        for lane in 0..N {
            let exit = |axis: usize| {
                let direction = rays.direction[axis][lane];
                let wall = if direction > 0.0 {
                    half[axis]
                } else {
                    -half[axis]
                };
                (wall - origin[axis]) / direction
            };
            let t = min(min(exit(0), exit(1)), exit(2));
            rays.shorten(lane, t, t > 0.0, id);
        }
    }
}

/// Distance to a shape that is the product of intervals or discs, from the signed distances to each of them.
fn box_distance<const N: usize>(beyond: &[f64; N]) -> f64 {
    let outside = beyond.iter().map(|d| d.max(0.0).powi(2)).sum::<f64>();
    let inside = beyond.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    outside.sqrt() + inside.min(0.0)
}

// Unlike f32::min and f32::max these are one instruction; which operand a NaN loses to does not matter here.
fn min(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

fn max(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

fn trace_box<const N: usize>(
    id: u32,
    rays: &mut Rays<N>,
    origin: Vector3<f32>,
    half: Vector3<f32>,
    cos: f32,
    sin: f32,
) {
    for lane in 0..N {
        let [x, y, z] = rays.direction.each_ref().map(|axis| axis[lane]);
        let slab = |direction: f32, axis: usize| {
            let inverse = 1.0 / direction;
            let (a, b) = (
                (-half[axis] - origin[axis]) * inverse,
                (half[axis] - origin[axis]) * inverse,
            );
            (min(a, b), max(a, b))
        };
        let along_x = slab(cos * x + sin * y, 0);
        let along_y = slab(cos * y - sin * x, 1);
        let along_z = slab(z, 2);
        let enter = max(max(along_x.0, along_y.0), along_z.0);
        let leave = min(min(along_x.1, along_y.1), along_z.1);
        rays.shorten(lane, enter, (enter <= leave) & (enter > 0.0), id);
    }
}

fn trace_cylinder<const N: usize>(
    id: u32,
    rays: &mut Rays<N>,
    origin: Vector3<f32>,
    radius: f32,
    half_height: f32,
) {
    for lane in 0..N {
        let [x, y, z] = rays.direction.each_ref().map(|axis| axis[lane]);
        let a = max(x * x + y * y, f32::MIN_POSITIVE);
        let b = origin.x * x + origin.y * y;
        // b² - a (|origin|² - radius²) without the loss of digits when far away.
        let cross = origin.x * y - origin.y * x;
        let discriminant = a * (radius * radius) - cross * cross;
        let root = max(discriminant, 0.0).sqrt();
        let inverse = 1.0 / z;
        let bottom = (-half_height - origin.z) * inverse;
        let top = (half_height - origin.z) * inverse;
        let enter = max((-b - root) / a, min(bottom, top));
        let leave = min((-b + root) / a, max(bottom, top));
        let hit = (discriminant >= 0.0) & (enter <= leave) & (enter > 0.0);
        rays.shorten(lane, enter, hit, id);
    }
}
