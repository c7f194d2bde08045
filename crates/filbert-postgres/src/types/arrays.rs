//! Arrays: `{1,NULL,"a b"}` as text; dimensions and items in binary.
//!
//! ```text
//!  i32 dimensions · i32 whether there are nulls · u32 OID of the items
//!  · for each dimension: i32 length · i32 lower bound
//!  · for each item: i32 length, -1 for null · bytes
//! ```

use std::borrow::Cow;

use filbert_data::{Value, dates::Zone, is_space};

use super::{
    PgType, Text, binary, read_binary as read_item_binary, read_text as read_item, text, write_text as write_item,
};
use crate::error::{PgError, sqlstate};

/// The maximum number of dimensions, as in PostgreSQL.
const DIMENSIONS_MAX: usize = 6;

/// Writes an array as text.
pub(super) fn write_text(
    items: &[Value<'_>],
    item_type: PgType,
    zone: &Zone,
    out: &mut Text<'_>,
) -> Result<(), Box<PgError>> {
    out.push('{');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        match item {
            Value::Null => out.push_str("NULL"),
            Value::Array(items) => write_text(items, item_type, zone, out)?,
            item => {
                let start = out.len();
                write_item(item, item_type, zone, out.0)?;
                quote(out.0, start);
            }
        }
    }
    out.push('}');
    Ok(())
}

/// Quotes the text from `start` on if necessary.
fn quote(out: &mut Vec<u8>, start: usize) {
    let item = out.get(start..).unwrap_or_default();
    let is_special = |byte: &u8| matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\') || is_space(char::from(*byte));
    if !item.is_empty() && !item.iter().any(is_special) && !item.eq_ignore_ascii_case(b"null") {
        return;
    }
    let item = out.split_off(start);
    out.push(b'"');
    for byte in item {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Reads an array from its text.
pub(super) fn read_text<'a>(text: &'a str, pg_type: PgType, zone: &Zone) -> Result<Value<'a>, Box<PgError>> {
    let mut reader = Reader { whole: text, rest: text.trim_matches(is_space), pg_type, zone };
    // Lower bounds, as in `[2:3]={1,2}`, are ignored.
    if reader.rest.starts_with('[') {
        let (_, rest) = reader.rest.split_once('=').ok_or_else(|| reader.broken())?;
        reader.rest = rest.trim_start_matches(is_space);
    }
    let value = reader.array(1)?;
    if reader.rest.trim_matches(is_space).is_empty() { Ok(value) } else { Err(reader.broken()) }
}

struct Reader<'a, 'z> {
    whole: &'a str,
    rest: &'a str,
    pg_type: PgType,
    zone: &'z Zone,
}

