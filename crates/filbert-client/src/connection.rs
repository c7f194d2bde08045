//! One connection to one member: what is to be sent, which calls wait, and who listens.
//!
//! A call is sent when it is made, by the thread that makes it: its bytes are appended to the outbox, and a writer
//! task writes all that has gathered in one go. A call that is alone on its connection is written at once, which saves
//! the way through the writer. A reader task hands answers to the waiting calls, a whole read at a time.

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

/// Called with each event of a registration, by the connection's reader task: it must not block.
pub(crate) type EventHandler = Arc<dyn Fn(&Message<'_>) + Send + Sync>;

/// Where the correlation id lies in a request: behind the frame's header and the message's id.
const CORRELATION: std::ops::Range<usize> = 10..18;

/// A number that no other connection of this process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(u64);

/// See the module's head.
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    /// The address that was connected to.
    pub(crate) address: Arc<str>,
    limits: ClientLimits,
    shared: Mutex<Shared>,
    /// Wakes the writer when there is something to send.
    pub(crate) to_write: Notify,
    /// Told when the connection closes.
    on_close: Arc<Notify>,
    opened: Instant,
    /// When bytes came last, in milliseconds since `opened`.
    last_read_ms: AtomicU64,
}

struct Shared {
    slots: Slots,
    outbox: Vec<u8>,
    /// The writer is at work and will look at the outbox again by itself.
    writing: bool,
    /// Requests sent so far; the heartbeat looks whether it grows.
    sent: u64,
    handlers: HashMap<CorrelationId, EventHandler>,
    /// None when closed.
    stream: Option<Arc<TcpStream>>,
    tasks: Vec<AbortHandle>,
    closed: Option<Arc<str>>,
}

/// Why a request was not sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The connection is closed.
    Closed,
    /// The outbox or the table of calls is full.
    Full,
}

impl Connection {
    /// Takes over a connected stream; `on_close` is told when the connection ends.
    pub(crate) fn open(
        stream: TcpStream,
        address: Arc<str>,
        limits: ClientLimits,
        on_close: Arc<Notify>,
    ) -> Arc<Connection> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let stream = Arc::new(stream);
        let connection = Arc::new(Connection {
            id: ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed)),
            address,
            limits,
            shared: Mutex::new(Shared {
                slots: Slots::default(),
                outbox: filbert_wire::PREAMBLE.to_vec(),
                writing: false,
                sent: 0,
                handlers: HashMap::new(),
                stream: Some(stream.clone()),
                tasks: Vec::new(),
                closed: None,
            }),
            to_write: Notify::new(),
            on_close,
            opened: Instant::now(),
            last_read_ms: AtomicU64::new(0),
        });
        let reader = tokio::spawn(crate::io::read(connection.clone(), stream.clone(), limits));
        let writer = tokio::spawn(crate::io::write(connection.clone(), stream));
        connection.shared.lock().tasks = vec![reader.abort_handle(), writer.abort_handle()];
        connection
    }

    /// Sends an encoded request under a correlation id of its own, which is written into it. `handler` gets the events
    /// that come under that id.
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
        // Errors show again in the writer, which closes the connection.
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

    /// The answer to a call, or why the connection ended without one.
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

    /// Nobody waits for this answer any more.
    pub(crate) fn abandon(&self, slot: SlotId) {
        self.shared.lock().slots.abandon(slot);
    }

    /// Sends a request and waits for the answer.
    pub(crate) async fn call(
        self: &Arc<Self>,
        mut request: Vec<u8>,
        handler: Option<EventHandler>,
    ) -> Result<Bytes, Arc<str>> {
        let slot = self.send(&mut request, handler).map_err(|_| self.close_reason())?;
        let waiting = Waiting { connection: self, slot };
        std::future::poll_fn(|context| self.poll_answer(waiting.slot, context)).await
    }

    /// Hands answers to the calls that wait for them; `wakers` is scratch space.
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

    /// Who listens to events under a correlation id.
    pub(crate) fn handler(&self, correlation: CorrelationId) -> Option<EventHandler> {
        self.shared.lock().handlers.get(&correlation).cloned()
    }

    /// Forgets who listens under a correlation id.
    pub(crate) fn remove_handler(&self, correlation: CorrelationId) {
        self.shared.lock().handlers.remove(&correlation);
    }

    /// Exchanges the outbox for `empty`. False when there is nothing to send; the writer then waits.
    pub(crate) fn take_outbox(&self, empty: &mut Vec<u8>) -> bool {
        let mut shared = self.shared.lock();
        shared.writing = !shared.outbox.is_empty();
        if shared.writing {
            std::mem::swap(&mut shared.outbox, empty);
        }
        shared.writing
    }

    /// Ends the connection. Calls that wait for answers fail; the first reason is kept.
    pub(crate) fn close(&self, reason: &str) {
        let (wakers, tasks) = {
            let mut shared = self.shared.lock();
            if shared.closed.is_some() {
                return;
            }
            shared.closed = Some(reason.into());
            shared.stream = None;
            shared.handlers.clear();
            shared.outbox = Vec::new();
            (shared.slots.take_wakers(), std::mem::take(&mut shared.tasks))
        };
        tasks.iter().for_each(AbortHandle::abort);
        wakers.into_iter().for_each(Waker::wake);
        self.on_close.notify_one();
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.lock().closed.is_some()
    }

    /// Why the connection ended.
    pub(crate) fn close_reason(&self) -> Arc<str> {
        self.shared.lock().closed.clone().unwrap_or_else(|| "as many calls as its limits allow wait already".into())
    }

    /// Whether no call waits for its answer and all is sent.
    pub(crate) fn is_idle(&self) -> bool {
        let shared = self.shared.lock();
        shared.closed.is_some() || (shared.slots.waiting() == 0 && shared.outbox.is_empty() && !shared.writing)
    }

    /// Requests sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.shared.lock().sent
    }

    /// Notes that bytes came.
    pub(crate) fn note_read(&self) {
        let since = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_read_ms.store(since, Ordering::Relaxed);
    }

    /// How long no byte has come.
    pub(crate) fn silent_for(&self) -> Duration {
        self.opened.elapsed().saturating_sub(Duration::from_millis(self.last_read_ms.load(Ordering::Relaxed)))
    }
}

/// Frees a call's place when its future is dropped before the answer came.
struct Waiting<'a> {
    connection: &'a Connection,
    slot: SlotId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.connection.abandon(self.slot);
    }
}
