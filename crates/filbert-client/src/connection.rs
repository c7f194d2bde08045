//! One connection to one member: its outbox, its calls in flight, and its event handlers.
//!
//! A call is sent by the thread that creates it: the thread appends the request to the outbox, and
//! a writer task writes the whole outbox at once. If no other call is in flight, the thread writes
//! directly to the socket, which saves the switch to the writer task. A reader task delivers
//! responses to the waiting calls, one batch per read.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use filbert_wire::{CorrelationId, Message};
use parking_lot::Mutex;
use tokio::{net::TcpStream, sync::Notify, task::AbortHandle};

use crate::{
    ClientLimits,
    slots::{SlotId, Slots},
};

/// The handler of a registration's events. The reader task of the connection calls it: it must not
/// block.
pub(crate) type EventHandler = Arc<dyn Fn(&Message<'_>) + Send + Sync>;

/// The position of the correlation id in a request: after the frame header and the message id.
const CORRELATION: std::ops::Range<usize> = 10..18;

/// The id of a connection, unique within the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(u64);

/// A connection to a member.
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    /// The address of the member.
    pub(crate) address: Arc<str>,
    limits: ClientLimits,
    shared: Mutex<Shared>,
    /// Wakes the writer task when the outbox has data.
    pub(crate) to_write: Notify,
    /// Notified when the connection closes.
    on_close: Arc<Notify>,
    opened: Instant,
    /// The time of the last received byte, in milliseconds since `opened`.
    last_read_ms: AtomicU64,
}

struct Shared {
    slots: Slots,
    outbox: Vec<u8>,
    /// Whether the writer task is writing. It then checks the outbox again without a wake-up.
    writing: bool,
    /// The number of requests sent. The heartbeat checks whether it grows.
    sent: u64,
    handlers: HashMap<CorrelationId, EventHandler>,
    /// The socket; `None` when closed.
    stream: Option<Arc<TcpStream>>,
    tasks: Vec<AbortHandle>,
    closed: Option<Arc<str>>,
}

/// The reason why a request was not sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The connection is closed.
    Closed,
    /// The outbox or the table of calls is full.
    Full,
}

