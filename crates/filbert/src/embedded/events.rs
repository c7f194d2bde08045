//! Listeners: the changes of a map, in real time, through a bounded queue.
//!
//! The grid reports a change while it holds the partition lock, so no listener code may run there.
//! The change is appended to the listener's queue and read on the listener's own thread or task.

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

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// An entry was added.
    Added,
    /// A value was replaced.
    Updated,
    /// An entry was removed.
    Removed,
    /// An entry was evicted.
    Evicted,
    /// An entry expired.
    Expired,
    /// An entry was loaded together with its metadata.
    Loaded,
    /// The map was cleared.
    Cleared,
    /// All entries were evicted.
    EvictedAll,
}

/// A change of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryEvent<K, V> {
    /// The kind of the change.
    pub kind: EventKind,
    /// The key of the entry. `None` for changes of the whole map.
    pub key: Option<K>,
    /// The value after the change. `None` if there is none, or if the listener does not receive
    /// values.
    pub value: Option<V>,
    /// The value before the change. `None` as for `value`.
    pub old_value: Option<V>,
    /// The number of entries that a change of the whole map removed. 1 for other changes.
    pub entries: usize,
}

/// The options of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerOptions {
    /// Whether events contain values. Default `true`. A listener without values is cheaper.
    pub values: bool,
}

impl Default for ListenerOptions {
    fn default() -> ListenerOptions {
        ListenerOptions { values: true }
    }
}

/// Listeners receive all changes: of every thread of this program, of clients, and by expiry.
impl<K, V> Map<K, V> {
    /// Subscribes to the changes of all entries from now on.
    ///
    /// ```
    /// use filbert::{Config, EventKind, Filbert, ListenerOptions};
    ///
    /// let filbert = Filbert::start(Config::default())?;
    /// let orders = filbert.map::<i64, String>("orders")?;
    /// let mut events = orders.events(ListenerOptions::default())?;
    /// orders.set(&1, "two kilos")?;
    /// let event = events.recv()?;
    /// assert_eq!((event.kind, event.key), (EventKind::Added, Some(1)));
    /// assert_eq!(event.value.as_deref(), Some("two kilos"));
    /// # Ok::<(), filbert::Error>(())
    /// ```
    ///
    /// # Errors
    /// The member is shut down, or its limit of listeners is reached.
    pub fn events(&self, options: ListenerOptions) -> Result<Events<K, V>, Error> {
        self.listen(options, None)
    }

    /// Subscribes to the changes of one key from now on, and to changes of the whole map.
    ///
    /// # Errors
    /// As [`Map::events`], or the key cannot be serialized.
    pub fn events_of<Q: ToBlob + ?Sized>(&self, key: &Q, options: ListenerOptions) -> Result<Events<K, V>, Error>
    where
        K: Borrow<Q>,
    {
        let key = key.to_blob().map_err(|source| self.core.data_error("a key", source))?;
        self.listen(options, Some(key))
    }

    /// Calls `listener` for each change from now on, on a separate thread. It ends when the
    /// returned [`Listener`] is dropped or the member is shut down. The listener may use the map.
    ///
    /// # Errors
    /// As [`Map::events`], or the operating system cannot start a thread.
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

/// The changes of a map. The order of changes of the same key is kept. Dropping it removes the
/// listener.
pub struct Events<K, V> {
    core: Core,
    id: ListenerId,
    queue: Arc<Queue>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: FromBlob, V: FromBlob> Events<K, V> {
    /// Returns the next change. Blocks this thread until there is one.
    ///
    /// # Errors
    /// [`Error::ShutDown`] when the member is shut down and all changes are read. [`Error::Data`]
    /// when a key or value is not of the map's types; the next change can still be read.
    pub fn recv(&mut self) -> Result<EntryEvent<K, V>, Error> {
        block_on(self.next())
    }

    /// Returns the next change if there is one.
    ///
    /// # Errors
    /// As [`Events::recv`].
    pub fn try_recv(&mut self) -> Result<Option<EntryEvent<K, V>>, Error> {
        let next = self.queue.state.lock().waiting.pop_front();
        next.map(|event| self.read(&event)).transpose()
    }

    /// Returns the next change. Waits for it without blocking the thread.
    ///
    /// Cancel safety: a change is removed from the queue only when it is returned.
    ///
    /// # Errors
    /// As [`Events::recv`].
    pub async fn next(&mut self) -> Result<EntryEvent<K, V>, Error> {
        match std::future::poll_fn(|context| self.queue.poll(context)).await {
            Some(event) => self.read(&event),
            None => Err(Error::ShutDown),
        }
    }

    /// The number of changes that were dropped because the queue was full.
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

/// A registered listener closure. Dropping it removes the listener, without waiting for a running
/// call.
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

/// The queues of all listeners of a member. A shutdown of the member closes them.
pub(super) struct Listeners {
    queues: Mutex<Vec<Weak<Queue>>>,
    events_max: usize,
}

impl Listeners {
    /// Creates the registry. Each queue holds at most `events_max` changes.
    pub(super) fn new(events_max: usize) -> Listeners {
        Listeners { queues: Mutex::new(Vec::new()), events_max }
    }

    fn open(&self) -> Arc<Queue> {
        let state = State { waiting: VecDeque::new(), missed: 0, closed: false, waker: None };
        let queue = Arc::new(Queue { state: Mutex::new(state), length_max: self.events_max });
        let mut queues = self.queues.lock();
        if queues.len() == queues.capacity() {
            // Remove the queues of dropped listeners before the vector grows.
            queues.retain(|queue| queue.strong_count() > 0);
        }
        queues.push(Arc::downgrade(&queue));
        queue
    }

    /// Closes all queues.
    pub(super) fn close(&self) {
        for queue in self.queues.lock().drain(..).filter_map(|queue| queue.upgrade()) {
            queue.close();
        }
    }
}

/// A change as reported by the grid.
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

/// Converts the event kind of the grid.
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

/// The event queue of one listener.
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
