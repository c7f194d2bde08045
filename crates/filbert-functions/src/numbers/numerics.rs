//! Functions that are exact for `numeric`, and floating-point for other types.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_schema::DataType;
use bigdecimal::{BigDecimal, One, RoundingMode, Signed, ToPrimitive, Zero};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use filbert_data::FieldType;
use filbert_grid::query::QUOTIENT_SCALE;

use super::super::row::{Function, is_text, wrong_arguments};
use super::decimals::{array_of, exact_type as exact, is_free, number_at, overflow, scale_of, shortest};
use super::digits;
use crate::error::{carried, data_error};
use crate::types::DECIMAL_SCALE;

/// A function of floating-point numbers, by name.
macro_rules! overloaded {
    ($($name:literal => $arguments:literal;)*) => {
        vec![$(Function::udf($name, |name, types| coerce(name, types, $arguments), returns, |args| invoke($name, args)),)*]
    };
}

/// Functions of floating-point numbers only.
macro_rules! of_floats {
    ($($name:literal => $arguments:literal;)*) => {
        vec![$(Function::udf(
            $name,
            |name, types| coerce_floats(name, types, $arguments),
            |_| Ok(FieldType::Double),
            |args| floats($name, args),
        ),)*]
    };
}

pub(super) fn functions() -> Vec<ScalarUDF> {
    let mut functions = overloaded! {
        "sqrt" => 1;
        "exp" => 1;
        "ln" => 1;
        "log10" => 1;
        "power" => 2;
        "pow" => 2;
        "ceil" => 1;
        "ceiling" => 1;
        "floor" => 1;
        "sign" => 1;
    };
    functions.extend(of_floats! {
        "cbrt" => 1;
        "sin" => 1;
        "cos" => 1;
        "tan" => 1;
        "cot" => 1;
        "asin" => 1;
        "acos" => 1;
        "atan" => 1;
        "sinh" => 1;
        "cosh" => 1;
        "tanh" => 1;
        "asinh" => 1;
        "acosh" => 1;
        "atanh" => 1;
        "degrees" => 1;
        "radians" => 1;
        "atan2" => 2;
    });
    functions.extend([
        Function::udf("log", coerce_log, returns, |args| invoke("log", args)),
        Function::udf("round", coerce_round, returns_rounded, |args| invoke("round", args)),
        Function::udf("trunc", coerce_round, returns_rounded, |args| invoke("trunc", args)),
        Function::udf("numeric_divide", coerce_numerics, returns_quotient, |args| invoke("numeric_divide", args)),
        Function::udf("numeric_multiply", coerce_numerics, returns_product, |args| invoke("numeric_multiply", args)),
        Function::udf("decimal_divide", coerce_numerics, |_| Ok(free()), |args| invoke("decimal_divide", args)),
        Function::udf("decimal_multiply", coerce_numerics, |_| Ok(free()), |args| invoke("decimal_multiply", args)),
        Function::udf("numeric_modulo", coerce_numerics, returns_remainder, |args| invoke("numeric_modulo", args)),
        Function::udf("div", coerce_numerics, returns, |args| invoke("div", args)),
        Function::udf("trim_scale", coerce_numerics, returns, |args| invoke("trim_scale", args)),
        Function::udf("scale", coerce_numerics, |_| Ok(FieldType::Integer), |args| whole(args, digits::scale)),
        Function::udf(
            "min_scale",
            coerce_numerics,
            |_| Ok(FieldType::Integer),
            |args| whole(args, |number| digits::scale(&shortest(number))),
        ),
        Function::udf("width_bucket", coerce_bucket, |_| Ok(FieldType::Integer), width_bucket),
    ]);
    functions
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || is_text(data_type)
}

/// Decimals stay decimals, other types become floating-point numbers. The scale of the result may
/// follow the arguments.
fn coerce(name: &str, types: &[DataType], arguments: usize) -> Result<Vec<DataType>> {
    let (own, scale) = types.split_at_checked(arguments).ok_or_else(|| wrong_arguments(name, types))?;
    let is_exact = own.iter().any(DataType::is_decimal) && !own.iter().any(DataType::is_floating);
    if own.len() != arguments || !own.iter().all(is_number) || scale.len() > usize::from(is_exact) {
        return Err(wrong_arguments(name, types));
    }
    let of = |data_type: &DataType| match is_exact {
        true => exact(data_type),
        false => DataType::Float64,
    };
    Ok(own.iter().map(of).chain(scale.iter().map(|_| DataType::Int64)).collect())
}

