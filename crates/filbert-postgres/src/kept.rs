//! Room for what a connection keeps until its client gives it up: prepared statements, portals, what it was told of settings.
//!
//! All that one connection keeps is counted together: the first 16 KiB of it draw nothing from the member's budget, as with any other
//! buffer of a connection. What is kept has its [`Kept`] with it, so that its room goes when the last one lets go of it: a portal keeps a
//! statement that was closed.

use std::sync::Arc;

use filbert_grid::{Exhausted, MemoryBudget, Reservation};
use parking_lot::Mutex;

use crate::error::{PgError, sqlstate};

/// Counts what one connection keeps. A clone counts for the same connection.
#[derive(Clone, Debug)]
pub(crate) struct Keeper(Arc<Mutex<Counted>>);

#[derive(Debug)]
struct Counted {
    bytes: usize,
    room: Reservation,
}

impl Keeper {
    pub(crate) fn new(budget: &MemoryBudget) -> Keeper {
        Keeper(Arc::new(Mutex::new(Counted { bytes: 0, room: budget.empty() })))
    }

    /// Takes room for something of this size, before its memory.
    ///
    /// # Errors
    /// SQLSTATE 53200: there is none.
    pub(crate) fn keep(&self, bytes: usize) -> Result<Kept, Box<PgError>> {
        let mut kept = Kept { keeper: self.clone(), bytes: 0 };
        kept.resize(bytes)?;
        Ok(kept)
    }
}

/// Room of something that is kept, until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it gives the room back"]
pub(crate) struct Kept {
    keeper: Keeper,
    bytes: usize,
}

impl Kept {
    /// Takes what is missing to `bytes`, or gives back what is too much.
    ///
    /// # Errors
    /// SQLSTATE 53200: there is no room; it has what it had.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), Box<PgError>> {
        let Counted { bytes: all, room } = &mut *self.keeper.0.lock();
        let sum = (*all - self.bytes).saturating_add(bytes);
        room.follow(sum).map_err(|exhausted| refused(&exhausted))?;
        (*all, self.bytes) = (sum, bytes);
        Ok(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Less than before is never too much.
        let _ = self.resize(0);
    }
}

/// What a client is told that keeps things until there is no room, or has to do with others that do.
#[cold]
pub(crate) fn refused(exhausted: &Exhausted) -> Box<PgError> {
    PgError::new(sqlstate::OUT_OF_MEMORY, exhausted.to_string())
        .with_hint("Close prepared statements, cursors and portals that are not needed any more, or try again later.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_connection_keeps_is_counted_together_and_given_back() {
        let budget = MemoryBudget::new(100_000, "max");
        let keeper = Keeper::new(&budget);
        let few: Vec<Kept> = (0..4).map(|_| keeper.keep(4_096).unwrap()).collect();
        assert_eq!(budget.used(), 0, "the first 16 KiB of a connection");
        let mut more = keeper.keep(1).unwrap();
        assert_eq!(budget.used(), 4 * 4_096 + 1);
        more.resize(50_000).unwrap();
        let refused = keeper.keep(50_000).unwrap_err();
        assert_eq!((refused.sqlstate, refused.hint.is_some()), ("53200", true));
        assert!(more.resize(100_000).is_err());
        assert_eq!(budget.used(), 4 * 4_096 + 50_000, "a refusal leaves everything as it was");
        drop(more);
        assert_eq!(budget.used(), 0);
        drop(few);
        assert_eq!(keeper.0.lock().bytes, 0);
    }
}
