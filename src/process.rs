//! What the system says about this process.

/// A figure of `/proc/self/status` in bytes, by its name there (`VmRSS`, `VmHWM`, …); `None` where there is none.
pub fn memory(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = value.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}
