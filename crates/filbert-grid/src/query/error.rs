//! What can be wrong with a statement.

use filbert_data::FieldType;

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

/// What an error is about, where each dialect has words of its own for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlSubject {
    /// A table, mapping or view that is not there.
    Relation {
        /// What it was called.
        name: String,
        /// What there is of a similar name.
        nearest: Option<String>,
    },
    /// A schema that is not there.
    Schema {
        /// What it was called.
        name: String,
        /// The relation that was to be in it, with the schema before it.
        relation: String,
    },
    /// A table, mapping or view that is there already.
    UsedName {
        /// What it is called.
        name: String,
    },
    /// A column that is not there.
    Column {
        /// The relation that it was to be of, if the statement says.
        relation: Option<String>,
        /// What it was called.
        name: String,
        /// What there is of a similar name, with its relation where that is known.
        nearest: Option<String>,
    },
    /// A column's name that several have.
    AmbiguousColumn {
        /// The name.
        name: String,
    },
    /// A relation that columns are said to be of, and that the statement does not read.
    UnreadRelation {
        /// What it was called.
        name: String,
    },
    /// A function that is not there, or not with these arguments.
    Function {
        /// What it was called.
        name: String,
        /// The types of its arguments, if they are known.
        arguments: Option<Vec<FieldType>>,
        /// What there is of a similar name.
        nearest: Option<String>,
    },
    /// An operator that is not there for operands of these types.
    Operator {
        /// How it is written.
        sign: String,
        /// The types of its operands.
        arguments: Vec<FieldType>,
    },
    /// A column that is neither grouped by nor aggregated.
    Ungrouped {
        /// What it was called.
        name: String,
    },
    /// A text that is no value of a type.
    Text {
        /// The text.
        text: String,
        /// The type.
        field_type: FieldType,
    },
    /// A number beyond its type.
    OutOfRange {
        /// The type.
        field_type: FieldType,
    },
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
    /// What it is about, until it was said in the dialect of who asks.
    pub subject: Option<Box<SqlSubject>>,
}

impl SqlError {
    /// An error of this code, with a text.
    pub fn new(code: SqlErrorCode, message: impl Into<String>) -> Self {
        let kind = match code {
            SqlErrorCode::ConnectionProblem => ErrorKind::NotActive,
            SqlErrorCode::Timeout => ErrorKind::Timeout,
            _ => ErrorKind::Query,
        };
        SqlError {
            code,
            kind,
            sqlstate: None,
            message: message.into(),
            position: None,
            suggestion: None,
            subject: None,
        }
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

    /// The same as about something.
    #[must_use]
    pub fn about(self, subject: SqlSubject) -> Self {
        SqlError { subject: Some(Box::new(subject)), ..self }
    }

    /// The five characters of SQLSTATE.
    pub fn sqlstate(&self) -> &'static str {
        self.sqlstate.unwrap_or(self.kind.facts().sqlstate)
    }
}

/// A value cannot be read or computed: SQLSTATE 22000, unless another one is set.
pub fn data_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlErrorCode::DataException, message).with_sqlstate("22000")
}

/// A statement cannot be understood: SQLSTATE 42601, unless another one is set.
pub fn parsing_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlErrorCode::Parsing, message).with_sqlstate("42601")
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
            subject: None,
        }
    }
}
