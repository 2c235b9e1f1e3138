//! Saved predictions, read back.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, ensure};
use nalgebra::Isometry3;
use ndarray::{Array1, Array2, Array3, ArrayView2, Axis};
use ndarray_npy::NpzReader;

use crate::camera::{NetworkSize, Stamp};
use crate::geometry::{Intrinsics, decode_pose, unproject};
use crate::map::evaluation::PointSample;
use crate::map::{PathFile, Trajectory};

pub struct Predictions {
    /// [n], nanoseconds; without them the frames are in the truth's order.
    stamps: Option<Array1<i64>>,
    /// [n]
    cameras: Vec<(Isometry3<f64>, Intrinsics)>,
    /// [n, H, W]
    depth: Array3<f32>,
    /// [n, H, W]
    confidence: Array3<f32>,
}

impl Predictions {
    /// Reads an archive that `run --save-predictions` wrote, all of whose numbers must be finite.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let mut archive = NpzReader::new(File::open(path)?)?;
        let pose_enc: Array2<f32> = archive.by_name("pose_enc").context("pose_enc")?;
        let depth: Array3<f32> = archive.by_name("depth").context("depth")?;
        let confidence: Array3<f32> = archive.by_name("depth_conf").context("depth_conf")?;
        let stamps: Option<Array1<i64>> = if archive.names()?.iter().any(|n| n == "stamp_ns") {
            Some(archive.by_name("stamp_ns").context("stamp_ns")?)
        } else {
            None
        };
        let (frames, height, width) = depth.dim();
        let stamp_count = stamps.as_ref().map_or(frames, Array1::len);
        ensure!(
            pose_enc.dim() == (frames, 9)
                && confidence.dim() == depth.dim()
                && stamp_count == frames,
            "its arrays do not belong together: pose_enc {:?}, depth {:?}, depth_conf {:?}, {stamp_count} stamps",
            pose_enc.dim(),
            depth.dim(),
            confidence.dim()
        );
        let size = NetworkSize::new(u32::try_from(height)?, u32::try_from(width)?)?;
        let frames = depth.axis_iter(Axis(0)).zip(confidence.axis_iter(Axis(0)));
        let cameras = pose_enc
            .rows()
            .into_iter()
            .zip(frames)
            .enumerate()
            .map(|(index, (pose, (depth, confidence)))| {
                ensure!(
                    depth.iter().all(|depth| depth.is_finite()),
                    "frame {index} has depth that is not finite"
                );
                ensure!(
                    confidence.iter().all(|confidence| !confidence.is_nan()),
                    "frame {index} has confidence that is not a number"
                );
                let mut encoding = [0.0; 9];
                encoding
                    .iter_mut()
                    .zip(&pose)
                    .for_each(|(to, from)| *to = *from);
                decode_pose(&encoding, size).with_context(|| format!("frame {index}"))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            stamps,
            cameras,
            depth,
            confidence,
        })
    }

    pub fn path(&self) -> PathFile {
        let poses = self.cameras.iter().map(|(pose, _)| *pose);
        let Some(stamps) = &self.stamps else {
            return PathFile::Ordered(poses.collect());
        };
        let mut trajectory = Trajectory::new();
        for (stamp, pose) in stamps.iter().zip(poses) {
            trajectory.push(Stamp(*stamp), pose);
        }
        PathFile::Timed(trajectory)
    }

    /// Of one frame [H, W].
    pub fn depth(&self, frame: usize) -> Option<ArrayView2<'_, f32>> {
        (frame < self.depth.len_of(Axis(0))).then(|| self.depth.index_axis(Axis(0), frame))
    }

    /// Offers the points in the world's frame that the map would be made of.
    pub fn sample_points(&self, conf_threshold: f32, sample: &mut PointSample) {
        let frames = self
            .depth
            .axis_iter(Axis(0))
            .zip(self.confidence.axis_iter(Axis(0)));
        for ((world_from_camera, intrinsics), (depth, confidence)) in
            self.cameras.iter().zip(frames)
        {
            for (((v, u), &depth), &confidence) in depth.indexed_iter().zip(&confidence) {
                if confidence >= conf_threshold && depth > 0.0 {
                    let point = unproject(u as f64, v as f64, f64::from(depth), intrinsics);
                    sample.push(world_from_camera * point);
                }
            }
        }
    }
}
