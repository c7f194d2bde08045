//! The settings of one member: their defaults, units and reasons. This module must not know the
//! source of the settings (files, flags, code).

use std::collections::HashMap;

use filbert_data::{FieldPath, FieldType};
use filbert_store::{ColumnType, EvictionPolicy};
use uuid::Uuid;

use crate::errors::GridError;
use crate::indexes::{self, IndexConfig};
use crate::patterns;

/// The maximum entry count of Hazelcast's eviction setting. It means "no limit".
pub const SIZE_UNLIMITED: u32 = i32::MAX as u32;

/// The settings of one member.
#[derive(Debug, Clone, PartialEq)]
pub struct GridConfig {
    /// The cluster name that clients must send. Default `dev`, as in Hazelcast.
    pub cluster_name: String,
    /// The member's UUID. `None`, the default, generates one from the environment's random seed.
    pub member_uuid: Option<Uuid>,
    /// The UUID of the cluster, the same on all its members. `None`, the default, generates one for
    /// this member.
    pub cluster_uuid: Option<Uuid>,
    /// The seed of the hashes that order the entries of a partition. Clients must not know it.
    /// `None`, the default, draws one. All members of a cluster have the same seed, so that a
    /// cursor from one member is valid on every other.
    pub hash_seed: Option<u64>,
    /// The number of partitions, 1 to 65,535. Default 271, as in Hazelcast: clients receive it when
    /// they connect, and it must be the same in every cluster that exchanges data with this one.
    pub partition_count: u32,
    /// The settings of maps, by name or pattern.
    pub maps: MapConfigs,
    /// The memory limit of the maps of this member, in bytes: keys, values and tables together.
    /// `None`, the default, sets no limit: only the operator knows the other processes on the
    /// machine.
    pub memory_bytes_max: Option<usize>,
    /// The memory limit of all buffers, in bytes: incomplete messages, message bodies, events that
    /// clients have not read, and the state of sessions. Default half of `memory_bytes_max`, at
    /// least 64 MiB and at most 1 GiB; 1 GiB if there is no `memory_bytes_max`. This is as much as
    /// the largest message, and small compared with the maps, so that the sum of both limits sizes
    /// a member.
    pub buffers_bytes_max: Option<usize>,
    /// The maximum number of changes that wait for locked keys, on the whole member. Default
    /// 100,000: a larger number means that clients retry against a lock that is never released.
    /// Each waiter holds its key and value in memory.
    pub lock_waiters_max: usize,
    /// The maximum number of distributed objects (maps and others) of this member. Default 10,000:
    /// each map takes a few bytes per partition even when it is empty, so a client that creates
    /// names without limit would take all memory.
    pub objects_max: usize,
    /// The maximum number of Compact schemas. Default 10,000: far more than applications have, and
    /// a limit for an application that generates schemas.
    pub schemas_max: usize,
    /// The maximum number of fields of one Compact schema. Default 10,000, for the same reason.
    pub schema_fields_max: usize,
    /// The maximum number of indexes of one map. Default 256: each index takes memory for every
    /// entry, and a client that generates index names would grow it without limit.
    pub indexes_max: usize,
    /// The maximum number of listeners of any kind on the whole member. Default 100,000: each
    /// change of a map checks all listeners of the map.
    pub listeners_max: usize,
    /// The maximum length, in bytes, of the statistics text of one client. Default 65,536: stock
    /// clients send a few thousand bytes.
    pub client_statistics_bytes_max: usize,
    /// The maximum time between two expiry sweeps, in milliseconds. Default 1,000: readers never
    /// see an expired entry, so the sweep only decides how soon its memory is freed.
    pub expiry_interval_ms_max: i64,
    /// The minimum time between two expiry sweeps, in milliseconds. Default 5: it limits the work
    /// that many entries with close deadlines cause, and the delay with which a lock's lease or a
    /// lock wait ends.
    pub expiry_interval_ms_min: i64,
    /// The number of entries that a sweep frees before it releases the partition's lock for other
    /// threads. Default 1,000: about a tenth of a millisecond.
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

/// The minimum and the maximum of the default buffer limit.
const BUFFERS_BYTES: std::ops::RangeInclusive<usize> = 64 << 20..=1 << 30;

impl GridConfig {
    /// The memory limit of buffers, in bytes: the setting, or its default.
    pub fn buffers_bytes(&self) -> usize {
        let default = || {
            let half = self.memory_bytes_max.map_or(usize::MAX, |max| max / 2);
            half.clamp(*BUFFERS_BYTES.start(), *BUFFERS_BYTES.end())
        };
        self.buffers_bytes_max.unwrap_or_else(default)
    }

