//! The ROS 2 node's executable: arguments and start-up only.

use std::process::ExitCode;

use clap::Parser;
use lingbot_map::cli::describe;
use lingbot_map::node;
use lingbot_map::runtime::forbid_telemetry;

/// Turns a camera topic into a live dense 3D map. ROS arguments follow after --ros-args.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Print config/mapping.yaml and end.
    #[arg(long)]
    parameters_yaml: bool,
    /// Print docs/parameters.md and end.
    #[arg(long)]
    parameters_markdown: bool,
}

fn main() -> ExitCode {
    forbid_telemetry();
    // What stands after --ros-args is for ROS, which reads the command line itself.
    let arguments =
        Arguments::parse_from(std::env::args().take_while(|argument| argument != "--ros-args"));
    if arguments.parameters_yaml {
        print!("{}", node::parameters::as_yaml());
        return ExitCode::SUCCESS;
    }
    if arguments.parameters_markdown {
        print!("{}", node::parameters::as_markdown());
        return ExitCode::SUCCESS;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(node::run());
    // Service futures never end by themselves.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", describe(&error));
            ExitCode::FAILURE
        }
    }
}
