//! The walk and the camera on it, as several programs ask for them.

use std::ops::RangeInclusive;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use nalgebra::Isometry3;

use crate::world::{Camera, Room, Style, Walk, WalkConfig};

#[derive(Debug, Clone, Args)]
pub struct WalkArguments {
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
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Carried {
    /// By a hand: height, pitch and roll change, and all shakes a little
    #[default]
    Handheld,
    /// By a robot: level, at one height
    Robot,
}

const FIELD_OF_VIEW: RangeInclusive<f64> = 1.0..=170.0;
const TURN: RangeInclusive<f64> = 0.0..=180.0;

impl WalkArguments {
    /// # Errors
    /// Angles that no camera and no walk has.
    pub fn check(&self) -> anyhow::Result<()> {
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
        Ok(())
    }

    pub fn camera(&self) -> Camera {
        Camera::from_field_of_view(self.width, self.height, self.fov.to_radians())
    }

    /// `room_from_camera`, endless.
    pub fn poses<'a>(
        &self,
        room: &'a Room,
        seed: u64,
    ) -> impl Iterator<Item = Isometry3<f64>> + use<'a> {
        let config = WalkConfig {
            seed,
            turn: self.turn.to_radians(),
            style: match self.style {
                Carried::Handheld => Style::HandHeld,
                Carried::Robot => Style::Robot,
            },
        };
        Walk::new(room, &config).step_by(self.stride as usize)
    }
}
