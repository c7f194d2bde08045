//! DataFusion's rules for plans: the rules that run, and the rules that run only on some plans.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, Filter, Join, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use filbert_functions::named::{map_named, schema_within};
use filbert_functions::{Constants, guards};

use super::forgetting::Promises;
use super::inferences::Inferences;
use super::projections::{self, Projections};
use super::result_order::ResultOrder;
use super::sorts_of_unions::SortsOfUnions;
use super::union_names::UnionNames;
use super::{bounds, branches, constant_keys, dependencies, ended, idle_keys, marks, unreached};

type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;
type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Rules that rely on functional dependencies.
const BELIEVERS: [&str; 4] = ["replace_distinct_aggregate", "eliminate_join", "eliminate_duplicated_expr", COLUMNS];
/// Removes unused columns.
const COLUMNS: &str = "optimize_projections";
/// Reorders the joins of a FROM clause, and gives all of them the null equality of one.
const ORDER_OF_JOINS: &str = "eliminate_cross_join";
/// Turns the conditions of a join into keys. Their null equality may be that of other keys.
const KEYS_OF_JOINS: &str = "extract_equijoin_predicate";

/// Computes an aggregate with one DISTINCT in two levels: first by its values, then of these. The
/// sums beside it become sums of sums. A sum of sums has another type where a sum has a wider type
/// than its operand, as sums of whole numbers have.
const TWO_LEVELS: &str = "single_distinct_aggregation_to_group_by";
/// Computes an expression that occurs several times once, for all rows, if one of its occurrences
/// is evaluated for all of them. That depends on the order of the operands of `AND` and `OR`.
const REPEATED: &str = "common_sub_expression_eliminate";
/// Removes relations without rows.
const WITHOUT_ROWS: &str = "propagate_empty_relation";

/// Moves a condition without columns below an aggregate, as if it were a condition on the keys.
/// There it removes the rows of the input, but not the row that an aggregate returns without any
/// input: `HAVING (SELECT false)`, `SELECT .. FROM (SELECT count(*) ..) WHERE random() < 0.5`.
const CONDITIONS_DOWN: &str = "push_down_filter";

/// Rejects physical plans in which an operator does not get the order that it requires.
const ORDERS_CHECKED: &str = "SanityCheckPlan";

/// The rules for logical plans.
pub(super) fn logical() -> Vec<LogicalRule> {
    let mut rules =
        vec![bounds::of_comparisons(), unreached::removed(), dependencies::distinct_rows(), branches::kept()];
    for rule in Optimizer::new().rules {
        match rule.name() {
            COLUMNS => {
                let rule = Arc::new(WithSchemas(rule));
                rules.extend([dependencies::independence(), marks::columns(), rule]);
            }
            name if BELIEVERS.contains(&name) => rules.extend([dependencies::independence(), rule]),
            ORDER_OF_JOINS => {
                let rule = Arc::new(Unless { applies: joins_equal_nulls, rule });
                rules.extend([constant_keys::as_conditions(), rule]);
            }
            CONDITIONS_DOWN => {
                let rule = Arc::new(Inferences(rule));
                rules.extend([
                    Arc::new(Unless { applies: is_about_an_own_row, rule }) as LogicalRule,
                    Arc::new(Balanced),
                ]);
            }
            TWO_LEVELS => rules.push(Arc::new(Unless { applies: sums_are_wider, rule })),
            KEYS_OF_JOINS => rules.push(Arc::new(Unless { applies: equals_nulls, rule })),
            REPEATED => rules.extend([Arc::new(InOrder), rule]),
            WITHOUT_ROWS => rules.extend([rule, Arc::new(UnionNames)]),
            _ => rules.push(rule),
        }
    }
    rules.extend([branches::released(), Arc::new(Constants), idle_keys::removed(), bounds::of_filters()]);
    rules.into_iter().map(ended::optimizing).collect()
}

/// The rules for physical plans, without the rules that move filters. Rules that move filters find
/// a column by its name. Below an aggregate over a join with equal column names on both sides, a
/// condition on one column became a condition on the other. The rules for logical plans have
/// already moved conditions as far as scans take them.
pub(super) fn physical() -> Vec<PhysicalRule> {
    let moves_filters = |rule: &dyn PhysicalOptimizerRule| rule.name().starts_with("FilterPushdown");
    let rules = PhysicalOptimizer::new().rules.into_iter().filter(|rule| !moves_filters(rule.as_ref()));
    let rules = rules.flat_map(|rule| match rule.name() {
        projections::NAME => vec![Arc::new(Projections(rule)) as PhysicalRule],
        ORDERS_CHECKED => vec![Arc::new(SortsOfUnions), rule],
        _ => vec![rule],
    });
    let first = [Arc::new(Promises) as PhysicalRule];
    let last = [Arc::new(ResultOrder) as PhysicalRule];
    first.into_iter().chain(rules).chain(last).map(ended::optimizing_physical).collect()
}

