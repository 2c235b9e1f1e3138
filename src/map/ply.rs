//! Point clouds as PLY files.

use std::path::Path;

use super::{MapError, MapPoint, write_atomically};

const BYTES_PER_POINT: usize = 19;

/// Writes a binary little-endian PLY file: `x y z` as floats, `red green blue` as bytes, `confidence` as a float.
///
/// # Errors
/// [`MapError::Write`].
pub fn write_ply(
    path: &Path,
    points: impl ExactSizeIterator<Item = MapPoint>,
) -> Result<(), MapError> {
    write_atomically(path, |out| {
        write!(
            out,
            "ply\nformat binary_little_endian 1.0\nelement vertex {}\n\
             property float x\nproperty float y\nproperty float z\n\
             property uchar red\nproperty uchar green\nproperty uchar blue\n\
             property float confidence\nend_header\n",
            points.len()
        )?;
        points
            .map(|point| bytes_of(&point))
            .try_for_each(|bytes| out.write_all(&bytes))
    })
}

fn bytes_of(point: &MapPoint) -> [u8; BYTES_PER_POINT] {
    let [x, y, z] = point.position.map(f32::to_le_bytes);
    let confidence = point.confidence.to_le_bytes();
    let mut bytes = [0; BYTES_PER_POINT];
    let parts = [x.as_slice(), &y, &z, &point.color, &confidence];
    for (byte, value) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
        *byte = *value;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_file_holds_what_its_header_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.ply");
        let points = [
            MapPoint {
                position: [1.0, -2.0, 0.5],
                color: [255, 128, 0],
                confidence: 3.25,
            },
            MapPoint {
                position: [0.0, 1e-3, 7.0],
                color: [1, 2, 3],
                confidence: 1.5,
            },
        ];
        write_ply(&path, points.iter().copied()).unwrap();
        let bytes = fs::read(&path).unwrap();
        let end = b"end_header\n";
        let body = bytes.windows(end.len()).position(|w| w == end).unwrap() + end.len();
        let header = std::str::from_utf8(&bytes[..body]).unwrap();
        assert!(header.starts_with("ply\nformat binary_little_endian 1.0\nelement vertex 2\n"));
        let properties: Vec<&str> = header
            .lines()
            .filter_map(|l| l.strip_prefix("property "))
            .collect();
        assert_eq!(
            properties,
            [
                "float x",
                "float y",
                "float z",
                "uchar red",
                "uchar green",
                "uchar blue",
                "float confidence"
            ]
        );
        assert_eq!(bytes.len() - body, 2 * 19);
        for (record, point) in bytes[body..].chunks(19).zip(&points) {
            let float = |at: usize| f32::from_le_bytes(record[at..at + 4].try_into().unwrap());
            assert_eq!([float(0), float(4), float(8)], point.position);
            assert_eq!(record[12..15], point.color);
            assert_eq!(float(15), point.confidence);
        }
    }

    #[test]
    fn an_empty_map_is_a_legal_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.ply");
        write_ply(&path, std::iter::empty()).unwrap();
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains("element vertex 0\n") && text.ends_with("end_header\n"));
    }
}
