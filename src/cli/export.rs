//! `lingbot_map export`: a checkpoint becomes a model folder.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::arguments::ExportArguments;
use super::progress::ExportBar;
use crate::model::{input_size, open_checkpoint};
use crate::network::export::{self, ExportOptions};

#[derive(Debug, Args)]
pub struct Arguments {
    /// PyTorch checkpoint (.pt) or safetensors file
    #[arg(long, value_name = "FILE")]
    checkpoint: PathBuf,
    #[command(flatten)]
    export: ExportArguments,
    /// Folder to write the model to
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (checkpoint, config) =
        open_checkpoint(&arguments.checkpoint, arguments.export.config.as_deref())?;
    let wanted = &arguments.export;
    let options = ExportOptions {
        size: input_size(&config, wanted.size.get(), None)?,
        camera_num_iterations: wanted.camera_num_iterations.unwrap_or(config.cam_iters),
    };
    let mut bar = ExportBar::default();
    let result = export::export(
        &checkpoint,
        &config,
        &options,
        &arguments.output,
        &mut |progress| {
            bar.update(progress);
        },
    );
    bar.finish();
    let manifest =
        result.with_context(|| format!("cannot export {}", arguments.checkpoint.display()))?;
    let bytes = manifest.bytes();
    writeln!(
        std::io::stdout(),
        "exported {}x{} (height x width), {:.1} MB, to {}",
        options.size.height,
        options.size.width,
        bytes as f64 / 1e6,
        arguments.output.display()
    )?;
    Ok(())
}
