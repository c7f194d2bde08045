//! DataFusion's rules for plans: those that run, and those that run not everywhere.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use filbert_functions::Constants;

use super::union_names::UnionNames;
use super::{dependencies, ended, marks};

type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;

/// Rules that believe functional dependencies.
const BELIEVERS: [&str; 4] = ["replace_distinct_aggregate", "eliminate_join", "eliminate_duplicated_expr", COLUMNS];
/// Leaves out columns that nobody reads.
const COLUMNS: &str = "optimize_projections";
/// Puts the joins of a FROM clause in another order, and gives all of them the null equality of one.
const ORDER_OF_JOINS: &str = "eliminate_cross_join";
/// Makes keys of the conditions of a join, whose null equality may be that of other keys.
const KEYS_OF_JOINS: &str = "extract_equijoin_predicate";

/// Leaves out what has no rows.
const WITHOUT_ROWS: &str = "propagate_empty_relation";

/// Moves a condition that names no column below an aggregate, as one about its keys. There it takes the rows from the aggregate, but not
/// the row that an aggregate has without any input: `HAVING (SELECT false)`, `SELECT .. FROM (SELECT count(*) ..) WHERE random() < 0.5`.
const CONDITIONS_DOWN: &str = "push_down_filter";

/// The rules for logical plans.
pub(super) fn logical() -> Vec<LogicalRule> {
    let mut rules = vec![dependencies::distinct_rows()];
    for rule in Optimizer::new().rules {
        match rule.name() {
            COLUMNS => rules.extend([dependencies::independence(), marks::columns(), rule]),
            name if BELIEVERS.contains(&name) => rules.extend([dependencies::independence(), rule]),
            ORDER_OF_JOINS => rules.push(Arc::new(Unless { applies: joins_equal_nulls, rule })),
            CONDITIONS_DOWN => rules.push(Arc::new(Unless { applies: is_about_an_own_row, rule })),
            KEYS_OF_JOINS => rules.push(Arc::new(Unless { applies: equals_nulls, rule })),
            WITHOUT_ROWS => rules.extend([rule, Arc::new(UnionNames)]),
            _ => rules.push(rule),
        }
    }
    rules.push(Arc::new(Constants));
    rules.into_iter().map(ended::optimizing).collect()
}

/// The rules for physical plans without those that move filters. They find a column by its name: below an aggregate over a join, whose
/// sides have columns of one name, a condition about one column came to be about the other. The rules for logical plans have moved
/// conditions before, as far as scans take them.
pub(super) fn physical() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let moves_filters = |rule: &dyn PhysicalOptimizerRule| rule.name().starts_with("FilterPushdown");
    let rules = PhysicalOptimizer::new().rules.into_iter().filter(|rule| !moves_filters(rule.as_ref()));
    rules.map(ended::optimizing_physical).collect()
}

/// Whether a node is a join for whose keys nulls are equal.
fn equals_nulls(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}

/// Whether there is such a join in a plan among those that the rule puts in order. `INTERSECT` and `EXCEPT`, which are joins that are
/// not inner, stay where they are.
fn joins_equal_nulls(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        found |= equals_nulls(node) && matches!(node, LogicalPlan::Join(join) if join.join_type == JoinType::Inner);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || visited.is_err()
}

/// Whether a node is a condition about an aggregate that has a row without any input.
fn is_about_an_own_row(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    match filter.input.as_ref() {
        LogicalPlan::Aggregate(aggregate) => {
            let keys = &aggregate.group_expr;
            keys.is_empty() || keys.iter().any(|key| matches!(key, Expr::GroupingSet(_)))
        }
        // Conditions above each other are moved together.
        inner => is_about_an_own_row(inner),
    }
}

/// A rule that leaves the plans alone to which something applies.
#[derive(Debug)]
struct Unless {
    applies: fn(&LogicalPlan) -> bool,
    rule: LogicalRule,
}

impl OptimizerRule for Unless {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if (self.applies)(&plan) { Ok(Transformed::no(plan)) } else { self.rule.rewrite(plan, config) }
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a library that calls its rules otherwise, the rules have to be looked at again.
    #[test]
    fn the_rules_that_are_guarded_are_there() {
        let names: Vec<String> = Optimizer::new().rules.iter().map(|rule| rule.name().to_owned()).collect();
        for guarded in BELIEVERS.iter().chain([&ORDER_OF_JOINS, &KEYS_OF_JOINS, &WITHOUT_ROWS, &CONDITIONS_DOWN]) {
            assert_eq!(names.iter().filter(|name| name == guarded).count(), 1, "{guarded}");
        }
    }

    #[test]
    fn no_physical_rule_moves_filters() {
        let kept = physical();
        let is_kept = |name: &str| kept.iter().any(|rule| rule.name() == name);
        let left_out = PhysicalOptimizer::new().rules;
        let left_out: Vec<&str> = left_out.iter().map(|rule| rule.name()).filter(|name| !is_kept(name)).collect();
        assert_eq!(left_out, ["FilterPushdown", "FilterPushdown(Post)"]);
    }
}
