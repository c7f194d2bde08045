//! The commands of a connection that are in flight through logs. A door uses it to delay reads that
//! must see the connection's own changes, and for back-pressure.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use filbert_data::PartitionId;
use parking_lot::Mutex;

/// The commands of one connection that were submitted, and are neither applied nor refused. Changes
/// that wait for a lock do not count, because other callers decide when their wait ends.
pub struct InFlight {
    by_partition: Mutex<HashMap<PartitionId, usize>>,
    bytes: AtomicUsize,
    wake_requested: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl InFlight {
    /// Creates an empty set of commands. `wake` is called under a partition's lock: it must neither
    /// block nor call back into the grid.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        InFlight {
            by_partition: Mutex::default(),
            bytes: AtomicUsize::new(0),
            wake_requested: AtomicBool::new(false),
            wake: Box::new(wake),
        }
    }

    /// The bytes of commands in flight.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether a command of the partition is in flight.
    pub fn any_of(&self, partition: PartitionId) -> bool {
        self.bytes() > 0 && self.by_partition.lock().contains_key(&partition)
    }

    /// Requests one call of `wake`, when the next command ends. The caller must check its condition
    /// after this call.
    pub fn wake_at_next(&self) {
        self.wake_requested.store(true, Ordering::SeqCst);
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
        if self.wake_requested.swap(false, Ordering::SeqCst) {
            (self.wake)();
        }
    }
}
