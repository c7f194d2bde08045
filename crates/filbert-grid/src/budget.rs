//! The memory budget of buffers that grow with client requests and responses. The budget of a
//! member also counts in the account of the member's memory ([`MemberMemory`]), so it gets smaller
//! while maps and statements need the room.
//!
//! Code that stores bytes because a client has sent them, or has not read them yet, takes a
//! [`Reservation`] before it allocates the memory. Dropping the reservation releases it. If there
//! is no room, the reservation fails with [`Exhausted`]: the caller refuses the request, or stops
//! reading. A reservation never waits, so two callers that hold reservations cannot deadlock.
//!
//! A reservation costs one to three atomic additions. Buffers of less than [`UNCOUNTED_BYTES_MAX`]
//! need none: their number is bounded by the number of connections, which is limited.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::member_memory::MemberMemory;

/// The maximum size, in bytes, of a buffer that one connection may have for one purpose without a
/// reservation. Most requests fit. Multiplied by the maximum number of connections of a door, it is
/// a few hundred megabytes.
pub const UNCOUNTED_BYTES_MAX: usize = 16 << 10;

/// The setting that limits the memory of a member.
const MEMBER_SETTING: &str = "memory_bytes_max";

/// A memory limit for all buffers, or a share of another budget. A clone is the same budget.
#[derive(Clone)]
pub struct MemoryBudget(Arc<Inner>);

struct Inner {
    used: AtomicUsize,
    bytes_max: usize,
    /// The setting that defines the limit.
    setting: &'static str,
    /// The number of refused reservations.
    refusals: AtomicU64,
    whole: Whole,
}

/// The budget or the account that contains a budget.
enum Whole {
    Nothing,
    Budget(MemoryBudget),
    Member(Arc<MemberMemory>),
}

/// The budget has no room for the requested bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not enough memory for what is under way: {needed} more bytes needed, {used} of at most {bytes_max} bytes used; try again later, \
     see {setting}"
)]
pub struct Exhausted {
    /// Bytes requested.
    pub needed: usize,
    /// Bytes reserved by others.
    pub used: usize,
    /// The limit.
    pub bytes_max: usize,
    /// The setting that defines the limit.
    pub setting: &'static str,
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryBudget({} of {} bytes)", self.used(), self.bytes_max())
    }
}

impl MemoryBudget {
    /// Creates a budget with a limit in bytes. `setting` is named in errors.
    pub fn new(bytes_max: usize, setting: &'static str) -> MemoryBudget {
        MemoryBudget::make(bytes_max, setting, Whole::Nothing)
    }

    /// Creates the budget of a member. It never takes more than the member's memory has left.
    pub(crate) fn of_member(memory: Arc<MemberMemory>, bytes_max: usize, setting: &'static str) -> MemoryBudget {
        MemoryBudget::make(bytes_max, setting, Whole::Member(memory))
    }

    /// Creates a share of this budget with a limit of its own: for one kind of buffers, or for one
    /// connection. It gets smaller with the budget, in proportion.
    pub fn share(&self, bytes_max: usize, setting: &'static str) -> MemoryBudget {
        MemoryBudget::make(bytes_max, setting, Whole::Budget(self.clone()))
    }

    fn make(bytes_max: usize, setting: &'static str, whole: Whole) -> MemoryBudget {
        let (used, refusals) = Default::default();
        MemoryBudget(Arc::new(Inner { used, bytes_max, setting, refusals, whole }))
    }

