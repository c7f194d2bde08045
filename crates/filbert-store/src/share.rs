//! The share of a partition in each map: the map itself after its first entry, lock or counted
//! change. Until then, the share is only a pointer to the declaration, which all partitions of a
//! member share.
//!
//! ```text
//! partition 0: [map 1: Held ---> Map] [map 2: Declared --.]
//! partition 1: [map 1: Declared -.]   [map 2: Declared --+--> Declaration { settings, layout, .. }
//!                                '--> Declaration
//! ```
//!
//! Replies, events, snapshots and statistics do not depend on the kind of share, except for the
//! number of bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use filbert_data::PartitionId;

use crate::columns::Columns;
use crate::derived::Derived;
use crate::journal::Journal;
use crate::map::Map;
use crate::{IndexId, Layout, MapId, MapSettings, Signature};

/// The share of a partition in one map.
pub(crate) enum Share {
    /// Only a declaration.
    Declared {
        id: MapId,
        /// The number of calls of `get`. Overflows are counted in the partition.
        misses: u16,
        declaration: Arc<Declaration>,
    },
    /// The map. It is boxed, because a partition may have many maps, and shares move when maps are
    /// created.
    Held { id: MapId, map: Box<Map> },
}

/// The bytes of a share in the partition's list. A held map takes `MAP_BYTES` in addition.
pub(crate) const SHARE_BYTES: usize = size_of::<Share>();
const MAP_BYTES: usize = size_of::<Map>();

impl Share {
    #[inline]
    pub(crate) fn id(&self) -> MapId {
        match self {
            Share::Declared { id, .. } | Share::Held { id, .. } => *id,
        }
    }

    #[inline]
    pub(crate) fn map(&self) -> Option<&Map> {
        match self {
            Share::Held { map, .. } => Some(map),
            Share::Declared { .. } => None,
        }
    }

    #[inline]
    pub(crate) fn map_mut(&mut self) -> Option<&mut Map> {
        match self {
            Share::Held { map, .. } => Some(map),
            Share::Declared { .. } => None,
        }
    }

    pub(crate) fn declaration(&self) -> Option<&Arc<Declaration>> {
        match self {
            Share::Declared { declaration, .. } => Some(declaration),
            Share::Held { .. } => None,
        }
    }

    /// All bytes of the map in this partition.
    pub(crate) fn bytes(&self) -> usize {
        SHARE_BYTES + self.map().map_or(0, |map| MAP_BYTES + map.bytes())
    }
}

/// The initial state of a map. It is immutable: a change replaces it.
pub(crate) struct Declaration {
    pub(crate) settings: MapSettings,
    /// The log's number of the layout, see `log.rs`.
    pub(crate) layout_number: Option<u64>,
    layout: Option<Arc<Layout>>,
    /// The summaries of the layout's indexes.
    signatures: Vec<(IndexId, Arc<Signature>)>,
    /// The journal, without events.
    pub(crate) journal: Option<Journal>,
    /// The columns, without rows.
    columns: Option<Columns>,
}

impl Declaration {
    pub(crate) fn new(settings: MapSettings, layout_number: Option<u64>) -> Declaration {
        let journal = settings.journal.map(Journal::new);
        Declaration { settings, layout_number, layout: None, signatures: Vec::new(), journal, columns: None }
    }

    pub(crate) fn with_settings(&self, settings: MapSettings) -> Declaration {
        let journal = settings.journal.map(Journal::new);
        Declaration { settings, journal, ..self.duplicate() }
    }

    /// A declaration with another layout. Indexes that are in both layouts keep their summaries.
    pub(crate) fn with_layout(&self, number: Option<u64>, layout: Option<Arc<Layout>>) -> Declaration {
        let before = self.layout.as_ref();
        let stays = |id: IndexId| {
            let (Some(before), Some(layout)) = (before, &layout) else { return false };
            before.epoch() == layout.epoch() && layout.indexes().iter().any(|index| index.id == id)
        };
        let signatures = self.signatures.iter().filter(|(id, _)| stays(*id)).cloned().collect();
        let columns = layout.as_ref().and_then(|layout| Columns::without_rows(layout.columns()));
        Declaration { layout_number: number, layout, signatures, columns, ..self.duplicate() }
    }

    pub(crate) fn with_signature(&self, index: IndexId, signature: Option<Arc<Signature>>) -> Declaration {
        let mut changed = self.duplicate();
        changed.signatures.retain(|(id, _)| *id != index);
        changed.signatures.extend(signature.map(|signature| (index, signature)));
        changed
    }

    /// A copy.
    pub(crate) fn duplicate(&self) -> Declaration {
        Declaration {
            settings: self.settings.clone(),
            layout_number: self.layout_number,
            layout: self.layout.clone(),
            signatures: self.signatures.clone(),
            journal: self.settings.journal.map(Journal::new),
            columns: self.columns.clone(),
        }
    }

    pub(crate) fn has_index(&self, id: IndexId) -> bool {
        self.layout.as_ref().is_some_and(|layout| layout.indexes().iter().any(|index| index.id == id))
    }

    pub(crate) fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }

    /// Creates the map of one partition in its initial state.
    pub(crate) fn make(&self, id: MapId, hash_seed: u64, partition: PartitionId) -> Map {
        let mut map = Map::new(id, self.settings.clone(), hash_seed);
        map.layout = self.layout_number;
        map.derived = self.layout.as_ref().map(|layout| {
            let mut derived = Box::new(Derived::new(layout.clone(), hash_seed));
            for (index, signature) in &self.signatures {
                if let Some(index) = derived.index_mut(*index) {
                    index.set_signature(Some(signature.clone()), partition);
                }
            }
            derived
        });
        map
    }

    fn is_same(&self, other: &Declaration) -> bool {
        let same_layout = match (&self.layout, &other.layout) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        let same_signatures = self.signatures.len() == other.signatures.len()
            && (self.signatures.iter().zip(&other.signatures))
                .all(|((id, one), (other_id, other))| id == other_id && Arc::ptr_eq(one, other));
        same_layout && same_signatures && self.settings == other.settings && self.layout_number == other.layout_number
    }
}

/// The declarations of a member, which its partitions share instead of having copies. They have no
/// influence on results: each partition follows its own commands, and sharing only saves memory.
#[derive(Default)]
pub struct Declarations(Mutex<BTreeMap<MapId, Vec<Arc<Declaration>>>>);

impl Declarations {
    /// Returns the existing declaration of the map that is equal to this one, or adds this one.
    pub(crate) fn share(&self, map: MapId, declaration: Declaration) -> Arc<Declaration> {
        let mut all = self.lock();
        let known = all.entry(map).or_default();
        if let Some(same) = known.iter().find(|known| known.is_same(&declaration)) {
            return same.clone();
        }
        let declaration = Arc::new(declaration);
        known.push(declaration.clone());
        declaration
    }

    /// Drops the declarations of a map that no partition uses any more.
    pub(crate) fn tidy(&self, map: MapId) {
        let mut all = self.lock();
        let Some(known) = all.get_mut(&map) else { return };
        known.retain(|known| Arc::strong_count(known) > 1);
        if known.is_empty() {
            all.remove(&map);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<MapId, Vec<Arc<Declaration>>>> {
        // Each step leaves the declarations consistent, so a panic of another thread does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_without_entries_takes_two_words() {
        assert_eq!(SHARE_BYTES, 16);
    }
}
