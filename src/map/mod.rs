//! From predictions to a map: coloured points, the voxel map that fuses them, the trajectory, their files, and
//! the comparison with a known truth.
//!
//! The world's axes are those of the network: x to the right, y down, z forward of the first camera. Lengths are in
//! the network's unit, which is the metre only where a scale source says so.

mod cloud;
pub mod evaluation;
mod file;
mod filter;
mod format;
mod glb;
mod pcd;
mod ply;
mod point;
mod preview;
mod scale;
mod trajectory;
mod voxel;

pub use cloud::{GridView, POINT_BYTES, write_grid, write_points};
pub use file::{MapError, write_atomically, write_png};
pub use filter::PointFilter;
pub use format::MapFormat;
pub use glb::write_glb;
pub use pcd::write_pcd;
pub use ply::{read_ply, write_ply};
pub use point::{FrameView, MapPoint, points_of_frame};
pub use preview::{PreviewSize, write_preview};
pub use scale::{Scale, ScaleKeeper, ScaleSource};
pub use trajectory::{PathFile, Trajectory};
pub use voxel::{VoxelMap, VoxelMapConfig};
