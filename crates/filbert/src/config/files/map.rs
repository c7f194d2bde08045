//! The settings of maps: `map.<name or pattern>` of the file.

use filbert_grid::{
    EventJournalConfig, EvictionConfig, InMemoryFormat, IndexConfig, IndexKind, MapConfig, MaxSizePolicy,
    NearCacheConfig, SIZE_UNLIMITED, eviction_policy_from_name, eviction_policy_name,
};

use super::columns;
use super::error::Problem;
use super::setting::{Kind, Setting};
use super::tree::{Node, Value};
use super::walk::{Path, Walk};

const INT_MAX: u64 = i32::MAX as u64;
const FORMATS: &[&str] = &["BINARY", "OBJECT", "NATIVE"];
const EVICTION_POLICIES: &[&str] = &["LRU", "LFU", "RANDOM", "NONE"];
const SIZE_POLICIES: &[&str] = &[
    "PER_NODE",
    "PER_PARTITION",
    "USED_HEAP_SIZE",
    "USED_HEAP_PERCENTAGE",
    "FREE_HEAP_SIZE",
    "FREE_HEAP_PERCENTAGE",
    "USED_NATIVE_MEMORY_SIZE",
    "USED_NATIVE_MEMORY_PERCENTAGE",
    "FREE_NATIVE_MEMORY_SIZE",
    "FREE_NATIVE_MEMORY_PERCENTAGE",
];
/// Hazelcast's name for the size policy of on-heap near caches. Maps do not have this policy.
const ENTRY_COUNT: &str = "ENTRY_COUNT";

/// The settings of one map.
pub(crate) const MAP: &[Setting<MapConfig>] = &[
    Setting {
        name: "in-memory-format",
        kind: Kind::Choice {
            of: FORMATS,
            get: |map| map.in_memory_format.name(),
            set: |map, word| map.in_memory_format = InMemoryFormat::from_name(word).unwrap_or_default(),
        },
        unit: "",
        doc: "How values are kept. Values stay as the client serialized them in every format, outside of any heap; \
              OBJECT and NATIVE mean the same as BINARY.",
    },
    Setting {
        name: "time-to-live-seconds",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |map| map.ttl_seconds.into(),
            set: |map, value| map.ttl_seconds = clamp(value),
        },
        unit: "seconds",
        doc: "How long an entry lives after its last update, unless the write says otherwise. 0: for ever.",
    },
    Setting {
        name: "max-idle-seconds",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |map| map.max_idle_seconds.into(),
            set: |map, value| map.max_idle_seconds = clamp(value),
        },
        unit: "seconds",
        doc: "How long an entry lives after its last read or update, unless the write says otherwise. 0: for ever.",
    },
    Setting {
        name: "eviction.eviction-policy",
        kind: Kind::Choice {
            of: EVICTION_POLICIES,
            get: |map| eviction_policy_name(map.eviction.policy),
            set: |map, word| set_policy(&mut map.eviction, word),
        },
        unit: "",
        doc: "Which entries go first when the map is full: least recently used, least frequently used, any, or none.",
    },
    Setting {
        name: "eviction.max-size-policy",
        kind: Kind::Choice {
            of: SIZE_POLICIES,
            get: |map| map.eviction.max_size_policy.name(),
            set: |map, word| set_size_policy(&mut map.eviction, word),
        },
        unit: "",
        doc: "What `eviction.size` counts. PER_NODE and PER_PARTITION count entries and are kept exactly. The heap and \
              native policies speak of the map's own bytes and of the member's memory limit; percentages and FREE_ \
              policies need `--memory-max`.",
    },
    Setting {
        name: "eviction.size",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |map| map.eviction.size.into(),
            set: |map, value| map.eviction.size = clamp(value),
        },
        unit: "entries, MB or percent",
        doc: "The limit, in the unit of the policy. 0 entries and the largest number mean no limit.",
    },
    Setting {
        name: "event-journal",
        kind: Kind::Structure {
            what: "a table of settings: enabled, capacity, time-to-live-seconds",
            default: "not enabled",
            read: read_event_journal,
        },
        unit: "",
        doc: "The ring of past changes that clients can read: `enabled`, `capacity` in changes over all partitions \
              (10000), `time-to-live-seconds` (0: kept until the ring is full).",
    },
    Setting {
        name: "indexes",
        kind: Kind::Structure {
            what: "a list of indexes: type (SORTED, HASH or BITMAP) and attributes",
            default: "none",
            read: read_indexes,
        },
        unit: "",
        doc: "Indexes, by which queries find entries: `name`, `type` (SORTED, HASH, BITMAP) and `attributes`.",
    },
    Setting {
        name: "columns",
        kind: Kind::Structure { what: "a list of columns: path and type", default: "none", read: columns::read },
        unit: "",
        doc: "Fields kept as columns beside the entries, so that queries that look at all entries need not read them from \
              each: `path` and `type` (a type of SQL).",
    },
    Setting {
        name: "near-cache",
        kind: Kind::Structure { what: "a table of settings", default: "none", read: read_near_cache },
        unit: "",
        doc: "Kept as declared. A near cache lives in a client and is configured there; this member sends it the \
              invalidations it needs in any case.",
    },
    Setting {
        name: "statistics-enabled",
        kind: Kind::Flag { get: |map| map.statistics_enabled, set: |map, value| map.statistics_enabled = value },
        unit: "",
        doc: "Whether the map's statistics are reported.",
    },
    Setting {
        name: "per-entry-stats-enabled",
        kind: Kind::Flag {
            get: |map| map.per_entry_stats_enabled,
            set: |map, value| map.per_entry_stats_enabled = value,
        },
        unit: "",
        doc: "Whether hits and access times of each entry are reported.",
    },
    Setting {
        name: "backup-count",
        kind: Kind::Whole {
            min: 0,
            max: 6,
            get: |map| map.backup_count.into(),
            set: |map, value| map.backup_count = u8::try_from(value).unwrap_or(u8::MAX),
        },
        unit: "copies",
        doc: "Synchronous copies in Hazelcast. Read, and told to clients; in a cluster, --replicas says how many members hold each partition.",
    },
    Setting {
        name: "async-backup-count",
        kind: Kind::Whole {
            min: 0,
            max: 6,
            get: |map| map.async_backup_count.into(),
            set: |map, value| map.async_backup_count = u8::try_from(value).unwrap_or(u8::MAX),
        },
        unit: "copies",
        doc: "Asynchronous copies in Hazelcast. Read, and told to clients; in a cluster, --replicas says how many members hold each partition.",
    },
    Setting {
        name: "read-backup-data",
        kind: Kind::Flag { get: |map| map.read_backup_data, set: |map, value| map.read_backup_data = value },
        unit: "",
        doc: "Whether a member may answer a read from a copy. It never does.",
    },
];

