//! Reading a map by its indexes, and its columns: the entries, slots and keys that a probe finds. None of it counts as a read.

use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::derived::Derived;
use crate::map::Map;
use crate::share::Share;
use crate::{Columns, IndexId, IndexStatistics, Layout, MapId, Millis, Partition, Probe, Signature};

/// Entries of one map in one partition, named by their slots; good until the partition changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotSet(RoaringBitmap);

impl SlotSet {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.0.len()).unwrap_or(usize::MAX)
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps those that are in both.
    pub fn intersect(&mut self, other: &SlotSet) {
        self.0 &= &other.0;
    }

    /// Takes in those of the other.
    pub fn unite(&mut self, other: &SlotSet) {
        self.0 |= &other.0;
    }
}

impl Partition {
    /// Says what a map keeps beside its records, `None` for nothing. What is new is made of the entries that are there,
    /// what was there and still is wanted stays as it is. Takes time for every entry.
    pub fn set_layout(&mut self, map: MapId, layout: Option<Arc<Layout>>) {
        self.change_layout(map, None, layout);
    }

    /// As [`Partition::set_layout`], with the number by which the log knows the layout, if that is news.
    pub(crate) fn change_layout(&mut self, map: MapId, number: Option<Option<u64>>, layout: Option<Arc<Layout>>) {
        let Ok(index) = self.position(map) else { return };
        if number.is_some() {
            self.hold_for_export(index);
        }
        self.resize(map, |map| {
            map.layout = number.unwrap_or(map.layout);
            map.set_layout(layout.clone());
        });
        self.declare_anew(index, |declaration| {
            declaration.with_layout(number.unwrap_or(declaration.layout_number), layout)
        });
    }

    /// Whether a map that is declared alone has an index.
    fn declares_index(&self, map: MapId, index: IndexId) -> bool {
        self.share(map).and_then(Share::declaration).is_some_and(|declaration| declaration.has_index(index))
    }

    /// Lets an index take part in a summary of all partitions, which is told of the keys that are there and of those to come. Whether
    /// there is such an index.
    pub fn set_signature(&mut self, map: MapId, index: IndexId, signature: Option<Arc<Signature>>) -> bool {
        if self.declares_index(map, index) {
            if let Ok(at) = self.position(map) {
                self.declare_anew(at, |declaration| declaration.with_signature(index, signature));
            }
            return true;
        }
        let id = self.id();
        let found = self.map_mut(map).and_then(|map| map.derived.as_mut()?.index_mut(index));
        found.map(|index| index.set_signature(signature, id)).is_some()
    }

    /// Visits key and value of the entries that an index finds, in the probe's order, until `visit` answers `false`; whether it
    /// never did. Each entry is visited once; for an index with an `[any]` in its fields, that costs the order. Entries with
    /// a field that could not be read are found by every probe, after the others.
    /// `None` if there is no such index.
    pub fn probe(
        &self,
        map: MapId,
        index: IndexId,
        probe: &Probe,
        now: Millis,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Option<bool> {
        match self.map(map) {
            Some(map) => map.probe(index, probe, self.time_of_read(now), visit),
            None => self.declares_index(map, index).then_some(true),
        }
    }

    /// The entries that an index finds, to be combined with those that others find. Entries whose time is over are
    /// among them. `None` if there is no such index.
    #[must_use]
    pub fn probe_slots(&self, map: MapId, index: IndexId, probe: &Probe) -> Option<SlotSet> {
        match self.map(map) {
            Some(map) => Some(SlotSet(map.derived.as_ref()?.index(index)?.slots(probe))),
            None => self.declares_index(map, index).then(SlotSet::default),
        }
    }

    /// Visits key and value of entries named by their slots, until `visit` answers `false`; whether it never did.
    pub fn visit_slots(
        &self,
        map: MapId,
        slots: &SlotSet,
        now: Millis,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> bool {
        let Some(map) = self.map(map) else { return true };
        let now = self.time_of_read(now);
        let Some(derived) = &map.derived else { return true };
        slots.0.iter().all(|slot| map.visit_slot(derived, slot, now, visit))
    }

    /// Visits the keys of an index that a probe finds, and how many entries have each, until `visit` answers `false`;
    /// whether it never did. Entries whose time is over count until they are freed. `None` if there is no such index.
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

    /// The columns of a map as they are now, of entries whose time is over, too, until these are freed. Takes no time for entries. `None`
    /// if it keeps none.
    #[must_use]
    pub fn columns(&self, map: MapId) -> Option<Columns> {
        match self.share(map)? {
            Share::Held { map, .. } => map.derived.as_ref()?.columns().snapshot(),
            Share::Declared { declaration, .. } => declaration.columns().cloned(),
        }
    }

    /// What is known of an index. `None` if there is no such index.
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

    /// Gives every record another slot, or none.
    fn rebuild_records(&mut self, mut slot_of: impl FnMut(u64, (&[u8], &[u8])) -> Option<u32>) {
        let hasher = self.table.hasher();
        let mut bytes = 0;
        for record in self.table.records_mut() {
            let hash = hasher(record.key());
            let slot = slot_of(hash, (record.key(), record.value()));
            // Refused are only lengths that no record can have.
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
            // An entry may be under several of the keys.
            return Some(index.slots(probe).iter().all(|slot| self.visit_slot(derived, slot, now, visit)));
        }
        let goes_on = index
            .probe(probe, &mut |_, postings| postings.for_each(&mut |slot| self.visit_slot(derived, slot, now, visit)));
        Some(goes_on && index.unread().iter().all(|slot| self.visit_slot(derived, slot, now, visit)))
    }

    /// Visits the entry in a slot, if its time is not over; whether to go on.
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
