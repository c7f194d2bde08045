//! Casts between numbers and texts: rounded as in PostgreSQL, and rejected if out of range.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float32Array, Float64Array, Int64Array};
use arrow_schema::DataType;
use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive, Zero};
use datafusion::arrow::compute::cast;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, lit};
use filbert_data::{FieldType, Value, is_space};
use filbert_grid::query::{SqlError, SqlSubject, quotient_digits};

use super::super::row::{Function, is_text, wrong_arguments};
use super::decimals::{array_of, is_free, number_at, scale_of, shortest};
use super::integers::out_of_range;
use crate::error::{carried, data_error};
use crate::types::{DECIMAL_SCALE, field_type_of_arrow};

/// The precision of a number without a declared one.
const FREE_PRECISION: u8 = 76;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::udf("to_int2", coerce_any, |_| Ok(FieldType::SmallInt), |args| whole(args, &DataType::Int16)),
        Function::udf("to_int4", coerce_any, |_| Ok(FieldType::Integer), |args| whole(args, &DataType::Int32)),
        Function::udf("to_int8", coerce_any, |_| Ok(FieldType::BigInt), |args| whole(args, &DataType::Int64)),
        Function::udf("to_float4", coerce_any, |_| Ok(FieldType::Real), |args| float(args, &DataType::Float32)),
        Function::udf("to_float8", coerce_any, |_| Ok(FieldType::Double), |args| float(args, &DataType::Float64)),
        Function::udf("to_numeric", coerce_numeric, returns_numeric, numeric),
        Function::udf("number_text", coerce_any, |_| Ok(FieldType::Varchar), text),
    ]
}

/// Converts a number with a fraction for a column that it is assigned to.
///
/// # Errors
/// The number does not fit the column's type.
pub fn assigned<'v>(number: Value<'v>, to: &FieldType) -> std::result::Result<Value<'v>, SqlError> {
    let is_whole = matches!(to, FieldType::TinyInt | FieldType::SmallInt | FieldType::Integer | FieldType::BigInt);
    let digits = |number: f64, digits: usize| {
        exact(number, digits).map(Value::Decimal).map_err(|error| crate::error::of_datafusion(&error))
    };
    Ok(match number {
        Value::Decimal(number) if is_whole => Value::Decimal(number.with_scale_round(0, RoundingMode::HalfUp)),
        Value::Float64(number) if is_whole => Value::Float64(number.round_ties_even()),
        Value::Float32(number) if is_whole => Value::Float32(number.round_ties_even()),
        Value::Float64(number) if matches!(to, FieldType::Decimal(_)) => digits(number, 15)?,
        Value::Float32(number) if matches!(to, FieldType::Decimal(_)) => digits(f64::from(number), 6)?,
        Value::Float64(number) if *to == FieldType::Real && number != 0.0 && number as f32 == 0.0 => {
            return Err(data_error("value out of range: underflow").with_sqlstate("22003"));
        }
        Value::Decimal(number) if matches!(to, FieldType::Real | FieldType::Double) && is_lost(&number, to) => {
            let name = if *to == FieldType::Real { "real" } else { "double precision" };
            let text = format!("\"{number}\" is out of range for type {name}");
            return Err(data_error(text).with_sqlstate("22003"));
        }
        other => other,
    })
}

/// Rejects the text of a number that a floating-point type does not hold. Other texts pass.
///
/// # Errors
/// 22003: the number would be infinite or zero.
pub fn check_range(text: &str, to: &FieldType) -> std::result::Result<(), SqlError> {
    let word = text.trim_matches(is_space);
    let is_small = *to == FieldType::Real;
    let near = if is_small { word.parse::<f32>().map(f64::from) } else { word.parse::<f64>() };
    let digits = word.split(['e', 'E']).next().unwrap_or(word);
    let has_digits = digits.contains(|char: char| matches!(char, '1'..='9'));
    match near {
        Ok(number) if has_digits && (number.is_infinite() || number == 0.0) => {
            let name = if is_small { "real" } else { "double precision" };
            Err(data_error(format!("\"{word}\" is out of range for type {name}")).with_sqlstate("22003"))
        }
        _ => Ok(()),
    }
}

/// Whether a number is so small that it would be zero.
fn is_lost(number: &BigDecimal, to: &FieldType) -> bool {
    let near = || number.to_string().parse::<f64>().unwrap_or(0.0);
    !number.is_zero() && (if *to == FieldType::Real { near() as f32 == 0.0 } else { near() == 0.0 })
}

