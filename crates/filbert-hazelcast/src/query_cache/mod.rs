//! Query caches: the state for clients that hold the result of a predicate and receive its changes
//! (Hazelcast's continuous query caches).
//!
//! ```text
//!  add listener ──► Channel of a name ◄──────────── sent: single or batch events ──────────┐
//!  create ────────► QueryCache ── listens to the map, changes wait ── content is sent ──┐  │
//!  made publishable ─────────────────────────────────────────────────────────► Buffers ─┴──┘
//!  set read cursor ──► the content is rebuilt (rebuild.rs), or kept changes are sent again
//! ```
//!
//! A cache outlives its client's connections for a while, so a client that returns continues with
//! it. Its changes do not: they are dropped with the client's last connection. Later changes are
//! still numbered, so the client notices the loss. A cache ends with its map.
//!
//! # In a cluster
//!
//! The member that a client asks for a cache is the cache's home, and keeps all of it. It receives
//! the changes of its own replicas of the partitions, whichever members lead them. So a change of
//! leaders has no effect, and all events of a cache come on one connection. Clients accept events
//! only in the order of their numbers, so no two members may send events of the same partition. The
//! other members stand by (`standby.rs`): they know the cache, notify the client when its home is
//! lost, and one of them rebuilds the cache when the home has left the cluster.

mod buffers;
mod rebuild;
mod registry;
mod standby;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use filbert_grid::{
    EntryEvent, EntrySink, EventKind, EventKinds, Exhausted, ListenerId, Map, MemoryBudget, PartitionId, ReadView,
    Reservation,
};
use filbert_wire::{
    CorrelationId, Event, Uuid,
    structure::QueryCacheEventData,
    table::continuous_query::add_listener::{QueryCacheBatchEvent, QueryCacheSingleEvent},
};
use parking_lot::Mutex;

use buffers::{Buffers, Change};

pub(crate) use buffers::Settings;
pub(crate) use rebuild::Reader;
pub(crate) use registry::QueryCaches;
pub(crate) use standby::Standby;

use crate::client_link::ClientLink;

/// The listeners to the caches with one name.
#[derive(Debug, Default)]
pub(crate) struct Channel(Mutex<Vec<Subscriber>>);

#[derive(Debug)]
struct Subscriber {
    id: Uuid,
    /// The client.
    owner: Uuid,
    link: Arc<ClientLink>,
    correlation: CorrelationId,
    /// The reservation for the registration itself.
    _room: Reservation,
}