impl<'a> Reader<'a, '_> {
    #[cold]
    fn broken(&self) -> Box<PgError> {
        PgError::new(sqlstate::INVALID_TEXT, format!("malformed array literal: {}", text::shown(self.whole)))
    }

    fn take(&mut self, char: char) -> bool {
        self.rest = self.rest.trim_start_matches(is_space);
        match self.rest.strip_prefix(char) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value<'a>, Box<PgError>> {
        if !self.take('{') || depth > DIMENSIONS_MAX {
            return Err(self.broken());
        }
        let mut items = Vec::new();
        if self.take('}') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.item(depth)?);
            if self.take('}') {
                return Ok(Value::Array(items));
            }
            if !self.take(',') {
                return Err(self.broken());
            }
        }
    }

    fn item(&mut self, depth: usize) -> Result<Value<'a>, Box<PgError>> {
        self.rest = self.rest.trim_start_matches(is_space);
        if self.rest.starts_with('{') {
            return self.array(depth + 1);
        }
        let item_type = self.pg_type.item();
        if self.take('"') {
            let text = self.quoted()?;
            return match text {
                Cow::Borrowed(text) => read_item(text, item_type, self.zone),
                Cow::Owned(text) => read_item(&text, item_type, self.zone).map(Value::into_owned),
            };
        }
        let end = self.unquoted_end().ok_or_else(|| self.broken())?;
        let (text, rest) = self.rest.split_at_checked(end).ok_or_else(|| self.broken())?;
        let text = text.trim_end();
        self.rest = rest;
        match text {
            "" => Err(self.broken()),
            text if text.eq_ignore_ascii_case("null") => Ok(Value::Null),
            text if text.contains('\\') => read_item(&unescaped(text), item_type, self.zone).map(Value::into_owned),
            text => read_item(text, item_type, self.zone),
        }
    }

    /// The number of bytes up to the first character that ends an item without quotes.
    fn unquoted_end(&self) -> Option<usize> {
        let mut is_escaped = false;
        self.rest.bytes().position(|byte| {
            let ends = !is_escaped && matches!(byte, b',' | b'}' | b'{' | b'"');
            is_escaped = !is_escaped && byte == b'\\';
            ends
        })
    }

    /// Reads the text up to the closing quote.
    fn quoted(&mut self) -> Result<Cow<'a, str>, Box<PgError>> {
        let end = self.rest.find(['"', '\\']).ok_or_else(|| self.broken())?;
        let (text, rest) = self.rest.split_at_checked(end).ok_or_else(|| self.broken())?;
        if let Some(rest) = rest.strip_prefix('"') {
            self.rest = rest;
            return Ok(Cow::Borrowed(text));
        }
        let mut owned = text.to_owned();
        let mut chars = rest.chars();
        loop {
            match chars.next() {
                Some('"') => break,
                Some('\\') => owned.push(chars.next().ok_or_else(|| self.broken())?),
                Some(other) => owned.push(other),
                None => return Err(self.broken()),
            }
        }
        self.rest = chars.as_str();
        Ok(Cow::Owned(owned))
    }
}

/// Removes the backslashes that escape other characters.
fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    std::iter::from_fn(|| match chars.next()? {
        '\\' => chars.next(),
        char => Some(char),
    })
    .collect()
}

