//! The partitions of a group as a whole: brought to a member that lacks them, page by page, and put in the place of its own.
//!
//! Pages hold all that the log has decided. Indexes and columns, accounts and due times are built here.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{
    Caller, Change, Command, Encoder, ImportError, LogCommand, MapId, Millis, NoLayouts, Partition, SeveralExport,
    SeveralImport,
};
use uuid::Uuid;

use super::awaited::Awaited;
use super::{GroupId, Submissions};
use crate::cell::CellState;
use crate::grid::Grid;
use crate::map_core::MapCore;
use crate::shared::Shared;

/// A snapshot of a group that is being made. Dropped, it is given up.
pub struct GroupExport {
    shared: Arc<Shared>,
    partitions: Vec<PartitionId>,
    export: SeveralExport,
}

impl fmt::Debug for GroupExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupExport").field("left", &self.export.left().len()).finish_non_exhaustive()
    }
}

/// A snapshot of a group that is being taken over, and has changed nothing yet.
pub struct GroupImport(SeveralImport);

impl fmt::Debug for GroupImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GroupImport").field(&self.0.progress()).finish()
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
    /// Takes the next page over.
    ///
    /// # Errors
    /// It cannot be read, or is not the next one. The import is over.
    pub fn page(&mut self, page: &[u8]) -> Result<(), ImportError> {
        self.0.page(page, &NoLayouts)
    }

    /// How many partitions have come, and how many there have to be.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        self.0.progress()
    }
}

/// Has a partition changed where nobody hears of it, and keeps the account of bytes.
fn with_partition<R>(shared: &Shared, id: PartitionId, change: impl FnOnce(&mut Partition) -> R) -> Option<R> {
    let mut state = shared.cell(id)?.lock();
    let before = state.partition.bytes();
    let result = change(&mut state.partition);
    shared.account(before, state.partition.bytes());
    Some(result)
}

impl Grid {
    /// Begins a snapshot of a group as it is, between two of its entries; `None` while another one is made.
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
        Some(GroupExport { shared: self.shared.clone(), partitions: begun.clone(), export: SeveralExport::new(begun) })
    }

    /// Begins to take a snapshot of a group over.
    pub fn begin_import(&self, group: GroupId) -> GroupImport {
        GroupImport(SeveralImport::new(self.partitions_of(group), self.shared.hash_seed))
    }

    /// Puts the partitions that were brought in the place of those that are here; answers with the latest time in them. This member does
    /// not lead the group.
    pub fn install(&self, import: GroupImport) -> Millis {
        let shared = &self.shared;
        let (mut latest, mut replaced) = (Millis(i64::MIN), Vec::new());
        for mut partition in import.0.finish() {
            latest = latest.max(partition.time());
            let id = partition.id();
            let Some(cell) = shared.cell(id) else { continue };
            let maps: Vec<Arc<MapCore>> = shared.maps.read().by_id.values().cloned().collect();
            partition.share_declarations(&shared.declarations);
            // Beside the lock: it takes time for every entry.
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
            state.partition = partition;
            maps.iter().for_each(|map| map.listeners.partition_replaced(id));
            replaced = maps;
        }
        // Until then lookups ask all partitions.
        shared.add_missing_signatures(&replaced);
        latest
    }

    /// Commands that tell the log of reads, so that no later leader forgets them, see [`Partition::touches_until`]; `None` if there is
    /// nothing to tell.
    pub fn touches_until(&self, group: GroupId, now: Millis, until: Millis, limit: usize) -> Option<Vec<u8>> {
        let mut touches = Encoder::default();
        for id in self.partitions_of(group) {
            let Some(cell) = self.shared.cell(id) else { continue };
            cell.lock().partition.touches_until(now, until, limit, &mut |map, key, read_at| {
                let change = Change::Touch { key, read_at };
                // A key that is in the store is short enough.
                let _fits = touches.push(id, &Command { map, now, caller: Caller::default(), change }.into());
            });
        }
        (!touches.is_empty()).then(|| touches.take())
    }

    /// All that the log has decided of a group, as bytes that are the same on all members at the same entry. Takes memory for
    /// everything: for tests, and for whoever looks for a defect.
    pub fn logged_state(&self, group: GroupId) -> Vec<u8> {
        let cells = self.partitions_of(group).into_iter().filter_map(|id| self.shared.cell(id));
        cells.flat_map(|cell| cell.lock().partition.logged_state()).collect()
    }

    fn partitions_of(&self, group: GroupId) -> Vec<PartitionId> {
        let ids = self.shared.partitions().map(|(id, _)| id);
        ids.filter(|id| self.shared.group_of(*id) == group).collect()
    }

    /// Has the log drop maps of a group that no member knows any more: their end may have been lost with a leader.
    pub(super) fn propose_ends(&self, partition: PartitionId, state: &mut CellState) {
        let Some(replication) = &self.shared.replication else { return };
        let gone: Vec<MapId> = state.partition.map_ids().filter(|id| !replication.replicator.knows_map(*id)).collect();
        let mut members: Vec<Uuid> = state.partition.claimants().collect();
        members.sort_unstable();
        members.dedup();
        members.retain(|member| replication.replicator.is_gone(*member));
        if gone.is_empty() && members.is_empty() {
            return;
        }
        let mut to = Submissions::new(&self.shared);
        for member in members {
            to.push_until_taken(partition, MapId(0), self.shared.itself(), Change::ReleaseLocks { client: member });
        }
        for map in gone {
            to.push_own(partition, &LogCommand::DestroyMap { map }, Awaited::Nothing, state);
        }
        to.send_holding(Some((partition, state)));
    }
}

impl MapCore {
    /// Keeps the accounts of a map when another partition takes the place of one; `given` is the version of the layout that it has.
    fn take_over(&self, old: &Partition, new: &mut Partition, given: u64) {
        if self.layouts.current().version != given {
            // It was given another one meanwhile.
            new.set_layout(self.id, self.layouts.compiled());
        }
        self.note_made(new.id(), new.has_map(self.id));
        let (before, after) = (old.statistics(self.id), new.statistics(self.id));
        self.replace_entries(before.entries, after.entries);
        self.account(before.bytes_owned, after.bytes_owned);
    }

    /// Notes what a partition has of a map, before anything of it is changed here: the log may have made it before this member knew of it.
    pub(crate) fn meet(&self, shared: &Shared, partition: &mut Partition) {
        let id = partition.id();
        if self.is_made_in(id) || !partition.has_map(self.id) {
            return;
        }
        let before = partition.bytes();
        partition.set_layout(self.id, self.layouts.compiled());
        shared.account(before, partition.bytes());
        self.note_made(id, true);
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
