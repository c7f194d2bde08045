//! The engine: executes the statements that `script` reads.

use std::{collections::HashMap, sync::Arc, thread};

use arrow_array::RecordBatch;
use filbert_data::{FieldType, Value};
use filbert_grid::{
    GridError, Map, ReadView,
    query::{
        ColumnMeta, Command, DescribeReply, Description, EntryFilter, EntryProjection, MapQuery, ParameterType,
        PreparedQuery, QueryEngine, RowWriterReply, Running, Session, Severity, SqlError, Statement, StatementReply,
        StatementResult, WriteMode,
    },
};
use parking_lot::Mutex;

use crate::{
    failures,
    hanging::Hanging,
    predicates::{FirstByte, Prefix, Query},
    rows::{Numbers, Rows, Then},
    script::{End, Script},
    seen::Seen,
    writer::Writer,
};

/// The columns and the rows of a result.
type Given = (Arc<[ColumnMeta]>, RecordBatch);

/// The engine. Its statements and predicates are listed at the head of the crate. One engine serves
/// one member; its counts begin at 0.
#[derive(Default)]
pub struct Engine {
    given: Mutex<HashMap<String, Given>>,
    hanging: Arc<Hanging>,
    seen: Arc<Seen>,
}

impl Engine {
    /// Answers a statement with these rows, as one page, in place. The types of the rows' columns
    /// are those of `columns`.
    pub fn answers(&self, text: &str, columns: Arc<[ColumnMeta]>, rows: RecordBatch) {
        self.given.lock().insert(text.to_owned(), (columns, rows));
    }

    /// The number of cursors that were not dropped.
    pub fn cursors(&self) -> usize {
        self.seen.cursors()
    }

    /// The number of cursors that were dropped.
    pub fn cursors_dropped(&self) -> usize {
        self.seen.cursors_dropped()
    }

    /// The number of pages that cursors have produced.
    pub fn pages(&self) -> usize {
        self.seen.pages()
    }

    /// The number of statements, pages and queries that wait to be cancelled.
    pub fn hanging(&self) -> usize {
        self.hanging.waiting()
    }

    /// The number of hanging statements that were cancelled. Each counts once.
    pub fn cancelled(&self) -> usize {
        self.hanging.cancelled()
    }

    /// Takes the rows that were written, in order.
    pub fn take_written(&self) -> Vec<Vec<Value<'static>>> {
        self.seen.take_written()
    }

    fn given(&self, text: &str) -> Option<Given> {
        self.given.lock().get(text).cloned()
    }

    fn numbers(&self, numbers: Numbers, is_now: bool) -> StatementResult {
        rows(Rows::of_numbers(&self.seen, numbers, is_now))
    }

    fn text(&self, text: String) -> Result<StatementResult, SqlError> {
        Rows::of_text(&self.seen, text).map(rows)
    }

    fn select_later(&self, count: usize, end: End, reply: StatementReply) -> Running {
        match end {
            End::Last => {
                let result = self.numbers(Numbers::new(count, Then::Last), false);
                thread::spawn(move || reply(Ok(result)));
                nothing()
            }
            End::Fail => {
                reply(Ok(self.numbers(Numbers::new(count, Then::Fail), false)));
                nothing()
            }
            End::Hang => {
                let hang = self.hanging.start();
                let running = hang.running();
                reply(Ok(self.numbers(Numbers::new(count, Then::Hang(hang)), false)));
                running
            }
        }
    }

    fn select_hang(&self, is_later: bool, reply: StatementReply) -> Running {
        let hang = self.hanging.start();
        let end = Box::new(move || reply(Err(failures::cancelled())));
        match is_later {
            true => hang.wait_on_thread(end),
            false => hang.wait(end),
        }
        hang.running()
    }
}

/// A statement that cannot be cancelled.
fn nothing() -> Running {
    Running::new(|| {})
}

fn rows(rows: Rows) -> StatementResult {
    StatementResult::Rows(Box::new(rows))
}

/// The parameters with their types. A null has none.
fn echo(parameters: &[Value<'_>]) -> String {
    let text = |value: &Value<'_>| match value {
        Value::Null => "null".to_owned(),
        value => format!("{} {value}", value.type_name()),
    };
    parameters.iter().map(text).collect::<Vec<_>>().join("|")
}

/// The session of a statement that needs one.
fn session<'a>(statement: &Statement<'a>) -> Result<&'a Arc<Session>, SqlError> {
    statement.session.ok_or_else(|| failures::data(format!("{:?} needs a session", statement.text)))
}

fn who(session: &Session) -> String {
    format!("{} {:?} {}", session.user(), session.schema(), session.setting("mood").unwrap_or_default())
}

