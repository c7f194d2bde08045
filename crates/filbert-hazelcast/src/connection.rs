//! The bytes of one connection: reads a batch, handles its requests in place, and writes the
//! replies with one write.

use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::{Duration, Instant},
};

use filbert_grid::metrics::OperationKind;
use filbert_grid::{GridError, Reservation, UNCOUNTED_BYTES_MAX};
use filbert_wire::{Limits, Message, PREAMBLE, Skipper, Split, Splitter, WireError, frame::flags};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tracing::{debug, info, warn};

use crate::{
    client_link::ClientLink,
    handlers::map_read::{self, GETS_MAX, Get},
    holding::RemainingRequests,
    linger::linger_on,
    outbox::End,
    relay,
    replies::UNCOUNTED_BYTES,
    routing::Route,
    session::Session,
};

/// A write buffer larger than this is not kept for the next batch: it has grown for a large reply.
const KEPT_WRITE_BYTES_MAX: usize = 256 << 10;

/// A larger buffer of requests is not kept for the next ones: it has grown for a large request.
const KEPT_READ_BYTES_MAX: usize = 256 << 10;

/// The time for which a client that keeps sending is served while the member stops. A client that
/// waits at another member, or for a long reply, is served until the close timeout.
const STOPPING_MAX: Duration = Duration::from_millis(500);

/// Buffers that all connections of a thread use in turn: only one of them runs at a time. So a
/// thousand idle connections need no buffers, and busy connections find these buffers in the
/// processor's cache.
struct Scratch {
    read: Vec<u8>,
    write: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch { read: Vec::new(), write: Vec::new() }) };
}

/// The reason for the end of a connection.
#[derive(Debug)]
enum Closing {
    /// The client or the network closed it.
    Gone,
    /// The client received the error. The rest of its input is ignored.
    Refused,
    /// The door ends it.
    Ended(End),
}

/// A run of gets of one map, which are answered together, and their offsets in the current bytes.
#[derive(Default)]
struct Gets<'b> {
    gets: [Option<Get<'b>>; GETS_MAX],
    starts: [usize; GETS_MAX],
    count: usize,
}

