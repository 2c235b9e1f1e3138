//! `lingbot_map world`: walks through the computed room, with their truth.

mod files;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use nalgebra::Isometry3;

pub use self::files::{CAMERA, DEPTH_UNIT, Description, TRUTH};
use self::files::{Files, FolderFiles, NpyFiles};
use super::interrupt::Interrupt;
use super::progress;
use crate::world::{Camera, Image, Room, Style, Walk, WalkConfig, render};

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
    /// Columns of the pictures, pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 112, value_parser = clap::value_parser!(u32).range(1..=8192))]
    width: u32,
    /// Rows of the pictures, pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 84, value_parser = clap::value_parser!(u32).range(1..=8192))]
    height: u32,
    /// Horizontal field of view, degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 75.0)]
    fov: f64,
    /// How far the heading turns from that of the first frame to either side, degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 150.0)]
    turn: f64,
    /// How the camera is carried
    #[arg(long, value_enum, default_value_t)]
    style: Carried,
    /// Keep every K-th pose of the walk only
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    stride: u32,
    /// How many walks, with consecutive seeds; several need the format npy
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    walks: u32,
    /// What to write
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Carried {
    /// By a hand: height, pitch and roll change, and all shakes a little
    #[default]
    Handheld,
    /// By a robot: level, at one height
    Robot,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, ValueEnum)]
enum Format {
    /// rgb/NNNN.png, depth/NNNN.png (16 bit, millimetres), groundtruth.tum and camera.yaml
    #[default]
    Folder,
    /// rgb.npy, depth.npy (millimetres) and room_from_camera.npy, for training
    Npy,
}

const FIELD_OF_VIEW: RangeInclusive<f64> = 1.0..=170.0;
const TURN: RangeInclusive<f64> = 0.0..=180.0;

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    arguments.check()?;
    let interrupt = Interrupt::listen()?;
    let camera = Camera::from_field_of_view(
        arguments.width,
        arguments.height,
        arguments.fov.to_radians(),
    );
    let description = Description::new(&camera, arguments.trajectory);
    let output = &arguments.output;
    let frames = arguments.frames as usize;
    let total = arguments.total()?;
    files::begin(output)?;
    let mut files: Box<dyn Files> = match arguments.format {
        Format::Folder => Box::new(FolderFiles::create(output, &camera)?),
        Format::Npy => Box::new(NpyFiles::create(output, &camera, total)?),
    };
    let room = Room::new();
    let bar = progress::frames("rendering", total);
    for walk in 0..arguments.walks {
        let poses = arguments.poses(&room, walk);
        let first = walk as usize * frames;
        render_walk(&room, &camera, &poses, first, &*files, &interrupt, &bar)?;
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
        ensure!(
            FIELD_OF_VIEW.contains(&self.fov),
            "a field of view of {} degrees is not between 1 and 170",
            self.fov
        );
        ensure!(
            TURN.contains(&self.turn),
            "a turn of {} degrees is not between 0 and 180",
            self.turn
        );
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
        let config = WalkConfig {
            seed: self.trajectory.wrapping_add(u64::from(walk)),
            turn: self.turn.to_radians(),
            style: match self.style {
                Carried::Handheld => Style::HandHeld,
                Carried::Robot => Style::Robot,
            },
        };
        Walk::new(room, &config)
            .step_by(self.stride as usize)
            .take(self.frames as usize)
            .collect()
    }
}

/// Renders on all cores; `first` is the index of the walk's first frame.
fn render_walk(
    room: &Room,
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
            render(room, camera, pose, &mut image);
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
