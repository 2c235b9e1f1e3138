//! Point clouds as PLY files.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::{MapError, MapPoint, write_atomically};

const BYTES_PER_POINT: usize = 19;
const BEFORE_COUNT: &str = "ply\nformat binary_little_endian 1.0\nelement vertex ";
const AFTER_COUNT: &str = "\nproperty float x\nproperty float y\nproperty float z\n\
    property uchar red\nproperty uchar green\nproperty uchar blue\n\
    property float confidence\nend_header\n";

/// Writes a binary little-endian PLY file: `x y z` as floats, `red green blue` as bytes, `confidence` as a float.
///
/// # Errors
/// [`MapError::Write`].
pub fn write_ply(
    path: &Path,
    points: impl ExactSizeIterator<Item = MapPoint>,
) -> Result<(), MapError> {
    write_atomically(path, |out| {
        write!(out, "{BEFORE_COUNT}{}{AFTER_COUNT}", points.len())?;
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

/// Gives each point of a file that [`write_ply`] has written, in order, to `each`.
///
/// # Errors
/// [`MapError::Read`]: also for other PLY files, and for one that is shorter than its header says.
pub fn read_ply(path: &Path, each: impl FnMut(MapPoint)) -> Result<(), MapError> {
    read_points(path, each).map_err(|source| MapError::Read {
        path: path.to_owned(),
        source,
    })
}

fn read_points(path: &Path, mut each: impl FnMut(MapPoint)) -> io::Result<()> {
    let mut file = BufReader::new(File::open(path)?);
    let points = read_header(&mut file)?;
    for index in 0..points {
        let mut bytes = [0; BYTES_PER_POINT];
        file.read_exact(&mut bytes)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    invalid(format!("it ends after {index} of {points} points"))
                }
                _ => error,
            })?;
        each(point_of(&bytes));
    }
    Ok(())
}

/// The number of points.
fn read_header(file: &mut impl BufRead) -> io::Result<u64> {
    let other = || invalid("it is not a point cloud that this program writes".to_owned());
    let mut before = [0; BEFORE_COUNT.len()];
    file.read_exact(&mut before).map_err(|_| other())?;
    let mut count = Vec::new();
    file.by_ref().take(20).read_until(b'\n', &mut count)?;
    let count = str::from_utf8(&count)
        .ok()
        .and_then(|text| text.strip_suffix('\n')?.parse().ok());
    // The line's end is read already.
    let after_line = AFTER_COUNT.trim_start();
    let mut after = vec![0; after_line.len()];
    file.read_exact(&mut after).map_err(|_| other())?;
    match count {
        Some(count) if before == BEFORE_COUNT.as_bytes() && after == after_line.as_bytes() => {
            Ok(count)
        }
        _ => Err(other()),
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn point_of(bytes: &[u8; BYTES_PER_POINT]) -> MapPoint {
    let [
        x0,
        x1,
        x2,
        x3,
        y0,
        y1,
        y2,
        y3,
        z0,
        z1,
        z2,
        z3,
        red,
        green,
        blue,
        c0,
        c1,
        c2,
        c3,
    ] = *bytes;
    let float = f32::from_le_bytes;
    MapPoint {
        position: [
            float([x0, x1, x2, x3]),
            float([y0, y1, y2, y3]),
            float([z0, z1, z2, z3]),
        ],
        color: [red, green, blue],
        confidence: float([c0, c1, c2, c3]),
    }
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
        let mut read = Vec::new();
        read_ply(&path, |point| read.push(point)).unwrap();
        assert_eq!(read, points);
    }

    #[test]
    fn other_and_broken_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.ply");
        let point = MapPoint {
            position: [1.0; 3],
            color: [7; 3],
            confidence: 2.0,
        };
        write_ply(&path, [point; 3].into_iter()).unwrap();
        let whole = fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let error = read_ply(&path, |_| ()).unwrap_err().to_string();
            assert!(error.contains("map.ply"), "{error}");
            error
        };
        let cut = refused(&whole[..whole.len() - 1]);
        assert!(cut.contains("2 of 3 points"), "{cut}");
        let text = b"ply\nformat ascii 1.0\nelement vertex 0\nend_header\n";
        let doubled = String::from_utf8_lossy(&whole).replace("float x", "double x");
        let endless = format!("{BEFORE_COUNT}{}", "9".repeat(1000));
        let negative = format!("{BEFORE_COUNT}-1{AFTER_COUNT}");
        for other in [
            &b""[..],
            text,
            doubled.as_bytes(),
            endless.as_bytes(),
            negative.as_bytes(),
        ] {
            assert!(refused(other).contains("not a point cloud"));
        }
        assert!(matches!(
            read_ply(&folder.path().join("absent"), |_| ()),
            Err(MapError::Read { .. })
        ));
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
