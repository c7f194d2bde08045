//! Requests that nobody has made yet, or that may be made twice, while it is not known who leads: they wait here, and are made again when
//! the view says who does, so that a client sees a change of leaders as a pause.
//!
//! Those of one partition keep their order, and what comes later for a partition waits behind them. They count among what is on its way.
//! Whether the other members agree is not known here: the connection asks by `Relays::way` when the view has changed, and now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use filbert_grid::{ErrorKind, PartitionId};
use filbert_wire::{CorrelationId, Message, MessageId, Uuid, error_message::ErrorMessage};
use parking_lot::Mutex;

use super::pipe::may_be_sent_again;
use crate::failure::Failure;
use crate::link::Link;

/// What a request counts beside its bytes: so the limit of bytes limits their number.
const REQUEST_BYTES: usize = 256;

/// Between two looks at what waits, if the view does not change: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(160));

/// What waits of one client's connection.
pub(crate) struct Held {
    link: Arc<Link>,
    hold_max: Duration,
    state: Mutex<State>,
    bytes: AtomicUsize,
    numbers: AtomicU64,
    /// Whether a task wakes the connection now and then, and whether it just has.
    is_ticking: AtomicBool,
    ticked: AtomicBool,
}

#[derive(Default)]
struct State {
    /// By number.
    requests: Vec<Again>,
    /// The client is gone.
    is_closed: bool,
}

/// A request as the client sent it, to be made again where it may be.
pub(crate) struct Again {
    held: Arc<Held>,
    pub(super) id: MessageId,
    correlation: CorrelationId,
    pub(super) bytes: Vec<u8>,
    pub(super) partition: Option<PartitionId>,
    /// The member that was asked, if it is one, and the version of the view by which it was.
    pub(super) tried: Option<Uuid>,
    pub(super) version: i32,
    pub(super) turn: Turn,
    /// What the client is told if it has waited long enough.
    failure: Vec<u8>,
}

/// Where a request stands among those of its connection, since when it is there, and until when it may wait, once it has.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    number: u64,
    begun: Instant,
    until: Option<Instant>,
    /// Entries that its tries so far have taken out of a map that it empties.
    emptied: usize,
}

impl Held {
    pub(super) fn new(link: Arc<Link>, hold_max: Duration) -> Self {
        Held {
            link,
            hold_max,
            state: Mutex::default(),
            bytes: AtomicUsize::new(0),
            numbers: AtomicU64::new(0),
            is_ticking: AtomicBool::new(false),
            ticked: AtomicBool::new(false),
        }
    }

    /// Bytes of what waits.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Whether a request of the partition waits.
    pub(super) fn has(&self, partition: PartitionId) -> bool {
        self.bytes() > 0 && self.state.lock().requests.iter().any(|request| request.partition == Some(partition))
    }

    /// For a request that has not waited yet.
    pub(super) fn next_turn(&self) -> Turn {
        Turn { number: self.numbers.fetch_add(1, Ordering::Relaxed), begun: Instant::now(), until: None, emptied: 0 }
    }

    pub(super) fn again(
        self: &Arc<Self>,
        message: &Message<'_>,
        partition: Option<PartitionId>,
        tried: Option<Uuid>,
        version: i32,
        turn: Turn,
    ) -> Again {
        Again {
            held: self.clone(),
            id: message.id(),
            correlation: message.correlation_id(),
            bytes: message.bytes().to_vec(),
            partition,
            tried,
            version,
            turn,
            failure: Vec::new(),
        }
    }

    /// Takes all out, in their order.
    pub(super) fn take(&self) -> Vec<Again> {
        let mut state = self.state.lock();
        self.bytes.store(0, Ordering::SeqCst);
        std::mem::take(&mut state.requests)
    }

    /// Puts back what is to wait on, in its order.
    pub(super) fn put_back(&self, requests: Vec<Again>) {
        for request in requests {
            self.push(request);
        }
    }

    fn push(&self, request: Again) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        self.bytes.fetch_add(request.bytes.len() + REQUEST_BYTES, Ordering::SeqCst);
        let place = state.requests.partition_point(|other| other.turn.number <= request.turn.number);
        state.requests.insert(place, request);
    }

    /// The client is gone.
    pub(super) fn close(&self) {
        let requests = {
            let mut state = self.state.lock();
            state.is_closed = true;
            self.bytes.store(0, Ordering::SeqCst);
            std::mem::take(&mut state.requests)
        };
        drop(requests);
    }

    /// Whether all are to be tried, though the view has not changed.
    pub(super) fn take_tick(&self) -> bool {
        self.ticked.swap(false, Ordering::SeqCst)
    }

    /// Has the connection woken now and then, for as long as something waits.
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
            // Whatever came in between is looked at, and begins a new one.
            held.link.outbox.poke();
        });
    }
}

impl Turn {
    /// How long the request has been there, and its turn as of now.
    pub(super) fn renewed(self, now: Instant) -> (Duration, Turn) {
        (now.saturating_duration_since(self.begun), Turn { begun: now, ..self })
    }
}

impl Again {
    /// Whether the request may be made again after an error of this kind.
    pub(crate) fn may_follow(&self, kind: ErrorKind) -> bool {
        kind == ErrorKind::NotLeader || kind == ErrorKind::Indeterminate && may_be_sent_again(self.id)
    }

    /// Whether it may be made again after what another member has answered.
    pub(super) fn may_follow_answer(&self, answer: &Message<'_>) -> bool {
        let code = |kind: ErrorKind| kind.facts().hazelcast_code;
        answer.id() == MessageId::ERROR
            && answer.decode::<ErrorMessage<'_>>().ok().and_then(|error| Some(error.holders.first()?.code)).is_some_and(
                |found| {
                    // A member that is about to go takes nothing on any more.
                    [ErrorKind::NotLeader, ErrorKind::NotActive].map(code).contains(&found)
                        || found == code(ErrorKind::Indeterminate) && may_be_sent_again(self.id)
                },
            )
    }

    /// Has it wait; if it has waited long enough, the client is told of the failure.
    pub(crate) fn fail(self, failure: &Failure) {
        let mut bytes = Vec::new();
        failure.encode(self.correlation, &mut bytes);
        let _waits = self.hold(bytes);
    }

    /// How many entries tries before this one have taken out of the map that it empties.
    pub(super) fn emptied_before(&self) -> usize {
        self.turn.emptied
    }

    /// As [`Again::hold`], of a request that has taken out so many entries up to now.
    pub(super) fn hold_having_emptied(mut self, failure: Vec<u8>, emptied: usize) -> bool {
        self.turn.emptied = emptied;
        self.hold(failure)
    }

    /// As [`Again::fail`], for an error as a message; whether it waits. Not to be called under the lock of an outbox.
    pub(super) fn hold(mut self, failure: Vec<u8>) -> bool {
        let now = Instant::now();
        self.turn.until.get_or_insert(now + self.held.hold_max);
        self.failure = failure;
        if self.is_late(now) {
            self.give_up();
            return false;
        }
        let held = self.held.clone();
        held.push(self);
        held.link.outbox.poke();
        true
    }

    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.turn.until.is_some_and(|until| until <= now)
    }

    /// Tells the client why it was not made.
    pub(super) fn give_up(self) {
        self.held.link.outbox.append_answer(|out| out.extend_from_slice(&self.failure));
    }
}
