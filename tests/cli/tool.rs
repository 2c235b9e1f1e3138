//! What the tests of the tool share.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ndarray::{ArrayBase, Data, Dimension};
use ndarray_npy::NpzReader;
use serde_json::Value;
use tempfile::TempDir;

/// A run of the tool with a cache folder of its own.
pub struct Tool {
    folder: TempDir,
}

impl Tool {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lingbot_map"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("ORT_DISABLE_TELEMETRY")
            .env_remove("ORT_TELEMETRY_DISABLED");
        command
    }

    pub fn try_run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Standard output of a run that has to succeed.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Standard error of a run that has to fail.
    pub fn fail(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!text.contains("panicked"), "{text}");
        text
    }

    pub fn export_golden(&self, output: &str) {
        let (checkpoint, config) = (golden("weights.safetensors"), golden("config.json"));
        let arguments = [
            "--checkpoint",
            &checkpoint,
            "--config",
            &config,
            "--height",
            "42",
            "--width",
            "84",
        ];
        self.run(&[&["export"], &arguments[..], &["--output", output]].concat());
    }
}

pub fn project(name: &str) -> String {
    format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub fn golden(name: &str) -> String {
    project(&format!("tests/golden/{name}"))
}

pub fn demo(name: &str) -> String {
    project(&format!("models/demo/{name}"))
}

pub fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                fs::read(path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

pub fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub fn npz(path: impl AsRef<Path>) -> NpzReader<File> {
    NpzReader::new(File::open(path).unwrap()).unwrap()
}

pub fn largest_difference<S, T, D>(a: &ArrayBase<S, D>, b: &ArrayBase<T, D>) -> f32
where
    S: Data<Elem = f32>,
    T: Data<Elem = f32>,
    D: Dimension,
{
    assert_eq!(a.shape(), b.shape());
    // `max` ignores what is not a number, which here is as wrong as can be.
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences
        .map(|d| if d.is_nan() { f32::INFINITY } else { d })
        .fold(0.0, f32::max)
}

/// The first ten frames of the demo walk, and a broken image.
pub fn ten_frames(tool: &Tool, broken: &str) -> String {
    let folder = tool.path("frames");
    fs::create_dir(&folder).unwrap();
    for index in 0..10 {
        let name = format!("{index:04}.png");
        fs::copy(demo(&format!("walk/rgb/{name}")), folder.join(name)).unwrap();
    }
    fs::write(folder.join(broken), b"\x89PNG\r\n\x1a\nnot an image").unwrap();
    folder.to_string_lossy().into_owned()
}
