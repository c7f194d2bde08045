//! The greatest and least of values that Arrow compares differently from PostgreSQL: documents, and
//! arrays with nulls.

use std::cmp::Ordering;

use datafusion::common::Result;
use filbert_data::{FieldType, Value};

use super::arrays::compare;
use super::json::of_value;
use crate::native::{Call, Native, Take, pure};
use crate::types::JSONB;

pub(super) const FUNCTIONS: &[Native] = &[
    pure("value_greatest", &[Take::Any, Take::Rest], like_first, |call| extreme(call, Ordering::Greater))
        .takes_nulls()
        .of_pg_type(like_known),
    pure("value_least", &[Take::Any, Take::Rest], like_first, |call| extreme(call, Ordering::Less))
        .takes_nulls()
        .of_pg_type(like_known),
];

fn like_first(types: &[FieldType]) -> FieldType {
    types.first().cloned().unwrap_or(FieldType::Varchar)
}

fn like_known(types: &[Option<u32>]) -> Option<u32> {
    types.iter().copied().find_map(|oid| oid)
}

fn extreme(call: &Call<'_>, wanted: Ordering) -> Result<Value<'static>> {
    let are_documents = like_known(call.pg_types) == Some(JSONB);
    let mut best: Option<&Value<'_>> = None;
    for value in call.values.iter().filter(|value| !value.is_null()) {
        let is_better = match best {
            None => true,
            Some(best) if are_documents => of_value(Some(value), true)?.compare(&of_value(Some(best), true)?) == wanted,
            Some(best) => compare(value, best) == wanted,
        };
        if is_better {
            best = Some(value);
        }
    }
    Ok(best.map_or(Value::Null, |best| best.clone().into_owned()))
}
