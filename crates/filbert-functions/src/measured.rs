//! The memory that a statement holds, as the allocator counts it
//! ([`filbert_grid::allocation`]).
//!
//! Operators reserve memory for the rows that they keep. Plans, rows in transit between operators,
//! and values that aggregates pass to each other are not reserved. They are measured: each task of
//! a statement records the bytes that it has allocated and freed during a poll. A statement that
//! holds too much ends at the next check ([`crate::ending`]).
//!
//! Memory that a statement passes to another owner must be recorded ([`Measured::hand_over`]),
//! because its release is not measured here.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use filbert_grid::MemberMemory;
use filbert_grid::query::SqlError;

use crate::error::{NOT_ENOUGH_MEMORY, memory};

/// The number of statements of an engine, and the limits of their memory in bytes. The memory of
/// all statements counts in the account of the member.
#[derive(Debug)]
pub struct MeasuredTotal {
    statements: AtomicUsize,
    of_one_max: usize,
    of_all_max: usize,
    member: Arc<MemberMemory>,
}

impl MeasuredTotal {
    /// Limits for one statement, and for all together. All together never hold more than the
    /// member's memory has left for them.
    pub fn new(of_one_max: usize, of_all_max: usize, member: Arc<MemberMemory>) -> Arc<MeasuredTotal> {
        Arc::new(MeasuredTotal { statements: AtomicUsize::new(0), of_one_max, of_all_max, member })
    }

    /// The number of bytes at which a statement ends if all statements together hold too much. It
    /// is half of the limit of one statement, and decreases with the excess over the limit of all.
    /// From an excess of an eighth on, it is the mean of all statements: at least one statement
    /// always holds as much. Of equal statements each one ends that is checked.
    fn of_one_beyond(&self, all: usize, room: usize) -> usize {
        let half = self.of_one_max.min(room) / 2;
        let mean = (all / self.statements.load(Ordering::Relaxed).max(1)).min(half);
        let (beyond, eighth) = (all.saturating_sub(room), room / 8);
        if beyond >= eighth {
            return mean;
        }
        half - ((half - mean) as u128 * beyond as u128 / eighth.max(1) as u128) as usize
    }
}

impl MeasuredTotal {
    /// Checks the limits for a statement with `held` bytes, of `all` bytes of all statements.
    fn check(&self, held: usize, all: usize, holds: &str) -> Result<(), SqlError> {
        let MeasuredTotal { of_one_max, of_all_max, member, .. } = self;
        let room = member.room_of_statements().min(*of_all_max);
        let text = if held > *of_one_max {
            format!("the statement {holds} {held} bytes, at most {of_one_max} are allowed; see query_memory_bytes_max")
        } else if all > room && held >= self.of_one_beyond(all, room) {
            let setting = if room < *of_all_max { "memory_bytes_max" } else { "queries_memory_bytes_max" };
            format!(
                "all statements together hold {all} bytes, at most {room} are allowed, and this one {holds} {held}; \
                 see {setting}"
            )
        } else {
            return Ok(());
        };
        Err(memory(format!("{NOT_ENOUGH_MEMORY}: {text}")))
    }
}

/// The measured memory of one statement.
#[derive(Debug)]
pub struct Measured {
    /// Negative if the statement has freed memory that others have allocated.
    held: AtomicIsize,
    /// The bytes that the statement is about to hold ([`Measured::ahead`]).
    expected: AtomicIsize,
    /// The bytes that count for all statements: those that it holds or is about to hold.
    counted: AtomicIsize,
    total: Arc<MeasuredTotal>,
}

impl Measured {
    /// A statement that begins.
    pub fn new(total: Arc<MeasuredTotal>) -> Measured {
        total.statements.fetch_add(1, Ordering::Relaxed);
        let (held, expected, counted) = Default::default();
        Measured { held, expected, counted, total }
    }

