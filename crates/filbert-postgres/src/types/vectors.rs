//! `int2vector` and `oidvector`, which only system relations have: numbers separated by spaces as
//! text, arrays with lower bound 0 in binary.

use std::fmt::Write;

use filbert_data::{Value, dates::Zone};

use super::{Base, PgType, Text, arrays, read_text as read_item};
use crate::error::PgError;

/// The type of a vector's numbers. `None` if the type is not a vector.
pub(super) fn item_of(pg_type: PgType) -> Option<PgType> {
    let base = match pg_type.base {
        Base::Int2Vector => Base::Int2,
        Base::OidVector => Base::Oid,
        _ => return None,
    };
    (!pg_type.is_array).then_some(PgType { base, is_array: false })
}

fn as_array(pg_type: PgType) -> PgType {
    item_of(pg_type).map_or(pg_type, |item| PgType { is_array: true, ..item })
}

/// Writes numbers separated by spaces.
pub(super) fn write_text(items: &[Value<'_>], out: &mut Text<'_>) {
    for (at, item) in items.iter().enumerate() {
        // Writing into a buffer does not fail.
        let _ = write!(out, "{}{item}", if at > 0 { " " } else { "" });
    }
}

/// Reads numbers separated by spaces.
pub(super) fn read_text(text: &str, pg_type: PgType) -> Result<Value<'static>, Box<PgError>> {
    let item = item_of(pg_type).unwrap_or(PgType::TEXT);
    let items = text.split_ascii_whitespace().map(|word| read_item(word, item, &Zone::UTC).map(Value::into_owned));
    Ok(Value::Array(items.collect::<Result<_, _>>()?))
}

/// Writes an array with lower bound 0.
pub(super) fn write_binary(items: &[Value<'_>], pg_type: PgType, out: &mut Vec<u8>) -> Result<(), Box<PgError>> {
    let start = out.len();
    arrays::write_binary(items, as_array(pg_type).item(), out)?;
    // The lower bound follows the dimensions, the flags, the items' type and the length.
    if !items.is_empty()
        && let Some(bound) = out.get_mut(start + 16..start + 20)
    {
        bound.fill(0);
    }
    Ok(())
}

/// Reads an array.
pub(super) fn read_binary<'a>(bytes: &'a [u8], pg_type: PgType) -> Result<Value<'a>, Box<PgError>> {
    arrays::read_binary(bytes, as_array(pg_type))
}
