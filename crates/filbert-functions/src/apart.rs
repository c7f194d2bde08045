//! Distinguishes casts of the same expression. DataFusion names a cast after its operand, and
//! rejects two groups, aggregates or windows with the same name in one row.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawWindowExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};

use super::row::{text_of, wrong_arguments};
use crate::error::{carried, parsing_error};

/// The function that returns its second argument, a cast. Its column is named by the first
/// argument, the text of the cast.
pub const AS_CAST: &str = "as_cast";

pub(super) fn udf() -> ScalarUDF {
    ScalarUDF::new_from_impl(AsCast { signature: Signature::any(2, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AsCast {
    signature: Signature,
}

impl ScalarUDFImpl for AsCast {
    fn name(&self) -> &str {
        AS_CAST
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        // Only the text of the cast. Rules may build another call of the same cast, also where they
        // do not preserve names.
        match args.first() {
            Some(Expr::Literal(label, _)) => Ok(text_of(label).unwrap_or_default().to_owned()),
            _ => Err(wrong_arguments(AS_CAST, &[])),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{AS_CAST} returns a field")))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [_, cast] = args.arg_fields else { return Err(wrong_arguments(AS_CAST, &[])) };
        // The result has the type of the cast, but not the metadata of its operand.
        Ok(Arc::new(Field::new(AS_CAST, cast.data_type().clone(), cast.is_nullable())))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args.pop().ok_or_else(|| wrong_arguments(AS_CAST, &[]))
    }
}

/// Gives unique names to casts in the arguments of aggregates and windows.
#[derive(Debug)]
pub struct Arguments;

impl ExprPlanner for Arguments {
    fn plan_aggregate(&self, mut expr: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        let name = expr.func.name();
        if expr.distinct && expr.func.supports_within_group_clause() {
            return Err(carried(parsing_error("cannot use DISTINCT with WITHIN GROUP")));
        }
        // DataFusion would ignore the DISTINCT.
        if expr.distinct && ["corr", "covar", "regr_"].iter().any(|pairs| name.starts_with(pairs)) {
            return Err(carried(parsing_error(format!("{name} is not served with DISTINCT")).with_sqlstate("0A000")));
        }
        expr.args = named(expr.args)?;
        if name != "regr_count" {
            return Ok(PlannerResult::Original(expr));
        }
        // SQL has no unsigned integer types.
        let RawAggregateExpr { func, args, distinct, filter, order_by, null_treatment } = expr;
        let counted = AggregateFunction::new_udf(func, args, distinct, filter, order_by, null_treatment);
        Ok(PlannerResult::Planned(cast(Expr::AggregateFunction(counted), DataType::Int64)))
    }

    fn plan_window(&self, mut expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        // The default of a window function is a 32-bit integer if it fits, like every number in a
        // statement.
        if let Some(Expr::Literal(ScalarValue::Int64(Some(number)), metadata)) = expr.args.get(2)
            && let Ok(number) = i32::try_from(*number)
        {
            let default = Expr::Literal(ScalarValue::Int32(Some(number)), metadata.clone());
            expr.args.truncate(2);
            expr.args.push(default);
        }
        expr.args = named(expr.args)?;
        expr.partition_by = named(expr.partition_by)?;
        Ok(PlannerResult::Original(expr))
    }
}

fn named(args: Vec<Expr>) -> Result<Vec<Expr>> {
    let one = |arg: Expr| {
        let has_cast = arg.exists(|inner| Ok(matches!(inner, Expr::Cast(_) | Expr::TryCast(_))))?;
        Ok(if has_cast && !matches!(arg, Expr::Alias(_)) { named_as(arg) } else { arg })
    };
    args.into_iter().map(one).collect()
}

/// An argument under its displayed name, in which casts are visible.
fn named_as(arg: Expr) -> Expr {
    let name = arg.to_string();
    arg.alias(name)
}
