//! Keeps conditions that can fail where they were written.
//!
//! - With `a.k = b.k AND 6 / a.k > 1`, DataFusion also evaluates `6 / b.k > 1`, so that fewer rows
//!   of `b` reach the join. A row of `b` without a partner in `a` would then fail the statement.
//! - With `a.k = 2 AND 6 / b.k > 1 OR a.k = 3 AND b.k = 0`, it evaluates `6 / b.k > 1 OR b.k = 0`
//!   for all rows of `b`, also for rows with partners that do not have 2.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Join, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use filbert_functions::{fallible, guards};

/// The rule that moves conditions down, without inferred conditions that can fail. The rule infers
/// conditions from keys that are columns, and from disjunctions. Under an alias it does not see the
/// column, under `IS TRUE` not the disjunction.
#[derive(Debug)]
pub(super) struct Inferences(pub(super) Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for Inferences {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let plan = with_whole_disjunctions(plan);
        match with_hidden_keys(&plan) {
            Some(hidden) => self.0.rewrite(hidden, config)?.transform_data(with_shown_keys),
            None => self.0.rewrite(plan, config),
        }
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

/// The join, or the condition on a join, with `IS TRUE` around disjunctions of both sides that can
/// fail. It stays: a condition that is NULL and one that is false are the same to a join.
fn with_whole_disjunctions(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Join(join) => LogicalPlan::Join(of_whole_disjunctions(join)),
        LogicalPlan::Filter(mut filter) => {
            // The rule moves the conditions of the join together with this one.
            if let LogicalPlan::Join(join) = filter.input.as_ref() {
                filter.predicate = whole(std::mem::take(&mut filter.predicate), join);
                filter.input = LogicalPlan::Join(of_whole_disjunctions(join.clone())).into();
            }
            LogicalPlan::Filter(filter)
        }
        other => other,
    }
}

fn of_whole_disjunctions(mut join: Join) -> Join {
    join.filter = join.filter.take().map(|filter| whole(filter, &join));
    join
}

fn whole(condition: Expr, join: &Join) -> Expr {
    let is_extracted = |term: &Expr| {
        let is_disjunction = matches!(term, Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }));
        is_disjunction && is_of_both(term, join) && can_fail(term, join)
    };
    let terms = split_conjunction(&condition);
    if !terms.iter().any(|term| is_extracted(term)) {
        return condition;
    }
    let terms = terms.into_iter().map(|term| match is_extracted(term) {
        true => Expr::IsTrue(Box::new(term.clone())),
        false => term.clone(),
    });
    guards::all_of(terms).unwrap_or(condition)
}

/// Whether a term has columns of both sides of a join.
fn is_of_both(term: &Expr, join: &Join) -> bool {
    let columns = term.column_refs();
    let is_of = |side: &LogicalPlan| columns.iter().any(|column| side.schema().has_column(column));
    is_of(&join.left) && is_of(&join.right)
}

fn can_fail(term: &Expr, join: &Join) -> bool {
    let both = join.left.schema().join(join.right.schema());
    both.map_or(true, |schema| fallible::can_fail(term, &schema))
}

/// The join, or the condition on a join, with hidden keys. `None` for other plans, and if no
/// condition on a key can fail.
fn with_hidden_keys(plan: &LogicalPlan) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Join(join) if infers(join, join.filter.as_ref()) => Some(LogicalPlan::Join(hidden(join))),
        LogicalPlan::Filter(filter) => {
            let LogicalPlan::Join(join) = filter.input.as_ref() else { return None };
            if !infers(join, join.filter.iter().chain([&filter.predicate])) {
                return None;
            }
            let mut filter = filter.clone();
            filter.input = LogicalPlan::Join(hidden(join)).into();
            Some(LogicalPlan::Filter(filter))
        }
        _ => None,
    }
}

/// Whether a condition that can fail is about a column that is a key of the join.
fn infers<'e>(join: &Join, conditions: impl IntoIterator<Item = &'e Expr>) -> bool {
    let is_key = |expression: &Expr| {
        let columns = expression.column_refs();
        let keys = join.on.iter().flat_map(|(left, right)| [left, right]);
        keys.filter_map(Expr::try_as_col).any(|key| columns.contains(key))
    };
    conditions.into_iter().flat_map(split_conjunction).any(|term| is_key(term) && can_fail(term, join))
}

fn hidden(join: &Join) -> Join {
    let mut join = join.clone();
    for key in join.on.iter_mut().flat_map(|(left, right)| [left, right]) {
        if let Expr::Column(column) = key {
            let name = column.name.clone();
            *key = std::mem::take(key).alias(name);
        }
    }
    join
}

fn with_shown_keys(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_down(|node| {
        let LogicalPlan::Join(mut join) = node else { return Ok(Transformed::no(node)) };
        let mut is_changed = false;
        for key in join.on.iter_mut().flat_map(|(left, right)| [left, right]) {
            if let Expr::Alias(alias) = key {
                *key = std::mem::take(&mut *alias.expr);
                is_changed = true;
            }
        }
        Ok(Transformed::new_transformed(LogicalPlan::Join(join), is_changed))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use datafusion::common::JoinType;
    use datafusion::logical_expr::{LogicalPlanBuilder, lit};
    use datafusion::prelude::col;

    use super::super::tests::relation;
    use super::*;

    #[track_caller]
    fn check(condition: Expr, expected: &str) {
        let joined = LogicalPlanBuilder::from(relation("a")).join_on(relation("b"), JoinType::Inner, [condition]);
        let plan = with_whole_disjunctions(joined.unwrap().build().unwrap());
        assert_eq!(plan.display().to_string(), format!("Inner Join:  Filter: {expected}"));
    }

    #[test]
    fn disjunctions_of_both_sides_that_can_fail_stay_whole() {
        let (a, b) = (|| col("a.column1"), || col("b.column1"));
        let fails = |side: Expr| (lit(6) / side).gt(lit(1));
        check(
            a().eq(lit(2)).and(fails(b())).or(b().eq(lit(0))),
            // The library writes no parentheses before `IS TRUE`.
            "a.column1 = Int32(2) AND Int32(6) / b.column1 > Int32(1) OR b.column1 = Int32(0) IS TRUE",
        );
        check(a().eq(lit(2)).or(b().eq(lit(0))), "a.column1 = Int32(2) OR b.column1 = Int32(0)");
        check(fails(b()).or(b().eq(lit(0))), "Int32(6) / b.column1 > Int32(1) OR b.column1 = Int32(0)");
    }
}
