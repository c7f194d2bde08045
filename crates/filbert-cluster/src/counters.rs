//! Counters of a member's replica of a group since its start, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one group on one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// The number of entries that this member has proposed as the leader, of one or more
    /// submissions each.
    pub proposals: u64,
    /// The number of times that this member became the leader.
    pub elections_won: u64,
    /// The number of bytes of snapshot pages that this member has sent. A repeated page counts
    /// once.
    pub snapshot_bytes_sent: u64,
    /// The number of bytes of snapshot pages that this member has received.
    pub snapshot_bytes_received: u64,
}

#[derive(Default)]
pub(crate) struct Counting {
    pub(crate) proposals: AtomicU64,
    pub(crate) elections_won: AtomicU64,
    pub(crate) snapshot_bytes_sent: AtomicU64,
    pub(crate) snapshot_bytes_received: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

impl Counting {
    pub(crate) fn read(&self) -> GroupCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        GroupCounters {
            proposals: read(&self.proposals),
            elections_won: read(&self.elections_won),
            snapshot_bytes_sent: read(&self.snapshot_bytes_sent),
            snapshot_bytes_received: read(&self.snapshot_bytes_received),
        }
    }
}
