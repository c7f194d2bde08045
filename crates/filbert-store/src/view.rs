//! What can be seen of a partition without its bytes: entry views, lock states, statistics, positions in an iteration.

use crate::{Caller, Millis};

/// An entry with all that is known of it. Times in Unix milliseconds, with a resolution of 250 ms for those of creation,
/// update and access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryView<'p> {
    /// The key's bytes.
    pub key: &'p [u8],
    /// The value's bytes.
    pub value: &'p [u8],
    /// Bytes of memory that the entry takes, its slot in the table included.
    pub cost: usize,
    /// When the entry was created.
    pub created_ms: i64,
    /// When its value was last written; the time of creation when it never was since.
    pub updated_ms: i64,
    /// When it was last read or written.
    pub accessed_ms: i64,
    /// When a map store last wrote it: 0, as there is no map store.
    pub stored_ms: i64,
    /// When it expires unless it is used again; `i64::MAX` = never.
    pub expires_ms: i64,
    /// Number of reads.
    pub hits: u64,
    /// Number of updates.
    pub version: u64,
    /// Time to live in milliseconds; `i64::MAX` = for ever.
    pub ttl_ms: i64,
    /// Max idle time in milliseconds; `i64::MAX` = for ever.
    pub max_idle_ms: i64,
}

/// Who holds a lock, how often, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockState {
    /// The holder.
    pub owner: Caller,
    /// How many unlocks it takes to free the key; at least 1.
    pub count: u32,
    /// When the lease ends, if it does.
    pub lease_until: Option<Millis>,
}

/// A position in the iteration over a map: all hashes below it are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cursor(pub u32);

impl Cursor {
    /// Where an iteration begins.
    pub const START: Cursor = Cursor(0);
}

/// Counters and sizes of one map in one partition. Counters begin when the map is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapStatistics {
    /// Calls of `get`.
    pub gets: u64,
    /// Calls of `get` that found an entry.
    pub hits: u64,
    /// Puts of any mode, also those that found a reason not to write.
    pub puts: u64,
    /// Removals of any kind asked for by key, also of absent entries.
    pub removes: u64,
    /// Entries evicted, by size or by request.
    pub evictions: u64,
    /// Entries freed because their time was over.
    pub expirations: u64,
    /// Entries held, expired ones not yet freed included.
    pub entries: usize,
    /// Bytes of records: keys, values, headers and the allocator's rounding.
    pub record_bytes: usize,
    /// Bytes of indexes, and of the numbering of entries that indexes and columns need.
    pub index_bytes: usize,
    /// Bytes of columns.
    pub column_bytes: usize,
    /// Bytes of everything: records, table, expiry, locks, journal, indexes, columns.
    pub bytes_owned: usize,
    /// Locked keys, leases that ended but are not yet freed included.
    pub locked_keys: usize,
    /// The latest `get` that found an entry, or the latest write; 0 before the first. Unix milliseconds.
    pub last_access_ms: i64,
    /// The latest write; 0 before the first. Unix milliseconds.
    pub last_update_ms: i64,
}

impl MapStatistics {
    /// Adds another partition's figures to these.
    pub fn add(&mut self, other: &MapStatistics) {
        self.gets += other.gets;
        self.hits += other.hits;
        self.puts += other.puts;
        self.removes += other.removes;
        self.evictions += other.evictions;
        self.expirations += other.expirations;
        self.entries += other.entries;
        self.record_bytes += other.record_bytes;
        self.index_bytes += other.index_bytes;
        self.column_bytes += other.column_bytes;
        self.bytes_owned += other.bytes_owned;
        self.locked_keys += other.locked_keys;
        self.last_access_ms = self.last_access_ms.max(other.last_access_ms);
        self.last_update_ms = self.last_update_ms.max(other.last_update_ms);
    }
}
