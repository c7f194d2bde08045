//! Read-only views of a partition: entries, lock states, positions of iterations, and statistics.

use crate::{Caller, Millis};

/// An entry with its metadata. Times are in Unix milliseconds; the times of creation, update and
/// access have a resolution of 250 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryView<'p> {
    /// The key's bytes.
    pub key: &'p [u8],
    /// The value's bytes.
    pub value: &'p [u8],
    /// The bytes of memory that the entry takes, including its slot in the table.
    pub cost: usize,
    /// The time of creation.
    pub created_ms: i64,
    /// The time of the last write of the value; initially the time of creation.
    pub updated_ms: i64,
    /// The time of the last read or write.
    pub accessed_ms: i64,
    /// The time of the last write by a map store: 0, because there is no map store.
    pub stored_ms: i64,
    /// The time at which the entry expires if it is not used again; `i64::MAX` = never.
    pub expires_ms: i64,
    /// The number of reads.
    pub hits: u64,
    /// The number of updates.
    pub version: u64,
    /// The time to live in milliseconds; `i64::MAX` = unlimited.
    pub ttl_ms: i64,
    /// The max idle time in milliseconds; `i64::MAX` = unlimited.
    pub max_idle_ms: i64,
}

/// The state of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockState {
    /// The owner.
    pub owner: Caller,
    /// The number of unlocks required to free the key; at least 1.
    pub count: u32,
    /// The end of the lease, if there is one.
    pub lease_until: Option<Millis>,
}

/// A position in the iteration over a map: all smaller hashes have been visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cursor(pub u32);

impl Cursor {
    /// The beginning of an iteration.
    pub const START: Cursor = Cursor(0);
}

/// The counters and sizes of one map in one partition. Counters start when the map is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapStatistics {
    /// The number of calls of `get`.
    pub gets: u64,
    /// The number of calls of `get` that found an entry.
    pub hits: u64,
    /// The number of puts of all modes, including puts that did not write.
    pub puts: u64,
    /// The number of removals by key, including those of absent entries.
    pub removes: u64,
    /// The number of evicted entries, because of the size or by request.
    pub evictions: u64,
    /// The number of entries freed because they had expired.
    pub expirations: u64,
    /// The number of entries, including expired ones that are not yet freed.
    pub entries: usize,
    /// The bytes of records: keys, values, headers, and the allocator's rounding.
    pub record_bytes: usize,
    /// The bytes of indexes, and of the slots that indexes and columns need.
    pub index_bytes: usize,
    /// The bytes of columns.
    pub column_bytes: usize,
    /// The bytes of everything: records, table, expiry, locks, journal, indexes, columns.
    pub bytes_owned: usize,
    /// The number of locked keys, including keys with an ended lease that are not freed yet.
    pub locked_keys: usize,
    /// The time of the latest write, or of the latest `get` that found an entry; 0 before the
    /// first. Unix milliseconds.
    pub last_access_ms: i64,
    /// The time of the latest write; 0 before the first. Unix milliseconds.
    pub last_update_ms: i64,
}

impl MapStatistics {
    /// Adds the statistics of another partition to these.
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
