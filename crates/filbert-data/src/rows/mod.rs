//! Rows as text: reading and writing of PostgreSQL's `COPY` formats `text` and `csv`. The bytes may
//! arrive in parts of any size.
//!
//! ```text
//!  text   1→Ann→\N       values between tabs, \N for null, special characters after backslashes
//!  csv    1,"Ann, B.",   values between commas, in quotes where needed; null is empty, unquoted
//! ```
//!
//! A [`RowReader`] reads rows from bytes; [`put_field`] and [`end_row`] write rows. This module
//! must not know the types of columns: a value is a text or null.
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

/// The format of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFormat {
    /// Whether the format is CSV, with quotes around values. Otherwise values have backslash
    /// escapes.
    pub is_csv: bool,
    /// The delimiter between values.
    pub delimiter: u8,
    /// The text of a null.
    pub null: String,
    /// Whether the first line contains names instead of values.
    pub header: bool,
    /// The quote around values, in CSV.
    pub quote: u8,
    /// The escape before a quote within a quoted value, in CSV.
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

/// An error in the bytes of rows. Lines are counted from 1, including the header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// A row that is too long, for example because a quote is not closed.
    #[error("the row in line {line} has more than {bytes_max} bytes")]
    TooLong {
        /// The line in which the row begins.
        line: u64,
        /// The maximum number of bytes of a row.
        bytes_max: usize,
    },
    /// A carriage return in the text format that is neither escaped nor part of line ends like the
    /// first one.
    #[error("line {line} has a carriage return, or none at its end, unlike line 1; in a value it is written \\r")]
    CarriageReturn {
        /// The line in which the row begins.
        line: u64,
    },
    /// The bytes end within a quoted value.
    #[error("a quoted value that begins in the row in line {line} is not closed")]
    Unterminated {
        /// The line in which the row begins.
        line: u64,
    },
    /// A value with a zero byte, which no text has.
    #[error("value {column} of the row in line {line} has a zero byte in it")]
    HasZero {
        /// The line in which the row begins.
        line: u64,
        /// The number of the value in the row, counted from 1.
        column: usize,
    },
    /// A value that is not UTF-8.
    #[error("value {column} of the row in line {line} is not UTF-8")]
    NotUtf8 {
        /// The line in which the row begins.
        line: u64,
        /// The number of the value in the row, counted from 1.
        column: usize,
    },
}

impl RowError {
    /// The line in which the row begins.
    pub fn line(&self) -> u64 {
        match self {
            RowError::TooLong { line, .. }
            | RowError::CarriageReturn { line }
            | RowError::Unterminated { line }
            | RowError::HasZero { line, .. }
            | RowError::NotUtf8 { line, .. } => *line,
        }
    }
}