    /// Checks the settings before the member starts.
    ///
    /// # Errors
    /// [`GridError::InvalidConfiguration`] with the setting, the value found and the value
    /// expected.
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

/// Settings of maps: one set per exact name or wildcard pattern, and the settings of all other
/// maps.
///
/// The lookup of a name takes the first of these: the exact name; the matching pattern (one `*`,
/// which matches any text) with the most literal characters, where a tie of two patterns is an
/// error; the set named `default`; the built-in defaults.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MapConfigs {
    by_pattern: HashMap<String, MapConfig>,
    fallback: MapConfig,
}

impl MapConfigs {
    /// The name of the settings for maps without settings of their own.
    pub const DEFAULT_NAME: &'static str = "default";

    /// Adds or replaces the settings of a name or pattern. Patterns are checked by
    /// [`GridConfig::validate`].
    pub fn insert(&mut self, pattern: impl Into<String>, config: MapConfig) -> Option<MapConfig> {
        self.by_pattern.insert(pattern.into(), config)
    }

    /// The settings of the map `name`. The lookup ignores an `@` and the text after it, which
    /// choose a partition.
    ///
    /// # Errors
    /// [`GridError::AmbiguousPattern`] if two patterns match equally well.
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

    /// All settings with their names or patterns, unordered.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &MapConfig)> {
        self.by_pattern.iter().map(|(pattern, config)| (pattern.as_str(), config))
    }
}

/// The settings of one map, or of all maps that match a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct MapConfig {
    /// The storage format of values. Default [`InMemoryFormat::Binary`].
    pub in_memory_format: InMemoryFormat,
    /// The eviction policy and the size limit. Default: no eviction.
    pub eviction: EvictionConfig,
    /// The time to live of an entry after its last update, in seconds, unless the write specifies
    /// another. Default 0: unlimited.
    pub ttl_seconds: u32,
    /// The maximum idle time of an entry after its last read or update, in seconds, unless the
    /// write specifies another. Default 0: unlimited.
    pub max_idle_seconds: u32,
    /// The ring buffer of past changes, which clients can read. Default: none.
    pub event_journal: Option<EventJournalConfig>,
    /// The indexes for queries. Default: none.
    pub indexes: Vec<IndexConfig>,
    /// The fields that are also stored as columns, so that queries over all entries need not read
    /// the fields from each entry. Default: none.
    pub columns: Vec<ColumnConfig>,
    /// The declared near cache. It is only stored: a near cache is in a client, and is configured
    /// there.
    pub near_cache: Option<NearCacheConfig>,
    /// Whether the map's statistics are reported. They are counted in any case, because counting
    /// costs next to nothing. Default `true`.
    pub statistics_enabled: bool,
    /// Whether hits and access times of each entry are reported. They are stored in any case.
    /// Default `false`, as in Hazelcast.
    pub per_entry_stats_enabled: bool,
    /// The number of synchronous backups in Hazelcast. Only reported to clients: the number of
    /// replicas is a setting of the cluster. Default 1.
    pub backup_count: u8,
    /// The number of asynchronous backups in Hazelcast. Only reported to clients. Default 0.
    pub async_backup_count: u8,
    /// Whether a member may answer a read from a backup. Only stored: a member never does. Default
    /// `false`.
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

/// The storage format of values in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InMemoryFormat {
    /// The bytes as the client sent them.
    #[default]
    Binary,
    /// Accepted for compatibility with existing configurations. The same as
    /// [`InMemoryFormat::Binary`].
    Object,
    /// Hazelcast's off-heap memory. All memory is off the Java heap here, so it is the same as
    /// `Binary`.
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

    /// The format with this name, case-insensitive.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Binary, Self::Object, Self::Native].into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
    }
}

