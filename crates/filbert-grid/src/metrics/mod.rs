//! The metrics of a member: counts and durations of operations by kind, statements, and open front
//! doors.
//!
//! ```text
//!  door's connection ── Tally::add ── (once per batch) ──► Metrics, shard of the thread
//!                    └─ sampled: begin .. end ───────────► the histogram of the operation's kind
//!  Metrics::operations ── sums the shards
//!  statements: counted and timed by a wrapper of the engine (statements.rs)
//! ```
//!
//! Counting must not slow down the counted operations. A get takes a few hundred nanoseconds, and
//! reading a clock some ten. So operations are counted in the connection's own memory and added
//! once for a batch of requests that arrived together. Only one of [`SAMPLE_EVERY`] batches is
//! timed. Every statement is counted and timed.

mod histogram;
mod statements;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use histogram::{Histogram, HistogramCounts};
pub(crate) use statements::Metered;
pub use statements::{StatementFigures, StatementKind};

/// One of this number of batches is timed.
pub const SAMPLE_EVERY: u32 = 64;

/// The number of shards. If there are more threads, threads share shards.
const SHARDS: usize = 16;

macro_rules! operation_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The kinds of map operations of clients.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum OperationKind {
            $($(#[$doc])* $kind,)*
        }

        impl OperationKind {
            /// Every kind, in order.
            pub const ALL: [OperationKind; [$($name),*].len()] = [$(OperationKind::$kind),*];

            /// The name in metrics.
            pub const fn name(self) -> &'static str {
                match self { $(OperationKind::$kind => $name,)* }
            }
        }
    };
}

operation_kinds! {
    /// Reads one entry.
    Get = "get",
    /// Reads several entries by key.
    GetAll = "get_all",
    /// Checks whether a key or a value exists.
    Contains = "contains",
    /// Writes an entry, and returns the old value.
    Put = "put",
    /// Writes an entry.
    Set = "set",
    /// Writes several entries.
    PutAll = "put_all",
    /// Writes an entry if it exists, or if it has an expected value.
    Replace = "replace",
    /// Removes an entry, and returns its value.
    Remove = "remove",
    /// Removes an entry.
    Delete = "delete",
    /// Removes several entries: evict, clear, removeAll.
    Clear = "clear",
    /// Counts the entries.
    Size = "size",
    /// Lists keys, values or entries, or reads them in batches.
    Iterate = "iterate",
    /// Finds entries by a predicate.
    Query = "query",
    /// Aggregates entries.
    Aggregate = "aggregate",
    /// Locks or unlocks keys.
    Lock = "lock",
    /// Adds or removes listeners.
    Listen = "listen",
    /// Reads the event journal.
    Journal = "journal",
    /// Executes a statement, or reads a page of its result.
    Sql = "sql",
    /// All other operations: sessions, schemas, distributed objects.
    Other = "other",
}

const KINDS: usize = OperationKind::ALL.len();

/// The counters of one or more threads, on separate cache lines, so that threads do not slow down
/// each other's writes.
#[repr(align(128))]
#[derive(Default)]
struct Shard {
    operations: [AtomicU64; KINDS],
}

/// The metrics of a member, see [`Grid::metrics`](crate::Grid::metrics).
pub struct Metrics {
    shards: [Shard; SHARDS],
    durations: [Histogram; KINDS],
    pub(crate) statements: statements::Statements,
    doors: Mutex<Vec<Weak<dyn DoorMetrics>>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let (shards, doors) = Default::default();
        let durations = std::array::from_fn(|_| Histogram::default());
        Metrics { shards, durations, statements: statements::Statements::default(), doors }
    }
}

/// An open front door.
pub trait DoorMetrics: Send + Sync {
    /// Its current statistics.
    fn figures(&self) -> DoorFigures;
}

/// Statistics of a front door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorFigures {
    /// The name of its protocol, for example `http`.
    pub name: &'static str,
    /// The address at which it listens.
    pub address: SocketAddr,
    /// The number of open connections.
    pub connections: usize,
    /// The number of connections accepted since the start.
    pub accepted: u64,
    /// The number of connections refused since the start.
    pub refused: u64,
    /// Bytes of its connections' buffers.
    pub buffer_bytes: usize,
}

/// Statistics of one kind of operation.
#[derive(Clone, Debug)]
pub struct OperationFigures {
    /// The kind.
    pub kind: OperationKind,
    /// The number of operations since the start.
    pub count: u64,
    /// The durations of the sampled operations.
    pub durations: HistogramCounts,
}

thread_local! {
    /// The shard of this thread.
    static SHARD: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS
    };
}

