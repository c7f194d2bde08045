//! The messages of other threads to a client: events, and replies to requests that waited.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    task::Waker,
};

use filbert_grid::{MemoryBudget, Reservation};
use parking_lot::Mutex;

use crate::replies::Replies;

/// The reason why the door ends a connection from outside of its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The member stops.
    Shutdown,
    /// No bytes came for longer than the heartbeat timeout.
    Silent,
    /// The client did not authenticate in time.
    Unauthenticated,
    /// The unread events exceed the limit of the connection.
    Overflow,
    /// The unread events of all connections exceed their memory budget.
    Full,
    /// The connection was closing, and its client did not read in time. The remaining replies are
    /// dropped.
    Abort,
}

/// A buffer to which any thread appends messages, and which the connection's task empties.
///
/// Appending blocks for at most the time of another append. The task checks one flag per turn, and
/// locks only if there is something.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Whether there is something for the task: bytes, or the end of the connection.
    filled: AtomicBool,
    state: Mutex<State>,
    bytes_max: usize,
    budget: MemoryBudget,
}

#[derive(Debug)]
struct State {
    /// The reservation for events, if they are many.
    room: Reservation,
    waiting: Replies,
    /// The number of bytes that are events.
    event_bytes: usize,
    /// The number of bytes that are replies. The limit of events does not apply to them, because
    /// the client has requested them.
    reply_bytes: usize,
    waker: Option<Waker>,
    end: Option<End>,
}

impl Outbox {
    /// An outbox for at most `bytes_max` bytes of events, which are reserved in `budget`. `replies`
    /// is the budget for replies.
    pub(crate) fn new(bytes_max: usize, budget: &MemoryBudget, replies: &MemoryBudget) -> Self {
        let waiting = Replies::new(replies);
        let state = State { room: budget.empty(), waiting, event_bytes: 0, reply_bytes: 0, waker: None, end: None };
        Self { filled: AtomicBool::new(false), state: Mutex::new(state), bytes_max, budget: budget.clone() }
    }

    /// Appends the bytes that `encode` writes: whole messages. Above the limit all bytes are
    /// dropped, and the connection ends.
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
            // A buffer may have a capacity of twice its length.
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

    /// Appends the bytes that `encode` writes: the reply to an accepted request. The limit of
    /// events does not apply, because the number of accepted requests that wait or are in flight is
    /// limited.
    pub(crate) fn append_answer(&self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state.lock();
        // While the member stops, accepted requests are still answered.
        if state.end.is_some_and(|end| end != End::Shutdown) {
            return;
        }
        let before = state.waiting.len();
        encode(&mut state.waiting);
        state.reply_bytes += state.waiting.len().saturating_sub(before);
        self.wake(&state);
    }

    /// Appends a reply that was built elsewhere. Returns `false`, and appends nothing, if more than
    /// `reply_bytes_max` bytes of replies would wait. A single reply always fits.
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

    /// Ends the connection. The first reason is kept, except that [`End::Abort`] replaces any
    /// other.
    pub(crate) fn end(&self, end: End) {
        let mut state = self.state.lock();
        if state.end.is_none() || end == End::Abort {
            state.end = Some(end);
        }
        self.wake_regardless(&state);
    }

    /// Wakes the task even if the flag is already set: the task may be waiting for its client to
    /// read.
    fn wake_regardless(&self, state: &State) {
        self.filled.store(true, Ordering::Release);
        if let Some(waker) = &state.waker {
            waker.wake_by_ref();
        }
    }

    /// Wakes the task, so that it checks the waiting requests of its session.
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

    /// Sets the waker for later messages.
    pub(crate) fn register(&self, waker: &Waker) {
        self.state.lock().waker = Some(waker.clone());
    }

    /// Whether [`Outbox::collect`] would find something.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Moves the waiting messages to the end of `out`. Returns the reason for the end of the
    /// connection, if it ends, and the reservation for events. The caller holds the reservation
    /// until the events are written.
    pub(crate) fn collect(&self, out: &mut Replies) -> (Option<End>, Option<Reservation>) {
        let mut state = self.state.lock();
        // Cleared under the lock: a later append sets the flag again.
        self.filled.store(false, Ordering::Release);
        (state.event_bytes, state.reply_bytes) = (0, 0);
        out.append_all(&mut state.waiting);
        let has_room = state.room.bytes() > 0;
        let room = has_room.then(|| std::mem::replace(&mut state.room, self.budget.empty()));
        (state.end, room)
    }

    /// The reason for the end of the connection, if it ends. The messages stay.
    pub(crate) fn peek_end(&self) -> Option<End> {
        self.state.lock().end
    }

    /// Bytes of waiting replies.
    pub(crate) fn reply_bytes(&self) -> usize {
        self.state.lock().reply_bytes
    }

    /// Bytes of memory held.
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
        // A client that reads in time has few unread events, which need no reservation.
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
