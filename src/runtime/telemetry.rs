//! Official builds of ONNX Runtime send usage data from 1.32 on, also on Linux, and write a device identifier and a
//! database into the user's cache folder (microsoft/onnxruntime, pull requests 27379 and 29843). The environment's own
//! switch comes too late for that: it needs an environment, whose making is already reported.

use std::env;

/// Read by the library when it is loaded: the first names it in 1.32, the second in later builds.
const VARIABLES: [&str; 2] = ["ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED"];

/// Keeps ONNX Runtime from sending and writing usage data, unless the variables are set already. To be called first thing
/// in a program: with other threads running it does nothing but say so.
pub fn forbid_telemetry() {
    for variable in VARIABLES {
        if env::var_os(variable).is_some() {
            continue;
        }
        if !is_single_threaded() {
            log::warn!("ONNX Runtime may send usage data: set {variable}=1 to forbid it");
            continue;
        }
        // SAFETY: setting a variable races with threads that read the environment. There is no thread but this one.
        unsafe { env::set_var(variable, "1") };
    }
}

fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_threads_is_known_as_one() {
        // The test harness runs tests in threads of their own.
        assert!(!is_single_threaded());
    }
}
