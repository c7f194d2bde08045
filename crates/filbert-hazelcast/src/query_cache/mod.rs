//! Query caches: what members keep for clients that hold the result of a predicate and want to hear how it changes
//! (Hazelcast's continuous query caches).
//!
//! ```text
//!  add listener ──► Channel of a name ◄────────────── told: single or batch events ─────────────┐
//!  create ────────► QueryCache ── listens to the map: changes wait ── snapshot is answered ──┐    │
//!  made publishable ─────────────────────────────────────────────────────────────► Buffers ─┴────┘
//!  set read cursor ──► the content is made anew (anew.rs), or changes that are kept are told again
//! ```
//!
//! A cache outlives its client's connections for a while, so that a client that comes back goes on with it. What it keeps does not: changes
//! go with the client's last connection and are numbered on, so that the client sees that it has lost some. All goes with the map.
//!
//! # In a cluster
//!
//! The member that a client asks for a cache keeps all of it: its home. It hears of what it applies to its own copies of the partitions, whoever
//! leads them, so that no change of leaders is seen, and all events of a cache come by one connection. Clients number what they hear, and
//! take nothing that comes in another order, so that no two members may tell of the same partition. The other members stand by
//! (`standby.rs`): they know of the cache, tell the client when its home is lost, and one of them makes it anew when the home has left the
//! cluster.

mod anew;
mod buffers;
mod registry;
mod standby;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use filbert_grid::{
    EntryEvent, EntrySink, EventKind, EventKinds, Exhausted, ListenerId, Map, MemoryBudget, PartitionId, Reservation,
};
use filbert_wire::{
    CorrelationId, Event, Uuid,
    structure::QueryCacheEventData,
    table::continuous_query::add_listener::{QueryCacheBatchEvent, QueryCacheSingleEvent},
};
use parking_lot::Mutex;

use buffers::{Buffers, Change};

pub(crate) use anew::Reader;
pub(crate) use buffers::Settings;
pub(crate) use registry::QueryCaches;
pub(crate) use standby::Standby;

use crate::link::Link;

/// Who listens to the caches of one name.
#[derive(Debug, Default)]
pub(crate) struct Channel(Mutex<Vec<Subscriber>>);

#[derive(Debug)]
struct Subscriber {
    id: Uuid,
    /// The client.
    owner: Uuid,
    link: Arc<Link>,
    correlation: CorrelationId,
    /// That of the registration itself.
    _room: Reservation,
}

impl Channel {
    /// Ends the registrations that are meant; how many they were.
    fn forget(&self, is_meant: impl Fn(&Subscriber) -> bool) -> usize {
        let mut subscribers = self.0.lock();
        let before = subscribers.len();
        subscribers.retain(|subscriber| !is_meant(subscriber));
        before - subscribers.len()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Sends changes of a partition to everyone who listens: one as it is, more as a batch.
    fn tell(&self, map: &str, source: &str, partition: PartitionId, changes: &mut dyn Iterator<Item = &Change>) {
        let partition_id = partition.0.cast_signed();
        let data = changes.map(|change| QueryCacheEventData {
            data_key: change.key.as_deref(),
            data_new_value: change.value.as_deref(),
            sequence: change.sequence,
            event_type: change.kind.0.cast_signed(),
            partition_id,
            map_name: map,
        });
        let mut events: Vec<QueryCacheEventData<'_>> = data.collect();
        let single = if events.len() == 1 { events.pop() } else { None };
        let single = single.map(|data| QueryCacheSingleEvent { data });
        let batch = QueryCacheBatchEvent { events, source, partition_id };
        for subscriber in self.0.lock().iter() {
            subscriber.link.outbox.append(|out| match &single {
                Some(event) => event.encode(subscriber.correlation, partition_id, out),
                None => batch.encode(subscriber.correlation, partition_id, out),
            });
        }
    }
}

/// How a cache was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    pub(crate) include_value: bool,
    /// Whether the client begins with what the predicate finds now.
    pub(crate) populate: bool,
    /// The client.
    pub(crate) owner: Uuid,
    /// The predicate.
    pub(crate) predicate: Box<[u8]>,
    /// The client's request, to be repeated to other members; empty where there are none. What is asked for later has a greater correlation id.
    pub(crate) request: Box<[u8]>,
    /// Its correlation id.
    pub(crate) asked: CorrelationId,
    /// How this member is called in batches.
    pub(crate) source: String,
}

/// What becomes of changes.
enum Phase {
    /// The first content is being read; what changes meanwhile is added to it.
    Snapshot { changes: Vec<(PartitionId, Change)>, bytes: usize },
    /// They wait until the client is ready.
    Held,
    /// They are told.
    Telling,
    /// Nobody wants them any more.
    Closed,
}

