//! The errors of statements.

use filbert_grid::query::{SqlError, SqlErrorCode};

/// A statement that the engine does not know.
pub(crate) fn unknown(text: &str) -> SqlError {
    let error = SqlError::new(SqlErrorCode::Parsing, format!("cannot understand {text:?}"));
    error.with_sqlstate("42601").at(3).with_suggestion("select now 1")
}

/// A value that a statement does not accept.
pub(crate) fn data(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlErrorCode::DataException, message)
}

/// A statement that was cancelled.
pub(crate) fn cancelled() -> SqlError {
    SqlError::new(SqlErrorCode::Cancelled, "the statement was cancelled")
}

/// The error in the middle of rows.
pub(crate) fn division() -> SqlError {
    data("division by zero").with_sqlstate("22012")
}

/// A row that exists already.
pub(crate) fn duplicate() -> SqlError {
    let message = "a document with the same primary key exists already";
    SqlError::new(SqlErrorCode::Generic, message).with_sqlstate("23505")
}
