//! Functions on numbers. Floating-point functions behave as in Java: `NaN` and infinities instead
//! of errors.

use std::sync::Arc;

use arrow_array::Float64Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::DataType;
use bigdecimal::{BigDecimal, RoundingMode, Signed};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};
use filbert_data::{FieldType, Value};
use filbert_grid::query::Dialect;

use super::numbers::decimals::FREE;
use super::row::{Function, array, collect, failed, is_integer, is_text, wrong_arguments};
use crate::types::{field_type_of, scalar_of, value_of};

/// The maximum number of decimal places for rounding.
const DIGITS_MAX: i64 = 76;
/// The number of decimal places that holds every floating-point number.
const FLOAT_DIGITS_MAX: i64 = 1_100;

/// Functions of one floating-point number.
macro_rules! of_one {
    ($($name:literal => $compute:expr;)*) => {
        vec![$(Function::udf($name, coerce_one, returns_double, |args| one(args, $compute)),)*]
    };
}

/// Functions of two floating-point numbers.
macro_rules! of_two {
    ($($name:literal => $compute:expr;)*) => {
        vec![$(Function::udf($name, coerce_two, returns_double, |args| two(args, $compute)),)*]
    };
}

/// The functions of a dialect.
pub(super) fn functions(dialect: Dialect) -> Vec<ScalarUDF> {
    let mut functions = of_one! {
        "sin" => f64::sin;
        "cos" => f64::cos;
        "tan" => f64::tan;
        "cot" => |number: f64| 1.0 / number.tan();
        "asin" => f64::asin;
        "acos" => f64::acos;
        "atan" => f64::atan;
        "sinh" => f64::sinh;
        "cosh" => f64::cosh;
        "tanh" => f64::tanh;
        "exp" => f64::exp;
        "ln" => f64::ln;
        "log10" => f64::log10;
        "log2" => f64::log2;
        "sqrt" => f64::sqrt;
        "cbrt" => f64::cbrt;
        "square" => |number: f64| number * number;
        "degrees" => f64::to_degrees;
        "radians" => f64::to_radians;
    };
    functions.extend(of_two! {
        "atan2" => f64::atan2;
        "power" => f64::powf;
        "pow" => f64::powf;
    });
    functions.extend([
        Function::udf("pi", coerce_none, returns_double, |_| {
            Ok(ColumnarValue::Scalar(ScalarValue::Float64(Some(std::f64::consts::PI))))
        }),
        Function::with_volatility("rand", Volatility::Volatile, coerce_rand, returns_double, rand),
        Function::with_volatility("random", Volatility::Volatile, coerce_rand, returns_double, rand),
        absolute(),
        Function::udf("sign", coerce_number, returns_sign, |args| exact(args, Exact::Sign)),
        Function::udf("ceil", coerce_number, returns_rounded, |args| exact(args, Exact::Ceil)),
        Function::udf("ceiling", coerce_number, returns_rounded, |args| exact(args, Exact::Ceil)),
        Function::udf("floor", coerce_number, returns_rounded, |args| exact(args, Exact::Floor)),
        Function::udf("round", coerce_round, returns_rounded, |args| exact(args, Exact::Round)),
        Function::udf("truncate", coerce_round, returns_argument, |args| exact(args, Exact::Truncate)),
        Function::udf("trunc", coerce_round, returns_argument, |args| exact(args, Exact::Truncate)),
        Function::udf("mod", coerce_mod, |_| Ok(FieldType::BigInt), modulo),
        Function::udf("log", coerce_log, returns_double, |args| match args.args.len() {
            1 => one(args, f64::log10),
            _ => two(args, |base, number| number.ln() / base.ln()),
        }),
    ]);
    if dialect == Dialect::Hazelcast {
        functions.extend(of_hazelcast());
    }
    functions
}

