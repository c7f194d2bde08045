//! Rows on their way in, many at a time: `bulk_args`, `COPY FROM`.

use std::sync::Arc;

use filbert_data::Value;

use super::{ColumnMeta, SqlError};

/// What becomes of the rows beside one that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// They are written: each row stands for itself.
    Each,
    /// None is written: rows are kept until [`RowWriter::finish`].
    All,
}

/// Writes rows into a table as one statement says (`INSERT .. VALUES (?, ..)`, `COPY .. FROM STDIN`), which is understood once.
pub trait RowWriter: Send {
    /// The values that a row has: the statement's parameters in order, or the columns of `COPY`.
    fn columns(&self) -> &Arc<[ColumnMeta]>;

    /// Takes rows: `values` has the values of one after the other, each row as many as there are columns. Values are converted to
    /// the columns' types. `on_row` is called once for each row, in order, with the number of rows that it changed: 1, or 0 where it
    /// was there and `ON CONFLICT DO NOTHING` says so. With [`WriteMode::All`] that is before anything is written.
    ///
    /// May wait for locks of entries: not for network tasks.
    fn write(&mut self, values: &[Value<'_>], on_row: &mut dyn FnMut(Result<u64, SqlError>));

    /// Ends the writing: with [`WriteMode::All`] writes all rows. Dropping it instead writes none of them.
    ///
    /// # Errors
    /// The rows cannot be written, such as for a key that is there; nothing is changed then in [`WriteMode::All`].
    fn finish(self: Box<Self>) -> Result<u64, SqlError>;
}

/// Called once with a writer.
pub type RowWriterReply = Box<dyn FnOnce(Result<Box<dyn RowWriter>, SqlError>) + Send>;
