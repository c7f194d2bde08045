//! Functions of texts and arrays.

use datafusion::common::Result;
use filbert_data::{FieldType, Value};
use filbert_grid::query::{SqlError, SqlErrorCode};

use crate::error::carried;
use crate::native::{Call, Native, Take, of_text, pure, text};

pub(super) const FUNCTIONS: &[Native] = &[
    // The value of a scalar subquery.
    pure("only_item", &[Take::Any], item, |call| match call.values.first() {
        Some(Value::Array(items)) => match items.as_slice() {
            [] => Ok(Value::Null),
            [item] => Ok(item.clone().into_owned()),
            _ => Err(carried(
                SqlError::new(
                    SqlErrorCode::DataException,
                    "more than one row returned by a subquery used as an expression",
                )
                .with_sqlstate("21000"),
            )),
        },
        _ => Ok(Value::Null),
    }),
    pure("pg_typeof", &[Take::Any], text, type_name).takes_nulls(),
];

fn item(types: &[FieldType]) -> FieldType {
    match types.first() {
        Some(FieldType::Array(item)) => (**item).clone(),
        _ => FieldType::Varchar,
    }
}

fn type_name(call: &Call<'_>) -> Result<Value<'static>> {
    let found = call.types.first().cloned().unwrap_or(FieldType::Varchar);
    let given = call.pg_types.first().copied().flatten().map(i64::from);
    let oid = given.unwrap_or_else(|| crate::pg_types::of_field_type(&found).0);
    let name = crate::pg_types::format(oid, None);
    // Unlike for a column, a type's name does not say whether a length is missing.
    Ok(of_text(name.replacen("bpchar", "character", 1)))
}
