//! Exact arithmetic of PostgreSQL's `numeric`: the scale of results, and roots, exponentials and
//! logarithms with that scale.
//!
//! PostgreSQL computes in groups of four decimal digits, and its rules use them: the weight of a
//! number is the position of its first group, and the first group is a number from 1 to 9,999. The
//! rules follow PostgreSQL's documentation and the results of version 15.

use bigdecimal::num_bigint::{BigInt, Sign, ToBigInt};
use bigdecimal::{BigDecimal, RoundingMode, Signed, ToPrimitive, Zero};

/// The minimum number of significant digits of an inexact result.
const SIGNIFICANT: i64 = 16;
/// The maximum number of decimal places.
pub const SCALE_MAX: i64 = 1000;
/// Extra digits against rounding errors.
const GUARD: i64 = 12;

/// The number of decimal places.
pub fn scale(number: &BigDecimal) -> i64 {
    number.as_bigint_and_exponent().1.max(0)
}

/// The position of the first decimal digit: 0 = the ones.
fn place(number: &BigDecimal) -> i64 {
    let (unscaled, exponent) = number.as_bigint_and_exponent();
    let digits = i64::try_from(unscaled.magnitude().to_string().len()).unwrap_or(i64::MAX);
    digits.saturating_sub(1).saturating_sub(exponent)
}

/// The position of the first group of four digits, and the group; both 0 for zero.
fn first_group(number: &BigDecimal) -> (i64, i64) {
    if number.is_zero() {
        return (0, 0);
    }
    let weight = place(number).div_euclid(4);
    let group = number.abs().with_scale_round(-weight.saturating_mul(4), RoundingMode::Down);
    let (unscaled, _) = group.into_bigint_and_exponent();
    (weight, unscaled.to_i64().unwrap_or(0))
}

fn limited(wanted: i64, least: i64) -> i64 {
    wanted.max(least).clamp(0, SCALE_MAX)
}

/// The number of decimal places of a quotient.
pub fn quotient_scale(dividend: &BigDecimal, divisor: &BigDecimal) -> i64 {
    let ((left, first_left), (right, first_right)) = (first_group(dividend), first_group(divisor));
    let weight = left - right - i64::from(first_left <= first_right);
    limited(SIGNIFICANT - weight.saturating_mul(4), scale(dividend).max(scale(divisor)))
}

/// A rounded quotient; `None` for a division by zero.
pub fn divide(dividend: &BigDecimal, divisor: &BigDecimal, scale: i64) -> Option<BigDecimal> {
    if divisor.is_zero() {
        return None;
    }
    let (left, left_scale) = dividend.as_bigint_and_exponent();
    let (right, right_scale) = divisor.as_bigint_and_exponent();
    // One more digit, and a sticky digit for the remainder, decide the rounding.
    let shift = scale + 1 + right_scale - left_scale;
    let (left, right) = if shift >= 0 { (left * ten_to(shift), right) } else { (left, right * ten_to(-shift)) };
    Some(BigDecimal::new(left / right, scale + 1).with_scale_round(scale, RoundingMode::HalfUp))
}

fn ten_to(power: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(power.max(0)).unwrap_or(u32::MAX))
}

/// A rounded square root; `None` for a negative number.
pub fn square_root(number: &BigDecimal) -> Option<BigDecimal> {
    if number.is_negative() {
        return None;
    }
    let (weight, _) = first_group(number);
    Some(root_to(number, limited(SIGNIFICANT - ((weight + 1) * 2 - 1), scale(number))))
}

/// A square root rounded to so many decimal places, of a number that is not negative.
pub fn root_to(number: &BigDecimal, scale: i64) -> BigDecimal {
    let (unscaled, exponent) = number.with_scale((scale + 1) * 2).into_bigint_and_exponent();
    let (root, _) = (unscaled.sqrt(), exponent);
    BigDecimal::new(root, scale + 1).with_scale_round(scale, RoundingMode::HalfUp)
}

/// A number in units of `10^-digits`.
#[derive(Clone)]
struct Fixed {
    units: BigInt,
    digits: i64,
}

impl Fixed {
    fn of(number: &BigDecimal, digits: i64) -> Fixed {
        let (units, _) = number.with_scale_round(digits, RoundingMode::HalfEven).into_bigint_and_exponent();
        Fixed { units, digits }
    }

    fn one(digits: i64) -> Fixed {
        Fixed { units: ten_to(digits), digits }
    }

    fn times(&self, other: &Fixed) -> Fixed {
        Fixed { units: &self.units * &other.units / ten_to(self.digits), digits: self.digits }
    }

    fn over(&self, other: &Fixed) -> Fixed {
        Fixed { units: &self.units * ten_to(self.digits) / &other.units, digits: self.digits }
    }

    fn number(&self) -> BigDecimal {
        BigDecimal::new(self.units.clone(), self.digits)
    }
}