impl<'b> Gets<'b> {
    /// Adds a message if it continues the run.
    #[inline]
    fn take(&mut self, session: &Session, message: &Message<'b>, start: usize) -> bool {
        let Some(get) = Get::of(session, message) else { return false };
        let first = self.gets.first().and_then(Option::as_ref);
        if self.count > 0 && !first.is_some_and(|first| first.is_of_map_of(&get)) {
            return false;
        }
        let (Some(place), Some(start_place)) = (self.gets.get_mut(self.count), self.starts.get_mut(self.count)) else {
            return false;
        };
        *place = Some(get);
        *start_place = start;
        self.count += 1;
        true
    }
}

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    session: Session,
    link: Arc<ClientLink>,
    splitter: Splitter,
    /// Received bytes that are not handled yet: the beginning of a message, or requests that wait
    /// until the client has read more of its replies.
    pending: Vec<u8>,
    /// The reservation for `pending`, if it is large.
    room: Reservation,
    /// The reservation for fragments.
    fragments_room: Reservation,
    /// The reservation for events that are being written.
    events_room: Vec<Reservation>,
    /// Skips a message for which there was no memory.
    skipper: Option<Skipper>,
    /// The number of bytes at the front of the session's replies that are written.
    written: usize,
    preamble_seen: bool,
    /// Whether `pending` may contain complete requests.
    held_back: bool,
    /// Whether the splitter uses the limits of an authenticated client.
    trusted: bool,
    closing: Option<Closing>,
    /// The time at which the member's stop was noticed. The connection ends as soon as its client
    /// waits for no reply, or after [`STOPPING_MAX`].
    stopping: Option<Instant>,
    /// The waker that is registered with the outbox.
    waker: Option<Waker>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, session: Session) -> Self {
        let message_bytes_max = session.config.unauthenticated_message_bytes_max;
        let budget = session.grid.budget().clone();
        Self {
            stream,
            room: budget.empty(),
            fragments_room: budget.empty(),
            events_room: Vec::new(),
            skipper: None,
            link: session.link.clone(),
            splitter: Splitter::new(Limits { message_bytes_max, fragmented_messages_max: 1 }),
            session,
            pending: Vec::new(),
            written: 0,
            preamble_seen: false,
            held_back: false,
            trusted: false,
            closing: None,
            stopping: None,
            waker: None,
        }
    }

    /// Serves the client until it disconnects or is disconnected.
    pub(crate) async fn serve(mut self) {
        let peer = self.link.peer;
        debug!(%peer, "connection opened");
        let closing = poll_fn(|context| self.poll(context)).await;
        let client = self.session.client;
        match closing {
            Closing::Gone => debug!(%peer, %client, "connection closed by the client"),
            Closing::Refused => debug!(%peer, %client, "connection closed"),
            Closing::Ended(End::Overflow) => {
                let limit = self.session.config.event_buffer_bytes_max;
                warn!(%peer, %client, "disconnected: more than {limit} bytes of events wait and the client does not read");
            }
            Closing::Ended(End::Full) => {
                warn!(%peer, %client, "disconnected: events wait, the client does not read, and all clients' have no more room, see events_bytes_max");
            }
            Closing::Ended(End::Silent) => {
                warn!(%peer, %client, "disconnected: no message for {:?}", self.session.config.heartbeat_timeout);
            }
            Closing::Ended(End::Unauthenticated) => {
                info!(%peer, "disconnected: no authentication in {:?}", self.session.config.unauthenticated_timeout);
            }
            Closing::Ended(end) => debug!(%peer, %client, "connection ended: {end:?}"),
        }
        self.link.set_closing();
        let linger =
            (!matches!(closing, Closing::Gone | Closing::Ended(End::Abort | End::Overflow | End::Full | End::Silent)))
                .then_some(self.session.config.close_timeout);
        let Connection { stream, session, .. } = self;
        // Releases the client's locks and memory before the wait for the client's close.
        drop(session);
        self.link.set_held_bytes(0);
        if let Some(timeout) = linger {
            linger_on(stream, timeout).await;
        }
    }

    /// One turn: while there is work, replies are written before requests are read.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Closing> {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.link.outbox.register(context.waker());
            self.waker = Some(context.waker().clone());
        }
        let result = self.turn(context);
        let held_bytes = self.session.relays.as_ref().map_or(0, |relays| relays.held_bytes());
        self.link.set_held_bytes(
            self.pending.capacity() + self.session.out.held_bytes() + self.splitter.kept_bytes() + held_bytes,
        );
        result
    }

    fn turn(&mut self, context: &mut Context<'_>) -> Poll<Closing> {
        loop {
            if self.link.outbox.is_filled() && self.has_room() {
                self.collect();
            }
            if self.held_back && self.may_take_requests() {
                self.handle_pending();
            }
            if self.backlog() > 0 {
                match self.poll_flush(context) {
                    Poll::Ready(Ok(())) => continue,
                    Poll::Ready(Err(error)) => return Poll::Ready(self.broken(&error)),
                    Poll::Pending if self.closing.is_some() || !self.has_room() => {
                        // The end of the connection must be noticed even while the client does not
                        // read.
                        return self.poll_end();
                    }
                    Poll::Pending => {}
                }
            }
            if self.closing.is_some() && self.has_changes_in_flight() {
                // Requests that were read are answered first.
                return self.poll_end();
            }
            if self.closing.is_some() && self.session.is_replicated && self.link.outbox.is_filled() {
                continue;
            }
            if let Some(closing) = self.closing.take() {
                return Poll::Ready(closing);
            }
            if self.held_back {
                // Requests wait for changes in flight. The end of a change wakes this task.
                return Poll::Pending;
            }
            if self.stopping.is_some_and(|since| since.elapsed() > STOPPING_MAX) && !self.waits_elsewhere() {
                self.closing = Some(Closing::Ended(End::Shutdown));
                continue;
            }
            let read = self.poll_read(context);
            if read.is_pending() && self.stopping.is_some() && self.owes_nothing() {
                return Poll::Ready(Closing::Ended(End::Shutdown));
            }
            match ready!(read) {
                Ok(0) => return Poll::Ready(Closing::Gone),
                Ok(_) => self.link.count_read(),
                Err(error) => return Poll::Ready(self.broken(&error)),
            }
        }
    }

    /// Checks whether the connection must end although the client does not read its replies.
    fn poll_end(&mut self) -> Poll<Closing> {
        if self.closing.is_some() {
            self.link.set_closing();
        }
        match self.link.outbox.peek_end() {
            Some(end @ (End::Abort | End::Overflow | End::Full | End::Silent)) => Poll::Ready(Closing::Ended(end)),
            Some(end) => {
                // Requests that were read are answered. The replies are written as far as the
                // client reads them in time.
                self.link.set_closing();
                self.closing.get_or_insert(Closing::Ended(end));
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }

    /// Whether all requests of the client are answered. Called when there is nothing to read. A
    /// partially received request counts as not answered.
    fn owes_nothing(&self) -> bool {
        self.pending.is_empty()
            && self.backlog() == 0
            && !self.waits_elsewhere()
            && !(self.session.is_replicated && (self.has_changes_in_flight() || self.link.outbox.is_filled()))
    }

    /// Whether a request of the client waits at another member, where it would have to wait again,
    /// or for a long reply.
    fn waits_elsewhere(&self) -> bool {
        self.link.is_parking() || self.session.relays.as_ref().is_some_and(|relays| relays.waits())
    }

    fn broken(&self, error: &io::Error) -> Closing {
        debug!(peer = %self.link.peer, "connection broken: {error}");
        Closing::Gone
    }

    /// The number of reply bytes that are not written yet.
    #[inline]
    fn backlog(&self) -> usize {
        self.session.out.bytes() - self.written
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.backlog() <= self.session.config.write_buffer_bytes_max
    }

    /// Whether replies and changes in flight are within their limits.
    #[inline]
    fn may_take_requests(&self) -> bool {
        self.has_room()
            && !self.link.is_parking()
            && (!self.link.outbox.is_filled() || self.has_room_in_outbox())
            && (!self.session.is_replicated || self.has_room_in_flight())
    }

    /// Whether replies in the outbox are within the limit as well. They are collected as soon as
    /// the client has read.
    #[cold]
    fn has_room_in_outbox(&self) -> bool {
        let waiting = self.link.outbox.reply_bytes();
        self.backlog().saturating_add(waiting) <= self.session.config.write_buffer_bytes_max
    }

    /// Whether accepted changes are not answered yet. The end of a change wakes this task.
    fn has_changes_in_flight(&self) -> bool {
        self.session.in_flight.wake_at_next();
        self.session.in_flight.bytes() > 0 || self.relayed_bytes() > 0
    }

    /// Bytes of requests that other members have not answered. A reply wakes this task.
    fn relayed_bytes(&self) -> usize {
        self.session.relays.as_ref().map_or(0, |relays| relays.bytes())
    }

    #[cold]
    fn has_room_in_flight(&self) -> bool {
        let max = self.session.config.write_buffer_bytes_max;
        self.session.in_flight.wake_at_next();
        let in_flight = self.session.in_flight.bytes().saturating_add(self.relayed_bytes());
        self.backlog().saturating_add(in_flight) <= max
    }

    #[cold]
    fn collect(&mut self) {
        let (end, room) = self.link.outbox.collect(&mut self.session.out);
        self.events_room.extend(room);
        self.session.retry_journal_waits();
        if self.session.relays.is_some() {
            self.session.update_relays();
            self.repeat_held();
        }
        match end {
            // A client that is disconnected during a call does not know the call's outcome.
            Some(End::Shutdown) => {
                self.link.set_closing();
                self.stopping.get_or_insert_with(Instant::now);
            }
            Some(end) if self.closing.is_none() => {
                self.link.set_closing();
                self.closing = Some(Closing::Ended(end));
            }
            _ => {}
        }
    }

    /// Repeats requests that waited for a known leader.
    #[cold]
    fn repeat_held(&mut self) {
        let Some(held) = self.session.take_held() else { return };
        let started = self.session.tally.begin();
        let mut left = RemainingRequests::default();
        for repeatable in held {
            if !self.has_room() || left.is_behind(&repeatable) {
                left.push(repeatable);
            } else if let Some(repeatable) = self.session.repeat(repeatable) {
                left.push(repeatable);
            }
        }
        self.session.put_back_held(left);
        if !self.session.submissions.is_empty() {
            self.session.submissions.send();
        }
        self.session.tally.end(started, self.session.grid.metrics());
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let front = self.session.out.front();
        let (front_bytes, rest) = (front.len(), front.get(self.written..).unwrap_or_default());
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.written += written;
        if self.session.out.has_full() && self.written >= front_bytes {
            self.written = 0;
            self.session.out.drop_front();
        }
        if self.backlog() == 0 {
            self.written = 0;
            self.events_room.clear();
            let mut out = self.session.out.take_written();
            if out.capacity() <= KEPT_WRITE_BYTES_MAX {
                out.clear();
                SCRATCH.with_borrow_mut(|scratch| scratch.write = out);
            }
        } else if !self.session.out.has_full()
            && self.written > KEPT_WRITE_BYTES_MAX
            && self.written > self.session.out.len() / 2
        {
            // The written part must not grow without end for a client that is always a little
            // behind.
            self.session.out.drain(..self.written);
            self.written = 0;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads the available bytes, up to the size of the read buffer, and handles them.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let Scratch { read, write } = scratch;
            let limit = self.session.config.read_buffer_bytes.max(1);
            read.clear();
            read.reserve_exact(limit);
            let spare = read.spare_capacity_mut();
            let spare_bytes = spare.len().min(limit);
            let mut buffer = ReadBuf::uninit(spare.get_mut(..spare_bytes).unwrap_or_default());
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            let bytes = buffer.filled();
            if bytes.is_empty() {
                return Poll::Ready(Ok(0));
            }
            if self.session.out.capacity() == 0 {
                *self.session.out = std::mem::take(write);
            }
            let mut rest = bytes;
            if self.skipper.is_some() {
                rest = self.pass_over(rest);
            }
            if rest.is_empty() {
                // All bytes belong to a skipped message.
            } else if self.pending.is_empty() {
                let handled = self.handle(rest);
                self.keep(rest.get(handled..).unwrap_or_default());
            } else if self.keep(rest) {
                self.handle_pending();
            }
            Poll::Ready(Ok(bytes.len()))
        })
    }

    fn handle_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        let handled = self.handle(&pending);
        if handled < pending.len() {
            pending.drain(..handled);
            if pending.capacity() > KEPT_READ_BYTES_MAX && pending.len() < pending.capacity() / 4 {
                pending.shrink_to_fit();
            }
            self.pending = pending;
        }
        // A reservation that shrinks cannot fail.
        let _ = self.room.follow(self.pending.capacity());
    }

    /// Stores bytes until the message that they begin with is complete. `false` if there is no
    /// memory for the message: it is refused and skipped.
    #[inline]
    fn keep(&mut self, bytes: &[u8]) -> bool {
        if bytes.is_empty() || self.closing.is_some() {
            return true;
        }
        let needed = self.pending.len() + bytes.len();
        if needed > self.pending.capacity() && needed > UNCOUNTED_BYTES_MAX && !self.make_room(bytes, needed) {
            return false;
        }
        self.pending.extend_from_slice(bytes);
        true
    }

    /// Reserves memory for an incomplete message with more of its bytes. The length that the
    /// message claims is used only after a quarter of it has arrived.
    #[cold]
    fn make_room(&mut self, more: &[u8], needed: usize) -> bool {
        let buffer = if self.pending.is_empty() { more } else { &self.pending };
        let expected = self.splitter.expected_bytes(buffer).max(needed);
        let doubled = self.pending.capacity().saturating_mul(2).max(needed);
        let capacity = if needed.saturating_mul(4) >= expected { expected } else { doubled };
        // The old buffer exists until all of its bytes are in the new one.
        match self.room.grow(capacity) {
            Ok(()) => {
                self.pending.reserve_exact(capacity - self.pending.len());
                self.room.shrink(capacity);
                true
            }
            // The bytes of one read are accepted in any case.
            Err(_) if needed <= self.session.config.read_buffer_bytes.max(UNCOUNTED_BYTES_MAX) => true,
            Err(exhausted) => {
                self.refuse_message(exhausted.into(), more);
                false
            }
        }
    }

    /// Refuses the current message, because there is no memory for it, and skips it. `more` are its
    /// bytes after those in `pending`.
    #[cold]
    fn refuse_message(&mut self, error: GridError, more: &[u8]) {
        let pending = std::mem::take(&mut self.pending);
        self.room.shrink(0);
        let front = if pending.is_empty() { more } else { &pending };
        self.session.fail_full(error, front);
        self.splitter.rewind();
        // The fragments of a message belong together, and its other fragments cannot be recognized.
        let bits = front.get(4..6).and_then(|bits| bits.first_chunk::<2>()).map_or(0, |bits| u16::from_le_bytes(*bits));
        if bits & flags::UNFRAGMENTED != flags::UNFRAGMENTED {
            self.closing = Some(Closing::Refused);
            return;
        }
        self.skipper = Some(Skipper::default());
        self.pass_over(&pending);
        let behind = self.pass_over(more);
        if !behind.is_empty() && self.closing.is_none() {
            // `more` contains the end of the refused message and the beginning of the next
            // messages.
            let handled = self.handle(behind);
            self.pending.extend_from_slice(behind.get(handled..).unwrap_or_default());
        }
    }

    /// Skips the bytes of a refused message. Returns the bytes after it.
    #[cold]
    fn pass_over<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let Some(skipper) = &mut self.skipper else { return bytes };
        match skipper.skip(bytes) {
            Ok((passed, is_over)) => {
                if is_over {
                    self.skipper = None;
                }
                bytes.get(passed..).unwrap_or_default()
            }
            Err(error) => {
                self.session.fail_wire(error, bytes);
                self.closing = Some(Closing::Refused);
                &[]
            }
        }
    }

    /// Handles the requests at the front of `bytes`, and counts them. Returns the number of handled
    /// bytes.
    fn handle(&mut self, bytes: &[u8]) -> usize {
        let started = self.session.tally.begin();
        let handled = self.handle_all(bytes);
        if !self.session.submissions.is_empty() {
            self.session.submissions.send();
        }
        if let Some(relays) = &self.session.relays {
            relays.flush();
        }
        self.session.tally.end(started, self.session.grid.metrics());
        handled
    }

    fn handle_all(&mut self, bytes: &[u8]) -> usize {
        self.held_back = false;
        if let Some(relays) = &mut self.session.relays {
            relays.refresh();
        }
        let mut at = 0;
        if !self.preamble_seen {
            match bytes.first_chunk() {
                Some(&PREAMBLE) => at = PREAMBLE.len(),
                Some(&relay::PREAMBLE) if self.session.grid.cluster().is_some() => {
                    at = relay::PREAMBLE.len();
                    self.session.is_relay = true;
                }
                // Another protocol. Its client would not understand an error of this protocol.
                Some(other) => return self.refuse_preamble(other, bytes.len()),
                None if PREAMBLE.starts_with(bytes) => return 0,
                None => return self.refuse_preamble(bytes, bytes.len()),
            }
            self.preamble_seen = true;
        }
        let mut gets = Gets::default();
        loop {
            if self.closing.is_some() {
                // Bytes after a refusal are ignored.
                return bytes.len();
            }
            if gets.count == 0 && !self.may_take_requests() {
                self.held_back = true;
                return at;
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let split = self.splitter.split(rest);
            let whole = match split {
                Ok(Some(Split::Whole(length))) => Some(Message::parse(rest.get(..length).unwrap_or_default())),
                _ => None,
            };
            let route = match &whole {
                Some(Ok(message)) => self.session.route(message),
                _ => Route::Here(None),
            };
            if let Some(Ok(message)) = &whole
                && self.session.must_wait(message, route)
            {
                self.held_back = true;
                self.splitter.rewind();
                return self.handle_gets(&mut gets, true).unwrap_or(at);
            }
            if let (Ok(Some(Split::Whole(length))), Some(Ok(message))) = (&split, &whole)
                && matches!(route, Route::Here(_))
                && gets.take(&self.session, message, at)
            {
                at += length;
                continue;
            }
            // A fragment cannot be split off twice, so it does not wait behind gets.
            let may_wait = !matches!(split, Ok(Some(Split::Fragment(_) | Split::Assembled(..))));
            if let Some(start) = self.handle_gets(&mut gets, may_wait) {
                self.held_back = true;
                return start;
            }
            match split {
                Ok(None) => return at,
                Ok(Some(Split::Whole(length))) => {
                    match whole {
                        // A full run was answered just now. This get begins the next run.
                        Some(Ok(message))
                            if matches!(route, Route::Here(_)) && gets.take(&self.session, &message, at) => {}
                        Some(parsed) => self.handle_message(parsed, rest.get(..length).unwrap_or_default(), route),
                        None => {}
                    }
                    at += length;
                }
                Ok(Some(Split::Fragment(length))) => {
                    at += length;
                    self.count_fragments(rest);
                }
                Ok(Some(Split::Assembled(length, message))) => {
                    let parsed = Message::parse(&message);
                    let route = parsed.as_ref().map_or(Route::Here(None), |parsed| self.session.route(parsed));
                    self.handle_message(parsed, &message, route);
                    at += length;
                    // A reservation that shrinks cannot fail.
                    let _ = self.fragments_room.follow(2 * self.splitter.kept_bytes());
                }
                Err(error) => {
                    self.session.fail_wire(error, rest);
                    self.closing = Some(Closing::Refused);
                }
            }
        }
    }

    /// Reserves memory for the stored fragments.
    #[cold]
    fn count_fragments(&mut self, fragment: &[u8]) {
        // A list that grows by doubling may allocate twice its length.
        if let Err(exhausted) = self.fragments_room.follow(2 * self.splitter.kept_bytes()) {
            self.session.fail_full(exhausted.into(), fragment);
            self.closing = Some(Closing::Refused);
        }
    }

    /// Answers a run of gets. If the gets may wait, returns the offset of the first one that must
    /// wait until the client has read more of its replies.
    #[inline]
    fn handle_gets(&mut self, gets: &mut Gets<'_>, may_wait: bool) -> Option<usize> {
        let run = gets.gets.get(..gets.count).unwrap_or_default();
        gets.count = 0;
        let mut answered = 0;
        while let Some(rest) = run.get(answered..).filter(|rest| !rest.is_empty()) {
            if may_wait && !self.has_room() {
                // Everything from this get on is split again later.
                self.splitter.rewind();
                return gets.starts.get(answered).copied();
            }
            // Replies are appended to the tail. A part of the tail may be written already.
            let written = if self.session.out.has_full() { 0 } else { self.written };
            let out_bytes_max = written.saturating_add(self.session.config.write_buffer_bytes_max);
            let start = self.session.out.mark();
            let count = map_read::handle_gets(&mut self.session, rest, out_bytes_max);
            if self.session.out.grown_since(start) > UNCOUNTED_BYTES {
                self.session.count_long_gets(start, rest.get(..count).unwrap_or_default());
            }
            self.session.tally.add(OperationKind::Get, u32::try_from(count).unwrap_or_default());
            answered += count;
        }
        None
    }

    #[inline]
    fn handle_message(&mut self, parsed: Result<Message<'_>, WireError>, bytes: &[u8], route: Route) {
        let goes_on = match parsed {
            Ok(message) if !matches!(route, Route::Here(_)) => self.session.handle_routed(&message, bytes, route),
            Ok(message) => self.session.handle(&message),
            Err(error) => {
                self.session.fail_wire(error, bytes);
                false
            }
        };
        if !goes_on {
            self.closing = Some(Closing::Refused);
        } else if !self.trusted {
            self.trust();
        }
    }

    /// Raises the limits after the client's authentication.
    #[cold]
    fn trust(&mut self) {
        if self.session.registration.is_some() {
            self.trusted = true;
            let message_bytes_max = self.session.config.message_bytes_max;
            self.splitter = Splitter::new(Limits { message_bytes_max, ..Limits::default() });
        }
    }

    #[cold]
    fn refuse_preamble(&mut self, found: &[u8], bytes: usize) -> usize {
        let found = String::from_utf8_lossy(found.get(..3).unwrap_or(found));
        info!(peer = %self.link.peer, "connection closed: it begins with {found:?}, expected \"CP2\" of Hazelcast's clients");
        self.closing = Some(Closing::Refused);
        bytes
    }
}
