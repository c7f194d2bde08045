//! What can be wrong with a statement.

use crate::{ErrorKind, GridError};

/// The kinds of errors that Hazelcast's SQL tells apart, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum SqlErrorCode {
    /// Anything else.
    Generic = -1,
    /// The member or the connection is gone.
    ConnectionProblem = 1001,
    /// The user cancelled it.
    Cancelled = 1003,
    /// It took too long.
    Timeout = 1004,
    /// The statement cannot be understood.
    Parsing = 1008,
    /// An index cannot be used.
    IndexInvalid = 1009,
    /// A map, mapping, view or index is not there.
    ObjectNotFound = 1010,
    /// A value cannot be read or computed: a conversion, an overflow, a division by zero.
    DataException = 2000,
}

/// Why a statement was not run, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    /// Its kind.
    pub code: SqlErrorCode,
    /// The kind in the one table of errors, for protocols that have no such numbers.
    pub kind: ErrorKind,
    /// SQLSTATE, five characters, where it is more exact than the kind's.
    pub sqlstate: Option<&'static str>,
    /// What went wrong.
    pub message: String,
    /// Where in the statement's text it is, in characters from 1, if it is known.
    pub position: Option<u32>,
    /// A statement that would help, such as one that makes a mapping.
    pub suggestion: Option<String>,
}

impl SqlError {
    /// An error of this code, with a text.
    pub fn new(code: SqlErrorCode, message: impl Into<String>) -> Self {
        let kind = match code {
            SqlErrorCode::ConnectionProblem => ErrorKind::NotActive,
            SqlErrorCode::Timeout => ErrorKind::Timeout,
            _ => ErrorKind::Query,
        };
        SqlError { code, kind, sqlstate: None, message: message.into(), position: None, suggestion: None }
    }

    /// The same with a SQLSTATE.
    #[must_use]
    pub fn with_sqlstate(self, sqlstate: &'static str) -> Self {
        SqlError { sqlstate: Some(sqlstate), ..self }
    }

    /// The same with a place in the statement's text, in characters from 1.
    #[must_use]
    pub fn at(self, position: u32) -> Self {
        SqlError { position: Some(position), ..self }
    }

    /// The same with a statement that would help.
    #[must_use]
    pub fn with_suggestion(self, suggestion: impl Into<String>) -> Self {
        SqlError { suggestion: Some(suggestion.into()), ..self }
    }

    /// The five characters of SQLSTATE.
    pub fn sqlstate(&self) -> &'static str {
        self.sqlstate.unwrap_or(self.kind.facts().sqlstate)
    }
}

impl From<GridError> for SqlError {
    fn from(error: GridError) -> Self {
        let code = match &error {
            GridError::NotActive => SqlErrorCode::ConnectionProblem,
            GridError::LockTimeout { .. } => SqlErrorCode::Timeout,
            GridError::Serialization(_) => SqlErrorCode::DataException,
            GridError::Destroyed { .. } => SqlErrorCode::ObjectNotFound,
            _ => SqlErrorCode::Generic,
        };
        SqlError {
            code,
            kind: error.kind(),
            sqlstate: None,
            message: error.to_string(),
            position: None,
            suggestion: None,
        }
    }
}
