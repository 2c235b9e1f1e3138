use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ort::environment::Environment;
use ort::logging::LogLevel;

use super::RuntimeError;

/// Where scripts/setup_onnxruntime.sh puts the library, relative to the project.
const PROJECT_FOLDER: &str = ".onnxruntime";
const VARIABLE: &str = "ORT_DYLIB_PATH";
const FILE_NAME: &str = "libonnxruntime.so";

/// What ONNX Runtime logs when TensorScatter got an output buffer that is not its input buffer.
const COPY_WARNING: &str = "in-place optimization not activated";
static FORCED_COPIES: AtomicU64 = AtomicU64::new(0);

/// How often ONNX Runtime copied a cache instead of writing into it, in this process. Anything but zero is a fault.
pub fn forced_copies() -> u64 {
    FORCED_COPIES.load(Ordering::Relaxed)
}

/// The ONNX Runtime shared library with its one environment. A process loads one library, once.
#[derive(Clone, Debug)]
pub struct Library {
    environment: Environment,
    path: PathBuf,
}

static LOADED: Mutex<Option<Library>> = Mutex::new(None);

impl Library {
    /// Loads the library from `explicit`, else from `ORT_DYLIB_PATH`, else from where it is installed: beside the
    /// program, in the `.onnxruntime` folder of a folder above the program, or where the system's loader finds it.
    pub fn load(explicit: Option<&Path>) -> Result<Self, RuntimeError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = loaded.as_ref() {
            return match explicit {
                Some(wanted) if wanted != library.path => Err(RuntimeError::AlreadyLoaded {
                    loaded: library.path.clone(),
                    wanted: wanted.to_owned(),
                }),
                _ => Ok(library.clone()),
            };
        }
        let path = match explicit
            .map(Path::to_owned)
            .or_else(|| env::var_os(VARIABLE).map(PathBuf::from))
        {
            Some(path) => path,
            None => installed()?,
        };
        let failed = |reason: String| RuntimeError::Library {
            path: path.clone(),
            reason,
        };
        let environment = ort::init_from(&path)
            .map_err(|error| failed(error.to_string()))?
            .with_name("lingbot_map")
            .with_telemetry(false)
            .with_logger(Arc::new(forward))
            .build()?;
        environment.set_log_level(LogLevel::Warning);
        let library = Library { environment, path };
        log::debug!(
            "ONNX Runtime from {}: {}",
            library.path.display(),
            library.build_info()
        );
        *loaded = Some(library.clone());
        Ok(library)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// ONNX Runtime's own description of its build.
    pub fn build_info(&self) -> &'static str {
        ort::info()
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }
}

fn installed() -> Result<PathBuf, RuntimeError> {
    let program = env::current_exe().ok();
    let folders: Vec<PathBuf> = program
        .iter()
        .flat_map(|program| program.ancestors().skip(1))
        .enumerate()
        .flat_map(|(level, folder)| {
            (level == 0)
                .then(|| folder.to_owned())
                .into_iter()
                .chain([folder.join(PROJECT_FOLDER)])
        })
        .collect();
    if let Some(library) = folders.iter().find_map(|folder| newest_library(folder)) {
        return Ok(library);
    }
    let system = [
        "/usr/local/lib",
        "/usr/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
    ];
    let on_path = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    env::split_paths(&on_path).chain(system.map(PathBuf::from)).find_map(|folder| newest_library(&folder)).ok_or_else(|| {
        RuntimeError::LibraryNotFound {
            looked: format!("{VARIABLE}, {FILE_NAME} beside the program, {PROJECT_FOLDER} above it, LD_LIBRARY_PATH and the system's library folders"),
        }
    })
}

/// `libonnxruntime.so` with the highest version suffix in a folder.
fn newest_library(folder: &Path) -> Option<PathBuf> {
    let version = |path: &Path| -> Option<Vec<u32>> {
        let suffix = path.file_name()?.to_str()?.strip_prefix(FILE_NAME)?;
        suffix
            .split('.')
            .filter(|part| !part.is_empty())
            .map(|part| part.parse().ok())
            .collect()
    };
    fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter_map(|path| Some((version(&path)?, path)))
        .max()
        .map(|(_, path)| path)
}

/// ONNX Runtime's messages go to the log, one level more quietly than it thinks of them.
fn forward(level: LogLevel, _category: &str, _id: &str, _location: &str, message: &str) {
    if message.contains(COPY_WARNING) {
        FORCED_COPIES.fetch_add(1, Ordering::Relaxed);
    }
    let level = match level {
        LogLevel::Fatal | LogLevel::Error => log::Level::Warn,
        LogLevel::Warning => log::Level::Debug,
        LogLevel::Info | LogLevel::Verbose => log::Level::Trace,
    };
    log::log!(target: "onnxruntime", level, "{message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_library_of_a_folder_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "libonnxruntime.so.1.9.0",
            "libonnxruntime.so.1.32.0",
            "libonnxruntime_providers_shared.so",
            "libonnxruntime.so.old",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = newest_library(folder.path()).unwrap();
        assert_eq!(found.file_name().unwrap(), "libonnxruntime.so.1.32.0");
        assert_eq!(newest_library(&folder.path().join("absent")), None);
    }

    #[test]
    fn a_file_that_is_no_library_is_named_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libonnxruntime.so");
        fs::write(&path, "not a library").unwrap();
        for path in [path, folder.path().join("absent.so")] {
            let error = Library::load(Some(&path)).unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
            assert!(
                error.contains("version 1.25 or newer") && error.contains("setup_onnxruntime.sh"),
                "{error}"
            );
        }
    }
}
