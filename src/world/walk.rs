//! Paths through the room, as a hand or a robot would carry the camera.

use std::f64::consts::{PI, TAU};

use nalgebra::{Isometry3, Matrix3, Point2, Rotation3, Translation3, UnitQuaternion, Vector3};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::path::Path;
use super::room::Room;

/// Bounds of a step along the path, metres a frame; jitter and the change of height come on top.
const STEP: [f64; 2] = [0.04, 0.105];
/// Bounds of the height, metres.
const HEIGHT: [f64; 2] = [1.1, 1.7];
const ROBOT_HEIGHT: f64 = 1.2;
/// A robot's camera looks down a little, radians.
const ROBOT_PITCH: f64 = -0.1;
/// Fastest change of the heading, radians a frame.
const FASTEST_TURN: f64 = 5.5 * PI / 180.0;
const MAX_PITCH: f64 = 14.0 * PI / 180.0;
const MAX_ROLL: f64 = 4.5 * PI / 180.0;
/// Jitter of a hand: metres and radians.
const SHAKE: f64 = 0.003;
const SHAKE_ANGLE: f64 = 0.2 * PI / 180.0;

/// How the camera is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// By a hand: height, pitch and roll change, and all of it shakes a little.
    #[default]
    HandHeld,
    /// By a robot: height and pitch stay, there is no roll.
    Robot,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WalkConfig {
    pub seed: u64,
    /// How far the heading may turn from that of the first frame to either side, radians, at most π.
    pub turn: f64,
    pub style: Style,
}

/// Endless poses (`room_from_camera`) along a smooth path that keeps 0.4 m from everything: 3 to 12 cm a frame, headings
/// that change by up to 6° a frame, heights from 1.1 to 1.7 m, pitches within 15° and rolls within 5°.
pub struct Walk<'a> {
    style: Style,
    path: Path<'a>,
    speed: Wander,
    height: Wander,
    pitch: Wander,
    roll: Wander,
    shake: [Wander; 4],
    heading: Heading,
    frame: f64,
}