    /// The bytes that the statement holds; 0 if it has freed more than it has allocated.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed).try_into().unwrap_or(0)
    }

    /// Notes allocated bytes, or freed ones as a negative number.
    pub(crate) fn note(&self, bytes: isize) {
        if bytes != 0 {
            self.held.fetch_add(bytes, Ordering::Relaxed);
            self.count();
        }
    }

    /// Records that another owner will free `bytes` bytes.
    pub fn hand_over(&self, bytes: usize) {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        // Shared buffers may count in several batches, and in maps. A statement never has room for
        // more than its limit because of them.
        let left = |held: isize| held.saturating_sub(bytes).max(held.min(0));
        let _always = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| Some(left(held)));
        self.count();
    }

    /// Counts the bytes of the statement for all. Statements that hold less than nothing give no
    /// room to others. Threads of a statement may count at a time: the last of them counts what is
    /// true.
    fn count(&self) {
        loop {
            let (held, expected) = (self.held.load(Ordering::Acquire), self.expected.load(Ordering::Acquire));
            self.count_as(held.max(expected).max(0));
            let is_current = self.held.load(Ordering::Acquire) == held;
            if is_current && self.expected.load(Ordering::Acquire) == expected {
                return;
            }
        }
    }

    fn count_as(&self, bytes: isize) {
        let change = bytes.saturating_sub(self.counted.swap(bytes, Ordering::AcqRel));
        if change != 0 {
            self.total.member.note_statements(change);
        }
    }

    /// Checks the limits of the statement and of all statements. Beyond the latter, the largest
    /// statements end.
    ///
    /// # Errors
    /// 53200: the statement holds too much.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        self.total.check(self.held(), self.total.member.statements(), "holds")
    }

    /// Checks the limits for the memory that the statement holds and the `bytes` of its next step.
    /// They count for all statements until the guard is dropped. Guards of one statement must be
    /// dropped in the reverse order of their creation: planning takes them, in one task.
    ///
    /// # Errors
    /// 53200: the statement would hold too much.
    pub(crate) fn ahead(self: &Arc<Self>, bytes: usize) -> Result<Ahead, SqlError> {
        let needed = self.held().saturating_add(bytes);
        let expected = isize::try_from(needed).unwrap_or(isize::MAX);
        let before = self.expected.fetch_max(expected, Ordering::AcqRel);
        let ahead = Ahead { statement: self.clone(), before };
        self.count();
        self.total.check(needed, self.total.member.statements(), "needs")?;
        Ok(ahead)
    }
}

/// Memory that a statement is about to take.
#[derive(Debug)]
pub struct Ahead {
    statement: Arc<Measured>,
    /// The bytes that the statement was about to hold before: dropping the guard restores them.
    before: isize,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.statement.expected.store(self.before, Ordering::Release);
        self.statement.count();
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.count_as(0);
        self.total.statements.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(of_one_max: usize, of_all_max: usize) -> Arc<MeasuredTotal> {
        MeasuredTotal::new(of_one_max, of_all_max, Arc::new(MemberMemory::new(None)))
    }

    #[test]
    fn a_statement_that_holds_too_much_is_refused_until_it_has_freed_it() {
        let total = limits(1_000, 10_000);
        let statement = Measured::new(total.clone());
        statement.note(1_000);
        assert!(statement.check().is_ok());
        statement.note(1);
        assert_eq!(statement.check().unwrap_err().sqlstate(), "53200");
        statement.note(-500);
        assert!(statement.check().is_ok());
        assert_eq!(total.member.statements(), 501);
        drop(statement);
        assert_eq!(total.member.statements(), 0);
    }

    #[test]
    fn beyond_the_limit_of_all_the_large_statements_end() {
        let total = limits(1_000, 2_000);
        let statements = [900, 900, 300].map(|bytes| {
            let statement = Measured::new(total.clone());
            statement.note(bytes);
            statement
        });
        let ends = statements.each_ref().map(|statement| statement.check().is_err());
        assert_eq!(ends, [true, true, false]);
    }

