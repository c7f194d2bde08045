//! Lookups of queries in a map: all entries of a partition, or the entries that an index finds.
//! Lookups do not count as reads of the entries. Each partition is read at a different time.

use filbert_data::PartitionId;
use filbert_store::{Change, Columns, IndexId, IndexStatistics, PartitionSet, Probe, SlotSet};
use parking_lot::MutexGuard;

use crate::cell::CellState;
use crate::map::Map;

impl Map {
    /// The partitions in which an index may find entries: few for a few keys of a large index,
    /// otherwise all. No partition with a matching entry is missing.
    pub fn probe_partitions(&self, index: IndexId, probe: &Probe) -> PartitionSet {
        self.core.layouts.signatures.partitions_of(index, probe, self.shared.config.partition_count)
    }

    /// Visits the key and the value of the entries of one partition that an index finds, in the
    /// probe's order, until `visit` returns `false`. Each entry is visited once. An index with an
    /// `[any]` in its fields has no order.
    ///
    /// Returns whether the index was used. If the index was dropped, all entries of the partition
    /// are visited, unordered. The caller must check each entry against its predicate in any case.
    pub fn probe(
        &self,
        partition: PartitionId,
        index: IndexId,
        probe: &Probe,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> bool {
        let now = self.shared.read_time(partition);
        let Some(cell) = self.shared.cell(partition) else { return true };
        let state = cell.lock();
        if state.partition.probe(self.core.id, index, probe, now, visit).is_some() {
            return true;
        }
        visit_all(&state, self.core.id, now, visit);
        false
    }

    /// As [`Map::probe`] with several indexes: visits the entries that all of them find, unordered.
    pub fn probe_all_of(
        &self,
        partition: PartitionId,
        probes: &[(IndexId, Probe)],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> bool {
        let now = self.shared.read_time(partition);
        let Some(cell) = self.shared.cell(partition) else { return true };
        let state = cell.lock();
        let mut found: Option<SlotSet> = None;
        for (index, probe) in probes {
            let Some(slots) = state.partition.probe_slots(self.core.id, *index, probe) else {
                visit_all(&state, self.core.id, now, visit);
                return false;
            };
            match &mut found {
                Some(found) => found.intersect(&slots),
                None => found = Some(slots),
            }
            if found.as_ref().is_some_and(SlotSet::is_empty) {
                return true;
            }
        }
        match found {
            Some(slots) => {
                state.partition.visit_slots(self.core.id, &slots, now, visit);
            }
            None => visit_all(&state, self.core.id, now, visit),
        }
        true
    }

    /// Visits the keys of an index in one partition that a probe finds, each with its number of
    /// entries, until `visit` returns `false`. Returns whether it visited all of them; `None` if
    /// the index was dropped or has expired entries.
    pub fn probe_keys(
        &self,
        partition: PartitionId,
        index: IndexId,
        probe: &Probe,
        visit: &mut dyn FnMut(&[u8], usize) -> bool,
    ) -> Option<bool> {
        let state = self.lock_without_expired(partition)?;
        state.partition.probe_keys(self.core.id, index, probe, visit)
    }

    /// The statistics of an index over all partitions. Each partition is read at a different time.
    /// `None` if the index was dropped.
    pub fn index_statistics(&self, index: IndexId) -> Option<IndexStatistics> {
        let mut sum = IndexStatistics::default();
        for cell in &self.shared.cells {
            sum.add(cell.lock().partition.index_statistics(self.core.id, index)?);
        }
        Some(sum)
    }

    /// A snapshot of the columns of one partition, without expired entries; `None` if the map has
    /// no columns, there is no such partition, or the expired entries cannot be removed now.
    /// Writers wait only while a few pointers are copied.
    pub fn scan_columns(&self, partition: PartitionId) -> Option<Columns> {
        let state = self.lock_without_expired(partition)?;
        state.partition.columns(self.core.id)
    }

    /// Locks a partition without expired entries. Without a log, it removes expired entries first.
    /// With a log, it returns `None` if there are any.
    fn lock_without_expired(&self, partition: PartitionId) -> Option<MutexGuard<'_, CellState>> {
        let cell = self.shared.cell(partition)?;
        let now = self.shared.read_time(partition);
        let mut state = cell.lock();
        if self.is_replicated() {
            return state.partition.next_expiry().is_none_or(|expiry| expiry > now).then_some(state);
        }
        // No deadline is earlier than the recorded time.
        if cell.due() <= now {
            self.shared.apply_to_all(cell, &mut state, now, Change::Expire { limit: usize::MAX });
        }
        Some(state)
    }
}

fn visit_all(
    state: &CellState,
    map: filbert_store::MapId,
    now: filbert_store::Millis,
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) {
    let mut goes_on = true;
    state.partition.for_each(map, now, &mut |key, value| {
        if goes_on {
            goes_on = visit(key, value);
        }
    });
}
