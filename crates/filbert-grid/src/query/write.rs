//! Bulk insertion of rows: `bulk_args`, `COPY FROM`.

use std::sync::Arc;

use filbert_data::Value;

use super::{ColumnMeta, SqlError};

/// The effect of a row that cannot be written on the other rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// The other rows are written: each row is independent.
    Each,
    /// No row is written: rows are buffered until [`RowWriter::finish`].
    All,
}

/// Writes rows into a table by one statement (`INSERT .. VALUES (?, ..)`, `COPY .. FROM STDIN`),
/// which is planned once.
pub trait RowWriter: Send {
    /// The columns of a row: the statement's parameters in order, or the columns of `COPY`.
    fn columns(&self) -> &Arc<[ColumnMeta]>;

    /// Adds rows. `values` contains the values of the rows, one row after the other, each with one
    /// value per column. Values are converted to the columns' types. `on_row` is called once for
    /// each row, in order, with the number of changed rows: 1, or 0 if the row exists and the
    /// statement has `ON CONFLICT DO NOTHING`. With [`WriteMode::All`], this happens before any row
    /// is written.
    ///
    /// May block on locks of entries. Must not be called on a network task.
    fn write(&mut self, values: &[Value<'_>], on_row: &mut dyn FnMut(Result<u64, SqlError>));

    /// Completes the insertion: with [`WriteMode::All`], writes all rows. If the writer is dropped
    /// instead, none of these rows is written.
    ///
    /// # Errors
    /// The rows cannot be written, for example because of a duplicate key. With [`WriteMode::All`],
    /// nothing was changed then.
    fn finish(self: Box<Self>) -> Result<u64, SqlError>;
}

/// Called exactly once with a row writer.
pub type RowWriterReply = Box<dyn FnOnce(Result<Box<dyn RowWriter>, SqlError>) + Send>;
