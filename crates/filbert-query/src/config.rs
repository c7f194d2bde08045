//! Settings of the query engine.

use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Settings of the query engine. Sizes are in bytes, times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryConfig {
    /// Threads that queries run on; also the parts into which a scan is divided.
    pub threads: usize,
    /// Memory that one query may use for what it has to hold (join tables, groups, sorting). Sorting and grouping go to disk
    /// beyond it, a join fails. `None` = a quarter of what maps may take, from 64 MiB to 1 GiB.
    pub query_memory_bytes_max: Option<usize>,
    /// Memory that all queries may use together. `None` = half of what maps may take, from 128 MiB to 2 GiB.
    pub queries_memory_bytes_max: Option<usize>,
    /// Plans that are kept by their statements' texts.
    pub plans_max: usize,
    /// Length of a statement.
    pub statement_bytes_max: usize,
    /// Values that a statement may take.
    pub parameters_max: usize,
    /// How long a statement may run that says nothing about it; `None` = for ever.
    pub timeout_ms: Option<u64>,
    /// How long a statement that changes rows waits for a key that others have locked, in milliseconds, each time that it does.
    pub lock_wait_ms: u64,
    /// Mappings and views together.
    pub catalog_entries_max: usize,
    /// Ended statements that are kept for `sys.jobs_log`; 0 = none.
    pub jobs_log_max: usize,
    /// The directory whose files `COPY` may read and write; `None` = none.
    pub copy_directory: Option<PathBuf>,
}

impl Default for QueryConfig {
    fn default() -> Self {
        QueryConfig {
            threads: std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get),
            query_memory_bytes_max: None,
            queries_memory_bytes_max: None,
            plans_max: 1_000,
            statement_bytes_max: 10 << 20,
            parameters_max: 10_000,
            timeout_ms: None,
            lock_wait_ms: 60_000,
            catalog_entries_max: 10_000,
            jobs_log_max: 10_000,
            copy_directory: None,
        }
    }
}

/// The least and the most that one query may use unless told otherwise; all together may use twice as much.
const QUERY_BYTES: RangeInclusive<usize> = 64 << 20..=1 << 30;

impl QueryConfig {
    /// Bytes that one query may use, the setting or its default, on a member whose maps may take so many.
    pub fn query_memory_bytes(&self, maps_bytes_max: Option<usize>) -> usize {
        self.query_memory_bytes_max.unwrap_or_else(|| default_query_bytes(maps_bytes_max))
    }

    /// The same of all queries together.
    pub fn queries_memory_bytes(&self, maps_bytes_max: Option<usize>) -> usize {
        self.queries_memory_bytes_max.unwrap_or_else(|| 2 * default_query_bytes(maps_bytes_max))
    }
}

fn default_query_bytes(maps_bytes_max: Option<usize>) -> usize {
    maps_bytes_max.map_or(usize::MAX, |bytes| bytes / 4).clamp(*QUERY_BYTES.start(), *QUERY_BYTES.end())
}
