//! A member with its query engine, called as front doors call it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    unreachable_pub,
    reason = "a test that cannot go on fails, and not every test uses everything"
)]

use std::sync::{Arc, mpsc};

use arrow_array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use filbert_data::Value;
use filbert_grid::query::{
    Cursor, Description, Dialect, ExpectedResult, QueryEngine, RowWriter, Session, SqlError, Statement,
    StatementResult, WriteMode,
};
use filbert_grid::{Environment, Grid, GridConfig, SystemClock};
use filbert_query::{Engine, QueryConfig};

/// A member.
pub struct Member {
    pub grid: Arc<Grid>,
    pub engine: Engine,
    /// The session of the caller.
    pub session: Option<Arc<Session>>,
}

impl Member {
    pub fn start() -> Member {
        Member::with(QueryConfig::default())
    }

    pub fn with(config: QueryConfig) -> Member {
        let environment = Environment { clock: Arc::new(SystemClock::new()), random_seed: 42 };
        let grid = Grid::new(GridConfig::default(), environment).unwrap();
        let engine = Engine::start(&grid, config).unwrap();
        Member { grid, engine, session: None }
    }

    /// A member with a session in a dialect.
    pub fn of(dialect: Dialect) -> Member {
        Member { session: Some(Arc::new(Session::new(dialect, "somebody"))), ..Member::start() }
    }

    pub fn statement<'s>(&'s self, text: &'s str, parameters: &'s [Value<'s>]) -> Statement<'s> {
        let session = self.session.as_ref();
        let expected = ExpectedResult::Any;
        Statement { text, parameters, types: &[], session, timeout_ms: None, expected, described: None }
    }

    /// The description of a statement before it runs.
    pub fn describe(&self, text: &str) -> Result<Arc<Description>, SqlError> {
        let (sender, receiver) = mpsc::channel();
        let reply = Box::new(move |description| sender.send(description).unwrap());
        self.engine.describe(&self.statement(text, &[]), &[], reply);
        receiver.recv().unwrap()
    }

    pub fn row_writer(&self, text: &str, mode: WriteMode) -> Result<Box<dyn RowWriter>, SqlError> {
        let (sender, receiver) = mpsc::channel();
        let reply = Box::new(move |writer| sender.send(writer).map_err(|_| "nobody waits").unwrap());
        self.engine.row_writer(&self.statement(text, &[]), mode, reply);
        receiver.recv().unwrap()
    }

    /// Runs a statement as a door does: in place if it is short.
    pub fn run(&self, text: &str, parameters: &[Value<'_>]) -> Result<StatementResult, SqlError> {
        let statement = self.statement(text, parameters);
        if let Some(result) = self.engine.execute_short(&statement) {
            return result;
        }
        let (sender, receiver) = mpsc::channel();
        self.engine.execute(&statement, Box::new(move |result| sender.send(result).unwrap()));
        receiver.recv().unwrap()
    }

    /// The number of rows that a statement changed.
    #[track_caller]
    pub fn change(&self, text: &str) -> u64 {
        self.change_with(text, &[])
    }

    #[track_caller]
    pub fn change_with(&self, text: &str, parameters: &[Value<'_>]) -> u64 {
        match self.run(text, parameters) {
            Ok(StatementResult::Count(count)) => count,
            Ok(StatementResult::Rows(_)) => panic!("rows: {text}"),
            Err(error) => panic!("{error}: {text}"),
        }
    }

    /// The rows of a query, each as its values joined by `|`.
    #[track_caller]
    pub fn rows(&self, text: &str) -> Vec<String> {
        self.rows_with(text, &[])
    }

    #[track_caller]
    pub fn rows_with(&self, text: &str, parameters: &[Value<'_>]) -> Vec<String> {
        match self.try_rows(text, parameters) {
            Ok(rows) => rows,
            Err(error) => panic!("{error}: {text}"),
        }
    }

    pub fn try_rows(&self, text: &str, parameters: &[Value<'_>]) -> Result<Vec<String>, SqlError> {
        let cursor = match self.run(text, parameters)? {
            StatementResult::Rows(cursor) => cursor,
            StatementResult::Count(count) => return Ok(vec![format!("count {count}")]),
        };
        let mut rows = Vec::new();
        for batch in pages(cursor, 1_000)? {
            rows.extend(texts(&batch));
        }
        Ok(rows)
    }

    /// The sorted rows.
    #[track_caller]
    pub fn sorted(&self, text: &str) -> Vec<String> {
        let mut rows = self.rows(text);
        rows.sort();
        rows
    }

    /// The error of a statement.
    #[track_caller]
    pub fn error(&self, text: &str) -> SqlError {
        match self.try_rows(text, &[]) {
            Ok(rows) => panic!("no error: {text}: {rows:?}"),
            Err(error) => error,
        }
    }
}

/// All pages of a cursor.
pub fn pages(cursor: Box<dyn Cursor>, rows_max: usize) -> Result<Vec<RecordBatch>, SqlError> {
    let mut batches = Vec::new();
    each_page(cursor, rows_max, |rows| batches.push(rows))?;
    Ok(batches)
}

/// Reads a cursor page by page.
pub fn each_page(
    mut cursor: Box<dyn Cursor>,
    rows_max: usize,
    mut see: impl FnMut(RecordBatch),
) -> Result<(), SqlError> {
    loop {
        let page = match cursor.page_now(rows_max) {
            Some(page) => page?,
            None => {
                let (sender, receiver) = mpsc::channel();
                cursor.page(rows_max, Box::new(move |cursor, page| sender.send((cursor, page)).unwrap()));
                let (back, page) = receiver.recv().unwrap();
                cursor = back;
                page?
            }
        };
        see(page.rows);
        if page.last {
            return Ok(());
        }
    }
}

/// The rows of a batch as texts.
pub fn texts(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<ArrayFormatter<'_>> =
        batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|"))
        .collect()
}
