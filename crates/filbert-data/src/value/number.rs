//! Exact comparison of numbers of all types, and the split of a number into the nearest double and
//! a remainder.

use std::cmp::Ordering;

use bigdecimal::num_bigint::Sign;
use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive};

use super::Value;

/// A number of any type.
#[derive(Clone, Copy)]
pub(super) enum Number<'v> {
    Int(i64),
    Float(f64),
    Decimal(&'v BigDecimal),
}

impl<'v> Number<'v> {
    /// The number of a value; `None` if the value is not a number.
    #[inline]
    pub(super) fn of(value: &'v Value<'_>) -> Option<Number<'v>> {
        Some(match value {
            Value::Int8(number) => Number::Int((*number).into()),
            Value::Int16(number) => Number::Int((*number).into()),
            Value::Int32(number) => Number::Int((*number).into()),
            Value::Int64(number) => Number::Int(*number),
            Value::Float32(number) => Number::Float((*number).into()),
            Value::Float64(number) => Number::Float(*number),
            Value::Decimal(number) => Number::Decimal(number),
            _ => return None,
        })
    }

    /// Compares exactly, as if both numbers had all digits. Both zeros are equal; NaN equals itself
    /// and is greater than all other numbers.
    #[inline]
    pub(super) fn compare(self, other: Number<'_>) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (Number::Float(a), Number::Float(b)) => floats(a, b),
            (Number::Int(a), Number::Float(b)) => int_with_float(a, b),
            (Number::Float(a), Number::Int(b)) => int_with_float(b, a).reverse(),
            (Number::Decimal(a), Number::Decimal(b)) => decimals(a, b),
            (Number::Decimal(a), Number::Int(b)) => decimals(a, &b.into()),
            (Number::Int(a), Number::Decimal(b)) => decimals(&a.into(), b),
            (Number::Decimal(a), Number::Float(b)) => decimal_with_float(a, b),
            (Number::Float(a), Number::Decimal(b)) => decimal_with_float(b, a).reverse(),
        }
    }

    /// The nearest double, and the difference between the number and that double, rounded away from
    /// 0 and limited to 16 bits. The pair has the order of the numbers, and equal numbers have
    /// equal pairs. Integers of 64 bits are represented exactly.
    #[inline]
    pub(super) fn split(self) -> (f64, i16) {
        match self {
            Number::Int(number) => {
                let double = number as f64;
                // Near 2^63, the nearest double differs from the integer by at most 512.
                let rest = i128::from(number) - double as i128;
                (double, i16::try_from(rest).unwrap_or_default())
            }
            Number::Float(number) => (number, 0),
            Number::Decimal(number) => split_decimal(number),
        }
    }
}

fn floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// 2 to the power of 63, the first double above all 64-bit integers.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

fn int_with_float(a: i64, b: f64) -> Ordering {
    if b.is_nan() || b >= INTEGERS_END {
        return Ordering::Less;
    }
    if b < -INTEGERS_END {
        return Ordering::Greater;
    }
    let whole = b.trunc();
    a.cmp(&(whole as i64)).then_with(|| floats(whole, b))
}

fn decimal_with_float(a: &BigDecimal, b: f64) -> Ordering {
    match BigDecimal::try_from(b) {
        Ok(b) => decimals(a, &b),
        Err(_) if b == f64::NEG_INFINITY => Ordering::Greater,
        Err(_) => Ordering::Less,
    }
}

fn decimals(a: &BigDecimal, b: &BigDecimal) -> Ordering {
    let by_sign = signum(a).cmp(&signum(b));
    if by_sign.is_ne() || signum(a) == 0 {
        return by_sign;
    }
    // Scales come from outside and may be extreme: a comparison of 1 and 10^-2,000,000,000 digit by
    // digit would expand all of these digits.
    let (size_a, size_b) = (Size::of(a), Size::of(b));
    if size_a.below <= size_b.from || size_b.below <= size_a.from {
        let by_size = size_a.from.cmp(&size_b.from);
        return if signum(a) < 0 { by_size.reverse() } else { by_size };
    }
    a.cmp(b)
}

/// The sign of a decimal: -1, 0 or 1.
pub(super) fn signum(decimal: &BigDecimal) -> i32 {
    match decimal.sign() {
        Sign::Minus => -1,
        Sign::NoSign => 0,
        Sign::Plus => 1,
    }
}

/// The magnitude of a decimal other than 0. Its absolute value is at least ten to the power `from`,
/// and less than ten to the power `below`.
pub(super) struct Size {
    pub(super) from: i64,
    pub(super) below: i64,
}

impl Size {
    pub(super) fn of(decimal: &BigDecimal) -> Size {
        const DIGITS_PER_BIT: f64 = std::f64::consts::LOG10_2;
        let (digits, scale) = decimal.as_bigint_and_scale();
        let bits = digits.bits() as f64;
        // The bounds are one wider than computed, because doubles are rounded.
        let from = ((bits - 1.0) * DIGITS_PER_BIT).floor() as i64 - 1;
        let below = (bits * DIGITS_PER_BIT).ceil() as i64 + 1;
        Size { from: from.saturating_sub(scale), below: below.saturating_sub(scale) }
    }
}

/// The double nearest to a decimal; infinite beyond the range of doubles.
pub(super) fn to_f64(decimal: &BigDecimal) -> f64 {
    let sign = f64::from(signum(decimal));
    if sign == 0.0 {
        return 0.0;
    }
    let size = Size::of(decimal);
    if size.from > 310 {
        return sign * f64::INFINITY;
    }
    if size.below < -330 {
        return 0.0;
    }
    let (digits, scale) = decimal.as_bigint_and_scale();
    // Parsing a text returns the nearest double; a division of rounded numbers would not.
    format!("{digits}e{}", scale.saturating_neg()).parse().unwrap_or(f64::NAN)
}

/// The integer equal to a decimal; `None` if the decimal has a fraction or is too large.
pub(super) fn to_i64(decimal: &BigDecimal) -> Option<i64> {
    if signum(decimal) == 0 {
        return Some(0);
    }
    let size = Size::of(decimal);
    if size.from > 20 || size.below < 0 {
        return None;
    }
    let whole = decimal.with_scale_round(0, RoundingMode::Down);
    if whole == *decimal { whole.to_i64() } else { None }
}

fn split_decimal(decimal: &BigDecimal) -> (f64, i16) {
    if let (digits, 0) = decimal.as_bigint_and_scale()
        && let Some(number) = digits.to_i64()
    {
        return Number::Int(number).split();
    }
    let double = to_f64(decimal);
    if double == 0.0 {
        // The decimal is 0, or too small for a double: just above or just below 0.
        return (0.0, i16::try_from(signum(decimal)).unwrap_or_default());
    }
    if double.is_infinite() {
        return if double > 0.0 { (f64::MAX, i16::MAX) } else { (f64::MIN, i16::MIN) };
    }
    let Ok(exact) = BigDecimal::try_from(double) else { return (double, 0) };
    let rest = decimal - exact;
    let sign = signum(&rest);
    if sign == 0 {
        return (double, 0);
    }
    let size = Size::of(&rest);
    let rounded = if size.from > 6 {
        None
    } else if size.below <= 0 {
        Some(if sign < 0 { -1 } else { 1 })
    } else {
        rest.with_scale_round(0, RoundingMode::Up).to_i16()
    };
    (double, rounded.unwrap_or(if sign < 0 { i16::MIN } else { i16::MAX }))
}
