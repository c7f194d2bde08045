//! Reads of a map through its indexes and columns: the entries, slots and keys that a probe finds.
//! None of them count as reads.

use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::derived::Derived;
use crate::map::Map;
use crate::share::Share;
use crate::{Columns, IndexId, IndexStatistics, Layout, MapId, Millis, Partition, Probe, Signature};

/// Entries of one map in one partition, by slot. Valid until the partition changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotSet(RoaringBitmap);

impl SlotSet {
    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.0.len()).unwrap_or(usize::MAX)
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps only the entries that are in both sets.
    pub fn intersect(&mut self, other: &SlotSet) {
        self.0 &= &other.0;
    }

    /// Adds the entries of the other set.
    pub fn unite(&mut self, other: &SlotSet) {
        self.0 |= &other.0;
    }
}

impl Partition {
    /// Sets the indexes and columns of a map; `None` = none. New ones are built from the existing
    /// entries, existing ones that are still wanted are kept. Takes time for every entry.
    pub fn set_layout(&mut self, map: MapId, layout: Option<Arc<Layout>>) {
        self.change_layout(map, None, layout);
    }

    /// Same as [`Partition::set_layout`], with the log's number of the layout. With `None` the
    /// number is unchanged.
    pub(crate) fn change_layout(&mut self, map: MapId, number: Option<Option<u64>>, layout: Option<Arc<Layout>>) {
        let Ok(index) = self.position(map) else { return };
        if number.is_some() {
            self.hold_for_export(index);
        }
        self.resize(map, |map| {
            map.layout = number.unwrap_or(map.layout);
            map.set_layout(layout.clone());
        });
        self.redeclare(index, |declaration| {
            declaration.with_layout(number.unwrap_or(declaration.layout_number), layout)
        });
    }

    /// Whether a map that is only declared has an index.
    fn declares_index(&self, map: MapId, index: IndexId) -> bool {
        self.share(map).and_then(Share::declaration).is_some_and(|declaration| declaration.has_index(index))
    }

    /// Replaces the summary over all partitions of an index; `None` removes it. The existing keys
    /// are added to it, and so are future keys. Returns whether the index exists.
    pub fn set_signature(&mut self, map: MapId, index: IndexId, signature: Option<Arc<Signature>>) -> bool {
        if self.declares_index(map, index) {
            if let Ok(at) = self.position(map) {
                self.redeclare(at, |declaration| declaration.with_signature(index, signature));
            }
            return true;
        }
        let id = self.id();
        let found = self.map_mut(map).and_then(|map| map.derived.as_mut()?.index_mut(index));
        found.map(|index| index.set_signature(signature, id)).is_some()
    }

