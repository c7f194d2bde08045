//! The table of calls in flight on one connection.

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use filbert_wire::CorrelationId;

/// The id of a slot: its index in the table and its generation. The generation changes with each
/// use of the slot. A late response to an abandoned call therefore does not reach the next call in
/// the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId {
    index: u32,
    generation: u32,
}

impl SlotId {
    /// The correlation id of the call. Always positive.
    pub(crate) fn correlation(self) -> CorrelationId {
        CorrelationId(i64::from(self.generation) << 32 | i64::from(self.index))
    }

    fn of(correlation: CorrelationId) -> Self {
        SlotId { index: correlation.0 as u32, generation: (correlation.0 >> 32) as u32 }
    }
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The slot is free. `next` is the next free slot.
    Free { next: u32 },
    /// The response has not arrived. Holds the waker of the task that polled the call, if any.
    Waiting(Option<Waker>),
    /// The response has arrived and is not taken yet.
    Answered(Bytes),
}

/// The end of the list of free slots.
const NONE: u32 = u32::MAX;

/// The calls in flight. They are found by correlation id without hashing or allocation.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    first_free: u32,
    waiting: usize,
}

impl Default for Slots {
    fn default() -> Self {
        Self { slots: Vec::new(), first_free: NONE, waiting: 0 }
    }
}

impl Slots {
    /// The number of calls that wait for a response.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Allocates a slot for a call.
    pub(crate) fn insert(&mut self) -> SlotId {
        self.waiting += 1;
        let index = self.first_free;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            if let State::Free { next } = slot.state {
                self.first_free = next;
            }
            slot.state = State::Waiting(None);
            return SlotId { index, generation: slot.generation };
        }
        let index = self.slots.len() as u32;
        self.slots.push(Slot { generation: 1, state: State::Waiting(None) });
        SlotId { index, generation: 1 }
    }

    /// Stores a response and returns the waker of the call. A response to an abandoned call is
    /// dropped.
    pub(crate) fn answer(&mut self, correlation: CorrelationId, answer: Bytes) -> Option<Waker> {
        let id = SlotId::of(correlation);
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation)?;
        let State::Waiting(waker) = &mut slot.state else { return None };
        let waker = waker.take();
        slot.state = State::Answered(answer);
        self.waiting -= 1;
        waker
    }

    /// Returns the response to a call and frees its slot.
    pub(crate) fn poll(&mut self, id: SlotId, context: &Context<'_>) -> Poll<Bytes> {
        let Some(slot) = self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation) else {
            return Poll::Pending;
        };
        match &mut slot.state {
            State::Waiting(Some(waker)) if waker.will_wake(context.waker()) => Poll::Pending,
            State::Waiting(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            State::Answered(answer) => {
                let answer = std::mem::take(answer);
                self.free(id.index);
                Poll::Ready(answer)
            }
            State::Free { .. } => Poll::Pending,
        }
    }

    /// Frees the slot of a call that was dropped.
    pub(crate) fn abandon(&mut self, id: SlotId) {
        let Some(slot) = self.slots.get(id.index as usize).filter(|slot| slot.generation == id.generation) else {
            return;
        };
        match slot.state {
            State::Waiting(_) => self.waiting -= 1,
            State::Answered(_) => {}
            State::Free { .. } => return,
        }
        self.free(id.index);
    }

    /// Takes the wakers of all waiting calls, because they will get no response.
    pub(crate) fn take_wakers(&mut self) -> Vec<Waker> {
        let wakers = self.slots.iter_mut().filter_map(|slot| match &mut slot.state {
            State::Waiting(waker) => waker.take(),
            _ => None,
        });
        wakers.collect()
    }

    fn free(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index as usize) {
            // The generation has 31 bits, so that correlation ids are not negative. It is never 0,
            // so that no correlation id is 0.
            slot.generation = (slot.generation & 0x7fff_ffff).wrapping_add(1) & 0x7fff_ffff;
            slot.generation = slot.generation.max(1);
            slot.state = State::Free { next: self.first_free };
            self.first_free = index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(slots: &mut Slots, id: SlotId) -> Poll<Bytes> {
        slots.poll(id, &Context::from_waker(Waker::noop()))
    }

    #[test]
    fn answers_find_their_calls_in_any_order() {
        let mut slots = Slots::default();
        let (a, b) = (slots.insert(), slots.insert());
        assert!(poll(&mut slots, a).is_pending());
        slots.answer(b.correlation(), Bytes::from_static(b"b"));
        assert_eq!(poll(&mut slots, b), Poll::Ready(Bytes::from_static(b"b")));
        slots.answer(a.correlation(), Bytes::from_static(b"a"));
        assert_eq!(poll(&mut slots, a), Poll::Ready(Bytes::from_static(b"a")));
        assert_eq!(slots.waiting(), 0);
    }

    #[test]
    fn a_late_answer_does_not_reach_the_next_call_in_the_same_place() {
        let mut slots = Slots::default();
        let abandoned = slots.insert();
        slots.abandon(abandoned);
        let next = slots.insert();
        assert_eq!(next.index, abandoned.index);
        slots.answer(abandoned.correlation(), Bytes::from_static(b"late"));
        assert!(poll(&mut slots, next).is_pending());
        assert_eq!(slots.waiting(), 1);
    }

    #[test]
    fn correlation_ids_are_positive_and_differ() {
        let mut slots = Slots::default();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 {
            let id = slots.insert();
            assert!(id.correlation().0 > 0 && seen.insert(id.correlation()));
            slots.abandon(id);
        }
    }

    #[test]
    fn an_answer_nobody_asked_for_is_dropped() {
        let mut slots = Slots::default();
        for correlation in [0, -1, 7, i64::MAX, i64::MIN] {
            assert!(slots.answer(CorrelationId(correlation), Bytes::new()).is_none());
        }
        let id = slots.insert();
        slots.answer(id.correlation(), Bytes::from_static(b"first"));
        slots.answer(id.correlation(), Bytes::from_static(b"second"));
        assert_eq!(poll(&mut slots, id), Poll::Ready(Bytes::from_static(b"first")));
    }
}
