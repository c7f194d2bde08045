//! Keeps conditions that can fail on the table that they were written for.
//!
//! With `a.k = b.k AND 6 / a.k > 1`, DataFusion also evaluates `6 / b.k > 1`, so that fewer rows of
//! `b` reach the join. A row of `b` without a partner in `a` would then fail the statement.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use filbert_functions::fallible;

/// The rule that moves conditions down, without inferred conditions that can fail. The rule infers
/// conditions from keys that are columns: it sees none here, because each has another name.
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
        match with_hidden_keys(&plan) {
            Some(hidden) => self.0.rewrite(hidden, config)?.transform_data(with_shown_keys),
            None => self.0.rewrite(plan, config),
        }
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
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
    let both = join.left.schema().join(join.right.schema());
    let can_fail = |term: &Expr| both.as_ref().map_or(true, |schema| fallible::can_fail(term, schema));
    conditions.into_iter().flat_map(split_conjunction).any(|term| is_key(term) && can_fail(term))
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
