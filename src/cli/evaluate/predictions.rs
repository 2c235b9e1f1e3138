//! Saved predictions, read back.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, ensure};
use nalgebra::Isometry3;
use ndarray::{Array, Array1, Array2, Array3, ArrayView, ArrayView2, Axis, Dimension};
use ndarray_npy::{ViewElement, ViewNpyExt};
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use crate::camera::{NetworkSize, Stamp};
use crate::geometry::{Intrinsics, decode_pose, unproject};
use crate::map::evaluation::PointSample;
use crate::map::{PathFile, Trajectory};

/// What a network predicted for each frame of a walk.
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
    /// Reads an archive that `run --save-predictions` wrote, all of whose numbers must be finite. It takes memory for twice
    /// the file's bytes at most.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let mut archive = Archive::open(path)?;
        let pose_enc: Array2<f32> = archive.needed("pose_enc")?;
        let depth: Array3<f32> = archive.needed("depth")?;
        let confidence: Array3<f32> = archive.needed("depth_conf")?;
        let stamps: Option<Array1<i64>> = archive.array("stamp_ns")?;
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

    /// The camera's path.
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

/// A NumPy archive whose arrays lie in it uncompressed, so that none can be larger than the file.
struct Archive {
    zip: ZipArchive<BufReader<File>>,
    bytes: u64,
}

impl Archive {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path)?;
        Ok(Self {
            bytes: file.metadata()?.len(),
            zip: ZipArchive::new(BufReader::new(file))?,
        })
    }

    fn needed<T: ViewElement + Clone, D: Dimension>(
        &mut self,
        name: &str,
    ) -> anyhow::Result<Array<T, D>> {
        self.array(name)?
            .with_context(|| format!("it has no array {name}"))
    }

    /// `None` where there is no array of this name.
    fn array<T: ViewElement + Clone, D: Dimension>(
        &mut self,
        name: &str,
    ) -> anyhow::Result<Option<Array<T, D>>> {
        let entry = match self.zip.by_name(&format!("{name}.npy")) {
            Err(ZipError::FileNotFound) => return Ok(None),
            entry => entry.with_context(|| name.to_owned())?,
        };
        ensure!(
            entry.compression() == CompressionMethod::Stored && entry.size() <= self.bytes,
            "array {name} is compressed: save it without compression"
        );
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(entry.size() as usize)?;
        entry.take(self.bytes).read_to_end(&mut bytes)?;
        // A view is made only of the bytes that are there, whatever shape the header states.
        let view = ArrayView::<T, D>::view_npy(&bytes).with_context(|| name.to_owned())?;
        Ok(Some(view.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write};
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    fn refusal(method: CompressionMethod, shape: &str) -> String {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file("pose_enc.npy", options).unwrap();
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        zip.write_all(b"\x93NUMPY\x01\x00\x76\x00").unwrap();
        zip.write_all(format!("{header:<117}\n").as_bytes())
            .unwrap();
        let bytes = zip.finish().unwrap().into_inner();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        format!("{:#}", Predictions::read(file.path()).err().unwrap())
    }

    /// Either would take more memory than there is, if it were believed.
    #[test]
    fn bombs_are_refused() {
        let said = refusal(CompressionMethod::Stored, "(99999999999, 9)");
        assert!(said.contains("pose_enc"), "{said}");
        let said = refusal(CompressionMethod::Deflated, "(0, 9)");
        assert!(said.contains("without compression"), "{said}");
    }
}
