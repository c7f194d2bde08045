//! Making room in maps with a limit: decides how many entries must go, and lets the partitions pick which.
//!
//! The partition that grew gives up entries first, under the same hold of its lock. Only when it has none to give do the
//! others, one after the other, each under its own lock.

use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{Change, Command, EvictionPolicy, Partition, Reply};

use crate::cell::{Cell, CellState};
use crate::config::{MapConfig, MaxSizePolicy, SIZE_UNLIMITED};
use crate::map_core::MapCore;
use crate::shared::Shared;
use crate::tap::Tap;

const MB: usize = 1 << 20;
/// Entries that one change may evict from one partition when a map is over its bytes: it bounds how long one writer
/// works for the others, and how long it holds the partition. What remains is left to the next writers and the sweep.
const EVICTIONS_PER_VISIT_MAX: usize = 64;

/// Whether the map has a limit that eviction keeps. A size of 0 stands for no limit, as in Hazelcast.
pub(crate) fn applies(config: &MapConfig) -> bool {
    let eviction = &config.eviction;
    eviction.policy != EvictionPolicy::None && eviction.size != 0 && eviction.size < SIZE_UNLIMITED
}

/// Whether the policy's size counts bytes and not entries.
pub(crate) fn counts_bytes(policy: MaxSizePolicy) -> bool {
    !matches!(policy, MaxSizePolicy::PerNode | MaxSizePolicy::PerPartition)
}

/// Whether a change can take its map beyond a limit.
#[inline]
pub(crate) fn may_grow(change: &Change<'_>) -> bool {
    matches!(change, Change::Put { .. } | Change::ReplaceIfSame { .. } | Change::WriteBatch { .. })
}

/// Evicts from one partition until the map is within its limit; `false` if it is still beyond it, and other partitions
/// must help. `spared` is the key whose arrival made it necessary: it is not the victim.
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

/// Evicts from one partition after many entries came at once, as often as after each of them.
pub(crate) fn make_room_after_many(shared: &Shared, map: &MapCore, cell: &Cell, state: &mut CellState) -> bool {
    let entries = state.partition.statistics(map.id).entries;
    (0..=entries / EVICTIONS_PER_VISIT_MAX).any(|_| make_room_here(shared, map, cell, state, None))
}

/// Lets the other partitions make the room that `partition` could not. Called without any partition's lock.
#[cold]
pub(crate) fn make_room_elsewhere(shared: &Shared, map: &MapCore, partition: PartitionId, spared: Option<&[u8]>) {
    let count = shared.cells.len().max(1);
    // Begins after the partition that grew, so that the burden is spread as the keys are.
    for offset in 1..=count {
        let Some(cell) = shared.cells.get((partition.0 as usize).wrapping_add(offset) % count) else { return };
        let mut state = cell.lock();
        if make_room_here(shared, map, cell, &mut state, spared) {
            return;
        }
    }
}

/// Makes the room that parked changes could not make when they ran, and that writers left to others.
pub(crate) fn make_room_by_sweep(shared: &Shared, map: &MapCore) {
    let by_partition = map.config.eviction.max_size_policy == MaxSizePolicy::PerPartition;
    let over = || shared.cells.first().is_some_and(|cell| is_over(shared, map, &cell.lock().partition));
    if !by_partition && over() {
        make_room_elsewhere(shared, map, PartitionId(0), None);
    }
}

/// Picks an entry and has it evicted; `false` if there is none that may go.
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
    let command = Command { map: map.id, now, caller: shared.itself(), change };
    let before = partition.bytes();
    let mut tap = Tap::uncounted(shared, cell, map, map.config.eviction.max_size_policy == MaxSizePolicy::PerNode);
    let gone = matches!(partition.lead(&command, &mut tap), Reply::Count(1));
    let after = partition.bytes();
    shared.account(before, after);
    map.account(before, after);
    gone
}

/// Whether the map is beyond its limit; if its entries on the member are counted, takes one of them off the count
/// already, so that of several writers who see the same excess, as many evict as must.
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

/// By how much the map is beyond its limit, in entries or bytes as its policy says.
pub(crate) fn excess(shared: &Shared, map: &MapCore, partition: &Partition) -> usize {
    let size = map.config.eviction.size as usize;
    let member_max = shared.config.memory_bytes_max.unwrap_or(usize::MAX);
    let member_used = || shared.memory_bytes.load(Ordering::Relaxed);
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
