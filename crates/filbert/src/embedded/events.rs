//! Listeners: the changes of a map, as they happen, through a bounded queue.
//!
//! The grid tells of a change while it holds the partition's lock, so nothing of a listener's own runs there: the change
//! is put into the listener's queue, and read on the listener's own thread or task.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;

use filbert_data::{Blob, FromBlob, ToBlob};
use filbert_grid::{EntrySink, EventKinds, ListenerId, ListenerSpec};
use parking_lot::Mutex;

use super::core::{Core, block_on};
use super::{Error, Map};

/// What happened to an entry or to a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// An entry came.
    Added,
    /// A value was replaced.
    Updated,
    /// An entry was removed.
    Removed,
    /// An entry was evicted.
    Evicted,
    /// An entry's time was over.
    Expired,
    /// An entry came from elsewhere with its metadata.
    Loaded,
    /// The map was cleared.
    Cleared,
    /// Everything was evicted.
    EvictedAll,
}

/// A change of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryEvent<K, V> {
    /// What happened.
    pub kind: EventKind,
    /// The entry's key; `None` for changes of the whole map.
    pub key: Option<K>,
    /// The value after the change, if the listener asked for values and there is one.
    pub value: Option<V>,
    /// The value before the change, likewise.
    pub old_value: Option<V>,
    /// How many entries a change of the whole map took out; 1 for others.
    pub entries: usize,
}

/// What a listener wants to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerOptions {
    /// Whether values come along. Default `true`; without them a listener costs less.
    pub values: bool,
}

impl Default for ListenerOptions {
    fn default() -> ListenerOptions {
        ListenerOptions { values: true }
    }
}

/// Listeners hear what anyone changes: this program, others of its threads, clients, the clock.
impl<K, V> Map<K, V> {
    /// The changes of all entries from now on.
    ///
    /// ```
    /// use filbert::{Config, EventKind, Filbert, ListenerOptions};
    ///
    /// let filbert = Filbert::start(Config::default())?;
    /// let orders = filbert.map::<i64, String>("orders")?;
    /// let mut events = orders.events(ListenerOptions::default())?;
    /// orders.set(&1, "two kilos")?;
    /// let event = events.recv()?;
    /// assert_eq!((event.kind, event.key, event.value.as_deref()), (EventKind::Added, Some(1), Some("two kilos")));
    /// # Ok::<(), filbert::Error>(())
    /// ```
    ///
    /// # Errors
    /// The member is shut down, or has as many listeners as its limit allows.
    pub fn events(&self, options: ListenerOptions) -> Result<Events<K, V>, Error> {
        self.listen(options, None)
    }

    /// The changes of one key from now on, with those of the whole map.
    ///
    /// # Errors
    /// As [`Map::events`], or the key cannot be written.
    pub fn events_of<Q: ToBlob + ?Sized>(&self, key: &Q, options: ListenerOptions) -> Result<Events<K, V>, Error>
    where
        K: Borrow<Q>,
    {
        let key = key.to_blob().map_err(|source| self.core.data_error("a key", source))?;
        self.listen(options, Some(key))
    }

    /// Calls `listener` for each change from now on, on a thread of its own, until the returned [`Listener`] is dropped
    /// or the member is shut down. The listener may use the map.
    ///
    /// # Errors
    /// As [`Map::events`], or the system gives no thread.
    pub fn on_event(
        &self,
        options: ListenerOptions,
        mut listener: impl FnMut(Result<EntryEvent<K, V>, Error>) + Send + 'static,
    ) -> Result<Listener, Error>
    where
        K: FromBlob + 'static,
        V: FromBlob + 'static,
    {
        let mut events = self.events(options)?;
        let queue = events.queue.clone();
        thread::Builder::new().name("filbert-listener".to_owned()).spawn(move || {
            loop {
                match events.recv() {
                    Err(Error::ShutDown) => return,
                    event => listener(event),
                }
            }
        })?;
        Ok(Listener { queue })
    }

    fn listen(&self, options: ListenerOptions, key: Option<Blob>) -> Result<Events<K, V>, Error> {
        let queue = self.core.listeners.open();
        let spec =
            ListenerSpec { key, filter: None, include_value: options.values, kinds: EventKinds::ALL, connection: None };
        let id = self.core.map.add_listener(spec, queue.clone())?;
        Ok(Events { core: self.core.clone(), id, queue, types: PhantomData })
    }
}