impl<'a> Walk<'a> {
    pub fn new(room: &'a Room, config: &WalkConfig) -> Self {
        let mut rng = Pcg32::seed_from_u64(config.seed);
        let shake = || [4.0, 11.0];
        Self {
            style: config.style,
            speed: Wander::new(&mut rng, [20.0, 90.0]),
            height: Wander::new(&mut rng, [110.0, 260.0]),
            pitch: Wander::new(&mut rng, [50.0, 160.0]),
            roll: Wander::new(&mut rng, [30.0, 120.0]),
            shake: std::array::from_fn(|_| Wander::new(&mut rng, shake())),
            heading: Heading::new(&mut rng, config.turn),
            path: Path::new(room, &mut rng),
            frame: 0.0,
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Isometry3<f64>;

    fn next(&mut self) -> Option<Self::Item> {
        let frame = self.frame;
        if frame > 0.0 {
            let share = 0.5 + 0.5 * self.speed.at(frame);
            self.path.advance(STEP[0] + share * (STEP[1] - STEP[0]));
            self.heading.advance();
        }
        self.frame += 1.0;
        let place = self.path.position();
        let heading = self.heading.now();
        Some(match self.style {
            Style::Robot => pose(place, ROBOT_HEIGHT, heading, ROBOT_PITCH, 0.0),
            Style::HandHeld => {
                let [x, y, z, angle] = self.shake.each_ref().map(|shake| shake.at(frame));
                let middle = (HEIGHT[0] + HEIGHT[1]) / 2.0;
                let reach = (HEIGHT[1] - HEIGHT[0]) / 2.0 - SHAKE;
                pose(
                    Point2::new(place.x + SHAKE * x, place.y + SHAKE * y),
                    middle + reach * self.height.at(frame) + SHAKE * z,
                    heading,
                    MAX_PITCH * self.pitch.at(frame) + SHAKE_ANGLE * x,
                    MAX_ROLL * self.roll.at(frame) + SHAKE_ANGLE * angle,
                )
            }
        })
    }
}

/// The heading is the direction of the optical axis from the room's x axis towards y, the pitch is up, the roll is
/// clockwise as the camera sees it.
fn pose(place: Point2<f64>, height: f64, heading: f64, pitch: f64, roll: f64) -> Isometry3<f64> {
    // Optical axes of a level camera that looks along x: right is -y, down is -z.
    let level = Rotation3::from_matrix_unchecked(Matrix3::new(
        0.0, 0.0, 1.0, //
        -1.0, 0.0, 0.0, //
        0.0, -1.0, 0.0,
    ));
    let turn = Rotation3::from_axis_angle(&Vector3::z_axis(), heading);
    let tilt = Rotation3::from_axis_angle(&Vector3::x_axis(), pitch);
    let roll = Rotation3::from_axis_angle(&Vector3::z_axis(), roll);
    let rotation = UnitQuaternion::from_rotation_matrix(&(turn * level * tilt * roll));
    Isometry3::from_parts(Translation3::new(place.x, place.y, height), rotation)
}

/// A number between `from` and `to`.
pub(super) fn uniform(rng: &mut Pcg32, from: f64, to: f64) -> f64 {
    let unit = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    from + (to - from) * unit
}

/// A smooth signal between -1 and 1: a sum of three waves.
struct Wander {
    /// Frequency in radians a frame, phase.
    waves: [(f64, f64); 3],
}

impl Wander {
    /// Periods are drawn from `periods`, frames.
    fn new(rng: &mut Pcg32, periods: [f64; 2]) -> Self {
        let waves = std::array::from_fn(|_| {
            let period = uniform(rng, periods[0], periods[1]);
            (TAU / period, uniform(rng, 0.0, TAU))
        });
        Self { waves }
    }

    fn at(&self, frame: f64) -> f64 {
        let wave = |(frequency, phase): &(f64, f64)| (frequency * frame + phase).sin();
        let sum: f64 = self.waves.iter().map(wave).sum();
        // Three waves seldom agree: most of the range is used, the rest is bent to it.
        (0.75 * sum).tanh()
    }
}

/// Turns from one random heading to the next, starting and ending each turn gently.
struct Heading {
    rng: Pcg32,
    first: f64,
    limit: f64,
    from: f64,
    to: f64,
    frame: f64,
    frames: f64,
}

impl Heading {
    fn new(rng: &mut Pcg32, limit: f64) -> Self {
        let mut heading = Self {
            first: uniform(rng, -PI, PI),
            rng: Pcg32::seed_from_u64(rng.next_u64()),
            limit,
            from: 0.0,
            to: 0.0,
            frame: 0.0,
            frames: 0.0,
        };
        heading.choose();
        heading
    }

    /// The next heading to turn to, away from here by some part of the range.
    fn choose(&mut self) {
        self.from = self.to;
        for _ in 0..8 {
            self.to = uniform(&mut self.rng, -self.limit, self.limit);
            if (self.to - self.from).abs() > 0.3 * self.limit {
                break;
            }
        }
        let fastest = FASTEST_TURN * uniform(&mut self.rng, 0.4, 1.0);
        // The steepest slope of the ease is 3/2.
        let needed = 1.5 * (self.to - self.from).abs() / fastest;
        self.frames = needed.max(10.0).ceil();
        self.frame = 0.0;
    }

    fn advance(&mut self) {
        self.frame += 1.0;
        if self.frame > self.frames {
            self.choose();
            self.frame = 1.0;
        }
    }

    fn now(&self) -> f64 {
        let t = self.frame / self.frames;
        let eased = t * t * (3.0 - 2.0 * t);
        self.first + self.from + (self.to - self.from) * eased
    }
}

#[cfg(test)]
mod tests;
