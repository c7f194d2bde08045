//! Keeps `CASE` with branches that can fail.
//!
//! DataFusion rewrites `CASE WHEN a THEN x ELSE y END` with boolean branches to
//! `a AND x OR NOT a AND y`, and then factors out the common terms of both operands of `OR`. A
//! branch that can fail would be evaluated for rows that do not reach it. DataFusion does not
//! rewrite `CASE TRUE WHEN a ..`, which has the same meaning. Therefore the optimizer sees this
//! form.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Case, Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use filbert_functions::fallible;
use filbert_functions::named::{map_named, schema_within};

/// The rule that gives such choices the form that stays. It is the first one.
pub(super) fn kept() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(Branches { form: Form::Kept })
}

/// The rule that gives them the form back which they had. It is the last one.
pub(super) fn released() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(Branches { form: Form::Written })
}

/// The form that a rule gives to `CASE` without an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `CASE TRUE WHEN ..`
    Kept,
    /// `CASE WHEN ..`
    Written,
}

#[derive(Debug)]
struct Branches {
    form: Form,
}

impl OptimizerRule for Branches {
    fn name(&self) -> &str {
        match self.form {
            Form::Kept => "branches_that_can_fail",
            Form::Written => "branches_as_written",
        }
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !has_case(&plan)? {
            return Ok(Transformed::no(plan));
        }
        let schema = schema_within(&plan)?;
        map_named(plan, |expression| {
            expression.transform_up(|inner| match inner {
                Expr::Case(case) => {
                    let takes = match (&case.expr, self.form) {
                        (None, Form::Kept) => {
                            is_of_truth_values(&case, &schema)
                                && branches(&case).any(|branch| fallible::can_fail(branch, &schema))
                        }
                        (Some(operand), Form::Written) => **operand == lit(true),
                        _ => false,
                    };
                    let expr = match (takes, self.form) {
                        (false, _) => return Ok(Transformed::no(Expr::Case(case))),
                        (true, Form::Kept) => Some(Box::new(lit(true))),
                        (true, Form::Written) => None,
                    };
                    Ok(Transformed::yes(Expr::Case(Case { expr, ..case })))
                }
                other => Ok(Transformed::no(other)),
            })
        })
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

fn has_case(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expression| {
        found |= expression.exists(|inner| Ok(matches!(inner, Expr::Case(_))))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_of_truth_values(case: &Case, schema: &DFSchema) -> bool {
    let first = case.when_then_expr.first();
    first.is_some_and(|(_, then)| then.get_type(schema).is_ok_and(|found| found == DataType::Boolean))
}

/// The expressions of a choice that not all rows reach.
fn branches(case: &Case) -> impl Iterator<Item = &Expr> {
    let conditions = case.when_then_expr.iter().skip(1).map(|(when, _)| when);
    let results = case.when_then_expr.iter().map(|(_, then)| then);
    conditions.chain(results).chain(&case.else_expr).map(AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use datafusion::logical_expr::{LogicalPlanBuilder, when};
    use datafusion::optimizer::OptimizerContext;
    use datafusion::prelude::col;

    use super::*;

    fn with_form(plan: LogicalPlan, form: Form) -> LogicalPlan {
        Branches { form }.rewrite(plan, &OptimizerContext::new()).unwrap().data
    }

    #[track_caller]
    fn check(case: Expr, kept: &str) {
        let rows = LogicalPlanBuilder::values(vec![vec![lit(1), lit(true)]]).unwrap();
        let written = rows.project(vec![case.alias("c")]).unwrap().build().unwrap();
        let while_optimized = with_form(written.clone(), Form::Kept);
        assert_eq!(while_optimized.display().to_string(), kept);
        assert_eq!(with_form(while_optimized, Form::Written).display().to_string(), written.display().to_string());
    }

    #[test]
    fn branches_of_truth_values_that_can_fail_are_kept() {
        let is_positive = || col("column1").gt(lit(0));
        let fails = || (lit(6) / col("column1")).gt(lit(2));
        check(
            when(is_positive(), fails()).otherwise(col("column2")).unwrap(),
            "Projection: CASE Boolean(true) WHEN column1 > Int32(0) THEN Int32(6) / column1 > Int32(2) \
             ELSE column2 END AS c",
        );
        // The first condition is evaluated for each row.
        check(
            when(fails(), lit(true)).otherwise(col("column2")).unwrap(),
            "Projection: CASE WHEN Int32(6) / column1 > Int32(2) THEN Boolean(true) ELSE column2 END AS c",
        );
        // No rule takes other choices apart.
        check(
            when(is_positive(), lit(6) / col("column1")).otherwise(lit(0)).unwrap(),
            "Projection: CASE WHEN column1 > Int32(0) THEN Int32(6) / column1 ELSE Int32(0) END AS c",
        );
    }
}
