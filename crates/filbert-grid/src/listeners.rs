//! The entry listeners of one map, and their filters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filbert_data::{Blob, PartitionId};
use filbert_store::EventKind;
use parking_lot::RwLock;
use uuid::Uuid;

use crate::clients::ConnectionId;

/// The id of a registration. Clients use it to remove the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub Uuid);

/// A set of event kinds, as the bit mask of the client protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventKinds(pub u32);

impl EventKinds {
    /// An entry was added.
    pub const ADDED: EventKinds = EventKinds(1);
    /// An entry was removed.
    pub const REMOVED: EventKinds = EventKinds(2);
    /// The value of an entry was updated.
    pub const UPDATED: EventKinds = EventKinds(4);
    /// An entry was evicted.
    pub const EVICTED: EventKinds = EventKinds(8);
    /// An entry has expired.
    pub const EXPIRED: EventKinds = EventKinds(16);
    /// The whole map was evicted.
    pub const EVICT_ALL: EventKinds = EventKinds(32);
    /// The whole map was cleared.
    pub const CLEAR_ALL: EventKinds = EventKinds(64);
    /// An entry was merged from another cluster. Never sent.
    pub const MERGED: EventKinds = EventKinds(128);
    /// An entry of a near cache is invalid. Sent to invalidation listeners only.
    pub const INVALIDATION: EventKinds = EventKinds(256);
    /// An entry was loaded.
    pub const LOADED: EventKinds = EventKinds(512);
    /// All of the above.
    pub const ALL: EventKinds = EventKinds(1023);

    /// The bit of an event kind; empty for kinds that are not events of a map.
    pub const fn of(kind: EventKind) -> EventKinds {
        match kind {
            EventKind::Added => EventKinds::ADDED,
            EventKind::Updated => EventKinds::UPDATED,
            EventKind::Removed => EventKinds::REMOVED,
            EventKind::Evicted => EventKinds::EVICTED,
            EventKind::Expired => EventKinds::EXPIRED,
            EventKind::Cleared => EventKinds::CLEAR_ALL,
            EventKind::EvictedAll => EventKinds::EVICT_ALL,
            EventKind::Loaded => EventKinds::LOADED,
            EventKind::LockReleased | EventKind::Unclaimed => EventKinds(0),
        }
    }

    /// Whether the sets have a common kind.
    pub const fn intersects(self, other: EventKinds) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for EventKinds {
    type Output = EventKinds;

    fn bitor(self, other: EventKinds) -> EventKinds {
        EventKinds(self.0 | other.0)
    }
}

/// A filter of entries.
pub trait EntryFilter: Send + Sync {
    /// Whether an entry matches. An entry with an unreadable value does not.
    fn matches(&self, key: &[u8], value: &[u8]) -> bool;
}

/// The filter and the owner of a listener.
#[derive(Clone)]
pub struct ListenerSpec {
    /// The key whose events are sent; `None` = all keys.
    pub key: Option<Blob>,
    /// The filter of entries; `None` = all entries. An update that makes an entry match is sent as
    /// [`EventKind::Added`]. An update after which it no longer matches is sent as
    /// [`EventKind::Removed`].
    pub filter: Option<Arc<dyn EntryFilter>>,
    /// Whether events include values.
    pub include_value: bool,
    /// The kinds of events that are sent.
    pub kinds: EventKinds,
    /// The connection that owns the listener; `None` = the listener stays until it is removed.
    pub connection: Option<ConnectionId>,
}

/// An event of a map.
#[derive(Clone, Copy, Debug)]
pub struct EntryEvent<'a> {
    /// The kind of the event.
    pub kind: EventKind,
    /// The partition; `None` for a change of the whole map.
    pub partition: Option<PartitionId>,
    /// The key; `None` for a change of the whole map.
    pub key: Option<&'a [u8]>,
    /// The new value, if requested and present.
    pub value: Option<&'a [u8]>,
    /// The old value, if requested and present.
    pub old_value: Option<&'a [u8]>,
    /// The member that reports the event.
    pub member: Uuid,
    /// The number of removed entries of a change of the whole map; otherwise 1.
    pub affected: usize,
}

