//! Raw predictions in a NumPy archive, gathered on disk so that memory does not grow with frames.

use std::fs::{File, Permissions};
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bytemuck::Pod;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::camera::Stamp;
use crate::stream::Prediction;

/// Writes `pose_enc` [n,9], `depth` and `depth_conf` [n,H,W], `frame_type` [n] (0 scale, 1 keyframe,
/// 2 other), `stamp_ns` [n] (the images' own, nanoseconds), `window` [n] (from 0 on) and, where the model has a point head, `world_points` [n,H,W,3] and `world_points_conf`
/// [n,H,W].
pub struct PredictionWriter {
    path: PathBuf,
    arrays: Vec<Spool>,
    frames: usize,
}

impl PredictionWriter {
    /// Begins an archive at `path`, which appears when [`PredictionWriter::finish`] has written it.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder(path)).context("cannot create the predictions' folder")?;
        Ok(Self {
            path: path.to_path_buf(),
            arrays: Vec::new(),
            frames: 0,
        })
    }

    pub fn push(&mut self, stamp: Stamp, prediction: &Prediction) -> anyhow::Result<()> {
        let shape = prediction.depth.shape().to_vec();
        self.write("pose_enc", &[9], &prediction.pose_enc)?;
        self.write("depth", &shape, &flat(prediction.depth.iter()))?;
        self.write("depth_conf", &shape, &flat(prediction.depth_conf.iter()))?;
        self.write("frame_type", &[], &[prediction.frame_type as u8])?;
        self.write("stamp_ns", &[], &[stamp.0])?;
        self.write("window", &[], &[prediction.window as i64])?;
        if let Some((points, confidence)) = &prediction.world_points {
            self.write("world_points", points.shape(), &flat(points.iter()))?;
            self.write(
                "world_points_conf",
                confidence.shape(),
                &flat(confidence.iter()),
            )?;
        }
        self.frames += 1;
        Ok(())
    }

    /// One frame's part of an array.
    fn write<T: Element>(
        &mut self,
        name: &'static str,
        shape: &[usize],
        values: &[T],
    ) -> anyhow::Result<()> {
        let spool = match self.arrays.iter_mut().position(|spool| spool.name == name) {
            Some(index) => &mut self.arrays[index],
            None => {
                let file = tempfile::tempfile_in(folder(&self.path))
                    .context("cannot create a temporary file")?;
                self.arrays.push(Spool {
                    name,
                    element: T::NAME,
                    shape: shape.to_vec(),
                    file: BufWriter::new(file),
                });
                let last = self.arrays.len() - 1;
                &mut self.arrays[last]
            }
        };
        anyhow::ensure!(
            spool.shape == shape,
            "predictions of {name} change their shape"
        );
        spool
            .file
            .write_all(bytemuck::cast_slice(values))
            .context("cannot keep predictions")
    }

    /// Writes the archive; what was at its path before is replaced at once.
    pub fn finish(self) -> anyhow::Result<()> {
        let Self {
            path,
            arrays,
            frames,
        } = self;
        write_archive(&path, arrays, frames)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

fn write_archive(path: &Path, arrays: Vec<Spool>, frames: usize) -> io::Result<()> {
    // A temporary file is private; this one is to be as readable as any other new file.
    let file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder(path))?;
    let mut archive = ZipWriter::new(BufWriter::new(file));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(true);
    for array in arrays {
        archive.start_file(format!("{}.npy", array.name), options)?;
        archive.write_all(&array.header(frames))?;
        let mut values = array.file.into_inner()?;
        values.rewind()?;
        io::copy(&mut BufReader::new(values), &mut archive)?;
    }
    let file = archive.finish()?.into_inner()?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn flat<'a>(values: impl Iterator<Item = &'a f32>) -> Vec<f32> {
    values.copied().collect()
}

/// A NumPy element type in the machine's byte order.
trait Element: Pod {
    const NAME: &'static str;
}

impl Element for f32 {
    const NAME: &'static str = if cfg!(target_endian = "little") {
        "<f4"
    } else {
        ">f4"
    };
}

impl Element for i64 {
    const NAME: &'static str = if cfg!(target_endian = "little") {
        "<i8"
    } else {
        ">i8"
    };
}

