//! Values as text, in the format of SQL's `CAST(... AS VARCHAR)`.

use std::fmt;

use bigdecimal::BigDecimal;
use chrono::SecondsFormat;

use super::Value;
use super::number::signum;

/// The format of `CAST(... AS VARCHAR)`: numbers as in Java, dates and times in ISO 8601, UUIDs in
/// lower case. Arrays have brackets around their items, bytes are hexadecimal after `\x`, and an
/// object is shown only by its type.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Boolean(value) => value.fmt(f),
            Value::Int8(value) => value.fmt(f),
            Value::Int16(value) => value.fmt(f),
            Value::Int32(value) => value.fmt(f),
            Value::Int64(value) => value.fmt(f),
            Value::Float32(value) => float(f, (*value).into(), format_args!("{value:?}"), format_args!("{value:e}")),
            Value::Float64(value) => float(f, *value, format_args!("{value:?}"), format_args!("{value:e}")),
            Value::Decimal(value) => decimal(f, value),
            Value::Text(text) | Value::Json(text) => f.write_str(text),
            Value::Date(date) => date.fmt(f),
            Value::Time(time) => time.fmt(f),
            Value::Timestamp(timestamp) => write!(f, "{}T{}", timestamp.date(), timestamp.time()),
            // RFC 3339 has no seconds of an offset; without them the text is another time.
            Value::TimestampTz(timestamp) if timestamp.offset().local_minus_utc() % 60 != 0 => {
                timestamp.format("%Y-%m-%dT%H:%M:%S%.f%::z").fmt(f)
            }
            Value::TimestampTz(timestamp) => f.write_str(&timestamp.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            Value::Uuid(uuid) => uuid.fmt(f),
            Value::Array(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        f.write_str(", ")?;
                    }
                    item.fmt(f)?;
                }
                f.write_str("]")
            }
            Value::Bytes(bytes) => {
                f.write_str("\\x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::Interval(interval) => interval.fmt(f),
            Value::Object(blob) => match crate::type_id(blob) {
                Ok(type_id) => write!(f, "a {type_id}"),
                Err(_) => f.write_str("an object"),
            },
        }
    }
}

/// `plain` always has a fraction; `scientific` has the form `1.5e-7` or `1e10`.
fn float(
    f: &mut fmt::Formatter<'_>,
    value: f64,
    plain: fmt::Arguments<'_>,
    scientific: fmt::Arguments<'_>,
) -> fmt::Result {
    if value.is_nan() {
        return f.write_str("NaN");
    }
    if value.is_infinite() {
        return f.write_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return f.write_fmt(plain);
    }
    let text = scientific.to_string();
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let fraction = if digits.contains('.') { "" } else { ".0" };
    write!(f, "{digits}{fraction}E{exponent}")
}

/// The format of Java's `BigDecimal`: plain digits, or an exponent if the scale is negative or the
/// number is smaller than 10^-6.
fn decimal(f: &mut fmt::Formatter<'_>, value: &BigDecimal) -> fmt::Result {
    let (unscaled, scale) = value.as_bigint_and_scale();
    let digits = unscaled.magnitude().to_string();
    if signum(value) < 0 {
        f.write_str("-")?;
    }
    let exponent = i128::from(digits.len() as u64) - 1 - i128::from(scale);
    if scale == 0 {
        return f.write_str(&digits);
    }
    if scale > 0 && exponent >= -6 {
        // There is at least one digit before the point.
        let scale = usize::try_from(scale).unwrap_or_default();
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at_checked(padded.len() - scale).unwrap_or((&padded, ""));
        return write!(f, "{whole}.{fraction}");
    }
    let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
    let point = if rest.is_empty() { "" } else { "." };
    write!(f, "{first}{point}{rest}E{exponent:+}")
}
