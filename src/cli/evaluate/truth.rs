//! The truth that a result is compared with.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use nalgebra::Isometry3;
use ndarray::Array2;

use crate::camera::ImageFolder;
use crate::cli::world::{CAMERA, DEPTH_UNIT, Description, TRUTH};
use crate::map::PathFile;

pub struct Truth {
    /// TUM or KITTI.
    path_file: PathBuf,
    depth_folder: Option<PathBuf>,
    /// Metres.
    depth_unit: f64,
    /// Where in the computed room the path's world is.
    pub room_from_world: Option<Isometry3<f64>>,
}

impl Truth {
    /// A folder, or a path's file alone.
    pub fn open(place: &Path) -> anyhow::Result<Self> {
        if place.is_file() {
            return Ok(Self {
                path_file: place.to_owned(),
                depth_folder: None,
                depth_unit: DEPTH_UNIT,
                room_from_world: None,
            });
        }
        let description = Description::read(place)?;
        let room_from_world = match &description {
            Some(description) => description
                .room_from_world()
                .with_context(|| place.join(CAMERA).display().to_string())?,
            None => None,
        };
        let depth_folder = place.join("depth");
        Ok(Self {
            path_file: place.join(TRUTH),
            depth_folder: depth_folder.is_dir().then_some(depth_folder),
            depth_unit: description.map_or(DEPTH_UNIT, |description| description.depth_unit),
            room_from_world,
        })
    }

    pub fn path(&self) -> anyhow::Result<PathFile> {
        Ok(PathFile::read(&self.path_file)?)
    }

    /// One for each pose, in order; `None` where there are none.
    pub fn depth_images(&self) -> anyhow::Result<Option<Vec<PathBuf>>> {
        let Some(folder) = &self.depth_folder else {
            return Ok(None);
        };
        let images = ImageFolder::open(folder)?.paths().to_vec();
        let poses = self.path()?.len();
        ensure!(
            images.len() == poses,
            "{} holds {} images, but {} has {poses} poses",
            folder.display(),
            images.len(),
            self.path_file.display()
        );
        Ok(Some(images))
    }

    /// Depth in metres; zero where it is not known.
    pub fn read_depth(&self, path: &Path) -> anyhow::Result<Array2<f32>> {
        let image = image::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let image::DynamicImage::ImageLuma16(image) = image else {
            bail!("{} is not a 16-bit grey image", path.display());
        };
        let (width, height) = image.dimensions();
        let metres = image
            .into_raw()
            .into_iter()
            .map(|value| (f64::from(value) * self.depth_unit) as f32);
        Ok(Array2::from_shape_vec(
            (height as usize, width as usize),
            metres.collect(),
        )?)
    }
}