/// The receiver of a listener's events. Called under a partition's lock, in the order of the
/// changes. It must neither block nor call back into the grid.
pub trait EntrySink: Send + Sync {
    /// Receives an event.
    fn deliver(&self, event: &EntryEvent<'_>);

    /// Called when a clear or an eviction of the whole map was applied to a partition, for
    /// listeners that need its position among the partition's changes. The event of the whole map
    /// is delivered separately, at the end.
    fn partition_emptied(&self, kind: EventKind, partition: PartitionId) {
        let _ = (kind, partition);
    }

    /// Called when all entries of a partition were replaced by a snapshot from another member. The
    /// individual changes are not delivered. Only for listeners that follow replicas, see
    /// [`Map::follow_copies`](crate::Map::follow_copies).
    fn partition_replaced(&self, partition: PartitionId) {
        let _ = partition;
    }
}

impl<F: Fn(&EntryEvent<'_>) + Send + Sync> EntrySink for F {
    fn deliver(&self, event: &EntryEvent<'_>) {
        self(event);
    }
}

struct Registered {
    id: ListenerId,
    spec: ListenerSpec,
    sink: Arc<dyn EntrySink>,
    /// Whether the listener receives all changes of this member's replicas, including changes that
    /// another member reports to listeners.
    follows: bool,
}

/// The listeners of one map.
#[derive(Default)]
pub(crate) struct Listeners {
    all: RwLock<Vec<Registered>>,
    count: AtomicUsize,
    /// The number of listeners that follow replicas.
    following: AtomicUsize,
}

impl Listeners {
    /// Whether there are listeners. Costs one atomic load, for the fast path.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Whether a change has to be delivered. If `notifies` is false, another member reports it, and
    /// only listeners that follow replicas receive it.
    #[inline]
    pub(crate) fn any_to_notify(&self, notifies: bool) -> bool {
        if notifies { self.any() } else { self.following.load(Ordering::Acquire) > 0 }
    }

    pub(crate) fn add(&self, id: ListenerId, spec: ListenerSpec, sink: Arc<dyn EntrySink>, follows: bool) {
        let mut all = self.all.write();
        all.push(Registered { id, spec, sink, follows });
        self.count(&all);
    }

    fn count(&self, all: &[Registered]) {
        self.following.store(all.iter().filter(|registered| registered.follows).count(), Ordering::Release);
        self.count.store(all.len(), Ordering::Release);
    }

    pub(crate) fn remove(&self, id: ListenerId) -> bool {
        self.retain(|registered| registered.id != id) > 0
    }

    /// Removes the listeners of a connection. Returns their number.
    pub(crate) fn remove_connection(&self, connection: ConnectionId) -> usize {
        self.retain(|registered| registered.spec.connection != Some(connection))
    }

    pub(crate) fn clear(&self) -> usize {
        self.retain(|_| false)
    }

    /// Moves all listeners to another map.
    pub(crate) fn move_to(&self, other: &Self) {
        let mut taken = std::mem::take(&mut *self.all.write());
        self.count(&[]);
        let mut all = other.all.write();
        all.append(&mut taken);
        other.count(&all);
    }

    fn retain(&self, keep: impl Fn(&Registered) -> bool) -> usize {
        if !self.any() {
            return 0;
        }
        let mut all = self.all.write();
        let before = all.len();
        all.retain(keep);
        self.count(&all);
        before - all.len()
    }

    /// Notifies all listeners that a change of the whole map was applied to a partition. If
    /// `notifies` is false, notifies only listeners that follow replicas.
    pub(crate) fn partition_emptied(&self, kind: EventKind, partition: PartitionId, notifies: bool) {
        for registered in self.all.read().iter().filter(|registered| notifies || registered.follows) {
            registered.sink.partition_emptied(kind, partition);
        }
    }

    /// Notifies the listeners that follow replicas that all entries of a partition were replaced.
    pub(crate) fn partition_replaced(&self, partition: PartitionId) {
        if self.any_to_notify(false) {
            for registered in self.all.read().iter().filter(|registered| registered.follows) {
                registered.sink.partition_replaced(partition);
            }
        }
    }

    /// Delivers an event to all matching listeners; if `notifies` is false, only to listeners that
    /// follow replicas. Values are omitted for listeners that did not request them.
    pub(crate) fn deliver(&self, event: &EntryEvent<'_>, notifies: bool) {
        for registered in self.all.read().iter().filter(|registered| notifies || registered.follows) {
            let spec = &registered.spec;
            let of_key = match (&spec.key, event.key) {
                (Some(wanted), Some(key)) => wanted.as_bytes() == key,
                _ => true,
            };
            if !of_key {
                continue;
            }
            let filter = spec.filter.as_deref();
            let Some(kind) = filter.map_or(Some(event.kind), |filter| kind_within(filter, event)) else { continue };
            if !spec.kinds.intersects(EventKinds::of(kind)) {
                continue;
            }
            if spec.include_value {
                registered.sink.deliver(&EntryEvent { kind, ..*event });
            } else {
                registered.sink.deliver(&EntryEvent { kind, value: None, old_value: None, ..*event });
            }
        }
    }
}

/// The kind of an event as seen through a filter; `None` if the filter excludes it.
fn kind_within(filter: &dyn EntryFilter, event: &EntryEvent<'_>) -> Option<EventKind> {
    let Some(key) = event.key else { return Some(event.kind) };
    let matches = |value: Option<&[u8]>| value.is_some_and(|value| filter.matches(key, value));
    match (event.value, event.old_value) {
        (Some(_), Some(_)) => match (matches(event.old_value), matches(event.value)) {
            (true, true) => Some(event.kind),
            (false, true) => Some(EventKind::Added),
            (true, false) => Some(EventKind::Removed),
            (false, false) => None,
        },
        (value, old_value) => matches(value.or(old_value)).then_some(event.kind),
    }
}