/// The call for a cast, if PostgreSQL's cast differs from Arrow's.
pub(in super::super) fn call(
    expr: Expr,
    from: &DataType,
    to: &DataType,
    find: impl Fn(&str) -> Option<Arc<ScalarUDF>>,
) -> std::result::Result<Expr, Expr> {
    let is_fraction = from.is_floating() || from.is_decimal();
    let is_word = is_text(from) && !from.is_null();
    let name = match to {
        DataType::Int16 if is_fraction || is_word => "to_int2",
        DataType::Int32 if is_fraction || is_word => "to_int4",
        DataType::Int64 if is_fraction || is_word => "to_int8",
        DataType::Float32 if from.is_decimal() || is_word || *from == DataType::Float64 => "to_float4",
        DataType::Float64 if from.is_decimal() || is_word => "to_float8",
        decimal if decimal.is_decimal() && (from.is_floating() || is_word) => "to_numeric",
        text if is_text(text) && is_fraction => "number_text",
        _ => return Err(expr),
    };
    let Some(function) = find(name) else { return Err(expr) };
    let mut args = vec![expr];
    if let DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) = to {
        args.extend([lit(i64::from(*precision)), lit(i64::from(*scale))]);
    }
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
}

fn is_castable(data_type: &DataType) -> bool {
    data_type.is_numeric() || is_text(data_type)
}

fn coerce_any(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [one] if is_castable(one) => Ok(types.to_vec()),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_numeric(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [number] if is_castable(number) => Ok(types.to_vec()),
        [number, precision, scale] if is_castable(number) && precision.is_integer() && scale.is_integer() => {
            Ok(vec![number.clone(), DataType::Int64, DataType::Int64])
        }
        _ => Err(wrong_arguments(name, types)),
    }
}

/// The declared type; without one, the type with the number's own scale where it is known.
fn returns_numeric(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    let declared = |at: usize| match args.scalar_arguments.get(at).copied().flatten() {
        Some(ScalarValue::Int64(Some(number))) => Some(*number),
        _ => None,
    };
    if let (Some(precision), Some(scale)) = (declared(1), declared(2)) {
        let (precision, scale) = (u8::try_from(precision).ok(), i8::try_from(scale).ok());
        return Ok(FieldType::Decimal(precision.zip(scale)));
    }
    let from = args.arg_fields.first().map_or(&DataType::Null, |field| field.data_type());
    Ok(FieldType::Decimal(Some(match scale_of(from) {
        Some(scale) => (FREE_PRECISION, scale),
        None if from.is_integer() => (FREE_PRECISION, 0),
        None => (FREE_PRECISION, DECIMAL_SCALE),
    })))
}

/// A value before the cast.
enum Found<'a> {
    Whole(i64),
    Float(f64),
    Small(f32),
    Exact(BigDecimal),
    Text(&'a str),
}

/// Calls `take` for each row that is not null.
fn each<T>(array: &ArrayRef, mut take: impl FnMut(Found<'_>) -> Result<T>) -> Result<Vec<Option<T>>> {
    let rows = 0..array.len();
    Ok(match array.data_type() {
        DataType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            floats
                .iter()
                .map(|number| number.map(|number| take(Found::Float(number))).transpose())
                .collect::<Result<_>>()?
        }
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            floats
                .iter()
                .map(|number| number.map(|number| take(Found::Small(number))).transpose())
                .collect::<Result<_>>()?
        }
        decimal if decimal.is_decimal() => rows
            .map(|row| number_at(array, row).map(|number| take(Found::Exact(number))).transpose())
            .collect::<Result<_>>()?,
        whole if whole.is_integer() => {
            let wide = cast(array, &DataType::Int64)?;
            let numbers = wide.as_primitive::<Int64Type>();
            numbers
                .iter()
                .map(|number| number.map(|number| take(Found::Whole(number))).transpose())
                .collect::<Result<_>>()?
        }
        DataType::Null => rows.map(|_| None).collect(),
        _ => {
            let texts = cast(array, &DataType::Utf8View)?;
            let texts = texts.as_string_view();
            texts.iter().map(|text| text.map(|text| take(Found::Text(text))).transpose()).collect::<Result<_>>()?
        }
    })
}

fn input(args: &ScalarFunctionArgs) -> Result<(ArrayRef, bool)> {
    let Some(value) = args.args.first() else { return Err(wrong_arguments("a cast", &[])) };
    let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    Ok((value.to_array(if constant { 1 } else { args.number_rows })?, constant))
}

fn answer(array: ArrayRef, constant: bool) -> Result<ColumnarValue> {
    match constant {
        true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
        false => Ok(ColumnarValue::Array(array)),
    }
}

