//! The memory that a statement holds, as the allocator counts it
//! ([`filbert_grid::allocation`]).
//!
//! Operators reserve memory for the rows that they keep. Plans, rows on their way between
//! operators, and values that aggregates hand over to each other are not reserved. They are
//! measured: the tasks of a statement note what they have allocated and freed while they were
//! polled. A statement that holds too much ends at the next check ([`crate::ending`]).
//!
//! Memory that a statement hands over to somebody else must be noted ([`Measured::hand_over`]),
//! because its release is not seen here.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use filbert_grid::query::SqlError;

use crate::error::{NOT_ENOUGH_MEMORY, memory};

/// The measured memory of all statements of an engine, and its limits in bytes.
#[derive(Debug)]
pub struct MeasuredTotal {
    held: AtomicIsize,
    of_one_max: isize,
    of_all_max: isize,
}

impl MeasuredTotal {
    /// Limits for one statement, and for all together.
    pub fn new(of_one_max: usize, of_all_max: usize) -> Arc<MeasuredTotal> {
        let signed = |bytes: usize| isize::try_from(bytes).unwrap_or(isize::MAX);
        Arc::new(MeasuredTotal {
            held: AtomicIsize::new(0),
            of_one_max: signed(of_one_max),
            of_all_max: signed(of_all_max),
        })
    }

    /// The memory that all statements hold, in bytes.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed).try_into().unwrap_or(0)
    }
}

/// The measured memory of one statement.
#[derive(Debug)]
pub struct Measured {
    /// Negative if the statement has freed memory that others have allocated.
    held: AtomicIsize,
    total: Arc<MeasuredTotal>,
}

impl Measured {
    /// A statement that begins.
    pub fn new(total: Arc<MeasuredTotal>) -> Measured {
        Measured { held: AtomicIsize::new(0), total }
    }

    /// The bytes that the statement holds; 0 if it has freed more than it has allocated.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed).try_into().unwrap_or(0)
    }

    /// Notes allocated bytes, or freed ones as a negative number.
    pub(crate) fn note(&self, bytes: isize) {
        if bytes != 0 {
            let before = self.held.fetch_add(bytes, Ordering::Relaxed);
            self.follow(before, before.saturating_add(bytes));
        }
    }

    /// Notes that another owner will free so many bytes.
    pub fn hand_over(&self, bytes: usize) {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        // Shared buffers may count in several batches, and in maps. A statement never has room for
        // more than its limit because of them.
        let left = |held: isize| held.saturating_sub(bytes).max(held.min(0));
        let before = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| Some(left(held)));
        if let Ok(before) = before {
            self.follow(before, left(before));
        }
    }

    /// Statements that hold less than nothing give no room to others.
    fn follow(&self, before: isize, after: isize) {
        let change = after.max(0) - before.max(0);
        if change != 0 {
            self.total.held.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// Checks the limits of the statement and of all statements. Beyond the latter, the statements
    /// end that hold more than half of what one may hold.
    ///
    /// # Errors
    /// 53200: the statement holds too much.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        let (held, all) = (self.held.load(Ordering::Relaxed), self.total.held.load(Ordering::Relaxed));
        let (of_one_max, of_all_max) = (self.total.of_one_max, self.total.of_all_max);
        let text = if held > of_one_max {
            format!("the statement holds {held} bytes, at most {of_one_max} are allowed; see query_memory_bytes_max")
        } else if all > of_all_max && held > of_one_max / 2 {
            format!(
                "all statements together hold {all} bytes, at most {of_all_max} are allowed, and this one holds {held}; \
                 see queries_memory_bytes_max"
            )
        } else {
            return Ok(());
        };
        Err(memory(format!("{NOT_ENOUGH_MEMORY}: {text}")))
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.follow(self.held.load(Ordering::Relaxed), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_holds_too_much_is_refused_until_it_has_freed_it() {
        let total = MeasuredTotal::new(1_000, 10_000);
        let statement = Measured::new(total.clone());
        statement.note(1_000);
        assert!(statement.check().is_ok());
        statement.note(1);
        assert_eq!(statement.check().unwrap_err().sqlstate(), "53200");
        statement.note(-500);
        assert!(statement.check().is_ok());
        assert_eq!(total.held(), 501);
        drop(statement);
        assert_eq!(total.held(), 0);
    }

    #[test]
    fn beyond_the_limit_of_all_the_large_statements_end() {
        let total = MeasuredTotal::new(1_000, 2_000);
        let statements = [900, 900, 300].map(|bytes| {
            let statement = Measured::new(total.clone());
            statement.note(bytes);
            statement
        });
        let ends = statements.each_ref().map(|statement| statement.check().is_err());
        assert_eq!(ends, [true, true, false]);
    }

    #[test]
    fn memory_of_others_gives_no_room() {
        let total = MeasuredTotal::new(1_000, 10_000);
        let (first, second) = (Measured::new(total.clone()), Measured::new(total.clone()));
        first.note(-5_000);
        second.note(700);
        assert_eq!(total.held(), 700);
        // Rows that mostly belong to a map.
        second.hand_over(5_000);
        assert_eq!(total.held(), 0);
        second.note(1_001);
        assert!(second.check().is_err());
        drop((first, second));
        assert_eq!(total.held(), 0);
    }
}
