//! Arguments that several subcommands take.

use std::path::PathBuf;

use clap::Args;

/// Height and width of the network's input.
#[derive(Debug, Clone, Args)]
pub struct SizeArguments {
    /// Rows of the network's input, pixels; a multiple of 14
    #[arg(long, value_name = "PIXELS", requires = "width")]
    height: Option<u32>,
    /// Columns of the network's input, pixels; a multiple of 14
    #[arg(long, value_name = "PIXELS", requires = "height")]
    width: Option<u32>,
}

impl SizeArguments {
    pub fn get(&self) -> Option<(u32, u32)> {
        self.height.zip(self.width)
    }
}

/// A checkpoint and what describes it.
#[derive(Debug, Clone, Args)]
pub struct ExportArguments {
    /// Network configuration; without it the checkpoint's sizes are inferred, or config.json beside
    /// it is read
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub size: SizeArguments,
    /// Refinement iterations of the camera head [default: the network's own, 4]
    #[arg(long, value_name = "N")]
    pub camera_num_iterations: Option<usize>,
}

/// A finite number from 0 on.
pub fn not_negative(text: &str) -> Result<f32, String> {
    let value = text.parse::<f32>().ok();
    value
        .filter(|value| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| "a number from 0 on is needed".to_owned())
}