/// The lengths of the dimensions of an array.
fn lengths(items: &[Value<'_>]) -> Result<Vec<usize>, Box<PgError>> {
    let mut lengths = Vec::new();
    let mut first = Some(items);
    while let Some(items) = first {
        lengths.push(items.len());
        first = match items.first() {
            Some(Value::Array(items)) if lengths.len() < DIMENSIONS_MAX => Some(items),
            _ => None,
        };
    }
    if lengths == [0] {
        lengths.clear();
    }
    Ok(lengths)
}

/// Writes an array in binary.
pub(super) fn write_binary(items: &[Value<'_>], item_type: PgType, out: &mut Vec<u8>) -> Result<(), Box<PgError>> {
    let lengths = lengths(items)?;
    let int = |value: usize| i32::try_from(value).unwrap_or(i32::MAX).to_be_bytes();
    out.extend_from_slice(&int(lengths.len()));
    let flag_at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&item_type.oid().to_be_bytes());
    for length in &lengths {
        out.extend_from_slice(&int(*length));
        out.extend_from_slice(&int(1));
    }
    let mut has_null = false;
    write_items(items, &lengths, item_type, out, &mut has_null)?;
    if let Some(place) = out.get_mut(flag_at + 3) {
        *place = u8::from(has_null);
    }
    Ok(())
}

fn write_items(
    items: &[Value<'_>],
    lengths: &[usize],
    item_type: PgType,
    out: &mut Vec<u8>,
    has_null: &mut bool,
) -> Result<(), Box<PgError>> {
    let Some((length, inner)) = lengths.split_first() else { return Ok(()) };
    let uneven = || {
        let message = "multidimensional arrays must have sub-arrays with matching dimensions to be sent in binary";
        Err(PgError::new(sqlstate::ARRAY_SUBSCRIPT, message))
    };
    if items.len() != *length {
        return uneven();
    }
    for item in items {
        match item {
            Value::Array(items) if !inner.is_empty() => write_items(items, inner, item_type, out, has_null)?,
            _ if !inner.is_empty() => return uneven(),
            Value::Array(_) => return uneven(),
            Value::Null => {
                *has_null = true;
                out.extend_from_slice(&(-1_i32).to_be_bytes());
            }
            item => {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                binary::write_binary(item, item_type, out)?;
                let bytes = i32::try_from(out.len() - start - 4).unwrap_or(i32::MAX);
                if let Some(place) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut::<4>) {
                    *place = bytes.to_be_bytes();
                }
            }
        }
    }
    Ok(())
}

/// Reads an array from its binary form.
pub(super) fn read_binary<'a>(bytes: &'a [u8], pg_type: PgType) -> Result<Value<'a>, Box<PgError>> {
    let mut rest = bytes;
    let int = |rest: &mut &'a [u8]| {
        let (int, after) = rest.split_first_chunk().ok_or_else(|| binary::invalid(bytes, pg_type))?;
        *rest = after;
        Ok::<i32, Box<PgError>>(i32::from_be_bytes(*int))
    };
    let (dimensions, _, oid) = (int(&mut rest)?, int(&mut rest)?, int(&mut rest)?.cast_unsigned());
    let dimensions = usize::try_from(dimensions).ok().filter(|count| *count <= DIMENSIONS_MAX);
    let dimensions = dimensions.ok_or_else(|| binary::invalid(bytes, pg_type))?;
    // Items may have another type than the parameter, such as `unknown`.
    let item_type = PgType::from_oid(oid).filter(|found| !found.is_array).ok_or_else(|| {
        PgError::new(sqlstate::INVALID_BINARY, format!("an array of items of type {oid}, expected {}", pg_type.item()))
    })?;
    let mut lengths = Vec::new();
    for _ in 0..dimensions {
        let length = usize::try_from(int(&mut rest)?).map_err(|_| binary::invalid(bytes, pg_type))?;
        int(&mut rest)?;
        lengths.push(length);
    }
    if lengths.is_empty() || lengths.contains(&0) {
        return if rest.is_empty() { Ok(Value::Array(Vec::new())) } else { Err(binary::invalid(bytes, pg_type)) };
    }
    let value = read_items(&mut rest, &lengths, item_type).ok_or_else(|| binary::invalid(bytes, pg_type))??;
    if rest.is_empty() { Ok(value) } else { Err(binary::invalid(bytes, pg_type)) }
}

/// Reads the items of an array. Returns `None` if the bytes end too early.
fn read_items<'a>(
    rest: &mut &'a [u8],
    lengths: &[usize],
    item_type: PgType,
) -> Option<Result<Value<'a>, Box<PgError>>> {
    let (length, inner) = lengths.split_first()?;
    // An item takes at least four bytes. A claimed length therefore allocates no more than the
    // bytes justify.
    let needed = inner.iter().try_fold(*length, |product, length| product.checked_mul(*length))?.checked_mul(4)?;
    if needed > rest.len() {
        return None;
    }
    let mut items = Vec::new();
    for _ in 0..*length {
        if !inner.is_empty() {
            match read_items(rest, inner, item_type)? {
                Ok(item) => items.push(item),
                error => return Some(error),
            }
            continue;
        }
        let (bytes, after) = rest.split_first_chunk()?;
        *rest = after;
        let Ok(bytes) = usize::try_from(i32::from_be_bytes(*bytes)) else {
            items.push(Value::Null);
            continue;
        };
        let (item, after) = rest.split_at_checked(bytes)?;
        *rest = after;
        match read_item_binary(item, item_type) {
            Ok(item) => items.push(item),
            error => return Some(error),
        }
    }
    Some(Ok(Value::Array(items)))
}

#[cfg(test)]
mod tests {
    use super::super::Base;
    use super::*;

    fn array(base: Base) -> PgType {
        PgType { base, is_array: true }
    }