/// `e` to a power, with this number of significant decimal places.
fn exponential(power: &BigDecimal, digits: i64) -> Fixed {
    // Halved until the series converges quickly; each squaring loses at most one digit.
    let mut halvings = 0_u32;
    let mut rest = power.abs();
    let limit = BigDecimal::new(BigInt::from(1), 2);
    while rest > limit && halvings < 40 {
        rest = rest.half();
        halvings += 1;
    }
    let working = digits + i64::from(halvings) + GUARD;
    let x = Fixed::of(&rest, working);
    let (mut sum, mut term, mut number) = (Fixed::one(working), Fixed::one(working), 1_u32);
    while !term.units.is_zero() {
        term = term.times(&x);
        term.units /= number;
        sum.units += &term.units;
        number += 1;
    }
    for _ in 0..halvings {
        sum = sum.times(&sum);
    }
    if power.is_negative() { Fixed::one(working).over(&sum) } else { sum }
}

/// The natural logarithm of a positive number, with this number of decimal places.
fn logarithm(number: &BigDecimal, digits: i64) -> BigDecimal {
    let working = digits + GUARD;
    let place = place(number);
    let (unscaled, exponent) = number.as_bigint_and_exponent();
    // Between 1 and 10.
    let mantissa = BigDecimal::new(unscaled, exponent + place);
    let of_mantissa = near_logarithm(&Fixed::of(&mantissa, working));
    let of_ten = near_logarithm(&Fixed { units: ten_to(working + 1), digits: working });
    BigDecimal::new(of_mantissa.units + of_ten.units * place, working)
}

/// The logarithm of a number from 1 to 10: of its eighth root, by the series of the inverse
/// hyperbolic tangent.
fn near_logarithm(number: &Fixed) -> Fixed {
    let mut root = number.clone();
    for _ in 0..3 {
        root.units = (&root.units * ten_to(root.digits)).sqrt();
    }
    let one = Fixed::one(root.digits);
    let part = Fixed { units: &root.units - &one.units, digits: root.digits }
        .over(&Fixed { units: &root.units + &one.units, digits: root.digits });
    let square = part.times(&part);
    let (mut sum, mut power, mut number) = (part.units.clone(), part, 3_u32);
    while !power.units.is_zero() {
        power = power.times(&square);
        sum += &power.units / number;
        number += 2;
    }
    Fixed { units: sum * 16_u32, digits: root.digits }
}

fn rounded(number: &BigDecimal, scale: i64) -> BigDecimal {
    number.with_scale_round(scale, RoundingMode::HalfUp)
}

fn near(number: &BigDecimal) -> f64 {
    number.to_f64().unwrap_or(0.0)
}

/// The integer part of a number.
fn whole(number: f64) -> i64 {
    number as i64
}

/// `exp`; `None` if the result is out of range.
pub fn exp(power: &BigDecimal) -> Option<BigDecimal> {
    let decimal_places = near(power) * std::f64::consts::LOG10_E;
    if decimal_places.abs() > 100_000.0 {
        return if decimal_places > 0.0 { None } else { Some(BigDecimal::new(BigInt::ZERO, SCALE_MAX)) };
    }
    let scale = limited(SIGNIFICANT - whole(decimal_places), scale(power));
    let digits = scale + whole(decimal_places).abs() + 2;
    Some(rounded(&exponential(power, digits).number(), scale))
}

/// The approximate number of digits before the decimal point of a number's natural logarithm.
fn logarithm_places(number: &BigDecimal) -> i64 {
    let distance = number - BigDecimal::from(1);
    if distance.is_zero() {
        return 0;
    }
    if distance.abs() <= BigDecimal::new(BigInt::from(1), 1) {
        let (weight, group) = first_group(&distance);
        return weight * 4 + whole((group as f64).log10());
    }
    let (unscaled, exponent) = number.as_bigint_and_exponent();
    let place = place(number);
    let mantissa = near(&BigDecimal::new(unscaled, exponent + place));
    let logarithm = mantissa.ln() + place as f64 * std::f64::consts::LN_10;
    whole(logarithm.abs().log10())
}

/// The natural logarithm of a positive number.
pub fn ln(number: &BigDecimal) -> BigDecimal {
    let scale = limited(SIGNIFICANT - logarithm_places(number), scale(number));
    rounded(&logarithm(number, scale), scale)
}

/// The logarithm of a positive number to a base that is positive and not 1.
pub fn log(base: &BigDecimal, number: &BigDecimal) -> BigDecimal {
    let places = logarithm_places(number) - logarithm_places(base);
    let result_scale = limited(SIGNIFICANT - places, scale(base).max(scale(number)));
    let digits = result_scale + GUARD + places.abs() + logarithm_places(base).abs();
    let (number, base) = (logarithm(number, digits), logarithm(base, digits));
    divide(&number, &base, result_scale).unwrap_or_default()
}

