//! Points as they travel: twenty bytes each, little-endian.

use nalgebra::Isometry3;

use super::{MapPoint, Scale};
use crate::geometry::Intrinsics;

/// Bytes of a point: x, y, z, colour as 0x00RRGGBB, confidence, four bytes each.
pub const POINT_BYTES: usize = 20;

/// What takes points from one frame into another, ready to be applied to many: the rows of a matrix, and an offset.
#[derive(Debug, Clone, Copy)]
struct Carrier {
    rows: [[f32; 3]; 3],
    offset: [f32; 3],
}

impl Carrier {
    fn new(transform: &Isometry3<f64>, scale: &Scale) -> Self {
        let rotation = transform.rotation.to_rotation_matrix();
        let matrix = (rotation.matrix() * scale.metres_per_unit).cast::<f32>();
        Self {
            rows: matrix.transpose().into(),
            offset: transform.translation.vector.cast().into(),
        }
    }

    #[inline]
    fn carry(&self, [x, y, z]: [f32; 3]) -> [f32; 3] {
        let [first, second, third] = &self.rows;
        let along = |row: &[f32; 3], offset: f32| row[0] * x + row[1] * y + row[2] * z + offset;
        [
            along(first, self.offset[0]),
            along(second, self.offset[1]),
            along(third, self.offset[2]),
        ]
    }
}

#[inline]
fn packed([x, y, z]: [f32; 3], [r, g, b]: [u8; 3], confidence: f32) -> [u8; POINT_BYTES] {
    let colour = u32::from_be_bytes([0, r, g, b]);
    bytemuck::cast([
        x.to_le_bytes(),
        y.to_le_bytes(),
        z.to_le_bytes(),
        colour.to_le_bytes(),
        confidence.to_le_bytes(),
    ])
}

/// Puts points into `out`, in place of what it held: scaled, then carried by `frame_from_world`, which is in metres.
pub fn write_points(
    out: &mut Vec<u8>,
    scale: &Scale,
    frame_from_world: &Isometry3<f64>,
    points: impl ExactSizeIterator<Item = MapPoint>,
) {
    let carrier = Carrier::new(frame_from_world, scale);
    out.resize(points.len() * POINT_BYTES, 0);
    let (packets, _) = out.as_chunks_mut();
    for (packet, point) in packets.iter_mut().zip(points) {
        let position = carrier.carry(point.position);
        *packet = packed(position, point.color, point.confidence);
    }
}

/// The camera that a grid of points belongs to.
#[derive(Debug, Clone, Copy)]
pub struct GridView<'a> {
    pub rows: usize,
    pub columns: usize,
    /// Those that the points were made with.
    pub intrinsics: &'a Intrinsics,
    /// Optical axes, in the unit of the points.
    pub camera_from_world: &'a Isometry3<f64>,
    pub scale: &'a Scale,
    /// Takes the optical axes to those of the cloud's frame.
    pub frame_from_camera: &'a Isometry3<f64>,
}