/// The functions that differ in Hazelcast's dialect: a NULL without a type is a number of their
/// own, and NULL as the number of digits is 0.
fn of_hazelcast() -> [ScalarUDF; 6] {
    [
        Function::udf("sign", coerce_whole, returns_sign, |args| exact(args, Exact::Sign)),
        Function::udf("ceil", coerce_decimal, returns_whole, |args| exact(args, Exact::Ceil)),
        Function::udf("ceiling", coerce_decimal, returns_whole, |args| exact(args, Exact::Ceil)),
        Function::udf("floor", coerce_decimal, returns_whole, |args| exact(args, Exact::Floor)),
        Function::udf("round", coerce_round_decimal, returns_whole, |args| exact_as(args, Exact::Round, HAZELCAST)),
        Function::udf("truncate", coerce_round_decimal, returns_whole, |args| {
            exact_as(args, Exact::Truncate, HAZELCAST)
        }),
    ]
}

/// `ABS`.
pub(super) fn absolute() -> ScalarUDF {
    Function::udf("abs", coerce_number, returns_argument, |args| exact(args, Exact::Abs))
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || *data_type == DataType::Null
}

fn coerce_none(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    if types.is_empty() { Ok(Vec::new()) } else { Err(wrong_arguments(name, types)) }
}

fn coerce_floats(name: &str, types: &[DataType], counts: &[usize]) -> Result<Vec<DataType>> {
    // Also accepts texts that contain numbers.
    if !counts.contains(&types.len()) || !types.iter().all(|data_type| is_number(data_type) || is_text(data_type)) {
        return Err(wrong_arguments(name, types));
    }
    Ok(vec![DataType::Float64; types.len()])
}

fn coerce_one(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    coerce_floats(name, types, &[1])
}

fn coerce_two(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    coerce_floats(name, types, &[2])
}

fn coerce_log(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    coerce_floats(name, types, &[1, 2])
}

fn coerce_rand(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [] => Ok(Vec::new()),
        [seed] if is_integer(seed) => Ok(vec![DataType::Int64]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_mod(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [left, right] if is_integer(left) && is_integer(right) => Ok(vec![DataType::Int64; 2]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn number_type(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Null => Some(DataType::Float64),
        text if is_text(text) => Some(DataType::Float64),
        DataType::UInt64 | DataType::UInt32 => Some(DataType::Int64),
        number => number.is_numeric().then(|| number.clone()),
    }
}

fn coerce_number(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [number] => Ok(vec![number_type(number).ok_or_else(|| wrong_arguments(name, types))?]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_round(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [number, digits] if is_integer(digits) => {
            Ok(vec![number_type(number).ok_or_else(|| wrong_arguments(name, types))?, DataType::Int64])
        }
        _ => coerce_number(name, types),
    }
}

/// The types for `types`, with `of_null` in the place of a number without a type.
fn typed(types: &[DataType], of_null: &DataType) -> Vec<DataType> {
    let mut types = types.to_vec();
    if let Some(number @ DataType::Null) = types.first_mut() {
        *number = of_null.clone();
    }
    types
}

fn coerce_whole(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    coerce_number(name, &typed(types, &DataType::Int64))
}

fn coerce_decimal(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    coerce_number(name, &typed(types, &FREE))
}

fn coerce_round_decimal(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    coerce_round(name, &typed(types, &FREE))
}

fn returns_double(_: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(FieldType::Double)
}

fn returns_argument(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(args.arg_fields.first().map_or(FieldType::Double, |field| match field.data_type() {
        // The precision of a 256-bit decimal is preserved; the field alone does not determine it.
        DataType::Decimal256(precision, scale) => FieldType::Decimal(Some((*precision, *scale))),
        _ => field_type_of(field),
    }))
}

/// The argument's type; a decimal has one digit.
fn returns_sign(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(match returns_argument(args)? {
        FieldType::Decimal(Some((precision, _))) if precision != 38 => FieldType::Decimal(Some((1, 0))),
        other => other,
    })
}

/// The argument's type with one more digit, which rounding may add.
fn returns_rounded(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(match returns_argument(args)? {
        FieldType::Decimal(Some((precision, scale))) if precision != 38 => {
            FieldType::Decimal(Some((precision.saturating_add(1).min(76), scale)))
        }
        other => other,
    })
}

/// Like [`returns_rounded`]; a decimal has no decimal places if there is no number of digits.
fn returns_whole(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(match returns_rounded(args)? {
        FieldType::Decimal(Some((precision, scale))) if args.arg_fields.len() == 1 && precision != 38 => {
            let whole = (i16::from(precision) - i16::from(scale)).clamp(1, 76);
            FieldType::Decimal(Some((u8::try_from(whole).unwrap_or(76), 0)))
        }
        other => other,
    })
}

fn one(args: &ScalarFunctionArgs, compute: impl Fn(f64) -> f64) -> Result<ColumnarValue> {
    match args.args.first() {
        Some(ColumnarValue::Scalar(ScalarValue::Float64(number))) => {
            Ok(ColumnarValue::Scalar(ScalarValue::Float64(number.map(compute))))
        }
        _ => {
            let numbers = array(args, 0)?;
            let computed: Float64Array = numbers.as_primitive::<Float64Type>().unary(compute);
            Ok(ColumnarValue::Array(Arc::new(computed)))
        }
    }
}

fn two(args: &ScalarFunctionArgs, compute: impl Fn(f64, f64) -> f64) -> Result<ColumnarValue> {
    let (left, right) = (array(args, 0)?, array(args, 1)?);
    let (left, right) = (left.as_primitive::<Float64Type>(), right.as_primitive::<Float64Type>());
    let computed: Float64Array = datafusion::arrow::compute::binary(left, right, compute)?;
    if args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_))) && args.number_rows > 0 {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?));
    }
    Ok(ColumnarValue::Array(Arc::new(computed)))
}

