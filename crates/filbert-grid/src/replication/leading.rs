//! The tasks of a leader beside the log: waiters, evictions, and the loss of its leadership.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{Caller, Change, Command, KeyList, MapId};
use uuid::Uuid;

use super::Submissions;
use crate::cell::{Cell, CellState};
use crate::config::MaxSizePolicy;
use crate::errors::GridError;
use crate::eviction;
use crate::grid::Grid;
use crate::groups::{GroupId, SubmitError};
use crate::map_core::{MapCore, RECORD_OVERHEAD_BYTES};
use crate::replicator::PendingAnswer;
use crate::shared::Shared;

/// The maximum number of entries of one partition in one eviction proposal. It limits how long the
/// partition's lock is held.
const VICTIMS_MAX: usize = 64;

/// Proposes the first waiter of a key, or, if the key is locked, the first waiter of the lock's
/// owner. Does nothing while another waiter is proposed.
pub(super) fn propose_waiter(
    shared: &Arc<Shared>,
    cell: &Cell,
    partition: PartitionId,
    state: &mut CellState,
    map: &Arc<MapCore>,
    key: &[u8],
    to: &mut Submissions,
) {
    let now = shared.now();
    let owner = state.partition.lock_state(map.id, key, now).map(|lock| lock.owner);
    while let Some(waiter) = state.waiters.next_to_propose(map.id, key, owner, now) {
        // The owner of the lock does not time out: it waited while its own change acquired the
        // lock.
        if waiter.is_late(now) && owner != Some(waiter.caller) {
            shared.answer(waiter, Err(GridError::LockTimeout { map: map.name.clone() }));
            continue;
        }
        let waiter = Box::new(waiter);
        let change = waiter.change.clone();
        let command = Command { map: map.id, now, caller: waiter.caller, change: change.borrow() };
        if let Err(error) = map.check_memory(shared, &state.partition, &command) {
            shared.answer(*waiter, Err(error));
            continue;
        }
        map.note_locks(shared, &command.change, waiter.caller);
        state.waiters.set_proposed(map.id, key, waiter.caller);
        cell.due_by(waiter.deadline);
        map.in_flight.fetch_add(1, Ordering::SeqCst);
        to.push_own(partition, &command.into(), PendingAnswer::Waiter { map: map.clone(), waiter }, state);
        return;
    }
}

/// Proposes evictions from one partition until the map is within its limit. `false` if other
/// partitions must evict. There is at most one such proposal for a map and a partition at a time.
/// Its application checks the remaining excess.
pub(super) fn propose_evictions(
    shared: &Shared,
    map: &Arc<MapCore>,
    partition: PartitionId,
    state: &mut CellState,
    spared: Option<&[u8]>,
    to: &mut Submissions,
) -> bool {
    let policy = map.config.eviction.max_size_policy;
    let alone = policy == MaxSizePolicy::PerPartition;
    let excess = eviction::excess(shared, map, &state.partition);
    let excess = if alone { excess } else { share(shared, excess) };
    let Some(wanted) = claim(map, excess, alone) else { return true };
    let (mut victims, mut weight, now) = (KeyList::default(), 0, shared.now());
    let victims_max = VICTIMS_MAX.min(beyond_part(shared, map, state));
    while weight < wanted && victims.len() < victims_max && !state.evicting.contains(&map.id) {
        let CellState { partition, random, .. } = state;
        let spares = |key: &[u8]| spared == Some(key) || victims.iter().any(|victim| victim == key);
        let mut draw = || random.next_u64();
        let picked = partition.pick_eviction(map.id, map.config.eviction.policy, now, &mut draw, &spares);
        let Some(picked) = picked.map(Box::<[u8]>::from) else { break };
        weight += match policy.counts_bytes() {
            true => {
                let value_bytes = partition.entry_view(map.id, &picked, now).map_or(0, |view| view.value.len());
                picked.len() + value_bytes + RECORD_OVERHEAD_BYTES
            }
            false => 1,
        };
        victims.push(&picked);
    }
    let counted = if alone { 0 } else { weight };
    map.evicting.fetch_add(counted, Ordering::AcqRel);
    map.evicting.fetch_sub(if alone { 0 } else { wanted }, Ordering::AcqRel);
    if !victims.is_empty() {
        state.evicting.push(map.id);
        let change = Change::EvictKeys { keys: victims.as_bytes() };
        let command = Command { map: map.id, now, caller: shared.own_caller(), change };
        to.push_own(partition, &command.into(), PendingAnswer::Evicted { map: map.clone(), weight: counted }, state);
    }
    alone || weight >= wanted
}

