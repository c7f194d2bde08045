//! Information of the operating system about this process and machine. It is left out if the system
//! does not provide it (not Linux).

use std::fs;

/// The ticks per second in `/proc/self/stat`. Linux always reports 100 to programs, whatever its
/// internal rate.
const TICKS_PER_SECOND: u64 = 100;

/// The memory, processor time and threads of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Process {
    /// The resident memory in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// The processor time of all threads since the start, in milliseconds.
    pub(super) cpu_ms: Option<u64>,
    /// The number of threads.
    pub(super) threads: Option<u64>,
}

/// Reads the current values of the process.
pub(super) fn process() -> Process {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    Process {
        resident_bytes: line_of(&status, "VmRSS:").map(|kilobytes| kilobytes * 1024),
        threads: line_of(&status, "Threads:"),
        cpu_ms: cpu_ms(),
    }
}

fn cpu_ms() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in parentheses, may contain spaces and parentheses. User and system time
    // are the 12th and 13th fields after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) * 1000 / TICKS_PER_SECOND)
}

/// The memory of the machine in bytes, or the limit of the container if it is lower.
pub(super) fn memory_bytes() -> Option<u64> {
    let machine =
        fs::read_to_string("/proc/meminfo").ok().and_then(|text| line_of(&text, "MemTotal:")).map(|kb| kb * 1024);
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    machine.into_iter().chain(container).min()
}

/// The maximum number of open files of this process, connections included.
pub(super) fn open_files_max() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The number of processors that the process may use.
pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn line_of(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}
