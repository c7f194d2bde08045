//! Replies on their way to a client: a tail to which bytes are appended, and full pieces before it.
//!
//! ```text
//!  full: │ piece │ piece │ piece │   tail: │ bytes are appended here ──►
//!    ▲                  each piece has a reservation of the budget until it is written
//!    └─ is written to the socket first
//! ```
//!
//! A long reply is never copied to extend it: it continues in another piece, for which memory is
//! reserved in the door's share of the member's budget. Short replies need no reservation.

use std::{
    collections::VecDeque,
    ops::{Deref, DerefMut},
};

use filbert_grid::{Exhausted, MemoryBudget, Reservation};

/// The size of a piece of a long reply, and of one reservation, in bytes. A single key or value may
/// be larger.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes of replies that need no reservation: about as many as a socket accepts at once.
pub(crate) const UNCOUNTED_BYTES: usize = 64 << 10;

/// Replies in the order in which they were created. It dereferences to its tail, to which short
/// replies are appended.
#[derive(Debug)]
pub(crate) struct Replies {
    full: VecDeque<Piece>,
    full_bytes: usize,
    tail: Vec<u8>,
    /// The reservation for the tail, if it is long.
    room: Reservation,
    budget: MemoryBudget,
}

#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    /// Released with the piece; empty for short replies.
    room: Reservation,
}

/// A position in replies, see [`Replies::rollback`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    full: usize,
    tail: usize,
}

impl Deref for Replies {
    type Target = Vec<u8>;

    #[inline]
    fn deref(&self) -> &Vec<u8> {
        &self.tail
    }
}

impl DerefMut for Replies {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }
}