/// The eviction policy and the size limit of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvictionConfig {
    /// The order of eviction. Default none: the map grows until the member's memory limit.
    pub policy: EvictionPolicy,
    /// The unit and scope of `size`. Default [`MaxSizePolicy::PerNode`].
    pub max_size_policy: MaxSizePolicy,
    /// The limit, in the unit of `max_size_policy`. Default [`SIZE_UNLIMITED`]; 0 also means no
    /// limit.
    pub size: u32,
}

impl Default for EvictionConfig {
    fn default() -> Self {
        Self { policy: EvictionPolicy::None, max_size_policy: MaxSizePolicy::PerNode, size: SIZE_UNLIMITED }
    }
}

impl EvictionConfig {
    /// Whether there is a limit that eviction enforces. A size of 0 means no limit, as in
    /// Hazelcast.
    pub(crate) fn applies(&self) -> bool {
        self.policy != EvictionPolicy::None && self.size != 0 && self.size < SIZE_UNLIMITED
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

/// The eviction policy with this name, case-insensitive.
pub fn eviction_policy_from_name(name: &str) -> Option<EvictionPolicy> {
    [EvictionPolicy::None, EvictionPolicy::Lru, EvictionPolicy::Lfu, EvictionPolicy::Random]
        .into_iter()
        .find(|policy| eviction_policy_name(*policy).eq_ignore_ascii_case(name))
}

/// The unit and scope of a map's size limit.
///
/// Hazelcast's heap policies refer to the Java heap. There is none here: the map's own bytes
/// replace the used heap, and the member's memory limit replaces the heap size. One MB is 1,048,576
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaxSizePolicy {
    /// The number of entries of the map on this member. Enforced exactly.
    PerNode,
    /// The number of entries of the map in each partition. Enforced exactly.
    PerPartition,
    /// The memory of the map on this member, in MB.
    UsedHeapSize,
    /// The memory of the map, in percent of the member's memory limit.
    UsedHeapPercentage,
    /// The part of the member's memory limit that must stay free, in MB.
    FreeHeapSize,
    /// The part of the member's memory limit that must stay free, in percent.
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

    /// The policy with this name, case-insensitive.
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

    /// Whether the size counts bytes and not entries.
    pub(crate) const fn counts_bytes(self) -> bool {
        !matches!(self, MaxSizePolicy::PerNode | MaxSizePolicy::PerPartition)
    }

    /// Whether the policy requires a memory limit.
    pub const fn needs_memory_limit(self) -> bool {
        self.is_percentage() || matches!(self, MaxSizePolicy::FreeHeapSize | MaxSizePolicy::FreeNativeMemorySize)
    }
}

/// The ring buffer of a map's past changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventJournalConfig {
    /// The number of changes over all partitions. Each partition has an equal share, at least one.
    /// Default 10,000, as in Hazelcast.
    pub capacity: u32,
    /// The time to live of a change, in seconds. Default 0: until it is overwritten.
    pub ttl_seconds: u32,
}

impl Default for EventJournalConfig {
    fn default() -> Self {
        Self { capacity: 10_000, ttl_seconds: 0 }
    }
}

/// A column of a map, stored beside its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnConfig {
    /// The field of the column.
    pub field: FieldPath,
    /// The type of the column's values. Field values are converted to it.
    pub field_type: FieldType,
}

impl ColumnConfig {
    /// Checks that the field and the type are valid for a column.
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

/// The near-cache settings for clients, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearCacheConfig {
    /// The storage format of cached values.
    pub in_memory_format: InMemoryFormat,
    /// Whether a change of an entry invalidates the cached value. Default `true`.
    pub invalidate_on_change: bool,
    /// The time to live of a cached value, in seconds. Default 0: unlimited.
    pub ttl_seconds: u32,
    /// The maximum idle time of a cached value, in seconds. Default 0: unlimited.
    pub max_idle_seconds: u32,
    /// The eviction policy and the size limit of the cache.
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
