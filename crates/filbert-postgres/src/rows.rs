//! The rows of a result on their way to the client: page by page, as fast as it reads them.

use filbert_data::dates::Zone;
use std::sync::Arc;

use arrow_array::RecordBatch;
use filbert_grid::query::{ColumnMeta, ColumnReader, Cursor, Page, Running, SqlError};
use filbert_grid::{Exhausted, MemoryBudget, Reservation};
use tokio::sync::oneshot;

use crate::{
    copy::out::CopyWriter,
    error::{Outcome, PgError, sqlstate},
    portals::format_of,
    session::Session,
    types::{self, PgType},
    wire::{Format, Out, RowField},
};

/// A page of more than this has long values.
const LONG_PAGE_BYTES: usize = 4 << 20;

/// The rows of a result that are still to be read.
pub(crate) struct Rows {
    /// `None` when it has given its last page.
    cursor: Option<Box<dyn Cursor>>,
    pub(crate) columns: Arc<[ColumnMeta]>,
    /// The page at hand, and how many of its rows are read.
    page: Option<RecordBatch>,
    at: usize,
    /// How the query is cancelled, if it may be waited for, and room for what the engine has of it.
    running: Option<(Running, Reservation)>,
    /// Room for the page, while it waits for a client that does not read.
    room: Option<Reservation>,
    /// Rows that were read.
    pub(crate) count: u64,
}

impl Rows {
    pub(crate) fn new(cursor: Box<dyn Cursor>, running: Option<(Running, Reservation)>) -> Rows {
        let columns = cursor.columns().clone();
        Rows { cursor: Some(cursor), columns, page: None, at: 0, running, room: None, count: 0 }
    }

    /// The page at hand.
    pub(crate) fn page(&self) -> Option<&RecordBatch> {
        self.page.as_ref()
    }

    /// Bytes of the page at hand.
    pub(crate) fn bytes(&self) -> usize {
        self.page.as_ref().map_or(0, RecordBatch::get_array_memory_size)
    }

