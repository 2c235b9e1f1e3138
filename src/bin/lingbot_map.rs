use std::process::ExitCode;

use clap::Parser;
use lingbot_map::cli::{Cli, describe};
use lingbot_map::runtime::forbid_telemetry;

fn main() -> ExitCode {
    forbid_telemetry();
    let cli = Cli::parse();
    env_logger::Builder::new()
        .filter_level(cli.log_level())
        .parse_default_env()
        .init();
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", describe(&error));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
