//! `lingbot_map info`: what is installed and what a model is.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use crate::model::default_cache;
use crate::network::manifest::{FORMAT, Manifest};
use crate::runtime::{Library, Provider};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Folder of an exported model to check and describe
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// The ONNX Runtime shared library [default: searched for]
    #[arg(long, value_name = "FILE")]
    onnxruntime: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The manifest of a model whose files are those that were exported.
fn read_model(folder: &Path) -> anyhow::Result<Manifest> {
    let manifest = Manifest::read(folder).context("cannot read the model")?;
    manifest.verify(folder)?;
    Ok(manifest)
}

#[derive(Serialize)]
struct Info {
    version: &'static str,
    model_format: u32,
    onnxruntime: Found,
    providers: Vec<ProviderInfo>,
    model_cache: Option<PathBuf>,
    model: Option<Manifest>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Found {
    Library { path: PathBuf, build: &'static str },
    Missing { reason: String },
}

#[derive(Serialize)]
struct ProviderInfo {
    name: String,
    /// Why it cannot be used; absent when it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let model = match &arguments.model {
        Some(folder) => Some(read_model(folder)?),
        None => None,
    };
    let (onnxruntime, providers) = match Library::load(arguments.onnxruntime.as_deref()) {
        Ok(library) => {
            let found = Found::Library {
                path: library.path().to_path_buf(),
                build: library.build_info(),
            };
            (
                found,
                [Provider::Cpu, Provider::Cuda, Provider::TensorRt]
                    .map(provider_info)
                    .into(),
            )
        }
        Err(error) => (
            Found::Missing {
                reason: error.to_string(),
            },
            Vec::new(),
        ),
    };
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        model_format: FORMAT,
        onnxruntime,
        providers,
        model_cache: default_cache().ok(),
        model,
    };
    if arguments.json {
        writeln!(
            std::io::stdout(),
            "{}",
            serde_json::to_string_pretty(&info)?
        )?;
    } else {
        print(&info)?;
    }
    Ok(())
}

fn provider_info(provider: Provider) -> ProviderInfo {
    ProviderInfo {
        name: provider.to_string(),
        problem: provider.resolve().err().map(|error| error.to_string()),
    }
}

fn print(info: &Info) -> anyhow::Result<()> {
    writeln!(
        std::io::stdout(),
        "lingbot_map {}, model format {}",
        info.version,
        info.model_format
    )?;
    match &info.onnxruntime {
        Found::Library { path, build } => writeln!(
            std::io::stdout(),
            "ONNX Runtime: {}\n  {build}",
            path.display()
        )?,
        Found::Missing { reason } => writeln!(std::io::stdout(), "ONNX Runtime: {reason}")?,
    }
    for provider in &info.providers {
        let problem = provider.problem.as_deref().unwrap_or("usable");
        writeln!(std::io::stdout(), "provider {}: {problem}", provider.name)?;
    }
    if let Some(folder) = &info.model_cache {
        writeln!(
            std::io::stdout(),
            "exported models are kept in {}",
            folder.display()
        )?;
    }
    if let Some(model) = &info.model {
        writeln!(
            std::io::stdout(),
            "\n{}",
            serde_yaml::to_string(model)?.trim_end()
        )?;
    }
    Ok(())
}
