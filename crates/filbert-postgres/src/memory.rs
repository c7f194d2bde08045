//! Memory reservations for objects that a connection keeps until its client releases them: prepared
//! statements, portals, and the settings of the first message.
//!
//! All objects of one connection are counted together. The first 16 KiB draw nothing from the
//! member's budget, as with any other buffer of a connection. Each object owns its [`MemoryLease`],
//! so that the memory is released with the last reference to the object: a portal keeps a statement
//! that was closed.

use std::sync::Arc;

use filbert_grid::{Exhausted, MemoryBudget, Reservation};
use parking_lot::Mutex;

use crate::error::{PgError, sqlstate};

/// Counts the memory that one connection keeps. A clone counts for the same connection.
#[derive(Clone, Debug)]
pub(crate) struct SessionMemory(Arc<Mutex<Usage>>);

#[derive(Debug)]
struct Usage {
    bytes: usize,
    reservation: Reservation,
}

impl SessionMemory {
    pub(crate) fn new(budget: &MemoryBudget) -> SessionMemory {
        SessionMemory(Arc::new(Mutex::new(Usage { bytes: 0, reservation: budget.empty() })))
    }

    /// Reserves memory for an object of this size, before the memory is allocated.
    ///
    /// # Errors
    /// SQLSTATE 53200: there is not enough memory left.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<MemoryLease, Box<PgError>> {
        let mut lease = MemoryLease { memory: self.clone(), bytes: 0 };
        lease.resize(bytes)?;
        Ok(lease)
    }
}

/// The memory reservation of an object. Dropping it releases the memory.
#[derive(Debug)]
#[must_use = "dropping it gives the room back"]
pub(crate) struct MemoryLease {
    memory: SessionMemory,
    bytes: usize,
}

impl MemoryLease {
    /// Grows or shrinks the reservation to `bytes`.
    ///
    /// # Errors
    /// SQLSTATE 53200: there is not enough memory left. The reservation is unchanged.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), Box<PgError>> {
        let Usage { bytes: all, reservation } = &mut *self.memory.0.lock();
        let sum = (*all - self.bytes).saturating_add(bytes);
        reservation.follow(sum).map_err(|exhausted| refused(&exhausted))?;
        (*all, self.bytes) = (sum, bytes);
        Ok(())
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        // Shrinking never fails.
        let _ = self.resize(0);
    }
}

/// The error of a client that keeps objects until no memory is left, or that shares the memory with
/// such clients.
#[cold]
pub(crate) fn refused(exhausted: &Exhausted) -> Box<PgError> {
    PgError::new(sqlstate::OUT_OF_MEMORY, exhausted.to_string())
        .with_hint("Close prepared statements, cursors and portals that are not needed any more, or try again later.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_one_connection_are_counted_together_and_released() {
        let budget = MemoryBudget::new(100_000, "max");
        let memory = SessionMemory::new(&budget);
        let few: Vec<MemoryLease> = (0..4).map(|_| memory.reserve(4_096).unwrap()).collect();
        assert_eq!(budget.used(), 0, "the first 16 KiB of a connection");
        let mut more = memory.reserve(1).unwrap();
        assert_eq!(budget.used(), 4 * 4_096 + 1);
        more.resize(50_000).unwrap();
        let refused = memory.reserve(50_000).unwrap_err();
        assert_eq!((refused.sqlstate, refused.hint.is_some()), ("53200", true));
        assert!(more.resize(100_000).is_err());
        assert_eq!(budget.used(), 4 * 4_096 + 50_000, "a refusal leaves everything as it was");
        drop(more);
        assert_eq!(budget.used(), 0);
        drop(few);
        assert_eq!(memory.0.lock().bytes, 0);
    }
}
