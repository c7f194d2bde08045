//! `numeric` as text, and as groups of four digits.
//!
//! ```text
//!  i16 groups · i16 weight of the first group · u16 sign · i16 digits after the decimal point
//!  · for each group: i16
//! ```

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::{BigInt, Sign};

use super::Text;
use crate::error::{PgError, sqlstate};

const NEGATIVE: u16 = 0x4000;
/// The maximum number of digits before and after the decimal point of PostgreSQL's `numeric`.
const WHOLE_DIGITS_MAX: i64 = 131_072;
const FRACTION_DIGITS_MAX: i64 = 16_383;

/// The sign, and the digits before and after the decimal point.
struct Digits {
    is_negative: bool,
    whole: String,
    fraction: String,
}

/// The width of a format specifier is at most 65,535, which is less than the number of digits that
/// a number may have.
fn zeros(count: usize) -> String {
    "0".repeat(count)
}

fn digits(number: &BigDecimal) -> Result<Digits, Box<PgError>> {
    let (unscaled, scale) = number.as_bigint_and_scale();
    let is_zero = unscaled.sign() == Sign::NoSign;
    let mut digits = unscaled.magnitude().to_string();
    let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let whole_digits = if is_zero { 1 } else { count.saturating_sub(scale) };
    if scale > FRACTION_DIGITS_MAX || whole_digits > WHOLE_DIGITS_MAX {
        let message = format!(
            "the number has {whole_digits} digits before and {scale} behind the point, more than numeric can have"
        );
        return Err(PgError::new(sqlstate::NUMBER_OUT_OF_RANGE, message));
    }
    let fraction_digits = usize::try_from(scale).unwrap_or_default();
    if scale < 0 && !is_zero {
        digits.push_str(&zeros(usize::try_from(-scale).unwrap_or_default()));
    }
    let padded = [zeros((fraction_digits + 1).saturating_sub(digits.len())), digits].concat();
    let (whole, fraction) = padded.split_at_checked(padded.len() - fraction_digits).unwrap_or((&padded, ""));
    let is_negative = unscaled.sign() == Sign::Minus;
    Ok(Digits { is_negative, whole: whole.to_owned(), fraction: fraction.to_owned() })
}

fn not_served() -> Box<PgError> {
    PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, "NaN and infinities as numeric are not served")
}

/// The error for a text that PostgreSQL accepts as `numeric` and this server does not support.
pub(super) fn refused(text: &str) -> Option<Box<PgError>> {
    let word = text.strip_prefix(['-', '+']).unwrap_or(text).to_ascii_lowercase();
    ["nan", "inf", "infinity"].contains(&word.as_str()).then(not_served)
}

/// Writes all digits.
pub(super) fn write_text(number: &BigDecimal, out: &mut Text<'_>) -> Result<(), Box<PgError>> {
    let Digits { is_negative, whole, fraction } = digits(number)?;
    if is_negative {
        out.push('-');
    }
    out.push_str(&whole);
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(&fraction);
    }
    Ok(())
}

/// Writes groups of four digits.
pub(super) fn write_binary(number: &BigDecimal, out: &mut Vec<u8>) -> Result<(), Box<PgError>> {
    let Digits { is_negative, whole, fraction } = digits(number)?;
    let scale = fraction.len();
    let (before, behind) = (whole.len().next_multiple_of(4), scale.next_multiple_of(4));
    let mut weight = i64::try_from(before / 4).unwrap_or_default() - 1;
    let all = [zeros(before - whole.len()), whole, fraction, zeros(behind - scale)].concat();
    let value = |group: &[u8]| group.iter().fold(0_i16, |value, digit| value * 10 + i16::from(digit - b'0'));
    let mut groups: Vec<i16> = all.as_bytes().chunks(4).map(value).collect();
    let leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..leading);
    weight -= i64::try_from(leading).unwrap_or_default();
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    let short = |value: usize| i16::try_from(value).unwrap_or(i16::MAX);
    let weight = i16::try_from(weight).unwrap_or(i16::MAX);
    let sign = if is_negative { NEGATIVE } else { 0 };
    for part in [short(groups.len()), weight, sign.cast_signed(), short(scale)].into_iter().chain(groups) {
        out.extend_from_slice(&part.to_be_bytes());
    }
    Ok(())
}