impl Element for u8 {
    const NAME: &'static str = "|u1";
}

/// An array that grows along its first axis.
struct Spool {
    name: &'static str,
    element: &'static str,
    /// Of one frame.
    shape: Vec<usize>,
    file: BufWriter<File>,
}

impl Spool {
    /// The header of the NPY format, version 1.0.
    fn header(&self, frames: usize) -> Vec<u8> {
        const PREAMBLE: usize = 10;
        const ALIGNMENT: usize = 64;
        let shape: String = std::iter::once(&frames)
            .chain(&self.shape)
            .map(|n| format!("{n}, "))
            .collect();
        let mut text = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}",
            self.element
        );
        let padded = (PREAMBLE + text.len() + 1).next_multiple_of(ALIGNMENT) - PREAMBLE;
        text.extend(std::iter::repeat_n(' ', padded - text.len() - 1));
        text.push('\n');
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend_from_slice(&(text.len() as u16).to_le_bytes());
        header.extend_from_slice(text.as_bytes());
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::FrameType;
    use nalgebra::Similarity3;
    use ndarray::{Array1, Array2, Array3, Array4};
    use ndarray_npy::NpzReader;

    fn prediction(index: u64, frame_type: FrameType) -> Prediction {
        let depth = Array2::from_shape_fn((2, 3), |(row, column)| {
            index as f32 + (row * 3 + column) as f32
        });
        Prediction {
            index,
            frame_type,
            pose_enc: [index as f32; 9],
            depth_conf: depth.mapv(|value| value + 100.0),
            world_points: Some((
                Array3::from_elem((2, 3, 3), 0.5),
                depth.mapv(|value| -value),
            )),
            depth,
            window: index as usize / 2,
            world_from_window: Similarity3::identity(),
            symptom: None,
        }
    }

    #[test]
    fn an_archive_holds_every_frame() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/predictions.npz");
        let mut writer = PredictionWriter::create(&path).unwrap();
        for (index, frame_type) in [FrameType::Scale, FrameType::Keyframe, FrameType::Other]
            .into_iter()
            .enumerate()
        {
            let stamp = Stamp(index as i64 * 100);
            writer
                .push(stamp, &prediction(index as u64, frame_type))
                .unwrap();
        }
        assert!(!path.exists());
        writer.finish().unwrap();
        let mut archive = NpzReader::new(File::open(&path).unwrap()).unwrap();
        let pose: Array2<f32> = archive.by_name("pose_enc").unwrap();
        assert_eq!((pose.dim(), pose[[2, 8]]), ((3, 9), 2.0));
        let depth: Array3<f32> = archive.by_name("depth").unwrap();
        assert_eq!((depth.dim(), depth[[1, 1, 2]]), ((3, 2, 3), 6.0));
        let confidence: Array3<f32> = archive.by_name("depth_conf").unwrap();
        assert_eq!(confidence, depth.mapv(|value| value + 100.0));
        let types: Array1<u8> = archive.by_name("frame_type").unwrap();
        assert_eq!(types.to_vec(), [0, 1, 2]);
        let stamps: Array1<i64> = archive.by_name("stamp_ns").unwrap();
        assert_eq!(stamps.to_vec(), [0, 100, 200]);
        let points: Array4<f32> = archive.by_name("world_points").unwrap();
        assert_eq!(points.dim(), (3, 2, 3, 3));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
        // What the umask leaves to others, a file made the usual way has too.
        let usual = folder.path().join("usual");
        File::create(&usual).unwrap();
        assert_eq!(
            mode,
            std::fs::metadata(&usual).unwrap().permissions().mode()
        );
        // The predictions alone: no temporary file is left.
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1
        );
    }

    #[test]
    fn frames_of_different_shape_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = PredictionWriter::create(&folder.path().join("p.npz")).unwrap();
        writer
            .push(Stamp(0), &prediction(0, FrameType::Scale))
            .unwrap();
        let mut other = prediction(1, FrameType::Scale);
        other.depth = Array2::zeros((3, 3));
        assert!(writer.push(Stamp(1), &other).is_err());
    }
}
