//! Live dense mapping from a single camera with GCTStream (LingBot-Map) on ONNX Runtime.

pub mod camera;
pub mod cli;
pub mod geometry;
pub mod map;
pub mod mapper;
pub mod model;
pub mod network;
#[cfg(feature = "ros")]
pub mod node;
#[cfg(feature = "ros")]
pub mod player;
pub mod plot;
mod process;
pub mod runtime;
pub mod stages;
pub mod stream;
pub mod world;
