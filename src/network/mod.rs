//! The GCTStream network: its sizes, its weights and its graph.

pub mod checkpoint;
pub mod config;
pub mod dpt_head;
pub mod export;
pub mod grid;
pub mod inputs;
pub mod manifest;
pub mod onnx;
pub mod rope;

mod aggregator;
mod camera_head;
mod encoder;
mod layers;
mod position;
