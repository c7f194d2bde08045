//! The unread rows of a result: the current page, and a cursor for the following pages.
//!
//! It must not know the destination of rows (`sending.rs`) and their formats (`columns.rs`).

use std::sync::Arc;

use arrow_array::RecordBatch;
use filbert_grid::{
    Reservation,
    query::{ColumnMeta, Cursor, Page, Running, SqlError},
};

/// The unread rows of a result.
pub(crate) struct Rows {
    /// `None` after the cursor has returned its last page.
    pub(crate) cursor: Option<Box<dyn Cursor>>,
    pub(crate) columns: Arc<[ColumnMeta]>,
    /// The current page, and the number of its rows that were read.
    pub(crate) page: Option<RecordBatch>,
    pub(crate) at: usize,
    /// The handle that cancels the query, and the memory reservation of the engine's copy of its
    /// text. `None` if the statement ran in place.
    pub(crate) running: Option<(Running, Reservation)>,
    /// The memory reservation of the page while the client does not read.
    pub(crate) reservation: Option<Reservation>,
    /// The number of rows that were read.
    pub(crate) count: u64,
}

impl Rows {
    pub(crate) fn new(cursor: Box<dyn Cursor>, running: Option<(Running, Reservation)>) -> Rows {
        let columns = cursor.columns().clone();
        Rows { cursor: Some(cursor), columns, page: None, at: 0, running, reservation: None, count: 0 }
    }

    /// The current page.
    pub(crate) fn page(&self) -> Option<&RecordBatch> {
        self.page.as_ref()
    }

    /// The size of the current page in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.page.as_ref().map_or(0, RecordBatch::get_array_memory_size)
    }

    /// Takes the first page if it is available without waiting, so that its size is known.
    ///
    /// # Errors
    /// The errors of the query.
    pub(crate) fn fetch_first_page(&mut self, rows_max: usize) -> Result<(), SqlError> {
        match self.cursor.as_mut().filter(|_| self.page.is_none()).and_then(|cursor| cursor.page_now(rows_max)) {
            Some(page) => {
                self.take(page?);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether all rows were read. A page that is marked as the last one saves the request for
    /// another page.
    pub(crate) fn is_over(&self) -> bool {
        self.cursor.is_none() && self.page.as_ref().is_none_or(|page| self.at >= page.num_rows())
    }

    pub(crate) fn take(&mut self, page: Page) {
        if page.last {
            self.cursor = None;
        }
        self.page = Some(page.rows);
        self.at = 0;
    }
}
