//! Settings of the query engine.

use std::path::PathBuf;

/// Settings of the query engine. Sizes are in bytes, times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryConfig {
    /// Threads that queries run on; also the parts into which a scan is divided.
    pub threads: usize,
    /// Memory that one query may use for what it has to hold (join tables, groups, sorting). Sorting and grouping go to disk
    /// beyond it, a join fails.
    pub query_memory_bytes_max: usize,
    /// Memory that all queries may use together.
    pub queries_memory_bytes_max: usize,
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
            query_memory_bytes_max: 1 << 30,
            queries_memory_bytes_max: 2 << 30,
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

impl QueryConfig {
    /// The same on a member whose maps may take so many bytes. Where nobody says otherwise, all queries together take half as much at most,
    /// and one a quarter.
    #[must_use]
    pub(crate) fn within(self, maps_bytes_max: Option<usize>) -> QueryConfig {
        let Some(maps_bytes_max) = maps_bytes_max else { return self };
        let default = QueryConfig::default();
        let part = |set: usize, default: usize, part: usize| match set == default {
            true => set.min(part.max(QUERY_BYTES_LEAST)),
            false => set,
        };
        QueryConfig {
            query_memory_bytes_max: part(
                self.query_memory_bytes_max,
                default.query_memory_bytes_max,
                maps_bytes_max / 4,
            ),
            queries_memory_bytes_max: part(
                self.queries_memory_bytes_max,
                default.queries_memory_bytes_max,
                maps_bytes_max / 2,
            ),
            ..self
        }
    }

    /// Bytes that the results of one function take for one batch of rows, at most.
    pub(crate) fn results_bytes_max(&self) -> usize {
        self.query_memory_bytes_max / 4
    }
}

/// Memory without which a query sorts and groups nothing.
const QUERY_BYTES_LEAST: usize = 64 << 20;
