//! A query engine that answers what tests ask of it.
//!
//! | statement | result |
//! |---|---|
//! | `select now n` | so many rows of a number and a text, in place |
//! | `select wide n` | so many rows with a text of a megabyte each, in one page |
//! | `select later n` | the same, each page from another thread |
//! | `select hang` | nothing until it is cancelled |
//! | `select hang after n` | so many rows, then nothing until it is cancelled |
//! | `select types` | a row with a value of every type |
//! | `select echo $1, ..` | the parameters as texts, with their types |
//! | `insert n` | a count |
//! | `insert warned n` | the same, with a warning and a notice |
//! | `begin`, `commit`, `rollback`, `set name value` | as in SQL |
//! | `copy .. from stdin`, `copy n to stdout` | with `csv` or `binary` in that format, with `arrays` into a column of them; the rows are kept, or are those of `select now n` |
//! | anything else | an error at character 3, with a hint |

use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType, Field, Schema};
use filbert_data::{FieldType, Value};
use filbert_grid::{
    GridError, Map,
    query::{
        ColumnMeta, Command, CopyFormat, CopyKind, Cursor, DescribeReply, Description, EntryFilter, MapQuery, Page,
        PageReply, ParameterType, PreparedQuery, QueryEngine, RowWriter, RowWriterReply, Running, Severity, SqlError,
        SqlErrorCode, Statement, StatementReply, StatementResult, TransactionState, WriteMode, arrow_type,
    },
};

use super::types;

/// The engine, and what of it is still in use.
#[derive(Default)]
pub struct Engine {
    cursors: Arc<AtomicUsize>,
    hanging: Arc<AtomicUsize>,
    pages: Arc<AtomicUsize>,
    /// Rows that were copied in.
    pub copied: Arc<Mutex<Vec<Vec<Value<'static>>>>>,
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

    /// Pages that were made.
    pub fn pages(&self) -> usize {
        self.pages.load(Ordering::SeqCst)
    }

    fn cursor(&self, rows: usize, is_now: bool) -> Rows {
        self.cursors.fetch_add(1, Ordering::SeqCst);
        let (open, pages) = (self.cursors.clone(), self.pages.clone());
        Rows { columns: numbers(), next: 0, rows, is_now, hangs: None, open, pages, fixed: None }
    }

    fn fixed(&self, columns: Arc<[ColumnMeta]>, page: RecordBatch) -> Rows {
        let mut rows = self.cursor(1, true);
        (rows.columns, rows.fixed) = (columns, Some(page));
        rows
    }
}

pub fn column(name: &str, field_type: FieldType) -> ColumnMeta {
    ColumnMeta { name: name.to_owned(), field_type, nullable: true, pg_type: None }
}

fn numbers() -> Arc<[ColumnMeta]> {
    Arc::from([column("id", FieldType::BigInt), column("text", FieldType::Varchar)])
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
    hangs: Option<(Arc<Wait>, Arc<AtomicUsize>)>,
    open: Arc<AtomicUsize>,
    pages: Arc<AtomicUsize>,
    fixed: Option<RecordBatch>,
}