/// Whether a node is a join that treats null keys as equal.
fn equals_nulls(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}

/// Whether a plan has such a join among the joins that the rule reorders. `INTERSECT` and `EXCEPT`
/// are not inner joins, and stay in place.
fn joins_equal_nulls(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        found |= equals_nulls(node) && matches!(node, LogicalPlan::Join(join) if join.join_type == JoinType::Inner);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || visited.is_err()
}

/// Whether a node is an aggregate in which a sum has another type than its operand.
fn sums_are_wider(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = plan else { return false };
    let input = aggregate.input.schema();
    aggregate.aggr_expr.iter().any(|expression| {
        let Expr::AggregateFunction(call) = expression.clone().unalias() else { return false };
        match call.params.args.as_slice() {
            [operand] if !call.params.distinct => {
                let (of, sum) = (operand.get_type(input), expression.get_type(input));
                !matches!((of, sum), (Ok(of), Ok(sum)) if of == sum)
            }
            _ => false,
        }
    })
}

/// Whether a node is a condition on an aggregate that returns a row without any input.
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

/// Balances the conditions that the rule before has connected one after the other
/// ([`guards::balanced`]).
#[derive(Debug)]
struct Balanced;

impl OptimizerRule for Balanced {
    fn name(&self) -> &str {
        "balanced_conditions"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let balanced = match &plan {
            LogicalPlan::Filter(filter) => guards::balanced(&filter.predicate),
            LogicalPlan::Join(join) => join.filter.as_ref().and_then(guards::balanced),
            _ => None,
        };
        let Some(balanced) = balanced else { return Ok(Transformed::no(plan)) };
        Ok(Transformed::yes(match plan {
            LogicalPlan::Filter(filter) => LogicalPlan::Filter(Filter::try_new(balanced, filter.input)?),
            LogicalPlan::Join(join) => LogicalPlan::Join(Join { filter: Some(balanced), ..join }),
            other => other,
        }))
    }
}

/// Puts the operands of `AND` and `OR` in the order in which they are evaluated
/// ([`guards::in_order`]).
#[derive(Debug)]
struct InOrder;

impl OptimizerRule for InOrder {
    fn name(&self) -> &str {
        "operands_in_order"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut found = false;
        plan.apply_expressions(|expression| {
            found |= guards::has_connective(expression);
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !found {
            return Ok(Transformed::no(plan));
        }
        let schema = schema_within(&plan)?;
        map_named(plan, |expression| {
            Ok(match guards::in_order(&expression, &schema)? {
                Some(ordered) => Transformed::yes(ordered),
                None => Transformed::no(expression),
            })
        })
    }
}

/// A rule after which the nodes that pass columns on have the columns of their inputs. The
/// library's rule for unused columns removes results of an aggregate below a join of a subquery,
/// and keeps the join's schema. The next pass finds columns by their place in that schema, and
/// removes others.
#[derive(Debug)]
struct WithSchemas(LogicalRule);

impl OptimizerRule for WithSchemas {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let optimized = self.0.rewrite(plan, config)?;
        if !optimized.transformed {
            return Ok(optimized);
        }
        optimized.map_data(|plan| {
            let recomputed = plan.transform_up(|node| match node {
                LogicalPlan::Join(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Window(_) => {
                    node.recompute_schema().map(Transformed::yes)
                }
                other => Ok(Transformed::no(other)),
            })?;
            Ok(recomputed.data)
        })
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

/// A rule that skips the plans with some property.
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

    /// If a version of the library renames its rules, these guards must be reviewed.
    #[test]
    fn the_rules_that_are_guarded_are_there() {
        let names: Vec<String> = Optimizer::new().rules.iter().map(|rule| rule.name().to_owned()).collect();
        for guarded in BELIEVERS.iter().chain([
            &ORDER_OF_JOINS,
            &KEYS_OF_JOINS,
            &WITHOUT_ROWS,
            &CONDITIONS_DOWN,
            &TWO_LEVELS,
            &REPEATED,
        ]) {
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
        for wrapped in [projections::NAME, ORDERS_CHECKED, "sorts_of_unions"] {
            assert!(is_kept(wrapped), "{wrapped}");
        }
    }
}
