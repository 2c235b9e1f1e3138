//! Plays a folder of images as a camera through ROS: arguments and start-up only.

use std::process::ExitCode;

use clap::Parser;
use lingbot_map::cli::describe;
use lingbot_map::player::ImagesArguments;

/// Plays a folder of images as a camera, waits until the mapping node has mapped them, saves the map and prints what the
/// node measured.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    player: ImagesArguments,
}

fn main() -> ExitCode {
    match Arguments::parse().player.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", describe(&error));
            ExitCode::FAILURE
        }
    }
}
