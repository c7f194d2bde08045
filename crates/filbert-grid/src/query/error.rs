//! The errors of SQL statements.

use filbert_data::FieldType;

use crate::errors::{ErrorKind, GridError};

/// The error codes of Hazelcast's SQL, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum SqlErrorCode {
    /// Any other error.
    Generic = -1,
    /// The member or the connection is not available.
    ConnectionProblem = 1001,
    /// The client cancelled the statement.
    Cancelled = 1003,
    /// The timeout has expired.
    Timeout = 1004,
    /// The statement cannot be parsed.
    Parsing = 1008,
    /// An index is not valid.
    IndexInvalid = 1009,
    /// A map, mapping, view or index does not exist.
    ObjectNotFound = 1010,
    /// A value cannot be decoded or computed: a conversion, an overflow, a division by zero.
    DataException = 2000,
}

/// The subject of an error for which each error dialect has its own text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlSubject {
    /// A table, mapping or view that does not exist.
    Relation {
        /// The name in the statement.
        name: String,
        /// The most similar existing name.
        nearest: Option<String>,
    },
    /// A schema that does not exist.
    Schema {
        /// The name in the statement.
        name: String,
        /// The relation in the schema, as written, including the schema.
        relation: String,
    },
    /// A table, mapping or view that exists already.
    UsedName {
        /// Its name.
        name: String,
    },
    /// A column that does not exist.
    Column {
        /// The relation of the column, if the statement names it.
        relation: Option<String>,
        /// The name in the statement.
        name: String,
        /// The most similar existing name, with its relation if that is known.
        nearest: Option<String>,
    },
    /// A column name that is ambiguous.
    AmbiguousColumn {
        /// The name.
        name: String,
    },
    /// A relation that qualifies a column, but is not in the `FROM` clause.
    UnreadRelation {
        /// The name in the statement.
        name: String,
    },
    /// A function that does not exist, or does not accept these arguments.
    Function {
        /// The name in the statement.
        name: String,
        /// The types of its arguments, if they are known.
        arguments: Option<Vec<FieldType>>,
        /// The most similar existing name.
        nearest: Option<String>,
    },
    /// An operator that does not exist for operands of these types.
    Operator {
        /// The operator, as written.
        sign: String,
        /// The types of its operands.
        arguments: Vec<FieldType>,
    },
    /// A column that is neither in `GROUP BY` nor aggregated.
    Ungrouped {
        /// The name in the statement.
        name: String,
    },
    /// A text that is not a valid value of a type.
    Text {
        /// The text.
        text: String,
        /// The type.
        field_type: FieldType,
    },
    /// A number that is out of the range of its type.
    OutOfRange {
        /// The type.
        field_type: FieldType,
    },
}

/// A constraint that a row violates. Clients of PostgreSQL get these names in fields of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violated {
    /// The schema of the table; `None` = the default schema.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
    /// The column, if the constraint has no name.
    pub column: Option<String>,
    /// The name of the constraint.
    pub constraint: Option<String>,
    /// The values that violate it, as a sentence.
    pub detail: Option<String>,
}

/// The reason why a statement was not executed, or not completed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    /// The error code of Hazelcast's SQL.
    pub code: SqlErrorCode,
    /// The kind in the table of errors, for protocols without these codes.
    pub kind: ErrorKind,
    /// The SQLSTATE, five characters, if it is more specific than the kind's.
    pub sqlstate: Option<&'static str>,
    /// The error text.
    pub message: String,
    /// The position in the statement's text, in characters, starting at 1, if it is known.
    pub position: Option<u32>,
    /// A statement that would help, for example one that creates a mapping.
    pub suggestion: Option<String>,
    /// The subject. `None` after the error was translated into the client's error dialect.
    pub subject: Option<Box<SqlSubject>>,
    /// The constraint that a row violates.
    pub violated: Option<Box<Violated>>,
}

impl SqlError {
    /// Creates an error with a code and a text.
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
            violated: None,
        }
    }

    /// Sets the SQLSTATE.
    #[must_use]
    pub fn with_sqlstate(self, sqlstate: &'static str) -> Self {
        SqlError { sqlstate: Some(sqlstate), ..self }
    }

    /// Sets the position in the statement's text, in characters, starting at 1.
    #[must_use]
    pub fn at(self, position: u32) -> Self {
        SqlError { position: Some(position), ..self }
    }

    /// Sets a statement that would help.
    #[must_use]
    pub fn with_suggestion(self, suggestion: impl Into<String>) -> Self {
        SqlError { suggestion: Some(suggestion.into()), ..self }
    }

    /// Sets the subject.
    #[must_use]
    pub fn about(self, subject: SqlSubject) -> Self {
        SqlError { subject: Some(Box::new(subject)), ..self }
    }

    /// Sets the constraint that a row violates.
    #[must_use]
    pub fn violating(self, violated: Violated) -> Self {
        SqlError { violated: Some(Box::new(violated)), ..self }
    }

    /// The SQLSTATE, five characters.
    pub fn sqlstate(&self) -> &'static str {
        self.sqlstate.unwrap_or(self.kind.facts().sqlstate)
    }
}

/// An error for a value that cannot be decoded or computed. SQLSTATE 22000, unless another one is
/// set.
pub fn data_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlErrorCode::DataException, message).with_sqlstate("22000")
}

/// An error for a statement that cannot be parsed. SQLSTATE 42601, unless another one is set.
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
            violated: None,
        }
    }
}
