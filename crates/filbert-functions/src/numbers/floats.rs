//! Operators of floating-point numbers that fail where Java returns infinities.
//!
//! In orders and partitions zero has no sign, as in comparisons.
//!
//! There is one NaN. Processors give computed NaNs another sign, which would sort them before all
//! numbers and distinguish them from NaN literals. Aggregates use the same NaN.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type};
use arrow_array::{ArrayRef, Datum, PrimitiveArray};
use arrow_schema::DataType;
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, neg, sub};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use filbert_data::FieldType;

use super::super::row::{Function, wrong_arguments};
use crate::error::{carried, data_error};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::udf("float_add", coerce, returns, |args| compute(args, Sign::Add)),
        Function::udf("float_subtract", coerce, returns, |args| compute(args, Sign::Subtract)),
        Function::udf("float_multiply", coerce, returns, |args| compute(args, Sign::Multiply)),
        Function::udf("float_divide", coerce, returns, |args| compute(args, Sign::Divide)),
        Function::udf(NEGATE, coerce_one, returns, negate),
        Function::udf(ORDER, coerce_one, returns, order),
    ]
}

#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// The function for a minus sign before an operand.
pub(crate) const NEGATE: &str = "float_negate";

/// The sort key of a number: zero without a sign.
pub(crate) const ORDER: &str = "float_order";

fn order(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let [number] = args.args.as_slice() else { return Err(wrong_arguments(ORDER, &[])) };
    match number {
        ColumnarValue::Scalar(ScalarValue::Float32(Some(number))) => {
            Ok(ColumnarValue::Scalar(ScalarValue::Float32(Some(number + 0.0))))
        }
        ColumnarValue::Scalar(ScalarValue::Float64(Some(number))) => {
            Ok(ColumnarValue::Scalar(ScalarValue::Float64(Some(number + 0.0))))
        }
        ColumnarValue::Scalar(_) => Ok(number.clone()),
        ColumnarValue::Array(numbers) => Ok(ColumnarValue::Array(match numbers.data_type() {
            DataType::Float32 => Arc::new(numbers.as_primitive::<Float32Type>().unary::<_, Float32Type>(|it| it + 0.0)),
            _ => Arc::new(numbers.as_primitive::<Float64Type>().unary::<_, Float64Type>(|it| it + 0.0)),
        })),
    }
}

fn coerce_one(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [number] if number.is_floating() => Ok(vec![number.clone()]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn negate(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let [number] = args.args.as_slice() else { return Err(wrong_arguments(NEGATE, &[])) };
    match number {
        ColumnarValue::Scalar(ScalarValue::Float32(Some(number))) if number.is_nan() => {
            Ok(ColumnarValue::Scalar(ScalarValue::Float32(Some(f32::NAN))))
        }
        ColumnarValue::Scalar(ScalarValue::Float64(Some(number))) if number.is_nan() => {
            Ok(ColumnarValue::Scalar(ScalarValue::Float64(Some(f64::NAN))))
        }
        ColumnarValue::Scalar(number) => Ok(ColumnarValue::Scalar(number.arithmetic_negate()?)),
        ColumnarValue::Array(numbers) => {
            let computed = neg(numbers)?;
            Ok(ColumnarValue::Array(with_one_nan_each(computed)))
        }
    }
}

/// The number; NaN without its sign.
pub(crate) fn one_nan(number: f64) -> f64 {
    if number.is_nan() { f64::NAN } else { number }
}

/// The values; floats with unsigned NaNs.
pub(crate) fn with_one_nan_each(values: ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => with_one_nan::<Float32Type>(values),
        DataType::Float64 => with_one_nan::<Float64Type>(values),
        _ => values,
    }
}

/// The numbers with unsigned NaNs.
fn with_one_nan<T>(numbers: ArrayRef) -> ArrayRef
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64> + From<f32>,
{
    let values: &PrimitiveArray<T> = numbers.as_primitive();
    let is_nan = |value: T::Native| Into::<f64>::into(value).is_nan();
    if !values.values().iter().any(|value| is_nan(*value)) {
        return numbers;
    }
    Arc::new(values.unary::<_, T>(|value| if is_nan(value) { f32::NAN.into() } else { value }))
}

fn coerce(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    if types.len() != 2 || !types.iter().all(|data_type| data_type.is_numeric() || data_type.is_null()) {
        return Err(wrong_arguments(name, types));
    }
    let is_small = types.iter().all(|data_type| matches!(data_type, DataType::Float32 | DataType::Float16));
    Ok(vec![if is_small { DataType::Float32 } else { DataType::Float64 }; 2])
}

fn returns(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    let is_small = args.arg_fields.iter().all(|field| *field.data_type() == DataType::Float32);
    Ok(if is_small { FieldType::Real } else { FieldType::Double })
}

fn compute(args: &ScalarFunctionArgs, sign: Sign) -> Result<ColumnarValue> {
    let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let rows = if constant { 1 } else { args.number_rows };
    let arrays = args.args.iter().map(|value| value.to_array(rows)).collect::<Result<Vec<_>>>()?;
    let [left, right] = arrays.as_slice() else { return Err(wrong_arguments("an operator", &[])) };
    let computed = match args.return_field.data_type() {
        DataType::Float32 => checked::<Float32Type>(left, right, sign)?,
        _ => checked::<Float64Type>(left, right, sign)?,
    };
    match constant {
        true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?)),
        false => Ok(ColumnarValue::Array(computed)),
    }
}

fn refused(text: &str, sqlstate: &'static str) -> DataFusionError {
    carried(data_error(text).with_sqlstate(sqlstate))
}

fn checked<T>(left: &ArrayRef, right: &ArrayRef, sign: Sign) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64> + From<f32>,
{
    let operands: (&dyn Datum, &dyn Datum) = (left, right);
    let computed = match sign {
        Sign::Add => add(operands.0, operands.1)?,
        Sign::Subtract => sub(operands.0, operands.1)?,
        Sign::Multiply => mul(operands.0, operands.1)?,
        Sign::Divide => div(operands.0, operands.1)?,
    };
    let values: &PrimitiveArray<T> = computed.as_primitive();
    let (lefts, rights): (&PrimitiveArray<T>, &PrimitiveArray<T>) = (left.as_primitive(), right.as_primitive());
    let is_suspect = |value: T::Native| {
        let value: f64 = value.into();
        !value.is_finite() || value == 0.0 && matches!(sign, Sign::Multiply | Sign::Divide)
    };
    if !values.values().iter().any(|value| is_suspect(*value)) {
        return Ok(computed);
    }
    for ((value, left), right) in values.iter().zip(lefts.iter()).zip(rights.iter()) {
        let (Some(value), Some(left), Some(right)) = (value, left, right) else { continue };
        let (value, left, right): (f64, f64, f64) = (value.into(), left.into(), right.into());
        if sign == Sign::Divide && right == 0.0 && !left.is_nan() {
            return Err(refused("division by zero", "22012"));
        }
        if value.is_infinite() && left.is_finite() && right.is_finite() {
            return Err(refused("value out of range: overflow", "22003"));
        }
        let vanishes = match sign {
            Sign::Multiply => left != 0.0 && right != 0.0,
            Sign::Divide => left != 0.0 && right.is_finite(),
            _ => false,
        };
        if value == 0.0 && vanishes {
            return Err(refused("value out of range: underflow", "22003"));
        }
    }
    Ok(with_one_nan::<T>(computed))
}
