//! The metrics of the process, under the usual names of Prometheus clients. Metrics that the
//! operating system does not provide are left out.

use std::fs;

use super::text::Families;

/// The ticks per second in `/proc/self/stat`. Linux always reports 100 to programs, whatever its
/// internal rate.
const TICKS_PER_SECOND: f64 = 100.0;

/// Writes the metrics.
pub(super) fn write(families: &mut Families) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in parentheses, may contain spaces and parentheses.
    let fields: Vec<f64> =
        stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace().map(number).collect();
    let kilobytes = |name: &str| field(&status, name).map(|kilobytes| kilobytes * 1024.0);
    let cpu = fields.get(11).zip(fields.get(12)).map(|(user, system)| (user + system) / TICKS_PER_SECOND);
    if let Some(cpu) = cpu {
        families.seconds_total("process_cpu_seconds_total", "Processor time of all threads.", cpu);
    }
    families.gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.", kilobytes("VmRSS:"));
    families.gauge("process_virtual_memory_bytes", "Addresses of the process.", kilobytes("VmSize:"));
    families.gauge("process_threads", "Threads of the process.", field(&status, "Threads:"));
    let open = fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as f64);
    families.gauge("process_open_fds", "Files and sockets that are open.", open);
    families.gauge("process_max_fds", "Files and sockets that may be open.", open_files_max());
    let start = fields.get(19).zip(boot_seconds()).map(|(ticks, boot)| boot + ticks / TICKS_PER_SECOND);
    families.gauge("process_start_time_seconds", "When the process was started, in seconds since 1970.", start);
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_default()
}

fn field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn open_files_max() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    field(&limits, "Max open files")
}

fn boot_seconds() -> Option<f64> {
    field(&fs::read_to_string("/proc/stat").ok()?, "btime")
}
