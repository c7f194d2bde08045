//! Settings of the query engine.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Settings of the query engine. Sizes are in bytes, times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryConfig {
    /// Threads that queries run on. A scan is divided into the same number of parts. `None` = one
    /// thread for each processor.
    pub threads: Option<usize>,
    /// Memory that one query may use for join tables, groups and sorting. Beyond it, sorting and
    /// grouping spill to disk, and a join fails. `None` = a quarter of the memory limit of maps,
    /// from 64 MiB to 1 GiB.
    pub query_memory_bytes_max: Option<usize>,
    /// Memory that all queries may use together. `None` = half of the memory limit of maps, from
    /// 128 MiB to 2 GiB.
    pub queries_memory_bytes_max: Option<usize>,
    /// Disk space that all queries together may use for rows that they sort or group.
    pub queries_spill_bytes_max: u64,
    /// The directory of these rows; `None` = the directory of the system for temporary files.
    pub spill_directory: Option<PathBuf>,
    /// The number of plans in the plan cache.
    pub plans_max: usize,
    /// The maximum length of a statement.
    pub statement_bytes_max: usize,
    /// The maximum number of parameters of a statement.
    pub parameters_max: usize,
    /// The timeout of a statement that does not set one; `None` = no timeout.
    pub timeout_ms: Option<u64>,
    /// How long a statement that changes rows waits for a locked key, in milliseconds. Each wait
    /// may take this long.
    pub lock_wait_ms: u64,
    /// The maximum number of mappings and views together.
    pub catalog_entries_max: usize,
    /// Ended statements that `sys.jobs_log` keeps; 0 = none.
    pub jobs_log_max: usize,
    /// A statement that takes longer is logged as slow, in milliseconds; `None` = no statement.
    pub slow_statement_ms: Option<u64>,
    /// Whether logged statements have `?` in place of their literals.
    pub hides_literals: bool,
    /// The directory of files that `COPY` may read and write; `None` = `COPY` may use no files.
    pub copy_directory: Option<PathBuf>,
}

impl Default for QueryConfig {
    fn default() -> Self {
        QueryConfig {
            threads: None,
            query_memory_bytes_max: None,
            queries_memory_bytes_max: None,
            queries_spill_bytes_max: 10 << 30,
            spill_directory: None,
            plans_max: 1_000,
            statement_bytes_max: 10 << 20,
            parameters_max: 65_535,
            timeout_ms: None,
            lock_wait_ms: 60_000,
            catalog_entries_max: 10_000,
            jobs_log_max: 10_000,
            slow_statement_ms: Some(5_000),
            hides_literals: false,
            copy_directory: None,
        }
    }
}

/// The smallest and the largest default limit of one query. The limit of all queries together is
/// twice as high.
const QUERY_BYTES: RangeInclusive<usize> = 64 << 20..=1 << 30;

impl QueryConfig {
    /// The number of threads that queries run on: the setting or its default.
    pub fn thread_count(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, NonZeroUsize::get)).max(1)
    }

    /// Bytes that one query may use on a member with this memory limit of maps: the setting or its
    /// default.
    pub fn query_memory_bytes(&self, maps_bytes_max: Option<usize>) -> usize {
        self.query_memory_bytes_max.unwrap_or_else(|| default_query_bytes(maps_bytes_max))
    }

    /// Bytes that all queries together may use: the setting or its default.
    pub fn queries_memory_bytes(&self, maps_bytes_max: Option<usize>) -> usize {
        self.queries_memory_bytes_max.unwrap_or_else(|| 2 * default_query_bytes(maps_bytes_max))
    }
}

fn default_query_bytes(maps_bytes_max: Option<usize>) -> usize {
    maps_bytes_max.map_or(usize::MAX, |bytes| bytes / 4).clamp(*QUERY_BYTES.start(), *QUERY_BYTES.end())
}
