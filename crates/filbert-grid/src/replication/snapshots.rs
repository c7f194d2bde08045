//! Snapshots of a group's partitions: exported page by page, sent to a member that lacks them, and
//! installed there in place of its own partitions. A member that gives up a group replaces its
//! partitions by empty ones.
//!
//! Pages contain everything that the log has decided. The receiving member rebuilds indexes,
//! columns, accounts and due times.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{
    Caller, Change, Command, Encoder, ImportError, LogCommand, MapId, Millis, MultiPartitionExport,
    MultiPartitionImport, NoLayouts, Partition, PartitionSettings,
};
use uuid::Uuid;

use super::Submissions;
use crate::cell::CellState;
use crate::grid::Grid;
use crate::groups::GroupId;
use crate::map_core::MapCore;
use crate::member_memory::ImportRoom;
use crate::replicator::PendingAnswer;
use crate::shared::Shared;

/// An export of a group's snapshot in progress. Dropping it cancels the export.
pub struct GroupExport {
    shared: Arc<Shared>,
    partitions: Vec<PartitionId>,
    export: MultiPartitionExport,
}

impl fmt::Debug for GroupExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupExport").field("left", &self.export.left().len()).finish_non_exhaustive()
    }
}

/// An import of a group's snapshot in progress. The member's partitions are not changed yet.
pub struct GroupImport {
    import: MultiPartitionImport,
    _room: ImportRoom,
}

impl fmt::Debug for GroupImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GroupImport").field(&self.import.progress()).finish()
    }
}

impl GroupExport {
    /// The next page, of about `bytes_min` bytes; `None` at the end.
    pub fn page(&mut self, bytes_min: usize) -> Option<Vec<u8>> {
        let shared = &self.shared;
        self.export.page(bytes_min, |id, page, bytes_min| {
            with_partition(shared, id, |partition| partition.export_page(page, bytes_min)).unwrap_or(false)
        })
    }
}

impl Drop for GroupExport {
    fn drop(&mut self) {
        for id in &self.partitions {
            with_partition(&self.shared, *id, Partition::end_export);
        }
    }
}

impl GroupImport {
    /// Imports the next page.
    ///
    /// # Errors
    /// The page cannot be decoded, or is not the next one. The import has failed.
    pub fn page(&mut self, page: &[u8]) -> Result<(), ImportError> {
        self.import.page(page, &NoLayouts)
    }

    /// The number of complete partitions, and the total number of partitions.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        self.import.progress()
    }
}

/// Changes a partition without notifying listeners, and updates the memory account.
fn with_partition<R>(shared: &Shared, id: PartitionId, change: impl FnOnce(&mut Partition) -> R) -> Option<R> {
    let mut state = shared.cell(id)?.lock();
    let before = state.partition.bytes();
    let result = change(&mut state.partition);
    shared.account(before, state.partition.bytes());
    Some(result)
}

impl Grid {
    /// Starts a snapshot of a group at its current state, between two entries; `None` while another
    /// export of the group is in progress.
    pub fn begin_export(&self, group: GroupId) -> Option<GroupExport> {
        let mut begun = Vec::new();
        for id in self.partitions_of(group) {
            if with_partition(&self.shared, id, Partition::begin_export) != Some(true) {
                for id in begun {
                    with_partition(&self.shared, id, Partition::end_export);
                }
                return None;
            }
            begun.push(id);
        }
        Some(GroupExport {
            shared: self.shared.clone(),
            partitions: begun.clone(),
            export: MultiPartitionExport::new(begun),
        })
    }

    /// Starts the import of a snapshot of a group; `None` while this member's memory has no room
    /// for it beside other imports. The size of the group's partitions on this member is the
    /// estimate of the snapshot's size.
    pub fn begin_import(&self, group: GroupId) -> Option<GroupImport> {
        let partitions = self.partitions_of(group);
        let cells = partitions.iter().filter_map(|id| self.shared.cell(*id));
        let room = self.shared.memory.take_for_import(cells.map(|cell| cell.lock().partition.bytes()).sum())?;
        let import = MultiPartitionImport::new(partitions, self.shared.hash_seed);
        Some(GroupImport { import, _room: room })
    }

    /// Replaces the member's partitions by the imported ones. Returns the latest time in them. This
    /// member must not lead the group.
    pub fn install(&self, import: GroupImport) -> Millis {
        let partitions = import.import.finish();
        let latest = partitions.iter().map(Partition::time).max();
        self.replace_partitions(partitions);
        latest.unwrap_or(Millis(i64::MIN))
    }

    /// Empties a group that this member gives up, as at the start of the member. This member must
    /// not lead the group, and no read view may contain it.
    pub fn give_up(&self, group: GroupId) {
        let hash_seed = self.shared.hash_seed;
        let empty = |id| Partition::new(PartitionSettings { id, hash_seed, exact_read_times: true });
        self.replace_partitions(self.partitions_of(group).into_iter().map(empty));
    }

