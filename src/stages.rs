//! Where the time of a frame goes.

use std::ops::{Add, Sub};
use std::time::{Duration, Instant};

/// A part of a frame's way into the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading and decoding the picture.
    Decode,
    /// Rectifying, cropping and resizing it to the network's input.
    Prepare,
    /// Growing the caches and moving rows within them.
    Cache,
    /// The step graph: encoder, aggregator and camera head.
    Step,
    DepthHead,
    PointHead,
    /// Filtering a prediction's pixels and placing them in the world.
    Points,
    /// Taking points into the map.
    Fusion,
}

impl Stage {
    /// In the order of a frame's way.
    pub const ALL: [Self; 8] = [
        Self::Decode,
        Self::Prepare,
        Self::Cache,
        Self::Step,
        Self::DepthHead,
        Self::PointHead,
        Self::Points,
        Self::Fusion,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Prepare => "prepare",
            Self::Cache => "cache",
            Self::Step => "step",
            Self::DepthHead => "depth_head",
            Self::PointHead => "point_head",
            Self::Points => "points",
            Self::Fusion => "fusion",
        }
    }
}

/// Time spent in each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes([Duration; Stage::ALL.len()]);

impl StageTimes {
    pub fn of(&self, stage: Stage) -> Duration {
        self.0[stage as usize]
    }

    /// All stages together.
    pub fn total(&self) -> Duration {
        self.0.iter().sum()
    }

    /// Adds the time since `start`.
    pub fn add_since(&mut self, stage: Stage, start: Instant) {
        self.0[stage as usize] += start.elapsed();
    }
}

impl Add for StageTimes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|stage| self.0[stage] + other.0[stage]))
    }
}

impl Sub for StageTimes {
    type Output = Self;

    /// What was spent after an earlier state, stage by stage.
    fn sub(self, earlier: Self) -> Self {
        Self(std::array::from_fn(|stage| {
            self.0[stage].saturating_sub(earlier.0[stage])
        }))
    }
}
