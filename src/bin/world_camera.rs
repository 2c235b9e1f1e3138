//! A walk through the computed room as a camera on a ROS topic: arguments and start-up only.

use std::process::ExitCode;

use clap::Parser;
use lingbot_map::cli::describe;
use lingbot_map::player::WorldArguments;

/// Walks through a computed room and publishes what a camera sees, with its calibration and the truth. Waits for whoever
/// listens. ROS arguments follow after --ros-args.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    player: WorldArguments,
}

fn main() -> ExitCode {
    env_logger::init();
    // What stands after --ros-args is for ROS, which reads the command line itself.
    let given = std::env::args().take_while(|argument| argument != "--ros-args");
    match Arguments::parse_from(given).player.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", describe(&error));
            ExitCode::FAILURE
        }
    }
}
