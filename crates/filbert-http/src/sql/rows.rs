//! Streams the rows of a result to the client. Pages are requested as fast as the client reads.
//!
//! The head of the response is sent when the first page is available, so that an error before the
//! first row is an error response with its own status. A later error closes the connection. This
//! shows clients that the response is incomplete.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use filbert_grid::query::{ColumnMeta, ColumnReader, Cursor, Page, Running, SqlError};
use hyper::body::Frame;

use super::run::{self, CancelOnDrop, PageReceiver};
use crate::answer;
use crate::failure::Failure;

/// The size of one piece of a response in bytes: enough to keep a socket busy.
const PIECE_BYTES: usize = 256 << 10;

/// Builds the response of a statement with rows.
pub(crate) async fn answer(
    mut cursor: Box<dyn Cursor>,
    running: Option<Running>,
    page_rows: usize,
    with_types: bool,
    started: Instant,
) -> Result<Response, Failure> {
    let columns = cursor.columns().clone();
    let mut guard = CancelOnDrop::new(running);
    let (cursor, page) = loop {
        let (next, page) = match cursor.page_now(page_rows) {
            Some(page) => (cursor, page),
            None => run::ask_page(cursor, page_rows).await.map_err(|_| run::page_gone())?,
        };
        let page = page?;
        // An error may still follow a page without rows.
        if page.last || page.rows.num_rows() > 0 {
            break (next, page);
        }
        cursor = next;
    };
    let mut rows = Rows {
        columns,
        page_rows,
        count: 0,
        started,
        wrote_start: false,
        with_types,
        next: Next::Idle((!page.last).then_some(cursor)),
        page: Some(page),
        next_row: 0,
        guard: CancelOnDrop::new(guard.disarm()),
    };
    let first = rows.piece()?;
    let content_type = [(CONTENT_TYPE, "application/json")];
    if rows.is_done() {
        return Ok((content_type, first).into_response());
    }
    let body = RowsBody { first: Some(first), rows };
    Ok((content_type, Body::new(body)).into_response())
}

/// The source of the next page.
enum Next {
    /// This cursor. `None`: there are no more pages.
    Idle(Option<Box<dyn Cursor>>),
    /// The page is requested and has not arrived.
    Waiting(PageReceiver),
}

/// The unsent part of a result.
struct Rows {
    columns: Arc<[ColumnMeta]>,
    page_rows: usize,
    count: u64,
    started: Instant,
    wrote_start: bool,
    with_types: bool,
    next: Next,
    /// The page that is being written. `None` after its last row.
    page: Option<Page>,
    next_row: usize,
    guard: CancelOnDrop,
}

impl Rows {
    /// Whether everything is written, including the end of the response.
    fn is_done(&self) -> bool {
        self.page.is_none() && matches!(self.next, Next::Idle(None))
    }

    /// Writes rows of the current page until the page ends or the piece is full. Writes the end of
    /// the response after the last page.
    fn piece(&mut self) -> Result<Bytes, Failure> {
        let mut out = Vec::with_capacity(4096);
        if !self.wrote_start {
            self.wrote_start = true;
            answer::rows_start(&mut out, &self.columns, self.with_types);
        }
        let Some(page) = &self.page else { return Ok(out.into()) };
        let readers = readers(page, &self.columns)?;
        let rows = page.rows.num_rows();
        while self.next_row < rows && out.len() < PIECE_BYTES {
            out.extend_from_slice(if self.count > 0 { b",[" } else { b"[" });
            for (at, reader) in readers.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                answer::write_value(&mut out, &reader.get(self.next_row));
            }
            out.push(b']');
            self.count += 1;
            self.next_row += 1;
        }
        if self.next_row >= rows {
            let is_last = page.last;
            self.page = None;
            self.next_row = 0;
            if is_last {
                self.next = Next::Idle(None);
                self.guard.disarm();
                answer::rows_end(&mut out, self.count, self.started);
            }
        }
        Ok(out.into())
    }

    /// Waits for the next page, if there is one.
    fn poll_page(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SqlError>> {
        let (cursor, page) = match &mut self.next {
            Next::Waiting(receiver) => match ready!(Pin::new(receiver).poll(context)) {
                Ok(answered) => answered,
                Err(_) => return Poll::Ready(Err(run::page_gone())),
            },
            Next::Idle(cursor) => {
                let Some(mut cursor) = cursor.take() else { return Poll::Ready(Ok(())) };
                match cursor.page_now(self.page_rows) {
                    Some(page) => (cursor, page),
                    None => {
                        self.next = Next::Waiting(run::ask_page(cursor, self.page_rows));
                        return self.poll_page(context);
                    }
                }
            }
        };
        let page = page?;
        self.next = Next::Idle((!page.last).then_some(cursor));
        self.page = Some(page);
        Poll::Ready(Ok(()))
    }
}

fn readers<'p>(page: &'p Page, columns: &[ColumnMeta]) -> Result<Vec<ColumnReader<'p>>, Failure> {
    let arrays = page.rows.columns();
    let reader = |(array, column): (&'p arrow_array::ArrayRef, &ColumnMeta)| {
        ColumnReader::new(array.as_ref(), &column.field_type).ok_or_else(|| {
            let found = array.data_type();
            Failure::unhandled(format!("column {:?} of type {} came as {found}", column.name, column.field_type))
        })
    };
    if arrays.len() != columns.len() {
        return Err(Failure::unhandled(format!("{} columns came, expected {}", arrays.len(), columns.len())));
    }
    arrays.iter().zip(columns).map(reader).collect()
}

/// The body of a response. It is written while the client reads.
struct RowsBody {
    first: Option<Bytes>,
    rows: Rows,
}

impl HttpBody for RowsBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let rows = &mut self.rows;
        loop {
            if rows.is_done() {
                return Poll::Ready(None);
            }
            let piece = match &rows.page {
                Some(_) => rows.piece(),
                None => match ready!(rows.poll_page(context)) {
                    Ok(()) => continue,
                    Err(error) => Err(error.into()),
                },
            };
            return match piece {
                // A page without rows has no bytes to send.
                Ok(piece) if piece.is_empty() => continue,
                Ok(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                Err(failure) => {
                    let message = failure.message();
                    tracing::info!("answer broken off after {} rows: {message}", rows.count);
                    Poll::Ready(Some(Err(io::Error::other(message))))
                }
            };
        }
    }
}
