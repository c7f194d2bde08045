//! Keys of joins that have become constants: `a.k = CASE WHEN TRUE THEN 5 ELSE b.k END`.
//!
//! DataFusion's rule for the order of joins collects the keys of all joins, and builds joins on the
//! pairs that have columns of two inputs. It loses a pair with a constant, and the join returns all
//! pairs of rows. Therefore such a key becomes a condition, which the rule keeps.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::{BinaryExpr, Expr, Join, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use filbert_functions::guards;

/// The rule that makes conditions of such keys. It must run before the rule for the order of joins.
pub(super) fn as_conditions() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(ConstantKeys)
}

#[derive(Debug)]
struct ConstantKeys;

impl OptimizerRule for ConstantKeys {
    fn name(&self) -> &str {
        "constant_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(join) if join.join_type == JoinType::Inner && join.on.iter().any(is_constant) => {
                Ok(Transformed::yes(LogicalPlan::Join(with_conditions(join))))
            }
            other => Ok(Transformed::no(other)),
        }
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

fn is_constant((left, right): &(Expr, Expr)) -> bool {
    left.column_refs().is_empty() || right.column_refs().is_empty()
}

fn with_conditions(mut join: Join) -> Join {
    let op = match join.null_equality {
        NullEquality::NullEqualsNothing => Operator::Eq,
        NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
    };
    let (constant, keys): (Vec<_>, Vec<_>) = std::mem::take(&mut join.on).into_iter().partition(is_constant);
    let conditions = constant
        .into_iter()
        .map(|(left, right)| Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }));
    join.on = keys;
    join.filter = guards::all_of(join.filter.take().into_iter().chain(conditions));
    join
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use datafusion::logical_expr::{LogicalPlanBuilder, lit};
    use datafusion::prelude::{cast, col};

    use super::super::tests::relation;
    use super::*;

    #[track_caller]
    fn check(key: Expr, expected: &str) {
        let joined = LogicalPlanBuilder::from(relation("a")).join_with_expr_keys(
            relation("b"),
            JoinType::Inner,
            (vec![col("a.column1")], vec![col("b.column1")]),
            None,
        );
        let LogicalPlan::Join(mut join) = joined.unwrap().build().unwrap() else { panic!("no join") };
        join.on[0].1 = key;
        let config = datafusion::optimizer::OptimizerContext::new();
        let plan = ConstantKeys.rewrite(LogicalPlan::Join(join), &config).unwrap().data;
        assert_eq!(plan.display().to_string(), expected);
    }

    #[test]
    fn keys_without_columns_are_conditions() {
        check(col("b.column1"), "Inner Join: a.column1 = b.column1");
        check(lit(5), "Inner Join:  Filter: a.column1 = Int32(5)");
        check(cast(lit(5), arrow_schema::DataType::Int32), "Inner Join:  Filter: a.column1 = CAST(Int32(5) AS Int32)");
    }
}
