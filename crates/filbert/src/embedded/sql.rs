//! SQL within the process. A statement runs on the threads of the query engine while the caller
//! waits. Rows are returned in batches.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use filbert_data::Value;
use filbert_grid::GridError;
use filbert_grid::query::{
    ColumnMeta, Cursor, ExpectedResult, Page, QueryEngine, SqlError, Statement, StatementResult,
};
use tokio::sync::oneshot;

use super::core::block_on;
use super::{Error, Filbert, sql_values};

/// The number of rows of one request to the cursor.
const BATCH_ROWS: usize = 4096;

/// The result of a statement.
#[derive(Debug)]
pub enum SqlResult {
    /// The number of changed rows. 0 for statements about mappings, views and indexes.
    Count(u64),
    /// The rows of a query.
    Rows(SqlRows),
}

/// The rows of a query, computed while they are read. Dropping it ends the query.
///
/// The iterator returns single rows, as values in the order of [`SqlRows::columns`].
/// [`SqlRows::next_batch`] returns the record batches of the query engine without a conversion to
/// rows.
pub struct SqlRows {
    columns: Arc<[ColumnMeta]>,
    cursor: Option<Box<dyn Cursor>>,
    rows: VecDeque<Vec<Value<'static>>>,
}

impl Filbert {
    /// Executes one SQL statement. `parameters` are the values of its `?`, in order. Blocks until a
    /// change is complete or the first rows can be read.
    ///
    /// ```
    /// use filbert::{Config, Filbert, Value};
    ///
    /// let filbert = Filbert::start(Config::default())?;
    /// let mapping = "CREATE MAPPING ages (__key VARCHAR, this INTEGER) TYPE IMap
    ///     OPTIONS ('keyFormat'='varchar', 'valueFormat'='int')";
    /// filbert.sql(mapping, &[])?;
    /// filbert.sql("INSERT INTO ages VALUES ('Ada', 36), ('Alan', 41)", &[])?;
    /// let result = filbert.sql("SELECT __key FROM ages WHERE this > ?", &[Value::Int32(40)])?;
    /// let names = result.into_rows()?.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(names, [[Value::text("Alan")]]);
    /// # Ok::<(), filbert::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Sql`]: the statement is invalid, or a value cannot be computed.
    pub fn sql(&self, text: &str, parameters: &[Value<'_>]) -> Result<SqlResult, Error> {
        let expected = ExpectedResult::Any;
        let (types, session, timeout_ms, described) = (&[], None, None, None);
        self.execute(&Statement { text, parameters, types, session, timeout_ms, expected, described })
    }

    /// As [`Filbert::sql`], with all options of a statement, such as a timeout or the expected kind
    /// of the result.
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
                    // The caller may have dropped the receiver.
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
    /// Returns the rows.
    ///
    /// # Errors
    /// The result of the statement is a count.
    pub fn into_rows(self) -> Result<SqlRows, Error> {
        match self {
            SqlResult::Rows(rows) => Ok(rows),
            SqlResult::Count(count) => Err(GridError::IllegalArgument(format!(
                "rows are expected, the statement answered that it changed {count}"
            ))
            .into()),
        }
    }

    /// The number of changed rows. `None` if the result is rows.
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

    /// Whether the query returns an infinite number of rows.
    pub fn is_infinite(&self) -> bool {
        self.cursor.as_ref().is_some_and(|cursor| cursor.is_infinite())
    }

    /// Returns the next rows as a record batch, or `None` after the last row. The batch that the
    /// iterator is reading is not returned again.
    ///
    /// # Errors
    /// A row cannot be computed. No more rows follow.
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
