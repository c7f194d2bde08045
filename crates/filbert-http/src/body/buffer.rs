//! One piece of memory that bytes are collected in: it takes room before it grows.

use bytes::Bytes;
use filbert_grid::Reservation;

use crate::failure::Failure;

/// The least that is asked for.
const BYTES_MIN: usize = 8 << 10;

/// Bytes of one body, and the room that they have.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    room: Reservation,
    bytes_max: usize,
    /// How many there will be, if that is known.
    expected: Option<usize>,
}

impl Buffer {
    /// For at most `bytes_max` bytes.
    pub(super) fn new(room: Reservation, bytes_max: usize, expected: Option<usize>) -> Buffer {
        Buffer { bytes: Vec::new(), room, bytes_max, expected }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Makes room for all that is expected, whoever says so: for when it comes at once or never.
    ///
    /// # Errors
    /// There is no room.
    pub(super) fn prepare(&mut self, bytes: usize) -> Result<(), Failure> {
        self.expected = Some(bytes.min(self.bytes_max));
        self.grow(bytes.min(self.bytes_max))
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// There are too many, or there is no room.
    pub(super) fn append(&mut self, more: &[u8]) -> Result<(), Failure> {
        let needed = self.bytes.len().saturating_add(more.len());
        if needed > self.bytes_max {
            return Err(Failure::body_too_large(self.bytes_max));
        }
        if needed > self.bytes.capacity() {
            let doubled = self.bytes.capacity().saturating_mul(2).max(BYTES_MIN);
            // What is announced is believed when a quarter of it has come: memory follows bytes received.
            let wanted = match self.expected {
                Some(expected) if needed.saturating_mul(4) >= expected => expected,
                Some(expected) => doubled.min(expected),
                None => doubled,
            };
            self.grow(wanted.clamp(needed, self.bytes_max))?;
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    fn grow(&mut self, capacity: usize) -> Result<(), Failure> {
        // The old memory is there until all of it is in the new one.
        self.room.grow(capacity)?;
        self.bytes.reserve_exact(capacity.saturating_sub(self.bytes.len()));
        self.room.shrink(capacity);
        Ok(())
    }

    /// The bytes, with their room.
    pub(super) fn finish(self) -> (Bytes, Reservation) {
        (self.bytes.into(), self.room)
    }
}

#[cfg(test)]
mod tests {
    use filbert_grid::MemoryBudget;

    use super::*;

    #[test]
    fn room_is_taken_before_memory_and_never_more_than_four_times_what_came() {
        let budget = MemoryBudget::new(2 << 20, "max");
        let mut buffer = Buffer::new(budget.empty(), 1 << 30, Some(900_000));
        for _ in 0..100 {
            buffer.append(&[7; 1_000]).unwrap();
            assert!(buffer.bytes.capacity() <= budget.used());
            assert!(budget.used() <= (4 * buffer.bytes.len()).max(BYTES_MIN));
        }
        for _ in 100..900 {
            buffer.append(&[7; 1_000]).unwrap();
        }
        assert_eq!(budget.used(), 900_000);
        let mut another = Buffer::new(budget.empty(), 1 << 30, None);
        assert!((0..1_000).any(|_| another.append(&[7; 1_000]).is_err()));
        drop((buffer, another));
        assert_eq!(budget.used(), 0);
    }
}
