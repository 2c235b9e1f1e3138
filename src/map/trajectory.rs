//! The camera's path.

use std::fs;
use std::path::Path;

use nalgebra::{Isometry3, Quaternion, Translation3, UnitQuaternion};

use super::{MapError, Scale, write_atomically};
use crate::camera::Stamp;
use crate::geometry::rigid_from_rows;

/// Poses of the camera (`world_from_camera`) in the order in which they were pushed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trajectory {
    poses: Vec<(Stamp, Isometry3<f64>)>,
}

impl Trajectory {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, stamp: Stamp, world_from_camera: Isometry3<f64>) {
        self.poses.push((stamp, world_from_camera));
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &(Stamp, Isometry3<f64>)> {
        self.poses.iter()
    }

    pub fn len(&self) -> usize {
        self.poses.len()
    }

    pub fn is_empty(&self) -> bool {
        self.poses.is_empty()
    }

    pub fn clear(&mut self) {
        self.poses.clear();
    }

    /// The same path with another unit of length.
    pub fn scaled(&self, scale: &Scale) -> Self {
        let poses = self.poses.iter();
        Self {
            poses: poses
                .map(|(stamp, pose)| (*stamp, scale.of_pose(pose)))
                .collect(),
        }
    }

    /// Writes the format of the TUM RGB-D benchmark: a line `timestamp tx ty tz qx qy qz qw` for each pose, the time in
    /// seconds to the nanosecond.
    ///
    /// # Errors
    /// [`MapError::Write`].
    pub fn write_tum(&self, path: impl AsRef<Path>) -> Result<(), MapError> {
        write_atomically(path.as_ref(), |out| {
            for (stamp, pose) in &self.poses {
                let t = &pose.translation.vector;
                let q = pose.rotation.coords;
                writeln!(
                    out,
                    "{} {:.9} {:.9} {:.9} {:.9} {:.9} {:.9} {:.9}",
                    seconds_text(*stamp),
                    t.x,
                    t.y,
                    t.z,
                    q.x,
                    q.y,
                    q.z,
                    q.w
                )?;
            }
            Ok(())
        })
    }

    /// Writes the format of KITTI's odometry benchmark: a line for each pose with the upper three rows of its matrix.
    /// There are no times.
    ///
    /// # Errors
    /// [`MapError::Write`].
    pub fn write_kitti(&self, path: impl AsRef<Path>) -> Result<(), MapError> {
        write_atomically(path.as_ref(), |out| {
            for (_, pose) in &self.poses {
                let matrix = pose.to_homogeneous();
                let rows = matrix.fixed_rows::<3>(0).transpose();
                let numbers: Vec<String> = rows.iter().map(|value| format!("{value:.9}")).collect();
                writeln!(out, "{}", numbers.join(" "))?;
            }
            Ok(())
        })
    }

    /// Reads what [`Self::write_tum`] and other tools write. Empty lines and lines that begin with `#` are skipped,
    /// quaternions normalised.
    ///
    /// # Errors
    /// [`MapError::Read`]; [`MapError::Parse`] with the line that is not eight finite numbers or has a zero quaternion.
    pub fn read_tum(path: impl AsRef<Path>) -> Result<Self, MapError> {
        let path = path.as_ref();
        let poses = parse_lines(path, &read_text(path)?, parse_tum)?;
        Ok(Self { poses })
    }
}

/// A camera's path as a file has it.
#[derive(Debug, Clone, PartialEq)]
pub enum PathFile {
    /// Every pose with its time: the format of the TUM RGB-D benchmark.
    Timed(Trajectory),
    /// Poses (`world_from_camera`) in order, without times: the format of KITTI's odometry benchmark.
    Ordered(Vec<Isometry3<f64>>),
}

impl PathFile {
    /// Reads either format. A first line of twelve numbers (the upper three rows of the pose's matrix) tells KITTI's;
    /// all else is read as [`Trajectory::read_tum`] does.
    ///
    /// # Errors
    /// [`MapError::Read`]; [`MapError::Parse`] with the line that is no pose.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, MapError> {
        let path = path.as_ref();
        let text = read_text(path)?;
        let first = data_lines(&text).next();
        if first.is_some_and(|(_, line)| line.split_whitespace().count() == KITTI_NUMBERS) {
            return Ok(Self::Ordered(parse_lines(path, &text, parse_kitti)?));
        }
        let poses = parse_lines(path, &text, parse_tum)?;
        Ok(Self::Timed(Trajectory { poses }))
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Timed(trajectory) => trajectory.len(),
            Self::Ordered(poses) => poses.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn poses(&self) -> impl Iterator<Item = &Isometry3<f64>> {
        let (timed, ordered) = match self {
            Self::Timed(trajectory) => (trajectory.poses.as_slice(), Default::default()),
            Self::Ordered(poses) => (Default::default(), poses.as_slice()),
        };
        timed.iter().map(|(_, pose)| pose).chain(ordered)
    }
}

