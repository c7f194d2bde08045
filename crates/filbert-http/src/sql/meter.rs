//! Accounts for the memory of parsed values while a body is parsed. Values take up to forty times
//! their size in the body.
//!
//! Vectors draw from the member's budget before they grow. The memory of common requests is not
//! counted, since it is less than their buffers.

use std::cell::{Cell, RefCell};

use filbert_data::Value;
use filbert_grid::{Exhausted, Reservation, UNCOUNTED_BYTES_MAX};
use serde::de::Error;

use crate::failure::Failure;

/// The minimum step of a reservation in bytes.
const STEP_BYTES: usize = 64 << 10;

/// The memory of a request's values.
#[derive(Debug)]
pub(crate) struct Meter {
    /// The number of bytes that are taken.
    taken: Cell<usize>,
    /// The number of bytes that may be taken before the reservation must grow.
    allowed: Cell<usize>,
    /// The memory reservation. `None`: there is no limit.
    reservation: RefCell<Option<Reservation>>,
    /// The maximum number of values of one statement.
    values_max: usize,
    /// The reason why parsing was stopped, if it was a limit and not the syntax of the body.
    refusal: RefCell<Option<Failure>>,
}

impl Meter {
    /// Creates a meter for statements of at most `values_max` values each.
    pub(crate) fn new(reservation: Reservation, values_max: usize) -> Meter {
        Meter::make(Some(reservation), values_max)
    }

    /// Creates a meter without limits, for tests and benchmarks.
    pub(crate) fn unlimited() -> Meter {
        Meter::make(None, usize::MAX)
    }

    fn make(reservation: Option<Reservation>, values_max: usize) -> Meter {
        let allowed = if reservation.is_some() { UNCOUNTED_BYTES_MAX } else { usize::MAX };
        let (taken, refusal) = Default::default();
        Meter { taken, allowed: Cell::new(allowed), reservation: RefCell::new(reservation), values_max, refusal }
    }

    /// Takes memory.
    ///
    /// # Errors
    /// There is not enough memory left. [`Meter::refusal`] returns the reason.
    pub(crate) fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let taken = self.taken.get().saturating_add(bytes);
        self.taken.set(taken);
        let missing = taken.saturating_sub(self.allowed.get());
        if missing == 0 {
            Ok(())
        } else {
            self.grow(missing.max(STEP_BYTES)).map_err(|exhausted| self.refuse(exhausted.into()))
        }
    }

    #[cold]
    fn grow(&self, bytes: usize) -> Result<(), Exhausted> {
        if let Some(reservation) = &mut *self.reservation.borrow_mut() {
            reservation.grow(bytes)?;
            self.allowed.set(self.allowed.get().saturating_add(bytes));
        }
        Ok(())
    }

    #[cold]
    fn refuse<E: Error>(&self, refusal: Failure) -> E {
        let error = E::custom("refused");
        *self.refusal.borrow_mut() = Some(refusal);
        error
    }

    /// Appends to a vector, after it has taken memory for the item.
    ///
    /// # Errors
    /// There is not enough memory.
    #[inline]
    pub(crate) fn push<T, E: Error>(&self, list: &mut Vec<T>, item: T) -> Result<(), E> {
        if list.len() == list.capacity() {
            self.grow_list(list)?;
        }
        list.push(item);
        Ok(())
    }

    #[cold]
    fn grow_list<T, E: Error>(&self, list: &mut Vec<T>) -> Result<(), E> {
        let more = list.capacity().max(4);
        // Old and new memory exist at the same time until the items are copied.
        self.take((list.capacity() + more).saturating_mul(size_of::<T>()))?;
        list.reserve_exact(more);
        Ok(())
    }

    /// Checks that a statement with `count` values may have one more.
    ///
    /// # Errors
    /// There are too many values.
    #[inline]
    pub(crate) fn check_count<E: Error>(&self, count: usize) -> Result<(), E> {
        if count < self.values_max { Ok(()) } else { Err(self.refuse(Failure::too_many_values(self.values_max))) }
    }

    /// Resets the count after all parsed values are dropped. Only the capacity of `kept` remains.
    pub(crate) fn reset(&self, kept: &Vec<Value<'_>>) {
        self.taken.set(kept.capacity().saturating_mul(2 * size_of::<Value<'_>>()));
    }

    /// Returns the reason why parsing was stopped, if it was a limit and not the syntax of the
    /// body.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.refusal.take()
    }

    /// Returns the memory reservation, to be held as long as the values.
    pub(crate) fn into_reservation(self) -> Option<Reservation> {
        self.reservation.into_inner()
    }
}