/// The error of a text that is not a value of the type.
fn invalid(text: &str, to: &DataType) -> DataFusionError {
    let field_type = field_type_of_arrow(to);
    let message = format!("cannot parse VARCHAR value '{text}' to {field_type}");
    let subject = SqlSubject::Text { text: text.to_owned(), field_type };
    carried(data_error(message).with_sqlstate("22P02").about(subject))
}

/// The error of a text with a number out of range.
fn beyond(text: &str, to: &DataType) -> DataFusionError {
    let (oid, _) = crate::pg_types::of_field_type(&field_type_of_arrow(to));
    let name = crate::pg_types::format(oid, None);
    let message = match to.is_floating() {
        true => format!("\"{text}\" is out of range for type {name}"),
        false => format!("value \"{text}\" is out of range for type {name}"),
    };
    carried(data_error(message).with_sqlstate("22003"))
}

fn whole(args: &ScalarFunctionArgs, to: &DataType) -> Result<ColumnarValue> {
    let (array, constant) = input(args)?;
    let (least, most) = match to {
        DataType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let of_float = |number: f64| {
        let rounded = number.round_ties_even();
        // The upper bound of 64 bits has no exact floating-point value, but the next number has.
        let fits =
            rounded >= least as f64 && if most == i64::MAX { rounded < most as f64 } else { rounded <= most as f64 };
        if fits { Ok(rounded as i64) } else { Err(out_of_range(to)) }
    };
    let numbers: Vec<Option<i64>> = each(&array, |value| match value {
        Found::Whole(number) if (least..=most).contains(&number) => Ok(number),
        Found::Whole(_) => Err(out_of_range(to)),
        Found::Float(number) => of_float(number),
        Found::Small(number) => of_float(f64::from(number)),
        Found::Exact(number) => {
            let rounded = number.with_scale_round(0, RoundingMode::HalfUp);
            rounded.to_i64().filter(|number| (least..=most).contains(number)).ok_or_else(|| out_of_range(to))
        }
        Found::Text(text) => {
            let digits = text.trim_matches(is_space);
            let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
            if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(invalid(text, to));
            }
            let number = digits.parse::<i64>().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| beyond(text, to))
        }
    })?;
    let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
    answer(cast(&numbers, to)?, constant)
}

fn float(args: &ScalarFunctionArgs, to: &DataType) -> Result<ColumnarValue> {
    let (array, constant) = input(args)?;
    let is_small = *to == DataType::Float32;
    let check = |number: f64, is_zero: bool, text: &dyn Fn() -> String| {
        let kept = if is_small { f64::from(number as f32) } else { number };
        if kept.is_infinite() || kept == 0.0 && !is_zero { Err(beyond(&text(), to)) } else { Ok(kept) }
    };
    let numbers: Vec<Option<f64>> = each(&array, |value| match value {
        Found::Whole(number) => Ok(number as f64),
        Found::Small(number) => Ok(f64::from(number)),
        Found::Float(number) if !number.is_finite() => Ok(number),
        Found::Float(number) => {
            let kept = if is_small { f64::from(number as f32) } else { number };
            let lost = |text| Err(carried(data_error(text).with_sqlstate("22003")));
            match kept {
                kept if kept.is_infinite() => lost("value out of range: overflow"),
                kept if kept == 0.0 && number != 0.0 => lost("value out of range: underflow"),
                kept => Ok(kept),
            }
        }
        Found::Exact(number) => {
            let text = number.to_string();
            let near = if is_small { text.parse::<f32>().map(f64::from) } else { text.parse::<f64>() };
            let near = near.map_err(|_| invalid(&text, to))?;
            check(near, number.is_zero(), &|| number.to_plain_string())
        }
        Found::Text(text) => {
            let word = text.trim_matches(is_space);
            let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word).to_ascii_lowercase();
            let is_negative = word.starts_with('-');
            match unsigned.as_str() {
                "nan" => return Ok(f64::NAN),
                "inf" | "infinity" => return Ok(if is_negative { f64::NEG_INFINITY } else { f64::INFINITY }),
                _ => {}
            }
            if !unsigned.starts_with(|char: char| char.is_ascii_digit() || char == '.') {
                return Err(invalid(text, to));
            }
            let near = if is_small { word.parse::<f32>().map(f64::from) } else { word.parse::<f64>() };
            let near = near.map_err(|_| invalid(text, to))?;
            let is_zero = unsigned
                .split('e')
                .next()
                .is_none_or(|digits| !digits.contains(|char: char| ('1'..='9').contains(&char)));
            check(near, is_zero, &|| word.to_owned())
        }
    })?;
    let array: ArrayRef = match is_small {
        true => {
            Arc::new(numbers.into_iter().map(|number| number.map(|number| number as f32)).collect::<Float32Array>())
        }
        false => Arc::new(Float64Array::from(numbers)),
    };
    answer(array, constant)
}

