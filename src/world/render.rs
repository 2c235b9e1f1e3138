//! Pictures and depth of the room.

use nalgebra::{Isometry3, Matrix3, Point3, Vector3};

use super::camera::Camera;
use super::painted_room::PaintedRoom;
use super::solid::Rays;
use super::texture::Sum;

/// Pixels of a tile's side: its rays are traced together, through the solids that the tile may show.
const TILE: usize = 8;
const PIXELS: usize = TILE * TILE;
/// Colour is the mean along four rays around a pixel, depth is along the ray through it.
const OFFSETS: [[f64; 2]; 5] = [
    [-0.25, -0.25],
    [0.25, -0.25],
    [-0.25, 0.25],
    [0.25, 0.25],
    [0.0, 0.0],
];
const COLOURS: usize = 4;
const LANES: usize = PIXELS * OFFSETS.len();
/// What is nearer than this to the camera's plane is cut off when a solid's outline is computed, metres.
const NEAR: f64 = 0.01;

/// What the camera sees. The buffers keep their memory from frame to frame.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Image {
    /// Rows of red, green and blue: [H, W, 3].
    pub rgb: Vec<u8>,
    /// Metres along the optical axis, at the integer pixel: [H, W]. 0 where nothing is seen, which is from outside the
    /// room only.
    pub depth: Vec<f32>,
}

/// Renders what `camera` sees from `room_from_camera`. The same arguments give the same bytes.
pub fn render(
    painted: &PaintedRoom,
    camera: &Camera,
    room_from_camera: &Isometry3<f64>,
    image: &mut Image,
) {
    let (width, height) = (camera.width as usize, camera.height as usize);
    image.rgb.resize(width * height * 3, 0);
    image.depth.resize(width * height, 0.0);
    let outlines: Vec<Outline> = (painted.room.furniture.iter().enumerate())
        .filter_map(|(id, solid)| Outline::new(id, &solid.corners(), camera, room_from_camera))
        .collect();
    let view = View {
        painted,
        camera,
        rotation: room_from_camera.rotation.to_rotation_matrix().into_inner(),
    };
    let origin = room_from_camera.translation.vector.cast();
    let mut rays = Rays::<LANES>::new(origin, 0.0);
    for top in (0..height).step_by(TILE) {
        for left in (0..width).step_by(TILE) {
            view.trace_tile(left, top, &outlines, &mut rays);
            for row in 0..TILE.min(height - top) {
                for column in 0..TILE.min(width - left) {
                    let pixel = (top + row) * width + left + column;
                    let lane = row * TILE + column;
                    let depth = view.depth(&rays, COLOURS * PIXELS + lane);
                    let colour = view.colour(&rays, lane);
                    if let Some(to) = image.depth.get_mut(pixel) {
                        *to = depth;
                    }
                    if let Some(to) = image.rgb.get_mut(3 * pixel..3 * pixel + 3) {
                        to.copy_from_slice(&colour);
                    }
                }
            }
        }
    }
}

struct View<'a> {
    painted: &'a PaintedRoom,
    camera: &'a Camera,
    rotation: Matrix3<f64>,
}

impl View<'_> {
    fn trace_tile(&self, left: usize, top: usize, outlines: &[Outline], rays: &mut Rays<LANES>) {
        self.aim(left, top, rays);
        rays.t = [f32::INFINITY; LANES];
        rays.hit = [u32::MAX; LANES];
        let room = &self.painted.room;
        room.shell.trace_inside(room.furniture.len() as u32, rays);
        for outline in outlines {
            if outline.meets_tile(left, top)
                && let Some(solid) = room.furniture.get(outline.id)
            {
                solid.trace(outline.id as u32, rays);
            }
        }
    }

    /// Lane `k * PIXELS + row * TILE + column` is the ray at offset `k` of a pixel.
    fn aim(&self, left: usize, top: usize, rays: &mut Rays<LANES>) {
        let right = (self.rotation.column(0) / self.camera.fx).cast::<f32>();
        let down = (self.rotation.column(1) / self.camera.fy).cast::<f32>();
        for (k, [du, dv]) in OFFSETS.into_iter().enumerate() {
            let corner = self.rotation * self.camera.ray(left as f64 + du, top as f64 + dv);
            let corner: Vector3<f32> = corner.cast();
            for axis in 0..3 {
                let lanes = &mut rays.direction[axis][k * PIXELS..(k + 1) * PIXELS];
                for (row, lanes) in lanes.chunks_exact_mut(TILE).enumerate() {
                    let start = corner[axis] + row as f32 * down[axis];
                    for (column, lane) in lanes.iter_mut().enumerate() {
                        *lane = start + column as f32 * right[axis];
                    }
                }
            }
        }
    }

    fn depth(&self, rays: &Rays<LANES>, lane: usize) -> f32 {
        if rays.hit[lane] == u32::MAX {
            0.0
        } else {
            rays.t[lane]
        }
    }

    fn colour(&self, rays: &Rays<LANES>, pixel: usize) -> [u8; 3] {
        let mut sum = Sum::default();
        for k in 0..COLOURS {
            let lane = k * PIXELS + pixel;
            if let Some(surface) = self.painted.surfaces.get(rays.hit[lane] as usize) {
                let t = rays.t[lane];
                let point =
                    std::array::from_fn(|axis| rays.origin[axis] + t * rays.direction[axis][lane]);
                surface.look_up(point, &self.painted.atlas, &mut sum);
            }
        }
        sum.mean::<{ COLOURS as u32 }>()
    }
}

/// The rectangle of pixels that shows all of a solid.
struct Outline {
    id: usize,
    u: [f64; 2],
    v: [f64; 2],
}

impl Outline {
    /// `None` for a solid that is not seen.
    fn new(
        id: usize,
        corners: &[Point3<f64>; 8],
        camera: &Camera,
        room_from_camera: &Isometry3<f64>,
    ) -> Option<Self> {
        let seen = corners.map(|corner| room_from_camera.inverse_transform_point(&corner));
        let mut outline = Self {
            id,
            u: [f64::INFINITY, f64::NEG_INFINITY],
            v: [f64::INFINITY, f64::NEG_INFINITY],
        };
        let mut add = |point: Vector3<f64>| {
            let u = camera.fx * point.x / point.z + camera.cx;
            let v = camera.fy * point.y / point.z + camera.cy;
            outline.u = [outline.u[0].min(u), outline.u[1].max(u)];
            outline.v = [outline.v[0].min(v), outline.v[1].max(v)];
        };
        for (index, corner) in seen.iter().enumerate() {
            if corner.z >= NEAR {
                add(corner.coords);
            }
            // Where an edge passes through the near plane.
            for axis in 0..3 {
                let other = &seen[index ^ (1 << axis)];
                if corner.z >= NEAR && other.z < NEAR {
                    let share = (corner.z - NEAR) / (corner.z - other.z);
                    add(corner.coords.lerp(&other.coords, share));
                }
            }
        }
        let in_picture = outline.u[1] > -1.0
            && outline.v[1] > -1.0
            && outline.u[0] < f64::from(camera.width)
            && outline.v[0] < f64::from(camera.height);
        in_picture.then_some(outline)
    }

    fn meets_tile(&self, left: usize, top: usize) -> bool {
        // A pixel's rays reach a quarter of a pixel to each side; the rest absorbs rounding.
        let meets = |[from, to]: [f64; 2], first: usize| {
            from < (first + TILE) as f64 && to > first as f64 - 1.0
        };
        meets(self.u, left) && meets(self.v, top)
    }
}
