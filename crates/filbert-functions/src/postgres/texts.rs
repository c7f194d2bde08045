//! Functions of texts and bytes.

use std::fmt::Write;

use datafusion::common::Result;
use filbert_data::{FieldType, Value, dates};

use super::super::numbers::{text_of_double, text_of_real};
use super::super::results::{check_value, replaced_bytes};
use super::refused;
use crate::native::{Call, Native, Take, int4, of_text, pure, text, texts};

pub(super) const FUNCTIONS: &[Native] = &[
    pure("lpad", &[Take::Text, Take::Int, Take::Text], text, |call| padded(call, true)).least(2),
    pure("rpad", &[Take::Text, Take::Int, Take::Text], text, |call| padded(call, false)).least(2),
    pure("repeat", &[Take::Text, Take::Int], text, |call| {
        let count = usize::try_from(call.int(1).unwrap_or(0)).unwrap_or(0);
        check_value(call.text(0).len().saturating_mul(count))?;
        Ok(of_text(call.text(0).repeat(count)))
    }),
    pure("replace", &[Take::Text, Take::Text, Take::Text], text, |call| {
        let (whole, from, to) = (call.text(0), call.text(1), call.text(2));
        if from.is_empty() {
            return Ok(of_text(whole));
        }
        check_value(replaced_bytes(whole, from, to))?;
        Ok(of_text(whole.replace(from, to)))
    }),
    pure("translate", &[Take::Text, Take::Text, Take::Text], text, |call| {
        let to: Vec<char> = call.text(2).chars().collect();
        let from: Vec<char> = call.text(1).chars().collect();
        let one = |char: char| match from.iter().position(|found| *found == char) {
            Some(at) => to.get(at).copied(),
            None => Some(char),
        };
        Ok(of_text(call.text(0).chars().filter_map(one).collect::<String>()))
    }),
    pure("split_part", &[Take::Text, Take::Text, Take::Int], text, split_part),
    pure("left", &[Take::Text, Take::Int], text, |call| {
        let kept = from_end(call);
        Ok(of_text(call.text(0).chars().take(kept).collect::<String>()))
    }),
    pure("right", &[Take::Text, Take::Int], text, |call| {
        let kept = from_end(call);
        let length = call.text(0).chars().count();
        Ok(of_text(call.text(0).chars().skip(length.saturating_sub(kept)).collect::<String>()))
    }),
    pure("chr", &[Take::Int], text, |call| {
        let code = call.int(0).unwrap_or(0);
        match u32::try_from(code).ok().and_then(char::from_u32) {
            Some('\0') => Err(refused("54000", "null character not permitted")),
            Some(char) => Ok(of_text(char)),
            None if code < 0 => Err(refused("54000", "character number must be positive")),
            None => Err(refused("54000", format!("requested character not valid for encoding: {code}"))),
        }
    }),
    pure("to_hex", &[Take::Any], text, |call| {
        Ok(of_text(match call.values.first() {
            Some(Value::Int64(number)) => format!("{number:x}"),
            Some(Value::Int32(number)) => format!("{number:x}"),
            _ => {
                let number = i32::try_from(call.int(0).unwrap_or(0)).unwrap_or(0);
                format!("{number:x}")
            }
        }))
    }),
    pure("overlay", &[Take::Any, Take::Any, Take::Int, Take::Int], same, overlay).least(3),
    pure("concat", &[Take::Any, Take::Rest], text, |call| {
        let mut out = String::new();
        call.values.iter().filter(|value| !value.is_null()).for_each(|value| push_output(value, &mut out));
        Ok(of_text(out))
    })
    .takes_nulls(),
    pure("concat_ws", &[Take::Text, Take::Rest], text, |call| {
        if call.values.first().is_none_or(Value::is_null) {
            return Ok(Value::Null);
        }
        let mut out = String::new();
        let mut is_first = true;
        for value in call.values.iter().skip(1).filter(|value| !value.is_null()) {
            out.push_str(if is_first { "" } else { call.text(0) });
            is_first = false;
            push_output(value, &mut out);
        }
        Ok(of_text(out))
    })
    .takes_nulls(),
    pure("format", &[Take::Text, Take::Rest], text, format).takes_nulls(),
    pure("num_nulls", &[Take::Any, Take::Rest], int4, |call| {
        Ok(count(call.values.iter().filter(|value| value.is_null()).count()))
    })
    .takes_nulls(),
    pure("num_nonnulls", &[Take::Any, Take::Rest], int4, |call| {
        Ok(count(call.values.iter().filter(|value| !value.is_null()).count()))
    })
    .takes_nulls(),
    pure("quote_literal", &[Take::Any], text, |call| Ok(of_text(quoted(&cast_output(call.values.first()))))),
    pure("quote_nullable", &[Take::Any], text, |call| {
        Ok(of_text(match call.values.first().filter(|value| !value.is_null()) {
            Some(value) => quoted(&cast_output(Some(value))),
            None => "NULL".to_owned(),
        }))
    })
    .takes_nulls(),
    pure("encode", &[Take::Any, Take::Text], text, encode),
    pure("decode", &[Take::Text, Take::Text], bytea, decode),
    pure("octet_length", &[Take::Any], int4, |call| Ok(count(bytes_of(call.values.first()).len()))),
    pure("bit_length", &[Take::Any], int4, |call| Ok(count(bytes_of(call.values.first()).len().saturating_mul(8)))),
    pure("md5", &[Take::Any], text, |call| Ok(of_text(super::digest::md5(&bytes_of(call.values.first()))))),
    pure("get_byte", &[Take::Any, Take::Int], int4, |call| {
        let bytes = written_bytes(call.values.first())?;
        let at = usize::try_from(call.int(1).unwrap_or(-1)).ok();
        match at.and_then(|at| bytes.get(at)) {
            Some(byte) => Ok(Value::Int32(i32::from(*byte))),
            None => Err(beyond(call, bytes.len())),
        }
    }),
    pure("set_byte", &[Take::Any, Take::Int, Take::Int], bytea, |call| {
        let mut bytes = written_bytes(call.values.first())?;
        let at = usize::try_from(call.int(1).unwrap_or(-1)).ok();
        let length = bytes.len();
        match at.and_then(|at| bytes.get_mut(at)) {
            Some(byte) => *byte = u8::try_from(call.int(2).unwrap_or(0) & 0xff).unwrap_or(0),
            None => return Err(beyond(call, length)),
        }
        Ok(Value::Bytes(bytes.into()))
    }),
    pure("string_to_array", &[Take::Text, Take::Text, Take::Text], texts, |call| Ok(parts(call)))
        .least(2)
        .takes_nulls(),
    pure("string_to_table", &[Take::Text, Take::Text, Take::Text], texts, |call| Ok(parts(call)))
        .least(2)
        .takes_nulls(),
];

