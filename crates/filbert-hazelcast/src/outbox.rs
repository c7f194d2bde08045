//! What other threads have to say to a client: events, and replies to requests that waited.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    task::Waker,
};

use filbert_grid::{MemoryBudget, Reservation};
use parking_lot::Mutex;

use crate::replies::Replies;

/// Why the door ends a connection from outside of its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The member stops.
    Shutdown,
    /// Nothing came for longer than the heartbeat timeout.
    Silent,
    /// No authentication came in time.
    Unauthenticated,
    /// More events wait than the limit allows.
    Overflow,
    /// Events wait, and there is no room for more.
    Full,
    /// The connection was to close and its client does not read: give up.
    Abort,
}

/// A buffer that any thread appends messages to and the connection's task empties.
///
/// Appending never blocks for longer than another append. The task looks at one flag per turn and locks only when
/// there is something.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Whether there is something for the task: bytes, or an end.
    filled: AtomicBool,
    state: Mutex<State>,
    bytes_max: usize,
    budget: MemoryBudget,
}

#[derive(Debug)]
struct State {
    /// That of events, if they are many.
    room: Reservation,
    waiting: Replies,
    /// How many bytes of them are events.
    event_bytes: usize,
    /// How many are replies, which a client asked for and which the limit of events is not about.
    reply_bytes: usize,
    waker: Option<Waker>,
    end: Option<End>,
}

impl Outbox {
    /// For at most `bytes_max` bytes of events, for which there is room in the budget; that of replies is `replies`.
    pub(crate) fn new(bytes_max: usize, budget: &MemoryBudget, replies: &MemoryBudget) -> Self {
        let waiting = Replies::new(replies);
        let state = State { room: budget.empty(), waiting, event_bytes: 0, reply_bytes: 0, waker: None, end: None };
        Self { filled: AtomicBool::new(false), state: Mutex::new(state), bytes_max, budget: budget.clone() }
    }