fn coerce_floats(name: &str, types: &[DataType], arguments: usize) -> Result<Vec<DataType>> {
    if types.len() != arguments || !types.iter().all(is_number) {
        return Err(wrong_arguments(name, types));
    }
    Ok(vec![DataType::Float64; arguments])
}

fn coerce_numerics(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let arguments = if matches!(name, "scale" | "min_scale" | "trim_scale") { 1 } else { 2 };
    let (own, scale) = types.split_at_checked(arguments).ok_or_else(|| wrong_arguments(name, types))?;
    let is_exact = |data_type: &DataType| is_number(data_type) && !data_type.is_floating();
    if !own.iter().all(is_exact) || scale.len() > 1 {
        return Err(wrong_arguments(name, types));
    }
    Ok(own.iter().map(exact).chain(scale.iter().map(|_| DataType::Int64)).collect())
}

/// Only exact numbers may have a base.
fn coerce_log(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [_] => coerce(name, types, 1),
        // The second of two arguments may be the scale of the result for one exact number: a 64-bit
        // literal.
        [base, number, scale @ ..] if scale.len() <= 1 && is_number(base) && is_number(number) => {
            if base.is_floating() || number.is_floating() {
                return Err(wrong_arguments(name, types));
            }
            Ok([exact(base), exact(number)].into_iter().chain(scale.iter().map(|_| DataType::Int64)).collect())
        }
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_round(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [number] if number.is_decimal() => Ok(vec![number.clone()]),
        [number] if is_number(number) => Ok(vec![DataType::Float64]),
        [number, digits, scale @ ..]
            if is_number(number)
                && !number.is_floating()
                && (digits.is_integer() || digits.is_null())
                && scale.len() <= 1 =>
        {
            let scale = scale.iter().map(|_| DataType::Int64);
            Ok([exact(number), DataType::Int64].into_iter().chain(scale).collect())
        }
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_bucket(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let [operand, low, high, count] = types else { return Err(wrong_arguments(name, types)) };
    let numbers = [operand, low, high];
    if !numbers.into_iter().all(is_number) || !(count.is_integer() || count.is_null()) {
        return Err(wrong_arguments(name, types));
    }
    let is_exact = numbers.into_iter().any(DataType::is_decimal) && !numbers.into_iter().any(DataType::is_floating);
    let of = |data_type: &DataType| if is_exact { exact(data_type) } else { DataType::Float64 };
    Ok(numbers.into_iter().map(of).chain([DataType::Int64]).collect())
}

fn free() -> FieldType {
    FieldType::Decimal(Some((76, DECIMAL_SCALE)))
}

/// The scale after the arguments, if a rule has added one.
fn scale_behind(args: &ReturnFieldArgs<'_>, arguments: usize) -> Option<i8> {
    match args.scalar_arguments.get(arguments).copied().flatten() {
        Some(ScalarValue::Int64(Some(scale))) => i8::try_from(*scale).ok(),
        _ => None,
    }
}

fn returns(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    let types: Vec<&DataType> = args.arg_fields.iter().map(|field| field.data_type()).collect();
    let decimals = types.iter().filter(|data_type| data_type.is_decimal()).count();
    Ok(match scale_behind(args, decimals) {
        _ if decimals == 0 => FieldType::Double,
        Some(scale) => FieldType::Decimal(Some((76, scale))),
        None => free(),
    })
}

fn returns_quotient(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    let scale = scale_behind(args, 2).unwrap_or(QUOTIENT_SCALE);
    Ok(FieldType::Decimal(Some((76, scale))))
}

/// The product of a quotient is displayed like a quotient.
fn returns_product(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    let scales: Vec<i8> = args.arg_fields.iter().filter_map(|field| scale_of(field.data_type())).collect();
    let is_quotient = scales.contains(&QUOTIENT_SCALE) && !scales.contains(&DECIMAL_SCALE);
    match scale_behind(args, scales.len()) {
        None if is_quotient => Ok(FieldType::Decimal(Some((76, QUOTIENT_SCALE)))),
        _ => returns(args),
    }
}

/// The type with the larger scale of both operands.
fn returns_remainder(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    let scales = args.arg_fields.iter().filter_map(|field| scale_of(field.data_type()));
    Ok(FieldType::Decimal(Some((76, scales.max().unwrap_or(0)))))
}

/// Without a number of digits it is a whole number, with room for one more digit.
fn returns_rounded(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    let number = args.arg_fields.first().map_or(&DataType::Float64, |field| field.data_type());
    Ok(match (number, args.arg_fields.len()) {
        (DataType::Float64, _) => FieldType::Double,
        (_, 1) => FieldType::Decimal(Some((76, 0))),
        _ => scale_behind(args, 2).map_or_else(free, |scale| FieldType::Decimal(Some((76, scale)))),
    })
}

fn invoke(name: &'static str, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    if args.return_field.data_type().is_decimal() { decimals(name, args) } else { floats(name, args) }
}

fn arrays(args: &ScalarFunctionArgs) -> Result<(Vec<ArrayRef>, usize, bool)> {
    let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let rows = if constant { 1 } else { args.number_rows };
    let arrays = args.args.iter().map(|value| value.to_array(rows)).collect::<Result<Vec<_>>>()?;
    Ok((arrays, rows, constant))
}

fn answer(array: ArrayRef, constant: bool) -> Result<ColumnarValue> {
    match constant {
        true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
        false => Ok(ColumnarValue::Array(array)),
    }
}

/// An exact argument; a whole number is the number of digits.
fn operand(array: &ArrayRef, row: usize) -> Option<BigDecimal> {
    match array.data_type() {
        DataType::Int64 => {
            let numbers = array.as_primitive_opt::<Int64Type>()?;
            numbers.is_valid(row).then(|| BigDecimal::from(numbers.value(row)))
        }
        _ => number_at(array, row),
    }
}

fn decimals(name: &str, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, rows, constant) = arrays(args)?;
    let result = args.return_field.data_type();
    // Digits beyond the column's scale are rejected, except for a rounded quotient.
    let scale = scale_of(result).map_or(0, i64::from);
    let own = own_arguments(name, &arrays);
    // A quotient was rounded before.
    let is_rounded = |array: &ArrayRef| scale_of(array.data_type()) == Some(QUOTIENT_SCALE);
    let rounds = is_free(result) && (is_inexact(name) || own.iter().any(is_rounded));
    let mut numbers = Vec::with_capacity(rows);
    for row in 0..rows {
        let operands: Option<Vec<BigDecimal>> = own.iter().map(|array| operand(array, row)).collect();
        let number = operands.map(|operands| compute(name, &operands)).transpose()?;
        numbers.push(number.map(|number| match rounds && digits::scale(&number) > scale {
            true => number.with_scale_round(scale, RoundingMode::HalfUp),
            false => number,
        }));
    }
    answer(array_of(&numbers, result)?, constant)
}

/// Whether results are rounded in any case.
fn is_inexact(name: &str) -> bool {
    !matches!(name, "numeric_multiply" | "numeric_modulo" | "round" | "trunc" | "trim_scale")
}

/// The arguments without the scale of the result.
fn own_arguments<'a>(name: &str, arrays: &'a [ArrayRef]) -> &'a [ArrayRef] {
    let count = match name {
        "round" | "trunc" => arrays.len().min(2),
        _ => arrays.iter().take_while(|array| array.data_type().is_decimal()).count(),
    };
    arrays.get(..count).unwrap_or(arrays)
}

