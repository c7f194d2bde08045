//! The settings of one member: their defaults, units and reasons. Where they come from (files, flags, code) is not known
//! here.

use std::collections::HashMap;

use filbert_data::{FieldPath, FieldType};
pub use filbert_store::IndexKind;
use filbert_store::{ColumnType, EvictionPolicy};
use uuid::Uuid;

use crate::errors::GridError;
use crate::{indexes, patterns};

/// The most entries that Hazelcast's eviction setting can express; it stands for "no limit".
pub const SIZE_UNLIMITED: u32 = i32::MAX as u32;

/// The settings of one member.
#[derive(Debug, Clone, PartialEq)]
pub struct GridConfig {
    /// Name that clients must know to be let in. Default `dev`, as in Hazelcast.
    pub cluster_name: String,
    /// The member's UUID. `None`, the default, makes one from the environment's random seed.
    pub member_uuid: Option<Uuid>,
    /// Id of the cluster, which its members have in common. Default none: one of this member's own.
    pub cluster_uuid: Option<Uuid>,
    /// Seed of the hashes by which partitions order their entries, which clients must not know. `None`, the default, draws one. Members of a
    /// cluster have it in common: a position in a map that one of them gave is a position of each.
    pub hash_seed: Option<u64>,
    /// Number of partitions, 1 to 65,535. Default 271, as in Hazelcast: clients learn it when they connect, and it must
    /// be the same in every cluster that exchanges data with this one.
    pub partition_count: u32,
    /// Settings of maps by name or pattern.
    pub maps: MapConfigs,
    /// Bytes that the maps of this member may take, keys, values and tables together. `None`, the default, sets no
    /// limit: only the operator knows what else runs on the machine.
    pub memory_bytes_max: Option<usize>,
    /// Bytes of all that is under way: messages that are being received, bodies, events that clients have not read, what
    /// sessions keep. Default half of `memory_bytes_max`, at least 64 MiB and at most 1 GiB; 1 GiB without it: as much as the largest
    /// message, and little enough beside the maps that a member can be sized by both together.
    pub buffers_bytes_max: Option<usize>,
    /// Changes that may wait for locked keys at once, on the whole member. Default 100,000: more than that means that
    /// clients retry against a lock that is never freed, and each waiter holds its key and value in memory.
    pub lock_waiters_max: usize,
    /// Distributed objects (maps and others) of this member. Default 10,000: each map costs a few bytes per partition
    /// even when it is empty, so a client that makes names without end would take all memory.
    pub objects_max: usize,
    /// Compact schemas. Default 10,000: far above what applications have, and a bound for one that makes them up.
    pub schemas_max: usize,
    /// Fields of one Compact schema. Default 10,000, for the same reason.
    pub schema_fields_max: usize,
    /// Indexes that may be declared for one map. Default 256: each will cost memory for every entry, and one that clients
    /// make up names for would grow without end.
    pub indexes_max: usize,
    /// Listeners of any kind on the whole member. Default 100,000: each mutation asks those of its map.
    pub listeners_max: usize,
    /// Bytes of the statistics text that one client may leave here. Default 65,536: stock clients send a few thousand.
    pub client_statistics_bytes_max: usize,
    /// Milliseconds after which the expiry sweep looks at the partitions at the latest. Default 1,000: what is expired
    /// is never shown to readers, so the sweep only decides how soon memory is given back.
    pub expiry_interval_ms_max: i64,
    /// Milliseconds that pass between two sweeps at least. Default 5: it bounds the work that many entries with
    /// neighbouring deadlines cause, and how late a lock's lease or a lock wait may end.
    pub expiry_interval_ms_min: i64,
    /// Entries that a sweep frees before it lets others at the partition. Default 1,000: about a tenth of a millisecond.
    pub expire_batch_max: usize,
}