impl Rows {
    fn make(&mut self, rows_max: usize) -> Page {
        self.pages.fetch_add(1, Ordering::SeqCst);
        if let Some(rows) = self.fixed.clone() {
            return Page { rows, last: true };
        }
        let end = (self.next + rows_max).min(self.rows);
        let ids = Int64Array::from_iter_values((self.next..end).map(|row| row as i64));
        let text = |row: usize| row.is_multiple_of(2).then(|| format!("row {row}"));
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

fn unknown(text: &str) -> SqlError {
    let error = SqlError::new(SqlErrorCode::Parsing, format!("{text:?} is no statement"));
    error.at(3).with_suggestion("select now 1")
}

impl Cursor for Rows {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
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

/// The words of a statement, and the number at its end.
fn number(text: &str) -> (&str, usize) {
    let (words, number) = text.rsplit_once(' ').unwrap_or((text, ""));
    number.parse().map_or((text, 0), |number| (words, number))
}

fn copy_format(text: &str) -> CopyFormat {
    let kinds = [("csv", CopyKind::Csv), ("binary", CopyKind::Binary)];
    let kind = kinds.into_iter().find(|(name, _)| text.contains(name)).map_or(CopyKind::Text, |(_, kind)| kind);
    CopyFormat { header: text.contains("header"), ..CopyFormat::of(kind) }
}

fn echo(parameters: &[Value<'_>]) -> (Arc<[ColumnMeta]>, RecordBatch) {
    let name = |at: usize| format!("p{}", at + 1);
    let columns = (0..parameters.len()).map(|at| column(&name(at), FieldType::Varchar)).collect();
    let text = |value: &Value<'_>| (!value.is_null()).then(|| format!("{} {value}", value.type_name()));
    let arrays = parameters.iter().map(|value| Arc::new(StringArray::from_iter([text(value)])) as ArrayRef);
    let fields: Vec<Field> = (0..parameters.len()).map(|at| Field::new(name(at), DataType::Utf8, true)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let page = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays.collect(), &options);
    (columns, page.unwrap())
}

impl QueryEngine for Engine {
    fn execute_short(&self, statement: &Statement<'_>) -> Option<Result<StatementResult, SqlError>> {
        let (words, number) = number(statement.text);
        let rows = |rows: Rows| Some(Ok(StatementResult::Rows(Box::new(rows))));
        match words {
            "insert" => {
                if let Some(session) = statement.session {
                    session.note_changes(number as u64);
                }
                Some(Ok(StatementResult::Count(number as u64)))
            }
            "insert warned" => {
                if let Some(session) = statement.session {
                    session.tell(Severity::Warning, "01000", "it is told");
                    session.tell(Severity::Notice, "00000", "and this too");
                }
                Some(Ok(StatementResult::Count(number as u64)))
            }
            "select now" => rows(self.cursor(number, true)),
            "select wide" => {
                let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..number as i64));
                let texts: ArrayRef =
                    Arc::new(StringArray::from_iter_values((0..number).map(|_| "x".repeat(1_000_000))));
                let page = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
                rows(self.fixed(numbers(), page))
            }
            "select types" => {
                let (columns, page) = types::all();
                rows(self.fixed(columns, page))
            }
            _ if words.starts_with("select echo") => {
                let (columns, page) = echo(statement.parameters);
                rows(self.fixed(columns, page))
            }
            _ => None,
        }
    }

    fn execute(&self, statement: &Statement<'_>, reply: StatementReply) -> Running {
        let text = statement.text.to_owned();
        let wait = Arc::new(Wait::default());
        let running = Running::new({
            let wait = wait.clone();
            move || wait.end()
        });
        let session = statement.session.unwrap();
        let (words, number) = number(&text);
        let rows = |rows: Rows| Ok(StatementResult::Rows(Box::new(rows)));
        let state = match words.to_ascii_lowercase().as_str() {
            "begin" | "start transaction" => Some(TransactionState::Open),
            "commit" | "rollback" => Some(TransactionState::Idle),
            _ => None,
        };
        if let Some(state) = state {
            session.set_transaction(state);
            reply(Ok(StatementResult::Count(0)));
        } else if let Some(setting) = text.strip_prefix("set ") {
            let (name, value) = setting.split_once(' ').unwrap();
            session.set(name, Some(value.to_owned())).unwrap();
            reply(Ok(StatementResult::Count(0)));
        } else if words == "select later" {
            let cursor = self.cursor(number, false);
            thread::spawn(move || reply(Ok(StatementResult::Rows(Box::new(cursor)))));
        } else if text == "select hang" {
            let hanging = self.hanging.clone();
            hanging.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                wait.wait();
                hanging.fetch_sub(1, Ordering::SeqCst);
                reply(Err(cancelled()));
            });
        } else if words == "select hang after" {
            let mut cursor = self.cursor(number, false);
            cursor.hangs = Some((wait, self.hanging.clone()));
            reply(rows(cursor));
        } else if text.starts_with("copy") {
            let count = text.split(' ').nth(1).unwrap().parse().unwrap();
            reply(rows(self.cursor(count, false)));
        } else {
            reply(Err(unknown(&text)));
        }
        running
    }

