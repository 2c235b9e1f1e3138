//! ONNX Runtime: the library, the execution provider and graphs run on memory that the caller owns.
//!
//! The only room with `unsafe` code; each use states the invariant that makes it sound.

#![allow(unsafe_code)]

mod graph;
mod library;
mod provider;
mod telemetry;

pub use graph::{Binding, Graph};
pub use library::{Library, forced_copies};
pub use provider::Provider;
pub use telemetry::forbid_telemetry;

use std::path::PathBuf;

/// Why ONNX Runtime cannot be used, or refused to run a graph.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error(
        "ONNX Runtime was not found (looked for {looked}); run scripts/setup_onnxruntime.sh, or name \
         libonnxruntime.so with the parameter onnxruntime_library or the variable ORT_DYLIB_PATH"
    )]
    LibraryNotFound { looked: String },
    #[error(
        "{path} cannot be used as ONNX Runtime: {reason}; version 1.{minimum} or newer is needed, \
         scripts/setup_onnxruntime.sh installs one",
        path = path.display(),
        minimum = ort::MINOR_VERSION
    )]
    Library { path: PathBuf, reason: String },
    #[error(
        "ONNX Runtime is already loaded from {loaded}, it cannot be loaded again from {wanted}",
        loaded = loaded.display(),
        wanted = wanted.display()
    )]
    AlreadyLoaded { loaded: PathBuf, wanted: PathBuf },
    #[error("execution provider {provider} cannot be used: {reason}")]
    Provider { provider: Provider, reason: String },
    #[error("ONNX Runtime: {0}")]
    Ort(#[from] ort::Error),
}

/// How to run a model.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    pub provider: Provider,
    /// The ONNX Runtime shared library; searched for when absent, see [`Library::load`].
    pub library: Option<PathBuf>,
    /// Threads of one operator; 0 takes one per core.
    pub threads: usize,
    /// Whether the files of a model are compared with their checksums before they are loaded.
    pub verify: bool,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            provider: Provider::default(),
            library: None,
            threads: 0,
            verify: true,
        }
    }
}

impl RuntimeOptions {
    /// The same with the provider that will really run; see [`Provider`].
    pub fn resolve(&self) -> Result<Self, RuntimeError> {
        Ok(Self {
            provider: self.provider.resolve()?,
            ..self.clone()
        })
    }
}
