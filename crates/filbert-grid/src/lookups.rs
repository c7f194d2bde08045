//! Looking at a map for queries: all entries of a partition, or those that an index finds. None of it counts as a read
//! of the entries, and each partition is seen at one moment of its own.

use filbert_data::PartitionId;
use filbert_store::{Change, Columns, IndexId, IndexStatistics, Probe, SlotSet};
use parking_lot::MutexGuard;

use crate::cell::CellState;
use crate::map::Map;

impl Map {
    /// Visits key and value of the entries of one partition that an index finds, in the probe's order, until `visit` answers
    /// `false`. Each is visited once; an index with an `[any]` in its fields keeps no order.
    ///
    /// Returns whether it was the index that answered. If it is not there any more, all entries of the partition are
    /// visited, in no order: what is found must be compared with what was asked for in any case.
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

    /// As [`Map::probe`] with several indexes, for the entries that all of them find, in no order.
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

    /// Visits the keys of an index in one partition that a probe finds, and how many entries have each, until `visit`
    /// answers `false`; whether it never did. `None` if the index is not there any more, or has
    /// expired entries.
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

    /// What is known of an index over all partitions, each at a moment of its own. `None` if it is not there any more.
    pub fn index_statistics(&self, index: IndexId) -> Option<IndexStatistics> {
        let mut sum = IndexStatistics::default();
        for cell in &self.shared.cells {
            sum.add(cell.lock().partition.index_statistics(self.core.id, index)?);
        }
        Some(sum)
    }

    /// The columns of one partition at this instant, of no expired entry; `None` if the map keeps none, there is no such
    /// partition, or it cannot be freed of expired entries at once. Writers are held up for no longer than it takes to copy a few pointers.
    pub fn scan_columns(&self, partition: PartitionId) -> Option<Columns> {
        let state = self.lock_without_expired(partition)?;
        state.partition.columns(self.core.id)
    }

    /// Locks a partition that holds nothing expired: frees that where changes are made directly. Under a log, `None` as long as there is
    /// any.
    fn lock_without_expired(&self, partition: PartitionId) -> Option<MutexGuard<'_, CellState>> {
        let cell = self.shared.cell(partition)?;
        let now = self.shared.read_time(partition);
        let mut state = cell.lock();
        if self.is_replicated() {
            return state.partition.next_expiry().is_none_or(|expiry| expiry > now).then_some(state);
        }
        // No deadline is earlier than what is noted as due.
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
