//! Numbers that may get more decimal places than their own expression has: the first rows of a
//! recursive query.
//!
//! The later rounds have the types of the first rows, and a type that only fits those would round
//! the later numbers. At planning, a function reports the type. [`settled`] replaces it by a cast,
//! or by nothing for types other than decimals.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast,
};

use super::super::row::{types_of, wrong_arguments};
use super::decimals::FREE;

/// The function: returns its argument with a free scale if it is a decimal.
pub const WITH_FREE_SCALE: &str = "with_free_scale";

pub(crate) fn udf() -> ScalarUDF {
    ScalarUDF::new_from_impl(WithFreeScale { signature: Signature::any(1, Volatility::Immutable) })
}

/// The replacement of a call; `None` for other calls.
///
/// # Errors
/// The argument has no type.
pub fn settled(call: &ScalarFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let [number] = call.args.as_slice() else { return Ok(None) };
    if call.func.name() != WITH_FREE_SCALE {
        return Ok(None);
    }
    Ok(Some(if number.get_type(schema)?.is_decimal() { cast(number.clone(), FREE) } else { number.clone() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WithFreeScale {
    signature: Signature,
}

impl ScalarUDFImpl for WithFreeScale {
    fn name(&self) -> &str {
        WITH_FREE_SCALE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The name of the argument, so columns keep their names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map(|argument| argument.qualified_name().1).unwrap_or_default())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{WITH_FREE_SCALE} returns a field")))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(field) = args.arg_fields.first() else {
            return Err(DataFusionError::Internal("a value is missing".to_owned()));
        };
        Ok(match field.data_type().is_decimal() {
            true => Arc::new(field.as_ref().clone().with_data_type(FREE)),
            false => Arc::clone(field),
        })
    }

    /// Called only if a statement uses the function itself.
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(wrong_arguments(WITH_FREE_SCALE, &types_of(&args)))
    }
}