impl QueryEngine for Engine {
    fn execute_short(&self, statement: &Statement<'_>) -> Option<Result<StatementResult, SqlError>> {
        if let Some((columns, page)) = self.given(statement.text) {
            return Some(Ok(rows(Rows::of_page(&self.seen, columns, page))));
        }
        Some(match Script::of(statement.text)? {
            Script::SelectNow(rows) => Ok(self.numbers(Numbers::new(rows, Then::Last), true)),
            Script::SelectTexts { rows, bytes } => Ok(self.numbers(Numbers::of_texts(rows, bytes), true)),
            Script::SelectEcho => self.text(echo(statement.parameters)),
            Script::SelectTimestamp => match statement.parameters {
                [Value::Timestamp(timestamp)] => self.text(timestamp.to_string()),
                other => Err(failures::data(format!("{other:?} is no timestamp"))),
            },
            Script::Who => session(statement).and_then(|session| self.text(who(session))),
            Script::Insert(count) => {
                if let Some(session) = statement.session {
                    session.note_changes(count);
                }
                Ok(StatementResult::Count(count))
            }
            Script::InsertWarned(count) => {
                if let Some(session) = statement.session {
                    session.tell(Severity::Warning, "01000", "it is told");
                    session.tell(Severity::Notice, "00000", "and this too");
                }
                Ok(StatementResult::Count(count))
            }
            Script::Update => match statement.parameters {
                [Value::Int64(count)] => Ok(StatementResult::Count(count.unsigned_abs())),
                _ => Err(failures::unknown(statement.text)),
            },
            Script::Fail => Err(failures::unknown(statement.text)),
            _ => return None,
        })
    }

    fn execute(&self, statement: &Statement<'_>, reply: StatementReply) -> Running {
        let text = statement.text;
        match Script::of(text) {
            Some(Script::SelectLater(rows, end)) => return self.select_later(rows, end, reply),
            Some(Script::SelectHang { is_later }) => return self.select_hang(is_later, reply),
            Some(Script::CopyOut(rows, _)) => reply(Ok(self.numbers(Numbers::new(rows, Then::Last), false))),
            Some(Script::InsertLater(count)) => {
                thread::spawn(move || reply(Ok(StatementResult::Count(count))));
            }
            Some(Script::Transaction(_, state)) => reply(session(statement).map(|session| {
                session.set_transaction(state);
                StatementResult::Count(0)
            })),
            Some(Script::Set { name, value }) => reply(session(statement).and_then(|session| {
                session.set(name, Some(value.to_owned()))?;
                Ok(StatementResult::Count(0))
            })),
            _ => reply(Err(failures::unknown(text))),
        }
        nothing()
    }

    fn describe(&self, statement: &Statement<'_>, types: &[Option<ParameterType>], reply: DescribeReply) -> Running {
        let text = statement.text;
        let script = Script::of(text);
        let parameter = |at: usize| {
            let declared = types.get(at).cloned().flatten().map(|declared| declared.field_type);
            let found = declared.or_else(|| script.as_ref().map(Script::parameter_type));
            ParameterType::from(found.unwrap_or(FieldType::Varchar))
        };
        let parameters = (0..text.matches('$').count()).map(parameter).collect();
        let described = match self.given(text) {
            Some((columns, _)) => Some((Command::Select, Some(columns))),
            None => script.and_then(Script::description),
        };
        let description = match described {
            Some((command, columns)) => Ok(Arc::new(Description { command, parameters, columns })),
            None => Err(failures::unknown(text)),
        };
        thread::spawn(move || reply(description));
        Running::done()
    }

    fn row_writer(&self, statement: &Statement<'_>, mode: WriteMode, reply: RowWriterReply) {
        let writer = Script::of(statement.text).and_then(|script| Writer::of(&script, mode, &self.seen));
        match writer {
            Some(writer) => reply(Ok(Box::new(writer))),
            None => reply(Err(failures::unknown(statement.text))),
        }
    }

    fn mapping_ddl(&self, map: &str) -> Option<String> {
        (map != "nothing").then(|| format!("CREATE MAPPING {map}"))
    }

    fn prepare(&self, map: &Arc<Map>, query: MapQuery<'_>, _: ReadView) -> Result<Box<dyn PreparedQuery>, GridError> {
        Ok(Box::new(Query::new(map, query, &self.hanging)?))
    }

    fn filter(&self, _: &Arc<Map>, predicate: &[u8]) -> Result<Arc<dyn EntryFilter>, GridError> {
        Ok(Arc::new(Prefix::new(predicate)?))
    }

    fn projection(&self, _: &Arc<Map>, _: &[u8]) -> Result<Arc<dyn EntryProjection>, GridError> {
        Ok(Arc::new(FirstByte))
    }

    fn run_later(&self, job: Box<dyn FnOnce() + Send>) {
        thread::spawn(job);
    }
}
