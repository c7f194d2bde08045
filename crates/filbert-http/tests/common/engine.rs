//! An engine that does what a statement's words say, so that tests can have what the real one has seldom: errors in the midst of
//! rows, statements that never end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use filbert_data::{FieldType, Value};
use filbert_grid::query::*;
use filbert_grid::{GridError, Map};
use parking_lot::Mutex;

/// What tests look at.
#[derive(Default)]
pub struct Seen {
    pub cancelled: AtomicBool,
    pub cursors_dropped: AtomicUsize,
    /// Pages that cursors were asked for.
    pub pages: AtomicUsize,
    pub written: Mutex<Vec<String>>,
}

#[derive(Default)]
pub struct TestEngine {
    pub seen: Arc<Seen>,
}

fn column(name: &str, field_type: FieldType) -> ColumnMeta {
    ColumnMeta { name: name.to_owned(), field_type, nullable: true, pg_type: None }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn syntax(text: &str) -> SqlError {
    SqlError::new(SqlErrorCode::Parsing, format!("cannot understand {text:?}")).with_sqlstate("42601").at(1)
}

impl QueryEngine for TestEngine {
    fn execute_short(&self, statement: &Statement<'_>) -> Option<Result<StatementResult, SqlError>> {
        let words: Vec<&str> = statement.text.split(' ').collect();
        let text_row = |text: String| {
            let rows = batch(vec![("text", Arc::new(StringArray::from(vec![text])))]);
            let columns = vec![column("text", FieldType::Varchar)].into();
            let seen = self.seen.clone();
            Some(Ok(StatementResult::Rows(Box::new(OnePage { columns, rows: Some(rows), seen }))))
        };
        match *words.as_slice() {
            ["args"] => text_row(statement.parameters.iter().map(Value::to_string).collect::<Vec<_>>().join("|")),
            ["who"] => {
                let session = statement.session?;
                let setting = session.setting("mood").unwrap_or_default();
                text_row(format!("{} {:?} {setting}", session.user(), session.schema()))
            }
            ["set", mood] => {
                statement.session?.set("mood", Some(mood.to_owned())).ok()?;
                Some(Ok(StatementResult::Count(0)))
            }
            ["update"] => match statement.parameters {
                [Value::Int64(count)] => Some(Ok(StatementResult::Count(count.unsigned_abs()))),
                other => Some(Err(syntax(&format!("{other:?}")))),
            },
            ["fail"] => Some(Err(syntax("fail"))),
            ["moment"] => match statement.parameters {
                [Value::Timestamp(moment)] => text_row(moment.to_string()),
                other => Some(Err(SqlError::new(SqlErrorCode::DataException, format!("{other:?} is no timestamp")))),
            },
            _ => None,
        }
    }

    fn execute(&self, statement: &Statement<'_>, reply: StatementReply) -> Running {
        let words: Vec<&str> = statement.text.split(' ').collect();
        let seen = self.seen.clone();
        let nothing = Running::new(|| {});
        match *words.as_slice() {
            ["rows", count] => {
                let cursor = Numbers::new(count.parse().unwrap(), false, seen);
                std::thread::spawn(move || reply(Ok(StatementResult::Rows(Box::new(cursor)))));
                nothing
            }
            ["rows", count, "then", "fail"] => {
                let cursor = Numbers::new(count.parse().unwrap(), true, seen);
                reply(Ok(StatementResult::Rows(Box::new(cursor))));
                nothing
            }
            ["hang"] => {
                let reply = Mutex::new(Some(reply));
                Running::new(move || {
                    seen.cancelled.store(true, Ordering::SeqCst);
                    if let Some(reply) = reply.lock().take() {
                        reply(Err(SqlError::new(SqlErrorCode::Cancelled, "cancelled")));
                    }
                })
            }
            _ => {
                reply(Err(syntax(statement.text)));
                nothing
            }
        }
    }

    fn describe(&self, statement: &Statement<'_>, _types: &[Option<ParameterType>], reply: DescribeReply) {
        let command = match statement.text.split(' ').next() {
            Some("insert") => Command::Insert,
            Some("update") => Command::Update,
            Some("fail") => return reply(Err(syntax("fail"))),
            _ => Command::Select,
        };
        let parameters = Arc::from([FieldType::Timestamp]);
        reply(Ok(Arc::new(Description { command, parameters, columns: None })));
    }

    fn row_writer(&self, _statement: &Statement<'_>, mode: WriteMode, reply: RowWriterReply) {
        assert_eq!(mode, WriteMode::Each);
        let columns = vec![column("id", FieldType::BigInt), column("at", FieldType::Timestamp)].into();
        reply(Ok(Box::new(Writer { columns, seen: self.seen.clone() })));
    }

    fn mapping_ddl(&self, _map: &str) -> Option<String> {
        None
    }

    fn prepare(&self, _map: &Arc<Map>, _query: MapQuery<'_>) -> Result<Box<dyn PreparedQuery>, GridError> {
        Err(GridError::UnsupportedOperation("no predicates".to_owned()))
    }

    fn filter(&self, _map: &Arc<Map>, _predicate: &[u8]) -> Result<Arc<dyn EntryFilter>, GridError> {
        Err(GridError::UnsupportedOperation("no predicates".to_owned()))
    }

    fn run_later(&self, job: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(job);
    }
}

struct OnePage {
    columns: Arc<[ColumnMeta]>,
    rows: Option<RecordBatch>,
    seen: Arc<Seen>,
}

impl Cursor for OnePage {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn page_now(&mut self, _rows_max: usize) -> Option<Result<Page, SqlError>> {
        let rows = self.rows.take()?;
        Some(Ok(Page { rows, last: true }))
    }

    fn page(self: Box<Self>, _rows_max: usize, reply: PageReply) {
        reply(self, Err(syntax("no more pages")));
    }
}

impl Drop for OnePage {
    fn drop(&mut self) {
        self.seen.cursors_dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Numbers from 0 on, with texts, each page from another thread.
struct Numbers {
    columns: Arc<[ColumnMeta]>,
    next: i64,
    end: i64,
    fails: bool,
    seen: Arc<Seen>,
}

impl Numbers {
    fn new(end: i64, fails: bool, seen: Arc<Seen>) -> Numbers {
        let columns = vec![column("n", FieldType::BigInt), column("text", FieldType::Varchar)].into();
        Numbers { columns, next: 0, end, fails, seen }
    }
}

impl Cursor for Numbers {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn page_now(&mut self, _rows_max: usize) -> Option<Result<Page, SqlError>> {
        None
    }

    fn page(mut self: Box<Self>, rows_max: usize, reply: PageReply) {
        self.seen.pages.fetch_add(1, Ordering::SeqCst);
        std::thread::spawn(move || {
            let end = (self.next + i64::try_from(rows_max).unwrap()).min(self.end);
            if end == self.next && self.fails {
                let error = SqlError::new(SqlErrorCode::DataException, "division by zero").with_sqlstate("22012");
                return reply(self, Err(error));
            }
            let numbers: Vec<i64> = (self.next..end).collect();
            let texts: Vec<String> = numbers.iter().map(|number| format!("number {number}")).collect();
            let rows =
                batch(vec![("n", Arc::new(Int64Array::from(numbers))), ("text", Arc::new(StringArray::from(texts)))]);
            self.next = end;
            let last = end == self.end && !self.fails;
            reply(self, Ok(Page { rows, last }));
        });
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        self.seen.cursors_dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Refuses rows whose number is negative.
struct Writer {
    columns: Arc<[ColumnMeta]>,
    seen: Arc<Seen>,
}

impl RowWriter for Writer {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn write(&mut self, values: &[Value<'_>], on_row: &mut dyn FnMut(Result<u64, SqlError>)) {
        for row in values.chunks(self.columns.len()) {
            on_row(match row {
                [Value::Int64(id), at] if *id >= 0 => {
                    self.seen.written.lock().push(format!("{id} {at}"));
                    Ok(1)
                }
                [Value::Int64(_), _] => {
                    let text = "a document with the same primary key exists already";
                    Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("23505"))
                }
                other => Err(SqlError::new(SqlErrorCode::DataException, format!("cannot take {other:?}"))),
            });
        }
    }

    fn finish(self: Box<Self>) -> Result<u64, SqlError> {
        Ok(0)
    }
}
