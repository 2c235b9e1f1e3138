//! The command-line tool: one file for each subcommand.

mod arguments;
mod evaluate;
mod export;
mod info;
pub(crate) mod interrupt;
mod map_arguments;
mod memory_benchmark;
mod plan;
mod predictions;
mod profile;
pub(crate) mod progress;
mod random_model;
mod run;
mod stream_arguments;
mod timings;
pub mod world;

use clap::{ArgAction, Parser, Subcommand};
use log::LevelFilter;

/// Live dense 3D maps from a single camera.
#[derive(Debug, Parser)]
#[command(name = "lingbot_map", version)]
pub struct Cli {
    /// Say more: -v for details, -vv for everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a model that ONNX Runtime can run from a checkpoint
    Export(export::Arguments),
    /// Map a folder of images
    Run(Box<run::Arguments>),
    /// Compare a result with the truth
    Evaluate(evaluate::Arguments),
    /// Walk through a computed room: pictures, depth and poses
    World(world::Arguments),
    /// Say where every byte of a stream goes, without running it
    Plan(Box<plan::Arguments>),
    /// Measure the memory of a stream of any size, with random weights
    MemoryBenchmark(Box<memory_benchmark::Arguments>),
    /// Measure where the time of each frame goes, over a run
    Profile(Box<profile::Arguments>),
    /// Show versions, the ONNX Runtime library, usable providers and what a model is
    Info(info::Arguments),
}

impl Cli {
    pub fn log_level(&self) -> LevelFilter {
        match self.verbose {
            0 => LevelFilter::Info,
            1 => LevelFilter::Debug,
            _ => LevelFilter::Trace,
        }
    }

    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Export(arguments) => export::run(&arguments),
            Command::Run(arguments) => run::run(&arguments),
            Command::Evaluate(arguments) => evaluate::run(&arguments),
            Command::World(arguments) => world::run(&arguments),
            Command::Plan(arguments) => plan::run(&arguments),
            Command::MemoryBenchmark(arguments) => memory_benchmark::run(&arguments),
            Command::Profile(arguments) => profile::run(&arguments),
            Command::Info(arguments) => info::run(&arguments),
        }
    }
}

/// An error with its causes, leaving out those whose text the message already has.
pub fn describe(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .fold(String::new(), |text, cause| {
            if text.is_empty() {
                cause
            } else if text.contains(&cause) {
                text
            } else {
                format!("{text}: {cause}")
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn causes_are_told_once() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let error = Err::<(), _>(missing).context("cannot open: entity not found");
        assert_eq!(
            describe(&error.unwrap_err()),
            "cannot open: entity not found"
        );
        let error = anyhow::anyhow!("no space").context("cannot save");
        assert_eq!(describe(&error), "cannot save: no space");
    }
}
