//! What can be wrong with a date, a time or an interval, in PostgreSQL's words.

use thiserror::Error;

/// A date, a time or an interval that cannot be read or computed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DateError {
    /// A text that is none of the type.
    #[error("invalid input syntax for type {kind}: \"{text}\"")]
    Syntax {
        /// The type's name.
        kind: &'static str,
        /// The text.
        text: String,
    },
    /// A month, a day, an hour, .. that there is not.
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
    /// A value that is written out, beyond what the type holds.
    #[error("{kind} out of range: \"{text}\"")]
    Range {
        /// The type's name.
        kind: &'static str,
        /// The text.
        text: String,
    },
    /// A computed value beyond what the type holds.
    #[error("{kind} out of range")]
    Overflow {
        /// The type's name.
        kind: &'static str,
    },
    /// An offset of a day or more.
    #[error("time zone displacement out of range: \"{text}\"")]
    Displacement {
        /// The text.
        text: String,
    },
    /// A time zone that there is not.
    #[error("time zone \"{name}\" not recognized")]
    Zone {
        /// The name.
        name: String,
    },
    /// A quotient of nothing.
    #[error("division by zero")]
    Division,
    /// A value that PostgreSQL has and that cannot be held.
    #[error("{kind} \"{text}\" is not served: {instead}")]
    Unserved {
        /// The type's name.
        kind: &'static str,
        /// The text.
        text: String,
        /// What to write instead.
        instead: &'static str,
    },
}

impl DateError {
    /// The SQLSTATE of it.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            DateError::Syntax { .. } => "22007",
            DateError::Field { .. } | DateError::Range { .. } | DateError::Overflow { .. } => "22008",
            DateError::IntervalField { .. } => "22015",
            DateError::Division => "22012",
            DateError::Displacement { .. } => "22009",
            DateError::Zone { .. } => "22023",
            DateError::Unserved { .. } => "0A000",
        }
    }
}
