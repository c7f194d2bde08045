//! What a member counts: operations by kind, how long they took, statements, and the front doors that are open.
//!
//! ```text
//!  door's connection ── Tally::add ── (one flush a batch) ──► Metrics, a shard for each thread ──► Metrics::operations
//!                    └─ now and then: begin .. end ─────────► a histogram of its kind
//!  statements: counted and timed on their way to the engine (statements.rs)
//! ```
//!
//! Counting must not slow down what is counted. A get takes some hundred nanoseconds, and a clock is read in some ten, so operations
//! are counted in a connection's own memory and added up once for all that arrived together, and only one of [`SAMPLE_EVERY`] such
//! batches is timed. Statements are counted and timed each.

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

/// One of this many batches of operations is timed.
pub const SAMPLE_EVERY: u32 = 64;

/// Threads that count in memory of their own; more share it.
const SHARDS: usize = 16;

macro_rules! operation_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What clients ask of maps.
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
    /// One entry is read.
    Get = "get",
    /// Some entries are read by their keys.
    GetAll = "get_all",
    /// Whether there is a key or a value.
    Contains = "contains",
    /// An entry is written, and the old value answered.
    Put = "put",
    /// An entry is written.
    Set = "set",
    /// Some entries are written.
    PutAll = "put_all",
    /// An entry is written if it is there, or equal to something.
    Replace = "replace",
    /// An entry is taken out, and its value answered.
    Remove = "remove",
    /// An entry is taken out.
    Delete = "delete",
    /// Entries are dropped: evict, clear, removeAll.
    Clear = "clear",
    /// How many entries there are.
    Size = "size",
    /// Keys, values or entries are listed, or read batch by batch.
    Iterate = "iterate",
    /// Entries are found by a predicate.
    Query = "query",
    /// A value is made of entries.
    Aggregate = "aggregate",
    /// Keys are locked and unlocked.
    Lock = "lock",
    /// Listeners are added and removed.
    Listen = "listen",
    /// The event journal is read.
    Journal = "journal",
    /// A statement, or a page of its result.
    Sql = "sql",
    /// Everything else: sessions, schemas, distributed objects.
    Other = "other",
}

const KINDS: usize = OperationKind::ALL.len();

/// Counts of one or some threads; on cache lines of its own, so that threads do not wait for each other's writes.
#[repr(align(128))]
#[derive(Default)]
struct Shard {
    operations: [AtomicU64; KINDS],
}

/// What a member counts. Found by [`Grid::metrics`](crate::Grid::metrics).
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

/// A front door that is open.
pub trait DoorMetrics: Send + Sync {
    /// Its figures now.
    fn figures(&self) -> DoorFigures;
}

/// Figures of a front door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorFigures {
    /// Its protocol, such as `http`.
    pub name: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
    /// Open connections.
    pub connections: usize,
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Connections turned away since the start.
    pub refused: u64,
    /// Bytes of the buffers that belong to its connections.
    pub buffer_bytes: usize,
}

/// Figures of one kind of operation.
#[derive(Clone, Debug)]
pub struct OperationFigures {
    /// The kind.
    pub kind: OperationKind,
    /// Operations since the start.
    pub count: u64,
    /// How long those that were timed took: some of them.
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
    /// Counts operations at once, for those that are rare. Others go through a [`Tally`].
    pub fn count(&self, kind: OperationKind, count: u64) {
        let shard = SHARD.try_with(|shard| *shard).unwrap_or_default();
        if let Some(counter) = self.shards.get(shard).and_then(|shard| shard.operations.get(kind as usize)) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Notes how long an operation took.
    pub fn observe(&self, kind: OperationKind, duration: Duration) {
        if let Some(histogram) = self.durations.get(kind as usize) {
            histogram.observe(duration);
        }
    }

    /// Figures of all kinds of operations.
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

    /// Figures of all kinds of statements.
    pub fn statements(&self) -> Vec<StatementFigures> {
        self.statements.figures()
    }

    /// Statements that run now, those whose rows are not all read among them.
    pub fn statements_running(&self) -> usize {
        self.statements.running()
    }

    /// Adds a door, which is asked for its figures as long as somebody else holds it.
    pub fn add_door(&self, door: &Arc<impl DoorMetrics + 'static>) {
        let door: Arc<dyn DoorMetrics> = door.clone();
        let mut doors = self.doors.lock();
        doors.retain(|door| door.strong_count() > 0);
        doors.push(Arc::downgrade(&door));
    }

    /// Figures of the doors that are open.
    pub fn doors(&self) -> Vec<DoorFigures> {
        let doors: Vec<Arc<dyn DoorMetrics>> = self.doors.lock().iter().filter_map(Weak::upgrade).collect();
        doors.iter().map(|door| door.figures()).collect()
    }
}

/// What one connection has counted since the last flush.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: [u32; KINDS],
    /// The kinds that were counted, a bit for each.
    seen: u32,
    /// Batches since the last one that was timed.
    batches: u32,
}

// Every kind has its bit.
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

    /// Begins a batch; the moment, if this one is to be timed.
    #[inline]
    pub fn begin(&mut self) -> Option<Instant> {
        self.batches += 1;
        if self.batches < SAMPLE_EVERY {
            return None;
        }
        self.batches = 0;
        Some(Instant::now())
    }

    /// Ends a batch: adds what was counted to the member's figures, and notes how long it took if [`Tally::begin`] said so and all
    /// operations of it are of one kind.
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
