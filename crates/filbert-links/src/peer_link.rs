//! The link to one member for one kind of requests: its outstanding calls, and its connection, if
//! there is one.
//!
//! A link is idle until a call wants a connection, and again after the connection has broken or
//! could not be made. It does not know how connections are made: the caller takes care of that.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use filbert_cluster::MemberId;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::queue::Queue;
use crate::wire::Frame;
use crate::{Address, Channel, FrameError, Kind, LinkError, LinkSettings, Service};

/// The minimum interval between two searches for abandoned calls, when there are too many calls.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// The target of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A member, at its address in the address book.
    Member(MemberId),
    /// The member at an address.
    Address(Address),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Connecting,
    Connected,
}

type Answer = Result<Bytes, LinkError>;

/// A request that was sent, or waits for a connection.
pub(crate) struct Sent {
    pub(crate) answer: oneshot::Receiver<Answer>,
    /// Whether the link was idle, and now needs a connection. The caller has to start one, or to
    /// report to the link that there is none.
    pub(crate) needs_connection: bool,
}

struct State {
    phase: Phase,
    /// Whether the link was cut for good.
    cut: bool,
    /// Whether the peer knows this member's id.
    peer_knows_id: bool,
    /// The waiters of outstanding calls. Abandoned calls stay, because they show whether the peer
    /// answers.
    calls: HashMap<u64, oneshot::Sender<Answer>>,
    next_number: u64,
    retry_at: Option<Instant>,
    backoff: Duration,
    /// Whether the connection has brought an answer.
    has_served: bool,
    connections: u64,
    last_received: Instant,
    waiting_since: Instant,
    swept: Instant,
    error: Option<LinkError>,
}

pub(crate) struct PeerLink {
    pub(crate) target: Target,
    pub(crate) kind: Kind,
    pub(crate) queue: Queue,
    /// Notified when the connection is to end.
    pub(crate) cutting: Notify,
    state: Mutex<State>,
}

impl PeerLink {
    pub(crate) fn new(target: Target, kind: Kind, service: &Arc<dyn Service>) -> Self {
        let now = Instant::now();
        let state = State {
            phase: Phase::Idle,
            cut: false,
            peer_knows_id: false,
            calls: HashMap::new(),
            next_number: 1,
            retry_at: None,
            backoff: Duration::ZERO,
            has_served: false,
            connections: 0,
            last_received: now,
            waiting_since: now,
            swept: now,
            error: None,
        };
        PeerLink { target, kind, queue: Queue::new(service), cutting: Notify::new(), state: Mutex::new(state) }
    }

    /// Sends a request. It is queued until there is a connection.
    pub(crate) fn call(&self, settings: &LinkSettings, channel: Channel, request: Bytes) -> Result<Sent, LinkError> {
        let (bytes, bytes_max) = (request.len(), settings.frame_bytes_max);
        if bytes > bytes_max {
            return Err(LinkError::TooLong { bytes, bytes_max });
        }
        let mut state = self.state.lock();
        let now = Instant::now();
        if state.cut {
            return Err(LinkError::Stopped);
        }
        if state.retry_at.is_some_and(|retry_at| now < retry_at) {
            return Err(LinkError::BackOff);
        }
        if state.calls.len() >= settings.calls_max && now - state.swept >= SWEEP_EVERY {
            state.swept = now;
            state.calls.retain(|_, sender| !sender.is_closed());
        }
        if state.calls.len() >= settings.calls_max {
            return Err(LinkError::Overloaded);
        }
        let number = state.next_number;
        // Under the lock, so that the queue has the order of the numbers.
        if !self.queue.push(Frame::Request { channel, number, request }, settings.queue_bytes_max) {
            return Err(LinkError::Overloaded);
        }
        state.next_number += 1;
        if state.calls.is_empty() {
            state.waiting_since = now;
        }
        let (sender, answer) = oneshot::channel();
        state.calls.insert(number, sender);
        let needs_connection = state.phase == Phase::Idle;
        if needs_connection {
            state.phase = Phase::Connecting;
        }
        Ok(Sent { answer, needs_connection })
    }

