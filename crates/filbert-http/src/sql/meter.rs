//! Memory of what is made of a body while it is parsed: values take up to forty times the bytes that they are written in.
//!
//! Lists draw from the member's budget before they grow. What common requests need is not counted: it is less than their buffers.

use std::cell::{Cell, RefCell};

use filbert_data::Value;
use filbert_grid::{Exhausted, Reservation, UNCOUNTED_BYTES_MAX};
use serde::de::Error;

use crate::failure::Failure;

/// Room is taken in steps of as many bytes.
const STEP_BYTES: usize = 64 << 10;

/// What a request's values take.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Bytes that are taken.
    taken: Cell<usize>,
    /// Bytes that may be before there must be more room.
    allowed: Cell<usize>,
    /// `None` = there is no limit.
    room: RefCell<Option<Reservation>>,
    /// Values of one statement.
    values_max: usize,
    /// Why parsing was given up, if not because of what was parsed.
    refusal: RefCell<Option<Failure>>,
}

impl Meter {
    /// For statements of at most `values_max` values each.
    pub(crate) fn new(room: Reservation, values_max: usize) -> Meter {
        Meter::make(Some(room), values_max)
    }

    /// Without limits, for tests and measuring.
    pub(crate) fn unlimited() -> Meter {
        Meter::make(None, usize::MAX)
    }

    fn make(room: Option<Reservation>, values_max: usize) -> Meter {
        let allowed = if room.is_some() { UNCOUNTED_BYTES_MAX } else { usize::MAX };
        let (taken, refusal) = Default::default();
        Meter { taken, allowed: Cell::new(allowed), room: RefCell::new(room), values_max, refusal }
    }

    /// Takes room.
    ///
    /// # Errors
    /// There is none left, which [`Meter::refusal`] tells.
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
        if let Some(room) = &mut *self.room.borrow_mut() {
            room.grow(bytes)?;
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

    /// Appends to a list, with room for it.
    ///
    /// # Errors
    /// There is no room.
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
        // The old memory is there until all of it is in the new one.
        self.take((list.capacity() + more).saturating_mul(size_of::<T>()))?;
        list.reserve_exact(more);
        Ok(())
    }

    /// Checks the number of one statement's values, of which there is about to be one more than `count`.
    ///
    /// # Errors
    /// There are too many.
    #[inline]
    pub(crate) fn check_count<E: Error>(&self, count: usize) -> Result<(), E> {
        if count < self.values_max { Ok(()) } else { Err(self.refuse(Failure::too_many_values(self.values_max))) }
    }

    /// Says that what was parsed is gone, but for a list that is kept.
    pub(crate) fn reset(&self, kept: &Vec<Value<'_>>) {
        self.taken.set(kept.capacity().saturating_mul(2 * size_of::<Value<'_>>()));
    }

    /// Why parsing was given up, if it was not because of what was parsed.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.refusal.take()
    }

    /// The room, to be held as long as the values.
    pub(crate) fn into_room(self) -> Option<Reservation> {
        self.room.into_inner()
    }
}
