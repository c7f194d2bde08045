//! A query engine that answers what tests ask of it. Its "predicates" are the first bytes of the values wanted; behind
//! `long:` they are run on another thread, and `long:hang` runs until nobody waits for it.
//!
//! | statement | result |
//! |---|---|
//! | `count n` | a count, in place |
//! | `count later n` | a count, on another thread |
//! | `rows n` | so many rows, in place |
//! | `rows later n` | so many rows, each page from another thread |
//! | `texts n` | so many rows with a text of 1,000 bytes |
//! | `parameters` | the parameters as a text |
//! | `hang` | nothing until it is cancelled |
//! | `hang after 1` | one row, then nothing until it is cancelled; the rows never end |
//! | anything else | a parsing error with a suggestion |

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use filbert_data::FieldType;
use filbert_grid::{
    Caller, Change, GridError, Map,
    query::{
        Answer, ColumnMeta, Cursor, Ending, EntryFilter, EntryProjection, MapQuery, Page, PageReply, Paging,
        PreparedQuery, QueryEngine, Running, SqlError, SqlErrorCode, Statement, StatementReply, StatementResult,
        arrow_type,
    },
};

/// The engine, and what of it is still in use.
#[derive(Default)]
pub struct Engine {
    cursors: Arc<AtomicUsize>,
    hanging: Arc<AtomicUsize>,
}

impl Engine {
    /// Cursors that were not dropped.
    pub fn cursors(&self) -> usize {
        self.cursors.load(Ordering::SeqCst)
    }

    /// Statements that wait to be cancelled.
    pub fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }

    fn cursor(&self, rows: usize, is_now: bool, text_bytes: usize) -> Rows {
        self.cursors.fetch_add(1, Ordering::SeqCst);
        let column =
            |name: &str, field_type| ColumnMeta { name: name.to_owned(), field_type, nullable: true, pg_type: None };
        let columns = [column("id", FieldType::BigInt), column("text", FieldType::Varchar)];
        Rows { columns: Arc::from(columns), next: 0, rows, is_now, text_bytes, hangs: None, open: self.cursors.clone() }
    }
}

/// Waits until it is called off.
#[derive(Default)]
struct Wait {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Wait {
    fn wait(&self) {
        let mut is_over = self.is_over.lock().unwrap();
        while !*is_over {
            is_over = self.changed.wait(is_over).unwrap();
        }
    }

    fn end(&self) {
        *self.is_over.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

struct Rows {
    columns: Arc<[ColumnMeta]>,
    next: usize,
    rows: usize,
    is_now: bool,
    text_bytes: usize,
    hangs: Option<(Arc<Wait>, Arc<AtomicUsize>)>,
    open: Arc<AtomicUsize>,
}

impl Rows {
    fn make(&mut self, rows_max: usize) -> Page {
        let end = (self.next + rows_max).min(self.rows);
        let ids = Int64Array::from_iter_values((self.next..end).map(|row| row as i64));
        let text = |row: usize| row.is_multiple_of(2).then(|| "x".repeat(self.text_bytes));
        let texts = StringArray::from_iter((self.next..end).map(text));
        let arrays: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(texts)];
        let fields = [
            Field::new("id", arrow_type(&FieldType::BigInt), true),
            Field::new("text", arrays[1].data_type().clone(), true),
        ];
        self.next = end;
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), arrays).unwrap();
        Page { rows, last: self.hangs.is_none() && end == self.rows }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn cancelled() -> SqlError {
    SqlError::new(SqlErrorCode::Cancelled, "the statement was cancelled")
}

impl Cursor for Rows {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn is_infinite(&self) -> bool {
        self.hangs.is_some()
    }

    fn page_now(&mut self, rows_max: usize) -> Option<Result<Page, SqlError>> {
        self.is_now.then(|| Ok(self.make(rows_max)))
    }

    fn page(mut self: Box<Self>, rows_max: usize, reply: PageReply) {
        thread::spawn(move || {
            if self.next == self.rows
                && let Some((wait, hanging)) = self.hangs.clone()
            {
                hanging.fetch_add(1, Ordering::SeqCst);
                wait.wait();
                hanging.fetch_sub(1, Ordering::SeqCst);
                reply(self, Err(cancelled()));
                return;
            }
            let page = self.make(rows_max);
            reply(self, Ok(page));
        });
    }
}

impl QueryEngine for Engine {
    fn execute_short(&self, statement: &Statement<'_>) -> Option<Result<StatementResult, SqlError>> {
        let (name, count) = statement.text.rsplit_once(' ')?;
        let count: usize = count.parse().ok()?;
        Some(Ok(match name {
            "count" => StatementResult::Count(count as u64),
            "rows" => StatementResult::Rows(Box::new(self.cursor(count, true, 1))),
            "texts" => StatementResult::Rows(Box::new(self.cursor(count, true, 1000))),
            _ => return None,
        }))
    }

    fn execute(&self, statement: &Statement<'_>, reply: StatementReply) -> Running {
        let text = statement.text.to_owned();
        let parameters = format!("{:?}", statement.parameters);
        let wait = Arc::new(Wait::default());
        let running = Running::new({
            let wait = wait.clone();
            move || wait.end()
        });
        let number = text.rsplit(' ').next().and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
        if text.starts_with("count later") {
            thread::spawn(move || reply(Ok(StatementResult::Count(number as u64))));
        } else if text.starts_with("rows later") {
            let cursor = self.cursor(number, false, 1);
            thread::spawn(move || reply(Ok(StatementResult::Rows(Box::new(cursor)))));
        } else if text == "hang" {
            let hanging = self.hanging.clone();
            hanging.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                wait.wait();
                hanging.fetch_sub(1, Ordering::SeqCst);
                reply(Err(cancelled()));
            });
        } else if text == "hang after 1" {
            let mut cursor = self.cursor(1, false, 1);
            cursor.hangs = Some((wait, self.hanging.clone()));
            reply(Ok(StatementResult::Rows(Box::new(cursor))));
        } else if text == "parameters" {
            reply(Err(SqlError::new(SqlErrorCode::DataException, parameters)));
        } else {
            let error = SqlError::new(SqlErrorCode::Parsing, format!("{text:?} is no statement"));
            reply(Err(error.with_suggestion("count 1")));
        }
        running
    }

