//! What doors and the embedded API need of queries, as traits. The engine behind them is another crate's; the grid only
//! keeps it where everybody finds it ([`Grid::queries`](crate::Grid::queries)).
//!
//! ```text
//!  door ── Statement ──► QueryEngine::execute_short ── in place ──► StatementResult
//!       └─ (not short) ► QueryEngine::execute ── on the engine's threads ──► reply(StatementResult)
//!  StatementResult::Rows(Cursor) ── page, page, .. ──► RecordBatch
//!
//!  door ── MapQuery ──► QueryEngine::prepare ──► PreparedQuery ── run ──► Answer, Answer, ..
//! ```
//!
//! Rows travel as Arrow record batches. A column of each [`FieldType`](filbert_data::FieldType) is an array of the type that [`arrow_type`]
//! gives; texts may also come as `Utf8` or `LargeUtf8`, a UUID is its text, and an object is the bytes of a blob. [`ColumnReader`] reads any
//! of them as values.
//!
//! Doors that know users by more than a connection pass a [`Session`] with each statement.

mod block;
mod describe;
mod error;
mod figures;
mod map_query;
mod reader;
mod session;
mod statement;
mod write;

pub use block::{Notice, SETTING_BYTES, Severity};
pub use describe::{Command, CopyFormat, CopyKind, DescribeReply, Description};
pub use error::{SqlError, SqlErrorCode, SqlSubject};
pub use figures::EngineFigures;
pub use map_query::{
    Answer, Ending, EntryFilter, EntryProjection, MapQuery, OwnedMapQuery, PageEnd, Paging, PreparedQuery,
};
pub use reader::{ColumnReader, QUOTIENT_SCALE, quotient_digits};
pub use session::{Dialect, SESSION_BYTES_MAX, Session, TransactionState};
pub use statement::{
    ColumnMeta, Cursor, ExpectedResult, Page, PageReply, ParameterType, Running, Statement, StatementReply,
    StatementResult, arrow_type,
};
pub use write::{RowWriter, RowWriterReply, WriteMode};

use std::sync::Arc;

use crate::{GridError, Map};

/// Answers SQL statements and the map API's queries. What [`Grid::queries`](crate::Grid::queries) gives counts and times statements
/// on their way to the engine that was brought: a method that is added here is passed on in `metrics/statements.rs`.
pub trait QueryEngine: Send + Sync {
    /// Runs a statement at once, in the caller's thread, if its plan is known and takes microseconds; `None` if it must
    /// be given to [`QueryEngine::execute`].
    fn execute_short(&self, statement: &Statement<'_>) -> Option<Result<StatementResult, SqlError>>;

    /// Runs a statement on the engine's own threads. `reply` is called exactly once, from any thread, maybe before this
    /// returns.
    fn execute(&self, statement: &Statement<'_>, reply: StatementReply) -> Running;

    /// Tells what a statement is, without running it. `types` has the types of its parameters as far as the caller knows them.
    fn describe(&self, statement: &Statement<'_>, types: &[Option<ParameterType>], reply: DescribeReply) {
        let _ = (statement, types);
        reply(Err(SqlError::new(SqlErrorCode::Generic, "statements cannot be described here")));
    }

    /// Makes a statement that adds rows ready to take many of them; see [`RowWriter`].
    fn row_writer(&self, statement: &Statement<'_>, mode: WriteMode, reply: RowWriterReply) {
        let _ = (statement, mode);
        reply(Err(SqlError::new(SqlErrorCode::Generic, "rows cannot be written here")));
    }

    /// The statement that would make the mapping of a map whose entries can be read, if it can be told.
    fn mapping_ddl(&self, map: &str) -> Option<String>;

    /// Makes a query of the map API ready to run.
    ///
    /// # Errors
    /// The predicate, aggregator or projection cannot be read, or is of a kind that the engine does not run.
    fn prepare(&self, map: &Arc<Map>, query: MapQuery<'_>) -> Result<Box<dyn PreparedQuery>, GridError>;

    /// A predicate as a filter of single entries, for listeners.
    ///
    /// # Errors
    /// As [`QueryEngine::prepare`].
    fn filter(&self, map: &Arc<Map>, predicate: &[u8]) -> Result<Arc<dyn EntryFilter>, GridError>;

    /// A projection of single entries, for iterations that read a part of a map at a time.
    ///
    /// # Errors
    /// As [`QueryEngine::prepare`].
    fn projection(&self, map: &Arc<Map>, projection: &[u8]) -> Result<Arc<dyn EntryProjection>, GridError> {
        let _ = projection;
        Err(GridError::UnsupportedOperation(format!("single entries of map {:?} cannot be projected", map.name())))
    }

    /// Runs something long on the engine's threads, so that it does not hold up a network task.
    fn run_later(&self, job: Box<dyn FnOnce() + Send>);

    /// Figures of the engine, as far as it counts.
    fn figures(&self) -> EngineFigures {
        EngineFigures::default()
    }
}