pub(super) fn bytea(_: &[FieldType]) -> FieldType {
    FieldType::Binary
}

/// The type of the first argument: text or bytes.
fn same(types: &[FieldType]) -> FieldType {
    match types.first() {
        Some(FieldType::Binary | FieldType::Object) => FieldType::Binary,
        _ => FieldType::Varchar,
    }
}

fn count(count: usize) -> Value<'static> {
    i32::try_from(count).map_or(Value::Null, Value::Int32)
}

fn beyond(call: &Call<'_>, length: usize) -> datafusion::common::DataFusionError {
    let place = call.int(1).unwrap_or(0);
    refused("2202E", format!("index {place} out of valid range, 0..{}", length.saturating_sub(1)))
}

/// The number of characters to keep; a negative argument counts from the end.
fn from_end(call: &Call<'_>) -> usize {
    let number = call.int(1).unwrap_or(0);
    match usize::try_from(number) {
        Ok(kept) => kept,
        Err(_) => {
            let dropped = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
            call.text(0).chars().count().saturating_sub(dropped)
        }
    }
}

fn padded(call: &Call<'_>, is_left: bool) -> Result<Value<'static>> {
    let length = usize::try_from(call.int(1).unwrap_or(0)).unwrap_or(0);
    check_value(length)?;
    let whole: Vec<char> = call.text(0).chars().collect();
    let fill = if call.values.len() > 2 { call.text(2) } else { " " };
    if whole.len() >= length || fill.is_empty() {
        return Ok(of_text(whole.into_iter().take(length).collect::<String>()));
    }
    let padding: String = fill.chars().cycle().take(length - whole.len()).collect();
    let whole: String = whole.into_iter().collect();
    Ok(of_text(if is_left { padding + &whole } else { whole + &padding }))
}

fn split_part(call: &Call<'_>) -> Result<Value<'static>> {
    let (whole, delimiter) = (call.text(0), call.text(1));
    let field = call.int(2).unwrap_or(0);
    if field == 0 {
        return Err(refused("22023", "field position must not be zero"));
    }
    let at = usize::try_from(field.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let found = match (delimiter.is_empty() || whole.is_empty(), field > 0) {
        (true, _) => (at == 0).then_some(whole),
        (false, true) => whole.split(delimiter).nth(at),
        (false, false) => {
            let fields: Vec<&str> = whole.split(delimiter).collect();
            fields.len().checked_sub(at + 1).and_then(|at| fields.get(at).copied())
        }
    };
    Ok(of_text(found.unwrap_or_default()))
}

/// The section of a text from a position, counted from 1, with a length or to the end.
pub(super) fn section(from: i64, length: Option<i64>) -> Result<(usize, usize)> {
    let end = match length {
        Some(length) if length < 0 => return Err(refused("22011", "negative substring length not allowed")),
        Some(length) => from.saturating_add(length),
        None => i64::MAX,
    };
    let start = from.max(1);
    let taken = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    Ok((usize::try_from(start - 1).unwrap_or(usize::MAX), taken))
}

fn overlay(call: &Call<'_>) -> Result<Value<'static>> {
    let from = call.int(2).unwrap_or(1);
    if from <= 0 {
        return Err(refused("22011", "negative substring length not allowed"));
    }
    let start = usize::try_from(from - 1).unwrap_or(usize::MAX);
    if let Some(Value::Bytes(whole)) = call.values.first() {
        let new = written_bytes(call.values.get(1))?;
        let length = call.int(3).unwrap_or_else(|| i64::try_from(new.len()).unwrap_or(i64::MAX));
        let rest = rest_of(from, length);
        let mut out: Vec<u8> = whole.iter().take(start).copied().collect();
        out.extend_from_slice(&new);
        out.extend(whole.iter().skip(rest));
        return Ok(Value::Bytes(out.into()));
    }
    let (whole, new) = (call.text(0), call.text(1));
    let length = call.int(3).unwrap_or_else(|| i64::try_from(new.chars().count()).unwrap_or(i64::MAX));
    let mut out: String = whole.chars().take(start).collect();
    out.push_str(new);
    out.extend(whole.chars().skip(rest_of(from, length)));
    Ok(of_text(out))
}

/// The number of characters to skip before the rest of an overlaid text.
fn rest_of(from: i64, length: i64) -> usize {
    usize::try_from(from.saturating_add(length).saturating_sub(1)).unwrap_or(0)
}

/// The bytes of a text or of bytes.
fn bytes_of(value: Option<&Value<'_>>) -> Vec<u8> {
    match value {
        Some(Value::Bytes(bytes)) => bytes.to_vec(),
        Some(Value::Text(text) | Value::Json(text)) => text.as_bytes().to_vec(),
        other => output(other).into_bytes(),
    }
}

/// Bytes, or the bytes that a text denotes.
pub(super) fn written_bytes(value: Option<&Value<'_>>) -> Result<Vec<u8>> {
    match value {
        Some(Value::Text(text)) => super::casts::bytes(text),
        other => Ok(bytes_of(other)),
    }
}

/// The text of a value as PostgreSQL displays it.
pub(super) fn output(value: Option<&Value<'_>>) -> String {
    let mut out = String::new();
    value.into_iter().for_each(|value| push_output(value, &mut out));
    out
}

/// Writes a value as PostgreSQL displays it.
pub(super) fn push_output(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Null => {}
        Value::Boolean(value) => out.push(if *value { 't' } else { 'f' }),
        Value::Text(text) | Value::Json(text) => out.push_str(text),
        Value::Float32(number) => out.push_str(&text_of_real(*number)),
        Value::Float64(number) => out.push_str(&text_of_double(*number)),
        Value::Decimal(number) => out.push_str(&number.to_plain_string()),
        Value::Date(date) => dates::write_date(crate::types::days_of(*date).into(), out),
        Value::Time(time) => dates::write_time(crate::types::nanoseconds_of(*time) / 1_000, out),
        Value::Timestamp(timestamp) => dates::write_timestamp(timestamp.and_utc().timestamp_micros(), out),
        Value::TimestampTz(timestamp) => dates::write_timestamptz(timestamp.timestamp_micros(), &dates::Zone::UTC, out),
        Value::Interval(interval) => dates::write_interval(interval, out),
        Value::Bytes(bytes) | Value::Object(bytes) => {
            out.push_str("\\x");
            bytes.iter().for_each(|byte| _ = write!(out, "{byte:02x}"));
        }
        Value::Array(items) => super::arrays::push_text(items, out),
        other => match other.clone().into_owned().convert(&FieldType::Varchar) {
            Ok(Value::Text(text)) => out.push_str(&text),
            _ => _ = write!(out, "{other}"),
        },
    }
}

/// The text of a value that is cast to a text, which differs from the output for booleans.
fn cast_output(value: Option<&Value<'_>>) -> String {
    match value {
        Some(Value::Boolean(value)) => value.to_string(),
        other => output(other),
    }
}

/// A text as a literal.
fn quoted(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    match text.contains('\\') {
        true => format!("E'{}'", doubled.replace('\\', "\\\\")),
        false => format!("'{doubled}'"),
    }
}

/// `format('%1$-10s|%I|%L', ..)`
fn format(call: &Call<'_>) -> Result<Value<'static>> {
    if call.values.first().is_none_or(Value::is_null) {
        return Ok(Value::Null);
    }
    let mut out = String::new();
    // The position of the last used argument.
    let mut last = 0;
    let mut chars = call.text(0).chars().peekable();
    let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
        let mut digits = String::new();
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse::<usize>().ok()
    };
    let argument = |at: usize| match call.values.get(at) {
        Some(value) => Ok(value),
        None => Err(refused("22023", "too few arguments for format()")),
    };
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut place = None;
        let mut width = number(&mut chars).map(|width| i64::try_from(width).unwrap_or(i64::MAX));
        if width.is_some() && chars.next_if_eq(&'$').is_some() {
            place = width.take().and_then(|place| usize::try_from(place).ok());
            if place == Some(0) {
                return Err(refused("22023", "format specifies argument 0, but arguments are numbered from 1"));
            }
        }
        let is_left = width.is_none() && chars.next_if_eq(&'-').is_some();
        if width.is_none() {
            if chars.next_if_eq(&'*').is_some() {
                let at = match number(&mut chars) {
                    Some(at) => {
                        chars.next_if_eq(&'$');
                        at
                    }
                    None => last + 1,
                };
                last = at;
                width = match argument(at)? {
                    Value::Null => None,
                    value => output(Some(value)).parse().ok(),
                };
            } else {
                width = number(&mut chars).map(|width| i64::try_from(width).unwrap_or(i64::MAX));
            }
        }
        let Some(kind) = chars.next() else { return Err(refused("22023", "unterminated format() type specifier")) };
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(refused("22023", format!("unrecognized format() type specifier \"{kind}\"")));
        }
        let at = place.unwrap_or(last + 1);
        last = at;
        let value = argument(at)?;
        let written = match (kind, value.is_null()) {
            ('s', _) => output(Some(value)),
            ('I', true) => return Err(refused("22004", "null values cannot be formatted as an SQL identifier")),
            ('I', false) => filbert_dialect::quote_ident(&output(Some(value))),
            (_, true) => "NULL".to_owned(),
            (_, false) => quoted(&output(Some(value))),
        };
        let width = width.unwrap_or(0);
        let is_left = is_left || width < 0;
        let width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        check_value(width)?;
        let missing = width.saturating_sub(written.chars().count());
        check_value(out.len() + written.len() + missing)?;
        let blanks = std::iter::repeat_n(' ', missing);
        if is_left {
            out.push_str(&written);
            out.extend(blanks);
        } else {
            out.extend(blanks);
            out.push_str(&written);
        }
    }
    Ok(of_text(out))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(call: &Call<'_>) -> Result<Value<'static>> {
    let bytes = written_bytes(call.values.first())?;
    let mut out = String::new();
    match call.text(1).to_ascii_lowercase().as_str() {
        "hex" => bytes.iter().for_each(|byte| _ = write!(out, "{byte:02x}")),
        "escape" => {
            for byte in bytes {
                match byte {
                    b'\\' => out.push_str("\\\\"),
                    0 | 0x80.. => _ = write!(out, "\\{byte:03o}"),
                    other => out.push(char::from(other)),
                }
            }
        }
        "base64" => {
            for (at, group) in bytes.chunks(3).enumerate() {
                if at > 0 && at % 19 == 0 {
                    out.push('\n');
                }
                let part = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
                let bits = part(0) << 16 | part(1) << 8 | part(2);
                for place in 0..4_usize {
                    let index = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap_or(0);
                    let letter = BASE64.get(index).copied().unwrap_or(b'=');
                    out.push(char::from(if place <= group.len() { letter } else { b'=' }));
                }
            }
        }
        other => return Err(refused("22023", format!("unrecognized encoding: \"{other}\""))),
    }
    Ok(of_text(out))
}

fn decode(call: &Call<'_>) -> Result<Value<'static>> {
    let text = call.text(0);
    let bytes = match call.text(1).to_ascii_lowercase().as_str() {
        "hex" => super::casts::hexadecimal(text)?,
        "escape" => super::casts::escaped(text)?,
        "base64" => {
            let mut out = Vec::new();
            let (mut bits, mut count, mut padding) = (0_u32, 0, 0);
            for byte in text.bytes().filter(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
                if byte == b'=' {
                    padding += 1;
                    continue;
                }
                let digit = BASE64.iter().position(|letter| *letter == byte).filter(|_| padding == 0);
                let Some(digit) = digit.and_then(|digit| u32::try_from(digit).ok()) else {
                    let symbol = char::from(byte);
                    return Err(refused(
                        "22023",
                        format!("invalid symbol \"{symbol}\" found while decoding base64 sequence"),
                    ));
                };
                bits = bits << 6 | digit;
                count += 1;
                if count % 4 == 0 {
                    out.extend(bits.to_be_bytes().into_iter().skip(1));
                    bits = 0;
                }
            }
            if (count + padding) % 4 != 0 || padding > 2 {
                return Err(refused("22023", "invalid base64 end sequence"));
            }
            match count % 4 {
                2 => out.extend((bits << 12).to_be_bytes().into_iter().skip(1).take(1)),
                3 => out.extend((bits << 6).to_be_bytes().into_iter().skip(1).take(2)),
                _ => {}
            }
            out
        }
        other => return Err(refused("22023", format!("unrecognized encoding: \"{other}\""))),
    };
    Ok(Value::Bytes(bytes.into()))
}

/// The parts of a text between delimiters; without a delimiter, its characters.
fn parts(call: &Call<'_>) -> Value<'static> {
    if call.values.first().is_none_or(Value::is_null) {
        return Value::Null;
    }
    let whole = call.text(0);
    let null = call.values.get(2).filter(|null| !null.is_null()).map(|_| call.text(2));
    let one = |part: &str| if null == Some(part) { Value::Null } else { of_text(part) };
    if whole.is_empty() {
        return Value::Array(Vec::new());
    }
    Value::Array(match call.values.get(1) {
        None | Some(Value::Null) => whole.chars().map(|char| one(char.encode_utf8(&mut [0; 4]))).collect(),
        Some(_) if call.text(1).is_empty() => vec![one(whole)],
        Some(_) => whole.split(call.text(1)).map(one).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_postgresql_writes_them() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100_000.0, "100000"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1.25e-7, "1.25e-07"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.234_567_890_123_456_7e300, "1.2345678901234567e+300"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(text_of_double(number), expected);
        }
        for (number, expected) in
            [(123_456.0, "123456"), (1e6, "1e+06"), (-1_234_567.0, "-1.234567e+06"), (0.00001, "1e-05")]
        {
            assert_eq!(text_of_real(number), expected);
        }
    }
}
