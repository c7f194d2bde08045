//! Errors of statements: created here, or translated from DataFusion's errors. The texts of
//! DataFusion do not leave the engine.

mod library;

use std::any::Any;
use std::error::Error;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError, TableReference};
use filbert_data::DataError;
use filbert_grid::query::{SqlError, SqlErrorCode, SqlSubject};

pub use filbert_grid::query::{data_error, parsing_error};

use crate::nearest::nearest;

/// The error of a value that does not fit its column's type.
pub fn conversion(error: &DataError) -> SqlError {
    let sqlstate = match error {
        DataError::NotConvertible { found: "VARCHAR", .. } => "22P02",
        DataError::NotConvertible {
            found: "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "REAL" | "DOUBLE" | "DECIMAL",
            to,
            ..
        } if is_number(to) => "22003",
        DataError::NotConvertible { .. } => "42804",
        _ => "22000",
    };
    data_error(error.to_string()).with_sqlstate(sqlstate)
}

fn is_number(type_name: &str) -> bool {
    let numbers = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "REAL", "DOUBLE"];
    numbers.contains(&type_name) || type_name.starts_with("DECIMAL")
}

/// The error of a scalar subquery with more than one row.
pub fn too_many_rows() -> SqlError {
    data_error("more than one row returned by a subquery used as an expression").with_sqlstate("21000")
}

/// Wraps an error for DataFusion.
pub fn carried(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Translates an error of DataFusion. If it wraps one of ours, that one is returned.
pub fn of_datafusion(error: &DataFusionError) -> SqlError {
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
    tracing::debug!(error = %root.strip_backtrace(), told = %found.message, "an error of the planner or of a plan");
    match error.diagnostic().and_then(|diagnostic| diagnostic.span) {
        // Code with the statement's text converts this to a position.
        Some(span) if span.start.line > 0 && !found.message.contains(" at line ") => {
            let message = format!("{} at line {}, column {}", found.message, span.start.line, span.start.column);
            SqlError { message, ..found }
        }
        _ => found,
    }
}

/// The error of a statement whose thread panicked.
pub fn panicked(panic: &(dyn Any + Send)) -> SqlError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text");
    tracing::error!(panic = text, "a statement ended by a panic");
    library::internal()
}

/// The error of an internal defect.
pub fn internal(what: &str) -> SqlError {
    tracing::error!(what, "a statement met a defect");
    library::internal()
}

/// The subject of a schema error.
fn subject_of(error: &SchemaError) -> Option<SqlSubject> {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => Some(missing_column(field, valid_fields)),
        SchemaError::AmbiguousReference { field } => Some(SqlSubject::AmbiguousColumn { name: field.name.clone() }),
        _ => None,
    }
}

fn missing_column(field: &Column, valid_fields: &[Column]) -> SqlSubject {
    let relation = field.relation.as_ref().map(|relation| relation.table().to_owned());
    let is_of = |valid: &&Column| valid.relation.as_ref().map(TableReference::table) == relation.as_deref();
    if let Some(name) = &relation
        && !valid_fields.is_empty()
        && !valid_fields.iter().any(|valid| is_of(&valid))
    {
        return SqlSubject::UnreadRelation { name: name.clone() };
    }
    let candidates = valid_fields.iter().filter(|valid| relation.is_none() || is_of(valid));
    let found = nearest(&field.name, candidates.clone().map(|valid| valid.name.as_str()));
    let found = found.and_then(|name| candidates.clone().find(|valid| valid.name == name));
    let nearest = found.map(|found| match &found.relation {
        Some(relation) => format!("{}.{}", relation.table(), found.name),
        None => found.name.clone(),
    });
    SqlSubject::Column { relation, name: field.name.clone(), nearest }
}

fn of_schema(error: &SchemaError) -> SqlError {
    let (message, sqlstate) = match error {
        SchemaError::FieldNotFound { field, .. } => {
            (format!("the column '{}' is not found in any table of the statement", field.flat_name()), "42703")
        }
        SchemaError::AmbiguousReference { field } => (format!("the column '{}' is ambiguous", field.name), "42702"),
        SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
            (format!("the column name '{name}' is specified more than once"), "42701")
        }
    };
    let subject = subject_of(error);
    let nearest = match &subject {
        Some(SqlSubject::Column { nearest: Some(nearest), .. }) => format!(", did you mean '{nearest}'?"),
        _ => String::new(),
    };
    SqlError { subject: subject.map(Box::new), ..parsing_error(format!("{message}{nearest}")).with_sqlstate(sqlstate) }
}

fn of_arrow(error: &ArrowError) -> SqlError {
    match error {
        ArrowError::DivideByZero => data_error("division by zero").with_sqlstate("22012"),
        ArrowError::ArithmeticOverflow(_) => data_error("value out of range").with_sqlstate("22003"),
        ArrowError::CastError(text) | ArrowError::ParseError(text) => library::casting(text),
        ArrowError::InvalidArgumentError(text) | ArrowError::ComputeError(text) => library::argument(text),
        ArrowError::NotYetImplemented(text) => library::not_implemented(text),
        ArrowError::MemoryError(_) => memory("not enough memory for an array"),
        _ => data_error("a value cannot be computed from the values that were found"),
    }
}

/// The error of a statement that needs more memory than there is for it.
pub(crate) fn memory(message: impl Into<String>) -> SqlError {
    let mut error = SqlError::new(SqlErrorCode::Generic, message).with_sqlstate("53200");
    error.kind = filbert_grid::ErrorKind::OutOfMemory;
    error
}

fn of_root(root: &DataFusionError) -> SqlError {
    match root {
        DataFusionError::ArrowError(error, _) => of_arrow(error),
        DataFusionError::SchemaError(error, _) => of_schema(error),
        DataFusionError::Plan(text) => library::planning(text),
        // For BETWEEN, DataFusion reports this as an internal error.
        DataFusionError::Internal(text) if text.starts_with("Failed to coerce types ") => library::planning(text),
        DataFusionError::NotImplemented(text) => library::not_implemented(text),
        DataFusionError::Execution(text) => library::computing(text),
        DataFusionError::SQL(..) => parsing_error("the statement cannot be understood"),
        DataFusionError::ResourcesExhausted(text) if text.starts_with(NOT_ENOUGH_MEMORY) => memory(text),
        DataFusionError::ResourcesExhausted(_) => memory(NOT_ENOUGH_MEMORY),
        DataFusionError::ExecutionJoin(error) if error.is_cancelled() => {
            SqlError::new(SqlErrorCode::Cancelled, "the statement was cancelled").with_sqlstate("57014")
        }
        // The regular expression library is the only one with unwrapped errors.
        DataFusionError::External(error) if error.to_string().contains("regex") => {
            data_error("invalid regular expression").with_sqlstate("2201B")
        }
        other => internal(&other.to_string()),
    }
}

/// The prefix of out-of-memory errors of queries.
pub const NOT_ENOUGH_MEMORY: &str = "not enough memory";
