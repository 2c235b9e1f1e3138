//! Points as they travel: twenty bytes each, little-endian.

use nalgebra::{Isometry3, Matrix3, Vector3};

use super::MapPoint;
use crate::geometry::Intrinsics;

/// Bytes of a point: x, y, z, colour as 0x00RRGGBB, confidence, four bytes each.
pub const POINT_BYTES: usize = 20;

/// What takes points from one frame into another, ready to be applied to many.
#[derive(Debug, Clone, Copy)]
struct Carrier {
    rotation: Matrix3<f32>,
    translation: Vector3<f32>,
}

impl Carrier {
    fn new(transform: &Isometry3<f64>) -> Self {
        Self {
            rotation: transform.rotation.to_rotation_matrix().matrix().cast(),
            translation: transform.translation.vector.cast(),
        }
    }

    fn carry(&self, [x, y, z]: [f32; 3]) -> [f32; 3] {
        (self.rotation * Vector3::new(x, y, z) + self.translation).into()
    }
}

fn write_point(bytes: &mut [u8], [x, y, z]: [f32; 3], [r, g, b]: [u8; 3], confidence: f32) {
    let colour = u32::from_be_bytes([0, r, g, b]);
    let words = [
        x.to_le_bytes(),
        y.to_le_bytes(),
        z.to_le_bytes(),
        colour.to_le_bytes(),
        confidence.to_le_bytes(),
    ];
    bytes.copy_from_slice(words.as_flattened());
}

/// Puts points into `out`, in place of what it held, carried by `frame_from_world`.
pub fn write_points(
    out: &mut Vec<u8>,
    frame_from_world: &Isometry3<f64>,
    points: impl ExactSizeIterator<Item = MapPoint>,
) {
    let carrier = Carrier::new(frame_from_world);
    out.resize(points.len() * POINT_BYTES, 0);
    for (bytes, point) in out.chunks_exact_mut(POINT_BYTES).zip(points) {
        let position = carrier.carry(point.position);
        write_point(bytes, position, point.color, point.confidence);
    }
}

/// The camera that a grid of points belongs to.
#[derive(Debug, Clone, Copy)]
pub struct GridView<'a> {
    pub rows: usize,
    pub columns: usize,
    /// Those that the points were made with.
    pub intrinsics: &'a Intrinsics,
    /// Optical axes.
    pub camera_from_world: &'a Isometry3<f64>,
    /// Takes the optical axes to those of the cloud's frame.
    pub frame_from_camera: &'a Isometry3<f64>,
}

/// Puts one frame's points into `out` where their pixels are, row by row; the coordinates of pixels without a point are
/// NaN. Returns how many pixels have one.
pub fn write_grid(out: &mut Vec<u8>, view: &GridView, points: &[MapPoint]) -> usize {
    let (height, width) = (view.rows, view.columns);
    let k = view.intrinsics;
    let (to_camera, to_frame) = (
        Carrier::new(view.camera_from_world),
        Carrier::new(view.frame_from_camera),
    );
    out.resize(height * width * POINT_BYTES, 0);
    for bytes in out.chunks_exact_mut(POINT_BYTES) {
        write_point(bytes, [f32::NAN; 3], [0; 3], 0.0);
    }
    let mut filled = 0;
    for point in points {
        let in_camera @ [x, y, z] = to_camera.carry(point.position);
        // Points were made of whole pixels: the nearest is the one.
        let u = (k.fx as f32 * x / z + k.cx as f32).round();
        let v = (k.fy as f32 * y / z + k.cy as f32).round();
        let inside = u >= 0.0 && v >= 0.0 && u < width as f32 && v < height as f32;
        if !inside {
            continue;
        }
        let at = (v as usize * width + u as usize) * POINT_BYTES;
        if let Some(bytes) = out.get_mut(at..at + POINT_BYTES) {
            let position = to_frame.carry(in_camera);
            write_point(bytes, position, point.color, point.confidence);
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
            &Isometry3::translation(0.5, 0.0, 0.0),
            points.into_iter(),
        );
        assert_eq!(out.len(), 60);
        let packed = [0, 1, 2].map(|point| word(&out, point, 3));
        assert_eq!(packed, [0x00FF_0000, 0x0000_FF00, 0x0000_00FF]);
        let first = [0, 1, 2, 4].map(|field| number(&out, 0, field));
        assert_eq!(first, [1.5, 2.0, 3.0, 2.5]);
        write_points(&mut out, &Isometry3::identity(), std::iter::empty());
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
        points_of_frame(&view, &PointFilter::default(), &mut points);
        let mut out = Vec::new();
        let grid = GridView {
            rows: 28,
            columns: 42,
            intrinsics: &intrinsics,
            camera_from_world: &world_from_camera.inverse(),
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
