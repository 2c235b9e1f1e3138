//! Point clouds as PCD files, the format of the Point Cloud Library.

use std::path::Path;

use super::{MapError, MapPoint, write_atomically};

/// Writes a binary PCD file, version 0.7, with the fields `x y z rgb confidence`, floats all of them. `rgb` is what the
/// Point Cloud Library makes of a colour: the bits 0x00RRGGBB read as a float.
///
/// # Errors
/// [`MapError::Write`].
pub fn write_pcd(
    path: &Path,
    points: impl ExactSizeIterator<Item = MapPoint>,
) -> Result<(), MapError> {
    write_atomically(path, |out| {
        let count = points.len();
        write!(
            out,
            "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS x y z rgb confidence\nSIZE 4 4 4 4 4\n\
             TYPE F F F F F\nCOUNT 1 1 1 1 1\nWIDTH {count}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {count}\n\
             DATA binary\n"
        )?;
        for point in points {
            let [x, y, z] = point.position;
            let [red, green, blue] = point.color;
            let rgb = f32::from_bits(u32::from_be_bytes([0, red, green, blue]));
            let fields = [x, y, z, rgb, point.confidence].map(f32::to_le_bytes);
            out.write_all(fields.as_flattened())?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_five_little_endian_words_after_the_header() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.pcd");
        let point = MapPoint {
            position: [1.0, -2.0, 0.5],
            color: [255, 128, 1],
            confidence: 3.0,
        };
        write_pcd(&path, [point, point].into_iter()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mark = b"DATA binary\n";
        let end = bytes.windows(mark.len()).position(|w| w == mark).unwrap() + mark.len();
        let header = str::from_utf8(&bytes[..end]).unwrap();
        assert!(header.contains("\nWIDTH 2\nHEIGHT 1\n") && header.contains("\nPOINTS 2\n"));
        let words = [
            0x3f80_0000u32,
            0xc000_0000,
            0x3f00_0000,
            0x00ff_8001,
            0x4040_0000,
        ];
        let expected: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!(bytes[end..], expected.repeat(2));
    }
}
