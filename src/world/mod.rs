//! A furnished room that is computed: pictures with exact depth and exact poses, for the demo, for tests, and for
//! training the demo's network.
//!
//! The room's frame: metres, z up, the floor at z = 0, x from -3 to 3, y from -2.5 to 2.5, the ceiling at z = 2.8.
//! Every place has colours of its own, and a point of a surface has the same colour from wherever it is seen.

mod camera;
mod faults;
mod furniture;
mod light;
mod noise;
mod paint;
mod painted_room;
mod path;
mod render;
mod room;
mod solid;
mod surface;
#[cfg(test)]
mod tests;
mod texture;
mod walk;

pub use camera::Camera;
pub use faults::{ClockJump, FaultConfig, FaultCounts, Faults};
pub use painted_room::PaintedRoom;
pub use render::{Image, render};
pub use room::Room;
pub use walk::{Style, Walk, WalkConfig};

/// Red, green and blue; 0 is black, 1 what a lit white surface shows.
type Colour = [f32; 3];
