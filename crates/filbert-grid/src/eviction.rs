//! Eviction from maps with a size limit: computes how many entries must be evicted. The partitions
//! choose the entries.
//!
//! The partition that grew evicts first, while its lock is held. If that is not enough, the other
//! partitions evict, one after the other, each under its own lock.

use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{Change, Command, Partition, Reply};

use crate::cell::{Cell, CellState};
use crate::config::MaxSizePolicy;
use crate::map_core::MapCore;
use crate::shared::Shared;
use crate::tap::Tap;

const MB: usize = 1 << 20;
/// The maximum number of entries that one change evicts from one partition. It limits how long one
/// writer works for others, and how long it holds the partition's lock. The following writers and
/// the sweep evict the rest.
const EVICTIONS_PER_VISIT_MAX: usize = 64;

/// Whether entries may have to be evicted after a change: it can make its map exceed a limit, or
/// it releases entries of a map that does.
#[inline]
pub(crate) fn may_need_eviction(change: &Change<'_>) -> bool {
    matches!(change, Change::Put { .. } | Change::ReplaceIfSame { .. } | Change::WriteBatch { .. } | Change::Unclaim)
}

/// Evicts from one partition until the map is within its limit. `false` if it still exceeds the
/// limit, so that other partitions must evict. `spared` is the key that was just written: it is not
/// evicted.
pub(crate) fn make_room_here(
    shared: &Shared,
    map: &MapCore,
    cell: &Cell,
    state: &mut CellState,
    spared: Option<&[u8]>,
) -> bool {
    for _ in 0..EVICTIONS_PER_VISIT_MAX {
        if !claim_excess(shared, map, &state.partition) {
            return true;
        }
        if !evict_one(shared, map, cell, state, spared) {
            give_back_claim(map);
            return map.config.eviction.max_size_policy == MaxSizePolicy::PerPartition;
        }
    }
    !is_over(shared, map, &state.partition)
}

/// Evicts from one partition after many entries were written together. Allows as many rounds as if
/// each write had evicted.
pub(crate) fn make_room_after_many(shared: &Shared, map: &MapCore, cell: &Cell, state: &mut CellState) -> bool {
    let entries = state.partition.statistics(map.id).entries;
    (0..=entries / EVICTIONS_PER_VISIT_MAX).any(|_| make_room_here(shared, map, cell, state, None))
}

/// Evicts from the partitions after `partition` until the map is within its limit. Called without
/// any partition's lock.
#[cold]
pub(crate) fn make_room_elsewhere(shared: &Shared, map: &MapCore, partition: PartitionId, spared: Option<&[u8]>) {
    let count = shared.cells.len().max(1);
    // Starts at the next partition, so that evictions are distributed like the keys.
    for offset in 1..=count {
        let Some(cell) = shared.cells.get((partition.0 as usize).wrapping_add(offset) % count) else { return };
        let mut state = cell.lock();
        if make_room_here(shared, map, cell, &mut state, spared) {
            return;
        }
    }
}

/// Evicts the entries that parked changes and writers have left to the sweep.
pub(crate) fn make_room_by_sweep(shared: &Shared, map: &MapCore) {
    let by_partition = map.config.eviction.max_size_policy == MaxSizePolicy::PerPartition;
    let over = || shared.cells.first().is_some_and(|cell| is_over(shared, map, &cell.lock().partition));
    if !by_partition && over() {
        make_room_elsewhere(shared, map, PartitionId(0), None);
    }
}

/// Chooses an entry and evicts it. `false` if no entry may be evicted.
fn evict_one(shared: &Shared, map: &MapCore, cell: &Cell, state: &mut CellState, spared: Option<&[u8]>) -> bool {
    let CellState { partition, random, victims, .. } = state;
    let (policy, now) = (map.config.eviction.policy, shared.now());
    let spares = |key: &[u8]| spared == Some(key);
    victims.clear();
    match partition.pick_eviction(map.id, policy, now, &mut || random.next_u64(), &spares) {
        Some(picked) => victims.push(picked),
        None => return false,
    };
    let change = Change::EvictKeys { keys: victims.as_bytes() };
    let command = Command { map: map.id, now, caller: shared.own_caller(), change };
    let before = partition.bytes();
    let mut tap = Tap::uncounted(shared, cell, map, map.config.eviction.max_size_policy == MaxSizePolicy::PerNode);
    let gone = matches!(partition.lead(&command, &mut tap), Reply::Count(1));
    let after = partition.bytes();
    shared.account(before, after);
    map.account(before, after);
    gone
}

/// Whether the map exceeds its limit. If the limit is the number of entries on the member,
/// subtracts one entry from the count in advance: several writers that see the same excess then
/// evict only as many entries as necessary.
fn claim_excess(shared: &Shared, map: &MapCore, partition: &Partition) -> bool {
    if map.config.eviction.max_size_policy != MaxSizePolicy::PerNode {
        return is_over(shared, map, partition);
    }
    let size = map.config.eviction.size as usize;
    let take_one = |entries: usize| (entries > size).then(|| entries - 1);
    map.entries.fetch_update(Ordering::AcqRel, Ordering::Acquire, take_one).is_ok()
}

fn give_back_claim(map: &MapCore) {
    if map.config.eviction.max_size_policy == MaxSizePolicy::PerNode {
        map.entries.fetch_add(1, Ordering::AcqRel);
    }
}

fn is_over(shared: &Shared, map: &MapCore, partition: &Partition) -> bool {
    excess(shared, map, partition) > 0
}

/// The excess of the map over its limit, in entries or bytes according to its policy.
pub(crate) fn excess(shared: &Shared, map: &MapCore, partition: &Partition) -> usize {
    let size = map.config.eviction.size as usize;
    let member_max = shared.config.memory_bytes_max.unwrap_or(usize::MAX);
    let member_used = || shared.memory.maps();
    let map_used = || map.bytes.load(Ordering::Acquire);
    let part = |percent: usize| member_max / 100 * percent.min(100);
    match map.config.eviction.max_size_policy {
        MaxSizePolicy::PerNode => map.entries.load(Ordering::Acquire).saturating_sub(size),
        MaxSizePolicy::PerPartition => partition.statistics(map.id).entries.saturating_sub(size),
        MaxSizePolicy::UsedHeapSize | MaxSizePolicy::UsedNativeMemorySize => {
            map_used().saturating_sub(size.saturating_mul(MB))
        }
        MaxSizePolicy::UsedHeapPercentage | MaxSizePolicy::UsedNativeMemoryPercentage => {
            map_used().saturating_sub(part(size))
        }
        MaxSizePolicy::FreeHeapSize | MaxSizePolicy::FreeNativeMemorySize => {
            member_used().saturating_sub(member_max.saturating_sub(size.saturating_mul(MB)))
        }
        MaxSizePolicy::FreeHeapPercentage | MaxSizePolicy::FreeNativeMemoryPercentage => {
            member_used().saturating_sub(member_max.saturating_sub(part(size)))
        }
    }
}
