//! The summaries of a map's indexes, by which a lookup asks only partitions that may have the key.
//!
//! An index begins with a summary that only counts keys. Once there are many, or more than a summary was made for, the
//! sweep makes another one. While it does, there is none, and lookups ask all partitions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use filbert_store::{IndexId, PartitionSet, Probe, SIGNATURE_PARTITIONS_MAX, Signature};
use parking_lot::RwLock;

use crate::layouts::MapLayout;
use crate::map::Map;
use crate::map_core::MapCore;
use crate::shared::Shared;

/// Keys from which on an index has a summary: for fewer, asking every partition costs little more than a summary does.
const KEYS_MIN: usize = 10_000;

/// The summaries of one map's indexes.
#[derive(Default)]
pub(crate) struct Signatures {
    by_index: RwLock<HashMap<IndexId, Arc<Signature>>>,
    /// Grows when a partition came that knows none of them: one that was being given to partitions then misses its keys.
    epoch: AtomicU64,
}

impl Signatures {
    pub(crate) fn bytes(&self) -> usize {
        self.by_index.read().values().map(|signature| signature.bytes()).sum()
    }

    /// The partitions in which a probe may find something.
    fn partitions_of(&self, index: IndexId, probe: &Probe, partition_count: u32) -> PartitionSet {
        let keys = match probe {
            Probe::Equal(key) => std::slice::from_ref(key),
            Probe::In(keys) => keys,
            Probe::Range { .. } | Probe::All { .. } => return PartitionSet::all_of(partition_count),
        };
        // Kept locked while it is read: nobody takes it away from partitions meanwhile.
        let signatures = self.by_index.read();
        let Some(signature) = signatures.get(&index) else { return PartitionSet::all_of(partition_count) };
        let mut partitions = PartitionSet::none_of(partition_count);
        for key in keys {
            signature.add_partitions_of(key, &mut partitions);
        }
        partitions
    }

    /// Drops all, as another partition has come; answers with their bytes.
    pub(crate) fn partition_replaced(&self) -> usize {
        let mut signatures = self.by_index.write();
        self.epoch.fetch_add(1, Ordering::SeqCst);
        signatures.drain().map(|(_, signature)| signature.bytes()).sum()
    }

    fn take(&self, index: IndexId) -> Option<Arc<Signature>> {
        self.by_index.write().remove(&index)
    }
}

impl Shared {
    /// Drops the summaries of indexes that are not ready. Called while nobody else changes the map's layout.
    pub(crate) fn drop_signatures(&self, core: &MapCore, layout: &MapLayout) {
        let stays = |id: &IndexId| layout.indexes.iter().any(|index| index.id == *id && index.ready);
        let mut signatures = core.layouts.signatures.by_index.write();
        let before: usize = signatures.values().map(|signature| signature.bytes()).sum();
        signatures.retain(|id, _| stays(id));
        let after: usize = signatures.values().map(|signature| signature.bytes()).sum();
        self.account(before, after);
        core.account(before, after);
    }

    /// Gives a summary to each index that has none. Called while nobody else changes the map's layout.
    pub(crate) fn add_signatures(&self, core: &MapCore, layout: &MapLayout) {
        if self.config.partition_count > SIGNATURE_PARTITIONS_MAX {
            return;
        }
        for index in &layout.indexes {
            let is_there = core.layouts.signatures.by_index.read().contains_key(&index.id);
            if !is_there && self.set_signature(core, index.id, Signature::counting(KEYS_MIN)) {
                self.renew_signature(core, index.id);
            }
        }
    }

    /// Gives summaries to the indexes of maps that have none, where nobody else changes a map's layout: who does, gives them as well.
    pub(crate) fn add_missing_signatures(&self, maps: &[Arc<MapCore>]) {
        for core in maps {
            if let Some(_changing) = core.layouts.try_begin_change() {
                self.add_signatures(core, &core.layouts.current());
            }
        }
    }

    /// Makes anew the summaries that have more keys than they were made for.
    pub(crate) fn renew_signatures(&self, core: &MapCore) {
        let full = |core: &MapCore| {
            let signatures = core.layouts.signatures.by_index.read();
            signatures.iter().filter(|(_, signature)| signature.is_full()).map(|(id, _)| *id).collect::<Vec<_>>()
        };
        if full(core).is_empty() {
            return;
        }
        let Some(_changing) = core.layouts.try_begin_change() else { return };
        for id in full(core) {
            self.renew_signature(core, id);
        }
    }

    fn renew_signature(&self, core: &MapCore, index: IndexId) {
        let is_full = core.layouts.signatures.by_index.read().get(&index).is_some_and(|signature| signature.is_full());
        if !is_full {
            return;
        }
        let of_cell = |cell: &crate::cell::Cell| {
            cell.lock().partition.index_statistics(core.id, index).map_or(0, |statistics| statistics.distinct)
        };
        let keys: usize = self.cells.iter().map(of_cell).sum();
        let signature = if keys < KEYS_MIN / 2 {
            Signature::counting(KEYS_MIN)
        } else {
            Signature::new(self.config.partition_count, keys, self.signature_seed)
        };
        let used = self.memory_bytes.load(Ordering::Relaxed);
        let fits = self.config.memory_bytes_max.is_none_or(|max| used.saturating_add(signature.bytes()) <= max);
        let signature = if fits { signature } else { Signature::counting(keys.saturating_mul(2)) };
        self.set_signature(core, index, signature);
    }

    /// Gives a summary to an index in all partitions, then to lookups; whether the index is there.
    fn set_signature(&self, core: &MapCore, index: IndexId, signature: Signature) -> bool {
        let (signature, signatures) = (Arc::new(signature), &core.layouts.signatures);
        let epoch = signatures.epoch.load(Ordering::SeqCst);
        let before = signatures.take(index).map_or(0, |signature| signature.bytes());
        let mut is_there = true;
        for cell in &self.cells {
            is_there &= cell.lock().partition.set_signature(core.id, index, Some(signature.clone()));
        }
        let mut after = 0;
        let mut published = signatures.by_index.write();
        // Who destroys a map marks it first, then drops its summaries.
        let is_whole = is_there && epoch == signatures.epoch.load(Ordering::SeqCst);
        if is_whole && !core.destroyed.load(Ordering::Acquire) {
            after = signature.bytes();
            published.insert(index, signature);
        }
        drop(published);
        self.account(before, after);
        core.account(before, after);
        is_there
    }

    /// Drops all summaries of a map.
    pub(crate) fn clear_signatures(&self, core: &MapCore) {
        let before = core.layouts.signatures.by_index.write().drain().map(|(_, signature)| signature.bytes()).sum();
        self.account(before, 0);
    }
}

impl Map {
    /// The partitions in which an index may find something: for a few keys of a large index, few; else all. No partition
    /// that has such an entry is left out.
    pub fn probe_partitions(&self, index: IndexId, probe: &Probe) -> PartitionSet {
        self.core.layouts.signatures.partitions_of(index, probe, self.shared.config.partition_count)
    }
}