/// The settings of an event journal, except `enabled`.
const EVENT_JOURNAL: &[Setting<EventJournalConfig>] = &[
    Setting {
        name: "capacity",
        kind: Kind::Whole {
            min: 1,
            max: INT_MAX,
            get: |journal| journal.capacity.into(),
            set: |journal, value| journal.capacity = clamp(value),
        },
        unit: "changes",
        doc: "Changes kept over all partitions.",
    },
    Setting {
        name: "time-to-live-seconds",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |journal| journal.ttl_seconds.into(),
            set: |journal, value| journal.ttl_seconds = clamp(value),
        },
        unit: "seconds",
        doc: "How long a change is kept; 0: until the ring is full.",
    },
];

const INDEX: &[Setting<IndexConfig>] = &[
    Setting {
        name: "name",
        kind: Kind::Text {
            what: "a name",
            get: |index| index.name.clone().unwrap_or_default(),
            set: |index, text| {
                index.name = Some(text.to_owned());
                true
            },
        },
        unit: "",
        doc: "The index's name.",
    },
    Setting {
        name: "type",
        kind: Kind::Choice {
            of: &["SORTED", "HASH", "BITMAP"],
            get: |index| match index.kind {
                IndexKind::Sorted => "SORTED",
                IndexKind::Hash => "HASH",
                IndexKind::Bitmap => "BITMAP",
            },
            set: |index, word| {
                index.kind = match word {
                    "HASH" => IndexKind::Hash,
                    "BITMAP" => IndexKind::Bitmap,
                    _ => IndexKind::Sorted,
                }
            },
        },
        unit: "",
        doc: "The kind of index.",
    },
    Setting {
        name: "attributes",
        kind: Kind::Structure { what: "a list of attributes", default: "", read: read_attributes },
        unit: "",
        doc: "The indexed attributes, in order.",
    },
];

