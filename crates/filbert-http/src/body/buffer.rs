//! A contiguous buffer for the bytes of a body. It reserves memory before it grows.

use bytes::Bytes;
use filbert_grid::Reservation;

use crate::failure::Failure;

/// The minimum capacity.
const BYTES_MIN: usize = 8 << 10;

/// The bytes of one body, and their memory reservation.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    reservation: Reservation,
    bytes_max: usize,
    /// The expected number of bytes, if it is known.
    expected: Option<usize>,
}

impl Buffer {
    /// Creates a buffer for at most `bytes_max` bytes.
    pub(super) fn new(reservation: Reservation, bytes_max: usize, expected: Option<usize>) -> Buffer {
        Buffer { bytes: Vec::new(), reservation, bytes_max, expected }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Allocates memory for all expected bytes at once. For data that arrives immediately, so that
    /// a wrong number cannot hold memory for long.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn prepare(&mut self, bytes: usize) -> Result<(), Failure> {
        self.expected = Some(bytes.min(self.bytes_max));
        self.grow(bytes.min(self.bytes_max))
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// There are too many bytes, or not enough memory.
    pub(super) fn append(&mut self, more: &[u8]) -> Result<(), Failure> {
        let needed = self.bytes.len().saturating_add(more.len());
        if needed > self.bytes_max {
            return Err(Failure::body_too_large(self.bytes_max));
        }
        if needed > self.bytes.capacity() {
            let doubled = self.bytes.capacity().saturating_mul(2).max(BYTES_MIN);
            // The announced length sets the capacity only after a quarter of it has arrived: memory
            // follows received bytes.
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
        // Old and new memory exist at the same time until the bytes are copied.
        self.reservation.grow(capacity)?;
        self.bytes.reserve_exact(capacity.saturating_sub(self.bytes.len()));
        self.reservation.shrink(capacity);
        Ok(())
    }

    /// Returns the bytes with their memory reservation.
    pub(super) fn finish(self) -> (Bytes, Reservation) {
        (self.bytes.into(), self.reservation)
    }
}

#[cfg(test)]
mod tests {
    use filbert_grid::MemoryBudget;

    use super::*;

    #[test]
    fn memory_is_reserved_first_and_at_most_four_times_the_received_bytes() {
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
