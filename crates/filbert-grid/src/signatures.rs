//! The summaries of a map's indexes. With a summary, a lookup visits only partitions that may
//! contain the key.
//!
//! A lookup in an index without a summary visits all partitions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use filbert_store::{IndexId, PartitionSet, Probe, Signature};
use parking_lot::RwLock;

/// The summaries of one map's indexes.
#[derive(Default)]
pub(crate) struct Signatures {
    pub(crate) by_index: RwLock<HashMap<IndexId, Arc<Signature>>>,
    /// Increases when a snapshot replaces a partition, which then has no summaries. A summary that
    /// was being installed at that time lacks the keys of this partition.
    pub(crate) epoch: AtomicU64,
}

impl Signatures {
    pub(crate) fn bytes(&self) -> usize {
        self.by_index.read().values().map(|signature| signature.bytes()).sum()
    }

    /// The partitions in which a probe may find entries.
    pub(crate) fn partitions_of(&self, index: IndexId, probe: &Probe, partition_count: u32) -> PartitionSet {
        let keys = match probe {
            Probe::Equal(key) => std::slice::from_ref(key),
            Probe::In(keys) => keys,
            Probe::Range { .. } | Probe::All { .. } => return PartitionSet::all_of(partition_count),
        };
        // Held while the summary is read, so that it is not removed from the partitions meanwhile.
        let signatures = self.by_index.read();
        let Some(signature) = signatures.get(&index) else { return PartitionSet::all_of(partition_count) };
        let mut partitions = PartitionSet::none_of(partition_count);
        for key in keys {
            signature.add_partitions_of(key, &mut partitions);
        }
        partitions
    }

    /// Drops all summaries, because a snapshot has replaced a partition. Returns their size in
    /// bytes.
    pub(crate) fn partition_replaced(&self) -> usize {
        let mut signatures = self.by_index.write();
        self.epoch.fetch_add(1, Ordering::SeqCst);
        signatures.drain().map(|(_, signature)| signature.bytes()).sum()
    }

    pub(crate) fn take(&self, index: IndexId) -> Option<Arc<Signature>> {
        self.by_index.write().remove(&index)
    }
}