impl Default for GridConfig {
    fn default() -> Self {
        Self {
            cluster_name: "dev".to_owned(),
            member_uuid: None,
            cluster_uuid: None,
            hash_seed: None,
            partition_count: 271,
            maps: MapConfigs::default(),
            memory_bytes_max: None,
            buffers_bytes_max: None,
            lock_waiters_max: 100_000,
            objects_max: 10_000,
            schemas_max: 10_000,
            schema_fields_max: 10_000,
            indexes_max: 256,
            listeners_max: 100_000,
            client_statistics_bytes_max: 65_536,
            expiry_interval_ms_max: 1_000,
            expiry_interval_ms_min: 5,
            expire_batch_max: 1_000,
        }
    }
}

/// The least and the most that buffers may take unless told otherwise.
const BUFFERS_BYTES: std::ops::RangeInclusive<usize> = 64 << 20..=1 << 30;

impl GridConfig {
    /// Bytes that buffers may take: the setting, or its default.
    pub fn buffers_bytes(&self) -> usize {
        let default = || {
            let half = self.memory_bytes_max.map_or(usize::MAX, |max| max / 2);
            half.clamp(*BUFFERS_BYTES.start(), *BUFFERS_BYTES.end())
        };
        self.buffers_bytes_max.unwrap_or_else(default)
    }

    /// Checks what can be checked before the member starts.
    ///
    /// # Errors
    /// [`GridError::InvalidConfiguration`] with the setting, what was found and what was expected.
    pub fn validate(&self) -> Result<(), GridError> {
        if !(1..=65_535).contains(&self.partition_count) {
            return Err(GridError::InvalidConfiguration(format!(
                "partition count is {}, expected 1 to 65535",
                self.partition_count
            )));
        }
        if self.expire_batch_max == 0 {
            return Err(GridError::InvalidConfiguration("expire_batch_max is 0, expected at least 1".to_owned()));
        }
        if self.expiry_interval_ms_min < 1 || self.expiry_interval_ms_max < self.expiry_interval_ms_min {
            return Err(GridError::InvalidConfiguration(format!(
                "expiry intervals are {} ms at least and {} ms at most, expected 1 <= least <= most",
                self.expiry_interval_ms_min, self.expiry_interval_ms_max
            )));
        }
        for (pattern, map) in self.maps.iter() {
            patterns::check(pattern)?;
            map.validate(pattern, self.memory_bytes_max)?;
        }
        Ok(())
    }
}

/// Settings of maps: one set per exact name or wildcard pattern, and the settings of all other maps.
///
/// A name is looked up exactly first; then the pattern (one `*`, which stands for any text) with the most literal
/// characters wins; two that fit equally well are an error; then the set named `default`, then the built-in defaults.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MapConfigs {
    by_pattern: HashMap<String, MapConfig>,
    fallback: MapConfig,
}

impl MapConfigs {
    /// The name of the set that maps without a set of their own get.
    pub const DEFAULT_NAME: &'static str = "default";

    /// Adds or replaces the settings of a name or pattern. Patterns are checked by [`GridConfig::validate`].
    pub fn insert(&mut self, pattern: impl Into<String>, config: MapConfig) -> Option<MapConfig> {
        self.by_pattern.insert(pattern.into(), config)
    }

    /// The settings of the map `name`. What follows an `@` in a name chooses a partition and is not part of the lookup.
    ///
    /// # Errors
    /// [`GridError::AmbiguousPattern`] when two patterns fit equally well.
    pub fn find(&self, name: &str) -> Result<&MapConfig, GridError> {
        let base = name.split_once('@').map_or(name, |(base, _)| base);
        if let Some(exact) = self.by_pattern.get(base) {
            return Ok(exact);
        }
        let best = patterns::best_match(self.by_pattern.keys().map(String::as_str), base)?;
        Ok(best
            .and_then(|pattern| self.by_pattern.get(pattern))
            .or_else(|| self.by_pattern.get(Self::DEFAULT_NAME))
            .unwrap_or(&self.fallback))
    }

    /// All sets with their names or patterns, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &MapConfig)> {
        self.by_pattern.iter().map(|(pattern, config)| (pattern.as_str(), config))
    }
}

