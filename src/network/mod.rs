//! The GCTStream network: its sizes, its weights and its graph.

pub mod checkpoint;
pub mod config;
