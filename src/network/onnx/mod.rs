//! A small writer of ONNX models: just the messages, operators and element types that GCTStream needs.
//!
//! [`GraphBuilder`] collects nodes in execution order, [`WeightFile`] takes the large initializers, so that a model of
//! several gigabytes is written while only one tensor is in memory.

mod builder;
mod operators;
pub mod proto;
mod weights;

pub use builder::{Attribute, Dim, ElementType, GraphBuilder, Value};
pub use operators::ConvShape;
pub use weights::WeightFile;