fn refused(text: &str, sqlstate: &'static str) -> DataFusionError {
    carried(data_error(text).with_sqlstate(sqlstate))
}

fn division_by_zero() -> DataFusionError {
    refused("division by zero", "22012")
}

fn check_logarithm(sign: i8) -> Result<()> {
    match sign {
        0 => Err(refused("cannot take logarithm of zero", "2201E")),
        -1 => Err(refused("cannot take logarithm of a negative number", "2201E")),
        _ => Ok(()),
    }
}

fn sign_of(number: &BigDecimal) -> i8 {
    if number.is_zero() { 0 } else { i8::from(number.is_positive()) * 2 - 1 }
}

/// A function of exact numbers, with PostgreSQL's number of digits.
fn compute(name: &str, numbers: &[BigDecimal]) -> Result<BigDecimal> {
    let missing = || DataFusionError::Internal(format!("an argument of {name} is missing"));
    let first = numbers.first().ok_or_else(missing)?;
    let second = || numbers.get(1).ok_or_else(missing);
    let digits = || Ok::<_, DataFusionError>(numbers.get(1).map_or(0, |digits| digits.to_i64().unwrap_or(0)));
    Ok(match name {
        "sqrt" => digits::square_root(first)
            .ok_or_else(|| refused("cannot take square root of a negative number", "2201F"))?,
        "exp" => digits::exp(first).ok_or_else(overflow)?,
        "ln" => {
            check_logarithm(sign_of(first))?;
            digits::ln(first)
        }
        "log" | "log10" => {
            let ten = BigDecimal::from(10);
            let (base, number) = match numbers {
                [base, number, ..] => (base, number),
                _ => (&ten, first),
            };
            check_logarithm(sign_of(base))?;
            check_logarithm(sign_of(number))?;
            if base.is_one() {
                return Err(division_by_zero());
            }
            digits::log(base, number)
        }
        "power" | "pow" => power(first, second()?)?,
        "ceil" | "ceiling" => first.with_scale_round(0, RoundingMode::Ceiling),
        "floor" => first.with_scale_round(0, RoundingMode::Floor),
        "sign" => BigDecimal::from(sign_of(first)),
        "round" => first.with_scale_round(digits()?.clamp(-1000, 1000), RoundingMode::HalfUp),
        "trunc" => first.with_scale_round(digits()?.clamp(-1000, 1000), RoundingMode::Down),
        "trim_scale" => shortest(first),
        "numeric_divide" => {
            let divisor = second()?;
            let scale = digits::quotient_scale(first, divisor);
            digits::divide(first, divisor, scale).ok_or_else(division_by_zero)?
        }
        "decimal_divide" => {
            let divisor = second()?;
            digits::divide(first, divisor, DECIMAL_SCALE.into()).ok_or_else(division_by_zero)?
        }
        "numeric_multiply" | "decimal_multiply" => first * second()?,
        "numeric_modulo" => remainder(first, second()?)?,
        "div" => {
            let divisor = second()?;
            if divisor.is_zero() {
                return Err(division_by_zero());
            }
            let remainder = compute("numeric_modulo", numbers)?;
            digits::divide(&(first - remainder), divisor, 0).ok_or_else(division_by_zero)?
        }
        other => return Err(DataFusionError::Internal(format!("{other} is no function of numerics"))),
    })
}

