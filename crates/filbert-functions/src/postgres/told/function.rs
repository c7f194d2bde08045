//! The function that does nothing but to be of a type.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::types::{Length, Mark, VARCHAR};

/// An expression that is told to be of a type.
pub(super) fn told_as(expression: Expr, mark: Mark) -> Expr {
    let func = Arc::new(ScalarUDF::new_from_impl(ToldAs::new("told_as", mark)));
    Expr::ScalarFunction(ScalarFunction { func, args: vec![expression] })
}

/// What statements are rewritten to.
pub(in crate::postgres) fn functions() -> [ScalarUDF; 2] {
    let varchar = Mark::of_oid(VARCHAR, Length::Unknown);
    [("told_as_varchar", varchar), ("told_as_varchars", varchar.of_array())]
        .map(|(name, mark)| ScalarUDF::new_from_impl(ToldAs::new(name, mark)))
}

/// Its argument, as one of a type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ToldAs {
    name: &'static str,
    mark: Mark,
    signature: Signature,
}

impl ToldAs {
    fn new(name: &'static str, mark: Mark) -> ToldAs {
        ToldAs { name, mark, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ToldAs {
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
