//! Errors of dates, times and intervals, with the error texts of PostgreSQL.

use thiserror::Error;

/// An error of reading or computing a date, a time or an interval.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DateError {
    /// A text that is not a value of the type.
    #[error("invalid input syntax for type {kind}: \"{text}\"")]
    Syntax {
        /// The type's name.
        kind: &'static str,
        /// The text.
        text: String,
    },
    /// A month, a day, an hour or another field out of its range.
    #[error("date/time field value out of range: \"{text}\"")]
    Field {
        /// The text.
        text: String,
    },
    /// A part of an interval that is too large.
    #[error("interval field value out of range: \"{text}\"")]
    IntervalField {
        /// The text.
        text: String,
    },
    /// A value in a text that is out of the range of the type.
    #[error("{kind} out of range: \"{text}\"")]
    Range {
        /// The type's name.
        kind: &'static str,
        /// The text.
        text: String,
    },
    /// A computed value that is out of the range of the type.
    #[error("{kind} out of range")]
    Overflow {
        /// The type's name.
        kind: &'static str,
    },
    /// An offset from UTC of 16 hours or more, or with an invalid format.
    #[error("time zone displacement out of range: \"{text}\"")]
    Displacement {
        /// The text.
        text: String,
    },
    /// An unknown time zone.
    #[error("time zone \"{name}\" not recognized")]
    Zone {
        /// The name.
        name: String,
    },
    /// A division by zero.
    #[error("division by zero")]
    Division,
    /// A value of PostgreSQL that is not supported here.
    #[error("{kind} \"{text}\" is not served: {instead}")]
    Unsupported {
        /// The type's name.
        kind: &'static str,
        /// The text.
        text: String,
        /// The reason, or the text to write instead.
        instead: &'static str,
    },
}

impl DateError {
    /// The SQLSTATE of the error.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            DateError::Syntax { .. } => "22007",
            DateError::Field { .. } | DateError::Range { .. } | DateError::Overflow { .. } => "22008",
            DateError::IntervalField { .. } => "22015",
            DateError::Division => "22012",
            DateError::Displacement { .. } => "22009",
            DateError::Zone { .. } => "22023",
            DateError::Unsupported { .. } => "0A000",
        }
    }
}