/// The remainder of a division that truncates towards zero.
pub(super) fn remainder(dividend: &BigDecimal, divisor: &BigDecimal) -> Result<BigDecimal> {
    if divisor.is_zero() {
        return Err(division_by_zero());
    }
    let scale = digits::scale(dividend).max(digits::scale(divisor));
    let units = |number: &BigDecimal| number.with_scale(scale).into_bigint_and_exponent().0;
    Ok(BigDecimal::new(units(dividend) % units(divisor), scale))
}

fn power(base: &BigDecimal, exponent: &BigDecimal) -> Result<BigDecimal> {
    if base.is_zero() && exponent.is_negative() {
        return Err(refused("zero raised to a negative power is undefined", "2201F"));
    }
    if base.is_negative() && !exponent.is_integer() {
        return Err(refused("a negative number raised to a non-integer power yields a complex result", "2201F"));
    }
    digits::power(base, exponent).ok_or_else(overflow)
}

/// Functions of floating-point numbers, row by row.
fn floats(name: &'static str, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, _, constant) = arrays(args)?;
    let array: Float64Array = match arrays.as_slice() {
        [numbers] => numbers.as_primitive::<Float64Type>().try_unary(|number| float(name, number, 0.0))?,
        [left, right, ..] => {
            let (left, right) = (left.as_primitive::<Float64Type>(), right.as_primitive::<Float64Type>());
            let both = left.iter().zip(right.iter());
            let computed = both.map(|pair| match pair {
                (Some(left), Some(right)) => float(name, left, right).map(Some),
                _ => Ok(None),
            });
            computed.collect::<Result<Float64Array>>()?
        }
        [] => return Err(DataFusionError::Internal(format!("{name} has no arguments"))),
    };
    answer(Arc::new(array), constant)
}

