//! Sort keys of aggregates that decide nothing: `array_agg(x ORDER BY x, 'a', x)`.
//!
//! Of an expression only the first occurrence decides the order, and a constant never does.
//! DataFusion's physical order leaves such keys out, but its accumulators expect a value for each
//! written key, and fail. Therefore they are removed, after all rules that may make two expressions
//! equal, or one constant.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use filbert_functions::named::map_named;

/// The rule that removes such keys.
pub(super) fn removed() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(IdleKeys)
}

#[derive(Debug)]
struct IdleKeys;

impl OptimizerRule for IdleKeys {
    fn name(&self) -> &str {
        "idle_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        let is_concerned = |item: &Expr| matches!(call_of(item), Some(call) if has_idle_keys(call));
        if !aggregate.aggr_expr.iter().any(is_concerned) {
            return Ok(Transformed::no(plan));
        }
        map_named(plan, |expression| {
            expression.transform_up(|inner| match inner {
                Expr::AggregateFunction(mut call) if has_idle_keys(&call) => {
                    let mut known = HashSet::new();
                    call.params.order_by.retain(|key| !is_constant(&key.expr) && known.insert(key.expr.clone()));
                    Ok(Transformed::yes(Expr::AggregateFunction(call)))
                }
                other => Ok(Transformed::no(other)),
            })
        })
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

fn call_of(item: &Expr) -> Option<&AggregateFunction> {
    match item {
        Expr::Alias(alias) => call_of(&alias.expr),
        Expr::AggregateFunction(call) => Some(call),
        _ => None,
    }
}

fn is_constant(key: &Expr) -> bool {
    matches!(key, Expr::Literal(..))
}

fn has_idle_keys(call: &AggregateFunction) -> bool {
    let keys = &call.params.order_by;
    let mut known = HashSet::with_capacity(keys.len());
    !keys.iter().all(|key| !is_constant(&key.expr) && known.insert(&key.expr))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use datafusion::functions_aggregate::array_agg::array_agg_udaf;
    use datafusion::logical_expr::{ExprFunctionExt, LogicalPlanBuilder, SortExpr, lit};
    use datafusion::optimizer::OptimizerContext;
    use datafusion::prelude::col;

    use super::super::tests::relation;
    use super::*;

    #[track_caller]
    fn check(order: &[(&str, bool)], expected: &str) {
        let keys = order.iter().map(|(column, ascending)| SortExpr::new(col(*column), *ascending, false)).collect();
        let call = array_agg_udaf().call(vec![col("a.column1")]).order_by(keys).build().unwrap();
        let plan = LogicalPlanBuilder::from(relation("a")).aggregate(Vec::<Expr>::new(), vec![call]).unwrap();
        let plan = plan.build().unwrap();
        let name = plan.schema().field(0).name().clone();
        let plan = IdleKeys.rewrite(plan, &OptimizerContext::new()).unwrap().data;
        assert_eq!(plan.schema().field(0).name(), &name);
        let LogicalPlan::Aggregate(aggregate) = plan else { panic!("no aggregate") };
        let keys = &call_of(&aggregate.aggr_expr[0]).unwrap().params.order_by;
        let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(keys.join(", "), expected);
    }

    #[test]
    fn the_first_occurrence_of_a_key_is_kept() {
        check(&[("a.column1", true)], "a.column1 ASC NULLS LAST");
        check(&[("a.column1", true), ("a.column1", true)], "a.column1 ASC NULLS LAST");
        check(&[("a.column1", false), ("a.column1", true)], "a.column1 DESC NULLS LAST");
    }

    #[test]
    fn constants_are_removed() {
        let call = array_agg_udaf().call(vec![col("a.column1")]).order_by(vec![lit(1).sort(true, false)]);
        let plan = LogicalPlanBuilder::from(relation("a")).aggregate(Vec::<Expr>::new(), vec![call.build().unwrap()]);
        let plan = IdleKeys.rewrite(plan.unwrap().build().unwrap(), &OptimizerContext::new()).unwrap().data;
        let LogicalPlan::Aggregate(aggregate) = plan else { panic!("no aggregate") };
        assert!(call_of(&aggregate.aggr_expr[0]).unwrap().params.order_by.is_empty());
    }
}
