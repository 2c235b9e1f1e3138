use r2r::{sensor_msgs::msg::CameraInfo, std_msgs::msg::Header};

use crate::geometry::Intrinsics;

/// Of a pinhole camera without distortion; the size in rows and columns.
pub fn camera_info(header: Header, (rows, columns): (usize, usize), k: &Intrinsics) -> CameraInfo {
    let Intrinsics { fx, fy, cx, cy } = *k;
    CameraInfo {
        header,
        height: rows as u32,
        width: columns as u32,
        distortion_model: "plumb_bob".into(),
        d: vec![0.0; 5],
        k: vec![fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0],
        r: vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p: vec![fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
        ..Default::default()
    }
}
