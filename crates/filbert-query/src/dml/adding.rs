//! Collects the rows of an INSERT, a SINK or a COPY as changes that are made together.

use arrow_array::RecordBatch;
use filbert_data::Value;
use filbert_grid::query::SqlError;

use crate::dml::apply::Waiting;
use crate::dml::inserter::{Inserter, Scratch, Written};
use crate::dml::pending::{Made, Pending, ROUNDS_MAX, changed_too_often};
use crate::dml::returning::Returning;
use crate::execution::Execution;

/// The rows that one statement adds.
pub(crate) struct Adding {
    pending: Pending,
    /// Rows that may have to be computed again, or that `RETURNING` reports.
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

/// The number of added rows, and the result of `RETURNING`.
pub(crate) type Added = (u64, Option<RecordBatch>);

impl Adding {
    /// Creates an empty collection. `returns_rows` says whether the statement has a `RETURNING`.
    pub(crate) fn new(inserter: &Inserter, pending: Pending, returns_rows: bool) -> Adding {
        let keeps = returns_rows || inserter.looks_first();
        Adding { pending, kept: keeps.then(Vec::new), count: 0, scratch: Scratch::default() }
    }

    /// Adds a complete row; returns the number of rows that it changes.
    ///
    /// # Errors
    /// The row cannot be added.
    pub(crate) fn add(
        &mut self,
        inserter: &Inserter,
        row: &[Value<'_>],
        parameters: &[Value<'_>],
        execution: &Execution,
    ) -> Result<u64, SqlError> {
        let written = inserter.plan(row, parameters, execution, &mut self.scratch, &mut self.pending)?;
        let count = written.count();
        self.count += count;
        if let Some(kept) = self.kept.as_mut().filter(|_| count > 0) {
            let owned = |values: &[Value<'_>]| values.iter().map(|value| value.clone().into_owned()).collect();
            let (row, parameters) = (owned(row), owned(parameters));
            kept.push(Kept { key: self.scratch.key().into(), row, parameters, written });
        }
        Ok(count)
    }

    /// Computes the rows again that have keys which others have changed meanwhile. The keys are
    /// claimed, so nobody changes them once more.
    fn again(&mut self, inserter: &Inserter, keys: &[Box<[u8]>], execution: &Execution) -> Result<(), SqlError> {
        if let (true, Some(key)) = (inserter.fails_on_key(), keys.first()) {
            return Err(inserter.maker().duplicate(key));
        }
        keys.iter().for_each(|key| self.pending.take_out(key));
        let execution = execution.again(inserter.table().map(), keys.iter().map(AsRef::as_ref));
        for row in self.kept.replace(Vec::new()).unwrap_or_default() {
            if keys.contains(&row.key) {
                self.count -= row.written.count();
                self.add(inserter, &row.row, &row.parameters, &execution)?;
            } else if let Some(kept) = &mut self.kept {
                kept.push(row);
            }
        }
        Ok(())
    }

    /// The result of `RETURNING` for the rows.
    fn returned_rows(
        &self,
        returning: Option<&Returning>,
        parameters: &[Value<'_>],
        execution: &Execution,
    ) -> Result<Option<RecordBatch>, SqlError> {
        let Some(returning) = returning else { return Ok(None) };
        let rows = self.kept.iter().flatten().map(|kept| match &kept.written {
            Written::Updated(row) => row.as_slice(),
            Written::Added | Written::Nothing => kept.row.as_slice(),
        });
        returning.of_rows(rows, parameters, execution).map(Some)
    }

    /// Makes all changes, or none, once no other statement holds their keys.
    ///
    /// # Errors
    /// The changes cannot be made, and nothing was changed.
    pub(crate) async fn make(
        mut self,
        inserter: &Inserter,
        waiting: Waiting<'_>,
        returning: Option<&Returning>,
        parameters: &[Value<'_>],
        execution: &Execution,
    ) -> Result<Added, SqlError> {
        let mut claims = waiting.map.claims();
        for _ in 0..ROUNDS_MAX {
            let returned = self.returned_rows(returning, parameters, execution)?;
            let differing = self.pending.make(waiting, &mut claims).await?;
            if differing.is_empty() {
                return Ok((self.count, returned));
            }
            self.again(inserter, &differing, execution)?;
        }
        Err(changed_too_often())
    }

    /// Like [`Adding::make`], for a statement without `RETURNING`; blocks this thread.
    ///
    /// # Errors
    /// Like [`Adding::make`].
    pub(crate) fn make_blocking(
        mut self,
        inserter: &Inserter,
        waiting: Waiting<'_>,
        execution: &Execution,
    ) -> Result<u64, SqlError> {
        let mut claims = waiting.map.claims();
        for _ in 0..ROUNDS_MAX {
            let differing = self.pending.make_blocking(waiting, &mut claims)?;
            if differing.is_empty() {
                return Ok(self.count);
            }
            self.again(inserter, &differing, execution)?;
        }
        Err(changed_too_often())
    }

    /// Like [`Adding::make`], without waiting. `None` if it would have to wait; nothing was changed
    /// then.
    ///
    /// # Errors
    /// Like [`Adding::make`].
    pub(crate) fn make_in_place(
        mut self,
        inserter: &Inserter,
        returning: Option<&Returning>,
        parameters: &[Value<'_>],
        execution: &Execution,
    ) -> Result<Option<Added>, SqlError> {
        let map = inserter.table().map();
        let mut claims = map.claims();
        for _ in 0..ROUNDS_MAX {
            let returned = self.returned_rows(returning, parameters, execution)?;
            match self.pending.make_in_place(map, &mut claims)? {
                Made::All => return Ok(Some((self.count, returned))),
                Made::Held(_) | Made::NobodyLeads(_) => return Ok(None),
                Made::Differ(differing) => self.again(inserter, &differing, execution)?,
            }
        }
        Err(changed_too_often())
    }
}
