//! Functions and operators of whole numbers that fail if the result is out of range for the larger
//! operand's type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::DataType;
use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, Signed};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, try_binary};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use filbert_data::FieldType;
use filbert_grid::query::SqlSubject;

use super::super::row::{Function, is_text, wrong_arguments};
use super::decimals::{array_of, number_at, overflow};
use super::digits;
use crate::error::{carried, data_error};
use crate::types::field_type_of_arrow;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::udf("whole_add", coerce_two, returns_larger, |args| {
            two(args, |left, right| left.checked_add(right).ok_or_else(|| out_of_range(&DataType::Int64)))
        }),
        Function::udf("whole_subtract", coerce_two, returns_larger, |args| {
            two(args, |left, right| left.checked_sub(right).ok_or_else(|| out_of_range(&DataType::Int64)))
        }),
        Function::udf("whole_multiply", coerce_two, returns_larger, |args| {
            two(args, |left, right| left.checked_mul(right).ok_or_else(|| out_of_range(&DataType::Int64)))
        }),
        Function::udf("whole_divide", coerce_two, returns_larger, |args| two(args, divide)),
        Function::udf("whole_modulo", coerce_two, returns_larger, |args| two(args, modulo)),
        Function::udf("whole_and", coerce_two, returns_larger, |args| two(args, |left, right| Ok(left & right))),
        Function::udf("whole_or", coerce_two, returns_larger, |args| two(args, |left, right| Ok(left | right))),
        Function::udf("whole_xor", coerce_two, returns_larger, |args| two(args, |left, right| Ok(left ^ right))),
        Function::udf("whole_not", coerce_one, returns_first, |args| one(args, |number| Ok(!number))),
        Function::udf("shift_left", coerce_two, returns_first, |args| shift(args, true)),
        Function::udf("shift_right", coerce_two, returns_first, |args| shift(args, false)),
        Function::udf("mod", coerce_exact, returns_exact, |args| exact(args, "mod")),
        Function::udf("gcd", coerce_exact, returns_exact, |args| exact(args, "gcd")),
        Function::udf("lcm", coerce_exact, returns_exact, |args| exact(args, "lcm")),
        Function::udf("abs", coerce_number, returns_first, absolute),
        Function::udf("to_hex", coerce_one, |_| Ok(FieldType::Varchar), to_hex),
        Function::udf("factorial", coerce_one, |_| Ok(FieldType::Decimal(Some((76, 0)))), factorial),
    ]
}

fn is_whole(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_null()
}

/// PostgreSQL's integer types.
fn of_postgresql(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => DataType::Int16,
        DataType::Int32 | DataType::UInt16 | DataType::Null => DataType::Int32,
        _ => DataType::Int64,
    }
}

fn larger(left: &DataType, right: &DataType) -> DataType {
    let (left, right) = (of_postgresql(left), of_postgresql(right));
    if left.primitive_width() >= right.primitive_width() { left } else { right }
}

