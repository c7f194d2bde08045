//! Errors of statements: made here, or found in what DataFusion reports.

use std::error::Error;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError, TableReference};
use filbert_data::FieldType;
use filbert_grid::query::{SqlError, SqlErrorCode, SqlSubject};

use crate::catalog::nearest;

/// A value cannot be read or computed.
pub(crate) fn data_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlErrorCode::DataException, message).with_sqlstate("22000")
}

/// A statement cannot be understood.
pub(crate) fn parsing_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlErrorCode::Parsing, message).with_sqlstate("42601")
}

/// A subquery that is one value has more rows than one.
pub(crate) fn too_many_rows() -> SqlError {
    data_error("more than one row returned by a subquery used as an expression").with_sqlstate("21000")
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
    let found = SqlError { subject: subject_of(root).map(Box::new), ..of_root(root) };
    match error.diagnostic().and_then(|diagnostic| diagnostic.span) {
        // Who has the statement's text makes a position of it.
        Some(span) if span.start.line > 0 && !found.message.contains(" at line ") => {
            let message = format!("{} at line {}, column {}", found.message, span.start.line, span.start.column);
            SqlError { message, ..found }
        }
        _ => found,
    }
}

/// What an error of DataFusion is about.
fn subject_of(root: &DataFusionError) -> Option<SqlSubject> {
    match root {
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => Some(missing_column(field, valid_fields)),
            SchemaError::AmbiguousReference { field } => Some(SqlSubject::AmbiguousColumn { name: field.name.clone() }),
            _ => None,
        },
        DataFusionError::Plan(text) if text.contains(NO_SUCH_SIGNATURE) => wrong_arguments(text),
        DataFusionError::Plan(text) => {
            let rest = text.strip_prefix("Invalid function '")?;
            let (name, rest) = rest.split_once('\'')?;
            let nearest = rest.split('\'').nth(1).map(str::to_owned);
            Some(SqlSubject::Function { name: name.to_owned(), arguments: None, nearest })
        }
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::CastError(text) => miscast(text),
            _ => None,
        },
        _ => None,
    }
}

/// DataFusion's words for a function that does not take its arguments: `name(type, type)` in quotes follows.
const NO_SUCH_SIGNATURE: &str = "No function matches the given name and argument types '";

fn wrong_arguments(text: &str) -> Option<SqlSubject> {
    let (_, rest) = text.split_once(NO_SUCH_SIGNATURE)?;
    let (name, rest) = rest.split_once('(')?;
    let (types, _) = rest.split_once(")'")?;
    let arguments = types.split(", ").filter(|name| !name.is_empty()).map(arrow_name).collect();
    Some(SqlSubject::Function { name: name.to_owned(), arguments, nearest: None })
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

/// Arrow's words for a value that is not cast, which have the types of Arrow in them.
fn miscast(text: &str) -> Option<SqlSubject> {
    if let Some(rest) = text.strip_prefix("Cannot cast string '") {
        let (text, rest) = rest.rsplit_once("' to value of ")?;
        let field_type = arrow_name(rest.trim_end_matches(" type"))?;
        return Some(SqlSubject::Text { text: text.to_owned(), field_type });
    }
    let (_, name) = text.strip_prefix("Can't cast value ")?.split_once(" to type ")?;
    Some(SqlSubject::OutOfRange { field_type: arrow_name(name)? })
}

fn arrow_name(name: &str) -> Option<FieldType> {
    Some(match name {
        "Boolean" => FieldType::Boolean,
        "Int8" => FieldType::TinyInt,
        "Int16" => FieldType::SmallInt,
        "Int32" => FieldType::Integer,
        "Int64" => FieldType::BigInt,
        "Float32" => FieldType::Real,
        "Float64" => FieldType::Double,
        "Date32" => FieldType::Date,
        "Utf8" | "LargeUtf8" | "Utf8View" => FieldType::Varchar,
        _ => return None,
    })
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
        // DataFusion runs subqueries that refer to no outer row, and says so.
        DataFusionError::Execution(text) if text.starts_with("Scalar subquery returned more than one row") => {
            too_many_rows()
        }
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
        DataFusionError::Plan(text) if text.starts_with("Invalid function") || text.contains(NO_SUCH_SIGNATURE) => {
            parsing_error(message).with_sqlstate("42883")
        }
        DataFusionError::Plan(_) | DataFusionError::NotImplemented(_) => parsing_error(message),
        _ => SqlError::new(SqlErrorCode::Generic, message),
    }
}
