//! The room's looks: all that a picture needs and that does not depend on the camera.

use super::Colour;
use super::furniture::{self, Decal};
use super::light::light;
use super::noise::ColourNoise;
use super::paint::Finish;
use super::room::{Face, Room};
use super::solid::Solid;
use super::surface::{FaceShape, Surface, faces};
use super::texture::{Atlas, Texture};

/// Noise and light change slowly: they are computed at points so far apart, metres, and interpolated.
const NOISE_GRID: f64 = 0.03;
const LIGHT_GRID: f64 = 0.06;
/// Where a texel's paint is taken, metres around its middle: edges of patterns become smooth.
const WITHIN_TEXEL: [(f32, f32); 4] = [
    (-0.0025, -0.0025),
    (0.0025, -0.0025),
    (-0.0025, 0.0025),
    (0.0025, 0.0025),
];
/// The room with the colours of its surfaces computed, which takes about a second.
pub struct PaintedRoom {
    pub(super) room: Room,
    /// Of the furniture, and the shell's at the end.
    pub(super) surfaces: Vec<Surface>,
    pub(super) atlas: Atlas,
}

impl Default for PaintedRoom {
    fn default() -> Self {
        Self::new()
    }
}

impl PaintedRoom {
    pub fn new() -> Self {
        let room = Room::new();
        let mut atlas = Atlas::default();
        let finishes = furniture::furniture().into_iter();
        let mut surfaces: Vec<_> = (room.furniture.iter().zip(finishes).enumerate())
            .map(|(index, (solid, (_, finish)))| {
                let painter = Painter {
                    room: &room,
                    solid,
                    noise: ColourNoise::new(index as u64),
                    outwards: 1.0,
                };
                let textures = faces(solid).map(|face| {
                    let Some(face) = face else {
                        return Texture::default();
                    };
                    let size = face.size.map(|x| x as f32);
                    painter.paint(&face, &mut atlas, |u, v| (&finish, [u, v], size))
                });
                Surface::new(solid, textures)
            })
            .collect();
        surfaces.push(paint_shell(&room, &mut atlas));
        Self {
            room,
            surfaces,
            atlas,
        }
    }

    /// Where the surfaces are.
    pub fn room(&self) -> &Room {
        &self.room
    }
}

fn paint_shell(room: &Room, atlas: &mut Atlas) -> Surface {
    let decals = furniture::decals();
    let mut shapes = faces(&room.shell).into_iter();
    let corner = room.shell.centre() - room.shell.half();
    let textures = Face::ALL.map(|face| {
        let Some(shape) = shapes.next().flatten() else {
            return Texture::default();
        };
        let painter = Painter {
            room,
            solid: &room.shell,
            noise: ColourNoise::new((room.furniture.len() + face as usize) as u64),
            outwards: -1.0,
        };
        let wall = furniture::wall(face);
        let size = shape.size.map(|x| x as f32);
        let lower = match face {
            Face::West | Face::East => [corner.y, corner.z],
            Face::South | Face::North => [corner.x, corner.z],
            Face::Floor | Face::Ceiling => [corner.x, corner.y],
        };
        let on_face: Vec<Mounted<'_>> = decals
            .iter()
            .filter(|decal| decal.face == face)
            .map(|decal| Mounted::new(decal, lower))
            .collect();
        painter.paint(&shape, atlas, |u, v| {
            // The later one hangs before the earlier.
            match on_face.iter().rev().find_map(|decal| decal.local(u, v)) {
                Some((finish, place, size)) => (finish, place, size),
                None => (&wall, [u, v], size),
            }
        })
    });
    Surface::new(&room.shell, textures)
}

/// A decal in the coordinates of its face.
struct Mounted<'a> {
    finish: &'a Finish,
    lower: [f32; 2],
    size: [f32; 2],
}

