//! The statements of one connection that run, and the cursors of those whose rows are not all read.
//!
//! ```text
//!            begin                     leave                      take
//!  execute ─────────► busy ─────────────────────────► idle ─────────────────► busy (fetch) ─► ..
//!                      │ close: cancelled, forgotten   │ close, or idle for too long: dropped, forgotten
//! ```
//!
//! Whoever works for a busy entry holds its [`Ticket`]; when the entry is gone by the time the work is done, so is its
//! cursor.

use std::{
    collections::{HashMap, hash_map::Entry as Place},
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use filbert_grid::query::{ColumnMeta, Cursor, Page, Running, SqlError, SqlErrorCode};
use filbert_wire::structure::SqlQueryId;
use parking_lot::Mutex;

use crate::sql_rows;

/// The numbers of a query id: of the member, then of the query.
type Key = [i64; 4];

fn key(id: &SqlQueryId) -> Key {
    [id.member_id_high, id.member_id_low, id.local_id_high, id.local_id_low]
}

/// The right to go on with an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    key: Key,
    /// Tells a later query of the same id from this one.
    number: u64,
}

/// The table of a connection.
#[derive(Default)]
pub(crate) struct Cursors(Mutex<State>);

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    next_number: u64,
    closed: bool,
}

struct Entry {
    number: u64,
    running: Option<Running>,
    /// The rows, and since when nobody asks for them; `None` while someone works on them.
    idle: Option<(Rows, Instant)>,
}

impl fmt::Debug for Cursors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cursors").field(&self.len()).finish()
    }
}

impl Cursors {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().entries.len()
    }

    /// Enters a query that begins.
    ///
    /// # Errors
    /// There are `cursors_max` already, or one of this id.
    pub(crate) fn begin(&self, id: &SqlQueryId, cursors_max: usize) -> Result<Ticket, SqlError> {
        let mut state = self.0.lock();
        if state.closed || state.entries.len() >= cursors_max {
            let text = format!(
                "this connection already has {} open cursors, the most that cursors_max allows; close results or read them to the end",
                state.entries.len()
            );
            return Err(SqlError::new(SqlErrorCode::Generic, text));
        }
        let number = state.next_number;
        state.next_number += 1;
        match state.entries.entry(key(id)) {
            Place::Occupied(_) => {
                Err(SqlError::new(SqlErrorCode::Generic, "a query with this id runs already, expected a new id"))
            }
            Place::Vacant(place) => {
                place.insert(Entry { number, running: None, idle: None });
                Ok(Ticket { key: key(id), number })
            }
        }
    }

    /// Notes how to cancel a query.
    pub(crate) fn set_running(&self, ticket: Ticket, running: Running) {
        let mut state = self.0.lock();
        if let Some(entry) = state.find(ticket) {
            entry.running = Some(running);
        }
    }

    /// Takes the rows of a query, to read a page of them.
    ///
    /// # Errors
    /// There is no such query, or someone else works on it.
    pub(crate) fn take(&self, id: &SqlQueryId) -> Result<(Ticket, Rows), SqlError> {
        let mut state = self.0.lock();
        let Some(entry) = state.entries.get_mut(&key(id)) else {
            let text = "the query's cursor is not there: it was closed, read to its end, or not read for longer than \
                        cursor_idle_timeout";
            return Err(SqlError::new(SqlErrorCode::Generic, text));
        };
        match entry.idle.take() {
            Some((rows, _)) => Ok((Ticket { key: key(id), number: entry.number }, rows)),
            None => Err(SqlError::new(SqlErrorCode::Generic, "another page of this query is being read")),
        }
    }

    /// Leaves the rows that are still to be read; drops them if the query was closed meanwhile.
    pub(crate) fn leave(&self, ticket: Ticket, rows: Rows) {
        let mut rows = Some(rows);
        let mut state = self.0.lock();
        if let Some(entry) = state.find(ticket) {
            entry.idle = rows.take().map(|rows| (rows, Instant::now()));
        }
        drop(state);
        // A cursor is dropped outside of the lock: that may take a while.
        drop(rows);
    }

    /// Forgets a query that is over.
    pub(crate) fn end(&self, ticket: Ticket) {
        let mut state = self.0.lock();
        let ended = state.find(ticket).is_some().then(|| state.entries.remove(&ticket.key));
        drop(state);
        drop(ended);
    }

    /// Ends a query, wherever it stands.
    pub(crate) fn close(&self, id: &SqlQueryId) {
        let closed = self.0.lock().entries.remove(&key(id));
        if let Some(entry) = closed {
            entry.close();
        }
    }

    /// Ends all queries that nobody has asked for rows of for `timeout`.
    pub(crate) fn close_idle(&self, now: Instant, timeout: Duration) {
        let mut state = self.0.lock();
        if state.entries.is_empty() {
            return;
        }
        let is_over = |entry: &mut Entry| {
            entry.idle.as_ref().is_some_and(|(_, since)| now.saturating_duration_since(*since) > timeout)
        };
        let closed: Vec<Entry> = state.entries.extract_if(|_, entry| is_over(entry)).map(|(_, entry)| entry).collect();
        drop(state);
        closed.into_iter().for_each(Entry::close);
    }

    /// Ends all queries for good: the client is gone.
    pub(crate) fn close_all(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        let entries = std::mem::take(&mut state.entries);
        drop(state);
        entries.into_values().for_each(Entry::close);
    }
}