/// A power; `None` if it is undefined or out of range. The caller rejects zero to a negative power.
pub fn power(base: &BigDecimal, exponent: &BigDecimal) -> Option<BigDecimal> {
    let is_whole = exponent.is_integer();
    let least = scale(base).max(if is_whole { 0 } else { scale(exponent) });
    if base.is_zero() {
        let result = if exponent.is_zero() { BigDecimal::from(1) } else { BigDecimal::zero() };
        return Some(result.with_scale(limited(SIGNIFICANT, least)));
    }
    if is_whole && let Some(exponent) = exponent.to_i64().and_then(|exponent| i32::try_from(exponent).ok()) {
        return whole_power(base, exponent, limited(SIGNIFICANT, least));
    }
    let is_odd = is_whole && (exponent.to_bigint()? % 2_u32) != BigInt::ZERO;
    let sign = match base.sign() {
        Sign::Minus if !is_whole => return None,
        Sign::Minus if is_odd => -1,
        _ => 1,
    };
    let base = base.abs();
    let estimate = near(&logarithm(&base, 20)) * near(exponent);
    let decimal_places = estimate * std::f64::consts::LOG10_E;
    if decimal_places.abs() > 100_000.0 {
        return if decimal_places > 0.0 { None } else { Some(BigDecimal::new(BigInt::ZERO, SCALE_MAX)) };
    }
    let result_scale = limited(SIGNIFICANT - whole(decimal_places), least);
    let digits = result_scale + whole(decimal_places).abs() + 4;
    let exponent_places = place(exponent).max(0);
    let product = logarithm(&base, digits + exponent_places + GUARD) * exponent;
    let result = rounded(&exponential(&product, digits).number(), result_scale);
    Some(result * BigDecimal::from(sign))
}

fn whole_power(base: &BigDecimal, exponent: i32, scale: i64) -> Option<BigDecimal> {
    let places = near(&logarithm(&base.abs(), 20)) * std::f64::consts::LOG10_E * f64::from(exponent);
    if places > 100_000.0 {
        return None;
    }
    if places < -100_000.0 {
        return Some(BigDecimal::new(BigInt::ZERO, scale));
    }
    // By squaring, with the number of digits that the result needs, including its integer digits.
    let digits = scale + whole(places).abs() + GUARD + 20;
    let (mut result, mut factor) = (BigDecimal::from(1), base.clone());
    let mut rest = exponent.unsigned_abs();
    while rest > 0 {
        if rest % 2 == 1 {
            result = cut(&(result * &factor), digits);
        }
        rest /= 2;
        if rest > 0 {
            factor = cut(&factor.square(), digits);
        }
    }
    if exponent < 0 { divide(&BigDecimal::from(1), &result, scale) } else { Some(rounded(&result, scale)) }
}

/// The significant first digits of a number.
fn cut(number: &BigDecimal, digits: i64) -> BigDecimal {
    let wanted = digits - place(number).min(0);
    if scale(number) > wanted { rounded(number, wanted) } else { number.clone() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use super::*;

    fn number(text: &str) -> BigDecimal {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check(found: &BigDecimal, expected: &str) {
        assert_eq!(found.to_plain_string(), expected);
    }

    #[test]
    fn quotients_have_the_digits_of_postgresql() {
        let quotient = |left: &str, right: &str| {
            let (left, right) = (number(left), number(right));
            divide(&left, &right, quotient_scale(&left, &right)).unwrap()
        };
        check(&quotient("1", "3.0"), "0.33333333333333333333");
        check(&quotient("10", "3.0"), "3.3333333333333333");
        check(&quotient("10000000000", "3"), "3333333333.33333333");
        check(&quotient("1", "30000000000"), "0.0000000000333333333333333333");
        check(&quotient("-7.0", "2.0"), "-3.5000000000000000");
    }

    #[test]
    fn roots_exponents_and_logarithms_have_the_digits_of_postgresql() {
        check(&square_root(&number("2.0")).unwrap(), "1.414213562373095");
        check(&square_root(&number("20000000000")).unwrap(), "141421.35623730950");
        check(&square_root(&number("0.0002")).unwrap(), "0.01414213562373095");
        check(&exp(&number("1.0")).unwrap(), "2.7182818284590452");
        check(&exp(&number("-30.0")).unwrap(), "0.00000000000009357622968840175");
        check(&exp(&number("100.0")).unwrap(), "26881171418161354484126255515800135873611118.8");
        check(&ln(&number("2.0")), "0.6931471805599453");
        check(&ln(&number("0.95")), "-0.051293294387550533");
        check(&ln(&number("1000000000000000000000000000000")), "69.077552789821371");
        check(&log(&number("2.0"), &number("64.0")), "6.0000000000000000");
        check(&log(&number("3"), &number("5")), "1.4649735207179272");
        check(&power(&number("2.0"), &number("0.5")).unwrap(), "1.4142135623730950");
        check(&power(&number("2.0"), &number("100")).unwrap(), "1267650600228229401496703205376.0000000000000000");
        check(&power(&number("2.0"), &number("-3")).unwrap(), "0.1250000000000000");
        check(&power(&number("12345.678"), &number("0.3")).unwrap(), "16.883189055077467");
        check(&power(&number("0.5"), &number("10.5")).unwrap(), "0.0006905339660024878");
        assert!(power(&number("-2"), &number("0.5")).is_none());
    }
}
