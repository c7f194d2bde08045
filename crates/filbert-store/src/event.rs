//! What a partition tells while it changes: events, and who hears them.

use filbert_data::PartitionId;

use crate::{Caller, MapId};

/// Hears of every change of a partition, once each, in order, while the change is applied.
pub trait Observer {
    /// Called within [`Partition::apply`](crate::Partition::apply); must not block.
    fn observe(&mut self, event: &Event<'_>);
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn observe(&mut self, _event: &Event<'_>) {}
}

impl<F: FnMut(&Event<'_>)> Observer for F {
    fn observe(&mut self, event: &Event<'_>) {
        self(event);
    }
}

/// One change, as listeners and near caches need it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The map that changed.
    pub map: MapId,
    /// The partition that changed.
    pub partition: PartitionId,
    /// What happened.
    pub kind: EventKind,
    /// The key; empty for `Cleared`, `EvictedAll` and `Unclaimed`.
    pub key: &'a [u8],
    /// The new value, where there is one.
    pub value: Option<&'a [u8]>,
    /// The value before, where there was one.
    pub old_value: Option<&'a [u8]>,
    /// Who asked for the change; for expiry, whoever asked for the command that found the entry expired.
    pub caller: Caller,
    /// The map's number of changes in this partition after this one. `LockReleased` and `Unclaimed` do not
    /// count.
    pub sequence: u64,
    /// Entries taken out by `Cleared` and `EvictedAll`; otherwise 1, and 0 for `LockReleased` and
    /// `Unclaimed`.
    pub count: usize,
}

/// What happened to an entry or a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// An entry is new.
    Added,
    /// An entry has a new value.
    Updated,
    /// An entry was taken out.
    Removed,
    /// An entry was evicted, by size or by request.
    Evicted,
    /// An entry outlived its time.
    Expired,
    /// All entries but locked ones were taken out.
    Cleared,
    /// All entries but locked ones were evicted.
    EvictedAll,
    /// An entry came with its metadata, new or over an old one.
    Loaded,
    /// A key is free of its lock: given back, lease ended, or client gone. Not an event of the map: it lets waiters run.
    LockReleased,
    /// Keys are free of a claim. Not an event of the map: it lets waiters run.
    Unclaimed,
}