    /// Takes the first page if it is there already, so that its bytes are known.
    ///
    /// # Errors
    /// Those of the query.
    pub(crate) fn look(&mut self, rows_max: usize) -> Result<(), SqlError> {
        match self.cursor.as_mut().filter(|_| self.page.is_none()).and_then(|cursor| cursor.page_now(rows_max)) {
            Some(page) => {
                self.take(page?);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether all rows were read. A page that says that it is the last one saves asking for another.
    fn is_over(&self) -> bool {
        self.cursor.is_none() && self.page.as_ref().is_none_or(|page| self.at >= page.num_rows())
    }

    fn take(&mut self, page: Page) {
        if page.last {
            self.cursor = None;
        }
        self.page = Some(page.rows);
        self.at = 0;
    }
}

/// Where rows go, and how they are written.
pub(crate) enum Sink {
    /// `DataRow` messages: the type and the format of each column.
    Data(Vec<(PgType, Format)>),
    /// `CopyData` messages.
    Copy(CopyWriter),
    /// Nowhere: they are only passed.
    Nowhere,
}

impl Sink {
    /// `DataRow` messages.
    pub(crate) fn data(columns: &[ColumnMeta], formats: &[Format]) -> Sink {
        let columns = columns.iter().enumerate();
        Sink::Data(columns.map(|(at, column)| (PgType::of_column(column), format_of(formats, at))).collect())
    }

    /// Writes one row.
    fn write(
        &mut self,
        readers: &[ColumnReader<'_>],
        row: usize,
        zone: &Zone,
        out: &mut Out,
    ) -> Result<(), Box<PgError>> {
        match self {
            Sink::Data(columns) => out.message(b'D', |out| {
                out.count(readers.len());
                readers
                    .iter()
                    .zip(columns)
                    .try_for_each(|(reader, (pg_type, format))| write_value(reader, row, *pg_type, *format, zone, out))
            }),
            Sink::Copy(writer) => writer.write(readers, row, zone, out),
            Sink::Nowhere => Ok(()),
        }
    }
}

/// Writes a value with its length in front.
#[inline]
pub(crate) fn write_value(
    reader: &ColumnReader<'_>,
    row: usize,
    pg_type: PgType,
    format: Format,
    zone: &Zone,
    out: &mut Out,
) -> Result<(), Box<PgError>> {
    if reader.is_null(row) {
        out.i32(-1);
        return Ok(());
    }
    let value = reader.get(row);
    out.sized(false, |out| match format {
        Format::Text => types::write_text(&value, pg_type, zone, &mut out.0),
        Format::Binary => types::write_binary(&value, pg_type, &mut out.0),
    })
}

/// Describes columns as a message does.
pub(crate) fn describe_columns(columns: &[ColumnMeta], formats: &[Format], out: &mut Out) {
    out.row_description(columns.iter().enumerate().map(|(at, column)| {
        let pg_type = PgType::of_column(column);
        RowField {
            name: &column.name,
            oid: pg_type.oid(),
            size: pg_type.size(),
            modifier: types::modifier_of(column),
            format: format_of(formats, at),
        }
    }));
}

/// Readers of the columns of a page.
pub(crate) fn readers<'a>(
    page: &'a RecordBatch,
    columns: &[ColumnMeta],
) -> Result<Vec<ColumnReader<'a>>, Box<PgError>> {
    let unreadable = |column: &ColumnMeta| {
        let message = format!("column {:?} does not come as {}", column.name, column.field_type);
        PgError::new(sqlstate::INTERNAL, message)
    };
    let pairs = columns.iter().zip(page.columns());
    pairs
        .map(|(column, array)| ColumnReader::new(array.as_ref(), &column.field_type).ok_or_else(|| unreadable(column)))
        .collect()
}

/// What a client is told that does not read its rows, of which there are too many to wait for it.
#[cold]
fn unread(exhausted: &Exhausted) -> Box<PgError> {
    PgError::new(sqlstate::OUT_OF_MEMORY, exhausted.to_string())
        .with_hint("Read the rows as they come, or fewer and shorter ones at a time.")
}

/// A page with its room, if it is a long one: others have room while their client does not read. It is taken where the page was made, since
/// many may be made before the first one is looked at.
fn with_room(page: Result<Page, SqlError>, budget: &MemoryBudget) -> Result<(Page, Option<Reservation>), Box<PgError>> {
    let page = page?;
    let bytes = page.rows.get_array_memory_size();
    let room = if bytes > LONG_PAGE_BYTES { Some(budget.reserve(bytes).map_err(|full| unread(&full))?) } else { None };
    Ok((page, room))
}

impl Session {
    /// Sends rows, `rows_max` at most, or all if that is 0. Returns whether there may be more.
    pub(crate) async fn send_rows(&mut self, rows: &mut Rows, sink: &mut Sink, rows_max: u64) -> Outcome<bool> {
        if let Some((running, _)) = &rows.running {
            self.slot().set_running(running.clone());
        }
        let mut left = if rows_max == 0 { u64::MAX } else { rows_max };
        while left > 0 && self.next_page(rows, left).await? {
            self.send_page(rows, sink, &mut left).await?;
        }
        // Who keeps the rows takes room for what is left of them.
        rows.room = None;
        Ok(!rows.is_over())
    }

    /// Sends what is left of the page at hand.
    async fn send_page(&mut self, rows: &mut Rows, sink: &mut Sink, left: &mut u64) -> Outcome {
        let Some(page) = rows.page.clone() else { return Ok(()) };
        let readers = readers(&page, &rows.columns)?;
        let bytes = rows.bytes();
        while *left > 0 && rows.at < page.num_rows() {
            let start = self.link.out.len();
            if let Err(error) = sink.write(&readers, rows.at, &self.zone, &mut self.link.out) {
                self.link.out.0.truncate(start);
                return Err(error.into());
            }
            rows.at += 1;
            rows.count += 1;
            *left -= 1;
            if self.link.out.len() >= self.shared.config.write_buffer_bytes {
                // No more is written than the client reads.
                let room = rows.room.get_or_insert_with(|| self.shared.grid.budget().empty());
                self.link.flush_beside(room, bytes).await?.map_err(|exhausted| unread(&exhausted))?;
                if self.slot().is_cancelled() {
                    return Err(PgError::cancelled().into());
                }
            }
        }
        Ok(())
    }

    /// Sees to it that there is a row at hand, unless all are read.
    pub(crate) async fn next_page(&mut self, rows: &mut Rows, wanted: u64) -> Outcome<bool> {
        let rows_max = usize::try_from(wanted).unwrap_or(usize::MAX).min(self.shared.config.page_rows);
        while rows.page.as_ref().is_none_or(|page| rows.at >= page.num_rows()) {
            (rows.page, rows.room) = (None, None);
            let Some(mut cursor) = rows.cursor.take() else { return Ok(false) };
            if self.slot().is_cancelled() {
                return Err(PgError::cancelled().into());
            }
            let page: Result<Page, SqlError> = match cursor.page_now(rows_max) {
                Some(page) => {
                    rows.cursor = Some(cursor);
                    page
                }
                None => {
                    let (sender, receiver) = oneshot::channel();
                    let budget = self.shared.grid.budget().clone();
                    // Nobody waits any more if the client is gone; the cursor ends by being dropped.
                    let reply = move |cursor, page| drop(sender.send((cursor, with_room(page, &budget))));
                    cursor.page(rows_max, Box::new(reply));
                    let (cursor, page) = self.wait(receiver).await?;
                    rows.cursor = Some(cursor);
                    let (page, room) = page?;
                    rows.room = room;
                    Ok(page)
                }
            };
            rows.take(page?);
        }
        Ok(true)
    }
}
