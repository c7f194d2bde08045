//! The rows of an INSERT, a SINK or a COPY on their way to changes that are made together.

use arrow_array::RecordBatch;
use filbert_data::Value;
use filbert_grid::query::SqlError;

use crate::dml::apply::Waiting;
use crate::dml::inserter::{Inserter, Scratch, Written};
use crate::dml::pending::{Made, Pending, ROUNDS_MAX, changed_too_often};
use crate::dml::returning::Returning;
use crate::occasion::Occasion;

/// Rows that one statement adds, and what becomes of them.
pub(crate) struct Adding {
    pending: Pending,
    /// Those that may have to be looked at again, or told of.
    kept: Option<Vec<Kept>>,
    count: u64,
    scratch: Scratch,
}

struct Kept {
    key: Box<[u8]>,
    row: Vec<Value<'static>>,
    parameters: Vec<Value<'static>>,
    written: Written,
}

/// Rows that were added: how many, and what `RETURNING` tells of them.
pub(crate) type Added = (u64, Option<RecordBatch>);

impl Adding {
    /// No rows yet. `tells` says whether the statement has a `RETURNING`.
    pub(crate) fn new(inserter: &Inserter, pending: Pending, tells: bool) -> Adding {
        let keeps = tells || inserter.looks_first();
        Adding { pending, kept: keeps.then(Vec::new), count: 0, scratch: Scratch::default() }
    }

    /// Adds a row that is whole; returns how many rows that changes.
    ///
    /// # Errors
    /// It cannot be added.
    pub(crate) fn add(
        &mut self,
        inserter: &Inserter,
        row: &[Value<'_>],
        parameters: &[Value<'_>],
        occasion: &Occasion,
    ) -> Result<u64, SqlError> {
        let written = inserter.plan(row, parameters, occasion, &mut self.scratch, &mut self.pending)?;
        let count = written.count();
        self.count += count;
        if let Some(kept) = self.kept.as_mut().filter(|_| count > 0) {
            let owned = |values: &[Value<'_>]| values.iter().map(|value| value.clone().into_owned()).collect();
            let (row, parameters) = (owned(row), owned(parameters));
            kept.push(Kept { key: self.scratch.key().into(), row, parameters, written });
        }
        Ok(count)
    }

    /// Looks again at the rows with keys that others have changed meanwhile.
    fn again(&mut self, inserter: &Inserter, keys: &[Box<[u8]>], occasion: &Occasion) -> Result<(), SqlError> {
        if let (true, Some(key)) = (inserter.fails_on_key(), keys.first()) {
            return Err(inserter.maker().duplicate(key));
        }
        keys.iter().for_each(|key| self.pending.take_out(key));
        for row in self.kept.replace(Vec::new()).unwrap_or_default() {
            if keys.contains(&row.key) {
                self.count -= row.written.count();
                self.add(inserter, &row.row, &row.parameters, occasion)?;
            } else if let Some(kept) = &mut self.kept {
                kept.push(row);
            }
        }
        Ok(())
    }

    /// What `RETURNING` tells of the rows.
    fn tell(
        &self,
        returning: Option<&Returning>,
        parameters: &[Value<'_>],
        occasion: &Occasion,
    ) -> Result<Option<RecordBatch>, SqlError> {
        let Some(returning) = returning else { return Ok(None) };
        let rows = self.kept.iter().flatten().map(|kept| match &kept.written {
            Written::Updated(row) => row.as_slice(),
            Written::Added | Written::Nothing => kept.row.as_slice(),
        });
        returning.of_rows(rows, parameters, occasion).map(Some)
    }

    /// Makes all changes, or none, when their keys are free.
    ///
    /// # Errors
    /// They cannot be made: nothing was changed.
    pub(crate) async fn make(
        mut self,
        inserter: &Inserter,
        waiting: Waiting<'_>,
        returning: Option<&Returning>,
        parameters: &[Value<'_>],
        occasion: &Occasion,
    ) -> Result<Added, SqlError> {
        let mut claims = waiting.map.claims();
        for _ in 0..ROUNDS_MAX {
            let told = self.tell(returning, parameters, occasion)?;
            let differing = self.pending.make(waiting, &mut claims).await?;
            if differing.is_empty() {
                return Ok((self.count, told));
            }
            self.again(inserter, &differing, occasion)?;
        }
        Err(changed_too_often())
    }

    /// As [`Adding::make`] of a statement that tells nothing, waiting in this thread.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn make_blocking(
        mut self,
        inserter: &Inserter,
        waiting: Waiting<'_>,
        occasion: &Occasion,
    ) -> Result<u64, SqlError> {
        let mut claims = waiting.map.claims();
        for _ in 0..ROUNDS_MAX {
            let differing = self.pending.make_blocking(waiting, &mut claims)?;
            if differing.is_empty() {
                return Ok(self.count);
            }
            self.again(inserter, &differing, occasion)?;
        }
        Err(changed_too_often())
    }

    /// As [`Adding::make`], without waiting; `None` if it would have to, and nothing was changed then.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn make_in_place(
        mut self,
        inserter: &Inserter,
        returning: Option<&Returning>,
        parameters: &[Value<'_>],
        occasion: &Occasion,
    ) -> Result<Option<Added>, SqlError> {
        let map = inserter.table().map();
        let mut claims = map.claims();
        for _ in 0..ROUNDS_MAX {
            let told = self.tell(returning, parameters, occasion)?;
            match self.pending.make_in_place(map, &mut claims)? {
                Made::All => return Ok(Some((self.count, told))),
                Made::Held(_) | Made::NobodyLeads(_) => return Ok(None),
                Made::Differ(differing) => self.again(inserter, &differing, occasion)?,
            }
        }
        Err(changed_too_often())
    }
}
