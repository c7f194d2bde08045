//! The keys of values in ordered indexes: bytes with the same order as the values.
//!
//! # The layout
//!
//! | value | tag | then |
//! |---|---|---|
//! | null | 0 | |
//! | boolean | 1 | 0 or 1 |
//! | number | 2 | the nearest double and the remainder, see below |
//! | text | 3 | UTF-8, escaped |
//! | date | 4 | days from the first day of year 1 as `i32`, with its sign bit flipped |
//! | time | 5 | seconds as `u32`, nanoseconds as `u32` |
//! | timestamp | 6 | seconds from 1970 as `i64`, with its sign bit flipped; nanoseconds as `u32` |
//! | timestamp with time zone | 7 | as a timestamp, for the time in UTC |
//! | UUID | 8 | 16 bytes |
//! | JSON | 9 | UTF-8, escaped |
//! | array | 10 | for each item a 1 and its key; then a 0 |
//! | object | 11 | the blob from its type id on, escaped |
//! | bytes | 12 | the bytes, escaped |
//! | interval | 13 | length in nanoseconds as `i128`, with its sign bit flipped |
//!
//! Escaped bytes have 0x00 0xff in place of 0x00 and end with 0x00 0x00, so that another key can
//! follow. All numbers are big-endian.
//!
//! A number is the bits of the nearest double (all bits flipped if it is negative, else only the
//! sign bit), then the difference between the number and that double, rounded away from 0, as `i16`
//! with its sign bit flipped. So integers of 64 bits and doubles are exact, and equal numbers of
//! different types have the same key. Decimals with more digits share keys with their neighbours:
//! **the results of a lookup by a decimal, or among decimals, must be compared again.**

use super::Value;
use super::number::Number;

/// The maximum nesting depth of arrays with items in the key. The items of deeper arrays are left
/// out.
const DEPTH_MAX: usize = 64;

impl Value<'_> {
    /// Appends the value's index key. A smaller value has a smaller key (or, among decimals, the
    /// same key), and equal values have equal keys. Values of different types are ordered by the
    /// tags in the table of this file; a null is less than all other values.
    #[inline]
    pub fn append_index_key(&self, out: &mut Vec<u8>) {
        append(self, out, DEPTH_MAX);
    }
}

fn append(value: &Value<'_>, out: &mut Vec<u8>, depth_left: usize) {
    match value {
        Value::Null => out.push(0),
        Value::Boolean(value) => out.extend_from_slice(&[1, u8::from(*value)]),
        Value::Int8(_)
        | Value::Int16(_)
        | Value::Int32(_)
        | Value::Int64(_)
        | Value::Float32(_)
        | Value::Float64(_)
        | Value::Decimal(_) => {
            if let Some(number) = Number::of(value) {
                append_number(number, out);
            }
        }
        Value::Text(text) => append_escaped(3, text.as_bytes(), out),
        Value::Date(date) => {
            let days = chrono::Datelike::num_days_from_ce(date);
            out.push(4);
            out.extend_from_slice(&(days ^ i32::MIN).to_be_bytes());
        }
        Value::Time(time) => {
            let (seconds, nanoseconds) = (chrono::Timelike::num_seconds_from_midnight(time), nanosecond(time));
            out.push(5);
            out.extend_from_slice(&seconds.to_be_bytes());
            out.extend_from_slice(&nanoseconds.to_be_bytes());
        }
        Value::Timestamp(timestamp) => {
            append_timestamp(6, timestamp.and_utc().timestamp(), nanosecond(timestamp), out);
        }
        Value::TimestampTz(timestamp) => append_timestamp(7, timestamp.timestamp(), nanosecond(timestamp), out),
        Value::Uuid(uuid) => {
            out.push(8);
            out.extend_from_slice(uuid.as_bytes());
        }
        Value::Json(text) => append_escaped(9, text.as_bytes(), out),
        Value::Array(items) => {
            out.push(10);
            if let Some(depth_left) = depth_left.checked_sub(1) {
                for item in items {
                    out.push(1);
                    append(item, out, depth_left);
                }
            }
            out.push(0);
        }
        Value::Bytes(bytes) => append_escaped(12, bytes, out),
        Value::Interval(interval) => {
            out.push(13);
            out.extend_from_slice(&(interval.length() ^ i128::MIN).to_be_bytes());
        }
        Value::Object(blob) => append_escaped(11, blob.get(4..).unwrap_or_default(), out),
    }
}

fn nanosecond(time: &impl chrono::Timelike) -> u32 {
    time.nanosecond()
}

fn append_number(number: Number<'_>, out: &mut Vec<u8>) {
    const SIGN: u64 = 1 << 63;
    let (double, rest) = number.split();
    let bits = if double == 0.0 {
        0
    } else if double.is_nan() {
        f64::NAN.to_bits() & !SIGN
    } else {
        double.to_bits()
    };
    let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    let [a, b, c, d, e, f, g, h] = ordered.to_be_bytes();
    let [i, j] = (rest ^ i16::MIN).to_be_bytes();
    out.extend_from_slice(&[2, a, b, c, d, e, f, g, h, i, j]);
}

fn append_timestamp(tag: u8, seconds: i64, nanoseconds: u32, out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(seconds ^ i64::MIN).to_be_bytes());
    out.extend_from_slice(&nanoseconds.to_be_bytes());
}

fn append_escaped(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 3);
    out.push(tag);
    let mut parts = bytes.split(|byte| *byte == 0);
    out.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        out.extend_from_slice(&[0, 0xff]);
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&[0, 0]);
}
