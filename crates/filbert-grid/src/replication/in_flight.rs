//! What a connection has on its way into logs: by it a door holds back reads that must see its own changes, and whoever sends
//! faster than groups answer.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use filbert_data::PartitionId;
use parking_lot::Mutex;

/// Commands of one connection that were submitted and are neither applied nor refused. Changes that wait for a lock do not
/// count: their end is up to others.
pub struct InFlight {
    by_partition: Mutex<HashMap<PartitionId, usize>>,
    bytes: AtomicUsize,
    awaited: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl InFlight {
    /// Nothing is on its way. `wake` is called under a partition's lock: it must neither block nor call back into the grid.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        InFlight {
            by_partition: Mutex::default(),
            bytes: AtomicUsize::new(0),
            awaited: AtomicBool::new(false),
            wake: Box::new(wake),
        }
    }

    /// Bytes of commands that are on their way.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether a command of the partition is on its way.
    pub fn any_of(&self, partition: PartitionId) -> bool {
        self.bytes() > 0 && self.by_partition.lock().contains_key(&partition)
    }

    /// Has `wake` called at the next command that is no longer on its way. What the caller waits for is looked at after this.
    pub fn wake_at_next(&self) {
        self.awaited.store(true, Ordering::SeqCst);
    }

    pub(crate) fn begin(&self, partition: PartitionId, bytes: usize) {
        *self.by_partition.lock().entry(partition).or_default() += 1;
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    pub(crate) fn end(&self, partition: PartitionId, bytes: usize) {
        {
            let mut by_partition = self.by_partition.lock();
            if let Some(count) = by_partition.get_mut(&partition) {
                *count -= 1;
                if *count == 0 {
                    by_partition.remove(&partition);
                }
            }
        }
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        if self.awaited.swap(false, Ordering::SeqCst) {
            (self.wake)();
        }
    }
}
