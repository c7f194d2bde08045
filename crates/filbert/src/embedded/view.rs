//! Statistics of entries and maps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use filbert_data::FromBlob;

use super::Error;
use super::core::Core;

/// An entry with its statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryView<K, V> {
    /// The key.
    pub key: K,
    /// The value.
    pub value: V,
    /// Memory of the entry in bytes, key and value included.
    pub cost_bytes: usize,
    /// When the entry was created.
    pub created: SystemTime,
    /// When the value was last written.
    pub updated: SystemTime,
    /// When the entry was last read or written.
    pub accessed: SystemTime,
    /// When the entry expires if it is not accessed again. `None`: never.
    pub expires: Option<SystemTime>,
    /// Time to live after a write. `None`: for ever.
    pub ttl: Option<Duration>,
    /// Maximum idle time after a read or write. `None`: for ever.
    pub max_idle: Option<Duration>,
    /// The number of reads of the value.
    pub hits: u64,
    /// The number of updates of the value.
    pub version: u64,
}

impl<K: FromBlob, V: FromBlob> EntryView<K, V> {
    pub(super) fn read(core: &Core, view: &filbert_grid::EntryView<'_>) -> Result<EntryView<K, V>, Error> {
        Ok(EntryView {
            key: core.key(view.key)?,
            value: core.value(view.value)?,
            cost_bytes: view.cost,
            created: time(view.created_ms),
            updated: time(view.updated_ms),
            accessed: time(view.accessed_ms),
            expires: (view.expires_ms != i64::MAX).then(|| time(view.expires_ms)),
            ttl: duration(view.ttl_ms),
            max_idle: duration(view.max_idle_ms),
            hits: view.hits,
            version: view.version,
        })
    }
}

/// Counters and sizes of one map. Counters start when the map is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MapStatistics {
    /// The number of entries.
    pub entries: usize,
    /// Memory of the map in bytes: records, tables, locks, journal.
    pub bytes: usize,
    /// Reads by key.
    pub gets: u64,
    /// Reads by key that found an entry.
    pub hits: u64,
    /// Writes by key.
    pub puts: u64,
    /// Removals by key.
    pub removes: u64,
    /// Evicted entries.
    pub evictions: u64,
    /// Expired entries.
    pub expirations: u64,
    /// Locked keys.
    pub locked_keys: usize,
}

impl MapStatistics {
    pub(super) fn from_grid(statistics: &filbert_grid::MapStatistics) -> MapStatistics {
        MapStatistics {
            entries: statistics.entries,
            bytes: statistics.bytes_owned,
            gets: statistics.gets,
            hits: statistics.hits,
            puts: statistics.puts,
            removes: statistics.removes,
            evictions: statistics.evictions,
            expirations: statistics.expirations,
            locked_keys: statistics.locked_keys,
        }
    }
}

fn time(unix_ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_ms.max(0).unsigned_abs())
}

fn duration(ms: i64) -> Option<Duration> {
    (ms != i64::MAX && ms > 0).then(|| Duration::from_millis(ms.unsigned_abs()))
}
