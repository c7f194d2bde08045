//! Numbers that get digits from elsewhere than from their own expression: those that a recursive query begins with.
//!
//! Its further rounds have the types of its first rows, and a type that holds these alone would round what they add. While a statement
//! is planned a function tells the type; [`settled`] makes a cast of it, which is nothing for all else than decimals.

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

/// The function: its argument, with any digits behind the point if it is a decimal.
pub const WITH_FREE_SCALE: &str = "with_free_scale";

pub(crate) fn udf() -> ScalarUDF {
    ScalarUDF::new_from_impl(WithFreeScale { signature: Signature::any(1, Volatility::Immutable) })
}

/// What a call of the function stands for; `None` of other calls.
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

    /// The name of the argument, so that columns keep theirs.
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

    /// Only a statement that names the function itself comes here.
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(wrong_arguments(WITH_FREE_SCALE, &types_of(&args)))
    }
}
