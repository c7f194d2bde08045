//! Making room in maps with a limit: decides how many entries must go, and lets the partitions pick which.

use std::sync::atomic::Ordering;

use filbert_data::PartitionId;
use filbert_store::{Change, Command, EvictionPolicy, MapStatistics, Reply};

use crate::config::{MapConfig, MaxSizePolicy, SIZE_UNLIMITED};
use crate::map::MapCore;
use crate::shared::Shared;

const MB: usize = 1 << 20;
/// Entries that one change may evict beyond its own place when a map is over its bytes: it bounds how long one writer
/// works for the others.
const EVICTIONS_PER_CHANGE_MAX: usize = 64;

/// Whether the map has a limit that eviction keeps.
#[inline]
pub(crate) fn applies(config: &MapConfig) -> bool {
    let eviction = &config.eviction;
    eviction.policy != EvictionPolicy::None
        && (counts_bytes(eviction.max_size_policy) || (eviction.size != 0 && eviction.size < SIZE_UNLIMITED))
}

/// Whether the policy's size counts bytes and not entries.
pub(crate) fn counts_bytes(policy: MaxSizePolicy) -> bool {
    !matches!(policy, MaxSizePolicy::PerNode | MaxSizePolicy::PerPartition)
}

/// Evicts until the map is within its limit, beginning with the partition that grew. `spared` is the key whose arrival
/// made it necessary: it must not be the victim.
#[cold]
fn evict_over(shared: &Shared, map: &MapCore, partition: PartitionId, spared: Option<&[u8]>) {
    let count = shared.cells.len();
    let start = partition.0 as usize % count;
    let mut evicted = 0;
    for offset in 0..count {
        let index = (start + offset) % count;
        let Some(cell) = shared.cells.get(index) else { return };
        let mut state = cell.lock();
        while excess(shared, map, &state.partition.statistics(map.id)) > 0 {
            if evicted >= EVICTIONS_PER_CHANGE_MAX && counts_bytes(map.config.eviction.max_size_policy) {
                return;
            }
            let change = Change::EvictSample { policy: map.config.eviction.policy, count: 1, except: spared };
            let command = Command { map: map.id, now: shared.now(), caller: shared.itself(), change };
            let gone = shared.apply(cell, &mut state, map, &command, |reply| match reply {
                Reply::Count(gone) => gone,
                _ => 0,
            });
            if gone == 0 {
                break;
            }
            evicted += gone;
        }
        if map.config.eviction.max_size_policy == MaxSizePolicy::PerPartition
            || excess(shared, map, &state.partition.statistics(map.id)) == 0
        {
            return;
        }
    }
}

/// Keeps the map's limit after a change. Cheap while it is kept.
pub(crate) fn make_room(shared: &Shared, map: &MapCore, partition: PartitionId, spared: Option<&[u8]>) {
    let eviction = &map.config.eviction;
    let over = match eviction.max_size_policy {
        MaxSizePolicy::PerNode => map.entries.load(Ordering::Acquire) > eviction.size as usize,
        _ => true,
    };
    if over {
        evict_over(shared, map, partition, spared);
    }
}

/// Entries or bytes that the map is over its limit. `here` are the figures of the partition at hand.
fn excess(shared: &Shared, map: &MapCore, here: &MapStatistics) -> usize {
    let eviction = &map.config.eviction;
    let size = eviction.size as usize;
    let member_max = shared.config.memory_bytes_max.unwrap_or(usize::MAX);
    let member_used = shared.memory_bytes.load(Ordering::Relaxed);
    let map_used = map.bytes.load(Ordering::Acquire);
    let part = |percent: usize| member_max / 100 * percent.min(100);
    match eviction.max_size_policy {
        MaxSizePolicy::PerNode => map.entries.load(Ordering::Acquire).saturating_sub(size),
        MaxSizePolicy::PerPartition => here.entries.saturating_sub(size),
        MaxSizePolicy::UsedHeapSize | MaxSizePolicy::UsedNativeMemorySize => map_used.saturating_sub(size * MB),
        MaxSizePolicy::UsedHeapPercentage | MaxSizePolicy::UsedNativeMemoryPercentage => {
            map_used.saturating_sub(part(size))
        }
        MaxSizePolicy::FreeHeapSize | MaxSizePolicy::FreeNativeMemorySize => {
            member_used.saturating_sub(member_max.saturating_sub(size * MB))
        }
        MaxSizePolicy::FreeHeapPercentage | MaxSizePolicy::FreeNativeMemoryPercentage => {
            member_used.saturating_sub(member_max - part(size))
        }
    }
}
