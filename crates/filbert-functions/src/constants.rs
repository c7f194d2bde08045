//! Arrays that are the same for all rows.
//!
//! A plan expands a constant into a column for a client or an aggregate: an array of a million
//! numbers is then repeated for each row of a batch. Functions take the constant itself.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::results::Results;
use super::row::wrong_arguments;

const NAME: &str = "constant";

/// Constants of at most this size, in bytes, are not counted.
const SMALL_BYTES_MAX: usize = 2 << 10;

static CONSTANT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    // Volatile, so it is not evaluated at planning.
    let signature = Signature::any(1, Volatility::Volatile);
    Arc::new(ScalarUDF::new_from_impl(Constant { signature }))
});

/// Counts the memory of large constants that are expanded into columns.
#[derive(Debug)]
pub struct Constants;

impl OptimizerRule for Constants {
    fn name(&self) -> &str {
        "large_constants"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Distinct(_) => plan.map_expressions(counted),
            other => Ok(Transformed::no(other)),
        }
    }
}

/// The expression with its large constants counted, except for function arguments.
fn counted(expression: Expr) -> Result<Transformed<Expr>> {
    expression.transform_down(|inner| match inner {
        Expr::Literal(ref scalar, _) if is_large(scalar) => {
            Ok(Transformed::new(CONSTANT.call(vec![inner]), true, TreeNodeRecursion::Jump))
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let mut is_changed = false;
            let args = args.into_iter().map(|arg| match arg {
                Expr::Literal(..) => Ok(arg),
                arg => counted(arg).map(|counted| {
                    is_changed |= counted.transformed;
                    counted.data
                }),
            });
            let args = args.collect::<Result<Vec<_>>>()?;
            let call = Expr::ScalarFunction(ScalarFunction { func, args });
            Ok(Transformed::new(call, is_changed, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    })
}

fn is_large(scalar: &ScalarValue) -> bool {
    matches!(scalar, ScalarValue::List(_) | ScalarValue::LargeList(_) | ScalarValue::FixedSizeList(_))
        && scalar.size() > SMALL_BYTES_MAX
}

/// A constant that counts the size of its column before the column is made.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Constant {
    signature: Signature,
}

impl ScalarUDFImpl for Constant {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        // The plan's columns keep their names.
        args.first().map(|constant| constant.schema_name().to_string()).ok_or_else(|| wrong_arguments(NAME, &[]))
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{NAME} returns a field")))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        args.arg_fields.first().cloned().ok_or_else(|| wrong_arguments(NAME, &[]))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.pop().ok_or_else(|| wrong_arguments(NAME, &[]))?;
        if let ColumnarValue::Scalar(scalar) = &constant {
            Results::of(&args.config_options).add(scalar.size().saturating_mul(args.number_rows))?;
        }
        Ok(constant)
    }
}