impl Metrics {
    /// Counts rare operations directly. Frequent ones are counted with a [`Tally`].
    pub fn count(&self, kind: OperationKind, count: u64) {
        let shard = SHARD.try_with(|shard| *shard).unwrap_or_default();
        if let Some(counter) = self.shards.get(shard).and_then(|shard| shard.operations.get(kind as usize)) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Records the duration of an operation.
    pub fn observe(&self, kind: OperationKind, duration: Duration) {
        if let Some(histogram) = self.durations.get(kind as usize) {
            histogram.observe(duration);
        }
    }

    /// Statistics of all kinds of operations.
    pub fn operations(&self) -> Vec<OperationFigures> {
        let of_kind = |kind: OperationKind| {
            let in_shard =
                |shard: &Shard| shard.operations.get(kind as usize).map_or(0, |count| count.load(Ordering::Relaxed));
            OperationFigures {
                kind,
                count: self.shards.iter().map(in_shard).sum(),
                durations: self.durations.get(kind as usize).map_or_else(HistogramCounts::default, Histogram::counts),
            }
        };
        OperationKind::ALL.into_iter().map(of_kind).collect()
    }

    /// Statistics of all kinds of statements.
    pub fn statements(&self) -> Vec<StatementFigures> {
        self.statements.figures()
    }

    /// The number of running statements, including those with unread rows.
    pub fn statements_running(&self) -> usize {
        self.statements.running()
    }

    /// Adds a door. Its statistics are reported as long as the caller keeps it alive.
    pub fn add_door(&self, door: &Arc<impl DoorMetrics + 'static>) {
        let door: Arc<dyn DoorMetrics> = door.clone();
        let mut doors = self.doors.lock();
        doors.retain(|door| door.strong_count() > 0);
        doors.push(Arc::downgrade(&door));
    }

    /// Statistics of the open doors.
    pub fn doors(&self) -> Vec<DoorFigures> {
        let doors: Vec<Arc<dyn DoorMetrics>> = self.doors.lock().iter().filter_map(Weak::upgrade).collect();
        doors.iter().map(|door| door.figures()).collect()
    }
}

/// The counts of one connection since its last flush.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: [u32; KINDS],
    /// The set of counted kinds, one bit for each.
    seen: u32,
    /// The number of batches since the last timed one.
    batches: u32,
}

// Each kind needs a bit.
const _: () = assert!(KINDS <= u32::BITS as usize);

impl Tally {
    /// Counts operations of one kind.
    #[inline]
    pub fn add(&mut self, kind: OperationKind, count: u32) {
        if let Some(counter) = self.counts.get_mut(kind as usize) {
            *counter = counter.wrapping_add(count);
        }
        self.seen |= 1 << kind as u32;
    }

    /// Starts a batch. Returns the current time if this batch is timed.
    #[inline]
    pub fn begin(&mut self) -> Option<Instant> {
        self.batches += 1;
        if self.batches < SAMPLE_EVERY {
            return None;
        }
        self.batches = 0;
        Some(Instant::now())
    }

    /// Ends a batch: adds its counts to the member's metrics. If [`Tally::begin`] returned a time,
    /// and all operations of the batch are of one kind, it also records the mean duration.
    #[inline]
    pub fn end(&mut self, started: Option<Instant>, metrics: &Metrics) {
        if self.seen != 0 {
            self.flush(started, metrics);
        }
    }

    fn flush(&mut self, started: Option<Instant>, metrics: &Metrics) {
        let is_single = self.seen.is_power_of_two();
        while self.seen != 0 {
            let bit = self.seen.trailing_zeros() as usize;
            self.seen &= self.seen - 1;
            let (Some(kind), Some(counter)) = (OperationKind::ALL.get(bit), self.counts.get_mut(bit)) else { continue };
            let count = std::mem::take(counter);
            metrics.count(*kind, count.into());
            if let Some(started) = started
                && is_single
            {
                metrics.observe(*kind, started.elapsed() / count.max(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(metrics: &Metrics, kind: OperationKind) -> (u64, u64) {
        let figures = metrics.operations();
        let of_kind = figures.iter().find(|figures| figures.kind == kind).unwrap();
        (of_kind.count, of_kind.durations.count())
    }

    #[test]
    fn a_batch_is_added_when_it_ends_and_some_are_timed() {
        let metrics = Metrics::default();
        let mut tally = Tally::default();
        let mut timed = 0;
        for _ in 0..SAMPLE_EVERY * 2 {
            let started = tally.begin();
            timed += usize::from(started.is_some());
            tally.add(OperationKind::Get, 10);
            tally.end(started, &metrics);
        }
        assert_eq!(timed, 2);
        assert_eq!(counts(&metrics, OperationKind::Get), (u64::from(SAMPLE_EVERY) * 20, 2));
        assert_eq!(counts(&metrics, OperationKind::Put), (0, 0));
    }

    #[test]
    fn a_batch_of_several_kinds_is_counted_and_not_timed() {
        let metrics = Metrics::default();
        let mut tally = Tally::default();
        tally.add(OperationKind::Put, 1);
        tally.add(OperationKind::Other, 2);
        tally.end(Some(Instant::now()), &metrics);
        tally.end(Some(Instant::now()), &metrics);
        assert_eq!(counts(&metrics, OperationKind::Put), (1, 0));
        assert_eq!(counts(&metrics, OperationKind::Other), (2, 0));
    }

    #[test]
    fn threads_count_together() {
        let metrics = Metrics::default();
        std::thread::scope(|scope| {
            for _ in 0..SHARDS * 2 {
                scope.spawn(|| (0..1000).for_each(|_| metrics.count(OperationKind::Set, 1)));
            }
        });
        assert_eq!(counts(&metrics, OperationKind::Set).0, SHARDS as u64 * 2000);
    }

    #[test]
    fn a_door_is_forgotten_with_its_owner() {
        struct Door;
        impl DoorMetrics for Door {
            fn figures(&self) -> DoorFigures {
                let address = SocketAddr::from(([127, 0, 0, 1], 1));
                DoorFigures { name: "d", address, connections: 1, accepted: 2, refused: 0, buffer_bytes: 3 }
            }
        }
        let metrics = Metrics::default();
        let door = Arc::new(Door);
        metrics.add_door(&door);
        assert_eq!(metrics.doors().len(), 1);
        drop(door);
        assert_eq!(metrics.doors().len(), 0);
    }
}