/// A floating-point number with its reliable digits: 15, or 6 for the smaller type.
fn exact(number: f64, digits: usize) -> Result<BigDecimal> {
    if !number.is_finite() {
        let text = "NaN and infinities as numeric are not served";
        return Err(carried(data_error(text).with_sqlstate("0A000")));
    }
    let text = format!("{number:.*e}", digits - 1);
    let exact = text.parse::<BigDecimal>();
    exact.map(|exact| shortest(&exact)).map_err(|_| DataFusionError::Internal(format!("{text} is no number")))
}

fn numeric(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (array, constant) = input(args)?;
    let to = args.return_field.data_type();
    let is_declared = args.args.len() > 1 && !is_free(to);
    let scale = scale_of(to).map_or(0, i64::from);
    let numbers = each(&array, |value| {
        let number = match value {
            Found::Whole(number) => BigDecimal::from(number),
            Found::Float(number) => exact(number, 15)?,
            Found::Small(number) => exact(f64::from(number), 6)?,
            Found::Exact(number) => number,
            Found::Text(text) => of_text(text, to)?,
        };
        Ok(if is_declared { number.with_scale_round(scale, RoundingMode::HalfUp) } else { number })
    })?;
    let overflows = |_| carried(data_error("numeric field overflow").with_sqlstate("22003"));
    let array = array_of(&numbers, to);
    answer(if is_declared { array.map_err(overflows)? } else { array? }, constant)
}

fn of_text(text: &str, to: &DataType) -> Result<BigDecimal> {
    let word = text.trim_matches(is_space);
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    if matches!(unsigned.to_ascii_lowercase().as_str(), "nan" | "inf" | "infinity") {
        return exact(f64::NAN, 15);
    }
    let is_one = unsigned.starts_with(|char: char| char.is_ascii_digit() || char == '.') && !unsigned.contains('_');
    if !is_one {
        return Err(invalid(text, to));
    }
    let exponent = unsigned.to_ascii_lowercase().split_once('e').map_or(Some(0), |(_, exponent)| exponent.parse().ok());
    match exponent {
        Some(-20_000..=200_000) => word.parse::<BigDecimal>().map_err(|_| invalid(text, to)),
        Some(_) => Err(super::decimals::overflow()),
        None => Err(invalid(text, to)),
    }
}

fn text(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (array, constant) = input(args)?;
    let is_quotient =
        is_free(array.data_type()) && scale_of(array.data_type()) == Some(filbert_grid::query::QUOTIENT_SCALE);
    let texts = each(&array, |value| {
        Ok(match value {
            Found::Whole(number) => number.to_string(),
            Found::Float(number) => text_of_double(number),
            Found::Small(number) => text_of_real(number),
            Found::Exact(number) if is_quotient => quotient_digits(&number).to_plain_string(),
            Found::Exact(number) => number.to_plain_string(),
            Found::Text(text) => text.to_owned(),
        })
    })?;
    let mut builder = StringViewBuilder::with_capacity(texts.len());
    texts.iter().for_each(|text| builder.append_option(text.as_deref()));
    answer(Arc::new(builder.finish()), constant)
}

/// A `double precision` as PostgreSQL writes it.
pub(crate) fn text_of_double(number: f64) -> String {
    float_text(number, format!("{number:e}"), 15)
}

/// A `real` as PostgreSQL writes it.
pub(crate) fn text_of_real(number: f32) -> String {
    float_text(f64::from(number), format!("{number:e}"), 6)
}

/// The shortest text that parses to the same number. It has an exponent above a number of digits,
/// and below 0.0001.
fn float_text(number: f64, scientific: String, digits_max: i32) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number == 0.0 || (-4..digits_max).contains(&exponent) {
        let (sign, digits) = mantissa.strip_prefix('-').map_or(("", mantissa), |digits| ("-", digits));
        let digits = digits.replace('.', "");
        let Ok(point) = usize::try_from(exponent + 1) else {
            return format!("{sign}0.{}{digits}", "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0)));
        };
        return match digits.split_at_checked(point) {
            Some((whole, "")) => format!("{sign}{whole}"),
            Some(("", fraction)) => format!("{sign}0.{fraction}"),
            Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
            None => format!("{sign}{digits}{}", "0".repeat(point - digits.len())),
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
