//! The identity function that sets a type.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::types::{Length, Mark, VARCHAR};

/// An expression with this type.
pub(in crate::postgres) fn marked_as(expression: Expr, mark: Mark) -> Expr {
    let func = Arc::new(ScalarUDF::new_from_impl(MarkedAs::new("marked_as", mark)));
    Expr::ScalarFunction(ScalarFunction { func, args: vec![expression] })
}

/// The function that marks a cast to `varchar` without a length.
const VARCHAR_MARK: &str = "marked_as_varchar";

/// The argument of the function with which a statement tells that a cast is to `varchar`; `None`
/// for other expressions.
pub(in crate::postgres) fn untold(expression: &Expr) -> Option<Expr> {
    match expression {
        Expr::ScalarFunction(call) if call.func.name() == VARCHAR_MARK => call.args.first().cloned(),
        _ => None,
    }
}

/// The functions that statements are rewritten to.
pub(in crate::postgres) fn functions() -> [ScalarUDF; 2] {
    let varchar = Mark::of_oid(VARCHAR, Length::Unknown);
    [(VARCHAR_MARK, varchar), ("marked_as_varchars", varchar.of_array())]
        .map(|(name, mark)| ScalarUDF::new_from_impl(MarkedAs::new(name, mark)))
}

/// Returns its argument with another type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MarkedAs {
    name: &'static str,
    mark: Mark,
    signature: Signature,
}

impl MarkedAs {
    fn new(name: &'static str, mark: Mark) -> MarkedAs {
        MarkedAs { name, mark, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for MarkedAs {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(field) = args.arg_fields.first() else {
            return Err(DataFusionError::Internal("a value is missing".to_owned()));
        };
        let metadata = self.mark.metadata(field.metadata().clone());
        Ok(Arc::new(field.as_ref().clone().with_metadata(metadata)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = args.args.into_iter().next();
        value.ok_or_else(|| DataFusionError::Internal("a value is missing".to_owned()))
    }

    fn preserves_lex_ordering(&self, _: &[ExprProperties]) -> Result<bool> {
        Ok(true)
    }
}