/// The settings of one map, or of all maps whose name fits a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct MapConfig {
    /// How values are kept. Default [`InMemoryFormat::Binary`].
    pub in_memory_format: InMemoryFormat,
    /// What is dropped when the map is full. Default: nothing.
    pub eviction: EvictionConfig,
    /// Seconds that an entry lives after its last update, unless the write says otherwise. Default 0: for ever.
    pub ttl_seconds: u32,
    /// Seconds that an entry lives after its last read or update, unless the write says otherwise. Default 0: for ever.
    pub max_idle_seconds: u32,
    /// The ring of past changes that clients can read. Default: none.
    pub event_journal: Option<EventJournalConfig>,
    /// Indexes, by which queries find entries. Default: none.
    pub indexes: Vec<IndexConfig>,
    /// Fields kept as columns beside the entries, so that queries that look at all entries need not read them from each.
    /// Default: none.
    pub columns: Vec<ColumnConfig>,
    /// Near cache that clients were told to have here; kept for them.
    pub near_cache: Option<NearCacheConfig>,
    /// Whether the map's statistics are reported. They are counted in any case, since counting costs next to nothing.
    /// Default `true`.
    pub statistics_enabled: bool,
    /// Whether hits and access times of each entry are reported. They are kept in any case. Default `false`, as in
    /// Hazelcast.
    pub per_entry_stats_enabled: bool,
    /// Synchronous copies in a cluster; kept for it. Default 1.
    pub backup_count: u8,
    /// Asynchronous copies in a cluster; kept for it. Default 0.
    pub async_backup_count: u8,
    /// Whether a member may answer a read from a copy; kept for clusters. Default `false`.
    pub read_backup_data: bool,
}

impl Default for MapConfig {
    fn default() -> Self {
        Self {
            in_memory_format: InMemoryFormat::Binary,
            eviction: EvictionConfig::default(),
            ttl_seconds: 0,
            max_idle_seconds: 0,
            event_journal: None,
            indexes: Vec::new(),
            columns: Vec::new(),
            near_cache: None,
            statistics_enabled: true,
            per_entry_stats_enabled: false,
            backup_count: 1,
            async_backup_count: 0,
            read_backup_data: false,
        }
    }
}

impl MapConfig {
    fn validate(&self, pattern: &str, memory_bytes_max: Option<usize>) -> Result<(), GridError> {
        let invalid = |text: String| Err(GridError::InvalidConfiguration(format!("map {pattern:?}: {text}")));
        let eviction = &self.eviction;
        if eviction.policy != EvictionPolicy::None {
            let policy = eviction.max_size_policy;
            if policy.needs_memory_limit() && memory_bytes_max.is_none() {
                return invalid(format!("max size policy {} needs a memory limit (memory_bytes_max)", policy.name()));
            }
            if policy.is_percentage() && eviction.size > 100 {
                return invalid(format!("eviction size is {} %, expected 0 to 100", eviction.size));
            }
        }
        for index in &self.indexes {
            indexes::normalized(pattern, index.clone())?;
        }
        for column in &self.columns {
            column.check(pattern)?;
        }
        if let Some(journal) = &self.event_journal
            && journal.capacity == 0
        {
            return invalid("event journal capacity is 0, expected at least 1".to_owned());
        }
        Ok(())
    }
}

/// How values are kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InMemoryFormat {
    /// The bytes as the client sent them.
    #[default]
    Binary,
    /// Accepted for the sake of existing configurations; the same as [`InMemoryFormat::Binary`].
    Object,
    /// Hazelcast's off-heap memory. All memory is off the Java heap here, so it is the same as `Binary`.
    Native,
}

impl InMemoryFormat {
    /// The name in Hazelcast's configuration.
    pub const fn name(self) -> &'static str {
        match self {
            InMemoryFormat::Binary => "BINARY",
            InMemoryFormat::Object => "OBJECT",
            InMemoryFormat::Native => "NATIVE",
        }
    }

    /// The format of that name; letter case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Binary, Self::Object, Self::Native].into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
    }
}