/// The changes of a map, in the order in which they happened to each key. Dropping it ends the listening.
pub struct Events<K, V> {
    core: Core,
    id: ListenerId,
    queue: Arc<Queue>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: FromBlob, V: FromBlob> Events<K, V> {
    /// The next change, waiting for it on this thread.
    ///
    /// # Errors
    /// [`Error::ShutDown`] when the member is shut down and all changes are read; [`Error::Data`] when a key or value is
    /// not of the map's types, after which the next change can be read.
    pub fn recv(&mut self) -> Result<EntryEvent<K, V>, Error> {
        block_on(self.next())
    }

    /// The next change if there is one already.
    ///
    /// # Errors
    /// As [`Events::recv`].
    pub fn try_recv(&mut self) -> Result<Option<EntryEvent<K, V>>, Error> {
        let next = self.queue.state.lock().waiting.pop_front();
        next.map(|event| self.read(&event)).transpose()
    }

    /// The next change, waiting for it without blocking the thread. Cancel safe: a change is taken only when it is
    /// given.
    ///
    /// # Errors
    /// As [`Events::recv`].
    pub async fn next(&mut self) -> Result<EntryEvent<K, V>, Error> {
        match std::future::poll_fn(|context| self.queue.poll(context)).await {
            Some(event) => self.read(&event),
            None => Err(Error::ShutDown),
        }
    }

    /// How many changes were dropped because the queue was full.
    pub fn missed(&self) -> u64 {
        self.queue.state.lock().missed
    }

    fn read(&self, event: &RawEvent) -> Result<EntryEvent<K, V>, Error> {
        let value = |blob: &Option<Box<[u8]>>| blob.as_deref().map(|blob| self.core.value(blob)).transpose();
        Ok(EntryEvent {
            kind: event.kind,
            key: event.key.as_deref().map(|blob| self.core.key(blob)).transpose()?,
            value: value(&event.value)?,
            old_value: value(&event.old_value)?,
            entries: event.entries,
        })
    }
}

impl<K, V> Drop for Events<K, V> {
    fn drop(&mut self) {
        self.core.map.remove_listener(self.id);
    }
}

impl<K, V> fmt::Debug for Events<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Events").field(&self.core.map.name()).finish()
    }
}

/// A closure that listens. Dropping it ends the listening; a call that runs is not waited for.
#[must_use = "the listening ends when this is dropped"]
pub struct Listener {
    queue: Arc<Queue>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.queue.state.lock().waiting.clear();
        self.queue.close();
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// The queues of a member's listeners, so that its end can be told to all of them.
pub(super) struct Listeners {
    queues: Mutex<Vec<Weak<Queue>>>,
    events_max: usize,
}

impl Listeners {
    /// A queue of the member takes `events_max` changes.
    pub(super) fn new(events_max: usize) -> Listeners {
        Listeners { queues: Mutex::new(Vec::new()), events_max }
    }

    fn open(&self) -> Arc<Queue> {
        let state = State { waiting: VecDeque::new(), missed: 0, closed: false, waker: None };
        let queue = Arc::new(Queue { state: Mutex::new(state), length_max: self.events_max });
        let mut queues = self.queues.lock();
        if queues.len() == queues.capacity() {
            // Before it grows: listeners that have gone leave their places.
            queues.retain(|queue| queue.strong_count() > 0);
        }
        queues.push(Arc::downgrade(&queue));
        queue
    }

    /// Tells every listener that nothing more comes.
    pub(super) fn close(&self) {
        for queue in self.queues.lock().drain(..).filter_map(|queue| queue.upgrade()) {
            queue.close();
        }
    }
}

/// A change as the grid tells it.
struct RawEvent {
    kind: EventKind,
    key: Option<Box<[u8]>>,
    value: Option<Box<[u8]>>,
    old_value: Option<Box<[u8]>>,
    entries: usize,
}

impl EntrySink for Queue {
    fn deliver(&self, event: &filbert_grid::EntryEvent<'_>) {
        let Some(kind) = kind(event.kind) else { return };
        let own = |bytes: Option<&[u8]>| bytes.map(Box::from);
        self.push(RawEvent {
            kind,
            key: own(event.key),
            value: own(event.value),
            old_value: own(event.old_value),
            entries: event.affected,
        });
    }
}

/// The kind as this API names it.
fn kind(kind: filbert_grid::EventKind) -> Option<EventKind> {
    use filbert_grid::EventKind as Grid;
    Some(match kind {
        Grid::Added => EventKind::Added,
        Grid::Updated => EventKind::Updated,
        Grid::Removed => EventKind::Removed,
        Grid::Evicted => EventKind::Evicted,
        Grid::Expired => EventKind::Expired,
        Grid::Loaded => EventKind::Loaded,
        Grid::Cleared => EventKind::Cleared,
        Grid::EvictedAll => EventKind::EvictedAll,
        Grid::LockReleased | Grid::Unclaimed => return None,
    })
}

/// What waits for one listener.
struct Queue {
    state: Mutex<State>,
    length_max: usize,
}

struct State {
    waiting: VecDeque<RawEvent>,
    missed: u64,
    closed: bool,
    waker: Option<Waker>,
}

impl Queue {
    fn push(&self, event: RawEvent) {
        let waker = {
            let mut state = self.state.lock();
            if state.closed {
                return;
            }
            if state.waiting.len() >= self.length_max {
                state.missed += 1;
                return;
            }
            state.waiting.push_back(event);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn close(&self) {
        let waker = {
            let mut state = self.state.lock();
            state.closed = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Option<RawEvent>> {
        let mut state = self.state.lock();
        match state.waiting.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None if state.closed => Poll::Ready(None),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
