//! The default memory limit of maps: a share of the memory of the machine, or of the container.
//!
//! Without a limit, a member that grows too large is killed by the kernel, and all data is lost.
//! With a limit, a write beyond it fails with an error.

use std::fs;
use std::path::{Path, PathBuf};

use filbert_grid::MemberMemory;

/// The share of the available memory that maps may use at most. The rest is for the operating
/// system, logs, and [`PROCESS`].
const SHARE: (u64, u64) = (3, 4);
const MIB: u64 = 1 << 20;
/// The memory of a process besides maps, statements and buffers: the program, its threads, and
/// memory that the allocator keeps.
const PROCESS: u64 = 256 * MIB;

/// The limit in bytes, in whole MiB. `None` if the operating system does not report the memory
/// size.
pub(crate) fn default_limit() -> Option<usize> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| machine_bytes(&text));
    let container = control_group().and_then(|directory| container_bytes(&directory));
    limit_within(machine.into_iter().chain(container).min()?)
}

/// The limit for a process that may use `bytes` bytes, even if maps fill the limit: the parts that
/// are guaranteed to statements and buffers come on top of it. At least a quarter of `bytes`.
fn limit_within(bytes: u64) -> Option<usize> {
    let share = usize::try_from(bytes / SHARE.1 * SHARE.0 / MIB).ok()?;
    let all = usize::try_from(bytes.saturating_sub(PROCESS)).ok()?;
    let fits = |mib: &usize| {
        let max = mib << 20;
        max + MemberMemory::new(Some(max)).guaranteed() <= all
    };
    // The guaranteed parts grow with the limit.
    let mib = (share / 3..=share).rev().find(fits).unwrap_or(share / 3);
    Some(mib << 20)
}

/// Parses the machine's memory from the text of `/proc/meminfo`.
fn machine_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// The control group (version 2) of the process.
fn control_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    Some(Path::new("/sys/fs/cgroup").join(path))
}

/// The smallest limit of a control group and its ancestors. `None` without a limit.
fn container_bytes(group: &Path) -> Option<u64> {
    let limit = |directory: &Path| fs::read_to_string(directory.join("memory.max")).ok()?.trim().parse::<u64>().ok();
    group.ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_memory_is_read_in_kilobytes() {
        let text = "MemTotal:       24684092 kB\nMemFree:        1 kB\n";
        assert_eq!(machine_bytes(text), Some(24_684_092 * 1_024));
        assert_eq!(machine_bytes("MemFree: 1 kB\n"), None);
        assert_eq!(machine_bytes("MemTotal: much\n"), None);
    }

    #[test]
    fn the_smallest_limit_around_a_control_group_counts() {
        let root = std::env::temp_dir().join(format!("filbert-cgroup-{}", std::process::id()));
        let inner = root.join("outer").join("inner");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(container_bytes(&inner), None);
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        fs::write(root.join("outer").join("memory.max"), "1000000\n").unwrap();
        fs::write(root.join("memory.max"), "2000000\n").unwrap();
        assert_eq!(container_bytes(&inner), Some(1_000_000));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn small_machines_keep_room_for_the_process_and_the_guaranteed_parts() {
        let mib = |bytes: u64| limit_within(bytes * MIB).map(|limit| limit >> 20);
        assert_eq!([256, 512, 1_024, 2_048].map(mib), [Some(64), Some(160), Some(646), Some(1_509)]);
        assert_eq!([4_096, 65_536].map(mib), [Some(3_072), Some(49_152)]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_a_limit() {
        let limit = default_limit().unwrap();
        assert!(limit > 0 && limit.is_multiple_of(1 << 20));
    }
}
