//! Translates errors into the client's dialect. Errors are created with Hazelcast's message and a
//! subject. When an error leaves the engine for a client of PostgreSQL or CrateDB, its message is
//! built from the subject.

use filbert_data::FieldType;
use filbert_dialect::place_of_relation;
use filbert_functions::pg_types;
use filbert_grid::query::{Dialect, SqlError, SqlSubject};

/// Translates an error of a statement into a dialect.
pub(crate) fn translated(error: SqlError, text: &str, dialect: Dialect) -> SqlError {
    if dialect == Dialect::Hazelcast {
        return error;
    }
    let SqlError { subject: Some(subject), .. } = &error else {
        return if dialect == Dialect::Postgres { syntax_error(error) } else { error };
    };
    let is_postgres = dialect == Dialect::Postgres;
    let message = if is_postgres { in_postgresql(subject) } else { in_cratedb(subject) };
    let position = error.position.or_else(|| match subject.as_ref() {
        SqlSubject::Relation { name, .. } | SqlSubject::Schema { relation: name, .. } => {
            place_of_relation(text, name, dialect)
        }
        _ => None,
    });
    let suggestion = error.suggestion.clone().or_else(|| hint(subject));
    let sqlstate = match subject.as_ref() {
        // The relation that qualifies the column is missing, not the column.
        SqlSubject::UnreadRelation { .. } => Some("42P01"),
        SqlSubject::Schema { .. } if is_postgres => Some("42P01"),
        _ => error.sqlstate,
    };
    SqlError { message, position, suggestion, sqlstate, subject: None, ..error }
}

/// Replaces the parser's message about the expected token by PostgreSQL's message about the token
/// found.
fn syntax_error(error: SqlError) -> SqlError {
    let found = match error.sqlstate {
        Some("42601") => error.message.strip_prefix("expected ").and_then(|rest| rest.rsplit_once(", found: ")),
        _ => None,
    };
    let Some((_, found)) = found else { return error };
    let found = found.split(" at line ").next().unwrap_or(found);
    let message = match found {
        "EOF" => "syntax error at end of input".to_owned(),
        found => format!("syntax error at or near \"{found}\""),
    };
    SqlError { message, ..error }
}

/// The PostgreSQL name of a type.
fn type_name(field_type: &FieldType) -> String {
    let (oid, modifier) = pg_types::of_field_type(field_type);
    pg_types::format(oid, Some(modifier))
}

fn type_names(arguments: &[FieldType], name: fn(&FieldType) -> String) -> String {
    arguments.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn in_postgresql(subject: &SqlSubject) -> String {
    match subject {
        SqlSubject::Relation { name, .. } | SqlSubject::Schema { relation: name, .. } => {
            format!("relation \"{name}\" does not exist")
        }
        SqlSubject::UsedName { name } => format!("relation \"{name}\" already exists"),
        SqlSubject::Column { relation: None, name, .. } => format!("column \"{name}\" does not exist"),
        SqlSubject::Column { relation: Some(relation), name, .. } => format!("column {relation}.{name} does not exist"),
        SqlSubject::AmbiguousColumn { name } => format!("column reference \"{name}\" is ambiguous"),
        SqlSubject::UnreadRelation { name } => format!("missing FROM-clause entry for table \"{name}\""),
        SqlSubject::Function { name, arguments: None, .. } => format!("function {name} does not exist"),
        SqlSubject::Function { name, arguments: Some(arguments), .. } => {
            format!("function {name}({}) does not exist", type_names(arguments, type_name))
        }
        SqlSubject::Operator { sign, arguments } => match arguments.as_slice() {
            [operand] => format!("operator does not exist: {sign} {}", type_name(operand)),
            _ => format!(
                "operator does not exist: {}",
                type_names(arguments, type_name).replacen(", ", &format!(" {sign} "), 1)
            ),
        },
        SqlSubject::Ungrouped { name } => {
            format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function")
        }
        SqlSubject::Text { text, field_type } => {
            format!("invalid input syntax for type {}: \"{text}\"", type_name(field_type))
        }
        SqlSubject::OutOfRange { field_type } => format!("{} out of range", type_name(field_type)),
    }
}

fn in_cratedb(subject: &SqlSubject) -> String {
    match subject {
        SqlSubject::Relation { name, .. } | SqlSubject::UnreadRelation { name } => format!("Relation '{name}' unknown"),
        SqlSubject::Schema { name, .. } => format!("Schema '{name}' unknown"),
        SqlSubject::UsedName { name } => format!("Relation '{name}' already exists."),
        SqlSubject::Column { relation: None, name, .. } => format!("Column {name} unknown"),
        SqlSubject::Column { relation: Some(relation), name, .. } => format!("Column {relation}.{name} unknown"),
        SqlSubject::AmbiguousColumn { name } => format!("Column \"{name}\" is ambiguous"),
        SqlSubject::Function { name, arguments: None, .. } => format!("Unknown function: {name}"),
        SqlSubject::Function { name, arguments: Some(arguments), .. } => {
            let arguments = type_names(arguments, pg_types::crate_type);
            format!("Invalid arguments in: {name} with ({arguments})")
        }
        SqlSubject::Operator { sign, arguments } => {
            format!("Unknown operator: {sign} for types ({})", type_names(arguments, pg_types::crate_type))
        }
        SqlSubject::Ungrouped { name } => {
            format!("'{name}' must appear in the GROUP BY clause or be used in an aggregation function.")
        }
        SqlSubject::Text { text, field_type } => {
            format!("Cannot cast `'{text}'` of type `text` to type `{}`", pg_types::crate_type(field_type))
        }
        SqlSubject::OutOfRange { field_type } => format!("{} out of range", pg_types::crate_type(field_type)),
    }
}

fn hint(subject: &SqlSubject) -> Option<String> {
    Some(match subject {
        SqlSubject::Relation { nearest: Some(nearest), .. } => {
            format!("Perhaps you meant to reference the relation \"{nearest}\".")
        }
        SqlSubject::Column { nearest: Some(nearest), .. } => {
            format!("Perhaps you meant to reference the column \"{nearest}\".")
        }
        SqlSubject::Operator { .. } => {
            "No operator matches the given name and argument types. You might need to add explicit type casts."
                .to_owned()
        }
        SqlSubject::Function { arguments: Some(_), .. } => {
            "No function matches the given name and argument types. You might need to add explicit type casts."
                .to_owned()
        }
        SqlSubject::Function { nearest: Some(nearest), .. } => {
            format!("Perhaps you meant to call the function \"{nearest}\".")
        }
        _ => return None,
    })
}