    /// Appends what `encode` writes: whole messages. Beyond the limit everything is dropped and the connection ends.
    pub(crate) fn append(&self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return;
        }
        let before = state.waiting.len();
        encode(&mut state.waiting);
        state.event_bytes += state.waiting.len().saturating_sub(before);
        let events = state.event_bytes;
        let end = if events > self.bytes_max {
            Some(End::Overflow)
        } else if state.room.follow(2 * events).is_err() {
            // A buffer has up to twice the bytes that are in it.
            Some(End::Full)
        } else {
            None
        };
        if end.is_some() {
            state.waiting.clear_all();
            (state.event_bytes, state.reply_bytes) = (0, 0);
            state.room.shrink(0);
            state.end = end;
            self.wake_regardless(&state);
        }
        self.wake(&state);
    }

    /// Appends what `encode` writes: the reply to a request that was taken, whose number is bounded by what may wait or be on its way. It
    /// is not held against the limit of events.
    pub(crate) fn append_answer(&self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state.lock();
        // While the member stops, what was taken is still answered.
        if state.end.is_some_and(|end| end != End::Shutdown) {
            return;
        }
        let before = state.waiting.len();
        encode(&mut state.waiting);
        state.reply_bytes += state.waiting.len().saturating_sub(before);
        self.wake(&state);
    }

    /// Appends a reply that was made elsewhere, unless that makes more than `reply_bytes_max` bytes of such replies wait:
    /// then it is false, and nothing has happened. A reply that is alone always has room.
    pub(crate) fn append_reply(&self, mut reply: Replies, reply_bytes_max: usize) -> bool {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return true;
        }
        if state.reply_bytes > 0 && state.reply_bytes.saturating_add(reply.bytes()) > reply_bytes_max {
            return false;
        }
        state.reply_bytes += reply.bytes();
        state.waiting.append_all(&mut reply);
        self.wake(&state);
        true
    }

    /// Ends the connection. The first reason counts, but [`End::Abort`] overrules any.
    pub(crate) fn end(&self, end: End) {
        let mut state = self.state.lock();
        if state.end.is_none() || end == End::Abort {
            state.end = Some(end);
        }
        self.wake_regardless(&state);
    }

    /// Wakes the task even if it knows that there is something: it may be waiting for its client to read.
    fn wake_regardless(&self, state: &State) {
        self.filled.store(true, Ordering::Release);
        if let Some(waker) = &state.waker {
            waker.wake_by_ref();
        }
    }

    /// Has the task look at what waits within its session.
    pub(crate) fn poke(&self) {
        let state = self.state.lock();
        self.wake(&state);
    }

    fn wake(&self, state: &State) {
        if !self.filled.swap(true, Ordering::AcqRel)
            && let Some(waker) = &state.waker
        {
            waker.wake_by_ref();
        }
    }

    /// Whom to wake from now on.
    pub(crate) fn register(&self, waker: &Waker) {
        self.state.lock().waker = Some(waker.clone());
    }

    /// Whether [`Outbox::collect`] would find something.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Moves what waits behind `out`, and tells how the connection ends if it does. The room of events is to be held until they are
    /// written.
    pub(crate) fn collect(&self, out: &mut Replies) -> (Option<End>, Option<Reservation>) {
        let mut state = self.state.lock();
        // Within the lock: whoever appends later raises the flag again.
        self.filled.store(false, Ordering::Release);
        (state.event_bytes, state.reply_bytes) = (0, 0);
        out.append_all(&mut state.waiting);
        let has_room = state.room.bytes() > 0;
        let room = has_room.then(|| std::mem::replace(&mut state.room, self.budget.empty()));
        (state.end, room)
    }

    /// How the connection ends, if it does; the bytes stay.
    pub(crate) fn peek_end(&self) -> Option<End> {
        self.state.lock().end
    }

    /// Bytes of replies that wait.
    pub(crate) fn reply_bytes(&self) -> usize {
        self.state.lock().reply_bytes
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.state.lock().waiting.held_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(bytes_max: usize) -> Outbox {
        Outbox::new(bytes_max, &MemoryBudget::new(1 << 20, "max"), &MemoryBudget::new(1 << 20, "max"))
    }

    fn replies(bytes: &[u8]) -> Replies {
        Replies::whole(bytes.to_vec(), &MemoryBudget::new(1 << 20, "max"))
    }

    #[test]
    fn events_that_nobody_reads_have_room_until_they_are_written() {
        let budget = MemoryBudget::new(100_000, "max");
        let [slow, quick] = [(); 2].map(|()| Outbox::new(1 << 20, &budget, &budget));
        slow.append(|out| out.extend_from_slice(&[1; 30_000]));
        let mut out = replies(b"");
        let (end, room) = slow.collect(&mut out);
        assert_eq!((end, budget.used()), (None, 60_000), "they are not written yet");
        slow.append(|out| out.extend_from_slice(&[1; 30_000]));
        assert_eq!(slow.peek_end(), Some(End::Full));
        // One that is read in time has few.
        quick.append(|out| out.extend_from_slice(&[1; 8_000]));
        assert_eq!(quick.peek_end(), None);
        drop(room);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_appended_is_collected_in_order() {
        let outbox = outbox(100);
        outbox.append(|out| out.extend_from_slice(b"one"));
        outbox.append(|out| out.extend_from_slice(b"two"));
        assert!(outbox.is_filled());
        let mut out = replies(b"zero");
        assert_eq!(outbox.collect(&mut out).0, None);
        assert_eq!(&out[..], b"zeroonetwo");
        assert!(!outbox.is_filled());
    }

    #[test]
    fn replies_have_a_limit_of_their_own() {
        let outbox = outbox(10);
        assert!(outbox.append_reply(replies(&[1; 100]), 50));
        assert!(!outbox.append_reply(replies(&[2; 1]), 50));
        outbox.append(|out| out.extend_from_slice(&[3; 10]));
        let mut out = replies(b"");
        assert_eq!(outbox.collect(&mut out).0, None);
        assert_eq!(out.bytes(), 110);
        assert!(outbox.append_reply(replies(&[2; 1]), 50));
    }

    #[test]
    fn an_answer_may_be_larger_than_what_events_may_take() {
        let outbox = outbox(10);
        outbox.append_answer(|out| out.extend_from_slice(&[1; 100]));
        outbox.append(|out| out.extend_from_slice(&[2; 10]));
        let mut out = replies(b"");
        assert_eq!(outbox.collect(&mut out).0, None);
        assert_eq!(out.bytes(), 110);
        outbox.append_answer(|out| out.extend_from_slice(&[3; 100]));
        outbox.append(|out| out.extend_from_slice(&[4; 11]));
        assert_eq!(outbox.peek_end(), Some(End::Overflow));
    }

    #[test]
    fn more_than_the_limit_ends_the_connection_and_frees_the_bytes() {
        let outbox = outbox(10);
        outbox.append(|out| out.extend_from_slice(&[0; 11]));
        outbox.append(|out| out.extend_from_slice(&[0; 11]));
        let mut out = replies(b"");
        assert_eq!(outbox.collect(&mut out).0, Some(End::Overflow));
        assert!(out.is_empty());
        assert_eq!(outbox.bytes(), 0);
    }
}
