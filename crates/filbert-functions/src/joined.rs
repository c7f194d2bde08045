//! `||` of texts. The result is as long as both operands, so a chain of subqueries doubles a text
//! with each step.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::StringViewBuilder;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use super::results::{Results, check_value};
use super::row::{Texts, rows_of};
use super::strict;

const NAME: &str = "joined_texts";

static JOINED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::exact(vec![DataType::Utf8View; 2], Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Joined { signature }))
});

/// The call that concatenates two texts, if the expression is `||` of texts.
pub(super) fn by_function(expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right })
            if is_text(&left, schema) && is_text(&right, schema) =>
        {
            Transformed::yes(JOINED.call(vec![*left, *right]))
        }
        other => Transformed::no(other),
    }
}

fn is_text(expression: &Expr, schema: &DFSchema) -> bool {
    matches!(expression.get_type(schema), Ok(DataType::Utf8View))
}

/// `||` of two texts; NULL if one of them is NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    signature: Signature,
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{NAME} returns a field")))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(NAME, DataType::Utf8View, is_nullable)))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        strict::simplified(args, info, |args| self.return_field_from_args(args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (left, right) = (Texts::of(&args, 0)?, Texts::of(&args, 1)?);
        let mut results = Results::of(&args.config_options);
        let mut joined = |row: usize| -> Result<Option<String>> {
            let (Some(left), Some(right)) = (left.get(row), right.get(row)) else { return Ok(None) };
            let bytes = left.len().saturating_add(right.len());
            check_value(bytes)?;
            results.add(bytes)?;
            let mut text = String::with_capacity(bytes);
            text.push_str(left);
            text.push_str(right);
            Ok(Some(text))
        };
        if args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_))) {
            return Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(joined(0)?)));
        }
        let rows = rows_of(&args);
        let mut builder = StringViewBuilder::with_capacity(rows);
        for row in 0..rows {
            builder.append_option(joined(row)?);
        }
        Ok(ColumnarValue::Array(Arc::new(builder.finish())))
    }
}