    /// Visits the key and the value of the entries that an index finds, in the order of the probe,
    /// until `visit` returns `false`. Returns whether it never did. Each entry is visited once; for
    /// an index with an `[any]` in its fields, the order is therefore not kept. Every probe also
    /// finds the entries with an unreadable field, after the others. `None` if the index does not
    /// exist.
    pub fn probe(
        &self,
        map: MapId,
        index: IndexId,
        probe: &Probe,
        now: Millis,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Option<bool> {
        match self.map(map) {
            Some(map) => map.probe(index, probe, self.read_time(now), visit),
            None => self.declares_index(map, index).then_some(true),
        }
    }

    /// The entries that an index finds, to be combined with other sets. Includes expired entries.
    /// `None` if the index does not exist.
    #[must_use]
    pub fn probe_slots(&self, map: MapId, index: IndexId, probe: &Probe) -> Option<SlotSet> {
        match self.map(map) {
            Some(map) => Some(SlotSet(map.derived.as_ref()?.index(index)?.slots(probe))),
            None => self.declares_index(map, index).then(SlotSet::default),
        }
    }

    /// Visits the key and the value of entries by slot, until `visit` returns `false`. Returns
    /// whether it never did.
    pub fn visit_slots(
        &self,
        map: MapId,
        slots: &SlotSet,
        now: Millis,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> bool {
        let Some(map) = self.map(map) else { return true };
        let now = self.read_time(now);
        let Some(derived) = &map.derived else { return true };
        slots.0.iter().all(|slot| map.visit_slot(derived, slot, now, visit))
    }

    /// Visits the keys of an index that a probe finds, with the number of entries of each, until
    /// `visit` returns `false`. Returns whether it never did. Expired entries count until they are
    /// freed. `None` if the index does not exist.
    pub fn probe_keys(
        &self,
        map: MapId,
        index: IndexId,
        probe: &Probe,
        visit: &mut dyn FnMut(&[u8], usize) -> bool,
    ) -> Option<bool> {
        let Some(map) = self.map(map) else { return self.declares_index(map, index).then_some(true) };
        let index = map.derived.as_ref()?.index(index)?;
        Some(index.probe(probe, &mut |key, postings| visit(key, postings.len())))
    }

    /// A snapshot of the columns of a map, including expired entries that are not yet freed. Takes
    /// no time for entries. `None` if the map has no columns.
    #[must_use]
    pub fn columns(&self, map: MapId) -> Option<Columns> {
        match self.share(map)? {
            Share::Held { map, .. } => map.derived.as_ref()?.columns().snapshot(),
            Share::Declared { declaration, .. } => declaration.columns().cloned(),
        }
    }

    /// The statistics of an index. `None` if the index does not exist.
    #[must_use]
    pub fn index_statistics(&self, map: MapId, index: IndexId) -> Option<IndexStatistics> {
        match self.map(map) {
            Some(map) => Some(map.derived.as_ref()?.index(index)?.statistics()),
            None => self.declares_index(map, index).then(IndexStatistics::default),
        }
    }
}

impl Map {
    fn set_layout(&mut self, layout: Option<Arc<Layout>>) {
        match (layout, &mut self.derived) {
            (None, None) => {}
            (None, Some(_)) => {
                self.derived = None;
                self.rebuild_records(|_, _| None);
            }
            (Some(layout), Some(derived)) => derived.change_layout(layout, self.table.records()),
            (Some(layout), None) => {
                let mut derived = Box::new(Derived::new(layout, self.hash_seed));
                self.rebuild_records(|hash, record| Some(derived.add(hash, record.0, record.1)));
                self.derived = Some(derived);
            }
        }
    }

    /// Changes the slots of all records, or removes them.
    fn rebuild_records(&mut self, mut slot_of: impl FnMut(u64, (&[u8], &[u8])) -> Option<u32>) {
        let hasher = self.table.hasher();
        let mut bytes = 0;
        for record in self.table.records_mut() {
            let hash = hasher(record.key());
            let slot = slot_of(hash, (record.key(), record.value()));
            // Copying fails only for lengths that no record can have.
            if let Ok(rebuilt) = record.with_slot(slot) {
                *record = rebuilt;
            }
            bytes += record.allocated_bytes();
        }
        self.record_bytes = bytes;
    }

    fn probe(
        &self,
        index: IndexId,
        probe: &Probe,
        now: Millis,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Option<bool> {
        let derived = self.derived.as_ref()?;
        let index = derived.index(index)?;
        if derived.finds_many(index) {
            // An entry may have several of the keys.
            return Some(index.slots(probe).iter().all(|slot| self.visit_slot(derived, slot, now, visit)));
        }
        let goes_on = index
            .probe(probe, &mut |_, postings| postings.for_each(&mut |slot| self.visit_slot(derived, slot, now, visit)));
        Some(goes_on && index.unread().iter().all(|slot| self.visit_slot(derived, slot, now, visit)))
    }

    /// Visits the entry of a slot, if it has not expired. Returns whether to continue.
    #[inline]
    fn visit_slot(
        &self,
        derived: &Derived,
        slot: u32,
        now: Millis,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> bool {
        let hash = derived.slots().hash(slot);
        let record = hash.and_then(|hash| self.table.find_slot(hash, slot));
        match record.filter(|record| !record.is_expired_for_reads(now)) {
            Some(record) => visit(record.key(), record.value()),
            None => true,
        }
    }
}
