//! The changes of a statement: computed first, without touching the map, then made together.
//!
//! ```text
//!  rows ─► Pending: key, what has to be there, new value ─► claimed and checked ─┬─ as expected: written
//!             ▲                                                                  ├─ held by others: wait, claim again
//!             └── the rows of these keys are computed again, still claimed ──────┴─ not as expected
//! ```
//! ([why](../../../../docs/decisions/0016-statements-change-all-or-nothing.md))

use datafusion::execution::memory_pool::MemoryReservation;
use filbert_functions::ending::Limits;
use filbert_functions::error::of_datafusion;
use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::{BatchItem, Claims, Expected, GridError, Map, NotMade, Together};

use crate::dml::apply::{PAUSE, Waiting, is_passing};

/// How often a statement computes rows again that others changed before it had claimed them.
pub(crate) const ROUNDS_MAX: usize = 100;
/// How often a statement waits for keys that others hold.
const WAITS_MAX: usize = 10_000;
/// How often a statement looks for leaders, each time for some seconds.
const TRIES_MAX: usize = 5;
/// Memory is asked for in pieces of this size, in bytes.
const MEMORY_STEP_BYTES: usize = 1 << 20;

/// Changes that a statement is about to make.
pub(crate) struct Pending {
    together: Together,
    /// What the statement may hold; `None` = it has few rows.
    memory: Option<MemoryReservation>,
}

/// What an attempt to make changes came to.
pub(crate) enum Made {
    /// All are made.
    All,
    /// None is: these keys are not as expected, and are claimed.
    Differ(Vec<Box<[u8]>>),
    /// None is: this key is someone else's.
    Held(Box<[u8]>),
    /// None is: nobody could be asked, as leaders change.
    NobodyLeads(GridError),
}

impl Pending {
    /// Nothing yet.
    pub(crate) fn new(map: &Map, memory: Option<MemoryReservation>) -> Pending {
        Pending { together: Together::new(map), memory }
    }

    /// Adds the change of a key; `false` if there is one already, which stays.
    ///
    /// # Errors
    /// The statement changes more than its memory can hold.
    pub(crate) fn add(&mut self, key: &[u8], expected: Expected<'_>, value: Option<&[u8]>) -> Result<bool, SqlError> {
        let added = self.together.add(key, expected, value)?;
        if let Some(memory) = &self.memory {
            let missing = self.together.bytes().saturating_sub(memory.size());
            if missing > 0 {
                memory.try_grow(missing.max(MEMORY_STEP_BYTES)).map_err(|error| of_datafusion(&error))?;
            }
        }
        Ok(added)
    }

    /// The change of a key, if there is one.
    pub(crate) fn get(&self, key: &[u8]) -> Option<BatchItem<'_>> {
        self.together.get(key)
    }

    /// Takes the change of a key out.
    pub(crate) fn take_out(&mut self, key: &[u8]) {
        self.together.take_out(key);
    }

    /// Forgets all changes.
    pub(crate) fn clear(&mut self, map: &Map) {
        self.together = Together::new(map);
    }

    /// Makes all changes, or none, without waiting.
    ///
    /// # Errors
    /// They cannot be made.
    pub(crate) fn make_in_place(&self, map: &Map, claims: &mut Claims<'_>) -> Result<Made, SqlError> {
        match map.make_together(&self.together, claims) {
            Ok(()) => Ok(Made::All),
            Err(NotMade::Differ(keys)) => Ok(Made::Differ(keys)),
            Err(NotMade::Held(key)) => Ok(Made::Held(key)),
            Err(NotMade::Error(error)) if is_passing(&error) => Ok(Made::NobodyLeads(error)),
            Err(NotMade::Error(error)) => Err(error.into()),
        }
    }

    /// Makes all changes, or none, unless the statement was ended early.
    fn make_within(&self, waiting: Waiting<'_>, claims: &mut Claims<'_>) -> Result<Made, SqlError> {
        let changing = waiting.limits.map(Limits::begin_changes).transpose()?;
        let made = self.make_in_place(waiting.map, claims)?;
        if let (Made::All, Some(changing)) = (&made, changing) {
            changing.done();
        }
        Ok(made)
    }

    /// Makes all changes, or none, as soon as nobody else holds one of their keys. Returns the keys that are not as expected:
    /// they are claimed then, and nothing was changed.
    ///
    /// # Errors
    /// They cannot be made, or someone held a key for too long.
    pub(crate) async fn make(&self, waiting: Waiting<'_>, claims: &mut Claims<'_>) -> Result<Vec<Box<[u8]>>, SqlError> {
        let mut tries = 0;
        for _ in 0..WAITS_MAX {
            match self.make_within(waiting, claims)? {
                Made::All => return Ok(Vec::new()),
                Made::Differ(keys) => return Ok(keys),
                Made::Held(key) => waiting.until_free(&key).await?,
                Made::NobodyLeads(error) if tries == TRIES_MAX => return Err(error.into()),
                Made::NobodyLeads(_) => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        Err(changed_too_often())
    }

    /// As [`Pending::make`], waiting in this thread.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn make_blocking(
        &self,
        waiting: Waiting<'_>,
        claims: &mut Claims<'_>,
    ) -> Result<Vec<Box<[u8]>>, SqlError> {
        let mut tries = 0;
        for _ in 0..WAITS_MAX {
            match self.make_within(waiting, claims)? {
                Made::All => return Ok(Vec::new()),
                Made::Differ(keys) => return Ok(keys),
                Made::Held(key) => waiting.block_until_free(&key)?,
                Made::NobodyLeads(error) if tries == TRIES_MAX => return Err(error.into()),
                Made::NobodyLeads(_) => {
                    tries += 1;
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Err(changed_too_often())
    }
}

/// The error of a statement that others came before, again and again.
pub(crate) fn changed_too_often() -> SqlError {
    let text = "could not serialize access: rows were changed by others again and again while the statement ran";
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("40001")
}
