//! The name that was probably meant.

use filbert_grid::query::{SqlError, SqlSubject};

use super::Mapping;
use crate::error::parsing_error;

/// Names longer than this are not compared: the time grows with the product of the lengths.
const CHARACTERS_MAX: usize = 128;

/// The nearest of some names to one that is not among them: the same but for case, else within a third of its length in
/// letters changed, left out, put in or swapped.
pub(crate) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    if length > CHARACTERS_MAX {
        return None;
    }
    let lower = name.to_lowercase();
    let far = (length / 3).max(1);
    names
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= far)
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The error for a column that a mapping does not have.
pub(crate) fn unknown_column(mapping: &Mapping, name: &str) -> SqlError {
    let names = mapping.columns.iter().map(|column| column.name.as_str());
    let mut message = format!("Column '{name}' not found in any table");
    let nearest = nearest(name, names);
    if let Some(nearest) = nearest {
        message.push_str(&format!(", did you mean '{nearest}'?"));
    }
    let nearest = nearest.map(|nearest| format!("{}.{nearest}", crate::dialect::schema_of(&mapping.name).1));
    let subject = SqlSubject::Column { relation: None, name: name.to_owned(), nearest };
    parsing_error(message).with_sqlstate("42703").about(subject)
}
