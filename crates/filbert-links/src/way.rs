//! The way to one member for one kind of requests: calls that are not answered yet, and the connection, if there is one.
//!
//! It is idle until a call wants a connection, and again when that has broken or could not be made.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use filbert_cluster::MemberId;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::queue::Queue;
use crate::shared::Shared;
use crate::wire::Frame;
use crate::{Address, Channel, FrameError, Kind, LinkError, dial};

/// How often calls that nobody waits for any more are looked for, when there are too many.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// Where a way leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To where the book says that the member is.
    Member(MemberId),
    /// To whoever is there.
    Address(Address),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Connecting,
    Connected,
}

type Answer = Result<Bytes, LinkError>;

struct State {
    phase: Phase,
    /// For good.
    cut: bool,
    /// Whether the other side knows this member's id.
    told: bool,
    /// Those that nobody waits for any more stay, as they show whether the other side answers.
    calls: HashMap<u64, oneshot::Sender<Answer>>,
    next_number: u64,
    retry_at: Option<Instant>,
    backoff: Duration,
    /// Whether the connection has brought an answer.
    has_served: bool,
    connections: u64,
    heard: Instant,
    waiting_since: Instant,
    swept: Instant,
    error: Option<LinkError>,
}

pub(crate) struct Way {
    pub(crate) target: Target,
    pub(crate) kind: Kind,
    pub(crate) queue: Queue,
    /// The connection is to end.
    pub(crate) cutting: Notify,
    state: Mutex<State>,
}

impl Way {
    pub(crate) fn new(target: Target, kind: Kind) -> Self {
        let now = Instant::now();
        let state = State {
            phase: Phase::Idle,
            cut: false,
            told: false,
            calls: HashMap::new(),
            next_number: 1,
            retry_at: None,
            backoff: Duration::ZERO,
            has_served: false,
            connections: 0,
            heard: now,
            waiting_since: now,
            swept: now,
            error: None,
        };
        Way { target, kind, queue: Queue::default(), cutting: Notify::new(), state: Mutex::new(state) }
    }

    /// Sends a request, or has it sent when there is a connection.
    pub(crate) fn call(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        channel: Channel,
        request: Bytes,
    ) -> Result<oneshot::Receiver<Answer>, LinkError> {
        let settings = &shared.settings;
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
        let is_idle = state.phase == Phase::Idle;
        if is_idle {
            state.phase = Phase::Connecting;
        }
        // A runtime that is going down drops the task here, which tells this way of its end.
        drop(state);
        if is_idle {
            shared.spawn(dial::run(Arc::clone(self), Arc::clone(shared)));
        }
        Ok(answer)
    }

    /// A connection was made; `told` says whether this member's id was in its hello. Returns how many there were before it.
    pub(crate) fn connected(&self, told: bool, member: Option<MemberId>, bytes_max: usize) -> u64 {
        let mut state = self.state.lock();
        let now = Instant::now();
        state.phase = Phase::Connected;
        (state.told, state.has_served, state.error) = (told, false, None);
        (state.heard, state.waiting_since) = (now, now);
        state.connections += 1;
        let before = state.connections - 1;
        drop(state);
        if let Some(member) = member {
            self.tell(member, bytes_max);
        }
        before
    }

    /// Tells the other side this member's id, if it does not know it.
    pub(crate) fn tell(&self, member: MemberId, bytes_max: usize) {
        let mut state = self.state.lock();
        if state.phase == Phase::Connected && !state.told {
            // If there is no room for it now, the connection is made anew.
            state.told = self.queue.push(Frame::Member(member), bytes_max);
            if !state.told {
                self.cutting.notify_one();
            }
        }
    }

    /// Frames came.
    pub(crate) fn take(&self, frames: Vec<Frame>) -> Result<(), FrameError> {
        let mut answered = Vec::with_capacity(frames.len());
        let mut state = self.state.lock();
        state.heard = Instant::now();
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
            // Who asked may have stopped waiting.
            let _gone = sender.send(answer);
        }
        Ok(())
    }

    /// Bytes came, though no whole frame.
    pub(crate) fn hear(&self) {
        self.state.lock().heard = Instant::now();
    }

    /// For how long nothing has come although answers are awaited.
    pub(crate) fn silence(&self) -> Duration {
        let state = self.state.lock();
        if state.calls.is_empty() { Duration::ZERO } else { state.heard.max(state.waiting_since).elapsed() }
    }

    /// There is no connection any more, or none was made.
    pub(crate) fn ended(&self, error: &LinkError, shared: &Shared) {
        let mut state = self.state.lock();
        let was_connected = state.phase == Phase::Connected;
        state.phase = Phase::Idle;
        self.queue.clear();
        if was_connected && state.has_served {
            (state.backoff, state.retry_at) = (Duration::ZERO, None);
        } else {
            // A connection that breaks before it has served for anything is like none.
            state.backoff = shared.settings.backoff_after(state.backoff);
            state.retry_at = Some(Instant::now() + state.backoff);
        }
        state.error = Some(error.clone());
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        for sender in calls.into_values() {
            let _gone = sender.send(Err(if was_connected { LinkError::Broken } else { error.clone() }));
        }
    }

    /// Ends it for good.
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

    /// Why there is no connection.
    pub(crate) fn error(&self) -> Option<LinkError> {
        self.state.lock().error.clone()
    }
}
