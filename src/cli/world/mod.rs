//! `lingbot_map world`: walks through the computed room, with their truth.

mod files;
mod walk;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use nalgebra::Isometry3;

pub use self::files::{CAMERA, DEPTH_UNIT, Description, GrowingTruth, TRUTH};
use self::files::{Files, FolderFiles, NpyFiles};
pub use self::walk::WalkArguments;
use super::interrupt::Interrupt;
use super::progress;
use crate::world::{Camera, Image, PaintedRoom, Room, render};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Seed of the walk: the same seed gives the same walk
    #[arg(long, value_name = "SEED")]
    trajectory: u64,
    /// Frames of each walk
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    frames: u32,
    /// Folder to write to: empty, absent, or one that this command wrote, which it replaces
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    walk: WalkArguments,
    /// How many walks, with consecutive seeds; several need the format npy
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    walks: u32,
    /// What to write
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, ValueEnum)]
enum Format {
    /// rgb/NNNN.png, depth/NNNN.png (16 bit, millimetres), groundtruth.tum and camera.yaml
    #[default]
    Folder,
    /// rgb.npy, depth.npy (millimetres) and room_from_camera.npy, for training
    Npy,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    arguments.check()?;
    let interrupt = Interrupt::listen()?;
    let camera = arguments.walk.camera();
    let description = Description::new(&camera, arguments.trajectory);
    let output = &arguments.output;
    let frames = arguments.frames as usize;
    let total = arguments.total()?;
    files::begin(output)?;
    let mut files: Box<dyn Files> = match arguments.format {
        Format::Folder => Box::new(FolderFiles::create(output, &camera)?),
        Format::Npy => Box::new(NpyFiles::create(output, &camera, total)?),
    };
    let painted = PaintedRoom::new();
    let bar = progress::frames("rendering", total);
    for walk in 0..arguments.walks {
        let poses = arguments.poses(painted.room(), walk);
        let first = walk as usize * frames;
        render_walk(&painted, &camera, &poses, first, &*files, &interrupt, &bar)?;
        if interrupt.is_set() {
            bail!("stopped: {} is incomplete", output.display());
        }
        files.walk_done(&poses);
    }
    files.finish(description)?;
    bar.finish_and_clear();
    files::end(output)
}

impl Arguments {
    fn check(&self) -> anyhow::Result<()> {
        self.walk.check()?;
        ensure!(
            self.walks == 1 || self.format == Format::Npy,
            "a folder holds one walk: use --format npy for several"
        );
        Ok(())
    }

    /// Frames of all walks.
    fn total(&self) -> anyhow::Result<usize> {
        let total = u64::from(self.frames) * u64::from(self.walks);
        let total = u32::try_from(total).context("these are too many frames")?;
        Ok(total as usize)
    }

    fn poses(&self, room: &Room, walk: u32) -> Vec<Isometry3<f64>> {
        let seed = self.trajectory.wrapping_add(u64::from(walk));
        self.walk
            .poses(room, seed)
            .take(self.frames as usize)
            .collect()
    }
}

/// Renders on all cores; `first` is the index of the walk's first frame.
fn render_walk(
    painted: &PaintedRoom,
    camera: &Camera,
    poses: &[Isometry3<f64>],
    first: usize,
    files: &dyn Files,
    interrupt: &Interrupt,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<()> {
        let mut image = Image::default();
        while !interrupt.is_set() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(pose) = poses.get(index) else {
                break;
            };
            render(painted, camera, pose, &mut image);
            if let Err(error) = files.write(first + index, &image, pose) {
                // The others have nothing left to do.
                next.store(poses.len(), Ordering::Relaxed);
                return Err(error);
            }
            bar.inc(1);
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })
}