fn read_text(path: &Path) -> Result<String, MapError> {
    fs::read_to_string(path).map_err(|source| MapError::Read {
        path: path.to_owned(),
        source,
    })
}

/// The lines that are neither empty nor comments, and their numbers.
fn data_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn parse_lines<T>(
    path: &Path,
    text: &str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, MapError> {
    let parsed = data_lines(text).map(|(number, line)| {
        parse(line).map_err(|reason| MapError::Parse {
            path: path.to_owned(),
            line: number,
            reason,
        })
    });
    parsed.collect()
}

fn parse_number(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| format!("{text:?} is not a number"))
}

const KITTI_NUMBERS: usize = 12;

fn parse_kitti(line: &str) -> Result<Isometry3<f64>, String> {
    let numbers: Vec<f64> = line
        .split_whitespace()
        .map(parse_number)
        .collect::<Result<_, _>>()?;
    let numbers: [f64; KITTI_NUMBERS] = numbers
        .try_into()
        .map_err(|found: Vec<f64>| format!("{} numbers where 12 are needed", found.len()))?;
    let [a, b, c, d, e, f, g, h, i, j, k, l] = numbers;
    rigid_from_rows(&[[a, b, c, d], [e, f, g, h], [i, j, k, l]]).map_err(|error| error.to_string())
}

fn parse_tum(line: &str) -> Result<(Stamp, Isometry3<f64>), String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [time, numbers @ ..] = fields.as_slice() else {
        return Err("no numbers".to_owned());
    };
    let numbers: Vec<f64> = numbers
        .iter()
        .map(|text| parse_number(text))
        .collect::<Result<_, _>>()?;
    let &[tx, ty, tz, x, y, z, w] = numbers.as_slice() else {
        return Err(format!("{} numbers where 8 are needed", fields.len()));
    };
    let stamp = parse_seconds(time).ok_or_else(|| format!("{time:?} is not a time in seconds"))?;
    let rotation = UnitQuaternion::try_new(Quaternion::new(w, x, y, z), f64::MIN_POSITIVE)
        .ok_or("a zero quaternion")?;
    let pose = Isometry3::from_parts(Translation3::new(tx, ty, tz), rotation);
    Ok((stamp, pose))
}

/// Exact, unlike a double: a time of this century has ten digits before the point.
fn seconds_text(stamp: Stamp) -> String {
    let nanoseconds = stamp.0.unsigned_abs();
    let sign = if stamp.0 < 0 { "-" } else { "" };
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    format!("{sign}{seconds}.{rest:09}")
}

