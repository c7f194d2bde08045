//! The budget of what is under way: memory of buffers that follow what clients send and ask for, beside the maps' own.
//!
//! Whoever keeps bytes because a client sent them or has not read them yet takes a [`Reservation`] before the memory, and gives it back by
//! dropping it. What does not fit is [`Exhausted`]: who asked refuses it, or reads no further. Nobody waits here, so that two who hold
//! something never wait for each other.
//!
//! A reservation costs one or two atomic additions. Buffers of less than [`UNCOUNTED_BYTES_MAX`] take none: there are as many of them as
//! there are connections, and connections are limited.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes of a buffer that one connection may keep for one purpose without a reservation: most requests fit, and the largest number of
/// connections of a door times this is some hundred megabytes.
pub const UNCOUNTED_BYTES_MAX: usize = 16 << 10;

/// Memory that is shared by all that is under way, or a share of it. A clone is the same budget.
#[derive(Clone)]
pub struct MemoryBudget(Arc<Inner>);

struct Inner {
    used: AtomicUsize,
    bytes_max: usize,
    /// The setting that says how much it is.
    setting: &'static str,
    /// How often there was no room.
    refusals: AtomicU64,
    /// What this is a share of.
    whole: Option<MemoryBudget>,
}

/// There is no room left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not enough memory for what is under way: {needed} more bytes needed, {used} of at most {bytes_max} bytes used; try again later, \
     see {setting}"
)]
pub struct Exhausted {
    /// Bytes that were asked for.
    pub needed: usize,
    /// Bytes that others hold.
    pub used: usize,
    /// The limit.
    pub bytes_max: usize,
    /// The setting that has it.
    pub setting: &'static str,
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryBudget({} of {} bytes)", self.used(), self.bytes_max())
    }
}

impl MemoryBudget {
    /// A budget of this many bytes. `setting` is named where there is no room.
    pub fn new(bytes_max: usize, setting: &'static str) -> MemoryBudget {
        MemoryBudget::make(bytes_max, setting, None)
    }

    /// A part of this budget that takes at most this many bytes of it: what one kind of buffers, or one connection, may hold.
    pub fn share(&self, bytes_max: usize, setting: &'static str) -> MemoryBudget {
        MemoryBudget::make(bytes_max, setting, Some(self.clone()))
    }

    fn make(bytes_max: usize, setting: &'static str, whole: Option<MemoryBudget>) -> MemoryBudget {
        let (used, refusals) = Default::default();
        MemoryBudget(Arc::new(Inner { used, bytes_max, setting, refusals, whole }))
    }

    /// Takes room for `bytes` bytes until the reservation is dropped.
    ///
    /// # Errors
    /// There is not as much left, here or in what this is a share of. Nothing is taken then.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation, Exhausted> {
        self.take(bytes)?;
        Ok(Reservation { budget: self.clone(), bytes })
    }

    /// A reservation of nothing, to be grown.
    pub fn empty(&self) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }

    /// Bytes that are taken.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// Bytes that there are.
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// How often there was no room, since the start.
    pub fn refusals(&self) -> u64 {
        self.0.refusals.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> Result<(), Exhausted> {
        let Inner { used, bytes_max, setting, refusals, whole } = &*self.0;
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| sum <= bytes_max);
        if let Err(used) = used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits) {
            refusals.fetch_add(1, Ordering::Relaxed);
            return Err(Exhausted { needed: bytes, used, bytes_max: *bytes_max, setting });
        }
        if let Some(whole) = whole
            && let Err(exhausted) = whole.take(bytes)
        {
            used.fetch_sub(bytes, Ordering::AcqRel);
            return Err(exhausted);
        }
        Ok(())
    }

    fn count(&self, bytes: usize) {
        self.0.used.fetch_add(bytes, Ordering::AcqRel);
        if let Some(whole) = &self.0.whole {
            whole.count(bytes);
        }
    }

    fn give_back(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::AcqRel);
        if let Some(whole) = &self.0.whole {
            whole.give_back(bytes);
        }
    }
}

