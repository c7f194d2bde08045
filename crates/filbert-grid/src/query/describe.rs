//! What can be told of a statement before it runs.

use std::sync::Arc;

use filbert_data::FieldType;

use super::{ColumnMeta, SqlError};

/// What kind of statement one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Nothing but white space and comments.
    Empty,
    /// It has rows, and changes nothing.
    Select,
    /// It adds rows.
    Insert,
    /// It changes rows.
    Update,
    /// It takes rows out.
    Delete,
    /// `COPY .. FROM STDIN`: rows come from the client.
    CopyIn(CopyFormat),
    /// `COPY .. TO STDOUT`: its rows go to the client.
    CopyOut(CopyFormat),
    /// Anything else, by the words that PostgreSQL reports, such as `CREATE TABLE`. It may have rows: `SHOW`, `EXPLAIN`.
    Other(&'static str),
}

/// How rows are written in a `COPY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyFormat {
    /// The format.
    pub kind: CopyKind,
    /// Between values.
    pub delimiter: char,
    /// What stands for a null.
    pub null: String,
    /// Whether the first line has the columns' names.
    pub header: bool,
    /// Around values, in CSV.
    pub quote: char,
    /// Before a quote within quotes, in CSV.
    pub escape: char,
}

/// The formats of `COPY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// Lines of values between tabs, with backslashes.
    Text,
    /// Comma-separated values.
    Csv,
    /// PostgreSQL's binary format.
    Binary,
}

impl CopyFormat {
    /// A format as it is where nothing else is said.
    pub fn of(kind: CopyKind) -> CopyFormat {
        let (delimiter, null) = match kind {
            CopyKind::Csv => (',', String::new()),
            _ => ('\t', "\\N".to_owned()),
        };
        CopyFormat { kind, delimiter, null, header: false, quote: '"', escape: '"' }
    }
}

/// What can be told of a statement before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// What kind of statement it is.
    pub command: Command,
    /// The types of its parameters; [`FieldType::Varchar`] where any would do.
    pub parameters: Arc<[FieldType]>,
    /// The columns of its rows; `None` = it has none. For `COPY FROM STDIN` the columns that come in.
    pub columns: Option<Arc<[ColumnMeta]>>,
}

/// Called once with a description.
pub type DescribeReply = Box<dyn FnOnce(Result<Arc<Description>, SqlError>) + Send>;