fn parse_seconds(text: &str) -> Option<Stamp> {
    let (digits, negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || whole.len() + fraction.len() == 0 {
        // Exponents, as numpy writes them.
        let seconds: f64 = text.parse().ok()?;
        let nanoseconds = (seconds * 1e9).round();
        let representable = nanoseconds.abs() < i64::MAX as f64;
        return representable.then_some(Stamp(nanoseconds as i64));
    }
    let kept: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let seconds: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let nanoseconds = seconds
        .checked_mul(1_000_000_000)?
        .checked_add(kept.parse().ok()?)?;
    Some(Stamp(if negative { -nanoseconds } else { nanoseconds }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::Vector3;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Trajectory, MapError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.tum");
        fs::write(&path, text).unwrap();
        Trajectory::read_tum(path)
    }

    #[test]
    fn a_line_is_written_to_the_nanosecond_with_the_scalar_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.tum");
        let mut trajectory = Trajectory::new();
        let quarter = Vector3::new(0.0, std::f64::consts::FRAC_PI_2, 0.0);
        let pose = Isometry3::new(Vector3::new(1.0, -2.5, 0.125), quarter);
        trajectory.push(Stamp(1_700_000_000_123_456_789), pose);
        trajectory.push(Stamp(-1), Isometry3::identity());
        trajectory.write_tum(&path).unwrap();
        let expected = "1700000000.123456789 1.000000000 -2.500000000 0.125000000 \
             0.000000000 0.707106781 0.000000000 0.707106781\n\
             -0.000000001 0.000000000 0.000000000 0.000000000 \
             0.000000000 0.000000000 0.000000000 1.000000000\n";
        assert_eq!(fs::read_to_string(path).unwrap(), expected);
    }

    #[test]
    fn other_tools_files_are_read() {
        let text = "# timestamp tx ty tz qx qy qz qw\n\n1.5 1 2 3 0 0 0 2\r\n\
                    1.403636579763555584e+09  0 0 0  0 0 0 1\n7 0 0 0 0 0 1 0\n";
        let trajectory = read(text).unwrap();
        let stamps: Vec<i64> = trajectory.iter().map(|(s, _)| s.0).collect();
        assert_eq!(stamps[0], 1_500_000_000);
        assert!((stamps[1] - 1_403_636_579_763_555_584).abs() < 1000);
        assert_eq!(stamps[2], 7_000_000_000);
        let (_, first) = trajectory.iter().next().unwrap();
        assert_eq!(first.translation.vector, Vector3::new(1.0, 2.0, 3.0));
        assert_eq!(first.rotation, UnitQuaternion::identity());
    }

    #[test]
    fn a_bad_line_is_named() {
        for bad in [
            "1 2 3",
            "1 0 0 0 0 0 0 0",
            "x 0 0 0 0 0 0 1",
            "1 0 0 nan 0 0 0 1",
            "1 0 0 0 0 0 0 1 9",
            "1e300 0 0 0 0 0 0 1",
            "99999999999999999999 0 0 0 0 0 0 1",
        ] {
            let error = read(&format!("1 0 0 0 0 0 0 1\n{bad}\n")).unwrap_err();
            assert!(error.to_string().contains("line 2"), "{bad}: {error}");
        }
        assert!(matches!(
            Trajectory::read_tum("absent.tum"),
            Err(MapError::Read { .. })
        ));
    }

    fn read_any(text: &str) -> Result<PathFile, MapError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("path");
        fs::write(&path, text).unwrap();
        PathFile::read(path)
    }

    #[test]
    fn twelve_numbers_are_a_matrix_and_eight_a_pose_with_its_time() {
        let quarter =
            "# a quarter turn about y\n0 0 1 4 0 1 0 5 -1 0 0 6\n\n1 0 0 0 0 1 0 0 0 0 1 0\n";
        let PathFile::Ordered(poses) = read_any(quarter).unwrap() else {
            panic!("not read as matrices");
        };
        let turn = Vector3::y() * std::f64::consts::FRAC_PI_2;
        let expected = Isometry3::new(Vector3::new(4.0, 5.0, 6.0), turn);
        assert!((poses[0].to_homogeneous() - expected.to_homogeneous()).norm() < 1e-12);
        assert_eq!(poses.len(), 2);
        let tum = "1.5 1 2 3 0 0 0 1\n";
        let PathFile::Timed(path) = read_any(tum).unwrap() else {
            panic!("not read with times");
        };
        assert_eq!(Ok(path), read(tum).map_err(|error| error.to_string()));
    }

    #[test]
    fn written_matrices_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("path.txt");
        let mut written = Trajectory::new();
        for turn in [0.0, 0.7, 2.5] {
            let pose = Isometry3::new(Vector3::new(1.0, -2.0, turn), Vector3::new(0.1, turn, 0.3));
            written.push(Stamp(0), pose);
        }
        written.write_kitti(&path).unwrap();
        let PathFile::Ordered(read) = PathFile::read(&path).unwrap() else {
            panic!("not read as matrices");
        };
        assert_eq!(read.len(), 3);
        for ((_, expected), pose) in written.iter().zip(&read) {
            assert!((pose.to_homogeneous() - expected.to_homogeneous()).norm() < 1e-7);
        }
    }

    #[test]
    fn a_matrix_that_is_no_pose_is_named() {
        let good = "1 0 0 0 0 1 0 0 0 0 1 0";
        for bad in [
            "1 0 0 0 0 1 0 0 0 0 1",
            "1 0 0 0 0 1 0 0 0 0 1 0 7",
            "1 0 0 nan 0 1 0 0 0 0 1 0",
            "2 0 0 0 0 2 0 0 0 0 2 0",
            "1 0 0 0 0 1 0 0 0 0 -1 0",
        ] {
            let error = read_any(&format!("{good}\n{bad}\n")).unwrap_err();
            assert!(error.to_string().contains("line 2"), "{bad}: {error}");
        }
        assert!(matches!(
            PathFile::read("absent"),
            Err(MapError::Read { .. })
        ));
        assert!(read_any("").unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            poses in prop::collection::vec(
                (-1_000_000_000_000_000_000i64..2_000_000_000_000_000_000,
                 prop::array::uniform3(-1e3..1e3f64), prop::array::uniform3(-3.0..3.0f64)), 0..20),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("t.tum");
            let mut written = Trajectory::new();
            for (stamp, t, r) in poses {
                written.push(Stamp(stamp), Isometry3::new(Vector3::from(t), Vector3::from(r)));
            }
            written.write_tum(&path).unwrap();
            let read = Trajectory::read_tum(&path).unwrap();
            prop_assert_eq!(read.len(), written.len());
            for ((stamp, pose), (expected_stamp, expected)) in read.iter().zip(written.iter()) {
                prop_assert_eq!(stamp, expected_stamp);
                prop_assert!((pose.translation.vector - expected.translation.vector).norm() < 1e-8);
                prop_assert!(pose.rotation.angle_to(&expected.rotation) < 1e-7);
            }
        }
    }
}
