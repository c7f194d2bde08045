//! The errors that clients receive, and their effect on the session.

use std::io;

use filbert_data::DataError;
use filbert_grid::query::{SqlError, SqlErrorCode, Violated};

use crate::wire::{ErrorFields, Out, Violation};

/// The SQLSTATEs of errors that the door itself reports. The SQLSTATEs of the engine's errors come
/// with [`SqlError`].
pub(crate) mod sqlstate {
    pub(crate) const PROTOCOL_VIOLATION: &str = "08P01";
    pub(crate) const FEATURE_NOT_SUPPORTED: &str = "0A000";
    pub(crate) const BAD_COPY_FORMAT: &str = "22P04";
    pub(crate) const INVALID_TEXT: &str = "22P02";
    pub(crate) const INVALID_BINARY: &str = "22P03";
    pub(crate) const NUMBER_OUT_OF_RANGE: &str = "22003";
    pub(crate) const INVALID_DATETIME: &str = "22007";
    pub(crate) const DATETIME_OUT_OF_RANGE: &str = "22008";
    pub(crate) const NOT_IN_REPERTOIRE: &str = "22021";
    pub(crate) const ARRAY_SUBSCRIPT: &str = "2202E";
    pub(crate) const INVALID_PARAMETER: &str = "22023";
    pub(crate) const NO_TRANSACTION: &str = "25P01";
    pub(crate) const FAILED_TRANSACTION: &str = "25P02";
    pub(crate) const INVALID_STATEMENT_NAME: &str = "26000";
    pub(crate) const INVALID_AUTHORIZATION: &str = "28000";
    pub(crate) const INVALID_PASSWORD: &str = "28P01";
    pub(crate) const INVALID_CURSOR_NAME: &str = "34000";
    pub(crate) const SYNTAX_ERROR: &str = "42601";
    pub(crate) const DUPLICATE_CURSOR: &str = "42P03";
    pub(crate) const DUPLICATE_STATEMENT: &str = "42P05";
    pub(crate) const LIMIT_EXCEEDED: &str = "54000";
    pub(crate) const OUT_OF_MEMORY: &str = "53200";
    pub(crate) const TOO_MANY_CONNECTIONS: &str = "53300";
    pub(crate) const NOT_IN_STATE: &str = "55000";
    pub(crate) const CANCELLED: &str = "57014";
    pub(crate) const SHUTDOWN: &str = "57P01";
    pub(crate) const INTERNAL: &str = "XX000";
}

/// The schema of tables without one.
const DEFAULT_SCHEMA: &str = "public";

/// An error that is sent to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PgError {
    pub(crate) sqlstate: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The position in the query's text, in characters from 1.
    pub(crate) position: Option<u32>,
    /// Another place of the error: the line of a COPY, the number of a parameter.
    pub(crate) context: Option<String>,
    /// The constraint that a row violates.
    pub(crate) violated: Option<Box<Violated>>,
}

impl PgError {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<String>) -> Box<PgError> {
        Box::new(PgError {
            sqlstate,
            message: message.into(),
            hint: None,
            position: None,
            context: None,
            violated: None,
        })
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Box<PgError> {
        PgError::new(sqlstate::PROTOCOL_VIOLATION, message)
    }

    /// The client cancelled the statement.
    pub(crate) fn cancelled() -> Box<PgError> {
        PgError::new(sqlstate::CANCELLED, "canceling statement due to user request")
    }

    /// The member stops.
    pub(crate) fn shutting_down() -> Box<PgError> {
        PgError::new(sqlstate::SHUTDOWN, "terminating connection because this member is shutting down")
    }

    /// Adds the place of the error.
    pub(crate) fn within(mut self: Box<Self>, context: impl Into<String>) -> Box<PgError> {
        self.context = Some(context.into());
        self
    }

    /// Adds a hint.
    pub(crate) fn with_hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<PgError> {
        self.hint = Some(hint.into());
        self
    }

    /// Moves the position for a statement that begins `characters` characters after the start of
    /// the query's text.
    pub(crate) fn moved_by(mut self: Box<Self>, characters: u32) -> Box<PgError> {
        self.position = self.position.map(|position| position.saturating_add(characters));
        self
    }

    /// Writes the error as a message.
    pub(crate) fn write(&self, severity: &str, out: &mut Out) {
        let violated = self.violated.as_deref();
        out.error(ErrorFields {
            severity,
            sqlstate: self.sqlstate,
            message: &self.message,
            detail: violated.and_then(|violated| violated.detail.as_deref()),
            hint: self.hint.as_deref(),
            position: self.position,
            context: self.context.as_deref(),
            schema: violated.map(|violated| violated.schema.as_deref().unwrap_or(DEFAULT_SCHEMA)),
            table: violated.map(|violated| violated.table.as_str()),
            column: violated.and_then(|violated| violated.column.as_deref()),
            constraint: violated.and_then(|violated| violated.constraint.as_deref()),
        });
    }
}

impl From<SqlError> for Box<PgError> {
    fn from(error: SqlError) -> Self {
        // The classes that Hazelcast's codes distinguish. They apply if the error has no SQLSTATE.
        let sqlstate = match error.code {
            _ if error.sqlstate.is_some() => error.sqlstate(),
            SqlErrorCode::Cancelled => sqlstate::CANCELLED,
            SqlErrorCode::Timeout => sqlstate::CANCELLED,
            SqlErrorCode::Parsing => sqlstate::SYNTAX_ERROR,
            SqlErrorCode::ObjectNotFound => "42P01",
            SqlErrorCode::DataException => "22000",
            _ => error.sqlstate(),
        };
        let SqlError { message, position, suggestion, violated, .. } = error;
        Box::new(PgError { sqlstate, message, hint: suggestion, position, context: None, violated })
    }
}

impl From<DataError> for Box<PgError> {
    fn from(error: DataError) -> Self {
        PgError::new(sqlstate::INVALID_TEXT, error.to_string())
    }
}

/// The reason why a session cannot continue normally.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The statement failed. The session continues.
    Statement(Box<PgError>),
    /// The client receives the error, and the connection is closed.
    Fatal(Box<PgError>),
    /// The client disconnected, or the network failed.
    Gone(io::Error),
    /// The client sent `Terminate`.
    Terminated,
}

impl Failure {
    /// Moves the position for a statement that begins `characters` characters after the start of
    /// the query's text.
    pub(crate) fn moved_by(self, characters: u32) -> Failure {
        match self {
            Failure::Statement(error) => Failure::Statement(error.moved_by(characters)),
            other => other,
        }
    }
}

/// The result of most steps of a session.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl From<Box<PgError>> for Failure {
    fn from(error: Box<PgError>) -> Self {
        Failure::Statement(error)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Failure::Statement(error.into())
    }
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Failure::Fatal(PgError::protocol(violation.to_string()))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::OutOfMemory => Failure::Fatal(PgError::new(sqlstate::OUT_OF_MEMORY, error.to_string())),
            _ => Failure::Gone(error),
        }
    }
}