/// Bytes of a cache beside its names, its predicate and its changes, more or less.
const CACHE_BYTES: usize = 1 << 10;

/// One cache of one client.
pub(crate) struct QueryCache {
    map: Arc<Map>,
    wanted: Wanted,
    channel: Arc<Channel>,
    state: Mutex<State>,
    listener: Mutex<Option<ListenerId>>,
    /// By which the other members were asked last to stand by.
    pub(crate) registered: Mutex<Option<Uuid>>,
    /// By which it is made anew.
    reader: Reader,
    budget: MemoryBudget,
    /// That of the registration itself.
    _room: Reservation,
}

struct State {
    phase: Phase,
    buffers: Buffers,
    /// That of changes while the first content is read.
    snapshot_room: Reservation,
    /// Since when nobody listens.
    orphaned: Option<Instant>,
    /// Partitions whose content is to be made anew, and whether somebody is about it.
    anew: BTreeSet<PartitionId>,
    is_renewed: bool,
}

/// The first content of a cache, on its way to the client.
pub(crate) type Content = Vec<(Vec<u8>, Vec<u8>)>;

impl QueryCache {
    fn new(
        map: Arc<Map>,
        wanted: Wanted,
        reader: Reader,
        channel: Arc<Channel>,
        budget: &MemoryBudget,
    ) -> Result<Self, Exhausted> {
        let bytes = 2 * wanted.name.len() + wanted.predicate.len() + wanted.request.len();
        let room = budget.reserve(CACHE_BYTES + bytes)?;
        let phase = if wanted.populate { Phase::Snapshot { changes: Vec::new(), bytes: 0 } } else { Phase::Telling };
        let buffers = Buffers::new(wanted.settings, budget.empty());
        let (anew, snapshot_room) = (BTreeSet::new(), budget.empty());
        let state = State { phase, buffers, snapshot_room, orphaned: None, anew, is_renewed: false };
        let (state, listener, registered) = (Mutex::new(state), Mutex::new(None), Mutex::new(None));
        Ok(Self { budget: budget.clone(), map, wanted, channel, state, listener, registered, reader, _room: room })
    }