/// Room that is taken until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it gives the room back"]
pub struct Reservation {
    budget: MemoryBudget,
    bytes: usize,
}

impl Reservation {
    /// Bytes that it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    /// There is not as much left; it keeps what it has.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        if bytes > 0 {
            self.budget.take(bytes)?;
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Counts `bytes` more, which are there already. If that is more than there was room for, nobody gets any until it is given back.
    pub fn count(&mut self, bytes: usize) {
        self.budget.count(bytes);
        self.bytes += bytes;
    }

    /// Takes or gives back what is missing to `bytes`, or too much.
    ///
    /// # Errors
    /// There is not as much left; it keeps what it has.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Exhausted> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(bytes);
                Ok(())
            }
        }
    }

    /// Gives back what is beyond `bytes`.
    pub fn shrink(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        if spare > 0 {
            self.budget.give_back(spare);
            self.bytes -= spare;
        }
    }

    /// Follows a buffer of this capacity, as far as buffers are counted.
    ///
    /// # Errors
    /// There is not as much left; it keeps what it has.
    #[inline]
    pub fn follow(&mut self, capacity: usize) -> Result<(), Exhausted> {
        let counted = if capacity > UNCOUNTED_BYTES_MAX { capacity } else { 0 };
        if counted == self.bytes { Ok(()) } else { self.resize(counted) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = MemoryBudget::new(100, "max");
        let mut first = budget.reserve(60).unwrap();
        let refused = budget.reserve(41).unwrap_err();
        assert_eq!(refused, Exhausted { needed: 41, used: 60, bytes_max: 100, setting: "max" });
        assert!(first.grow(41).is_err());
        assert_eq!((first.bytes(), budget.used(), budget.refusals()), (60, 60, 2));
        first.resize(100).unwrap();
        first.shrink(10);
        assert_eq!(budget.used(), 10);
        drop(first);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_share_takes_of_the_whole_and_no_more_than_its_part() {
        let budget = MemoryBudget::new(100, "whole");
        let share = budget.share(60, "share");
        assert_eq!(share.reserve(61).unwrap_err().setting, "share");
        let held = share.reserve(50).unwrap();
        assert_eq!(budget.used(), 50);
        let other = budget.reserve(45).unwrap();
        assert_eq!(share.reserve(10).unwrap_err().setting, "whole");
        assert_eq!((share.used(), budget.used()), (50, 95));
        drop((held, other));
        assert_eq!((share.used(), budget.used()), (0, 0));
    }

    #[test]
    fn what_is_there_already_counts_beyond_the_limit() {
        let budget = MemoryBudget::new(100, "whole");
        let mut share = budget.share(50, "share").reserve(40).unwrap();
        share.count(70);
        assert_eq!((share.bytes(), budget.used()), (110, 110));
        assert!(budget.reserve(1).is_err() && share.grow(1).is_err());
        share.shrink(30);
        drop(budget.reserve(20).unwrap());
        drop(share);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn small_buffers_are_not_counted() {
        let budget = MemoryBudget::new(100_000, "max");
        let mut buffer = budget.empty();
        buffer.follow(UNCOUNTED_BYTES_MAX).unwrap();
        assert_eq!(budget.used(), 0);
        buffer.follow(UNCOUNTED_BYTES_MAX + 1).unwrap();
        assert_eq!(budget.used(), UNCOUNTED_BYTES_MAX + 1);
        buffer.follow(10).unwrap();
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn sums_never_pass_the_limit_however_many_ask() {
        let budget = MemoryBudget::new(1_000, "max");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for bytes in 0..2_000 {
                        if let Ok(held) = budget.reserve(bytes % 700) {
                            assert!(budget.used() <= 1_000);
                            drop(held);
                        }
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
    }
}
