//! Data of the kernel about a process: memory, peak memory, and processor time.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// A process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pid(pub(crate) u32);

/// The number of bytes in a MiB, the unit of reported memory.
pub(crate) const MIB: u64 = 1 << 20;

impl Pid {
    fn read(self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.0);
        fs::read_to_string(&path).with_context(|| format!("reading {path}"))
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(self) -> Result<u64> {
        status_bytes(&self.read("status")?, "VmRSS:")
    }

    /// Peak resident memory since [`Pid::forget_peak`], in bytes.
    pub(crate) fn peak(self) -> Result<u64> {
        status_bytes(&self.read("status")?, "VmHWM:")
    }

    /// Resets the peak to the current memory.
    pub(crate) fn forget_peak(self) -> Result<()> {
        let path = format!("/proc/{}/clear_refs", self.0);
        // 5 resets the peak; see proc_pid_clear_refs(5).
        fs::write(&path, "5").with_context(|| format!("writing {path}"))
    }

    /// Processor time of its threads. It is the sum of per-thread times in nanoseconds, because the
    /// time of the process has a resolution of 10 ms. It does not include ended threads.
    pub(crate) fn processor_time(self) -> Result<Duration> {
        let path = format!("/proc/{}/task", self.0);
        let mut total = Duration::ZERO;
        for thread in fs::read_dir(&path).with_context(|| format!("reading {path}"))? {
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            let ran = text.split_whitespace().next().and_then(|word| word.parse().ok());
            total += Duration::from_nanos(ran.unwrap_or(0));
        }
        Ok(total)
    }

    /// The number of its threads.
    pub(crate) fn threads(self) -> Result<usize> {
        let path = format!("/proc/{}/task", self.0);
        Ok(fs::read_dir(&path).with_context(|| format!("reading {path}"))?.count())
    }
}

/// Parses a line of `status` in kB. Returns bytes.
fn status_bytes(status: &str, field: &str) -> Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).and_then(|word| word.parse::<u64>().ok());
    Ok(kib.with_context(|| format!("no number behind {field} in a process's status"))? * 1024)
}

/// Converts bytes to MiB, rounded up.
pub(crate) fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(status_bytes("Name: x\nVmHWM:\t    12 kB\nVmRSS:\t 8 kB\n", "VmHWM:").unwrap(), 12 * 1024);
        assert!(status_bytes("Name: x\n", "VmRSS:").is_err());
    }

    #[test]
    fn this_process_has_memory_and_has_used_a_processor() {
        let own = Pid(std::process::id());
        assert!(own.resident().unwrap() > 0);
        assert!(own.peak().unwrap() >= own.resident().unwrap() / 2);
        assert!(own.processor_time().unwrap() > Duration::ZERO);
        assert!(own.threads().unwrap() > 0);
    }
}
