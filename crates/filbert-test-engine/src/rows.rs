//! The rows of results.

use std::{sync::Arc, thread};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use filbert_data::FieldType;
use filbert_grid::query::{ColumnMeta, Cursor, Page, PageReply, SqlError, SqlErrorCode};

use crate::{failures, hanging::Hang, seen::Seen};

/// A column that may contain nulls.
pub fn column(name: &str, field_type: FieldType) -> ColumnMeta {
    ColumnMeta { name: name.to_owned(), field_type, nullable: true, pg_type: None, length: None }
}

/// The columns of [`Numbers`].
pub(crate) fn numbers() -> Arc<[ColumnMeta]> {
    Arc::from([column("id", FieldType::BigInt), column("text", FieldType::Varchar)])
}

/// The columns of a result that is one text.
pub(crate) fn one_text() -> Arc<[ColumnMeta]> {
    Arc::from([column("text", FieldType::Varchar)])
}

/// A cursor over rows. Counts itself and its pages.
pub(crate) struct Rows {
    columns: Arc<[ColumnMeta]>,
    content: Content,
    /// Whether pages are available without waiting.
    is_now: bool,
    seen: Arc<Seen>,
}

enum Content {
    /// One page; `None` if it was read.
    Page(Option<RecordBatch>),
    Numbers(Numbers),
}

/// Rows with the numbers from `next` to `end`.
pub(crate) struct Numbers {
    next: usize,
    end: usize,
    /// The size of a text; `None` = texts with the numbers of their rows.
    text_bytes: Option<usize>,
    then: Then,
}

/// The end of a result, after its rows.
pub(crate) enum Then {
    Last,
    Fail,
    Hang(Hang),
}

impl Numbers {
    pub(crate) fn new(rows: usize, then: Then) -> Numbers {
        Numbers { next: 0, end: rows, text_bytes: None, then }
    }

    pub(crate) fn of_texts(rows: usize, bytes: usize) -> Numbers {
        Numbers { text_bytes: Some(bytes), ..Numbers::new(rows, Then::Last) }
    }

    /// The handle of a result that hangs, if all of its rows were read.
    fn hang(&self) -> Option<Hang> {
        match &self.then {
            Then::Hang(hang) if self.next == self.end => Some(hang.clone()),
            _ => None,
        }
    }

    fn page(&mut self, rows_max: usize) -> Result<Page, SqlError> {
        if self.next == self.end && matches!(self.then, Then::Fail) {
            return Err(failures::division());
        }
        let end = self.next.saturating_add(rows_max).min(self.end);
        let text = |row: usize| match self.text_bytes {
            Some(bytes) => "x".repeat(bytes),
            None => format!("row {row}"),
        };
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((self.next..end).map(|row| row as i64)));
        let texts = (self.next..end).map(|row| row.is_multiple_of(2).then(|| text(row)));
        let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
        let rows = batch([("id", ids), ("text", texts)])?;
        self.next = end;
        Ok(Page { rows, last: end == self.end && matches!(self.then, Then::Last) })
    }
}

fn batch<const COLUMNS: usize>(columns: [(&str, ArrayRef); COLUMNS]) -> Result<RecordBatch, SqlError> {
    let columns = columns.map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(|error| SqlError::new(SqlErrorCode::Generic, error.to_string()))
}

impl Rows {
    /// Rows of numbers, in place or from other threads.
    pub(crate) fn of_numbers(seen: &Arc<Seen>, numbers: Numbers, is_now: bool) -> Rows {
        Rows::new(seen, self::numbers(), Content::Numbers(numbers), is_now)
    }

    /// The rows of one page, in place.
    pub(crate) fn of_page(seen: &Arc<Seen>, columns: Arc<[ColumnMeta]>, page: RecordBatch) -> Rows {
        Rows::new(seen, columns, Content::Page(Some(page)), true)
    }

    /// One text, in place.
    pub(crate) fn of_text(seen: &Arc<Seen>, text: String) -> Result<Rows, SqlError> {
        let page = batch([("text", Arc::new(StringArray::from(vec![text])) as ArrayRef)])?;
        Ok(Rows::of_page(seen, one_text(), page))
    }

    fn new(seen: &Arc<Seen>, columns: Arc<[ColumnMeta]>, content: Content, is_now: bool) -> Rows {
        seen.open_cursor();
        Rows { columns, content, is_now, seen: seen.clone() }
    }

    fn next(&mut self, rows_max: usize) -> Result<Page, SqlError> {
        let page = match &mut self.content {
            Content::Page(rows) => {
                let rows = rows.take().ok_or_else(|| failures::data("a page was requested after the last one"))?;
                Page { rows, last: true }
            }
            Content::Numbers(numbers) => numbers.page(rows_max)?,
        };
        self.seen.make_page();
        Ok(page)
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.seen.drop_cursor();
    }
}

impl Cursor for Rows {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn is_infinite(&self) -> bool {
        matches!(&self.content, Content::Numbers(Numbers { then: Then::Hang(_), .. }))
    }

    fn page_now(&mut self, rows_max: usize) -> Option<Result<Page, SqlError>> {
        self.is_now.then(|| self.next(rows_max))
    }

    fn page(mut self: Box<Self>, rows_max: usize, reply: PageReply) {
        let hang = match &self.content {
            Content::Numbers(numbers) => numbers.hang(),
            Content::Page(_) => None,
        };
        match hang {
            Some(hang) => hang.wait_on_thread(Box::new(move || reply(self, Err(failures::cancelled())))),
            None => {
                thread::spawn(move || {
                    let page = self.next(rows_max);
                    reply(self, page);
                });
            }
        }
    }
}
