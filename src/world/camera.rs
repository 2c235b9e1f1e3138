//! The camera that looks at the room.

use nalgebra::Vector3;

/// A pinhole camera without distortion: pixel (u, v) looks along ((u - cx) / fx, (v - cy) / fy, 1) in optical axes
/// (x to the right, y down, z forward). Focal lengths and principal point in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Camera {
    pub width: u32,
    pub height: u32,
    pub fx: f64,
    pub fy: f64,
    pub cx: f64,
    pub cy: f64,
}

impl Camera {
    /// Square pixels, the principal point at half the size; the horizontal field of view in radians, between 0 and π.
    pub fn from_field_of_view(width: u32, height: u32, horizontal: f64) -> Self {
        let (cx, cy) = (f64::from(width) / 2.0, f64::from(height) / 2.0);
        let focal_length = cx / (horizontal / 2.0).tan();
        Self {
            width,
            height,
            fx: focal_length,
            fy: focal_length,
            cx,
            cy,
        }
    }

    /// What the pixel (u, v) looks along; its z is 1, so that a multiple of it is a depth.
    pub fn ray(&self, u: f64, v: f64) -> Vector3<f64> {
        Vector3::new((u - self.cx) / self.fx, (v - self.cy) / self.fy, 1.0)
    }
}