/// Reads groups of four digits.
pub(super) fn read_binary(bytes: &[u8]) -> Result<BigDecimal, Box<PgError>> {
    let broken = |what: &str| PgError::new(sqlstate::INVALID_BINARY, format!("a binary numeric {what}"));
    let (parts, rest) = bytes.as_chunks::<2>();
    let mut parts = parts.iter().map(|part| i16::from_be_bytes(*part));
    let (Some(count), Some(weight), Some(sign), Some(scale)) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(broken("is shorter than 8 bytes"));
    };
    let (groups, sign) = (parts.collect::<Vec<_>>(), sign.cast_unsigned());
    if usize::try_from(count) != Ok(groups.len()) || !rest.is_empty() {
        return Err(broken(&format!("claims {count} groups of digits and has {}", groups.len())));
    }
    if sign & !NEGATIVE != 0 {
        return Err(not_served());
    }
    if scale < 0 || groups.iter().any(|group| !(0..10_000).contains(group)) {
        return Err(broken("has digits that are none"));
    }
    let digits: String = groups.iter().map(|group| format!("{group:04}")).collect();
    let unscaled: BigInt =
        if digits.is_empty() { BigInt::ZERO } else { digits.parse().map_err(|_| broken("has no digits"))? };
    let unscaled = if sign == NEGATIVE { -unscaled } else { unscaled };
    let places = (i64::from(count) - 1 - i64::from(weight)) * 4;
    if unscaled.sign() == Sign::NoSign {
        return Ok(BigDecimal::new(unscaled, i64::from(scale)));
    }
    // The groups may have fewer digits than the scale. They may also have more, and the additional
    // digits are zeros.
    Ok(BigDecimal::new(unscaled, places).with_scale(i64::from(scale)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_as_postgresql_writes_them() {
        // The bytes of `SELECT ..::numeric` in PostgreSQL's binary format.
        for (text, parts) in [
            ("0", &[0, 0, 0, 0][..]),
            ("0.00", &[0, 0, 0, 2]),
            ("1", &[1, 0, 0, 0, 1]),
            ("-1.5", &[2, 0, 0x4000, 1, 1, 5000]),
            ("10000", &[1, 1, 0, 0, 1]),
            ("12345.678900", &[3, 1, 0, 6, 1, 2345, 6789]),
            ("0.0001", &[1, -1, 0, 4, 1]),
            ("0.00001", &[1, -2, 0, 5, 1000]),
            ("99999999999999999999", &[5, 4, 0, 0, 9999, 9999, 9999, 9999, 9999]),
        ] {
            let number: BigDecimal = text.parse().unwrap();
            let mut bytes = Vec::new();
            write_binary(&number, &mut bytes).unwrap();
            let expected: Vec<u8> = parts.iter().flat_map(|part: &i16| part.to_be_bytes()).collect();
            assert_eq!(bytes, expected, "{text}");
            assert_eq!(read_binary(&bytes).unwrap().as_bigint_and_scale(), number.as_bigint_and_scale(), "{text}");
            assert_eq!(Text::written(|out| write_text(&number, out).unwrap()), text);
        }
        let large = "1.5e10".parse().unwrap();
        assert_eq!(Text::written(|out| write_text(&large, out).unwrap()), "15000000000");
    }

    #[test]
    fn the_largest_numbers_are_written() {
        for text in ["1e131071", "1e-16383", "-123456789e90000"] {
            let (number, mut bytes): (BigDecimal, _) = (text.parse().unwrap(), Vec::new());
            write_binary(&number, &mut bytes).unwrap();
            assert_eq!(read_binary(&bytes).unwrap(), number);
            let written = Text::written(|out| write_text(&number, out).unwrap());
            assert_eq!(written.parse::<BigDecimal>().unwrap(), number);
        }
    }

    #[test]
    fn decimals_beyond_numeric_are_errors() {
        for text in ["1e200000", "1e-2000000000"] {
            let number: BigDecimal = text.parse().unwrap();
            assert_eq!(write_binary(&number, &mut Vec::new()).unwrap_err().sqlstate, "22003", "{text}");
        }
        let bytes = |parts: &[i16]| parts.iter().flat_map(|part| part.to_be_bytes()).collect::<Vec<u8>>();
        for parts in [&[1, 0, 0][..], &[2, 0, 0, 0, 1], &[1, 0, -0x4000, 0, 1], &[1, 0, 0, 0, 10_000], &[-1, 0, 0, 0]] {
            assert!(read_binary(&bytes(parts)).is_err(), "{parts:?}");
        }
    }
}