    #[test]
    fn far_beyond_the_limit_of_all_equal_statements_end_too() {
        let total = limits(1_000, 2_000);
        let statements: Vec<Measured> = (0..30).map(|_| Measured::new(total.clone())).collect();
        let mut refused = 0;
        for statement in &statements {
            statement.note(100);
            if statement.check().is_err() {
                statement.note(-100);
                refused += 1;
            }
        }
        assert!((2_000..=2_300).contains(&total.member.statements()), "{} refused", refused);
    }

    #[test]
    fn far_beyond_the_limit_of_all_those_above_the_mean_end() {
        let total = limits(1_000, 10_000);
        let holding = |bytes: isize, count: usize| -> Vec<Measured> {
            let statements = (0..count).map(|_| Measured::new(total.clone()));
            statements.inspect(|statement| statement.note(bytes)).collect()
        };
        let ended = |statements: &[Measured]| statements.iter().filter(|one| one.check().is_err()).count();
        let (small, large) = (holding(90, 50), holding(150, 37));
        assert_eq!((ended(&small), ended(&large)), (0, 0), "50 bytes beyond it");
        let more = holding(150, 13);
        assert_eq!((ended(&small), ended(&large), ended(&more)), (0, 37, 13), "2,000 bytes beyond it");
        drop(more);
        assert_eq!((ended(&small), ended(&large)), (0, 0));
    }

    #[test]
    fn statements_have_what_maps_and_buffers_leave() {
        let member = Arc::new(MemberMemory::new(Some(1 << 30)));
        let total = MeasuredTotal::new(1 << 30, 1 << 30, member.clone());
        let (large, small) = (Measured::new(total.clone()), Measured::new(total));
        large.note(600 << 20);
        small.note(1_000);
        assert!(large.check().is_ok());
        member.note_plans(500 << 20);
        let error = large.check().unwrap_err();
        assert_eq!(error.sqlstate(), "53200");
        assert!(error.to_string().contains("memory_bytes_max"), "{error}");
        assert!(small.check().is_ok());
        member.note_plans(-500 << 20);
        assert!(large.check().is_ok());
        drop((large, small));
        assert_eq!(member.used(), 0);
    }

    #[test]
    fn memory_that_a_statement_is_about_to_take_counts_until_it_is_taken() {
        let total = limits(1_000, 1_200);
        let [first, second] = [(); 2].map(|()| Arc::new(Measured::new(total.clone())));
        first.note(300);
        let ahead = first.ahead(700).unwrap();
        assert_eq!(total.member.statements(), 1_000);
        first.note(600);
        assert_eq!(total.member.statements(), 1_000, "a part of it is held now");
        assert_eq!(first.ahead(701).unwrap_err().sqlstate(), "53200", "more than one statement may hold");
        let error = second.ahead(600).unwrap_err();
        assert!(error.to_string().contains("this one needs 600"), "{error}");
        assert!(second.ahead(200).is_ok());
        assert_eq!(total.member.statements(), 1_000);
        first.note(-700);
        drop(ahead);
        assert_eq!(total.member.statements(), 200);
        assert!(second.ahead(600).is_ok());
        drop((first, second));
        assert_eq!(total.member.statements(), 0);
    }

    #[test]
    fn memory_of_others_gives_no_room() {
        let total = limits(1_000, 10_000);
        let (first, second) = (Measured::new(total.clone()), Measured::new(total.clone()));
        first.note(-5_000);
        second.note(700);
        assert_eq!(total.member.statements(), 700);
        // Rows that mostly belong to a map.
        second.hand_over(5_000);
        assert_eq!(total.member.statements(), 0);
        second.note(1_001);
        assert!(second.check().is_err());
        drop((first, second));
        assert_eq!(total.member.statements(), 0);
    }
}
