//! Estimates the memory of a value before it is decoded. An array of numbers takes many times its
//! encoded size.

use filbert_data::Value;

use super::{PgType, vectors};
use crate::wire::Format;

/// The bytes that an item of an array takes in addition to its encoded bytes: its place in a vector
/// that grows by doubling, and its own allocation.
const ITEM_BYTES: usize = 2 * size_of::<Value<'static>>() + 16;
/// The minimum capacity of a vector that is not empty.
const ITEMS_MIN: usize = 4;
/// The number of bytes before the first length of an array in binary, and the number of bytes of
/// each dimension.
const ARRAY_HEADER_BYTES: usize = 12;
const DIMENSION_BYTES: usize = 8;

/// The maximum number of bytes that a value of this type takes, without the [`Value`] itself.
pub(crate) fn value_bytes(bytes: &[u8], pg_type: PgType, format: Format) -> usize {
    let is_vector = vectors::item_of(pg_type).is_some();
    let items = match format {
        _ if !is_vector && !pg_type.is_array => 0,
        Format::Text if is_vector => 1 + count(bytes, |byte| byte.is_ascii_whitespace()),
        Format::Text => 1 + count(bytes, |byte| byte == b',') + ITEMS_MIN * count(bytes, |byte| byte == b'{'),
        Format::Binary => binary_items(bytes),
    };
    bytes.len().saturating_add(items.saturating_mul(ITEM_BYTES))
}

fn count(bytes: &[u8], is_counted: impl Fn(u8) -> bool) -> usize {
    bytes.iter().filter(|byte| is_counted(**byte)).count()
}

/// The number of items of an array in binary, including nested arrays. A claimed length is limited
/// by the available bytes.
fn binary_items(bytes: &[u8]) -> usize {
    let Some((dimensions, _)) = bytes.split_first_chunk() else { return 0 };
    let dimensions = usize::try_from(i32::from_be_bytes(*dimensions)).unwrap_or_default();
    let header = dimensions.saturating_mul(DIMENSION_BYTES).saturating_add(ARRAY_HEADER_BYTES);
    let items_max = bytes.len().saturating_sub(header) / size_of::<i32>();
    let lengths = bytes.get(ARRAY_HEADER_BYTES..header).unwrap_or_default();
    let lengths = lengths.as_chunks::<DIMENSION_BYTES>().0.iter();
    let lengths = lengths.filter_map(|dimension| dimension.first_chunk().map(|length| u32::from_be_bytes(*length)));
    let product = lengths.fold(1_usize, |product, length| product.saturating_mul(length as usize));
    // In the worst case, each further dimension has one vector for each item of the dimension
    // around it. The size of an item is already counted twice.
    let Some(further) = dimensions.checked_sub(1) else { return 0 };
    product.min(items_max).saturating_mul(further.saturating_mul(ITEMS_MIN / 2).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use filbert_data::dates::Zone;

    use super::*;
    use crate::types::{Base, read_binary, read_text, write_binary};

    /// The number of bytes that a value takes, including the spare capacity of vectors.
    fn taken(value: &Value<'_>) -> usize {
        match value {
            Value::Array(items) => items.capacity() * size_of::<Value<'_>>() + items.iter().map(taken).sum::<usize>(),
            Value::Text(text) => text.len(),
            _ => 0,
        }
    }

    #[test]
    fn what_is_expected_of_a_value_is_never_less_than_it_takes() {
        let array = |base| PgType { base, is_array: true };
        let single = |base| PgType { base, is_array: false };
        for (text, pg_type) in [
            ("{1,2,3}".to_owned(), array(Base::Int4)),
            (format!("{{{}1}}", "1,".repeat(10_000)), array(Base::Int4)),
            (format!("{{{}{{1}}}}", "{1},".repeat(10_000)), array(Base::Int8)),
            (format!("{{{}{{{{{{1}}}}}}}}", "{{{1}}},".repeat(1_000)), array(Base::Int2)),
            (format!("{{{}a}}", "NULL,".repeat(10_000)), array(Base::Text)),
            ("{}".to_owned(), array(Base::Text)),
            ("1 2  3".repeat(1_000), single(Base::Int2Vector)),
            ("a,{,{".to_owned(), single(Base::Text)),
        ] {
            let value = read_text(&text, pg_type, &Zone::UTC).unwrap();
            let expected = value_bytes(text.as_bytes(), pg_type, Format::Text);
            assert!(taken(&value) <= expected, "{} bytes taken of {expected}: {text:.40}", taken(&value));
            let mut bytes = Vec::new();
            write_binary(&value, pg_type, &mut bytes).unwrap();
            let value = read_binary(&bytes, pg_type).unwrap();
            let expected = value_bytes(&bytes, pg_type, Format::Binary);
            assert!(taken(&value) <= expected, "{} bytes taken of {expected}: {text:.40} in binary", taken(&value));
        }
    }

    #[test]
    fn a_length_that_is_claimed_is_not_believed() {
        let claimed = [1, 0, 23, i32::MAX, 1].map(i32::to_be_bytes).concat();
        let pg_type = PgType { base: Base::Int4, is_array: true };
        assert_eq!(value_bytes(&claimed, pg_type, Format::Binary), claimed.len());
        let dimensions = [i32::MAX, 0, 23].map(i32::to_be_bytes).concat();
        assert_eq!(value_bytes(&dimensions, pg_type, Format::Binary), dimensions.len());
    }
}
