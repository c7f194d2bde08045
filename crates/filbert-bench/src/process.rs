//! The resource usage of a process: CPU time and memory, from `/proc/PID` (see proc(5)).

use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use serde::Serialize;

use crate::error::{BenchError, Result};

/// CPU time and memory of a process at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// CPU time in user mode, of all threads, including ended threads. The kernel counts in ticks
    /// of usually 10 ms.
    pub user: Duration,
    /// CPU time in the kernel, counted in the same way.
    pub system: Duration,
    /// Resident memory in bytes (VmRSS).
    pub resident_bytes: u64,
    /// Peak resident memory in bytes (VmHWM).
    pub resident_bytes_peak: u64,
}

impl Usage {
    /// Reads the usage of a running process.
    pub fn of(pid: u32) -> Result<Usage> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            fs::read_to_string(&path).map_err(BenchError::io(format!("reading {path}")))
        };
        let (user_ticks, system_ticks) = parse_cpu_ticks(&read("stat")?)
            .ok_or_else(|| BenchError::Setting(format!("/proc/{pid}/stat has no CPU times where proc(5) puts them")))?;
        let status = read("status")?;
        let tick = Duration::from_secs(1) / ticks_per_second();
        Ok(Usage {
            user: tick * u32::try_from(user_ticks).unwrap_or(u32::MAX),
            system: tick * u32::try_from(system_ticks).unwrap_or(u32::MAX),
            resident_bytes: parse_status_bytes(&status, "VmRSS").unwrap_or(0),
            resident_bytes_peak: parse_status_bytes(&status, "VmHWM").unwrap_or(0),
        })
    }

    /// CPU time in user mode and in the kernel.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// Parses the user and system ticks of `/proc/PID/stat`. The program's name is in parentheses and
/// may contain spaces and parentheses, so fields are counted from the last closing parenthesis.
fn parse_cpu_ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, after_name) = stat.rsplit_once(')')?;
    // Field 3, the state, follows the name. User and system time are fields 14 and 15.
    let mut fields = after_name.split_ascii_whitespace().skip(14 - 3);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Parses the bytes of a line such as `VmRSS:     1234 kB` of `/proc/PID/status`.
fn parse_status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))?;
    let kibibytes: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The processor time that the host has given to other guests since the start of this machine. If
/// this value grows much during a measurement, the latencies depend more on the host than on the
/// program. `None` if the kernel does not report it.
pub fn stolen() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let ticks = parse_stolen_ticks(&stat)?;
    Some(Duration::from_secs(1) / ticks_per_second() * u32::try_from(ticks).ok()?)
}

/// Parses the stolen ticks of all processors from `/proc/stat`.
fn parse_stolen_ticks(stat: &str) -> Option<u64> {
    stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().nth(7)?.parse().ok()
}

/// The kernel's ticks per second, from `getconf`: a direct query would need a system call through
/// the C library. 100 on every common architecture.
fn ticks_per_second() -> u32 {
    static TICKS: OnceLock<u32> = OnceLock::new();
    *TICKS.get_or_init(|| {
        Command::new("getconf")
            .arg("CLK_TCK")
            .output()
            .ok()
            .and_then(|output| String::from_utf8(output.stdout).ok())
            .and_then(|text| text.trim().parse().ok())
            .filter(|ticks| *ticks > 0)
            .unwrap_or(100)
    })
}

/// The usage of a process between two readings, per operation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, serde::Deserialize)]
pub struct UsagePerOperation {
    /// CPU time per operation in microseconds, user mode.
    pub user_us: f64,
    /// CPU time per operation in microseconds, in the kernel.
    pub system_us: f64,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
}

impl UsagePerOperation {
    /// Computes the difference of two readings, divided by the number of operations.
    pub fn between(before: &Usage, after: &Usage, operations: u64) -> Self {
        let per_operation = |later: Duration, earlier: Duration| {
            later.saturating_sub(earlier).as_secs_f64() * 1e6 / operations.max(1) as f64
        };
        Self {
            user_us: per_operation(after.user, before.user),
            system_us: per_operation(after.system, before.system),
            resident_bytes: after.resident_bytes,
        }
    }

    /// CPU time per operation in microseconds, in user mode and in the kernel.
    pub fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_takes_is_found() {
        let stat = "cpu  5052059 1046201 324063 1595389 19940 0 26786 78362 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(parse_stolen_ticks(stat), Some(78_362));
        assert_eq!(parse_stolen_ticks("intr 1 2 3"), None);
    }

    #[test]
    fn cpu_ticks_are_found_behind_a_name_with_spaces_and_parentheses() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 123 45 7 8 20 0 9 0 131443 3133440 382";
        assert_eq!(parse_cpu_ticks(stat), Some((123, 45)));
    }

    #[test]
    fn a_cut_stat_line_gives_nothing() {
        assert_eq!(parse_cpu_ticks("42 (a) S 1 2 3"), None);
        assert_eq!(parse_cpu_ticks(""), None);
    }

    #[test]
    fn memory_lines_are_told_apart_by_their_whole_name() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nVmRSSx:\t 1 kB\n";
        assert_eq!(parse_status_bytes(status, "VmRSS"), Some(1024 * 1024));
        assert_eq!(parse_status_bytes(status, "VmHWM"), Some(2 * 1024 * 1024));
        assert_eq!(parse_status_bytes(status, "VmSwap"), None);
    }

    #[test]
    fn the_usage_of_this_process_grows_with_work() {
        let before = Usage::of(std::process::id()).unwrap();
        let mut x = 1_u64;
        while Usage::of(std::process::id()).unwrap().cpu() <= before.cpu() {
            for _ in 0..100_000 {
                x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(7));
            }
        }
        assert!(before.resident_bytes > 0);
    }

    #[test]
    fn usage_is_divided_by_the_operations() {
        let zero = Usage { user: Duration::ZERO, system: Duration::ZERO, resident_bytes: 0, resident_bytes_peak: 0 };
        let later = Usage {
            user: Duration::from_millis(300),
            system: Duration::from_millis(100),
            resident_bytes: 5,
            resident_bytes_peak: 5,
        };
        let per_operation = UsagePerOperation::between(&zero, &later, 100_000);
        assert!((per_operation.cpu_us() - 4.0).abs() < 1e-9);
        assert_eq!(per_operation.resident_bytes, 5);
    }
}
