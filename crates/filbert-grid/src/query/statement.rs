//! SQL statements and their results.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use filbert_data::{FieldType, Value};

use super::{Session, SqlError};

/// The kind of result that the caller accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedResult {
    /// Rows or an update count.
    #[default]
    Any,
    /// Rows. A statement that changes data is refused.
    Rows,
    /// An update count. A statement that returns rows is refused.
    UpdateCount,
}

/// The type of a parameter, as a client has declared it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterType {
    /// The type of its values.
    pub field_type: FieldType,
    /// PostgreSQL's OID of the type, if it differs from the OID of `field_type`.
    pub pg_type: Option<u32>,
}

impl From<FieldType> for ParameterType {
    fn from(field_type: FieldType) -> Self {
        ParameterType { field_type, pg_type: None }
    }
}

/// A statement from a door.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    /// The text of the statement.
    pub text: &'a str,
    /// The values of its parameters, in order.
    pub parameters: &'a [Value<'a>],
    /// The types that the client has declared for parameters, starting with `$1`. There may be
    /// fewer types than parameters, or none.
    pub types: &'a [Option<ParameterType>],
    /// The session context; `None` = a client with Hazelcast's dialect.
    pub session: Option<&'a Arc<Session>>,
    /// The timeout in milliseconds, including the fetching of rows; 0 = no timeout, `None` = the
    /// timeout of the settings.
    pub timeout_ms: Option<u64>,
    /// The kind of result that the caller accepts.
    pub expected: ExpectedResult,
    /// The columns of the result that the caller has described to its client. A statement that
    /// changes rows and would return other columns is refused before it changes anything. `None` =
    /// any columns.
    pub described: Option<&'a Arc<[ColumnMeta]>>,
}

/// The result of a statement.
pub enum StatementResult {
    /// The number of changed rows; 0 for DDL statements.
    Count(u64),
    /// Rows, which are read page by page.
    Rows(Box<dyn Cursor>),
}

/// Called exactly once with a statement's result.
pub type StatementReply = Box<dyn FnOnce(Result<StatementResult, SqlError>) + Send>;

/// Called exactly once with a page, and with the cursor for the next page.
pub type PageReply = Box<dyn FnOnce(Box<dyn Cursor>, Result<Page, SqlError>) + Send>;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMeta {
    /// The name. It need not be unique.
    pub name: String,
    /// The type.
    pub field_type: FieldType,
    /// Whether the column may contain nulls.
    pub nullable: bool,
    /// PostgreSQL's OID of the type, if it differs from the OID of `field_type`: columns of system
    /// relations have special types (`oid`, `name`, ..), which drivers inspect.
    pub pg_type: Option<u32>,
    /// The declared length of a text in characters.
    pub length: Option<u32>,
}

/// A page of a result.
#[derive(Clone, Debug)]
pub struct Page {
    /// The rows.
    pub rows: RecordBatch,
    /// Whether this is the last page.
    pub last: bool,
}

/// A result that is computed while it is read. Only the requested pages are computed, apart from
/// the state of operators. Dropping the cursor cancels the query.
pub trait Cursor: Send {
    /// The columns.
    fn columns(&self) -> &Arc<[ColumnMeta]>;

    /// Whether the result has no end.
    fn is_infinite(&self) -> bool {
        false
    }

    /// The next page of at most `rows_max` rows, if it is available without waiting.
    fn page_now(&mut self, rows_max: usize) -> Option<Result<Page, SqlError>>;

    /// Fetches the next page of 1 to `rows_max` rows (or 0, if it is the last one), as soon as it
    /// is available.
    fn page(self: Box<Self>, rows_max: usize, reply: PageReply);
}

/// A handle of a running statement. Dropping it has no effect.
#[derive(Clone)]
pub struct Running(Arc<dyn Fn() + Send + Sync>);

impl Running {
    /// Creates a handle that cancels by calling `cancel`.
    pub fn new(cancel: impl Fn() + Send + Sync + 'static) -> Self {
        Running(Arc::new(cancel))
    }

    /// The handle of a statement whose reply has been called.
    pub fn done() -> Self {
        Running::new(|| {})
    }

    /// Cancels the statement if it still runs. Its reply is then called with an error.
    pub fn cancel(&self) {
        (self.0)();
    }
}

/// The Arrow type of a column.
pub fn arrow_type(field_type: &FieldType) -> DataType {
    match field_type {
        FieldType::Boolean => DataType::Boolean,
        FieldType::TinyInt => DataType::Int8,
        FieldType::SmallInt => DataType::Int16,
        FieldType::Integer => DataType::Int32,
        FieldType::BigInt => DataType::Int64,
        // Java's decimals have unlimited digits. 76 digits, 38 of them after the point, are close
        // enough.
        FieldType::Decimal(None) => DataType::Decimal256(76, 38),
        FieldType::Decimal(Some((precision @ 0..=38, scale))) => DataType::Decimal128((*precision).max(1), *scale),
        FieldType::Decimal(Some((precision, scale))) => DataType::Decimal256((*precision).min(76), *scale),
        FieldType::Real => DataType::Float32,
        FieldType::Double => DataType::Float64,
        FieldType::Varchar | FieldType::Char | FieldType::Json | FieldType::Uuid => DataType::Utf8View,
        FieldType::Date => DataType::Date32,
        FieldType::Time => DataType::Time64(TimeUnit::Nanosecond),
        FieldType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        FieldType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        FieldType::Object | FieldType::Binary => DataType::BinaryView,
        FieldType::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        FieldType::Array(item) => DataType::new_list(arrow_type(item), true),
    }
}