const NEAR_CACHE: &[Setting<NearCacheConfig>] = &[
    Setting {
        name: "in-memory-format",
        kind: Kind::Choice {
            of: FORMATS,
            get: |cache| cache.in_memory_format.name(),
            set: |cache, word| cache.in_memory_format = InMemoryFormat::from_name(word).unwrap_or_default(),
        },
        unit: "",
        doc: "How cached values are kept.",
    },
    Setting {
        name: "invalidate-on-change",
        kind: Kind::Flag { get: |cache| cache.invalidate_on_change, set: |cache, on| cache.invalidate_on_change = on },
        unit: "",
        doc: "Whether changes elsewhere drop the cached value.",
    },
    Setting {
        name: "time-to-live-seconds",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |cache| cache.ttl_seconds.into(),
            set: |cache, value| cache.ttl_seconds = clamp(value),
        },
        unit: "seconds",
        doc: "How long a cached value lives.",
    },
    Setting {
        name: "max-idle-seconds",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |cache| cache.max_idle_seconds.into(),
            set: |cache, value| cache.max_idle_seconds = clamp(value),
        },
        unit: "seconds",
        doc: "How long an unread cached value lives.",
    },
    Setting {
        name: "eviction.eviction-policy",
        kind: Kind::Choice {
            of: EVICTION_POLICIES,
            get: |cache| eviction_policy_name(cache.eviction.policy),
            set: |cache, word| set_policy(&mut cache.eviction, word),
        },
        unit: "",
        doc: "Which cached values go first.",
    },
    Setting {
        name: "eviction.max-size-policy",
        kind: Kind::Choice {
            of: &[
                ENTRY_COUNT,
                "USED_NATIVE_MEMORY_SIZE",
                "USED_NATIVE_MEMORY_PERCENTAGE",
                "FREE_NATIVE_MEMORY_SIZE",
                "FREE_NATIVE_MEMORY_PERCENTAGE",
            ],
            get: |cache| match cache.eviction.max_size_policy {
                MaxSizePolicy::PerNode => ENTRY_COUNT,
                policy => policy.name(),
            },
            set: |cache, word| set_size_policy(&mut cache.eviction, word),
        },
        unit: "",
        doc: "What the size counts.",
    },
    Setting {
        name: "eviction.size",
        kind: Kind::Whole {
            min: 0,
            max: INT_MAX,
            get: |cache| cache.eviction.size.into(),
            set: |cache, value| cache.eviction.size = clamp(value),
        },
        unit: "entries, MB or percent",
        doc: "The limit of the cache.",
    },
];

/// Numbers are checked against the declared range before this conversion.
fn clamp(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn set_policy(eviction: &mut EvictionConfig, word: &str) {
    if let Some(policy) = eviction_policy_from_name(word) {
        eviction.policy = policy;
    }
}

fn set_size_policy(eviction: &mut EvictionConfig, word: &str) {
    eviction.max_size_policy = MaxSizePolicy::from_name(word).unwrap_or(MaxSizePolicy::PerNode);
}

/// Reads one map. Without a size in the file, the map is unlimited.
pub(crate) fn read(walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<MapConfig, Problem> {
    let mut map = MapConfig::default();
    walk.section(path, node, MAP, &mut map)?;
    if map.eviction.size == 0 {
        map.eviction.size = if map.eviction.max_size_policy.is_percentage() { 0 } else { SIZE_UNLIMITED };
    }
    Ok(map)
}

fn read_event_journal(map: &mut MapConfig, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    let mut journal = EventJournalConfig::default();
    let (enabled, rest) = take_enabled(walk, path, node)?;
    walk.section(path, &rest, EVENT_JOURNAL, &mut journal)?;
    map.event_journal = enabled.then_some(journal);
    Ok(())
}

/// Splits `enabled` off a table in which the other settings depend on it. The default is true.
fn take_enabled(walk: &Walk<'_>, path: &Path, node: &Node) -> Result<(bool, Node), Problem> {
    let entries = walk.table(path, node)?;
    let enabled = match node.entry("enabled") {
        Some(entry) => walk.flag(&path.child("enabled"), &entry.node)?,
        None => true,
    };
    let rest = entries.iter().filter(|entry| entry.name != "enabled").cloned().collect();
    Ok((enabled, Node::new(node.position, Value::Table(rest))))
}

fn read_indexes(map: &mut MapConfig, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    for (number, item) in walk.list(path, node)?.iter().enumerate() {
        let path = path.item(number);
        let mut index = IndexConfig::default();
        walk.section(&path, item, INDEX, &mut index)?;
        if index.attributes.is_empty() {
            let found = "an index without attributes".to_owned();
            return Err(walk.found(&path, item, found, "at least one attribute".to_owned()));
        }
        map.indexes.push(index);
    }
    Ok(())
}

fn read_attributes(index: &mut IndexConfig, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    for (number, item) in walk.list(path, node)?.iter().enumerate() {
        let attribute = walk.text(&path.item(number), item, "the name of an attribute")?;
        index.attributes.push(attribute.into_owned());
    }
    Ok(())
}

fn read_near_cache(map: &mut MapConfig, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    let mut cache = NearCacheConfig::default();
    walk.section(path, node, NEAR_CACHE, &mut cache)?;
    map.near_cache = Some(cache);
    Ok(())
}
