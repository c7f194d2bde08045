//! Near-cache invalidation: near caches hear of every change, with a number by which they see that they missed one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filbert_data::PartitionId;
use parking_lot::RwLock;
use uuid::Uuid;

use crate::{ConnectionId, ListenerId};

/// A near cache must forget an entry, or all of one partition.
#[derive(Clone, Copy, Debug)]
pub struct Invalidation<'a> {
    /// The partition that changed.
    pub partition: PartitionId,
    /// The key; `None` for all keys of the partition.
    pub key: Option<&'a [u8]>,
    /// The client that made the change, or the member's UUID when it did so by itself.
    pub source: Uuid,
    /// The partition's UUID; another one than before means that counting began anew.
    pub partition_uuid: Uuid,
    /// The map's number of changes in this partition, counted from 1 without a gap.
    pub sequence: i64,
}

/// Where invalidations go. Called under a partition's lock, as [`EntrySink`](crate::EntrySink) is.
pub trait InvalidationSink: Send + Sync {
    /// Takes an invalidation.
    fn invalidate(&self, invalidation: &Invalidation<'_>);
}

impl<F: Fn(&Invalidation<'_>) + Send + Sync> InvalidationSink for F {
    fn invalidate(&self, invalidation: &Invalidation<'_>) {
        self(invalidation);
    }
}

/// Where each partition's counting stands, by which near caches repair themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvalidationMetadata {
    /// For each map asked for that exists: its sequence in every partition that has changed.
    pub sequences: Vec<(String, Vec<(PartitionId, i64)>)>,
    /// The UUID of every partition.
    pub partition_uuids: Vec<(PartitionId, Uuid)>,
}

struct Registered {
    id: ListenerId,
    connection: Option<ConnectionId>,
    sink: Arc<dyn InvalidationSink>,
}

/// Those who keep near caches of one map.
#[derive(Default)]
pub(crate) struct InvalidationListeners {
    all: RwLock<Vec<Registered>>,
    count: AtomicUsize,
}

impl InvalidationListeners {
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    pub(crate) fn add(&self, id: ListenerId, connection: Option<ConnectionId>, sink: Arc<dyn InvalidationSink>) {
        let mut all = self.all.write();
        all.push(Registered { id, connection, sink });
        self.count.store(all.len(), Ordering::Release);
    }

    pub(crate) fn remove(&self, id: ListenerId) -> bool {
        self.retain(|registered| registered.id != id) > 0
    }

    pub(crate) fn remove_connection(&self, connection: ConnectionId) -> usize {
        self.retain(|registered| registered.connection != Some(connection))
    }

    pub(crate) fn clear(&self) -> usize {
        self.retain(|_| false)
    }

    /// Gives all to another map.
    pub(crate) fn move_to(&self, other: &Self) {
        let mut taken = std::mem::take(&mut *self.all.write());
        self.count.store(0, Ordering::Release);
        let mut all = other.all.write();
        all.append(&mut taken);
        other.count.store(all.len(), Ordering::Release);
    }

    fn retain(&self, keep: impl Fn(&Registered) -> bool) -> usize {
        if !self.any() {
            return 0;
        }
        let mut all = self.all.write();
        let before = all.len();
        all.retain(keep);
        self.count.store(all.len(), Ordering::Release);
        before - all.len()
    }

    pub(crate) fn deliver(&self, invalidation: &Invalidation<'_>) {
        for registered in self.all.read().iter() {
            registered.sink.invalidate(invalidation);
        }
    }
}