impl Connection {
    /// Creates a connection from a connected stream, without its reader and writer tasks.
    /// `on_close` is notified when the connection closes.
    pub(crate) fn new(
        stream: Arc<TcpStream>,
        address: Arc<str>,
        limits: ClientLimits,
        on_close: Arc<Notify>,
    ) -> Connection {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Connection {
            id: ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed)),
            address,
            limits,
            shared: Mutex::new(Shared {
                slots: Slots::default(),
                outbox: filbert_wire::PREAMBLE.to_vec(),
                writing: false,
                sent: 0,
                handlers: HashMap::new(),
                stream: Some(stream),
                tasks: Vec::new(),
                closed: None,
            }),
            to_write: Notify::new(),
            on_close,
            opened: Instant::now(),
            last_read_ms: AtomicU64::new(0),
        }
    }

    /// Sets the reader and writer tasks. They are aborted when the connection closes.
    pub(crate) fn set_tasks(&self, tasks: Vec<AbortHandle>) {
        self.shared.lock().tasks = tasks;
    }

    /// Sends an encoded request. Writes a new correlation id into the request. `handler` receives
    /// the events with this id.
    pub(crate) fn send(&self, request: &mut [u8], handler: Option<EventHandler>) -> Result<SlotId, NotSent> {
        let mut shared = self.shared.lock();
        if shared.stream.is_none() {
            return Err(NotSent::Closed);
        }
        let is_full = !shared.outbox.is_empty()
            && shared.outbox.len().saturating_add(request.len()) > self.limits.outbox_bytes_max;
        if is_full || shared.slots.waiting() >= self.limits.calls_in_flight_max {
            return Err(NotSent::Full);
        }
        let is_alone = shared.slots.waiting() == 0 && shared.outbox.is_empty() && !shared.writing;
        let slot = shared.slots.insert();
        let correlation = slot.correlation();
        if let Some(field) = request.get_mut(CORRELATION) {
            field.copy_from_slice(&correlation.0.to_le_bytes());
        }
        if let Some(handler) = handler {
            shared.handlers.insert(correlation, handler);
        }
        shared.sent += 1;
        // An error occurs again in the writer task, which closes the connection.
        let written = match &shared.stream {
            Some(stream) if is_alone => stream.try_write(request).unwrap_or(0),
            _ => 0,
        };
        let rest = request.get(written..).unwrap_or_default();
        if !rest.is_empty() {
            let wake = shared.outbox.is_empty() && !shared.writing;
            shared.outbox.extend_from_slice(rest);
            if wake {
                self.to_write.notify_one();
            }
        }
        Ok(slot)
    }

    /// Polls for the response to a call. Returns the reason if the connection was closed without a
    /// response.
    pub(crate) fn poll_answer(&self, slot: SlotId, context: &Context<'_>) -> Poll<Result<Bytes, Arc<str>>> {
        let mut shared = self.shared.lock();
        match shared.slots.poll(slot, context) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            Poll::Pending => match shared.closed.clone() {
                Some(reason) => {
                    shared.slots.abandon(slot);
                    Poll::Ready(Err(reason))
                }
                None => Poll::Pending,
            },
        }
    }

    /// Frees the slot of a call that was dropped.
    pub(crate) fn abandon(&self, slot: SlotId) {
        self.shared.lock().slots.abandon(slot);
    }

    /// Sends a request and waits for the response.
    pub(crate) async fn call(
        self: &Arc<Self>,
        mut request: Vec<u8>,
        handler: Option<EventHandler>,
    ) -> Result<Bytes, Arc<str>> {
        let slot = self.send(&mut request, handler).map_err(|_| self.close_reason())?;
        let guard = SlotGuard { connection: self, slot };
        std::future::poll_fn(|context| self.poll_answer(guard.slot, context)).await
    }

    /// Delivers responses to the waiting calls. `wakers` is scratch space.
    pub(crate) fn answer(&self, answers: &mut Vec<(CorrelationId, Bytes)>, wakers: &mut Vec<Waker>) {
        let mut shared = self.shared.lock();
        for (correlation, answer) in answers.drain(..) {
            let Some(waker) = shared.slots.answer(correlation, answer) else { continue };
            // One task often waits for many calls; it is woken once.
            if wakers.last().is_none_or(|last| !last.will_wake(&waker)) {
                wakers.push(waker);
            }
        }
        drop(shared);
        wakers.drain(..).for_each(Waker::wake);
    }

    /// Returns the event handler of a correlation id.
    pub(crate) fn handler(&self, correlation: CorrelationId) -> Option<EventHandler> {
        self.shared.lock().handlers.get(&correlation).cloned()
    }

    /// Removes the event handler of a correlation id.
    pub(crate) fn remove_handler(&self, correlation: CorrelationId) {
        self.shared.lock().handlers.remove(&correlation);
    }

    /// Swaps the outbox with `empty`. Returns false if the outbox is empty; the writer task then
    /// waits.
    pub(crate) fn take_outbox(&self, empty: &mut Vec<u8>) -> bool {
        let mut shared = self.shared.lock();
        shared.writing = !shared.outbox.is_empty();
        if shared.writing {
            std::mem::swap(&mut shared.outbox, empty);
        }
        shared.writing
    }

    /// Closes the connection. Waiting calls fail. If it is closed several times, the first reason
    /// is kept.
    pub(crate) fn close(&self, reason: &str) {
        let (wakers, tasks, handlers) = {
            let mut shared = self.shared.lock();
            if shared.closed.is_some() {
                return;
            }
            shared.closed = Some(reason.into());
            shared.stream = None;
            shared.outbox = Vec::new();
            let handlers = std::mem::take(&mut shared.handlers);
            (shared.slots.take_wakers(), std::mem::take(&mut shared.tasks), handlers)
        };
        // Outside of the lock: a handler may own other handles of the client.
        drop(handlers);
        tasks.iter().for_each(AbortHandle::abort);
        wakers.into_iter().for_each(Waker::wake);
        self.on_close.notify_one();
    }

    /// Whether the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.lock().closed.is_some()
    }

    /// The reason why the connection was closed. If it is open, the text for a request that exceeds
    /// its limits.
    pub(crate) fn close_reason(&self) -> Arc<str> {
        self.shared.lock().closed.clone().unwrap_or_else(|| "as many calls as its limits allow wait already".into())
    }

    /// Whether no call waits for a response and no data waits to be sent, or the connection is
    /// closed.
    pub(crate) fn is_idle(&self) -> bool {
        let shared = self.shared.lock();
        shared.closed.is_some() || (shared.slots.waiting() == 0 && shared.outbox.is_empty() && !shared.writing)
    }

    /// The number of requests sent.
    pub(crate) fn sent(&self) -> u64 {
        self.shared.lock().sent
    }

    /// Records that bytes were received.
    pub(crate) fn note_read(&self) {
        let since = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_read_ms.store(since, Ordering::Relaxed);
    }

    /// The time since the last received byte.
    pub(crate) fn silent_for(&self) -> Duration {
        self.opened.elapsed().saturating_sub(Duration::from_millis(self.last_read_ms.load(Ordering::Relaxed)))
    }
}

/// Frees the slot of a call when its future is dropped.
struct SlotGuard<'a> {
    connection: &'a Connection,
    slot: SlotId,
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        self.connection.abandon(self.slot);
    }
}