impl Channel {
    /// Removes matching registrations. Returns their number.
    fn forget(&self, is_meant: impl Fn(&Subscriber) -> bool) -> usize {
        let mut subscribers = self.0.lock();
        let before = subscribers.len();
        subscribers.retain(|subscriber| !is_meant(subscriber));
        before - subscribers.len()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Sends changes of a partition to all listeners: a single change alone, several as a batch.
    fn send(&self, map: &str, source: &str, partition: PartitionId, changes: &mut dyn Iterator<Item = &Change>) {
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

/// A client's request for a cache.
#[derive(Clone, Debug)]
pub(crate) struct CacheRequest {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    pub(crate) include_value: bool,
    /// Whether the client begins with the current result of the predicate.
    pub(crate) populate: bool,
    /// The client.
    pub(crate) owner: Uuid,
    /// The predicate.
    pub(crate) predicate: Box<[u8]>,
    /// The client's request, to be sent to other members; empty if there are none.
    pub(crate) message: Box<[u8]>,
    /// The correlation id of the request. A later request of the client has a greater one.
    pub(crate) request_id: CorrelationId,
    /// The name of this member in batches.
    pub(crate) source: String,
}

/// The handling of changes.
enum Phase {
    /// The initial content is being read. Changes in the meantime are added to it.
    Snapshot { changes: Vec<(PartitionId, Change)>, bytes: usize },
    /// Changes wait until the client is ready.
    Held,
    /// Changes are sent.
    Sending,
    /// The cache has ended.
    Closed,
}

/// The approximate size of a cache without its name, its predicate, its request and its changes, in
/// bytes.
const CACHE_BYTES: usize = 1 << 10;

/// One cache of one client.
pub(crate) struct QueryCache {
    map: Arc<Map>,
    request: CacheRequest,
    channel: Arc<Channel>,
    state: Mutex<State>,
    listener: Mutex<Option<ListenerId>>,
    /// The id with which the other members were last asked to stand by.
    pub(crate) registered: Mutex<Option<Uuid>>,
    /// Reads the map for a rebuild.
    reader: Reader,
    budget: MemoryBudget,
    /// The reservation for the cache itself.
    _room: Reservation,
}

struct State {
    phase: Phase,
    buffers: Buffers,
    /// The reservation for changes while the initial content is read.
    snapshot_room: Reservation,
    /// The time since which nobody listens, or the client is disconnected.
    orphaned: Option<Instant>,
    /// Partitions that must be rebuilt. `is_rebuilding`: whether a task is rebuilding.
    to_rebuild: BTreeSet<PartitionId>,
    is_rebuilding: bool,
    /// In a cluster: the view that keeps the replicas of all partitions on this member.
    view: Option<ReadView>,
}

/// The content of a cache on its way to the client.
pub(crate) type Content = Vec<(Vec<u8>, Vec<u8>)>;

impl QueryCache {
    fn new(
        map: Arc<Map>,
        request: CacheRequest,
        reader: Reader,
        channel: Arc<Channel>,
        budget: &MemoryBudget,
    ) -> Result<Self, Exhausted> {
        let bytes = 2 * request.name.len() + request.predicate.len() + request.message.len();
        let room = budget.reserve(CACHE_BYTES + bytes)?;
        let phase = if request.populate { Phase::Snapshot { changes: Vec::new(), bytes: 0 } } else { Phase::Sending };
        let buffers = Buffers::new(request.settings, budget.empty());
        let (to_rebuild, snapshot_room) = (BTreeSet::new(), budget.empty());
        let state =
            State { phase, buffers, snapshot_room, orphaned: None, to_rebuild, is_rebuilding: false, view: None };
        let (state, listener, registered) = (Mutex::new(state), Mutex::new(None), Mutex::new(None));
        Ok(Self { budget: budget.clone(), map, request, channel, state, listener, registered, reader, _room: room })
    }

    pub(crate) fn map(&self) -> &Arc<Map> {
        &self.map
    }

    pub(crate) fn request(&self) -> &CacheRequest {
        &self.request
    }

    /// Whether the cache has ended, by itself or with its map.
    fn is_closed(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Closed)
    }

    /// Drops the changes, and keeps no more of them, because the client has no connection. May be
    /// called with the registry's lock held.
    fn leave(&self) {
        let mut state = self.state.lock();
        if let Phase::Snapshot { changes, bytes } = &mut state.phase {
            // No client waits for the initial content.
            (*changes, *bytes) = (Vec::new(), usize::MAX);
        }
        state.snapshot_room.shrink(0);
        state.buffers.leave();
    }

    /// Keeps changes again. In a cluster the client may have had connections to other members all
    /// the time, and not have noticed the loss. So the content is rebuilt.
    fn come_back(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if !state.buffers.come_back() || !self.reader.is_in_cluster() {
            return;
        }
        if self.request.populate && matches!(state.phase, Phase::Sending) {
            (0..self.map.partition_count())
                .map(PartitionId)
                .for_each(|partition| state.buffers.begin_rebuild(partition));
        }
        drop(state);
        self.rebuild_all();
    }

    /// Drops all data, and sends nothing more. May be called with a partition's lock held.
    fn end(&self) {
        let mut state = self.state.lock();
        state.phase = Phase::Closed;
        state.buffers = Buffers::new(self.request.settings, self.budget.empty());
        state.snapshot_room.shrink(0);
        state.view = None;
    }

    /// Keeps the replicas of this member, until the cache ends: it follows their changes.
    pub(crate) fn keep_replicas(&self, view: ReadView) {
        let mut state = self.state.lock();
        if !matches!(state.phase, Phase::Closed) {
            state.view = Some(view);
        }
    }

    pub(crate) fn include_value(&self) -> bool {
        self.request.include_value
    }

    /// The maximum time for which changes may wait.
    pub(crate) fn delay(&self) -> Duration {
        self.request.settings.delay
    }

    /// Stores the id of the map's listener, which is removed at the end. If the cache is already
    /// closed, the listener is removed immediately.
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

    /// Adds the changes since the creation of the cache to the content that was found. From now on
    /// changes wait for the client. `None` if there were more changes than the limit allows, or the
    /// client has disconnected.
    pub(crate) fn end_snapshot(&self, found: Content) -> Option<Content> {
        let mut state = self.state.lock();
        let Phase::Snapshot { changes, bytes } = &mut state.phase else { return Some(found) };
        let (changes, bytes) = (std::mem::take(changes), *bytes);
        state.phase = Phase::Held;
        state.snapshot_room.shrink(0);
        drop(state);
        if bytes > self.request.settings.bytes_max {
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

    /// Sends changes from now on.
    pub(crate) fn begin_sending(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Held) {
            state.phase = Phase::Sending;
        }
        self.send_all_due(&mut state, Instant::now());
        drop(state);
        // Partitions may have been replaced in the meantime.
        self.rebuild([]);
    }

    /// Sends changes that have waited long enough. Returns `false` if the cache is closed.
    pub(crate) fn send_due(&self) -> bool {
        let mut state = self.state.lock();
        self.send_all_due(&mut state, Instant::now());
        !matches!(state.phase, Phase::Closed)
    }

    /// Rebuilds a partition's content if the cache began with an initial content: a client that has
    /// noticed a gap accepts no later events until it is told that the numbers begin again.
    /// Otherwise sends the changes from this number on again. Returns `false` if they are no longer
    /// kept, or the cache has ended.
    pub(crate) fn set_read_cursor(self: &Arc<Self>, partition: PartitionId, sequence: i64) -> bool {
        if self.request.populate {
            return self.rebuild([partition]);
        }
        let mut state = self.state.lock();
        let is_set = state.buffers.set_head(partition, sequence);
        self.send_all_due(&mut state, Instant::now());
        is_set
    }

    fn append(&self, partition: PartitionId, change: Change, now: Instant) {
        let mut state = self.state.lock();
        let State { phase, buffers, snapshot_room, .. } = &mut *state;
        match phase {
            Phase::Closed => {}
            Phase::Snapshot { changes, bytes } => {
                *bytes = bytes.saturating_add(change.bytes());
                // Above the limit, or without memory, the initial content fails.
                let needed = bytes.saturating_mul(2).min(self.request.settings.bytes_max.saturating_mul(4));
                if *bytes <= self.request.settings.bytes_max && snapshot_room.resize(needed).is_err() {
                    *bytes = usize::MAX;
                }
                if *bytes > self.request.settings.bytes_max {
                    snapshot_room.shrink(0);
                    *changes = Vec::new();
                } else {
                    changes.push((partition, change));
                }
            }
            Phase::Held => buffers.append(partition, change),
            Phase::Sending => {
                buffers.append(partition, change);
                buffers.send_due(partition, now, &mut |partition, changes| self.send(partition, changes));
            }
        }
    }

    fn send_all_due(&self, state: &mut State, now: Instant) {
        if matches!(state.phase, Phase::Sending) {
            state.buffers.send_all_due(now, &mut |partition, changes| self.send(partition, changes));
        }
    }

    fn send(&self, partition: PartitionId, changes: &mut dyn Iterator<Item = &Change>) {
        self.channel.send(self.map.name(), &self.request.source, partition, changes);
    }
}

/// Whether the entry exists after a change of this kind.
fn is_there(kind: EventKinds) -> bool {
    kind.intersects(EventKinds::ADDED | EventKinds::UPDATED | EventKinds::LOADED | EventKinds::MERGED)
}

/// The listener of the map. Called under a partition's lock.
pub(crate) struct Sink(pub(crate) Arc<QueryCache>);

/// The map has dropped its listener: the cache has ended, or the map was destroyed.
impl Drop for Sink {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl EntrySink for Sink {
    fn deliver(&self, event: &EntryEvent<'_>) {
        // Changes of the whole map arrive for each partition.
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
