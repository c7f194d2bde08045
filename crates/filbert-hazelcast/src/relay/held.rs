//! Requests that no member has executed, or that may be repeated, while the leader is unknown. They
//! are held here, and repeated when the view knows the leader. So a client sees a change of leaders
//! as a pause.
//!
//! Requests of one partition keep their order, and later requests for the partition wait behind
//! them. Held requests count as in flight. This module does not know whether the other members
//! agree on the leader: the connection repeats requests after a change of the view, and
//! periodically.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use filbert_grid::{ErrorKind, PartitionId, PendingRequest, PendingRequests};
use filbert_wire::{CorrelationId, Message, MessageId, Uuid, error_message::ErrorMessage};
use parking_lot::Mutex;

use super::Relays;
use super::pipe::is_retryable;
use crate::client_link::ClientLink;
use crate::failure::Failure;

/// The overhead counted for a request in addition to its bytes. So the limit of bytes also limits
/// the number of requests.
const REQUEST_BYTES: usize = 256;

/// The first and the longest pause between two checks of the held requests while the view does not
/// change.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(160));

/// The held requests of one client's connection.
pub(crate) struct Held {
    link: Arc<ClientLink>,
    pending: PendingRequests,
    hold_max: Duration,
    state: Mutex<State>,
    bytes: AtomicUsize,
    numbers: AtomicU64,
    /// Whether a task wakes the connection periodically. `ticked`: whether it has just done so.
    is_ticking: AtomicBool,
    ticked: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Sorted by number.
    requests: Vec<RepeatableRequest>,
    /// Whether the client has disconnected.
    is_closed: bool,
}

/// A client's request, for a repetition.
pub(crate) struct RepeatableRequest {
    held: Arc<Held>,
    pub(super) id: MessageId,
    correlation: CorrelationId,
    pub(crate) bytes: Vec<u8>,
    pub(crate) partition: Option<PartitionId>,
    /// The member that was asked, if it was a single one. `version` is the version of the view used
    /// for that.
    pub(crate) tried: Option<Uuid>,
    pub(crate) version: i32,
    turn: Turn,
    /// The error for the client if the request is held for too long.
    failure: Vec<u8>,
    _pending: PendingRequest,
}

/// The position of a request among those of its connection, the time of its arrival, and the end of
/// its wait once it waits.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    number: u64,
    begun: Instant,
    until: Option<Instant>,
    /// The number of entries that earlier attempts have removed from a map that the request
    /// empties.
    emptied: usize,
}

impl Held {
    pub(super) fn new(link: Arc<ClientLink>, hold_max: Duration, pending: PendingRequests) -> Self {
        Held {
            link,
            pending,
            hold_max,
            state: Mutex::default(),
            bytes: AtomicUsize::new(0),
            numbers: AtomicU64::new(0),
            is_ticking: AtomicBool::new(false),
            ticked: AtomicBool::new(false),
        }
    }

    /// Bytes of held requests.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether a request of the partition is held.
    pub(super) fn has(&self, partition: PartitionId) -> bool {
        self.bytes() > 0 && self.state.lock().requests.iter().any(|request| request.partition == Some(partition))
    }

    /// The turn of a new request.
    pub(super) fn next_turn(&self) -> Turn {
        Turn { number: self.numbers.fetch_add(1, Ordering::Relaxed), begun: Instant::now(), until: None, emptied: 0 }
    }

    pub(super) fn repeatable(
        self: &Arc<Self>,
        message: &Message<'_>,
        partition: Option<PartitionId>,
        tried: Option<Uuid>,
        version: i32,
        turn: Turn,
    ) -> RepeatableRequest {
        RepeatableRequest {
            held: self.clone(),
            id: message.id(),
            correlation: message.correlation_id(),
            bytes: message.bytes().to_vec(),
            partition,
            tried,
            version,
            turn,
            failure: Vec::new(),
            _pending: self.pending.begin(),
        }
    }

    /// Takes all requests out, in order.
    pub(super) fn take(&self) -> Vec<RepeatableRequest> {
        let mut state = self.state.lock();
        self.bytes.store(0, Ordering::SeqCst);
        std::mem::take(&mut state.requests)
    }

    /// Puts requests back that remain held, in order.
    pub(super) fn put_back(&self, requests: Vec<RepeatableRequest>) {
        for request in requests {
            self.push(request);
        }
    }

    fn push(&self, request: RepeatableRequest) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        self.bytes.fetch_add(request.bytes.len() + REQUEST_BYTES, Ordering::SeqCst);
        let index = state.requests.partition_point(|other| other.turn.number <= request.turn.number);
        state.requests.insert(index, request);
    }

    /// The client has disconnected.
    pub(super) fn close(&self) {
        let requests = {
            let mut state = self.state.lock();
            state.is_closed = true;
            self.bytes.store(0, Ordering::SeqCst);
            std::mem::take(&mut state.requests)
        };
        drop(requests);
    }

    /// Whether all requests are to be tried, although the view has not changed. Resets the flag.
    pub(super) fn take_tick(&self) -> bool {
        self.ticked.swap(false, Ordering::SeqCst)
    }

    /// Wakes the connection periodically, as long as a request is held.
    pub(super) fn tick(self: &Arc<Self>) {
        if self.bytes() == 0 || self.is_ticking.swap(true, Ordering::SeqCst) {
            return;
        }
        let held = self.clone();
        tokio::spawn(async move {
            let mut pause = PAUSE.0;
            while held.bytes() > 0 {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
                held.ticked.store(true, Ordering::SeqCst);
                held.link.outbox.poke();
            }
            held.is_ticking.store(false, Ordering::SeqCst);
            // Requests that were held in the meantime are checked, and start a new task.
            held.link.outbox.poke();
        });
    }
}