impl<'a> Mounted<'a> {
    fn new(decal: &'a Decal, lower: [f64; 2]) -> Self {
        let size = [decal.u, decal.v].map(|[from, to]| (to - from) as f32);
        Self {
            finish: &decal.finish,
            lower: [decal.u[0] - lower[0], decal.v[0] - lower[1]].map(|x| x as f32),
            size,
        }
    }

    fn local(&self, u: f32, v: f32) -> Option<(&'a Finish, [f32; 2], [f32; 2])> {
        let place = [u - self.lower[0], v - self.lower[1]];
        let within = |axis: usize| (0.0..self.size[axis]).contains(&place[axis]);
        (within(0) && within(1)).then_some((self.finish, place, self.size))
    }
}

/// Computes the colours of a solid's faces.
struct Painter<'a> {
    room: &'a Room,
    solid: &'a Solid,
    noise: ColourNoise,
    /// -1 for a solid that is seen from within.
    outwards: f64,
}

impl Painter<'_> {
    /// `finish_at` tells for a place (u, v) on the face the finish there, the place on it and its size.
    fn paint<'f>(
        &self,
        face: &FaceShape,
        atlas: &mut Atlas,
        finish_at: impl Fn(f32, f32) -> (&'f Finish, [f32; 2], [f32; 2]),
    ) -> Texture {
        let noise = CoarseGrid::new(face.size, NOISE_GRID, |u, v| {
            let (point, _) = face.place(self.solid, u, v);
            self.noise.at(point.coords.cast::<f32>().into())
        });
        let light = CoarseGrid::new(face.size, LIGHT_GRID, |u, v| {
            let (point, normal) = face.place(self.solid, u, v);
            let distance = |point| self.room.distance(point);
            light(
                &self.room.furniture,
                distance,
                point,
                normal * self.outwards,
            )
        });
        let [width, height] = face.size.map(|x| x as f32);
        atlas.add(width, height, |u, v| {
            let (noise, light) = (noise.at(u, v), light.at(u, v));
            let mut sum = [0.0; 3];
            for (du, dv) in WITHIN_TEXEL {
                let (finish, [u, v], size) = finish_at((u + du).max(0.0), (v + dv).max(0.0));
                let colour = finish.at(u, v, size, noise);
                for c in 0..3 {
                    sum[c] += colour[c] * if finish.glows { 1.0 } else { light[c] };
                }
            }
            sum.map(|c| c / WITHIN_TEXEL.len() as f32)
        })
    }
}

/// Values that change slowly over a face, known at a grid of points.
struct CoarseGrid {
    spacing: f32,
    columns: usize,
    points: Vec<Colour>,
}

impl CoarseGrid {
    fn new(size: [f64; 2], spacing: f64, at: impl Fn(f64, f64) -> Colour) -> Self {
        // One more than needed, since a face's last texel may lie beyond its edge.
        let [columns, rows] = size.map(|length| (length / spacing).ceil() as usize + 2);
        let place = |index: usize, axis: usize| (index as f64 * spacing).min(size[axis]);
        let points = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (column, row)))
            .map(|(column, row)| at(place(column, 0), place(row, 1)))
            .collect();
        Self {
            spacing: spacing as f32,
            columns,
            points,
        }
    }

    fn at(&self, u: f32, v: f32) -> Colour {
        let (x, y) = (u / self.spacing, v / self.spacing);
        let rows = self.points.len() / self.columns;
        let column = (x as usize).min(self.columns - 2);
        let row = (y as usize).min(rows - 2);
        let (x, y) = (x - column as f32, y - row as f32);
        let lower = row * self.columns + column;
        let upper = lower + self.columns;
        let corners = [lower, lower + 1, upper, upper + 1].map(|index| self.points[index]);
        let shares = [(1.0 - x) * (1.0 - y), x * (1.0 - y), (1.0 - x) * y, x * y];
        std::array::from_fn(|c| (0..4).map(|i| shares[i] * corners[i][c]).sum())
    }
}
