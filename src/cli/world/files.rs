//! What the command writes, in a way that shows whether it is complete.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use image::{ExtendedColorType, ImageFormat, save_buffer_with_format};
use nalgebra::Isometry3;
use ndarray_npy::{WritableElement, write_zeroed_npy};
use serde::{Deserialize, Serialize};

use crate::camera::Stamp;
use crate::geometry::{MatrixError, rigid_from_rows};
use crate::map::{Trajectory, write_atomically};
use crate::world::{Camera, Image};

/// Lies in the folder while it is being written.
const UNFINISHED: &str = ".lingbot_map_world_unfinished";
pub const CAMERA: &str = "camera.yaml";
pub const TRUTH: &str = "groundtruth.tum";
const PICTURES: [&str; 2] = ["rgb", "depth"];
const ARRAYS: [&str; 3] = ["rgb.npy", "depth.npy", "room_from_camera.npy"];
/// The depth images' unit, metres.
pub const DEPTH_UNIT: f64 = 0.001;
const PERIOD_NANOSECONDS: i64 = 100_000_000;

/// `camera.yaml`, the last file that is written.
#[derive(Debug, Serialize, Deserialize)]
pub struct Description {
    width: u32,
    height: u32,
    fx: f64,
    fy: f64,
    cx: f64,
    cy: f64,
    /// What a unit of the depth images is, metres.
    pub depth_unit: f64,
    /// Rows of the rigid transform; absent where poses are given in the room's frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    room_from_world: Option<[[f64; 4]; 3]>,
    seed: u64,
}

impl Description {
    pub fn new(camera: &Camera, seed: u64) -> Self {
        Self {
            width: camera.width,
            height: camera.height,
            fx: camera.fx,
            fy: camera.fy,
            cx: camera.cx,
            cy: camera.cy,
            depth_unit: DEPTH_UNIT,
            room_from_world: None,
            seed,
        }
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let text = serde_yaml::to_string(self)?;
        write_atomically(&folder.join(CAMERA), |out| out.write_all(text.as_bytes()))?;
        Ok(())
    }

    /// Of a folder that this command wrote; `None` for one without.
    pub fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = folder.join(CAMERA);
        let cannot = || format!("cannot read {}", path.display());
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(cannot)?,
        };
        let description: Self = serde_yaml::from_str(&text).with_context(cannot)?;
        ensure!(
            description.depth_unit.is_finite() && description.depth_unit > 0.0,
            "{}: a depth unit of {} m",
            path.display(),
            description.depth_unit
        );
        Ok(Some(description))
    }

    /// From the frame of the walk's first camera to the room's.
    pub fn room_from_world(&self) -> Result<Option<Isometry3<f64>>, MatrixError> {
        self.room_from_world
            .as_ref()
            .map(rigid_from_rows)
            .transpose()
    }

    fn is_in(folder: &Path) -> bool {
        fs::read_to_string(folder.join(CAMERA))
            .is_ok_and(|text| serde_yaml::from_str::<Self>(&text).is_ok())
    }
}

