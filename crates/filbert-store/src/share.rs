//! What a partition has of each map: the map itself once something was put into it, locked or counted here, and until then no more
//! than a pointer to what was declared, which all partitions of a member have in common.
//!
//! ```text
//! partition 0: [map 1: Held -----> Map] [map 2: Declared --.]
//! partition 1: [map 1: Declared ---.] [map 2: Declared ----+--> Declaration { settings, layout, summaries }
//!                                  '--> Declaration
//! ```
//!
//! Which of the two it is, nobody can tell by replies, events, snapshots or figures, but by bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use filbert_data::PartitionId;

use crate::columns::Columns;
use crate::command::Change;
use crate::derived::Derived;
use crate::journal::Journal;
use crate::map::{Context, Map};
use crate::partition::change_map;
use crate::put::Outcome;
use crate::{IndexId, Layout, MapId, MapSettings, Partition, Reply, Signature, StoreError};

/// What a partition has of one map.
pub(crate) enum Share {
    /// Nothing but what was declared.
    Declared {
        id: MapId,
        /// Calls of `get` so far; those beyond what fits are noted in the partition.
        misses: u16,
        declaration: Arc<Declaration>,
    },
    /// The map. Boxed, as a partition may have many maps and moves when they are created.
    Held { id: MapId, map: Box<Map> },
}

/// Bytes of a share in the partition's list; those of a map beside it.
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

    /// Bytes of all that there is of the map here.
    pub(crate) fn bytes(&self) -> usize {
        SHARE_BYTES + self.map().map_or(0, |map| MAP_BYTES + map.bytes())
    }
}

/// What a map is before anything is in it. Never changes: another one takes its place.
pub(crate) struct Declaration {
    pub(crate) settings: MapSettings,
    /// What the log calls the layout, see `log.rs`.
    pub(crate) layout_number: Option<u64>,
    layout: Option<Arc<Layout>>,
    /// The summaries that the layout's indexes take part in.
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
        Declaration { settings, journal, ..self.again() }
    }

    /// Another layout; indexes that are in both stay in their summaries.
    pub(crate) fn with_layout(&self, number: Option<u64>, layout: Option<Arc<Layout>>) -> Declaration {
        let before = self.layout.as_ref();
        let stays = |id: IndexId| {
            let (Some(before), Some(layout)) = (before, &layout) else { return false };
            before.epoch() == layout.epoch() && layout.indexes().iter().any(|index| index.id == id)
        };
        let signatures = self.signatures.iter().filter(|(id, _)| stays(*id)).cloned().collect();
        let columns = layout.as_ref().and_then(|layout| Columns::without_rows(layout.columns()));
        Declaration { layout_number: number, layout, signatures, columns, ..self.again() }
    }

    pub(crate) fn with_signature(&self, index: IndexId, signature: Option<Arc<Signature>>) -> Declaration {
        let mut changed = self.again();
        changed.signatures.retain(|(id, _)| *id != index);
        changed.signatures.extend(signature.map(|signature| (index, signature)));
        changed
    }

    /// The same once more.
    pub(crate) fn again(&self) -> Declaration {
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

    /// The map in one partition, as it is before anything is in it.
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

/// By which partitions of one member have the same declaration of a map in common, and not one each. It decides nothing: a partition
/// follows its own commands, and takes part here in memory alone.
#[derive(Default)]
pub struct Declarations(Mutex<BTreeMap<MapId, Vec<Arc<Declaration>>>>);

impl Declarations {
    /// The declaration as others have it, if one has.
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

    /// Drops what no partition has any more of a map.
    pub(crate) fn tidy(&self, map: MapId) {
        let mut all = self.lock();
        let Some(known) = all.get_mut(&map) else { return };
        known.retain(|known| Arc::strong_count(known) > 1);
        if known.is_empty() {
            all.remove(&map);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<MapId, Vec<Arc<Declaration>>>> {
        // What a thread that panicked has left is whole after each step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Partition {
    /// Has what is declared of maps in common with other partitions from now on, which saves memory and changes nothing else.
    pub fn share_declarations(&mut self, declarations: &Arc<Declarations>) {
        let before = std::mem::replace(&mut self.declarations, declarations.clone());
        for share in &mut self.maps {
            if let Share::Declared { id, declaration, .. } = share {
                *declaration = declarations.share(*id, declaration.again());
                before.tidy(*id);
            }
        }
    }

    /// Declares otherwise what is declared alone.
    pub(crate) fn declare_anew(&mut self, index: usize, change: impl FnOnce(&Declaration) -> Declaration) {
        let Some(Share::Declared { id, declaration, .. }) = self.maps.get_mut(index) else { return };
        *declaration = self.declarations.share(*id, change(declaration));
        self.declarations.tidy(*id);
    }

    /// Puts the map in the place of its declaration.
    fn hold(&mut self, index: usize, map: Map) {
        let Some(share) = self.maps.get_mut(index) else { return };
        let id = share.id();
        self.bytes -= share.bytes();
        *share = Share::Held { id, map: Box::new(map) };
        self.bytes += share.bytes();
        self.misses.remove(&id);
        self.declarations.tidy(id);
    }

    /// Puts a declaration in the place of a map that is as it was declared, and has no layout.
    pub(crate) fn declare_if_as_new(&mut self, index: usize) {
        let Some(share) = self.maps.get_mut(index) else { return };
        let Share::Held { id, map } = share else { return };
        if map.is_as_new() && map.derived.is_none() {
            let declaration = Declaration::new(map.settings.clone(), map.layout);
            let declaration = self.declarations.share(*id, declaration);
            self.bytes -= share.bytes();
            *share = Share::Declared { id: share.id(), misses: 0, declaration };
            self.bytes += share.bytes();
        }
    }

    /// The map that is declared alone, as it is before anything is in it.
    fn make_declared(&self, index: usize) -> Option<Map> {
        let Some(Share::Declared { id, misses, declaration }) = self.maps.get(index) else { return None };
        let mut map = declaration.make(*id, self.settings.hash_seed, self.settings.id);
        map.counters.gets = u64::from(*misses) + self.misses.get(id).copied().unwrap_or(0);
        if let Some(export) = &self.export
            && export.has_yet_to_write(*id)
        {
            map.begin_export(*id);
        }
        Some(map)
    }

    /// Makes the map that is declared alone if the snapshot that is being made has yet to write it, before what it writes changes.
    pub(crate) fn hold_for_export(&mut self, index: usize) {
        if self.export.is_none() {
            return;
        }
        if let Some(map) = self.make_declared(index).filter(|map| map.export.is_some()) {
            self.hold(index, map);
        }
    }

    /// Changes a map that is declared alone: it is made here if anything of the change stays.
    #[cold]
    pub(crate) fn apply_first(&mut self, index: usize, cx: &mut Context<'_>, change: Change<'_>) -> Reply<'static> {
        let Some(mut map) = self.make_declared(index) else {
            return Reply::Refused(StoreError::NoSuchMap(self.maps.get(index).map_or(MapId(0), Share::id)));
        };
        let outcome = change_map(&mut map, cx, change);
        if !map.is_as_new() {
            self.hold(index, map);
        }
        match outcome {
            Outcome::Reply(reply) => reply,
            // There was no entry.
            Outcome::Existing(_) => Reply::Previous(None),
        }
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