/// A function of floating-point numbers.
#[inline]
fn float(name: &str, number: f64, other: f64) -> Result<f64> {
    let out_of_range = || Err(refused("input is out of range", "22003"));
    let result = match name {
        "ceil" | "ceiling" => return Ok(number.ceil()),
        "floor" => return Ok(number.floor()),
        "round" => return Ok(number.round_ties_even()),
        "trunc" => return Ok(number.trunc()),
        "sign" => {
            return Ok(if number > 0.0 {
                1.0
            } else if number < 0.0 {
                -1.0
            } else {
                0.0
            });
        }
        "sqrt" if number < 0.0 => return Err(refused("cannot take square root of a negative number", "2201F")),
        "sqrt" => number.sqrt(),
        "cbrt" => number.cbrt(),
        "exp" => number.exp(),
        "ln" | "log" | "log10" if number == 0.0 => return check_logarithm(0).map(|()| 0.0),
        "ln" | "log" | "log10" if number < 0.0 => return check_logarithm(-1).map(|()| 0.0),
        "ln" => number.ln(),
        "log" | "log10" => number.log10(),
        "power" | "pow" => {
            if number == 0.0 && other < 0.0 {
                return Err(refused("zero raised to a negative power is undefined", "2201F"));
            }
            if number < 0.0 && other.is_finite() && other.fract() != 0.0 {
                let text = "a negative number raised to a non-integer power yields a complex result";
                return Err(refused(text, "2201F"));
            }
            let result = number.powf(other);
            if result.is_infinite() && number.is_finite() && other.is_finite() {
                return Err(refused("value out of range: overflow", "22003"));
            }
            if result == 0.0 && number != 0.0 && number.is_finite() && other.is_finite() {
                return Err(refused("value out of range: underflow", "22003"));
            }
            return Ok(result);
        }
        "sin" | "cos" | "tan" | "cot" if number.is_infinite() => return out_of_range(),
        "sin" => number.sin(),
        "cos" => number.cos(),
        "tan" => number.tan(),
        "cot" => return Ok(1.0 / number.tan()),
        "asin" | "acos" | "atanh" if number.abs() > 1.0 => return out_of_range(),
        "acosh" if number < 1.0 => return out_of_range(),
        "asin" => number.asin(),
        "acos" => number.acos(),
        "atan" => number.atan(),
        "atan2" => number.atan2(other),
        "sinh" => return Ok(number.sinh()),
        "cosh" => return Ok(number.cosh()),
        "tanh" => number.tanh(),
        "asinh" => number.asinh(),
        "acosh" => number.acosh(),
        "atanh" => return Ok(number.atanh()),
        "degrees" => number.to_degrees(),
        "radians" => number.to_radians(),
        other => return Err(DataFusionError::Internal(format!("{other} is no function of floating-point numbers"))),
    };
    if result.is_infinite() && number.is_finite() {
        return Err(refused("value out of range: overflow", "22003"));
    }
    if result == 0.0 && name == "exp" && number.is_finite() {
        return Err(refused("value out of range: underflow", "22003"));
    }
    Ok(result)
}

fn whole(args: &ScalarFunctionArgs, of: fn(&BigDecimal) -> i64) -> Result<ColumnarValue> {
    let (arrays, rows, constant) = arrays(args)?;
    let first = arrays.first().ok_or_else(|| DataFusionError::Internal("an argument is missing".to_owned()))?;
    let numbers = (0..rows).map(|row| number_at(first, row).and_then(|number| i32::try_from(of(&number)).ok()));
    answer(Arc::new(numbers.collect::<arrow_array::Int32Array>()), constant)
}

