//! SQL within the process: a statement runs on the engine's threads, the caller waits; rows come batch by batch.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use filbert_data::Value;
use filbert_grid::GridError;
use filbert_grid::query::{ColumnMeta, Cursor, Page, QueryEngine, SqlError, Statement, StatementResult};
use tokio::sync::oneshot;

use super::core::block_on;
use super::{Error, Filbert, sql_values};

/// Rows that are asked for at once.
const BATCH_ROWS: usize = 4096;

/// What a statement answers.
#[derive(Debug)]
pub enum SqlResult {
    /// It changed something: the number of rows, 0 for statements about mappings, views and indexes.
    Count(u64),
    /// Rows.
    Rows(SqlRows),
}

/// The rows of a query, made while they are read. Dropping it ends the query.
///
/// As an iterator it gives row by row, as values in the order of [`SqlRows::columns`]; [`SqlRows::next_batch`] gives what the engine makes,
/// without turning it into rows.
pub struct SqlRows {
    columns: Arc<[ColumnMeta]>,
    cursor: Option<Box<dyn Cursor>>,
    rows: VecDeque<Vec<Value<'static>>>,
}

impl Filbert {
    /// Runs one SQL statement. `parameters` are the values of its `?`, in order. Blocks until a change is done, or the
    /// first rows can be read.
    ///
    /// ```
    /// use filbert::{Config, Filbert, Value};
    ///
    /// let filbert = Filbert::start(Config::default())?;
    /// filbert.sql("CREATE MAPPING ages (__key VARCHAR, this INTEGER) TYPE IMap OPTIONS ('keyFormat'='varchar', 'valueFormat'='int')", &[])?;
    /// filbert.sql("INSERT INTO ages VALUES ('Ada', 36), ('Alan', 41)", &[])?;
    /// let rows = filbert.sql("SELECT __key FROM ages WHERE this > ?", &[Value::Int32(40)])?.into_rows()?;
    /// let names = rows.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(names, [[Value::text("Alan")]]);
    /// # Ok::<(), filbert::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Sql`]: the statement is wrong, or a value cannot be computed.
    pub fn sql(&self, text: &str, parameters: &[Value<'_>]) -> Result<SqlResult, Error> {
        let statement =
            Statement { text, parameters, types: &[], session: None, timeout_ms: None, expected: Default::default() };
        self.execute(&statement)
    }

    /// As [`Filbert::sql`], with all that a statement can be told: a timeout, whether rows or a count are expected.
    ///
    /// # Errors
    /// As [`Filbert::sql`].
    pub fn execute(&self, statement: &Statement<'_>) -> Result<SqlResult, Error> {
        let engine: &Arc<dyn QueryEngine> = self
            .grid()
            .queries()
            .ok_or_else(|| GridError::UnsupportedOperation("this member has no query engine".to_owned()))?;
        let result = match engine.execute_short(statement) {
            Some(result) => result?,
            None => {
                let (sender, receiver) = oneshot::channel();
                let reply = move |result| {
                    // A receiver that has gone does not want to know.
                    let _ = sender.send(result);
                };
                engine.execute(statement, Box::new(reply));
                block_on(receiver).map_err(|_| Error::ShutDown)??
            }
        };
        Ok(match result {
            StatementResult::Count(count) => SqlResult::Count(count),
            StatementResult::Rows(cursor) => SqlResult::Rows(SqlRows {
                columns: cursor.columns().clone(),
                cursor: Some(cursor),
                rows: VecDeque::new(),
            }),
        })
    }
}

impl SqlResult {
    /// The rows.
    ///
    /// # Errors
    /// The statement answered a count.
    pub fn into_rows(self) -> Result<SqlRows, Error> {
        match self {
            SqlResult::Rows(rows) => Ok(rows),
            SqlResult::Count(count) => Err(GridError::IllegalArgument(format!(
                "rows are expected, the statement answered that it changed {count}"
            ))
            .into()),
        }
    }

    /// The number of rows changed; `None` if the statement answered rows.
    pub fn count(&self) -> Option<u64> {
        match self {
            SqlResult::Count(count) => Some(*count),
            SqlResult::Rows(_) => None,
        }
    }
}

impl SqlRows {
    /// The columns, in order.
    pub fn columns(&self) -> &[ColumnMeta] {
        &self.columns
    }

    /// Whether the rows never end.
    pub fn is_infinite(&self) -> bool {
        self.cursor.as_ref().is_some_and(|cursor| cursor.is_infinite())
    }

    /// The next rows, column by column; `None` behind the last. Rows that the iterator has begun to give are not given again.
    ///
    /// # Errors
    /// A row cannot be computed; nothing follows.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            let Some(mut cursor) = self.cursor.take() else { return Ok(None) };
            let page: Result<Page, SqlError> = match cursor.page_now(BATCH_ROWS) {
                Some(page) => {
                    self.cursor = Some(cursor);
                    page
                }
                None => {
                    let (sender, receiver) = oneshot::channel();
                    let reply = move |cursor, page| {
                        let _ = sender.send((cursor, page));
                    };
                    cursor.page(BATCH_ROWS, Box::new(reply));
                    let (cursor, page) = block_on(receiver).map_err(|_| Error::ShutDown)?;
                    self.cursor = Some(cursor);
                    page
                }
            };
            let page = page.inspect_err(|_| self.cursor = None)?;
            if page.last {
                self.cursor = None;
            }
            if page.rows.num_rows() > 0 {
                return Ok(Some(page.rows));
            }
        }
    }
}

impl Iterator for SqlRows {
    type Item = Result<Vec<Value<'static>>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows.is_empty() {
            match self.next_batch() {
                Ok(Some(batch)) => self.rows = sql_values::rows(&self.columns, &batch),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
        self.rows.pop_front().map(Ok)
    }
}

impl fmt::Debug for SqlRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlRows").field("columns", &self.columns).finish_non_exhaustive()
    }
}
