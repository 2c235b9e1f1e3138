//! The network in ONNX Runtime against the reference implementation's results in tests/golden.

mod cache;
mod collapse;
mod common;
mod demo;
mod golden;
mod intermediates;
mod keyframes;
mod memory;
mod windows;