    pub(crate) fn map(&self) -> &Arc<Map> {
        &self.map
    }

    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Whether it has ended, by itself or with its map.
    fn is_closed(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Closed)
    }

    /// Keeps nothing more for a client that has no connection. May be called with the registry's lock held.
    fn leave(&self) {
        let mut state = self.state.lock();
        if let Phase::Snapshot { changes, bytes } = &mut state.phase {
            // Nobody waits for the first content.
            (*changes, *bytes) = (Vec::new(), usize::MAX);
        }
        state.snapshot_room.shrink(0);
        state.buffers.leave();
    }

    /// Keeps changes again. In a cluster the client may have connections to other members all the time, and see nothing of it.
    fn come_back(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if !state.buffers.come_back() || !self.reader.is_in_cluster() {
            return;
        }
        if self.wanted.populate && matches!(state.phase, Phase::Telling) {
            (0..self.map.partition_count()).map(PartitionId).for_each(|partition| state.buffers.set_aside(partition));
        }
        drop(state);
        self.renew_all();
    }

    /// Forgets all and tells nothing more. May be called with a partition's lock held.
    fn end(&self) {
        let mut state = self.state.lock();
        state.phase = Phase::Closed;
        state.buffers = Buffers::new(self.wanted.settings, self.budget.empty());
        state.snapshot_room.shrink(0);
    }

    pub(crate) fn include_value(&self) -> bool {
        self.wanted.include_value
    }

    /// How long changes may wait.
    pub(crate) fn delay(&self) -> Duration {
        self.wanted.settings.delay
    }

    /// Notes the registration with the map, to be removed at the end; a cache that is closed already gives it back.
    pub(crate) fn set_listener(&self, id: ListenerId) {
        *self.listener.lock() = Some(id);
        if matches!(self.state.lock().phase, Phase::Closed) {
            self.remove_listener();
        }
    }

    fn remove_listener(&self) {
        let id = self.listener.lock().take();
        if let Some(id) = id {
            self.map.remove_listener(id);
        }
    }

    /// Ends the cache. Must not be called with a partition's lock held.
    pub(crate) fn close(&self) {
        self.end();
        self.remove_listener();
    }

    /// Adds what has changed since the cache was made to what was found; from now on changes wait for the client. `None`
    /// if more has changed than is kept, or the client has gone.
    pub(crate) fn end_snapshot(&self, found: Content) -> Option<Content> {
        let mut state = self.state.lock();
        let Phase::Snapshot { changes, bytes } = &mut state.phase else { return Some(found) };
        let (changes, bytes) = (std::mem::take(changes), *bytes);
        state.phase = Phase::Held;
        state.snapshot_room.shrink(0);
        drop(state);
        if bytes > self.wanted.settings.bytes_max {
            return None;
        }
        if changes.is_empty() {
            return Some(found);
        }
        let mut content: HashMap<Vec<u8>, Vec<u8>> = found.into_iter().collect();
        for (partition, change) in changes {
            match (change.key, change.value) {
                (None, _) => content.retain(|key, _| self.map.partition_of(key) != partition),
                (Some(key), value) if is_there(change.kind) => {
                    content.insert(key.into_vec(), value.map_or_else(Vec::new, <[u8]>::into_vec));
                }
                (Some(key), _) => {
                    content.remove(&key[..]);
                }
            }
        }
        Some(content.into_iter().collect())
    }

    /// Tells changes from now on.
    pub(crate) fn begin_telling(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Held) {
            state.phase = Phase::Telling;
        }
        self.tell_all(&mut state, Instant::now());
        drop(state);
        // A part of its content may have been replaced meanwhile.
        self.renew([]);
    }

    /// Tells changes that have waited long enough. False when the cache is closed.
    pub(crate) fn tell_due(&self) -> bool {
        let mut state = self.state.lock();
        self.tell_all(&mut state, Instant::now());
        !matches!(state.phase, Phase::Closed)
    }

    /// Makes a partition's content anew if the cache began with what was there: a client that has seen a gap takes nothing that comes
    /// behind it, until it hears that numbers begin again. Else tells the changes from this number on again; false if they are not kept any
    /// more.
    pub(crate) fn set_read_cursor(self: &Arc<Self>, partition: PartitionId, sequence: i64) -> bool {
        if self.wanted.populate {
            return self.renew([partition]);
        }
        let mut state = self.state.lock();
        let is_set = state.buffers.set_head(partition, sequence);
        self.tell_all(&mut state, Instant::now());
        is_set
    }

    fn append(&self, partition: PartitionId, change: Change, now: Instant) {
        let mut state = self.state.lock();
        let State { phase, buffers, snapshot_room, .. } = &mut *state;
        match phase {
            Phase::Closed => {}
            Phase::Snapshot { changes, bytes } => {
                *bytes = bytes.saturating_add(change.bytes());
                // Beyond the limit, or where there is no room, the snapshot has failed.
                let needed = bytes.saturating_mul(2).min(self.wanted.settings.bytes_max.saturating_mul(4));
                if *bytes <= self.wanted.settings.bytes_max && snapshot_room.resize(needed).is_err() {
                    *bytes = usize::MAX;
                }
                if *bytes > self.wanted.settings.bytes_max {
                    snapshot_room.shrink(0);
                    *changes = Vec::new();
                } else {
                    changes.push((partition, change));
                }
            }
            Phase::Held => buffers.append(partition, change),
            Phase::Telling => {
                buffers.append(partition, change);
                buffers.tell_due(partition, now, &mut |partition, changes| self.tell(partition, changes));
            }
        }
    }

    fn tell_all(&self, state: &mut State, now: Instant) {
        if matches!(state.phase, Phase::Telling) {
            state.buffers.tell_all_due(now, &mut |partition, changes| self.tell(partition, changes));
        }
    }

    fn tell(&self, partition: PartitionId, changes: &mut dyn Iterator<Item = &Change>) {
        self.channel.tell(self.map.name(), &self.wanted.source, partition, changes);
    }
}

/// Whether an entry is there after a change of this kind.
fn is_there(kind: EventKinds) -> bool {
    kind.intersects(EventKinds::ADDED | EventKinds::UPDATED | EventKinds::LOADED | EventKinds::MERGED)
}

/// Registered with the map. Called under a partition's lock.
pub(crate) struct Sink(pub(crate) Arc<QueryCache>);

/// The map has let go of it: it was destroyed, if the cache was not.
impl Drop for Sink {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl EntrySink for Sink {
    fn deliver(&self, event: &EntryEvent<'_>) {
        // Changes of the whole map come partition by partition.
        let (Some(partition), Some(key)) = (event.partition, event.key) else { return };
        let (kind, now) = (EventKinds::of(event.kind), Instant::now());
        let value = event.value.filter(|_| is_there(kind));
        self.0.append(partition, Change::new(kind, Some(key), value, now), now);
    }

    fn partition_emptied(&self, kind: EventKind, partition: PartitionId) {
        let now = Instant::now();
        self.0.append(partition, Change::new(EventKinds::of(kind), None, None, now), now);
    }

    fn partition_replaced(&self, partition: PartitionId) {
        self.0.lose([partition]);
    }
}
