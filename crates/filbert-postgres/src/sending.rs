//! Sending rows to the client, page by page, as fast as the client reads them.

use filbert_data::dates::Zone;
use filbert_grid::{
    Exhausted, MemoryBudget, Reservation,
    query::{ColumnMeta, ColumnReader, Page, SqlError},
};
use tokio::sync::oneshot;

use crate::{
    columns::{format_of, readers, write_value},
    copy_format::CopyWriter,
    error::{Outcome, PgError, sqlstate},
    rows::Rows,
    session::Session,
    types::PgType,
    wire::{Format, Out},
};

/// A page that is larger than this has long values. It needs a memory reservation.
const LONG_PAGE_BYTES: usize = 4 << 20;

/// The destination and the format of rows.
pub(crate) enum Sink {
    /// `DataRow` messages: the type and the format of each column.
    Data(Vec<(PgType, Format)>),
    /// `CopyData` messages.
    Copy(CopyWriter),
    /// No destination: rows are only skipped.
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

/// The error of a client that does not read its rows, when there is no memory left to hold them.
#[cold]
fn unread(exhausted: &Exhausted) -> Box<PgError> {
    PgError::new(sqlstate::OUT_OF_MEMORY, exhausted.to_string())
        .with_hint("Read the rows as they come, or fewer and shorter ones at a time.")
}

/// Returns a page with a memory reservation if the page is large. Smaller pages get a reservation
/// only while their client does not read. The reservation is made on the thread that produced the
/// page, since many pages may be produced before the first one is received.
fn with_reservation(
    page: Result<Page, SqlError>,
    budget: &MemoryBudget,
) -> Result<(Page, Option<Reservation>), Box<PgError>> {
    let page = page?;
    let bytes = page.rows.get_array_memory_size();
    let reservation =
        if bytes > LONG_PAGE_BYTES { Some(budget.reserve(bytes).map_err(|full| unread(&full))?) } else { None };
    Ok((page, reservation))
}

impl Session {
    /// Sends at most `rows_max` rows, or all if `rows_max` is 0. Returns whether there may be more.
    pub(crate) async fn send_rows(&mut self, rows: &mut Rows, sink: &mut Sink, rows_max: u64) -> Outcome<bool> {
        if let Some((running, _)) = &rows.running {
            self.slot().set_running(running.clone());
        }
        let mut left = if rows_max == 0 { u64::MAX } else { rows_max };
        while left > 0 && self.next_page(rows, left).await? {
            self.send_page(rows, sink, &mut left).await?;
        }
        // The owner of the rows reserves memory for the remaining ones.
        rows.reservation = None;
        Ok(!rows.is_over())
    }

    /// Sends the rest of the current page.
    async fn send_page(&mut self, rows: &mut Rows, sink: &mut Sink, left: &mut u64) -> Outcome {
        let Some(page) = rows.page.clone() else { return Ok(()) };
        let readers = readers(&page, &rows.columns)?;
        let bytes = rows.bytes();
        while *left > 0 && rows.at < page.num_rows() {
            let start = self.socket.out.len();
            if let Err(error) = sink.write(&readers, rows.at, &self.zone, &mut self.socket.out) {
                self.socket.out.0.truncate(start);
                return Err(error.into());
            }
            rows.at += 1;
            rows.count += 1;
            *left -= 1;
            if self.socket.out.len() >= self.shared.config.write_buffer_bytes {
                // Back-pressure: no more is written than the client reads.
                let reservation = rows.reservation.get_or_insert_with(|| self.shared.grid.kept_budget().empty());
                self.socket.flush_beside(reservation, bytes).await?.map_err(|exhausted| unread(&exhausted))?;
                if self.slot().is_cancelled() {
                    return Err(PgError::cancelled().into());
                }
            }
        }
        Ok(())
    }

    /// Reads pages until an unread row is available. Returns `false` if all rows are read.
    pub(crate) async fn next_page(&mut self, rows: &mut Rows, wanted: u64) -> Outcome<bool> {
        let rows_max = usize::try_from(wanted).unwrap_or(usize::MAX).min(self.shared.config.page_rows);
        while rows.page.as_ref().is_none_or(|page| rows.at >= page.num_rows()) {
            (rows.page, rows.reservation) = (None, None);
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
                    let budget = self.shared.grid.kept_budget().clone();
                    // The receiver is gone if the client disconnected. The dropped cursor then ends
                    // the query.
                    let reply = move |cursor, page| drop(sender.send((cursor, with_reservation(page, &budget))));
                    cursor.page(rows_max, Box::new(reply));
                    let (cursor, page) = self.wait(receiver).await?;
                    rows.cursor = Some(cursor);
                    let (page, reservation) = page?;
                    rows.reservation = reservation;
                    Ok(page)
                }
            };
            rows.take(page?);
        }
        Ok(true)
    }
}