impl Turn {
    /// The time since the arrival of the request, and its turn with the current time as its
    /// arrival.
    fn restarted(self, now: Instant) -> (Duration, Turn) {
        (now.saturating_duration_since(self.begun), Turn { begun: now, ..self })
    }
}

impl RepeatableRequest {
    /// Whether the request may be repeated after an error of this kind.
    pub(crate) fn may_repeat_after(&self, kind: ErrorKind) -> bool {
        kind == ErrorKind::NotLeader || kind == ErrorKind::Indeterminate && is_retryable(self.id)
    }

    /// Whether the request may be repeated after this reply of another member.
    pub(super) fn may_repeat_after_reply(&self, answer: &Message<'_>) -> bool {
        let code = |kind: ErrorKind| kind.facts().hazelcast_code;
        answer.id() == MessageId::ERROR
            && answer.decode::<ErrorMessage<'_>>().ok().and_then(|error| Some(error.holders.first()?.code)).is_some_and(
                |found| {
                    // A member that is leaving accepts no more requests.
                    [ErrorKind::NotLeader, ErrorKind::NotActive].map(code).contains(&found)
                        || found == code(ErrorKind::Indeterminate) && is_retryable(self.id)
                },
            )
    }

    /// The time since the arrival of the request, and its turn with the current time as its
    /// arrival.
    pub(crate) fn restarted(&self, now: Instant) -> (Duration, Turn) {
        self.turn.restarted(now)
    }

    /// Holds the request. If it was held for too long, answers it with the failure.
    pub(crate) fn fail(self, failure: &Failure) {
        let mut bytes = Vec::new();
        failure.encode(self.correlation, &mut bytes);
        let _waits = self.hold(bytes);
    }

    /// The number of entries that earlier attempts have removed from the map that the request
    /// empties.
    pub(super) fn emptied_before(&self) -> usize {
        self.turn.emptied
    }

    /// As [`RepeatableRequest::hold`], for a request that has removed `emptied` entries so far.
    pub(super) fn hold_having_emptied(mut self, failure: Vec<u8>, emptied: usize) -> bool {
        self.turn.emptied = emptied;
        self.hold(failure)
    }

    /// As [`RepeatableRequest::fail`], for an encoded error. Returns whether the request is held.
    /// Must not be called under the lock of an outbox.
    pub(super) fn hold(mut self, failure: Vec<u8>) -> bool {
        let now = Instant::now();
        self.turn.until.get_or_insert(now + self.held.hold_max);
        self.failure = failure;
        if self.is_late(now) {
            self.answer_failure();
            return false;
        }
        let held = self.held.clone();
        held.push(self);
        held.link.outbox.poke();
        true
    }

    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.turn.until.is_some_and(|until| until <= now)
    }

    /// Answers the request with its error.
    pub(crate) fn answer_failure(self) {
        self.held.link.outbox.append_answer(|out| out.extend_from_slice(&self.failure));
    }
}

impl Relays {
    /// A copy of a request that a member is about to execute, for a repetition.
    pub(crate) fn repeatable(
        &self,
        message: &Message<'_>,
        partition: Option<PartitionId>,
        tried: Option<Uuid>,
    ) -> RepeatableRequest {
        let turn = self.turn.unwrap_or_else(|| self.held.next_turn());
        self.held.repeatable(message, partition, tried, self.view.leaders_version, turn)
    }

    /// Holds a request behind others of its partition.
    #[cold]
    pub(crate) fn hold_behind(&self, message: &Message<'_>, partition: PartitionId) {
        let text = format!("{} waits for others of its partition, it can be sent again", message.id());
        self.repeatable(message, Some(partition), None).fail(&Failure::new(ErrorKind::NotLeader, text));
    }

    /// Whether requests of a partition are held.
    pub(crate) fn holds(&self, partition: PartitionId) -> bool {
        self.held.has(partition)
    }

    /// Whether this connection must register to be woken for its held requests, after
    /// `change_count` changes of the cluster. Returns `true` only once for each count.
    pub(crate) fn is_to_be_woken_after(&mut self, change_count: u64) -> bool {
        self.woken_after.replace(change_count) != Some(change_count)
    }

    /// Takes out all held requests. Refreshes the view first.
    pub(crate) fn take_held(&mut self) -> Vec<RepeatableRequest> {
        self.refresh();
        self.is_tick = self.held.take_tick();
        self.held.take()
    }

    /// Whether all held requests are tried, although the view has not changed.
    pub(crate) fn is_tick(&self) -> bool {
        self.is_tick
    }

    /// Sets the turn of the requests that are executed from now on: the turn of a held request.
    /// `None`: each request gets a new turn.
    pub(crate) fn set_turn(&mut self, turn: Option<Turn>) {
        self.turn = turn;
    }

    /// Puts requests back that remain held.
    pub(crate) fn put_back_held(&mut self, requests: Vec<RepeatableRequest>) {
        self.held.put_back(requests);
        self.held.tick();
        self.flush();
    }
}
