//! Maps as binary glTF files, which viewers of 3D models open: the points, and a pyramid for every camera.

use std::io;
use std::path::Path;

use nalgebra::{Isometry3, Point3};
use serde_json::json;

use super::{MapError, MapPoint, Trajectory, write_atomically};

/// So many cameras are shown at most, evenly along the path.
const MOST_CAMERAS: usize = 500;
/// Half width, half height and length of a camera's pyramid, in shares of the map's size.
const PYRAMID: [f64; 3] = [0.008, 0.006, 0.012];
/// Corners of a pyramid's edges: from the eye to the four corners, and around them.
const EDGES: [u32; 16] = [0, 1, 0, 2, 0, 3, 0, 4, 1, 2, 2, 3, 3, 4, 4, 1];
const CORNERS: usize = 5;

/// Bytes of a point: position as three floats, colour as four bytes.
const STRIDE: usize = 16;
// Numbers of the glTF 2.0 specification.
const FLOAT: u32 = 5126;
const UNSIGNED_BYTE: u32 = 5121;
const UNSIGNED_INT: u32 = 5125;
const POINTS_MODE: u32 = 0;
const LINES_MODE: u32 = 1;
const ARRAY_BUFFER: u32 = 34962;
const ELEMENT_ARRAY_BUFFER: u32 = 34963;
const MAGIC: u32 = 0x4654_6c67;
const JSON_CHUNK: u32 = 0x4e4f_534a;
const BINARY_CHUNK: u32 = 0x004e_4942;

/// Writes a binary glTF 2.0 file with the points, which must be finite, and the path's cameras as pyramids. Its axes are
/// those of glTF: y up, the first camera looks along -z.
///
/// # Errors
/// [`MapError::Write`]; also for a map of no points and for one that passes the format's four gigabytes.
pub fn write_glb(
    path: &Path,
    points: &[MapPoint],
    trajectory: &Trajectory,
) -> Result<(), MapError> {
    write_atomically(path, |out| {
        let Some((low, high)) = extent(points.iter().map(|p| turned(p.position))) else {
            return Err(io::Error::other("a map without points has no glTF file"));
        };
        let size = low.iter().zip(high).map(|(l, h)| f64::from(h - l).powi(2));
        let corners = pyramids(trajectory, size.sum::<f64>().sqrt());
        let edges: Vec<u32> = (0..corners.len() / CORNERS)
            .flat_map(|camera| EDGES.map(|corner| (camera * CORNERS) as u32 + corner))
            .collect();
        let lengths = [points.len() * STRIDE, corners.len() * 12, edges.len() * 4];
        let binary: usize = lengths.iter().sum();
        let mut text = document(points.len(), (low, high), &corners, lengths).to_string();
        text.push_str(&" ".repeat(text.len().next_multiple_of(4) - text.len()));

        let whole = u32::try_from(12 + 8 + text.len() + 8 + binary);
        let whole =
            whole.map_err(|_| io::Error::other("more than four gigabytes are no glTF file"))?;
        // None of the parts is longer than the whole.
        for word in [MAGIC, 2, whole, text.len() as u32, JSON_CHUNK] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(text.as_bytes())?;
        for word in [binary as u32, BINARY_CHUNK] {
            out.write_all(&word.to_le_bytes())?;
        }
        for point in points {
            let [red, green, blue] = point.color.map(linear);
            out.write_all(turned(point.position).map(f32::to_le_bytes).as_flattened())?;
            out.write_all(&[red, green, blue, 255])?;
        }
        for corner in &corners {
            out.write_all(corner.map(f32::to_le_bytes).as_flattened())?;
        }
        edges
            .iter()
            .try_for_each(|edge| out.write_all(&edge.to_le_bytes()))
    })
}

/// From y down and z forward to y up and z backward.
fn turned([x, y, z]: [f32; 3]) -> [f32; 3] {
    [x, -y, -z]
}

/// Vertex colours are linear in glTF, pictures are not (IEC 61966-2-1).
fn linear(value: u8) -> u8 {
    let value = f32::from(value) / 255.0;
    let linear = if value <= 0.04045 {
        value / 12.92
    } else {
        ((value + 0.055) / 1.055).powf(2.4)
    };
    (linear * 255.0).round() as u8
}

fn extent(places: impl Iterator<Item = [f32; 3]>) -> Option<([f32; 3], [f32; 3])> {
    places.fold(None, |extent, place| {
        let (mut low, mut high) = extent.unwrap_or((place, place));
        for axis in 0..3 {
            low[axis] = low[axis].min(place[axis]);
            high[axis] = high[axis].max(place[axis]);
        }
        Some((low, high))
    })
}