    fn ints(items: &[i32]) -> Value<'static> {
        Value::Array(items.iter().map(|item| Value::Int32(*item)).collect())
    }

    #[test]
    fn arrays_are_read_from_text_and_written_to_it() {
        for (text, base, written) in [
            ("{1,2,NULL}", Base::Int4, "{1,2,NULL}"),
            (" { 1 , 2 } ", Base::Int4, "{1,2}"),
            ("{}", Base::Text, "{}"),
            ("{{1,2},{3,4}}", Base::Int8, "{{1,2},{3,4}}"),
            (r#"{a,"b c","d\"e","","null",x\,y}"#, Base::Text, r#"{a,"b c","d\"e","","null","x,y"}"#),
            ("[2:3]={t,f}", Base::Bool, "{t,f}"),
            (r#"{"2024-02-29 00:00:00"}"#, Base::Timestamp, r#"{"2024-02-29 00:00:00"}"#),
            (r#"{"\\x00ff"}"#, Base::Bytea, r#"{"\\x00ff"}"#),
        ] {
            let value = read_text(text, array(base), &Zone::UTC).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            let Value::Array(items) = value else { panic!("{text}") };
            assert_eq!(Text::written(|out| write_text(&items, array(base).item(), &Zone::UTC, out).unwrap()), written);
        }
        for text in ["", "{", "{1", "{1,}", "1", "{1}2", "{{1}", "{\"a", "[1:2]{1}", "{{{{{{{1}}}}}}}"] {
            assert!(read_text(text, array(Base::Text), &Zone::UTC).is_err(), "{text}");
        }
    }

    #[test]
    fn arrays_have_the_binary_form_of_postgresql() {
        let value = Value::Array(vec![Value::Int32(7), Value::Null]);
        let Value::Array(items) = &value else { panic!() };
        let mut bytes = Vec::new();
        write_binary(items, array(Base::Int4).item(), &mut bytes).unwrap();
        let expected = [1, 1, 23, 2, 1, 4, 7, -1].map(i32::to_be_bytes).concat();
        assert_eq!(bytes, expected);
        assert_eq!(read_binary(&bytes, array(Base::Int4)).unwrap(), value);
        let nested = [ints(&[1, 2, 3]), ints(&[4, 5, 6])];
        bytes.clear();
        write_binary(&nested, array(Base::Int4).item(), &mut bytes).unwrap();
        assert_eq!(bytes[..28], [2, 0, 23, 2, 1, 3, 1].map(i32::to_be_bytes).concat());
        assert_eq!(read_binary(&bytes, array(Base::Int4)).unwrap(), Value::Array(nested.to_vec()));
        assert!(write_binary(&[ints(&[1]), ints(&[2, 3])], array(Base::Int4).item(), &mut bytes).is_err());
        assert!(write_binary(&[ints(&[1]), Value::Null], array(Base::Int4).item(), &mut bytes).is_err());
    }

    #[test]
    fn malformed_binary_arrays_are_errors_and_reserve_nothing() {
        let bytes = |ints: &[i32]| ints.iter().flat_map(|int| int.to_be_bytes()).collect::<Vec<u8>>();
        for broken in [
            &[1][..],
            &[-1, 0, 23],
            &[7, 0, 23],
            &[1, 0, 23, i32::MAX, 1],
            &[2, 0, 23, i32::MAX, 1, i32::MAX, 1],
            &[2, 0, 23, i32::MAX, 1, 0, 1, 0],
            &[1, 0, 9999, 1, 1, 4, 7],
            &[1, 0, 23, 1, 1, 4],
            &[1, 0, 23, 1, 1, 4, 7, 8],
        ] {
            assert!(read_binary(&bytes(broken), array(Base::Int4)).is_err(), "{broken:?}");
        }
        assert_eq!(read_binary(&bytes(&[0, 0, 23]), array(Base::Int4)).unwrap(), Value::Array(vec![]));
        assert_eq!(
            read_binary(&bytes(&[2, 0, 23, i32::MAX, 1, 0, 1]), array(Base::Int4)).unwrap(),
            Value::Array(vec![])
        );
    }
}
