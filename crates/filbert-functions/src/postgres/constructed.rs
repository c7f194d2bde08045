//! Elements of an array constructor that is cast: `array[a, b]::text[]`.
//!
//! The dialect casts each element. If the elements are arrays themselves, they are cast to the type
//! of the whole array:
//!
//! ```text
//!  array[a, b]::text[] ── dialect ──► array[array_part(a)::text, array_part(b)::text]::text[]
//!                         planning: the types are known
//!  numbers                        ──► array[a::text, b::text]::text[]
//!  arrays of numbers              ──► array[a::text[], b::text[]]::text[][]
//! ```

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use filbert_dialect::calls::ARRAY_PART;

use super::item_casts;
use crate::row::wrong_arguments;
use crate::types::Mark;

/// The cast of an element, now that the type of the element is known. `None` for other expressions.
pub(crate) fn cast_element(expression: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_array = |part: &Expr| matches!(part.get_type(schema), Ok(DataType::List(_)));
    match expression {
        Expr::Cast(cast) => {
            let part = part_of(&cast.expr)?.clone();
            let field = match is_array(&part) {
                true => array_of(&cast.field),
                false => Arc::clone(&cast.field),
            };
            Some(Expr::Cast(Cast::new_from_field(Box::new(part), field)))
        }
        Expr::ScalarFunction(call) => {
            let part = part_of(call.args.first()?)?.clone();
            let with_first = |first: Expr| {
                let args = std::iter::once(first).chain(call.args.iter().skip(1).cloned()).collect();
                Expr::ScalarFunction(ScalarFunction { func: Arc::clone(&call.func), args })
            };
            Some(match is_array(&part) {
                true => item_casts::of_template(part, with_first(Expr::Literal(ScalarValue::Null, None)), schema),
                false => with_first(part),
            })
        }
        _ => None,
    }
}

/// Whether an expression is an element whose cast is to be decided.
pub(crate) fn is_part(expression: &Expr) -> bool {
    part_of(expression).is_some()
}

fn part_of(expression: &Expr) -> Option<&Expr> {
    match expression {
        Expr::ScalarFunction(call) if call.func.name() == ARRAY_PART => call.args.first(),
        _ => None,
    }
}

fn array_of(item: &FieldRef) -> FieldRef {
    let array = Field::new(item.name(), DataType::new_list(item.data_type().clone(), true), true);
    Arc::new(array.with_metadata(Mark::of(item).of_array().metadata(Default::default())))
}

/// `array_part(x)`: `x`.
pub(super) fn udf() -> ScalarUDF {
    ScalarUDF::new_from_impl(Part { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Part {
    signature: Signature,
}

impl ScalarUDFImpl for Part {
    fn name(&self) -> &str {
        ARRAY_PART
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{ARRAY_PART} returns a field")))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        args.arg_fields.first().cloned().ok_or_else(|| wrong_arguments(ARRAY_PART, &[]))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.pop().ok_or_else(|| wrong_arguments(ARRAY_PART, &[]))
    }
}
