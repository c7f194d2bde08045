//! Warnings for the operator: harmful settings, and limits that are nearly reached.

use filbert_grid::{Grid, GridStatistics};

use super::machine;
use super::sources::{Warning, WarningLevel};

/// The percentage of a limit from which it counts as nearly reached.
const NEAR_PERCENT: u64 = 90;

/// The minimum number of open files that a member should be allowed: the default number of
/// connections of the client door.
const OPEN_FILES_WANTED: u64 = 20_000;

/// All warnings, the most severe first.
pub(super) fn all(grid: &Grid, statistics: &GridStatistics, machine: Option<u64>, given: Vec<Warning>) -> Vec<Warning> {
    let mut warnings = given;
    warnings.extend(of_memory(statistics, machine));
    warnings.extend(of_registries(grid, statistics));
    warnings.extend(of_cluster(grid));
    if !grid.is_active() {
        warnings.push(warning(WarningLevel::Critical, "The member is shutting down", "It takes no more operations."));
    }
    if let Some(max) = machine::open_files_max().filter(|max| *max < OPEN_FILES_WANTED) {
        let title = format!("Only {max} files may be open");
        let text = "Each connection is an open file. Raise the limit of the process (`ulimit -n`, `LimitNOFILE`) to 20,000 or more.";
        warnings.push(warning(WarningLevel::Note, &title, text));
    }
    warnings.sort_by_key(|warning| match warning.level {
        WarningLevel::Critical => 0,
        WarningLevel::Warning => 1,
        WarningLevel::Note => 2,
    });
    warnings
}

fn of_memory(statistics: &GridStatistics, machine: Option<u64>) -> Option<Warning> {
    let used = statistics.memory_bytes as u64;
    let Some(max) = statistics.memory_bytes_max.map(|max| max as u64) else {
        return Some(warning(
            WarningLevel::Warning,
            "There is no memory limit",
            "Maps may grow until the system ends the program. Set `memory_bytes_max` below the memory of the machine.",
        ));
    };
    if used.saturating_mul(100) >= max.saturating_mul(NEAR_PERCENT) {
        return Some(warning(
            WarningLevel::Critical,
            &format!("Maps take {} % of the memory limit", used.saturating_mul(100) / max.max(1)),
            "At the limit writes are refused. Remove entries, let maps evict, or raise the limit.",
        ));
    }
    if machine.is_some_and(|machine| max.saturating_mul(100) > machine.saturating_mul(NEAR_PERCENT)) {
        return Some(warning(
            WarningLevel::Warning,
            "The memory limit leaves the machine no room",
            "Queries, buffers and the system need memory beside the maps. Set the limit to three quarters of the machine's memory.",
        ));
    }
    None
}

fn of_cluster(grid: &Grid) -> Vec<Warning> {
    let status = grid.cluster().and_then(|cluster| cluster.status());
    let level = |is_critical| if is_critical { WarningLevel::Critical } else { WarningLevel::Warning };
    let warnings = status.map(|status| status.warnings()).unwrap_or_default();
    warnings.into_iter().map(|found| warning(level(found.is_critical), &found.title, &found.text)).collect()
}

fn of_registries(grid: &Grid, statistics: &GridStatistics) -> Vec<Warning> {
    let config = grid.config();
    let counts = [
        ("distributed objects", "objects_max", statistics.objects, config.objects_max),
        ("listeners", "listeners_max", statistics.listeners, config.listeners_max),
        ("Compact schemas", "schemas_max", statistics.schemas, config.schemas_max),
        ("changes that wait for locks", "lock_waiters_max", statistics.parked_changes, config.lock_waiters_max),
    ];
    let near = |(_, _, count, max): &(&str, &str, usize, usize)| {
        (*count as u64).saturating_mul(100) >= (*max as u64).saturating_mul(NEAR_PERCENT)
    };
    let limit_warning = |(what, setting, count, max): (&str, &str, usize, usize)| {
        let title = format!("{count} of {max} {what}");
        warning(
            WarningLevel::Warning,
            &title,
            &format!("Beyond the limit they are refused. It is the setting `{setting}`."),
        )
    };
    counts.into_iter().filter(near).map(limit_warning).collect()
}

fn warning(level: WarningLevel, title: &str, text: &str) -> Warning {
    Warning { level, title: title.to_owned(), text: text.to_owned() }
}
