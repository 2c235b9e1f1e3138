//! Files that a map may be saved as beside its usual ones.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{MapError, MapPoint, Trajectory, write_glb, write_pcd};

/// Another file of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapFormat {
    /// The points for the Point Cloud Library: `map.pcd`.
    Pcd,
    /// Points and cameras as a 3D model: `map.glb`.
    Glb,
    /// The path as KITTI's odometry benchmark has it: `trajectory.kitti`.
    Kitti,
}

impl MapFormat {
    /// Writes the file into `folder`, and says where.
    ///
    /// # Errors
    /// [`MapError::Write`].
    pub fn write(
        self,
        folder: &Path,
        points: &[MapPoint],
        trajectory: &Trajectory,
    ) -> Result<PathBuf, MapError> {
        let path = folder.join(match self {
            Self::Pcd => "map.pcd",
            Self::Glb => "map.glb",
            Self::Kitti => "trajectory.kitti",
        });
        match self {
            Self::Pcd => write_pcd(&path, points.iter().copied())?,
            Self::Glb => write_glb(&path, points, trajectory)?,
            Self::Kitti => trajectory.write_kitti(&path)?,
        }
        Ok(path)
    }
}

impl FromStr for MapFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pcd" => Ok(Self::Pcd),
            "glb" => Ok(Self::Glb),
            "kitti" => Ok(Self::Kitti),
            _ => Err(format!("unknown format {text:?}: pcd, glb or kitti")),
        }
    }
}
