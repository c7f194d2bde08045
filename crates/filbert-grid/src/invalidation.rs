//! Near-cache invalidation: near caches are notified of every change, with a sequence number that
//! lets them detect a missed change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filbert_data::PartitionId;
use filbert_store::MapId;
use parking_lot::RwLock;
use uuid::Uuid;

use crate::clients::ConnectionId;
use crate::listeners::ListenerId;

/// An entry of a near cache, or all its entries of one partition, are invalid.
#[derive(Clone, Copy, Debug)]
pub struct Invalidation<'a> {
    /// The partition that changed.
    pub partition: PartitionId,
    /// The key; `None` for all keys of the partition.
    pub key: Option<&'a [u8]>,
    /// The client that caused the change, or the member's UUID for its own changes.
    pub source: Uuid,
    /// The UUID of the partition. A changed UUID means that the sequence restarted.
    pub partition_uuid: Uuid,
    /// The sequence of the change: those of a map in a partition have no gaps. Their start depends
    /// on the map: a map that replaces another one, or has its name later, has greater ones.
    pub sequence: i64,
}

/// The sequence of a map in a partition after a number of changes. The upper half is the id of the
/// map, and ids of later maps are greater.
pub(crate) fn sequence_of(map: MapId, changes: u64) -> i64 {
    (i64::from(map.0) << 31).saturating_add(i64::try_from(changes).unwrap_or(i64::MAX))
}

/// The receiver of invalidations. Called under a partition's lock, as
/// [`EntrySink`](crate::EntrySink) is.
pub trait InvalidationSink: Send + Sync {
    /// Receives an invalidation.
    fn invalidate(&self, invalidation: &Invalidation<'_>);
}

impl<F: Fn(&Invalidation<'_>) + Send + Sync> InvalidationSink for F {
    fn invalidate(&self, invalidation: &Invalidation<'_>) {
        self(invalidation);
    }
}

/// The sequence of each partition. Near caches compare them to find and repair missed
/// invalidations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvalidationMetadata {
    /// For each requested map that exists: the sequences of all partitions.
    pub sequences: Vec<(String, Vec<(PartitionId, i64)>)>,
    /// The UUID of every partition.
    pub partition_uuids: Vec<(PartitionId, Uuid)>,
}

struct Registered {
    id: ListenerId,
    connection: Option<ConnectionId>,
    sink: Arc<dyn InvalidationSink>,
}

/// The invalidation listeners of one map.
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

    /// Moves all listeners to another map.
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
