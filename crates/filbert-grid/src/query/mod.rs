//! The traits of the query engine, for doors and the embedded API. Another crate implements the
//! engine. The grid only stores it ([`Grid::queries`](crate::Grid::queries)).
//!
//! ```text
//!  door ── Statement ──► QueryEngine::execute_short ── on this thread ──► StatementResult
//!       └─ (not short) ► QueryEngine::execute ── on engine threads ──► reply(StatementResult)
//!  StatementResult::Rows(Cursor) ── page, page, .. ──► RecordBatch
//!
//!  door ── MapQuery ──► QueryEngine::prepare ──► PreparedQuery ── run ──► Answer, Answer, ..
//! ```
//!
//! Rows are Arrow record batches. A column of a [`FieldType`](filbert_data::FieldType) is an array
//! of the type [`arrow_type`]. Texts may also be `Utf8` or `LargeUtf8`. A UUID is a text, and an
//! object is the bytes of a blob. [`ColumnReader`] reads each of these arrays as values.
//!
//! A door for clients with session state (dialect, user, settings) passes a [`Session`] with each
//! statement.

mod advisory;
mod block;
mod describe;
mod error;
mod figures;
mod map_query;
mod reader;
mod session;
mod statement;
mod write;

pub use advisory::{AdvisoryKey, AdvisoryLocks, AdvisoryWait};
pub use block::{Notice, SETTING_BYTES, Severity};
pub use describe::{Command, CopyFormat, CopyKind, DescribeReply, Description};
pub use error::{SqlError, SqlErrorCode, SqlSubject, Violated, data_error, parsing_error};
pub use figures::EngineFigures;
pub use map_query::{Answer, Ending, EntryProjection, MapQuery, OwnedMapQuery, PageEnd, Paging, PreparedQuery};
pub use reader::{ColumnReader, QUOTIENT_SCALE, quotient_digits};
pub use session::{Dialect, SESSION_BYTES_MAX, Session, TransactionState};
pub use statement::{
    ColumnMeta, Cursor, ExpectedResult, Page, PageReply, ParameterType, Running, Statement, StatementReply,
    StatementResult, arrow_type,
};
pub use write::{RowWriter, RowWriterReply, WriteMode};

use std::sync::Arc;

pub use crate::listeners::EntryFilter;

use crate::cluster::ReadView;
use crate::errors::GridError;
use crate::map::Map;

/// Executes SQL statements and queries of the map API. The engine of
/// [`Grid::queries`](crate::Grid::queries) is a wrapper that counts and times statements: a new
/// method of this trait must be forwarded in `metrics/statements.rs`.
pub trait QueryEngine: Send + Sync {
    /// Executes a statement immediately on the caller's thread if its plan is cached and it takes
    /// microseconds; `None` if the caller must use [`QueryEngine::execute`].
    fn execute_short(&self, statement: &Statement<'_>) -> Option<Result<StatementResult, SqlError>>;

    /// Executes a statement on the engine's own threads. `reply` is called exactly once, on any
    /// thread, possibly before this function returns.
    fn execute(&self, statement: &Statement<'_>, reply: StatementReply) -> Running;

    /// Describes a statement without executing it. `types` contains the types of its parameters, as
    /// far as the caller knows them. `reply` is called as by [`QueryEngine::execute`].
    fn describe(&self, statement: &Statement<'_>, types: &[Option<ParameterType>], reply: DescribeReply) -> Running {
        let _ = (statement, types);
        reply(Err(SqlError::new(SqlErrorCode::Generic, "statements cannot be described here")));
        Running::done()
    }

    /// Prepares a statement that writes many rows; see [`RowWriter`].
    fn row_writer(&self, statement: &Statement<'_>, mode: WriteMode, reply: RowWriterReply) {
        let _ = (statement, mode);
        reply(Err(SqlError::new(SqlErrorCode::Generic, "rows cannot be written here")));
    }

    /// The statement that would create a mapping for a map, if it can be derived from readable
    /// entries.
    fn mapping_ddl(&self, map: &str) -> Option<String>;

    /// Prepares a query of the map API, which reads the partitions at the places that `view` says.
    ///
    /// # Errors
    /// The predicate, aggregator or projection cannot be decoded, or the engine does not support
    /// its kind.
    fn prepare(&self, map: &Arc<Map>, query: MapQuery<'_>, view: ReadView)
    -> Result<Box<dyn PreparedQuery>, GridError>;

    /// Creates a filter of single entries from a predicate, for listeners.
    ///
    /// # Errors
    /// As [`QueryEngine::prepare`].
    fn filter(&self, map: &Arc<Map>, predicate: &[u8]) -> Result<Arc<dyn EntryFilter>, GridError>;

    /// Creates a projection of single entries, for iterations that read a map in parts.
    ///
    /// # Errors
    /// As [`QueryEngine::prepare`].
    fn projection(&self, map: &Arc<Map>, projection: &[u8]) -> Result<Arc<dyn EntryProjection>, GridError> {
        let _ = projection;
        Err(GridError::UnsupportedOperation(format!("single entries of map {:?} cannot be projected", map.name())))
    }

    /// Runs a long job on the engine's threads, so that it does not block a network task.
    fn run_later(&self, job: Box<dyn FnOnce() + Send>);

    /// The statistics of the engine, as far as it counts them.
    fn figures(&self) -> EngineFigures {
        EngineFigures::default()
    }
}