/// This member's share of the excess of a map: proportional to the number of groups that it leads,
/// and at least one. The leaders of the other groups see the same excess at the same time, and see
/// each other's evictions later.
fn share(shared: &Shared, excess: usize) -> usize {
    let replicator = shared.replication.as_ref().map(|replication| &replication.replicator);
    let Some(replicator) = replicator.filter(|replicator| excess > 1 && replicator.forwards()) else { return excess };
    let groups = replicator.groups();
    let led = (0..groups).filter(|group| replicator.lease(GroupId(*group)).is_ok()).count();
    excess.saturating_mul(led.max(1)).div_ceil(groups.max(1) as usize)
}

/// The number of entries of a map in a partition beyond the partition's equal share of the map's
/// limit. The partition keeps its share: evictions of other leaders are visible here later, so all
/// leaders together would evict too much. While the map exceeds its limit, some partition exceeds
/// its share.
fn beyond_part(shared: &Shared, map: &MapCore, state: &CellState) -> usize {
    let eviction = &map.config.eviction;
    if eviction.max_size_policy != MaxSizePolicy::PerNode {
        return usize::MAX;
    }
    let part = eviction.size / shared.config.partition_count.max(1);
    state.partition.statistics(map.id).entries.saturating_sub(part as usize)
}

/// Counts the excess of a map as evictions in flight, unless it is counted already: of several
/// threads that see the same excess, one acts.
fn claim(map: &MapCore, excess: usize, alone: bool) -> Option<usize> {
    if alone || excess == 0 {
        return (excess > 0).then_some(excess);
    }
    let take = |evicting: usize| (excess > evicting).then_some(excess);
    let before = map.evicting.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok()?;
    Some(excess - before)
}

fn leads(shared: &Shared, partition: PartitionId) -> bool {
    let replicator = shared.replication.as_ref().map(|replication| &replication.replicator);
    replicator.is_some_and(|replicator| replicator.lease(shared.group_of(partition)).is_ok())
}

/// Proposes evictions from partitions other than `partition`, which could not evict enough. Called
/// without any partition's lock.
#[cold]
pub(super) fn propose_evictions_elsewhere(shared: &Arc<Shared>, map: &Arc<MapCore>, partition: PartitionId) {
    let count = shared.config.partition_count.max(1);
    for offset in 1..=count {
        let id = PartitionId(partition.0.wrapping_add(offset) % count);
        // Other leaders evict from their partitions. A proposal here would be refused, but count as
        // an eviction.
        if !leads(shared, id) {
            continue;
        }
        let Some(cell) = shared.cell(id) else { return };
        let mut state = cell.lock();
        let mut to = Submissions::new(shared);
        let enough = propose_evictions(shared, map, id, &mut state, None, &mut to);
        to.send_holding(Some((id, &mut *state)));
        if enough {
            return;
        }
    }
}

/// Proposes the evictions that earlier changes have left to the sweep.
pub(crate) fn propose_evictions_by_sweep(shared: &Arc<Shared>, map: &Arc<MapCore>) {
    if map.config.eviction.max_size_policy != MaxSizePolicy::PerPartition {
        propose_evictions_elsewhere(shared, map, PartitionId(0));
    }
}

/// Proposes the removal of the expired entries of a partition.
pub(crate) fn propose_expiry(shared: &Shared, partition: PartitionId, state: &mut CellState, to: &mut Submissions) {
    let change = Change::Expire { limit: shared.config.expire_batch_max };
    let command = Command { map: MapId(0), now: shared.now(), caller: shared.own_caller(), change };
    to.push_own(partition, &command.into(), PendingAnswer::Swept, state);
}

impl Grid {
    /// Forgets this member's reads of a group that its log does not contain, because another member
    /// may have led since. Called before the first entry of a term is applied, and so before the
    /// leader of that term answers reads.
    pub fn forget_reads(&self, group: GroupId) {
        self.for_group(group, |_, _, state| state.partition.forget_reads());
    }