    fn mapping_ddl(&self, map: &str) -> Option<String> {
        (map != "nothing").then(|| format!("CREATE MAPPING {map}"))
    }

    fn prepare(&self, map: &Arc<Map>, query: MapQuery<'_>) -> Result<Box<dyn PreparedQuery>, GridError> {
        Prepared::new(map, query, self.hanging.clone()).map(|prepared| Box::new(prepared) as _)
    }

    fn filter(&self, _: &Arc<Map>, predicate: &[u8]) -> Result<Arc<dyn EntryFilter>, GridError> {
        Ok(Arc::new(Prefix::new(predicate)?))
    }

    fn projection(&self, _: &Arc<Map>, projection: &[u8]) -> Result<Arc<dyn EntryProjection>, GridError> {
        Ok(Arc::new(Prefix::new(projection)?))
    }

    fn run_later(&self, job: Box<dyn FnOnce() + Send>) {
        thread::spawn(job);
    }
}

/// Values that begin with some bytes.
struct Prefix(Vec<u8>, bool);

impl Prefix {
    fn new(predicate: &[u8]) -> Result<Self, GridError> {
        match predicate.strip_prefix(b"long:") {
            _ if predicate == b"broken" => Err(GridError::Serialization("a broken predicate".to_owned())),
            Some(prefix) => Ok(Prefix(prefix.to_vec(), true)),
            None => Ok(Prefix(predicate.to_vec(), false)),
        }
    }
}

impl EntryFilter for Prefix {
    fn matches(&self, _: &[u8], value: &[u8]) -> bool {
        value.starts_with(&self.0)
    }
}

/// The first byte of the value, as a blob would be.
impl EntryProjection for Prefix {
    fn project(&self, _: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, GridError> {
        Ok(value.first().map(|first| vec![*first]))
    }
}

enum What {
    Entries,
    Page { size: usize, page: usize },
    Count,
    Project,
    Remove(Caller),
}

struct Prepared {
    map: Arc<Map>,
    prefix: Prefix,
    what: What,
    is_over: Option<Ending>,
    hanging: Arc<AtomicUsize>,
}

impl Prepared {
    fn new(map: &Arc<Map>, query: MapQuery<'_>, hanging: Arc<AtomicUsize>) -> Result<Self, GridError> {
        let (predicate, what) = match query {
            MapQuery::Entries { predicate, .. } => (predicate, What::Entries),
            MapQuery::Page(Paging { predicate, page_size, page, .. }) => {
                (predicate, What::Page { size: page_size, page })
            }
            MapQuery::Aggregate { predicate, .. } => (predicate, What::Count),
            MapQuery::Project { predicate, .. } => (predicate, What::Project),
            MapQuery::Remove { predicate, caller } => (Some(predicate), What::Remove(caller)),
        };
        let prefix = Prefix::new(predicate.unwrap_or_default())?;
        Ok(Prepared { map: map.clone(), prefix, what, is_over: None, hanging })
    }
}

impl PreparedQuery for Prepared {
    fn is_short(&self) -> bool {
        !self.prefix.1
    }

    fn end_when(&mut self, is_over: Ending) {
        self.is_over = Some(is_over);
    }

    fn run(&mut self, answer: &mut dyn FnMut(Answer<'_>) -> Result<(), GridError>) -> Result<(), GridError> {
        if self.prefix.0 == b"hang" {
            self.hanging.fetch_add(1, Ordering::SeqCst);
            while !self.is_over.as_ref().is_some_and(|is_over| is_over()) {
                thread::yield_now();
            }
            self.hanging.fetch_sub(1, Ordering::SeqCst);
            return Err(GridError::Query("nobody waits any more".to_owned()));
        }
        let mut found = Vec::new();
        self.map.for_each(&mut |key, value| {
            if self.prefix.matches(key, value) {
                found.push((key.to_vec(), value.to_vec()));
            }
        });
        found.sort();
        match self.what {
            What::Entries => found.iter().try_for_each(|(key, value)| answer(Answer::Entry(key, value))),
            What::Page { size, page } => {
                for (number, chunk) in found.chunks(size).enumerate().take(page + 1) {
                    let (key, value) = chunk.last().unwrap();
                    answer(Answer::Anchor(number, key, value))?;
                    if number == page {
                        chunk.iter().try_for_each(|(key, value)| answer(Answer::Entry(key, value)))?;
                    }
                }
                Ok(())
            }
            What::Count => answer(Answer::Value(Some(found.len().to_string().as_bytes()))),
            What::Project => found.iter().try_for_each(|(key, value)| {
                let result = self.prefix.project(key, value)?;
                answer(Answer::Value(result.as_deref()))
            }),
            What::Remove(caller) => {
                for (key, _) in &found {
                    let partition = self.map.partition_of(key);
                    self.map.change(partition, caller, Change::Delete { key }, |_| ()).unwrap();
                }
                answer(Answer::Removed(found.len()))
            }
        }
    }
}
