//! The maps of the registry: their descriptions, and the maps that are about to replace others.

use filbert_cluster::MemberId;
use filbert_store::{JournalSettings, MapId, MapSettings};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The description of a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapFacts {
    /// The name of the map.
    pub name: String,
    /// The time to live of entries that are put without one, in milliseconds. 0 = for ever.
    ttl_default_ms: i64,
    /// The maximum idle time of entries that are put without one, in milliseconds. 0 = for ever.
    max_idle_default_ms: i64,
    eviction_sample_size: usize,
    unlock_memory_max: usize,
    /// The number of events per partition in the event journal, and their time to live in
    /// milliseconds.
    journal: Option<(usize, i64)>,
    /// The map that this map replaces, or has replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replaces: Option<Replaces>,
}

/// The map that another map replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Replaces {
    /// Distinguishes replacements. A retry has the same id.
    #[serde(with = "crate::text")]
    pub(super) id: Uuid,
    /// The replaced map.
    pub(super) old: u32,
    /// The member that replaces it. The new map is dropped with the member, if it is hidden.
    pub(super) member: u64,
    /// Whether the new map is hidden: it has not taken the place of the old one yet.
    pub(super) is_hidden: bool,
}

impl MapFacts {
    pub(crate) fn new(name: &str, settings: &MapSettings) -> Self {
        MapFacts {
            name: name.to_owned(),
            ttl_default_ms: settings.ttl_default_ms,
            max_idle_default_ms: settings.max_idle_default_ms,
            eviction_sample_size: settings.eviction_sample_size,
            unlock_memory_max: settings.unlock_memory_max,
            journal: settings.journal.map(|journal| (journal.capacity, journal.ttl_ms)),
            replaces: None,
        }
    }

    /// The description of a map that a member makes to replace the map `old`. It is hidden.
    pub(crate) fn replacing(self, old: MapId, member: MemberId) -> Self {
        let replaces = Replaces { id: Uuid::new_v4(), old: old.0, member: member.0, is_hidden: true };
        MapFacts { replaces: Some(replaces), ..self }
    }

    /// Whether the map is about to replace another one, and is not found by its name yet.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.replaces.is_some_and(|replaces| replaces.is_hidden)
    }

    /// The map that this map has replaced.
    #[must_use]
    pub fn replaced(&self) -> Option<MapId> {
        self.replaces.filter(|replaces| !replaces.is_hidden).map(|replaces| MapId(replaces.old))
    }

    /// The settings with which partitions create the map.
    #[must_use]
    pub fn settings(&self) -> MapSettings {
        MapSettings {
            ttl_default_ms: self.ttl_default_ms,
            max_idle_default_ms: self.max_idle_default_ms,
            eviction_sample_size: self.eviction_sample_size,
            journal: self.journal.map(|(capacity, ttl_ms)| JournalSettings { capacity, ttl_ms }),
            unlock_memory_max: self.unlock_memory_max,
        }
    }
}