/// Random numbers from 0 (inclusive) to 1 (exclusive). The same seed gives the same numbers.
fn rand(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let seed = match args.args.first() {
        Some(seed) => match ScalarValue::try_from_array(&seed.to_array(1)?, 0)? {
            ScalarValue::Int64(Some(seed)) => seed.cast_unsigned(),
            _ => 0,
        },
        None => uuid::Uuid::new_v4().as_u64_pair().0,
    };
    let mut state = seed;
    let numbers = (0..args.number_rows).map(|_| {
        // SplitMix64, by Steele, Lea and Flood.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    });
    Ok(ColumnarValue::Array(Arc::new(Float64Array::from_iter_values(numbers))))
}

fn modulo(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let [left, right] = args.args.as_slice() else { return Err(failed("MOD takes two numbers")) };
    datafusion::physical_expr_common::datum::apply(left, right, |left, right| {
        datafusion::arrow::compute::kernels::numeric::rem(left, right)
    })
    .map_err(|_| failed("Division by zero"))
}

/// Functions with a result of their argument's type.
#[derive(Clone, Copy)]
enum Exact {
    Abs,
    Sign,
    Ceil,
    Floor,
    Round,
    Truncate,
}

fn exact(args: &ScalarFunctionArgs, function: Exact) -> Result<ColumnarValue> {
    exact_as(args, function, Rounding { null_digits: None, of_floats: Digits::Shortest })
}

/// How numbers are rounded to a number of digits.
#[derive(Clone, Copy)]
struct Rounding {
    /// The number of digits that NULL stands for.
    null_digits: Option<i64>,
    of_floats: Digits,
}

/// The decimal digits of a floating-point number.
#[derive(Clone, Copy)]
enum Digits {
    /// The shortest digits that make the number: 2.675.
    Shortest,
    /// All digits of the binary value: 2.67499999999999982236431605997495353221893310546875.
    All,
}

/// Hazelcast's rules, which are those of Java's `new BigDecimal(double)`.
const HAZELCAST: Rounding = Rounding { null_digits: Some(0), of_floats: Digits::All };

/// Like [`exact`], with rules for rounding.
fn exact_as(args: &ScalarFunctionArgs, function: Exact, rounding: Rounding) -> Result<ColumnarValue> {
    let rounds = !matches!(function, Exact::Abs | Exact::Sign);
    let data_type = args.return_field.data_type().clone();
    if args.args.len() == 1 && data_type == DataType::Float64 {
        return one(args, |number| float(number, 0, function, rounding.of_floats));
    }
    if args.args.len() == 1 && rounds && data_type.is_integer() {
        return Ok(args.args.first().cloned().unwrap_or(ColumnarValue::Scalar(ScalarValue::Null)));
    }
    let values = args.args.iter().map(|value| value.to_array(super::row::rows_of(args))).collect::<Result<Vec<_>>>()?;
    collect(args, |row| {
        let null = || ScalarValue::try_from(&data_type);
        let Some(rows) = values.first() else { return null() };
        let number = ScalarValue::try_from_array(rows, row)?;
        let digits = match values.get(1).map(|digits| ScalarValue::try_from_array(digits, row)).transpose()? {
            None => Some(0),
            Some(ScalarValue::Int64(digits)) => digits.or(rounding.null_digits),
            Some(_) => rounding.null_digits,
        };
        let Some(digits) = digits else { return null() };
        let value = match value_of(&number, &FieldType::Object) {
            Value::Null => return null(),
            Value::Float64(number) => Value::Float64(float(number, digits, function, rounding.of_floats)),
            Value::Float32(number) => {
                Value::Float32(float(f64::from(number), digits, function, rounding.of_floats) as f32)
            }
            other => match other.convert(&FieldType::Decimal(None)) {
                Ok(Value::Decimal(number)) => {
                    let digits = digits.clamp(-DIGITS_MAX, DIGITS_MAX);
                    Value::Decimal(decimal(&number, digits, function))
                }
                _ => return null(),
            },
        };
        let computed = scalar_of(&value).map_err(crate::error::carried)?;
        computed
            .cast_to(&data_type)
            .map_err(|_| failed(format!("Numeric overflow: the result for {number} is beyond the range of its type")))
    })
}

fn float(number: f64, digits: i64, function: Exact, of_floats: Digits) -> f64 {
    match function {
        Exact::Abs => number.abs(),
        Exact::Sign if number == 0.0 || number.is_nan() => number,
        Exact::Sign => number.signum(),
        Exact::Ceil => number.ceil(),
        Exact::Floor => number.floor(),
        Exact::Round if digits == 0 => number.round(),
        Exact::Truncate if digits == 0 => number.trunc(),
        Exact::Round | Exact::Truncate => float_at(number, digits, function, of_floats).unwrap_or(number),
    }
}

/// A floating-point number with a number of decimal places, computed with its decimal digits:
/// multiplied by a power of ten, the number would have others. `None` for `NaN` and infinities.
fn float_at(number: f64, digits: i64, function: Exact, of_floats: Digits) -> Option<f64> {
    if let Some(clear) = float_by_power(number, digits, function) {
        return Some(clear);
    }
    let exact = match of_floats {
        Digits::All => BigDecimal::try_from(number).ok()?,
        Digits::Shortest => number.to_string().parse().ok()?,
    };
    let digits = digits.clamp(-FLOAT_DIGITS_MAX, FLOAT_DIGITS_MAX);
    decimal(&exact, digits, function).to_string().parse().ok()
}

/// Like [`float_at`], by a power of ten, where the error of the product cannot change the result;
/// `None` elsewhere. Most numbers are not near the middle between two results.
fn float_by_power(number: f64, digits: i64, function: Exact) -> Option<f64> {
    /// The largest product; its error is less than the margin.
    const PRODUCT_MAX: f64 = (1_u64 << 40) as f64;
    const MARGIN: f64 = 1e-3;
    // Larger powers of ten are no floating-point numbers.
    let power = i32::try_from(digits).ok().filter(|digits| (1..=22).contains(digits))?;
    let scale = 10_f64.powi(power);
    let product = number * scale;
    let fraction = product.abs().fract();
    let (is_clear, whole) = match function {
        Exact::Round => ((fraction - 0.5).abs() > MARGIN, product.round()),
        _ => (fraction > MARGIN && fraction < 1.0 - MARGIN, product.trunc()),
    };
    // No negative zero, as a decimal has none.
    (is_clear && product.abs() < PRODUCT_MAX).then(|| whole / scale + 0.0)
}

fn decimal(number: &BigDecimal, digits: i64, function: Exact) -> BigDecimal {
    match function {
        Exact::Abs => number.abs(),
        Exact::Sign => number.signum(),
        Exact::Ceil => number.with_scale_round(0, RoundingMode::Ceiling),
        Exact::Floor => number.with_scale_round(0, RoundingMode::Floor),
        Exact::Round => number.with_scale_round(digits, RoundingMode::HalfUp),
        Exact::Truncate => number.with_scale_round(digits, RoundingMode::Down),
    }
}

/// Formats a number by a pattern of `9`, `0`, `.` and `,` for `TO_CHAR`: `FM999,990.00`.
pub(super) fn format_number(number: &BigDecimal, format: &str) -> Result<String> {
    let (pattern, fill) = match format.strip_prefix("FM") {
        Some(rest) => (rest, false),
        None => (format, true),
    };
    if let Some(other) = pattern.chars().find(|sign| !matches!(sign, '9' | '0' | '.' | ',' | 'D' | 'G' | 'S' | '$')) {
        return Err(failed(format!("TO_CHAR does not know '{other}' in the pattern '{format}' of a number")));
    }
    let (whole_pattern, fraction_pattern) = pattern.split_once(['.', 'D']).unwrap_or((pattern, ""));
    let rounded = number.with_scale_round(i64::try_from(fraction_pattern.len()).unwrap_or(0), RoundingMode::HalfUp);
    let plain = rounded.abs().to_plain_string();
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain.as_str(), ""));
    let places = whole_pattern.chars().filter(|sign| matches!(sign, '9' | '0')).count();
    let whole = if whole == "0" { "" } else { whole };
    let overflows = whole.len() > places;
    let mut digits = whole.chars().rev();
    let mut reversed = Vec::new();
    // Zeros are written from the leftmost 0 of the pattern.
    let zeros = whole_pattern.find('0').map_or(0, |at| {
        whole_pattern.get(at..).unwrap_or_default().chars().filter(|sign| matches!(sign, '9' | '0')).count()
    });
    let mut written = 0;
    for sign in whole_pattern.chars().rev() {
        match sign {
            '9' | '0' => {
                written += 1;
                let digit = if overflows { Some('#') } else { digits.next() };
                match digit {
                    Some(digit) => reversed.push(digit),
                    None if written <= zeros => reversed.push('0'),
                    None if fill => reversed.push(' '),
                    None => {}
                }
            }
            ',' | 'G' if written < whole.len().max(zeros) => reversed.push(','),
            ',' | 'G' if fill => reversed.push(' '),
            '$' => reversed.push('$'),
            _ => {}
        }
    }
    let whole: String = reversed.into_iter().rev().collect();
    let sign = if number.is_negative() {
        "-"
    } else if fill {
        " "
    } else {
        ""
    };
    let body = whole.trim_start_matches(' ');
    let mut out = format!("{}{sign}{body}", " ".repeat(whole.len() - body.len()));
    if !fraction_pattern.is_empty() {
        out.push('.');
        let fraction: String = if overflows { "#".repeat(fraction_pattern.len()) } else { fraction.to_owned() };
        let kept = fraction_pattern.rfind('0').map_or(0, |at| at + 1);
        let trimmed = fraction.trim_end_matches('0').len().max(kept.min(fraction.len()));
        out.push_str(if fill { &fraction } else { fraction.get(..trimmed).unwrap_or(&fraction) });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_by_a_power_is_rounding_by_digits() {
        let mut state = 7_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (state >> 11) as f64 / 1e9 * if state & 1 == 0 { 1e-6 } else { -1e-3 };
            let digits = (state >> 5 & 7) as i64;
            for function in [Exact::Round, Exact::Truncate] {
                for of_floats in [Digits::All, Digits::Shortest] {
                    let exact = match of_floats {
                        Digits::All => BigDecimal::try_from(number).unwrap(),
                        Digits::Shortest => number.to_string().parse().unwrap(),
                    };
                    let expected: f64 = decimal(&exact, digits, function).to_string().parse().unwrap();
                    assert_eq!(float_at(number, digits, function, of_floats), Some(expected), "{number} {digits}");
                }
            }
        }
    }
}
