//! Settings of partitions and maps, with defaults, units and reasons.

use filbert_data::PartitionId;

/// What makes a partition this one, of this member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionSettings {
    /// The partition's number, named in events.
    pub id: PartitionId,
    /// Seed of the hash of keys, and so of the order in which entries are fetched; of nothing else, so that each replica may
    /// have its own. Secret seeds keep clients from making keys that collide.
    pub hash_seed: u64,
    /// Whether reads happen at the time that they bring along, also where commands have come with later ones. Who follows a log needs
    /// this: the log knows of reads that keep entries alive only up to the time at which it was asked. Whoever reads answers for the time.
    pub reads_before_commands: bool,
}

/// Settings of one map, the same in all partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSettings {
    /// Time to live of entries put without one, in milliseconds; 0 = for ever (the default).
    pub ttl_default_ms: i64,
    /// Max idle time of entries put without one, in milliseconds; 0 = for ever (the default).
    pub max_idle_default_ms: i64,
    /// Entries compared to pick one for eviction. Default 15: picks among the best 7 % most of the time, and
    /// one or two segments of the table hold as many.
    pub eviction_sample_size: usize,
    /// The event journal; none by default.
    pub journal: Option<JournalSettings>,
    /// Completed unlocks remembered per partition, so that a retried one is answered as the first time. Default 64:
    /// a retry comes within seconds, and few unlocks of one partition go by in that time.
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

/// Settings of a map's event journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSettings {
    /// Events kept per partition; the oldest gives way. Default 36: 10,000 over 271 partitions.
    pub capacity: usize,
    /// Milliseconds that an event is kept; 0 = until it gives way (the default).
    pub ttl_ms: i64,
}

impl Default for JournalSettings {
    fn default() -> Self {
        JournalSettings { capacity: 36, ttl_ms: 0 }
    }
}

/// How eviction picks an entry out of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EvictionPolicy {
    /// Evicts nothing.
    #[default]
    None,
    /// The one read or written the longest ago.
    Lru,
    /// The one read the fewest times; among equals, the one used the longest ago.
    Lfu,
    /// Any.
    Random,
}