    fn replace_partitions(&self, partitions: impl IntoIterator<Item = Partition>) {
        let shared = &self.shared;
        let mut replaced = Vec::new();
        for mut partition in partitions {
            let id = partition.id();
            let Some(cell) = shared.cell(id) else { continue };
            let maps: Vec<Arc<MapCore>> = shared.maps.read().by_id.values().cloned().collect();
            partition.share_declarations(&shared.declarations);
            // Without the lock, because it visits every entry.
            let mut given = Vec::with_capacity(maps.len());
            for map in &maps {
                given.push(map.layouts.current().version);
                partition.set_layout(map.id, map.layouts.compiled());
            }
            let mut state = cell.lock();
            for (map, given) in maps.iter().zip(given) {
                map.take_over(&state.partition, &mut partition, given);
            }
            let summaries: usize = maps.iter().map(|map| map.layouts.signatures.partition_replaced()).sum();
            shared.account(state.partition.bytes() + summaries, partition.bytes());
            let old = std::mem::replace(&mut state.partition, partition);
            maps.iter().for_each(|map| map.listeners.partition_replaced(id));
            drop(state);
            drop(old);
            replaced = maps;
        }
        // Until then, lookups visit all partitions.
        shared.add_missing_signatures(&replaced);
    }

    /// Commands that record reads in the log, so that later leaders know of them, see
    /// [`Partition::touches_until`]; `None` if there are none.
    pub fn touches_until(&self, group: GroupId, now: Millis, until: Millis, limit: usize) -> Option<Vec<u8>> {
        let mut touches = Encoder::default();
        for id in self.partitions_of(group) {
            let Some(cell) = self.shared.cell(id) else { continue };
            cell.lock().partition.touches_until(now, until, limit, &mut |map, key, read_at| {
                let change = Change::Touch { key, read_at };
                // A stored key never exceeds the maximum length.
                let _fits = touches.push(id, &Command { map, now, caller: Caller::default(), change }.into());
            });
        }
        (!touches.is_empty()).then(|| touches.take())
    }

    /// The encoded state of a group, as decided by the log. It is equal on all members after the
    /// same entry. It needs memory for the whole state, so it is only for tests and diagnosis.
    pub fn logged_state(&self, group: GroupId) -> Vec<u8> {
        let cells = self.partitions_of(group).into_iter().filter_map(|id| self.shared.cell(id));
        cells.flat_map(|cell| cell.lock().partition.logged_state()).collect()
    }

    fn partitions_of(&self, group: GroupId) -> Vec<PartitionId> {
        let ids = self.shared.partitions().map(|(id, _)| id);
        ids.filter(|id| self.shared.group_of(*id) == group).collect()
    }

    /// Proposes the destruction of maps that no member knows any more, and the release of claims of
    /// members that have left. Earlier proposals may have been lost with a leader.
    pub(super) fn propose_ends(&self, partition: PartitionId, state: &mut CellState) {
        let Some(replication) = &self.shared.replication else { return };
        let gone: Vec<MapId> = state.partition.map_ids().filter(|id| !replication.replicator.knows_map(*id)).collect();
        let mut members: Vec<Uuid> = state.partition.claims().map(|(_, owner)| owner.client).collect();
        members.sort_unstable();
        members.dedup();
        members.retain(|member| replication.replicator.is_gone(*member));
        if gone.is_empty() && members.is_empty() {
            return;
        }
        let mut to = Submissions::new(&self.shared);
        for member in members {
            to.push_with_retry(partition, MapId(0), self.shared.own_caller(), Change::ReleaseLocks { client: member });
        }
        for map in gone {
            to.push_own(partition, &LogCommand::DestroyMap { map }, PendingAnswer::Nothing, state);
        }
        to.send_holding(Some((partition, state)));
    }
}

impl MapCore {
    /// Updates the accounts of a map when another partition replaces one of its partitions. `given`
    /// is the version of the layout in the new partition.
    fn take_over(&self, old: &Partition, new: &mut Partition, given: u64) {
        if self.layouts.current().version != given {
            // The layout has changed meanwhile.
            new.set_layout(self.id, self.layouts.compiled());
        }
        self.set_created(new.id(), new.has_map(self.id));
        let (before, after) = (old.statistics(self.id), new.statistics(self.id));
        self.replace_entries(before.entries, after.entries);
        self.account(before.bytes_owned, after.bytes_owned);
    }

    /// Records the content of a map in a partition, before this member changes it: the log may have
    /// created the map there before this member knew the map.
    pub(crate) fn adopt_from_log(&self, shared: &Shared, partition: &mut Partition) {
        let id = partition.id();
        if self.is_created_in(id) || !partition.has_map(self.id) {
            return;
        }
        let before = partition.bytes();
        partition.set_layout(self.id, self.layouts.compiled());
        shared.account(before, partition.bytes());
        self.set_created(id, true);
        let found = partition.statistics(self.id);
        self.replace_entries(0, found.entries);
        self.account(0, found.bytes_owned);
    }

    fn replace_entries(&self, before: usize, after: usize) {
        if self.evicts {
            self.entries.fetch_add(after.wrapping_sub(before), Ordering::AcqRel);
        }
    }
}