    fn describe(&self, statement: &Statement<'_>, known: &[Option<ParameterType>], reply: DescribeReply) {
        let text = statement.text;
        let (words, _) = number(text);
        let parameters = text.matches('$').count();
        let known = |at: usize| known.get(at).cloned().flatten().map(|known| known.field_type);
        let types = (0..parameters).map(|at| known(at).unwrap_or(FieldType::Varchar)).collect();
        let (command, columns) = match words {
            "insert" | "insert warned" => (Command::Insert, None),
            "begin" | "START TRANSACTION" => (Command::Other("BEGIN"), None),
            "commit" | "COMMIT" => (Command::Other("COMMIT"), None),
            "rollback" | "ROLLBACK" => (Command::Other("ROLLBACK"), None),
            "select types" => (Command::Select, Some(types::all().0)),
            _ if words.starts_with("set ") => (Command::Other("SET"), None),
            _ if words.starts_with("select echo") => (Command::Select, Some(echo(&vec![Value::Null; parameters]).0)),
            _ if words.starts_with("select") => (Command::Select, Some(numbers())),
            _ if words.starts_with("copy") && words.contains("from stdin") => {
                (Command::CopyIn(copy_format(text)), Some(numbers()))
            }
            _ if words.starts_with("copy") => (Command::CopyOut(copy_format(text)), Some(numbers())),
            _ => return reply(Err(unknown(text))),
        };
        let description = Arc::new(Description { command, parameters: types, columns });
        thread::spawn(move || reply(Ok(description)));
    }

    fn row_writer(&self, statement: &Statement<'_>, mode: WriteMode, reply: RowWriterReply) {
        assert_eq!(mode, WriteMode::All);
        let columns = match statement.text.contains("arrays") {
            true => Arc::from([
                column("id", FieldType::BigInt),
                column("a", FieldType::Array(Box::new(FieldType::Integer))),
            ]),
            false => numbers(),
        };
        reply(Ok(Box::new(Writer { columns, rows: Vec::new(), copied: self.copied.clone() })));
    }

    fn mapping_ddl(&self, _: &str) -> Option<String> {
        None
    }

    fn prepare(&self, _: &Arc<Map>, _: MapQuery<'_>) -> Result<Box<dyn PreparedQuery>, GridError> {
        Err(GridError::UnsupportedOperation("prepare".into()))
    }

    fn filter(&self, _: &Arc<Map>, _: &[u8]) -> Result<Arc<dyn EntryFilter>, GridError> {
        Err(GridError::UnsupportedOperation("filter".into()))
    }

    fn run_later(&self, job: Box<dyn FnOnce() + Send>) {
        thread::spawn(job);
    }
}

struct Writer {
    columns: Arc<[ColumnMeta]>,
    rows: Vec<Vec<Value<'static>>>,
    copied: Arc<Mutex<Vec<Vec<Value<'static>>>>>,
}

impl RowWriter for Writer {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn write(&mut self, values: &[Value<'_>], on_row: &mut dyn FnMut(Result<u64, SqlError>)) {
        for row in values.chunks(self.columns.len()) {
            if row[0] == Value::Int64(-1) {
                on_row(Err(SqlError::new(SqlErrorCode::DataException, "minus one").with_sqlstate("23514")));
            } else {
                self.rows.push(row.iter().map(|value| value.clone().into_owned()).collect());
                on_row(Ok(1));
            }
        }
    }

    fn finish(self: Box<Self>) -> Result<u64, SqlError> {
        let count = self.rows.len() as u64;
        self.copied.lock().unwrap().extend(self.rows);
        Ok(count)
    }
}