/// When and how a map makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvictionConfig {
    /// Which entries go first. Default none: the map grows until the member's memory limit.
    pub policy: EvictionPolicy,
    /// What `size` counts. Default [`MaxSizePolicy::PerNode`].
    pub max_size_policy: MaxSizePolicy,
    /// The limit, in the unit of `max_size_policy`. Default [`SIZE_UNLIMITED`]; 0 means the same.
    pub size: u32,
}

impl Default for EvictionConfig {
    fn default() -> Self {
        Self { policy: EvictionPolicy::None, max_size_policy: MaxSizePolicy::PerNode, size: SIZE_UNLIMITED }
    }
}

/// The name of an eviction policy in Hazelcast's configuration.
pub const fn eviction_policy_name(policy: EvictionPolicy) -> &'static str {
    match policy {
        EvictionPolicy::None => "NONE",
        EvictionPolicy::Lru => "LRU",
        EvictionPolicy::Lfu => "LFU",
        EvictionPolicy::Random => "RANDOM",
    }
}

/// The eviction policy of that name; letter case does not matter.
pub fn eviction_policy_from_name(name: &str) -> Option<EvictionPolicy> {
    [EvictionPolicy::None, EvictionPolicy::Lru, EvictionPolicy::Lfu, EvictionPolicy::Random]
        .into_iter()
        .find(|policy| eviction_policy_name(*policy).eq_ignore_ascii_case(name))
}

/// What a map's eviction size counts.
///
/// Hazelcast's heap policies speak of the Java heap. There is none here: the map's own bytes stand for used heap, and
/// the member's memory limit stands for the heap's size. One MB is 1,048,576 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaxSizePolicy {
    /// Entries of the map on this member; kept exactly.
    PerNode,
    /// Entries of the map in each partition; kept exactly.
    PerPartition,
    /// MB that the map takes on this member.
    UsedHeapSize,
    /// Percentage of the member's memory limit that the map takes.
    UsedHeapPercentage,
    /// MB of the member's memory limit that must stay free.
    FreeHeapSize,
    /// Percentage of the member's memory limit that must stay free.
    FreeHeapPercentage,
    /// As [`MaxSizePolicy::UsedHeapSize`].
    UsedNativeMemorySize,
    /// As [`MaxSizePolicy::UsedHeapPercentage`].
    UsedNativeMemoryPercentage,
    /// As [`MaxSizePolicy::FreeHeapSize`].
    FreeNativeMemorySize,
    /// As [`MaxSizePolicy::FreeHeapPercentage`].
    FreeNativeMemoryPercentage,
}

impl MaxSizePolicy {
    /// Every policy.
    pub const ALL: [MaxSizePolicy; 10] = [
        MaxSizePolicy::PerNode,
        MaxSizePolicy::PerPartition,
        MaxSizePolicy::UsedHeapSize,
        MaxSizePolicy::UsedHeapPercentage,
        MaxSizePolicy::FreeHeapSize,
        MaxSizePolicy::FreeHeapPercentage,
        MaxSizePolicy::UsedNativeMemorySize,
        MaxSizePolicy::UsedNativeMemoryPercentage,
        MaxSizePolicy::FreeNativeMemorySize,
        MaxSizePolicy::FreeNativeMemoryPercentage,
    ];

