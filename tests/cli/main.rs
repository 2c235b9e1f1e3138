//! The command-line tool as its users run it.

mod demo;
mod evaluate;
mod export;
mod faults;
mod golden;
mod memory;
mod model_files;
mod profile;
mod tool;
mod world;
