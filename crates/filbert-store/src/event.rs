//! Events, which describe the changes of a partition, and the interface of their observers.

use filbert_data::PartitionId;

use crate::{Caller, MapId};

/// Receives each change of a partition once, in order, while the change is applied.
pub trait Observer {
    /// Called within [`Partition::apply`](crate::Partition::apply); must not block.
    fn observe(&mut self, event: &Event<'_>);
}

/// An observer that ignores all events.
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

/// One change, in the form for listeners and near caches.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The map that changed.
    pub map: MapId,
    /// The partition that changed.
    pub partition: PartitionId,
    /// The kind of the change.
    pub kind: EventKind,
    /// The key; empty for `Cleared`, `EvictedAll` and `Unclaimed`.
    pub key: &'a [u8],
    /// The new value, if there is one.
    pub value: Option<&'a [u8]>,
    /// The old value, if there was one.
    pub old_value: Option<&'a [u8]>,
    /// The caller of the change. For expiry, the caller of the command that found the entry
    /// expired.
    pub caller: Caller,
    /// The number of changes of the map in this partition, including this one. `LockReleased` and
    /// `Unclaimed` do not count.
    pub sequence: u64,
    /// The number of entries removed by `Cleared` and `EvictedAll`; 0 for `LockReleased` and
    /// `Unclaimed`; otherwise 1.
    pub count: usize,
}

/// The kinds of events of an entry or a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// An entry is new.
    Added,
    /// An entry has a new value.
    Updated,
    /// An entry was removed.
    Removed,
    /// An entry was evicted, because of the size or by request.
    Evicted,
    /// An entry expired.
    Expired,
    /// All entries except locked ones were removed.
    Cleared,
    /// All entries except locked ones were evicted.
    EvictedAll,
    /// An entry was written with its metadata, as a new one or over an old one.
    Loaded,
    /// The lock of a key was released: unlocked, its lease ended, or its client disconnected. Not a
    /// change of the map: it lets waiters continue.
    LockReleased,
    /// Claims were released. Not a change of the map: it lets waiters continue.
    Unclaimed,
}