fn pyramids(trajectory: &Trajectory, size: f64) -> Vec<[f32; 3]> {
    let step = trajectory.len().div_ceil(MOST_CAMERAS).max(1);
    let [x, y, z] = PYRAMID.map(|share| share * size);
    let corners = [[0.0; 3], [-x, -y, z], [x, -y, z], [x, y, z], [-x, y, z]];
    let of_pose = |pose: &Isometry3<f64>| {
        corners.map(|corner| turned((pose * Point3::from(corner)).coords.cast().into()))
    };
    let poses = trajectory.iter().step_by(step);
    poses.flat_map(|(_, pose)| of_pose(pose)).collect()
}

/// `lengths` are those of the points, the cameras' corners and their edges in the binary chunk, bytes.
fn document(
    points: usize,
    (low, high): ([f32; 3], [f32; 3]),
    corners: &[[f32; 3]],
    lengths: [usize; 3],
) -> serde_json::Value {
    let mut views = vec![
        json!({"buffer": 0, "byteLength": lengths[0], "byteStride": STRIDE, "target": ARRAY_BUFFER}),
    ];
    let mut accessors = vec![
        json!({"bufferView": 0, "componentType": FLOAT, "count": points, "type": "VEC3", "min": low, "max": high}),
        json!({"bufferView": 0, "byteOffset": 12, "componentType": UNSIGNED_BYTE, "normalized": true, "count": points,
            "type": "VEC4"}),
    ];
    let mut meshes = vec![json!({"name": "points", "primitives": [{
        "attributes": {"POSITION": 0, "COLOR_0": 1}, "mode": POINTS_MODE}]})];
    if let Some((low, high)) = extent(corners.iter().copied()) {
        views.push(json!({"buffer": 0, "byteOffset": lengths[0], "byteLength": lengths[1], "target": ARRAY_BUFFER}));
        views.push(
            json!({"buffer": 0, "byteOffset": lengths[0] + lengths[1], "byteLength": lengths[2],
            "target": ELEMENT_ARRAY_BUFFER}),
        );
        accessors.push(
            json!({"bufferView": 1, "componentType": FLOAT, "count": corners.len(), "type": "VEC3",
            "min": low, "max": high}),
        );
        accessors.push(
            json!({"bufferView": 2, "componentType": UNSIGNED_INT, "count": lengths[2] / 4,
            "type": "SCALAR"}),
        );
        meshes.push(json!({"name": "cameras", "primitives": [{
            "attributes": {"POSITION": 2}, "indices": 3, "mode": LINES_MODE}]}));
    }
    let nodes: Vec<_> = (0..meshes.len())
        .map(|mesh| json!({"mesh": mesh}))
        .collect();
    let roots: Vec<usize> = (0..nodes.len()).collect();
    json!({
        "asset": {"version": "2.0", "generator": concat!("lingbot_map ", env!("CARGO_PKG_VERSION"))},
        "scene": 0, "scenes": [{"nodes": roots}], "nodes": nodes, "meshes": meshes, "accessors": accessors,
        "bufferViews": views, "buffers": [{"byteLength": lengths.iter().sum::<usize>()}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::Stamp;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn lengths_agree_and_points_and_cameras_lie_where_they_should() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.glb");
        let point = |x: f32| MapPoint {
            position: [x, 1.0, 2.0],
            color: [255, 0, 128],
            confidence: 1.0,
        };
        let mut trajectory = Trajectory::new();
        trajectory.push(Stamp(0), Isometry3::translation(0.0, 3.0, 0.0));
        write_glb(&path, &[point(0.0), point(5.0)], &trajectory).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(
            (&bytes[..4], word(&bytes, 8) as usize),
            (b"glTF".as_slice(), bytes.len())
        );
        let text = word(&bytes, 12) as usize;
        let binary = &bytes[20 + text + 8..];
        assert_eq!(word(&bytes, 20 + text) as usize, binary.len());
        let json: serde_json::Value = serde_json::from_slice(&bytes[20..20 + text]).unwrap();
        assert_eq!(json["buffers"][0]["byteLength"], binary.len());
        assert_eq!(json["accessors"][0]["max"], json!([5.0, -1.0, -2.0]));
        assert_eq!(binary[STRIDE + 12..STRIDE + 16], [255, 0, 55, 255]);
        let eye: Vec<u32> = (0..3).map(|i| word(binary, 2 * STRIDE + 4 * i)).collect();
        assert_eq!(
            eye.into_iter().map(f32::from_bits).collect::<Vec<_>>(),
            [0.0, -3.0, 0.0]
        );
    }

    #[test]
    fn a_map_without_points_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_glb(&folder.path().join("map.glb"), &[], &Trajectory::new());
        assert!(error.unwrap_err().to_string().contains("without points"));
    }
}