    /// The name in Hazelcast's configuration.
    pub const fn name(self) -> &'static str {
        match self {
            MaxSizePolicy::PerNode => "PER_NODE",
            MaxSizePolicy::PerPartition => "PER_PARTITION",
            MaxSizePolicy::UsedHeapSize => "USED_HEAP_SIZE",
            MaxSizePolicy::UsedHeapPercentage => "USED_HEAP_PERCENTAGE",
            MaxSizePolicy::FreeHeapSize => "FREE_HEAP_SIZE",
            MaxSizePolicy::FreeHeapPercentage => "FREE_HEAP_PERCENTAGE",
            MaxSizePolicy::UsedNativeMemorySize => "USED_NATIVE_MEMORY_SIZE",
            MaxSizePolicy::UsedNativeMemoryPercentage => "USED_NATIVE_MEMORY_PERCENTAGE",
            MaxSizePolicy::FreeNativeMemorySize => "FREE_NATIVE_MEMORY_SIZE",
            MaxSizePolicy::FreeNativeMemoryPercentage => "FREE_NATIVE_MEMORY_PERCENTAGE",
        }
    }

    /// The policy of that name; letter case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name().eq_ignore_ascii_case(name))
    }

    /// Whether the size is a percentage of the member's memory limit.
    pub const fn is_percentage(self) -> bool {
        matches!(
            self,
            MaxSizePolicy::UsedHeapPercentage
                | MaxSizePolicy::FreeHeapPercentage
                | MaxSizePolicy::UsedNativeMemoryPercentage
                | MaxSizePolicy::FreeNativeMemoryPercentage
        )
    }

    /// Whether the policy means nothing without a memory limit.
    pub const fn needs_memory_limit(self) -> bool {
        self.is_percentage() || matches!(self, MaxSizePolicy::FreeHeapSize | MaxSizePolicy::FreeNativeMemorySize)
    }
}

/// The ring of a map's past changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventJournalConfig {
    /// Changes kept over all partitions; each partition keeps its share, at least one. Default 10,000, as in Hazelcast.
    pub capacity: u32,
    /// Seconds after which a change is forgotten. Default 0: only when the ring is full.
    pub ttl_seconds: u32,
}

impl Default for EventJournalConfig {
    fn default() -> Self {
        Self { capacity: 10_000, ttl_seconds: 0 }
    }
}

/// A declared index, as configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexConfig {
    /// The index's name, if it was given one.
    pub name: Option<String>,
    /// The kind of index.
    pub kind: IndexKind,
    /// The indexed attributes, in order.
    pub attributes: Vec<String>,
    /// How a bitmap index tells entries apart; `None` for its defaults, and for other kinds.
    pub bitmap: Option<BitmapConfig>,
}

/// How a bitmap index tells entries apart, as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitmapConfig {
    /// The attribute that is different in every entry.
    pub unique_key: String,
    /// How its values become numbers, by Hazelcast's number: 0 as objects, 1 as 64-bit numbers, 2 as they are.
    pub transformation: i32,
}

/// A column that a map keeps beside its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnConfig {
    /// The field that it holds.
    pub field: FieldPath,
    /// The type that values are converted to.
    pub field_type: FieldType,
}

impl ColumnConfig {
    /// Checks that there can be such a column.
    pub(crate) fn check(&self, map: &str) -> Result<(), GridError> {
        let invalid =
            |text: &str| Err(GridError::IllegalArgument(format!("column {} of map {map:?}: {text}", self.field)));
        if self.field.path.finds_many() {
            return invalid("its path has an [any], expected one that finds a single value");
        }
        if ColumnType::of(&self.field_type).is_none() {
            return invalid(&format!(
                "there are no columns of type {}, expected a number, a text, a date or time, or a DECIMAL of up to 38 digits",
                self.field_type
            ));
        }
        Ok(())
    }
}

/// Near-cache settings that a client may be told to use, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearCacheConfig {
    /// How cached values are kept.
    pub in_memory_format: InMemoryFormat,
    /// Whether changes elsewhere drop the cached value. Default `true`.
    pub invalidate_on_change: bool,
    /// Seconds that a cached value lives. Default 0: for ever.
    pub ttl_seconds: u32,
    /// Seconds that an unread cached value lives. Default 0: for ever.
    pub max_idle_seconds: u32,
    /// What is dropped when the cache is full.
    pub eviction: EvictionConfig,
}

impl Default for NearCacheConfig {
    fn default() -> Self {
        Self {
            in_memory_format: InMemoryFormat::Binary,
            invalidate_on_change: true,
            ttl_seconds: 0,
            max_idle_seconds: 0,
            eviction: EvictionConfig::default(),
        }
    }
}
