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

use super::row::{Function, array, collect, failed, is_integer, is_text, wrong_arguments};
use crate::types::{field_type_of, scalar_of, value_of};

/// The maximum number of decimal places for rounding.
const DIGITS_MAX: i64 = 76;

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

pub(super) fn functions() -> Vec<ScalarUDF> {
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
    functions
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
    let rounds = !matches!(function, Exact::Abs | Exact::Sign);
    let data_type = args.return_field.data_type().clone();
    if args.args.len() == 1 && data_type == DataType::Float64 {
        return one(args, |number| float(number, 0, function));
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
            None => 0,
            Some(ScalarValue::Int64(Some(digits))) => digits.clamp(-DIGITS_MAX, DIGITS_MAX),
            Some(_) => return null(),
        };
        let value = match value_of(&number, &FieldType::Object) {
            Value::Null => return null(),
            Value::Float64(number) => Value::Float64(float(number, digits, function)),
            Value::Float32(number) => Value::Float32(float(f64::from(number), digits, function) as f32),
            other => match other.convert(&FieldType::Decimal(None)) {
                Ok(Value::Decimal(number)) => Value::Decimal(decimal(&number, digits, function)),
                _ => return null(),
            },
        };
        let computed = scalar_of(&value).map_err(crate::error::carried)?;
        computed
            .cast_to(&data_type)
            .map_err(|_| failed(format!("Numeric overflow: the result for {number} is beyond the range of its type")))
    })
}

fn float(number: f64, digits: i64, function: Exact) -> f64 {
    let scale = 10_f64.powi(i32::try_from(digits).unwrap_or(0));
    let at = |compute: fn(f64) -> f64| {
        let scaled = compute(number * scale) / scale;
        if scaled.is_finite() { scaled } else { number }
    };
    match function {
        Exact::Abs => number.abs(),
        Exact::Sign if number == 0.0 || number.is_nan() => number,
        Exact::Sign => number.signum(),
        Exact::Ceil => number.ceil(),
        Exact::Floor => number.floor(),
        Exact::Round => at(f64::round),
        Exact::Truncate => at(f64::trunc),
    }
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