impl State {
    fn find(&mut self, ticket: Ticket) -> Option<&mut Entry> {
        self.entries.get_mut(&ticket.key).filter(|entry| entry.number == ticket.number)
    }
}

impl Entry {
    fn close(self) {
        // Rows end their query by being dropped; where there are none, someone works on them.
        if self.idle.is_none()
            && let Some(running) = self.running
        {
            running.cancel();
        }
    }
}

/// How large a page may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageLimits {
    pub(crate) rows_max: usize,
    pub(crate) bytes_max: usize,
}

/// The rows of a result that are still to be read.
pub(crate) struct Rows {
    /// `None` when it has given its last page.
    cursor: Option<Box<dyn Cursor>>,
    /// What is left of a page that was too large for one reply.
    rest: Option<Page>,
    pub(crate) columns: Arc<[ColumnMeta]>,
    pub(crate) is_infinite: bool,
}

impl Rows {
    pub(crate) fn new(cursor: Box<dyn Cursor>) -> Self {
        let (columns, is_infinite) = (cursor.columns().clone(), cursor.is_infinite());
        Self { cursor: Some(cursor), rest: None, columns, is_infinite }
    }

    /// The next page, if it is there without waiting.
    pub(crate) fn page_now(&mut self, limits: PageLimits) -> Option<Result<Page, SqlError>> {
        if let Some(rest) = self.rest.take() {
            return Some(Ok(self.cut(rest, limits)));
        }
        let page = self.cursor.as_mut()?.page_now(limits.rows_max)?;
        Some(page.map(|page| self.cut(page, limits)))
    }

    /// The next page as soon as it is there.
    pub(crate) fn page(
        mut self,
        limits: PageLimits,
        reply: impl FnOnce(Rows, Result<Page, SqlError>) + Send + 'static,
    ) {
        if let Some(page) = self.page_now(limits) {
            return reply(self, page);
        }
        let Some(cursor) = self.cursor.take() else {
            return reply(self, Err(SqlError::new(SqlErrorCode::Generic, "all rows of this query are read")));
        };
        let reply = move |cursor, page: Result<Page, SqlError>| {
            self.cursor = Some(cursor);
            let page = page.map(|page| self.cut(page, limits));
            reply(self, page);
        };
        cursor.page(limits.rows_max, Box::new(reply));
    }

    /// As much of a page as one reply may have; the rest is kept.
    fn cut(&mut self, page: Page, limits: PageLimits) -> Page {
        if page.last {
            self.cursor = None;
        }
        let count = sql_rows::rows_within(&page.rows, limits.bytes_max).min(limits.rows_max);
        if count >= page.rows.num_rows() {
            return page;
        }
        let rest = page.rows.slice(count, page.rows.num_rows() - count);
        self.rest = Some(Page { rows: rest, last: page.last });
        Page { rows: page.rows.slice(0, count), last: false }
    }
}
