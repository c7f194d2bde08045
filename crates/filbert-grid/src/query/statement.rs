//! SQL statements and their results.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use filbert_data::{FieldType, Value};

use super::{Session, SqlError};

/// What the caller expects of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedResult {
    /// Rows or a count.
    #[default]
    Any,
    /// Rows; a statement that changes is refused.
    Rows,
    /// A count; a statement that asks is refused.
    UpdateCount,
}

/// The type that a client declares of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterType {
    /// The type of its values.
    pub field_type: FieldType,
    /// The number by which PostgreSQL knows the type, where that is another one than `field_type` says.
    pub pg_type: Option<u32>,
}

impl From<FieldType> for ParameterType {
    fn from(field_type: FieldType) -> Self {
        ParameterType { field_type, pg_type: None }
    }
}

/// A statement as a door passes it on.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    /// Its text.
    pub text: &'a str,
    /// Values of its `?`, in order.
    pub parameters: &'a [Value<'a>],
    /// The types that the client declared of parameters, `$1` first; fewer than there are parameters, or none.
    pub types: &'a [Option<ParameterType>],
    /// Who asks, and how; `None` = somebody in Hazelcast's dialect.
    pub session: Option<&'a Arc<Session>>,
    /// How long it may run, fetching included, in milliseconds; 0 = as long as it takes, `None` = as the
    /// settings say.
    pub timeout_ms: Option<u64>,
    /// What the caller expects.
    pub expected: ExpectedResult,
}

/// What a statement answers.
pub enum StatementResult {
    /// It changed something: the number of rows, 0 for statements about schemas.
    Count(u64),
    /// Rows, to be read page by page.
    Rows(Box<dyn Cursor>),
}

/// Called once with a statement's result.
pub type StatementReply = Box<dyn FnOnce(Result<StatementResult, SqlError>) + Send>;

/// Called once with a page, and the cursor to go on with.
pub type PageReply = Box<dyn FnOnce(Box<dyn Cursor>, Result<Page, SqlError>) + Send>;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMeta {
    /// Its name; need not be unique.
    pub name: String,
    /// Its type.
    pub field_type: FieldType,
    /// Whether it may hold nulls.
    pub nullable: bool,
    /// The number by which PostgreSQL knows its type, where that is another one than `field_type` says: columns of the system's
    /// relations have types of their own there (`oid`, `name`, ..), which drivers look at.
    pub pg_type: Option<u32>,
}

/// Some rows of a result.
#[derive(Clone, Debug)]
pub struct Page {
    /// The rows, column by column.
    pub rows: RecordBatch,
    /// Whether no page follows.
    pub last: bool,
}

/// Rows that are made while they are read: nothing is computed ahead of the pages asked for but what operators must hold.
/// Dropping it ends the query.
pub trait Cursor: Send {
    /// The columns.
    fn columns(&self) -> &Arc<[ColumnMeta]>;

    /// Whether the rows never end.
    fn is_infinite(&self) -> bool {
        false
    }

    /// The next at most `rows_max` rows, if they are there without waiting.
    fn page_now(&mut self, rows_max: usize) -> Option<Result<Page, SqlError>>;

    /// The next 1 to `rows_max` rows (or none, if they are the last), as soon as they are there.
    fn page(self: Box<Self>, rows_max: usize, reply: PageReply);
}

/// A handle of a statement that runs; dropping it changes nothing.
#[derive(Clone)]
pub struct Running(Arc<dyn Fn() + Send + Sync>);

impl Running {
    /// A handle that cancels by calling `cancel`.
    pub fn new(cancel: impl Fn() + Send + Sync + 'static) -> Self {
        Running(Arc::new(cancel))
    }

    /// Ends the statement, if it still runs; its reply is then called with an error.
    pub fn cancel(&self) {
        (self.0)();
    }
}

/// The Arrow type in which a column of a type travels.
pub fn arrow_type(field_type: &FieldType) -> DataType {
    match field_type {
        FieldType::Boolean => DataType::Boolean,
        FieldType::TinyInt => DataType::Int8,
        FieldType::SmallInt => DataType::Int16,
        FieldType::Integer => DataType::Int32,
        FieldType::BigInt => DataType::Int64,
        // Java's decimals have any number of digits; 76 with 20 behind the point come near enough.
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
