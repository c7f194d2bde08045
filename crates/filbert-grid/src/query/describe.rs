//! Descriptions of statements before their execution.

use std::sync::Arc;

use super::{ColumnMeta, ParameterType, SqlError};

/// The kind of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Only white space and comments.
    Empty,
    /// It returns rows, and changes nothing.
    Select,
    /// It inserts rows.
    Insert,
    /// It updates rows.
    Update,
    /// It deletes rows.
    Delete,
    /// `COPY .. FROM STDIN`: the client sends rows.
    CopyIn(CopyFormat),
    /// `COPY .. TO STDOUT`: the client receives rows.
    CopyOut(CopyFormat),
    /// Any other statement, with PostgreSQL's command tag, for example `CREATE TABLE`. It may
    /// return rows: `SHOW`, `EXPLAIN`.
    Other(&'static str),
}

/// The format of the rows of a `COPY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyFormat {
    /// The format.
    pub kind: CopyKind,
    /// The delimiter between values.
    pub delimiter: char,
    /// The text that represents a null.
    pub null: String,
    /// Whether the first line contains the column names.
    pub header: bool,
    /// The quote character, in CSV.
    pub quote: char,
    /// The escape character before a quote within quotes, in CSV.
    pub escape: char,
}

/// The formats of `COPY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// Lines of values separated by tabs, with backslash escapes.
    Text,
    /// Comma-separated values.
    Csv,
    /// PostgreSQL's binary format.
    Binary,
}

impl CopyFormat {
    /// A format with its default options.
    pub fn of(kind: CopyKind) -> CopyFormat {
        let (delimiter, null) = match kind {
            CopyKind::Csv => (',', String::new()),
            _ => ('\t', "\\N".to_owned()),
        };
        CopyFormat { kind, delimiter, null, header: false, quote: '"', escape: '"' }
    }
}

/// The description of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The kind of the statement.
    pub command: Command,
    /// The types of its parameters; [`VARCHAR`](filbert_data::FieldType::Varchar) if any type is valid.
    pub parameters: Arc<[ParameterType]>,
    /// The columns of its rows; `None` if it returns no rows. For `COPY FROM STDIN`, the columns of
    /// the rows that the client sends.
    pub columns: Option<Arc<[ColumnMeta]>>,
}

/// Called exactly once with a description.
pub type DescribeReply = Box<dyn FnOnce(Result<Arc<Description>, SqlError>) + Send>;