/// Puts one frame's points into `out` where their pixels are, row by row; the coordinates of pixels without a point are
/// NaN. Returns how many pixels have one.
pub fn write_grid(out: &mut Vec<u8>, view: &GridView, points: &[MapPoint]) -> usize {
    let (height, width) = (view.rows, view.columns);
    let k = view.intrinsics;
    let (to_camera, to_frame) = (
        Carrier::new(view.camera_from_world, &Scale::UNIT),
        Carrier::new(view.frame_from_camera, view.scale),
    );
    out.resize(height * width * POINT_BYTES, 0);
    let (packets, _) = out.as_chunks_mut();
    packets.fill(packed([f32::NAN; 3], [0; 3], 0.0));
    let mut filled = 0;
    for point in points {
        let in_camera @ [x, y, z] = to_camera.carry(point.position);
        // Points were made of whole pixels: the nearest is the one. Adding a half and cutting off rounds what is not negative.
        let u = k.fx as f32 * x / z + k.cx as f32 + 0.5;
        let v = k.fy as f32 * y / z + k.cy as f32 + 0.5;
        let inside = u >= 0.0 && v >= 0.0 && u < width as f32 && v < height as f32;
        if !inside {
            continue;
        }
        if let Some(packet) = packets.get_mut(v as usize * width + u as usize) {
            let position = to_frame.carry(in_camera);
            *packet = packed(position, point.color, point.confidence);
            filled += 1;
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::NetworkSize;
    use crate::map::{FrameView, PointFilter, points_of_frame};
    use image::{Rgb, RgbImage};
    use nalgebra::Vector3;
    use ndarray::Array2;

    fn word(bytes: &[u8], point: usize, field: usize) -> u32 {
        let at = point * POINT_BYTES + field * 4;
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    fn number(bytes: &[u8], point: usize, field: usize) -> f32 {
        f32::from_bits(word(bytes, point, field))
    }

    #[test]
    fn red_green_and_blue_are_0x00rrggbb() {
        let colours = [[255, 0, 0], [0, 255, 0], [0, 0, 255]];
        let points = colours.map(|color| MapPoint {
            position: [1.0, 2.0, 3.0],
            color,
            confidence: 2.5,
        });
        let mut out = vec![7; 3];
        write_points(
            &mut out,
            &Scale {
                metres_per_unit: 2.0,
                ..Scale::UNIT
            },
            &Isometry3::translation(0.5, 0.0, 0.0),
            points.into_iter(),
        );
        assert_eq!(out.len(), 60);
        let packed = [0, 1, 2].map(|point| word(&out, point, 3));
        assert_eq!(packed, [0x00FF_0000, 0x0000_FF00, 0x0000_00FF]);
        let first = [0, 1, 2, 4].map(|field| number(&out, 0, field));
        assert_eq!(first, [2.5, 4.0, 6.0, 2.5]);
        write_points(
            &mut out,
            &Scale::UNIT,
            &Isometry3::identity(),
            std::iter::empty(),
        );
        assert!(out.is_empty());
    }

    #[test]
    fn a_grid_has_every_point_at_its_pixel() {
        let size = NetworkSize {
            height: 28,
            width: 42,
        };
        let intrinsics = Intrinsics::from_field_of_view(1.0, 1.3, size);
        let depth = Array2::from_shape_fn((28, 42), |(v, u)| 1.0 + 0.05 * (u + 3 * v) as f32);
        // Every third pixel is not sure enough.
        let confidence =
            Array2::from_shape_fn((28, 42), |(v, u)| if (u + v) % 3 == 0 { 1.0 } else { 2.0 });
        let image = RgbImage::from_fn(42, 28, |x, y| Rgb([x as u8, y as u8, 9]));
        let world_from_camera =
            Isometry3::new(Vector3::new(1.0, -2.0, 3.0), Vector3::new(0.3, -0.8, 0.2));
        let mut points = Vec::new();
        let view = FrameView {
            depth: depth.view(),
            confidence: confidence.view(),
            image: &image,
            kept: None,
            world_from_camera: &world_from_camera,
            intrinsics: &intrinsics,
        };
        // Depth grows by more than an edge's share from pixel to pixel.
        let filter = PointFilter {
            depth_edge: None,
            ..PointFilter::default()
        };
        points_of_frame(&view, &filter, &mut points);
        let mut out = Vec::new();
        let grid = GridView {
            rows: 28,
            columns: 42,
            intrinsics: &intrinsics,
            camera_from_world: &world_from_camera.inverse(),
            scale: &Scale::UNIT,
            frame_from_camera: &Isometry3::identity(),
        };
        assert_eq!(write_grid(&mut out, &grid, &points), points.len());
        assert_eq!(out.len(), 28 * 42 * POINT_BYTES);
        for (index, ((v, u), depth)) in depth.indexed_iter().enumerate() {
            let z = number(&out, index, 2);
            if (u + v) % 3 == 0 {
                assert!(z.is_nan());
                continue;
            }
            assert!((z - depth).abs() < 1e-4, "{u} {v}");
            assert_eq!(
                word(&out, index, 3),
                u32::from_be_bytes([0, u as u8, v as u8, 9])
            );
        }
    }
}