    /// Records a new connection. `peer_knows_id` is whether the hello contained this member's id.
    /// Returns the number of earlier connections.
    pub(crate) fn record_connected(&self, peer_knows_id: bool, member: Option<MemberId>, bytes_max: usize) -> u64 {
        let mut state = self.state.lock();
        let now = Instant::now();
        state.phase = Phase::Connected;
        (state.peer_knows_id, state.has_served, state.error) = (peer_knows_id, false, None);
        (state.last_received, state.waiting_since) = (now, now);
        state.connections += 1;
        let before = state.connections - 1;
        drop(state);
        if let Some(member) = member {
            self.send_id(member, bytes_max);
        }
        before
    }

    /// Sends this member's id to the peer, if the peer does not know it.
    pub(crate) fn send_id(&self, member: MemberId, bytes_max: usize) {
        let mut state = self.state.lock();
        if state.phase == Phase::Connected && !state.peer_knows_id {
            // Without room for it now, the connection is made again.
            state.peer_knows_id = self.queue.push(Frame::Member(member), bytes_max);
            if !state.peer_knows_id {
                self.cutting.notify_one();
            }
        }
    }

    /// Handles received frames.
    pub(crate) fn take(&self, frames: Vec<Frame>) -> Result<(), FrameError> {
        let mut answered = Vec::with_capacity(frames.len());
        let mut state = self.state.lock();
        state.last_received = Instant::now();
        for frame in frames {
            let (number, answer) = match frame {
                Frame::Answer { number, answer } => (number, Ok(answer)),
                Frame::Refusal { number, text } => (number, Err(LinkError::Answer(text))),
                Frame::Alive => continue,
                Frame::Request { .. } => return Err(FrameError::Unexpected("request")),
                Frame::Member(_) => return Err(FrameError::Unexpected("member id")),
            };
            if number >= state.next_number {
                return Err(FrameError::Unexpected("answer to a request that was not made"));
            }
            state.has_served = true;
            answered.extend(state.calls.remove(&number).map(|sender| (sender, answer)));
        }
        drop(state);
        for (sender, answer) in answered {
            // The waiter may have gone.
            let _gone = sender.send(answer);
        }
        Ok(())
    }

    /// Records that bytes arrived, although no whole frame.
    pub(crate) fn record_received(&self) {
        self.state.lock().last_received = Instant::now();
    }

    /// The time without received bytes while calls are outstanding.
    pub(crate) fn silence(&self) -> Duration {
        let state = self.state.lock();
        if state.calls.is_empty() { Duration::ZERO } else { state.last_received.max(state.waiting_since).elapsed() }
    }

    /// Records that the connection has ended, or could not be made.
    pub(crate) fn record_ended(&self, error: &LinkError, settings: &LinkSettings) {
        let mut state = self.state.lock();
        let was_connected = state.phase == Phase::Connected;
        state.phase = Phase::Idle;
        self.queue.clear();
        if was_connected && state.has_served {
            (state.backoff, state.retry_at) = (Duration::ZERO, None);
        } else {
            // A connection that breaks before it has brought an answer counts as a failure.
            state.backoff = settings.backoff_after(state.backoff);
            state.retry_at = Some(Instant::now() + state.backoff);
        }
        state.error = Some(error.clone());
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        for sender in calls.into_values() {
            let _gone = sender.send(Err(if was_connected { LinkError::Broken } else { error.clone() }));
        }
    }

    /// Ends the link for good.
    pub(crate) fn cut(&self) {
        let mut state = self.state.lock();
        state.cut = true;
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        self.cutting.notify_one();
        for sender in calls.into_values() {
            let _gone = sender.send(Err(LinkError::Broken));
        }
    }

    /// The reason why there is no connection.
    pub(crate) fn error(&self) -> Option<LinkError> {
        self.state.lock().error.clone()
    }
}