    /// Reserves `bytes` bytes until the reservation is dropped.
    ///
    /// # Errors
    /// There is not enough room in this budget, or in the budget that it is a share of. Nothing is
    /// reserved then.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation, Exhausted> {
        self.take(bytes)?;
        Ok(Reservation { budget: self.clone(), bytes })
    }

    /// An empty reservation, which can grow.
    pub fn empty(&self) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }

    /// Bytes reserved.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// The limit in bytes.
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// The number of refused reservations since the start, those of its shares included.
    pub fn refusals(&self) -> u64 {
        self.0.refusals.load(Ordering::Relaxed)
    }

    /// The bytes that may be reserved now, including the bytes that are already reserved: the
    /// limit, or less if the member's memory is scarce.
    fn room(&self) -> usize {
        let bytes_max = self.0.bytes_max;
        match &self.0.whole {
            Whole::Nothing => bytes_max,
            Whole::Member(memory) => bytes_max.min(memory.room_of_buffers()),
            Whole::Budget(whole) => {
                let (room, whole_max) = (whole.room() as u128, whole.bytes_max() as u128);
                if room == whole_max {
                    return bytes_max;
                }
                // At most the limit, which fits.
                (bytes_max as u128 * room / whole_max.max(1)) as usize
            }
        }
    }

    fn take(&self, bytes: usize) -> Result<(), Exhausted> {
        let Inner { used, bytes_max, setting, refusals: _, whole } = &*self.0;
        let room = self.room();
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= room);
        if let Err(used) = used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits) {
            self.count_refusal();
            let setting = if room < *bytes_max { MEMBER_SETTING } else { setting };
            return Err(Exhausted { needed: bytes, used, bytes_max: room, setting });
        }
        let taken = match whole {
            Whole::Nothing => Ok(()),
            Whole::Budget(whole) => whole.take(bytes),
            Whole::Member(memory) if memory.take_for_buffers(bytes) => Ok(()),
            Whole::Member(memory) => {
                self.count_refusal();
                let (used, bytes_max) = (memory.used(), memory.bytes_max().unwrap_or(usize::MAX));
                Err(Exhausted { needed: bytes, used, bytes_max, setting: MEMBER_SETTING })
            }
        };
        taken.inspect_err(|_| {
            used.fetch_sub(bytes, Ordering::AcqRel);
        })
    }

    /// Counts a refusal, here and in the budget that this one is a share of.
    fn count_refusal(&self) {
        self.0.refusals.fetch_add(1, Ordering::Relaxed);
        if let Whole::Budget(whole) = &self.0.whole {
            whole.count_refusal();
        }
    }

    fn count(&self, bytes: usize) {
        self.0.used.fetch_add(bytes, Ordering::AcqRel);
        match &self.0.whole {
            Whole::Nothing => {}
            Whole::Budget(whole) => whole.count(bytes),
            Whole::Member(memory) => memory.count_for_buffers(bytes),
        }
    }

    fn give_back(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::AcqRel);
        match &self.0.whole {
            Whole::Nothing => {}
            Whole::Budget(whole) => whole.give_back(bytes),
            Whole::Member(memory) => memory.give_back_buffers(bytes),
        }
    }
}

/// Reserved bytes of a budget. Released on drop.
#[derive(Debug)]
#[must_use = "dropping it gives the room back"]
pub struct Reservation {
    budget: MemoryBudget,
    bytes: usize,
}

impl Reservation {
    /// Bytes reserved.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// There is not enough room. The reservation is unchanged.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        if bytes > 0 {
            self.budget.take(bytes)?;
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Adds `bytes` that are already allocated, even beyond the limit. While the budget is over its
    /// limit, no reservation succeeds.
    pub fn count(&mut self, bytes: usize) {
        self.budget.count(bytes);
        self.bytes += bytes;
    }

    /// Grows or shrinks the reservation to `bytes`.
    ///
    /// # Errors
    /// There is not enough room. The reservation is unchanged.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Exhausted> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(bytes);
                Ok(())
            }
        }
    }

    /// Shrinks the reservation to at most `bytes`.
    pub fn shrink(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes);
        if spare > 0 {
            self.budget.give_back(spare);
            self.bytes -= spare;
        }
    }

    /// Adapts the reservation to the capacity of a buffer. Buffers of at most
    /// [`UNCOUNTED_BYTES_MAX`] need no reservation.
    ///
    /// # Errors
    /// There is not enough room. The reservation is unchanged.
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
        assert_eq!(budget.refusals(), 2, "its own and its share's");
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
    fn a_budget_and_its_shares_get_smaller_while_the_member_needs_the_memory() {
        let memory = Arc::new(MemberMemory::new(Some(512 << 20)));
        let budget = MemoryBudget::of_member(memory.clone(), 256 << 20, "whole");
        let share = budget.share(64 << 20, "share");
        drop(budget.reserve(256 << 20).unwrap());
        drop(share.reserve(64 << 20).unwrap());
        memory.note_statements(384 << 20);
        // Half of the budget, and half of its share.
        let refused = budget.reserve((128 << 20) + 1).unwrap_err();
        assert_eq!((refused.bytes_max, refused.setting), (128 << 20, MEMBER_SETTING));
        let refused = share.reserve((32 << 20) + 1).unwrap_err();
        assert_eq!((refused.bytes_max, refused.setting), (32 << 20, MEMBER_SETTING));
        let held = (share.reserve(32 << 20).unwrap(), budget.reserve(96 << 20).unwrap());
        assert!(budget.reserve(1).is_err());
        assert_eq!((memory.buffers(), budget.refusals()), (128 << 20, 3));
        drop(held);
        memory.note_statements(-384 << 20);
        drop(share.reserve(64 << 20).unwrap());
        assert_eq!(memory.used(), 0);
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
