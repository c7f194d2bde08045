//! Values as bytes whose order is the order of the values: what ordered indexes are made of.
//!
//! # The layout
//!
//! | value | tag | then |
//! |---|---|---|
//! | null | 0 | |
//! | boolean | 1 | 0 or 1 |
//! | number | 2 | the nearest double and what it lacks, see below |
//! | text | 3 | UTF-8, escaped |
//! | date | 4 | days from the first of year 1 as `i32`, its sign flipped |
//! | time | 5 | seconds as `u32`, nanoseconds as `u32` |
//! | timestamp | 6 | seconds from 1970 as `i64`, its sign flipped; nanoseconds as `u32` |
//! | timestamp with time zone | 7 | the same of the moment in UTC |
//! | UUID | 8 | 16 bytes |
//! | JSON | 9 | UTF-8, escaped |
//! | array | 10 | of each item a 1 and its key; a 0 |
//! | object | 11 | the blob from its type id on, escaped |
//!
//! Escaped bytes have 0x00 0xff in place of 0x00 and end with 0x00 0x00, so that one key can follow another. All numbers
//! are big-endian.
//!
//! A number is the bits of the nearest double (all bits flipped if it is negative, else the sign bit), then the
//! difference between the number and that double, rounded away from 0, as `i16` with its sign flipped. So integers of
//! 64 bits and doubles are exact, and equal numbers of different types have the same key. Decimals with more digits share
//! keys with their neighbours: **what was found by a decimal, or among decimals, must be compared again.**

use super::Value;
use super::number::Number;

/// Arrays within each other, at most, of which the items are told apart.
const DEPTH_MAX: usize = 64;

impl Value<'_> {
    /// Appends the value's key: less values have less keys, and values that are equal have equal keys. Between types the
    /// order is that of the table in this file; a null is below all others.
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
            append_moment(6, timestamp.and_utc().timestamp(), nanosecond(timestamp), out);
        }
        Value::TimestampTz(moment) => append_moment(7, moment.timestamp(), nanosecond(moment), out),
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

fn append_moment(tag: u8, seconds: i64, nanoseconds: u32, out: &mut Vec<u8>) {
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
