//! What a member's copy of a group has done since it started, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one group on one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// Entries that it has proposed as the leader, each of one submission or more.
    pub proposals: u64,
    /// Times that it began to lead.
    pub elections_won: u64,
    /// Bytes of pages of snapshots that it has made for others; one that is sent again counts once.
    pub snapshot_bytes_sent: u64,
    /// Bytes of pages of snapshots that others have sent to it.
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
