//! Entry listeners of one map: who hears of which changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filbert_data::{Blob, PartitionId};
use filbert_store::EventKind;
use parking_lot::RwLock;
use uuid::Uuid;

use crate::ConnectionId;
use crate::query::EntryFilter;

/// Names a registration; clients get it to remove the listener again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub Uuid);

/// A set of kinds of events, as the client protocol's bit mask has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventKinds(pub u32);

impl EventKinds {
    /// An entry is new.
    pub const ADDED: EventKinds = EventKinds(1);
    /// An entry was taken out.
    pub const REMOVED: EventKinds = EventKinds(2);
    /// An entry has a new value.
    pub const UPDATED: EventKinds = EventKinds(4);
    /// An entry was evicted.
    pub const EVICTED: EventKinds = EventKinds(8);
    /// An entry outlived its time.
    pub const EXPIRED: EventKinds = EventKinds(16);
    /// The whole map was evicted.
    pub const EVICT_ALL: EventKinds = EventKinds(32);
    /// The whole map was cleared.
    pub const CLEAR_ALL: EventKinds = EventKinds(64);
    /// An entry came out of a merge of two clusters; never happens here.
    pub const MERGED: EventKinds = EventKinds(128);
    /// A near cache must forget an entry; has listeners of its own.
    pub const INVALIDATION: EventKinds = EventKinds(256);
    /// An entry was loaded.
    pub const LOADED: EventKinds = EventKinds(512);
    /// All of the above.
    pub const ALL: EventKinds = EventKinds(1023);

    /// The mask's bit for a kind of event; none for those that are no event of a map.
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

    /// Whether the sets share a kind.
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

/// What a listener wants to hear, and whose it is.
#[derive(Clone)]
pub struct ListenerSpec {
    /// The one key of interest; `None` for all.
    pub key: Option<Blob>,
    /// The entries of interest; `None` = all. An update that makes an entry one of them is told as [`EventKind::Added`], one
    /// that makes it none of them any more as [`EventKind::Removed`].
    pub filter: Option<Arc<dyn EntryFilter>>,
    /// Whether events carry values.
    pub include_value: bool,
    /// The kinds of interest.
    pub kinds: EventKinds,
    /// The connection that the listener goes with; `None` for one that stays until it is removed.
    pub connection: Option<ConnectionId>,
}

/// What a listener hears.
#[derive(Clone, Copy, Debug)]
pub struct EntryEvent<'a> {
    /// What happened.
    pub kind: EventKind,
    /// The partition it happened in; `None` for a change of the whole map.
    pub partition: Option<PartitionId>,
    /// The key; `None` for a change of the whole map.
    pub key: Option<&'a [u8]>,
    /// The new value, if asked for and there is one.
    pub value: Option<&'a [u8]>,
    /// The value before, if asked for and there was one.
    pub old_value: Option<&'a [u8]>,
    /// The member on which it happened.
    pub member: Uuid,
    /// Entries taken out by a change of the whole map; otherwise 1.
    pub affected: usize,
}

/// Where a listener's events go. Called under a partition's lock, in the order of the changes: it must neither block
/// nor call back into the grid.
pub trait EntrySink: Send + Sync {
    /// Takes an event.
    fn deliver(&self, event: &EntryEvent<'_>);

    /// Is told that a clear or an eviction of the whole map has come through a partition, for those who must know where it
    /// stands between the partition's changes. The change of the whole map is an event of its own, at its end.
    fn partition_emptied(&self, kind: EventKind, partition: PartitionId) {
        let _ = (kind, partition);
    }

    /// Is told that a partition's entries were replaced as a whole, by those that another member has sent: what has changed was told to nobody
    /// here. Of interest to those who follow a copy, see [`Map::follow_copies`](crate::Map::follow_copies).
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
    /// Whether it hears of all changes of this member's copies, also of those that another member tells of.
    follows: bool,
}

/// The listeners of one map.
#[derive(Default)]
pub(crate) struct Listeners {
    all: RwLock<Vec<Registered>>,
    count: AtomicUsize,
    /// How many of them follow copies.
    following: AtomicUsize,
}

impl Listeners {
    /// Whether anyone listens: one load, for paths that nobody should slow down.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Whether anyone hears of a change: of one that another member tells of, only who follows copies does.
    #[inline]
    pub(crate) fn any_hears(&self, tells: bool) -> bool {
        if tells { self.any() } else { self.following.load(Ordering::Acquire) > 0 }
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

    /// Removes those of a connection; returns how many there were.
    pub(crate) fn remove_connection(&self, connection: ConnectionId) -> usize {
        self.retain(|registered| registered.spec.connection != Some(connection))
    }

    pub(crate) fn clear(&self) -> usize {
        self.retain(|_| false)
    }

    /// Gives all to another map.
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

    /// Tells everyone that a change of the whole map has come through a partition; if another member tells of it, those who follow copies.
    pub(crate) fn partition_emptied(&self, kind: EventKind, partition: PartitionId, tells: bool) {
        for registered in self.all.read().iter().filter(|registered| tells || registered.follows) {
            registered.sink.partition_emptied(kind, partition);
        }
    }

    /// Tells those who follow copies that a partition's entries were replaced as a whole.
    pub(crate) fn partition_replaced(&self, partition: PartitionId) {
        if self.any_hears(false) {
            for registered in self.all.read().iter().filter(|registered| registered.follows) {
                registered.sink.partition_replaced(partition);
            }
        }
    }

    /// Tells everyone who wants to hear of it, or, if another member tells of it, those who follow copies; values are left out for those who
    /// did not ask for them.
    pub(crate) fn deliver(&self, event: &EntryEvent<'_>, tells: bool) {
        for registered in self.all.read().iter().filter(|registered| tells || registered.follows) {
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

/// What an event is to someone who sees only the entries of a filter; `None` if it is nothing to them.
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