impl Replies {
    /// Creates an empty buffer.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        let (full, tail) = Default::default();
        Self { full, full_bytes: 0, tail, room: budget.empty(), budget: budget.clone() }
    }

    /// Replies that were built elsewhere, without a reservation.
    pub(crate) fn whole(bytes: Vec<u8>, budget: &MemoryBudget) -> Self {
        Self { tail: bytes, ..Self::new(budget) }
    }

    /// Bytes of all replies.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.full_bytes + self.tail.len()
    }

    /// Bytes of memory held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.full_bytes + self.tail.capacity()
    }

    /// The position after all replies, for a later rollback.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark { full: self.full.len(), tail: self.tail.len() }
    }

    /// The growth of the tail since `mark`, in bytes. Zero if the tail is a new piece by now,
    /// because a new piece has a reservation.
    #[inline]
    pub(crate) fn grown_since(&self, mark: Mark) -> usize {
        if self.full.len() == mark.full { self.tail.len().saturating_sub(mark.tail) } else { 0 }
    }

    /// Removes everything after the position. Nothing may have been written to the socket since
    /// then.
    pub(crate) fn rollback(&mut self, to: Mark) {
        while self.full.len() > to.full
            && let Some(Piece { bytes, room }) = self.full.pop_back()
        {
            self.full_bytes -= bytes.len();
            // The tail of that time is the last piece to be taken.
            (self.tail, self.room) = (bytes, room);
        }
        self.tail.truncate(to.tail);
    }

    /// Overwrites bytes, `behind` bytes after a position.
    pub(crate) fn patch(&mut self, at: Mark, behind: usize, with: &[u8]) {
        let bytes = self.full.get_mut(at.full).map_or(&mut self.tail, |piece| &mut piece.bytes);
        let start = at.tail + behind;
        if let Some(place) = bytes.get_mut(start..start + with.len()) {
            place.copy_from_slice(with);
        }
    }

    /// Prepares the tail for `needed` more bytes without reallocation. The reply has `so_far`
    /// bytes.
    ///
    /// # Errors
    /// There is not enough memory. Nothing is changed.
    pub(crate) fn make_room(&mut self, needed: usize, so_far: usize) -> Result<(), Exhausted> {
        if self.tail.capacity() - self.tail.len() >= needed || self.tail.len() + needed <= UNCOUNTED_BYTES {
            return Ok(());
        }
        let capacity = needed.max(so_far.clamp(UNCOUNTED_BYTES, PIECE_BYTES));
        let room = self.budget.reserve(capacity)?;
        self.seal();
        (self.tail, self.room) = (Vec::with_capacity(capacity), room);
        Ok(())
    }

    /// Reserves memory for a tail that has become long by one reply.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn count_tail(&mut self) -> Result<(), Exhausted> {
        let counted = if self.tail.len() > UNCOUNTED_BYTES { self.tail.capacity() } else { 0 };
        self.room.grow(counted.saturating_sub(self.room.bytes()))
    }

    /// Turns the tail into a piece, unless it is empty.
    fn seal(&mut self) {
        let room = std::mem::replace(&mut self.room, self.budget.empty());
        let bytes = std::mem::take(&mut self.tail);
        if !bytes.is_empty() {
            self.full_bytes += bytes.len();
            self.full.push_back(Piece { bytes, room });
        }
    }

    /// Moves all of `other` to the end, without copying long replies.
    pub(crate) fn append_all(&mut self, other: &mut Replies) {
        if self.bytes() == 0 {
            std::mem::swap(self, other);
            other.clear_all();
            return;
        }
        if other.full.is_empty() && other.tail.len() <= UNCOUNTED_BYTES {
            self.tail.append(&mut other.tail);
        } else {
            self.seal();
            self.full_bytes += std::mem::take(&mut other.full_bytes);
            self.full.append(&mut other.full);
            std::mem::swap(&mut self.tail, &mut other.tail);
            std::mem::swap(&mut self.room, &mut other.room);
        }
        other.clear_all();
    }

    /// Drops all replies and their memory.
    pub(crate) fn clear_all(&mut self) {
        self.full.clear();
        (self.full_bytes, self.tail) = (0, Vec::new());
        self.room.shrink(0);
    }

    /// The bytes to be written to the socket first.
    #[inline]
    pub(crate) fn front(&self) -> &[u8] {
        self.full.front().map_or(&self.tail, |piece| &piece.bytes)
    }

    /// Whether there are pieces before the tail.
    #[inline]
    pub(crate) fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Drops the first piece, which is written, and releases its reservation.
    pub(crate) fn drop_front(&mut self) {
        if let Some(piece) = self.full.pop_front() {
            self.full_bytes -= piece.bytes.len();
        }
    }

    /// Takes the buffer of a tail that is written.
    #[inline]
    pub(crate) fn take_written(&mut self) -> Vec<u8> {
        self.room.shrink(0);
        std::mem::take(&mut self.tail)
    }

    /// Removes the replies from a position on, and returns them as one list of bytes.
    pub(crate) fn split_off_all(&mut self, from: Mark) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in self.full.range(from.full.min(self.full.len())..) {
            out.extend_from_slice(&piece.bytes);
        }
        out.extend_from_slice(&self.tail);
        out.drain(..from.tail.min(out.len()));
        self.rollback(from);
        out
    }

    /// All replies as one list of bytes, without a reservation.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        match self.full.is_empty() {
            true => self.tail,
            false => self.split_off_all(Mark { full: 0, tail: 0 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends an item of `bytes` bytes.
    fn push(replies: &mut Replies, byte: u8, bytes: usize) -> Result<(), Exhausted> {
        let so_far = replies.bytes();
        replies.make_room(bytes, so_far)?;
        replies.extend(std::iter::repeat_n(byte, bytes));
        Ok(())
    }

    fn written(replies: &mut Replies) -> Vec<u8> {
        let mut out = Vec::new();
        while replies.has_full() {
            out.extend_from_slice(replies.front());
            replies.drop_front();
        }
        out.extend_from_slice(replies.front());
        replies.take_written();
        out
    }

    #[test]
    fn long_answers_have_room_until_they_are_written_and_short_ones_need_none() {
        let budget = MemoryBudget::new(8 << 20, "max");
        let mut replies = Replies::new(&budget);
        push(&mut replies, 1, UNCOUNTED_BYTES).unwrap();
        assert_eq!(budget.used(), 0);
        for _ in 0..40 {
            push(&mut replies, 2, 100_000).unwrap();
        }
        let used = budget.used();
        assert!((4_000_000..6 << 20).contains(&used), "{used}");
        replies.drop_front();
        let first = replies.front().len();
        replies.drop_front();
        assert!(budget.used() <= used - first);
        assert_eq!(written(&mut replies).len() + first, 40 * 100_000);
        assert_eq!((budget.used(), replies.bytes(), replies.held_bytes()), (0, 0, 0));
    }

    #[test]
    fn what_is_taken_back_gives_its_room_back() {
        let budget = MemoryBudget::new(2 << 20, "max");
        let mut replies = Replies::new(&budget);
        replies.extend_from_slice(b"before");
        let mark = replies.mark();
        replies.extend_from_slice(b"begin of a reply");
        let refused = loop {
            if let Err(exhausted) = push(&mut replies, 3, 50_000) {
                break exhausted;
            }
        };
        assert_eq!(refused.setting, "max");
        replies.patch(mark, 0, b"BEGIN");
        replies.rollback(mark);
        assert_eq!((replies.bytes(), budget.used()), (6, 0));
        assert_eq!(written(&mut replies), b"before");
    }

    #[test]
    fn replies_stay_in_order_however_they_come_together() {
        let budget = MemoryBudget::new(8 << 20, "max");
        let mut replies = Replies::new(&budget);
        let mut expected = Vec::new();
        for (byte, bytes) in [(1, 10), (2, 300_000), (3, 20), (4, 70_000), (5, 1)] {
            let mut other = Replies::new(&budget);
            for part in [bytes / 2, bytes - bytes / 2] {
                push(&mut other, byte, part).unwrap();
            }
            replies.append_all(&mut other);
            assert_eq!(other.bytes(), 0);
            expected.extend(std::iter::repeat_n(byte, bytes));
        }
        assert_eq!(replies.bytes(), expected.len());
        let mark = replies.mark();
        push(&mut replies, 6, 200_000).unwrap();
        assert!(replies.split_off_all(mark) == vec![6; 200_000]);
        assert!(written(&mut replies) == expected);
        assert_eq!(budget.used(), 0);
    }
}