/// The bucket of a number among buckets of equal width between two bounds.
fn width_bucket(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, rows, constant) = arrays(args)?;
    let [operands, lows, highs, counts] = arrays.as_slice() else {
        return Err(wrong_arguments("width_bucket", &[]));
    };
    let counts = counts.as_primitive::<Int64Type>();
    let exact = |array: &ArrayRef, row: usize| -> Result<Option<BigDecimal>> {
        if array.data_type().is_decimal() || array.is_null(row) {
            return Ok(number_at(array, row));
        }
        let number = array.as_primitive::<Float64Type>().value(row);
        let number = BigDecimal::try_from(number);
        number.map(Some).map_err(|_| refused("operand, lower bound, and upper bound cannot be NaN", "2201G"))
    };
    // The sign of an infinite operand, which is outside of all buckets.
    let infinite = |array: &ArrayRef, row: usize| {
        let numbers = array.as_primitive_opt::<Float64Type>()?;
        Some(numbers.value(row)).filter(|number| numbers.is_valid(row) && number.is_infinite())
    };
    let mut buckets = Vec::with_capacity(rows);
    for row in 0..rows {
        for bound in [lows, highs] {
            if infinite(bound, row).is_some() {
                return Err(refused("lower and upper bounds must be finite", "2201G"));
            }
        }
        let endless = infinite(operands, row);
        // In its place, any number will do.
        let operand = if endless.is_some() { exact(lows, row)? } else { exact(operands, row)? };
        let numbers = (operand, exact(lows, row)?, exact(highs, row)?);
        let (Some(operand), Some(low), Some(high)) = numbers else {
            buckets.push(None);
            continue;
        };
        if counts.is_null(row) {
            buckets.push(None);
            continue;
        }
        let count = counts.value(row);
        if count <= 0 {
            return Err(refused("count must be greater than zero", "2201G"));
        }
        if low == high {
            return Err(refused("lower bound cannot equal upper bound", "2201G"));
        }
        let (distance, width) = match low < high {
            true => (&operand - &low, &high - &low),
            false => (&low - &operand, &low - &high),
        };
        let is_before = match endless {
            Some(number) => (number < 0.0) == (low < high),
            None => distance.is_negative(),
        };
        let bucket = if is_before {
            0
        } else if endless.is_some() || distance >= width {
            count + 1
        } else {
            let place = distance * BigDecimal::from(count);
            let place = compute("div", &[place, width])?;
            place.to_i64().unwrap_or(0) + 1
        };
        buckets.push(Some(i32::try_from(bucket).map_err(|_| refused("integer out of range", "22003"))?));
    }
    answer(Arc::new(arrow_array::Int32Array::from(buckets)), constant)
}

/// A call with constant arguments, followed by the scale of its result, which gives the result a
/// type with a known scale. `None` if there is nothing to add.
pub(in super::super) fn with_scale(call: &ScalarFunction, result: &DataType) -> Option<Expr> {
    let is_open = matches!(result, DataType::Decimal256(_, scale) if *scale >= QUOTIENT_SCALE);
    let takes_scale = [
        "sqrt",
        "exp",
        "ln",
        "log10",
        "log",
        "power",
        "pow",
        "round",
        "trunc",
        "numeric_divide",
        "numeric_multiply",
        "numeric_modulo",
        "ceil",
        "ceiling",
        "floor",
        "sign",
        "div",
    ];
    let name = *takes_scale.iter().find(|name| **name == call.func.name())?;
    if !is_open {
        return None;
    }
    let scale = match name {
        "ceil" | "ceiling" | "floor" | "sign" | "div" => 0,
        "round" | "trunc" => match constant(call.args.get(1)?)? {
            ScalarValue::Int64(Some(digits)) => digits.clamp(0, i64::from(QUOTIENT_SCALE) - 1),
            _ => return None,
        },
        "numeric_multiply" if !call.args.iter().all(is_constant) => return None,
        _ => {
            let numbers = call.args.iter().map(|argument| {
                let array = constant(argument)?.to_array().ok()?;
                operand(&array, 0)
            });
            digits::scale(&compute(name, &numbers.collect::<Option<Vec<_>>>()?).ok()?)
        }
    };
    if scale >= i64::from(QUOTIENT_SCALE) {
        return None;
    }
    let mut args = call.args.clone();
    args.push(Expr::Literal(ScalarValue::Int64(Some(scale)), None));
    // The second argument of `log` is a number.
    let function = match (name, call.args.len()) {
        ("log", 1) => super::operators::function("log10")?,
        _ => call.func.clone(),
    };
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
}

fn is_constant(expr: &Expr) -> bool {
    let open = expr.exists(|expr| {
        Ok(match expr {
            Expr::Literal(..) | Expr::Cast(_) | Expr::Negative(_) | Expr::Alias(_) | Expr::BinaryExpr(_) => false,
            Expr::ScalarFunction(call) => call.func.signature().volatility != Volatility::Immutable,
            _ => true,
        })
    });
    matches!(open, Ok(false))
}

/// The value of an expression without columns and parameters.
fn constant(expr: &Expr) -> Option<ScalarValue> {
    if let Expr::Literal(value, _) = expr {
        return Some(value.clone());
    }
    if !is_constant(expr) {
        return None;
    }
    let simplifier = ExprSimplifier::new(SimplifyContext::builder().build());
    match simplifier.simplify(expr.clone()).ok()? {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}
