//! Rows as text: PostgreSQL's `COPY` formats `text` and `csv`, as bytes that come in parts of any size, and back.
//!
//! ```text
//!  text   1→Ann→\N          values between tabs, \N for null, backslashes before what would be misread
//!  csv    1,"Ann, B.",      values between commas, in quotes where needed; what is empty without quotes is null
//! ```
//!
//! A [`RowReader`] takes bytes and gives rows; [`put_field`] and [`end_row`] write them. What a field means is not known here: it is a
//! text, or null.
//!
//! ```
//! use filbert_data::rows::{RowError, RowFormat, RowReader};
//!
//! let mut names = Vec::new();
//! let mut reader = RowReader::new(RowFormat::csv(), 1 << 20);
//! let mut take = |row: filbert_data::rows::Row<'_>| {
//!     names.push(row.field(1).map(str::to_owned));
//!     Ok::<(), RowError>(())
//! };
//! reader.feed(b"1,Ann\n2,\"Bob, ", &mut take)?;
//! reader.feed(b"C.\"\n3,\n", &mut take)?;
//! reader.finish(&mut take)?;
//! assert_eq!(names, [Some("Ann".to_owned()), Some("Bob, C.".to_owned()), None]);
//! # Ok::<(), RowError>(())
//! ```

mod decode;
mod encode;
mod reader;

pub use encode::{end_row, put_field};
pub use reader::{Row, RowReader};

/// How rows are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFormat {
    /// Whether values are quoted, as in CSV; else backslashes are used.
    pub is_csv: bool,
    /// Between values.
    pub delimiter: u8,
    /// What stands for a null.
    pub null: String,
    /// Whether the first line has names and no values.
    pub header: bool,
    /// Around values, in CSV.
    pub quote: u8,
    /// Before a quote within quotes, in CSV.
    pub escape: u8,
}

impl RowFormat {
    /// The format `text`.
    pub fn text() -> RowFormat {
        RowFormat { is_csv: false, delimiter: b'\t', null: "\\N".to_owned(), header: false, quote: b'"', escape: b'"' }
    }

    /// The format `csv`, without a header.
    pub fn csv() -> RowFormat {
        RowFormat { is_csv: true, delimiter: b',', null: String::new(), header: false, quote: b'"', escape: b'"' }
    }
}

/// Bytes that are no rows. Lines are counted from 1, the header included.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// A row that goes on and on, as where a quote is not closed.
    #[error("the row in line {line} has more than {bytes_max} bytes")]
    TooLong {
        /// Where the row begins.
        line: u64,
        /// The most that a row may have.
        bytes_max: usize,
    },
    /// The bytes end within quotes.
    #[error("a quoted value that begins in the row in line {line} is not closed")]
    Unterminated {
        /// Where the row begins.
        line: u64,
    },
    /// A value that is not UTF-8.
    #[error("value {column} of the row in line {line} is not UTF-8")]
    NotUtf8 {
        /// Where the row begins.
        line: u64,
        /// Which value, from 1 on.
        column: usize,
    },
}

impl RowError {
    /// The line in which the row begins.
    pub fn line(&self) -> u64 {
        match self {
            RowError::TooLong { line, .. } | RowError::Unterminated { line } | RowError::NotUtf8 { line, .. } => *line,
        }
    }
}
