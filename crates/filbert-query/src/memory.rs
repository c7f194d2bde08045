//! Memory of queries: each query has a limit, and all queries together have another one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};

use filbert_functions::ending;
use filbert_functions::measured::MeasuredTotal;
use filbert_grid::MemberMemory;

use crate::config::QueryConfig;

/// The memory that a statement may hold beyond twice its limit of reservations: for plans, and for
/// rows between operators.
const UNRESERVED_BYTES: usize = 64 << 20;

/// The part of a query's memory that the results of one function may take for one batch of rows.
const RESULTS_PART: usize = 4;

/// The room of all statements for each row of a batch, in bytes, and the smallest number of rows.
const ROOM_PER_ROW: usize = 64 << 10;
const BATCH_ROWS_MIN: usize = 1_024;

/// The part of the memory of queries that the log of ended statements may take, and its smallest
/// limit in bytes.
const LOG_PART: usize = 64;
const LOG_BYTES_MIN: usize = 1 << 20;

/// The part of the memory of queries that one plan cache may take.
pub(crate) const PLANS_PART: usize = 16;

/// Limits of the memory of queries, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryLimits {
    /// The limit of one query.
    pub(crate) query_bytes_max: usize,
    /// The limit of all queries together.
    pub(crate) queries_bytes_max: usize,
}

impl MemoryLimits {
    /// The limits of a member with this memory limit of maps.
    pub(crate) fn new(config: &QueryConfig, maps_bytes_max: Option<usize>) -> MemoryLimits {
        MemoryLimits {
            query_bytes_max: config.query_memory_bytes(maps_bytes_max),
            queries_bytes_max: config.queries_memory_bytes(maps_bytes_max),
        }
    }

    /// Bytes that the results of one function may take for one batch of rows.
    pub(crate) fn results_bytes_max(self) -> usize {
        self.query_bytes_max / RESULTS_PART
    }

    /// Bytes that the plans of one cache may take. There are six: of texts and of templates, for
    /// each dialect.
    pub(crate) fn plans_bytes_max(self) -> usize {
        self.queries_bytes_max / PLANS_PART
    }

    /// Bytes of the log of ended statements.
    pub(crate) fn log_bytes_max(self) -> usize {
        (self.queries_bytes_max / LOG_PART).max(LOG_BYTES_MIN)
    }

    /// The limits of the memory that statements hold. Operators copy rows with reserved memory when
    /// they pass them on, but not all statements do so at the same time.
    pub(crate) fn measured(self, member: Arc<MemberMemory>) -> Arc<MeasuredTotal> {
        let of_one = self.query_bytes_max.saturating_mul(2).saturating_add(UNRESERVED_BYTES);
        let of_all = self.queries_bytes_max.saturating_add(self.queries_bytes_max / 2);
        MeasuredTotal::new(of_one, of_all.max(of_one), member)
    }
}

/// The memory pool of all queries of a member.
#[derive(Debug)]
pub(crate) struct ServerMemory {
    used: AtomicUsize,
    bytes_max: usize,
    member: Arc<MemberMemory>,
}

impl ServerMemory {
    pub(crate) fn new(bytes_max: usize, member: Arc<MemberMemory>) -> Arc<Self> {
        Arc::new(ServerMemory { used: AtomicUsize::new(0), bytes_max, member })
    }

    /// The bytes that all queries may reserve now, and the setting that limits them. Statements
    /// hold one and a half times the memory that they reserve.
    fn room(&self) -> (usize, &'static str) {
        let room = self.member.room_of_statements() / 3 * 2;
        if room < self.bytes_max { (room, "memory_bytes_max") } else { (self.bytes_max, "queries_memory_bytes_max") }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that the results of one function of a statement that begins now may take for one batch
    /// of rows.
    pub(crate) fn results_bytes_max(&self, limits: MemoryLimits) -> usize {
        limits.results_bytes_max().min(self.member.room_of_statements() / RESULTS_PART)
    }

    /// The number of rows of the batches of a statement that begins now, at most `most`. A step of
    /// an operator takes the memory of a batch several times before it is measured, so that batches
    /// are smaller where statements have little room.
    pub(crate) fn batch_rows(&self, most: usize) -> usize {
        (self.member.room_of_statements() / ROOM_PER_ROW).max(BATCH_ROWS_MIN).min(most)
    }
}

/// The memory pool of one query.
#[derive(Debug)]
pub(crate) struct QueryMemory {
    used: AtomicUsize,
    bytes_max: usize,
    server: Arc<ServerMemory>,
}

impl QueryMemory {
    pub(crate) fn new(bytes_max: usize, server: Arc<ServerMemory>) -> Self {
        QueryMemory { used: AtomicUsize::new(0), bytes_max, server }
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueryMemory({} of {} bytes)", self.used.load(Ordering::Relaxed), self.bytes_max)
    }
}

fn take(used: &AtomicUsize, bytes: usize, bytes_max: usize) -> std::result::Result<(), usize> {
    used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
        used.checked_add(bytes).filter(|used| *used <= bytes_max)
    })
    .map(|_| ())
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        "query"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::AcqRel);
        self.server.used.fetch_add(additional, Ordering::AcqRel);
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::AcqRel);
        self.server.used.fetch_sub(shrink, Ordering::AcqRel);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        ending::check_batch()?;
        let refused = |limit: &str, used: usize, bytes_max: usize| {
            Err(DataFusionError::ResourcesExhausted(format!(
                "not enough memory for {}: {additional} more bytes needed, {used} of at most {bytes_max} bytes used; \
                 see {limit}",
                reservation.consumer().name()
            )))
        };
        if let Err(used) = take(&self.used, additional, self.bytes_max) {
            return refused("query_memory_bytes_max", used, self.bytes_max);
        }
        let (room, setting) = self.server.room();
        if let Err(used) = take(&self.server.used, additional, room) {
            self.used.fetch_sub(additional, Ordering::AcqRel);
            return refused(setting, used, room);
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_smaller_where_statements_have_little_room() {
        let of = |bytes_max| ServerMemory::new(usize::MAX, Arc::new(MemberMemory::new(bytes_max))).batch_rows(8_192);
        assert_eq!((of(None), of(Some(1 << 30)), of(Some(512 << 20))), (8_192, 8_192, 8_192));
        assert_eq!((of(Some(128 << 20)), of(Some(1 << 20))), (2_048, 1_024));
    }
}
