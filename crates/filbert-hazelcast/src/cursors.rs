//! The running statements of one connection, and its cursors with unread rows.
//!
//! ```text
//!            begin              leave              take
//!  execute ─────────► busy ──────────────► idle ───────────► busy (fetch) ─► ..
//!                      │ close:             │ close, or idle for too long:
//!                      │ cancelled, removed │ dropped, removed
//! ```
//!
//! The worker of a busy entry holds its [`Ticket`]. If the entry is removed before the work is
//! done, the cursor is dropped as well.

use std::{
    collections::{HashMap, hash_map::Entry as MapEntry},
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use filbert_grid::query::{ColumnMeta, Cursor, Page, Running, SqlError, SqlErrorCode};
use filbert_wire::structure::SqlQueryId;
use parking_lot::Mutex;

use crate::sql_rows;

/// A query id: the numbers of the member, then those of the query.
type Key = [i64; 4];

fn key(id: &SqlQueryId) -> Key {
    [id.member_id_high, id.member_id_low, id.local_id_high, id.local_id_low]
}

/// The right to continue with an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    key: Key,
    /// Distinguishes this query from a later one with the same id.
    number: u64,
}

/// The running statements and open cursors of a connection.
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
    /// The rows, and the time since which they wait for a request; `None` while a page is being
    /// read.
    idle: Option<(Rows, Instant)>,
}

impl fmt::Debug for Cursors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cursors").field(&self.len()).finish()
    }
}

impl Cursors {
    /// The number of running statements and open cursors.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().entries.len()
    }

    /// Adds a query that begins.
    ///
    /// # Errors
    /// There are `cursors_max` queries already, or one with this id.
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
            MapEntry::Occupied(_) => {
                Err(SqlError::new(SqlErrorCode::Generic, "a query with this id runs already, expected a new id"))
            }
            MapEntry::Vacant(vacant) => {
                vacant.insert(Entry { number, running: None, idle: None });
                Ok(Ticket { key: key(id), number })
            }
        }
    }

    /// Stores the handle that cancels a query.
    pub(crate) fn set_running(&self, ticket: Ticket, running: Running) {
        let mut state = self.0.lock();
        if let Some(entry) = state.find(ticket) {
            entry.running = Some(running);
        }
    }

    /// Takes the rows of a query, for reading a page.
    ///
    /// # Errors
    /// There is no such query, or another page of it is being read.
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

    /// Puts back rows that are not all read. Drops them if the query was closed in the meantime.
    pub(crate) fn leave(&self, ticket: Ticket, rows: Rows) {
        let mut rows = Some(rows);
        let mut state = self.0.lock();
        if let Some(entry) = state.find(ticket) {
            entry.idle = rows.take().map(|rows| (rows, Instant::now()));
        }
        drop(state);
        // A cursor is dropped outside of the lock, because that may take a while.
        drop(rows);
    }

    /// Removes a query that has ended.
    pub(crate) fn end(&self, ticket: Ticket) {
        let mut state = self.0.lock();
        let ended = state.find(ticket).is_some().then(|| state.entries.remove(&ticket.key));
        drop(state);
        drop(ended);
    }

    /// Ends a query in any state.
    pub(crate) fn close(&self, id: &SqlQueryId) {
        let closed = self.0.lock().entries.remove(&key(id));
        if let Some(entry) = closed {
            entry.close();
        }
    }

    /// Ends all queries whose rows were not requested for `timeout`.
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

    /// Ends all queries permanently, because the client has disconnected.
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
        // Dropping the rows ends their query. If the rows are not here, a page of them is being
        // read.
        if self.idle.is_none()
            && let Some(running) = self.running
        {
            running.cancel();
        }
    }
}

/// The limits of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageLimits {
    pub(crate) rows_max: usize,
    pub(crate) bytes_max: usize,
}

/// The unread rows of a result.
pub(crate) struct Rows {
    /// `None` after its last page.
    cursor: Option<Box<dyn Cursor>>,
    /// The rest of a page that was too large for one reply.
    rest: Option<Page>,
    pub(crate) columns: Arc<[ColumnMeta]>,
    pub(crate) is_infinite: bool,
}

impl Rows {
    pub(crate) fn new(cursor: Box<dyn Cursor>) -> Self {
        let (columns, is_infinite) = (cursor.columns().clone(), cursor.is_infinite());
        Self { cursor: Some(cursor), rest: None, columns, is_infinite }
    }

    /// The next page, if it is available without waiting.
    pub(crate) fn page_now(&mut self, limits: PageLimits) -> Option<Result<Page, SqlError>> {
        if let Some(rest) = self.rest.take() {
            return Some(Ok(self.cut(rest, limits)));
        }
        let page = self.cursor.as_mut()?.page_now(limits.rows_max)?;
        Some(page.map(|page| self.cut(page, limits)))
    }

    /// Passes the next page to `reply` when it is available.
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

    /// Cuts a page to the limits of one reply. The rest is kept.
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
