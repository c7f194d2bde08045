//! Errors for unknown column names.

use filbert_functions::nearest;
use filbert_grid::query::{SqlError, SqlSubject, parsing_error};

use super::Mapping;

/// The error for an unknown column of a mapping.
pub(crate) fn unknown_column(mapping: &Mapping, name: &str) -> SqlError {
    let names = mapping.columns.iter().map(|column| column.name.as_str());
    let mut message = format!("Column '{name}' not found in any table");
    let nearest = nearest(name, names);
    if let Some(nearest) = nearest {
        message.push_str(&format!(", did you mean '{nearest}'?"));
    }
    let nearest = nearest.map(|nearest| format!("{}.{nearest}", filbert_dialect::schema_of(&mapping.name).1));
    let subject = SqlSubject::Column { relation: None, name: name.to_owned(), nearest };
    parsing_error(message).with_sqlstate("42703").about(subject)
}
