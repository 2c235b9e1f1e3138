//! Sends what the library logs through ROS logging: console, log file and /rosout, with ROS's own log level.

use log::{Level, LevelFilter, Log, Metadata, Record};

struct RosLogger;

/// Other crates are only heard when something is wrong.
fn is_wanted(metadata: &Metadata) -> bool {
    let target = metadata.target();
    target.starts_with(env!("CARGO_CRATE_NAME"))
        || target.starts_with("mapping_node")
        || metadata.level() <= Level::Warn
}

impl Log for RosLogger {
    fn enabled(&self, metadata: &Metadata) -> bool {
        is_wanted(metadata)
    }

    fn log(&self, record: &Record) {
        if !is_wanted(record.metadata()) {
            return;
        }
        let severity = match record.level() {
            Level::Error => r2r::LogSeverity::Error,
            Level::Warn => r2r::LogSeverity::Warn,
            Level::Info => r2r::LogSeverity::Info,
            Level::Debug | Level::Trace => r2r::LogSeverity::Debug,
        };
        let message = without_nul(&record.args().to_string());
        let file = without_nul(record.file().unwrap_or_default());
        r2r::log(
            &message,
            super::NODE_NAME,
            &file,
            record.line().unwrap_or_default(),
            severity,
        );
    }

    fn flush(&self) {}
}

/// Text that can cross into C: a NUL byte inside would be a panic there.
pub fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

/// Does nothing when a logger is set already.
pub fn init() {
    if log::set_logger(&RosLogger).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}
