//! The settings of partitions and maps, with defaults, units and reasons.

use filbert_data::PartitionId;

/// The settings of a partition of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionSettings {
    /// The number of the partition, which events contain.
    pub id: PartitionId,
    /// The seed of the hash of keys. It also determines the order of iteration, and nothing else,
    /// so each replica may have its own. A secret seed prevents clients from creating keys that
    /// collide.
    pub hash_seed: u64,
    /// Whether a read happens at the time that it is given, even if a command with a later time was
    /// applied. A replica that follows a log needs this, because its log contains the reads that
    /// keep entries alive only up to the time of the read point. The caller ensures that the time
    /// of its reads does not go back.
    pub exact_read_times: bool,
}

/// The settings of one map, the same in all partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSettings {
    /// The time to live of entries that are put without one, in milliseconds; 0 = unlimited (the
    /// default).
    pub ttl_default_ms: i64,
    /// The max idle time of entries that are put without one, in milliseconds; 0 = unlimited (the
    /// default).
    pub max_idle_default_ms: i64,
    /// The number of entries compared to pick one for eviction. Default 15: the picked entry is
    /// usually among the best 7 %, and one or two segments of the table contain as many entries.
    pub eviction_sample_size: usize,
    /// The event journal; none by default.
    pub journal: Option<JournalSettings>,
    /// The number of completed unlocks remembered per partition, so that a retry gets the same
    /// reply. Default 64: a retry arrives within seconds, and a partition has few unlocks in that
    /// time.
    pub unlock_memory_max: usize,
}

impl Default for MapSettings {
    fn default() -> Self {
        MapSettings {
            ttl_default_ms: 0,
            max_idle_default_ms: 0,
            eviction_sample_size: 15,
            journal: None,
            unlock_memory_max: 64,
        }
    }
}

/// The settings of the event journal of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSettings {
    /// The number of events kept per partition. The oldest event is dropped first. Default 36:
    /// 10,000 over 271 partitions.
    pub capacity: usize,
    /// The time for which an event is kept, in milliseconds; 0 = until the capacity is reached (the
    /// default).
    pub ttl_ms: i64,
}

impl Default for JournalSettings {
    fn default() -> Self {
        JournalSettings { capacity: 36, ttl_ms: 0 }
    }
}

/// The policy of eviction, which picks an entry from a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EvictionPolicy {
    /// Evicts nothing.
    #[default]
    None,
    /// The least recently used entry: read or written the longest ago.
    Lru,
    /// The least frequently used entry: read the fewest times; among equals, the least recently
    /// used.
    Lfu,
    /// Any entry.
    Random,
}