    /// This member leads a group from now on: changes may wait for keys of its partitions. Called
    /// before it answers reads.
    pub fn leadership_gained(&self, group: GroupId) {
        self.for_group(group, |_, _, state| state.waiters.open());
    }

    /// This member has the lease of a group again after a time without it, or for the first time in
    /// its term: checks the due work of its partitions. The sweep has left it.
    pub fn lease_gained(&self, group: GroupId) {
        self.for_group(group, |partition, cell, state| {
            self.propose_ends(partition, state);
            let due = state.partition.next_expiry().into_iter().chain(state.waiters.first_deadline()).min();
            if let Some(due) = due {
                self.shared.due_by(cell, due);
            }
        });
    }

    /// This member no longer leads a group: answers the waiters of its keys with an error that
    /// refers to the new leader, and lets no change wait from then on. The replicator answers the
    /// commands in flight.
    pub fn leadership_lost(&self, group: GroupId, hint: &str) {
        let error = GridError::Submit(SubmitError::NotLeader { group, hint: hint.to_owned() });
        self.for_group(group, |_, _, state| {
            for (_, waiter) in state.waiters.close() {
                self.shared.answer(waiter, Err(error.clone()));
            }
        });
    }

    /// A member has left the cluster: releases the claims of its statements.
    pub fn member_gone(&self, member: Uuid) {
        let mut to = Submissions::new(&self.shared);
        for (partition, cell) in self.shared.partitions().filter(|(partition, _)| self.shared.leads(*partition)) {
            if cell.lock().partition.claims().any(|(_, owner)| owner.client == member) {
                let release = Change::ReleaseLocks { client: member };
                to.push_with_retry(partition, MapId(0), self.shared.own_caller(), release);
            }
        }
        to.send();
    }

    /// The owners of claims in the partitions that this member leads. The client of an owner is its
    /// member.
    pub fn claim_owners(&self) -> BTreeSet<Caller> {
        let mut owners = BTreeSet::new();
        for (_, cell) in self.shared.partitions().filter(|(partition, _)| self.shared.leads(*partition)) {
            owners.extend(cell.lock().partition.claims().map(|(_, owner)| owner));
        }
        owners
    }

    /// Statements have ended: releases their claims in the partitions that this member leads.
    pub fn release_claims(&self, owners: &BTreeSet<Caller>) {
        let mut to = Submissions::new(&self.shared);
        for (partition, cell) in self.shared.partitions().filter(|(partition, _)| self.shared.leads(*partition)) {
            let claims: BTreeSet<(MapId, Caller)> =
                cell.lock().partition.claims().filter(|(_, owner)| owners.contains(owner)).collect();
            for (map, owner) in claims {
                to.push_with_retry(partition, map, owner, Change::Unclaim);
            }
        }
        to.send();
    }

    /// The clients with locks in the partitions that this member leads, and without a connection to
    /// this member.
    pub fn lock_owners_elsewhere(&self) -> BTreeSet<Uuid> {
        let mut owners = BTreeSet::new();
        for (_, cell) in self.shared.partitions().filter(|(partition, _)| self.shared.leads(*partition)) {
            owners.extend(cell.lock().partition.lock_owners());
        }
        // A caller without a UUID is not a client.
        owners.retain(|owner| !owner.is_nil() && !self.shared.clients.is_connected(*owner));
        owners
    }

    /// Clients have disconnected for good: releases their locks in the partitions that this member
    /// leads.
    pub fn release_locks(&self, clients: &BTreeSet<Uuid>) {
        let mut to = Submissions::new(&self.shared);
        for (partition, cell) in self.shared.partitions().filter(|(partition, _)| self.shared.leads(*partition)) {
            let owners: BTreeSet<Uuid> =
                cell.lock().partition.lock_owners().filter(|owner| clients.contains(owner)).collect();
            for client in owners {
                to.push_with_retry(partition, MapId(0), self.shared.own_caller(), Change::ReleaseLocks { client });
            }
        }
        to.send();
    }

    fn for_group(&self, group: GroupId, act: impl Fn(PartitionId, &Cell, &mut CellState)) {
        let Some(replication) = &self.shared.replication else { return };
        for (id, cell) in self.shared.partitions().filter(|(id, _)| replication.group_of(*id) == group) {
            act(id, cell, &mut cell.lock());
        }
    }
}
