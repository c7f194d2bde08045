//! Errors of statements: made here, or found in what DataFusion reports.

use std::error::Error;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use filbert_grid::query::{SqlError, SqlErrorCode};

/// A value cannot be read or computed.
pub(crate) fn data_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlErrorCode::DataException, message).with_sqlstate("22000")
}

/// A statement cannot be understood.
pub(crate) fn parsing_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlErrorCode::Parsing, message).with_sqlstate("42601")
}

/// Carries an error through DataFusion.
pub(crate) fn carried(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// What DataFusion reports, as an error of a statement: one of ours if it carries one.
pub(crate) fn of_datafusion(error: &DataFusionError) -> SqlError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(found) = current.downcast_ref::<SqlError>() {
            return found.clone();
        }
        if let Some(DataFusionError::Shared(shared)) = current.downcast_ref::<DataFusionError>() {
            return of_datafusion(shared);
        }
        if let Some(DataFusionError::External(inner)) = current.downcast_ref::<DataFusionError>()
            && let Some(found) = inner.downcast_ref::<SqlError>()
        {
            return found.clone();
        }
        cause = current.source();
    }
    let root = error.find_root();
    let found = of_root(root);
    match error.diagnostic().and_then(|diagnostic| diagnostic.span) {
        // Who has the statement's text makes a position of it.
        Some(span) if span.start.line > 0 && !found.message.contains(" at line ") => {
            let message = format!("{} at line {}, column {}", found.message, span.start.line, span.start.column);
            SqlError { message, ..found }
        }
        _ => found,
    }
}

fn of_root(root: &DataFusionError) -> SqlError {
    let message = root.strip_backtrace();
    match root {
        DataFusionError::SQL(..) => parsing_error(message),
        DataFusionError::ArrowError(error, _) if matches!(error.as_ref(), ArrowError::DivideByZero) => {
            data_error("division by zero").with_sqlstate("22012")
        }
        DataFusionError::ArrowError(error, _) => data_error(message).with_sqlstate(match error.as_ref() {
            ArrowError::ArithmeticOverflow(_) => "22003",
            // A number that does not fit into the other type; of texts it says "cannot cast string".
            ArrowError::CastError(text) if text.starts_with("Can't cast value") => "22003",
            ArrowError::CastError(_) | ArrowError::ParseError(_) => "22P02",
            _ => "22000",
        }),
        DataFusionError::Execution(_) => data_error(message),
        DataFusionError::ResourcesExhausted(_) => {
            let mut error = SqlError::new(SqlErrorCode::Generic, message).with_sqlstate("53200");
            error.kind = filbert_grid::ErrorKind::OutOfMemory;
            error
        }
        DataFusionError::SchemaError(error, _) => parsing_error(message).with_sqlstate(match error.as_ref() {
            SchemaError::FieldNotFound { .. } => "42703",
            SchemaError::AmbiguousReference { .. } => "42702",
            _ => "42601",
        }),
        DataFusionError::Plan(text) if text.starts_with("Invalid function") => {
            parsing_error(message).with_sqlstate("42883")
        }
        DataFusionError::Plan(_) | DataFusionError::NotImplemented(_) => parsing_error(message),
        _ => SqlError::new(SqlErrorCode::Generic, message),
    }
}
