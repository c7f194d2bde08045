//! The changes of a statement. They are computed first, without touching the map, then made
//! together.
//!
//! ```text
//!  rows ─► Pending: key, expected value, new value ─► claim and check ─┬─ as expected: write
//!             ▲                                                        ├─ held: wait, retry
//!             └── compute these rows again, with their keys claimed ───┴─ not as expected
//! ```
//! ([why](../../../../docs/decisions/0016-statements-change-all-or-nothing.md))

use datafusion::execution::memory_pool::MemoryReservation;
use filbert_functions::ending::Limits;
use filbert_functions::error::of_datafusion;
use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::{BatchItem, Claims, Expected, GridError, Map, NotMade, Together};

use crate::dml::apply::{PAUSE, Waiting, is_passing};

/// How often a statement computes rows again because others changed them before it claimed their
/// keys.
pub(crate) const ROUNDS_MAX: usize = 100;
/// The same for one row that is changed without a claim of its key. The row is then changed with a
/// claim.
pub(crate) const ROUNDS_IN_PLACE_MAX: usize = 10;
/// How often a statement waits for keys that others hold.
const WAITS_MAX: usize = 10_000;
/// How often a statement looks for leaders; each attempt takes some seconds.
const TRIES_MAX: usize = 5;
/// Memory is reserved in steps of this size, in bytes.
const MEMORY_STEP_BYTES: usize = 1 << 20;

/// The changes that a statement is about to make.
pub(crate) struct Pending {
    together: Together,
    /// The memory reservation of the statement; `None` = the statement has few rows.
    memory: Option<MemoryReservation>,
}

/// The outcome of an attempt to make changes.
pub(crate) enum Made {
    /// All changes are made.
    All,
    /// None is made: these keys are not as expected, and are claimed.
    Differ(Vec<Box<[u8]>>),
    /// None is made: others hold this key.
    Held(Box<[u8]>),
    /// None is made: no leader could be reached, because leaders change.
    NobodyLeads(GridError),
}

impl Pending {
    /// Creates an empty set of changes.
    pub(crate) fn new(map: &Map, memory: Option<MemoryReservation>) -> Pending {
        Pending { together: Together::new(map), memory }
    }

    /// Adds the change of a key. Returns `false`, and keeps the first change, if the key has one
    /// already.
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

    /// Removes the change of a key.
    pub(crate) fn take_out(&mut self, key: &[u8]) {
        self.together.take_out(key);
    }

    /// Removes all changes.
    pub(crate) fn clear(&mut self, map: &Map) {
        self.together = Together::new(map);
    }

    /// Makes all changes, or none, without waiting.
    ///
    /// # Errors
    /// The changes cannot be made.
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

    /// Makes all changes, or none, once nobody else holds one of their keys. Returns the keys that
    /// are not as expected: they are claimed then, and nothing was changed.
    ///
    /// # Errors
    /// The changes cannot be made, or a key was held for too long.
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

    /// Like [`Pending::make`], but blocks this thread.
    ///
    /// # Errors
    /// Like [`Pending::make`].
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

/// The error of a statement that computed its rows too often because others kept changing them.
pub(crate) fn changed_too_often() -> SqlError {
    let text = "could not serialize access: rows were changed by others again and again while the statement ran";
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("40001")
}