/// Takes `folder` into use: it must be empty or absent, or what an earlier run left, which is removed.
pub fn begin(folder: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write to {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let is_empty = fs::read_dir(folder).with_context(cannot)?.next().is_none();
    if !is_empty && !folder.join(UNFINISHED).exists() && !Description::is_in(folder) {
        bail!(
            "{} holds other files: name an empty folder, or one that this command wrote",
            folder.display()
        );
    }
    File::create(folder.join(UNFINISHED)).with_context(cannot)?;
    remove_earlier(folder).with_context(cannot)
}

fn remove_earlier(folder: &Path) -> io::Result<()> {
    let remove = |path: PathBuf| match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    for name in [CAMERA, TRUTH].iter().chain(&ARRAYS) {
        remove(folder.join(name))?;
    }
    for name in PICTURES {
        let pictures = match fs::read_dir(folder.join(name)) {
            Ok(pictures) => pictures,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in pictures {
            let path = entry?.path();
            if is_picture(&path) {
                remove(path)?;
            }
        }
        // Whatever else lies there stays.
        let _ = fs::remove_dir(folder.join(name));
    }
    Ok(())
}

fn is_picture(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_suffix(".png"));
    number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}

/// Declares `folder` complete.
pub fn end(folder: &Path) -> anyhow::Result<()> {
    fs::remove_file(folder.join(UNFINISHED))
        .with_context(|| format!("cannot write to {}", folder.display()))
}

/// Where frames go; several threads write them in any order.
pub trait Files: Sync {
    fn write(
        &self,
        index: usize,
        image: &Image,
        room_from_camera: &Isometry3<f64>,
    ) -> anyhow::Result<()>;

    /// All frames of a walk are written; `poses` are its `room_from_camera`.
    fn walk_done(&mut self, poses: &[Isometry3<f64>]);

    /// Writes what makes the folder complete.
    fn finish(&mut self, description: Description) -> anyhow::Result<()>;
}

fn millimetres(image: &Image) -> Vec<u16> {
    let depth = image.depth.iter();
    depth
        .map(|metres| (metres / DEPTH_UNIT as f32).round() as u16)
        .collect()
}

/// PNG files and a path in the frame of the walk's first camera.
pub struct FolderFiles {
    folder: PathBuf,
    size: (u32, u32),
    /// `room_from_camera`.
    poses: Vec<(Stamp, Isometry3<f64>)>,
}

impl FolderFiles {
    pub fn create(folder: &Path, camera: &Camera) -> anyhow::Result<Self> {
        for name in PICTURES {
            let pictures = folder.join(name);
            fs::create_dir_all(&pictures)
                .with_context(|| format!("cannot create {}", pictures.display()))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            size: (camera.width, camera.height),
            poses: Vec::new(),
        })
    }

    fn save(
        &self,
        kind: &str,
        index: usize,
        bytes: &[u8],
        colour: ExtendedColorType,
    ) -> anyhow::Result<()> {
        let path = self.folder.join(kind).join(format!("{index:04}.png"));
        let (width, height) = self.size;
        save_buffer_with_format(&path, bytes, width, height, colour, ImageFormat::Png)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Files for FolderFiles {
    fn write(&self, index: usize, image: &Image, _: &Isometry3<f64>) -> anyhow::Result<()> {
        let [rgb, depth] = PICTURES;
        self.save(rgb, index, &image.rgb, ExtendedColorType::Rgb8)?;
        let millimetres = millimetres(image);
        let bytes = bytemuck::cast_slice(&millimetres);
        self.save(depth, index, bytes, ExtendedColorType::L16)
    }

    fn walk_done(&mut self, poses: &[Isometry3<f64>]) {
        let stamps = (0..).map(|index| Stamp(index * PERIOD_NANOSECONDS));
        self.poses = stamps.zip(poses.iter().copied()).collect();
    }

    fn finish(&mut self, mut description: Description) -> anyhow::Result<()> {
        let Some((_, room_from_world)) = self.poses.first() else {
            bail!("a walk without poses");
        };
        let mut truth = Trajectory::new();
        for (stamp, room_from_camera) in &self.poses {
            truth.push(*stamp, room_from_world.inv_mul(room_from_camera));
        }
        truth.write_tum(self.folder.join(TRUTH))?;
        description.room_from_world = Some(rows(room_from_world));
        description.write(&self.folder)
    }
}

fn rows(pose: &Isometry3<f64>) -> [[f64; 4]; 3] {
    let matrix = pose.to_homogeneous();
    std::array::from_fn(|row| std::array::from_fn(|column| matrix[(row, column)]))
}

/// A folder of truth that gets its frames one by one, at the times that a camera sends them.
pub struct GrowingTruth {
    files: FolderFiles,
    description: Description,
}

impl GrowingTruth {
    /// # Errors
    /// An output folder in use, and those of creating folders.
    pub fn begin(folder: &Path, camera: &Camera, seed: u64) -> anyhow::Result<Self> {
        begin(folder)?;
        Ok(Self {
            files: FolderFiles::create(folder, camera)?,
            description: Description::new(camera, seed),
        })
    }

    pub fn push(
        &mut self,
        stamp: Stamp,
        image: &Image,
        room_from_camera: &Isometry3<f64>,
    ) -> anyhow::Result<()> {
        let index = self.files.poses.len();
        self.files.write(index, image, room_from_camera)?;
        self.files.poses.push((stamp, *room_from_camera));
        Ok(())
    }

    /// Writes path and camera, which makes the folder complete. Needs a frame at least.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.files.finish(self.description)?;
        end(&self.files.folder)
    }
}

/// NumPy arrays with one entry a frame: `rgb.npy` [n,H,W,3] of u8, `depth.npy` [n,H,W] of u16 (millimetres),
/// `room_from_camera.npy` [n,3,4] of f32.
pub struct NpyFiles {
    folder: PathBuf,
    rgb: NpyFile,
    depth: NpyFile,
    poses: NpyFile,
}

impl NpyFiles {
    pub fn create(folder: &Path, camera: &Camera, frames: usize) -> anyhow::Result<Self> {
        let (height, width) = (camera.height as usize, camera.width as usize);
        let [rgb, depth, poses] = ARRAYS.map(|name| folder.join(name));
        Ok(Self {
            folder: folder.to_owned(),
            rgb: NpyFile::create::<u8>(rgb, &[frames, height, width, 3])?,
            depth: NpyFile::create::<u16>(depth, &[frames, height, width])?,
            poses: NpyFile::create::<f32>(poses, &[frames, 3, 4])?,
        })
    }
}

impl Files for NpyFiles {
    fn write(
        &self,
        index: usize,
        image: &Image,
        room_from_camera: &Isometry3<f64>,
    ) -> anyhow::Result<()> {
        let pose: [[f32; 4]; 3] = rows(room_from_camera).map(|row| row.map(|x| x as f32));
        self.rgb.write(index, &image.rgb)?;
        let millimetres = millimetres(image);
        self.depth
            .write(index, bytemuck::cast_slice(&millimetres))?;
        self.poses.write(index, bytemuck::bytes_of(&pose))
    }

    fn walk_done(&mut self, _: &[Isometry3<f64>]) {}

    fn finish(&mut self, description: Description) -> anyhow::Result<()> {
        for file in [&self.rgb, &self.depth, &self.poses] {
            file.sync()?;
        }
        description.write(&self.folder)
    }
}

/// An array on the disk whose entries along the first axis are written in any order.
struct NpyFile {
    path: PathBuf,
    file: File,
    header_bytes: u64,
    entry_bytes: u64,
}

impl NpyFile {
    fn create<T: WritableElement>(path: PathBuf, shape: &[usize]) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write {}", path.display());
        let file = File::create(&path).with_context(cannot)?;
        let element = size_of::<T>() as u64;
        let entry_bytes = shape.iter().skip(1).map(|n| *n as u64).product::<u64>() * element;
        write_zeroed_npy::<T, _>(&file, shape).with_context(cannot)?;
        let length = file.metadata().with_context(cannot)?.len();
        let frames = shape.first().map_or(0, |n| *n as u64);
        Ok(Self {
            header_bytes: length.saturating_sub(frames * entry_bytes),
            entry_bytes,
            file,
            path,
        })
    }

    fn write(&self, index: usize, bytes: &[u8]) -> anyhow::Result<()> {
        let offset = self.header_bytes + index as u64 * self.entry_bytes;
        self.file
            .write_all_at(bytes, offset)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn sync(&self) -> anyhow::Result<()> {
        self.file
            .sync_all()
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}
