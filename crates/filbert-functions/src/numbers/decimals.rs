//! Conversions between Arrow's decimals and exact numbers.
//!
//! An Arrow column has one scale; a `numeric` in PostgreSQL has one for each value. If the scale of
//! a result is known before the computation, the column has it. Otherwise the column has the scale
//! [`DECIMAL_SCALE`], and values are displayed without trailing zeros. Quotients and averages have
//! the scale [`QUOTIENT_SCALE`], and are displayed with PostgreSQL's number of digits.

use std::sync::Arc;

use arrow_array::builder::{Decimal128Builder, Decimal256Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, RoundingMode};
use datafusion::common::{DataFusionError, Result};
use filbert_grid::query::{QUOTIENT_SCALE, quotient_digits};

use super::digits::scale;
use crate::error::{carried, data_error};
use crate::types::{DECIMAL_SCALE, decimal128_of, decimal256_of};

/// The scale of a decimal type.
pub fn scale_of(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    }
}

/// Whether the scale of a type does not determine the digits of its values.
pub fn is_free(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal256(_, scale) if *scale >= QUOTIENT_SCALE)
}

/// The type of results whose scale is known only from the values.
pub const FREE: DataType = DataType::Decimal256(76, DECIMAL_SCALE);

/// The number in a row; `None` for null. For types without a scale of their own, it has as many
/// decimal places as it needs.
pub fn number_at(array: &ArrayRef, row: usize) -> Option<BigDecimal> {
    if array.is_null(row) {
        return None;
    }
    let unscaled = match array.data_type() {
        DataType::Decimal128(..) => BigInt::from(array.as_primitive_opt::<Decimal128Type>()?.value(row)),
        DataType::Decimal256(..) => {
            BigInt::from_signed_bytes_le(&array.as_primitive_opt::<Decimal256Type>()?.value(row).to_le_bytes())
        }
        _ => return None,
    };
    let number = BigDecimal::new(unscaled, scale_of(array.data_type())?.into());
    Some(match scale_of(array.data_type()) {
        // A quotient has its displayed digits.
        Some(QUOTIENT_SCALE) if is_free(array.data_type()) => quotient_digits(&shortest(&number)),
        _ if is_free(array.data_type()) => shortest(&number),
        _ => number,
    })
}

/// The number without trailing zeros, and without a positive power of ten.
pub fn shortest(number: &BigDecimal) -> BigDecimal {
    let number = number.normalized();
    if number.as_bigint_and_exponent().1 < 0 { number.with_scale(0) } else { number }
}

/// The error of a number out of range.
pub fn overflow() -> DataFusionError {
    carried(data_error("value overflows numeric format").with_sqlstate("22003"))
}

/// Numbers as an array of a decimal type.
///
/// # Errors
/// A number has too many digits for the type: before the decimal point, or after it if significant
/// digits would be lost.
pub fn array_of(numbers: &[Option<BigDecimal>], data_type: &DataType) -> Result<ArrayRef> {
    let fits = |number: &BigDecimal, most: i8| {
        if scale(number) <= most.into() || scale(&number.normalized()) <= most.into() {
            return Ok(());
        }
        let text =
            format!("the number has more than {most} digits behind the point, which is what numeric can have here");
        Err(carried(data_error(text).with_sqlstate("22003")))
    };
    match data_type {
        DataType::Decimal128(precision, scale) => {
            let mut builder = Decimal128Builder::with_capacity(numbers.len());
            let most = 10_i128.checked_pow(u32::from(*precision)).unwrap_or(i128::MAX);
            for number in numbers {
                let Some(number) = number else {
                    builder.append_null();
                    continue;
                };
                fits(number, *scale)?;
                let unscaled =
                    decimal128_of(number, *scale).filter(|unscaled| unscaled.unsigned_abs() < most.unsigned_abs());
                builder.append_value(unscaled.ok_or_else(overflow)?);
            }
            Ok(Arc::new(builder.finish().with_precision_and_scale(*precision, *scale)?))
        }
        DataType::Decimal256(precision, scale) => {
            let mut builder = Decimal256Builder::with_capacity(numbers.len());
            let digits_max = usize::from(*precision);
            for number in numbers {
                let Some(number) = number else {
                    builder.append_null();
                    continue;
                };
                fits(number, *scale)?;
                let unscaled = decimal256_of(number, *scale).ok_or_else(overflow)?;
                if unscaled.to_string().trim_start_matches('-').len() > digits_max {
                    return Err(overflow());
                }
                builder.append_value(unscaled);
            }
            Ok(Arc::new(builder.finish().with_precision_and_scale(*precision, *scale)?))
        }
        other => Err(DataFusionError::Internal(format!("{other} is no decimal type"))),
    }
}

/// Quotients with PostgreSQL's number of digits, rounded. The displayed digits may be zeros.
pub fn quotients(computed: &ArrayRef, scale_least: i8) -> Result<ArrayRef> {
    let rounded = (0..computed.len()).map(|row| {
        let number = number_at(computed, row)?;
        let shown = digits_of_quotient(&number).max(scale_least.into());
        Some(if scale(&number) > shown { number.with_scale_round(shown, RoundingMode::HalfUp) } else { number })
    });
    array_of(&rounded.collect::<Vec<_>>(), computed.data_type())
}

/// The number of decimal places of a quotient, from its value.
fn digits_of_quotient(number: &BigDecimal) -> i64 {
    let (unscaled, exponent) = number.as_bigint_and_exponent();
    let digits = i64::try_from(unscaled.magnitude().to_string().len()).unwrap_or(0);
    (16 - (digits - 1 - exponent).div_euclid(4) * 4).max(0)
}

/// The decimal type that holds every value of a numeric type.
pub fn exact_type(data_type: &DataType) -> DataType {
    match data_type {
        decimal if decimal.is_decimal() => decimal.clone(),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => DataType::Decimal128(5, 0),
        DataType::Int32 | DataType::UInt16 => DataType::Decimal128(10, 0),
        whole if whole.is_integer() => DataType::Decimal128(20, 0),
        _ => FREE,
    }
}