fn coerce_one(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [number] if is_whole(number) => Ok(vec![of_postgresql(number)]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_two(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [left, right] if is_whole(left) && is_whole(right) => Ok(vec![of_postgresql(left), of_postgresql(right)]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_exact(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [left, right] if is_whole(left) && is_whole(right) => Ok(vec![larger(left, right); 2]),
        [left, right] if [left, right].into_iter().all(|of| is_whole(of) || of.is_decimal() || is_text(of)) => {
            Ok([left, right].map(super::decimals::exact_type).to_vec())
        }
        _ => Err(wrong_arguments(name, types)),
    }
}

fn coerce_number(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [number] if is_whole(number) && !number.is_null() => Ok(vec![of_postgresql(number)]),
        [number] if number.is_numeric() => Ok(vec![number.clone()]),
        [text] if is_text(text) => Ok(vec![DataType::Float64]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn type_at(args: &ReturnFieldArgs<'_>, at: usize) -> DataType {
    args.arg_fields.get(at).map_or(DataType::Int64, |field| field.data_type().clone())
}

fn returns_first(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(match type_at(args, 0) {
        // For 256 bits, the precision is preserved too.
        DataType::Decimal256(precision, scale) => FieldType::Decimal(Some((precision, scale))),
        other => field_type_of_arrow(&other),
    })
}

fn returns_larger(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(field_type_of_arrow(&larger(&type_at(args, 0), &type_at(args, 1))))
}

/// The type with the larger scale of both operands.
fn returns_exact(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    let (left, right) = (type_at(args, 0), type_at(args, 1));
    if !left.is_decimal() {
        return Ok(field_type_of_arrow(&larger(&left, &right)));
    }
    let scale = super::decimals::scale_of(&left).max(super::decimals::scale_of(&right)).unwrap_or(0);
    Ok(FieldType::Decimal(Some((76, scale))))
}

/// The error of a number out of range.
pub(super) fn out_of_range(data_type: &DataType) -> DataFusionError {
    let subject = SqlSubject::OutOfRange { field_type: field_type_of_arrow(data_type) };
    carried(data_error("the number is out of range").with_sqlstate("22003").about(subject))
}

fn division_by_zero() -> DataFusionError {
    carried(data_error("division by zero").with_sqlstate("22012"))
}

fn divide(left: i64, right: i64) -> Result<i64> {
    if right == 0 {
        return Err(division_by_zero());
    }
    left.checked_div(right).ok_or_else(|| out_of_range(&DataType::Int64))
}

fn modulo(left: i64, right: i64) -> Result<i64> {
    if right == 0 { Err(division_by_zero()) } else { Ok(left.checked_rem(right).unwrap_or(0)) }
}

fn inputs(args: &ScalarFunctionArgs) -> Result<(Vec<ArrayRef>, bool)> {
    let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let rows = if constant { 1 } else { args.number_rows };
    let arrays = args.args.iter().map(|value| value.to_array(rows)).collect::<Result<Vec<_>>>()?;
    Ok((arrays, constant))
}

fn answer(array: ArrayRef, constant: bool) -> Result<ColumnarValue> {
    match constant {
        true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
        false => Ok(ColumnarValue::Array(array)),
    }
}

fn wide(array: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// 64-bit numbers in the result's type.
fn narrowed(numbers: Int64Array, to: &DataType) -> Result<ArrayRef> {
    match to {
        DataType::Int16 | DataType::Int32 => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(&numbers, to, &options).map_err(|_| out_of_range(to))
        }
        _ => Ok(Arc::new(numbers)),
    }
}

fn two(args: &ScalarFunctionArgs, compute: fn(i64, i64) -> Result<i64>) -> Result<ColumnarValue> {
    let (arrays, constant) = inputs(args)?;
    let [left, right] = arrays.as_slice() else { return Err(wrong_arguments("an operator", &[])) };
    let (left, right) = (wide(left)?, wide(right)?);
    let computed: Int64Array = try_binary(&left, &right, |left, right| {
        compute(left, right).map_err(|error| arrow_schema::ArrowError::ExternalError(Box::new(error)))
    })?;
    answer(narrowed(computed, args.return_field.data_type())?, constant)
}

fn one(args: &ScalarFunctionArgs, compute: fn(i64) -> Result<i64>) -> Result<ColumnarValue> {
    let (arrays, constant) = inputs(args)?;
    let [number] = arrays.as_slice() else { return Err(wrong_arguments("an operator", &[])) };
    let computed: Int64Array = wide(number)?.try_unary(compute)?;
    answer(narrowed(computed, args.return_field.data_type())?, constant)
}

/// Shifts as processors do: bits beyond the type are lost, and the distance is taken modulo its
/// width.
fn shift(args: &ScalarFunctionArgs, left: bool) -> Result<ColumnarValue> {
    let (arrays, constant) = inputs(args)?;
    let [numbers, places] = arrays.as_slice() else { return Err(wrong_arguments("an operator", &[])) };
    let places: Vec<Option<u32>> = wide(places)?.iter().map(|by| by.map(|by| (by & 0xff) as u32)).collect();
    let places = places.into_iter();
    let shifted: ArrayRef = match numbers.data_type() {
        DataType::Int16 => {
            let both = numbers.as_primitive::<Int16Type>().iter().zip(places);
            // 16-bit numbers are shifted as 32-bit numbers.
            let shifted = both.map(|(number, by)| {
                let (number, by) = (i32::from(number?), by?);
                Some(if left { number.wrapping_shl(by) as i16 } else { number.wrapping_shr(by) as i16 })
            });
            Arc::new(shifted.collect::<arrow_array::Int16Array>())
        }
        DataType::Int32 => {
            let both = numbers.as_primitive::<Int32Type>().iter().zip(places);
            let shifted =
                both.map(|(number, by)| Some(if left { number?.wrapping_shl(by?) } else { number?.wrapping_shr(by?) }));
            Arc::new(shifted.collect::<arrow_array::Int32Array>())
        }
        _ => {
            let numbers = wide(numbers)?;
            let both = numbers.iter().zip(places);
            let shifted =
                both.map(|(number, by)| Some(if left { number?.wrapping_shl(by?) } else { number?.wrapping_shr(by?) }));
            Arc::new(shifted.collect::<Int64Array>())
        }
    };
    answer(shifted, constant)
}

fn absolute(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, constant) = inputs(args)?;
    let [numbers] = arrays.as_slice() else { return Err(wrong_arguments("abs", &[])) };
    let data_type = numbers.data_type().clone();
    let computed: ArrayRef = match &data_type {
        DataType::Float32 => Arc::new(
            numbers
                .as_primitive::<arrow_array::types::Float32Type>()
                .unary::<_, arrow_array::types::Float32Type>(f32::abs),
        ),
        DataType::Float64 => Arc::new(
            numbers
                .as_primitive::<arrow_array::types::Float64Type>()
                .unary::<_, arrow_array::types::Float64Type>(f64::abs),
        ),
        decimal if decimal.is_decimal() => {
            let numbers: Vec<_> =
                (0..numbers.len()).map(|row| number_at(numbers, row).map(|number| number.abs())).collect();
            array_of(&numbers, decimal)?
        }
        _ => {
            let wide: Int64Array =
                wide(numbers)?.try_unary(|number| number.checked_abs().ok_or_else(|| out_of_range(&data_type)))?;
            narrowed(wide, &data_type)?
        }
    };
    answer(computed, constant)
}

/// `mod`, `gcd` and `lcm` of whole or exact numbers.
fn exact(args: &ScalarFunctionArgs, name: &str) -> Result<ColumnarValue> {
    let (arrays, constant) = inputs(args)?;
    let [left, right] = arrays.as_slice() else { return Err(wrong_arguments(name, &[])) };
    let result = args.return_field.data_type();
    if !result.is_decimal() {
        let compute: fn(i64, i64) -> Option<i64> = match name {
            "gcd" => |left, right| i64::try_from(common_divisor(left.unsigned_abs(), right.unsigned_abs())).ok(),
            "lcm" => |left, right| {
                if left == 0 || right == 0 {
                    return Some(0);
                }
                let divisor = common_divisor(left.unsigned_abs(), right.unsigned_abs());
                i64::try_from((left.unsigned_abs() / divisor).checked_mul(right.unsigned_abs())?).ok()
            },
            _ => |left, right| Some(left.checked_rem(right).unwrap_or(0)),
        };
        let (left, right) = (wide(left)?, wide(right)?);
        let both = left.iter().zip(right.iter());
        let computed = both.map(|pair| match pair {
            (Some(_), Some(0)) if name == "mod" => Err(division_by_zero()),
            (Some(left), Some(right)) => compute(left, right).map(Some).ok_or_else(|| out_of_range(result)),
            _ => Ok(None),
        });
        let computed = computed.collect::<Result<Int64Array>>()?;
        return answer(narrowed(computed, result)?, constant);
    }
    let rows = left.len();
    let mut numbers = Vec::with_capacity(rows);
    for row in 0..rows {
        let number = match (number_at(left, row), number_at(right, row)) {
            (Some(left), Some(right)) => Some(match name {
                "mod" => super::numerics::remainder(&left, &right)?,
                "gcd" => decimal_divisor(&left, &right),
                _ => {
                    let divisor = decimal_divisor(&left, &right);
                    let scale = digits::scale(&left).max(digits::scale(&right));
                    match digits::divide(&left, &divisor, 0) {
                        Some(times) => (times * &right).abs().with_scale(scale),
                        None => BigDecimal::from(0).with_scale(scale),
                    }
                }
            }),
            _ => None,
        };
        numbers.push(number);
    }
    answer(array_of(&numbers, result)?, constant)
}

fn common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { common_divisor(right, left % right) }
}

fn decimal_divisor(left: &BigDecimal, right: &BigDecimal) -> BigDecimal {
    let scale = digits::scale(left).max(digits::scale(right));
    let units = |number: &BigDecimal| number.with_scale(scale).into_bigint_and_exponent().0.abs();
    let (mut left, mut right) = (units(left), units(right));
    while right != BigInt::ZERO {
        (left, right) = (right.clone(), left % right);
    }
    BigDecimal::new(left, scale)
}

/// The hexadecimal digits of a 32-bit or 64-bit number; a negative one is shown as its two's
/// complement.
fn to_hex(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, constant) = inputs(args)?;
    let [numbers] = arrays.as_slice() else { return Err(wrong_arguments("to_hex", &[])) };
    let is_large = *numbers.data_type() == DataType::Int64;
    let wide = wide(numbers)?;
    let digits = wide.iter().map(|number| {
        let number = number?.cast_unsigned();
        Some(if is_large { format!("{number:x}") } else { format!("{:x}", number & 0xffff_ffff) })
    });
    answer(Arc::new(digits.collect::<arrow_array::StringViewArray>()), constant)
}

fn factorial(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (arrays, constant) = inputs(args)?;
    let [numbers] = arrays.as_slice() else { return Err(wrong_arguments("factorial", &[])) };
    let of = |number: i64| match number {
        ..0 => Err(carried(data_error("factorial of a negative number is undefined").with_sqlstate("22003"))),
        // Above 57 the result has more digits than a number can have here.
        58.. => Err(overflow()),
        number => Ok(BigDecimal::from((1..=number).fold(BigInt::from(1), |product, factor| product * factor))),
    };
    let numbers = wide(numbers)?;
    let computed = numbers.iter().map(|number| number.map(of).transpose()).collect::<Result<Vec<_>>>()?;
    answer(array_of(&computed, args.return_field.data_type())?, constant)
}
