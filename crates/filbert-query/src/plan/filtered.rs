//! Arguments of aggregates with a `FILTER`: they are computed for the rows that the filter lets
//! through. `sum(10 / b) FILTER (WHERE b <> 0)` never divides by zero.
//!
//! DataFusion computes the arguments for all rows. An argument that can fail therefore becomes a
//! branch of `CASE`, which is computed only for the rows that reach it. The other rows have NULL
//! there, and the filter removes them.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Case, Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use filbert_functions::fallible::can_fail;
use filbert_functions::named::map_named;

/// Guards the arguments. It runs after types were coerced, which adds casts that can fail.
#[derive(Debug)]
pub(super) struct Filtered;

impl AnalyzerRule for Filtered {
    fn name(&self) -> &str {
        "arguments_of_filtered_aggregates"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let transformed = plan.transform_up_with_subqueries(|node| {
            if !matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) {
                return Ok(Transformed::no(node));
            }
            let schema = merge_schema(&node.inputs());
            map_named(node, |expression| expression.transform_up(|inner| Ok(guarded(inner, &schema))))
        })?;
        Ok(transformed.data)
    }
}

fn guarded(mut expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    // The order of a window is an order of all rows.
    let (filter, args, keys) = match &mut expression {
        Expr::AggregateFunction(function) => {
            let keys: Vec<&mut Expr> = function.params.order_by.iter_mut().map(|key| &mut key.expr).collect();
            (&function.params.filter, &mut function.params.args, keys)
        }
        Expr::WindowFunction(function) => (&function.params.filter, &mut function.params.args, Vec::new()),
        _ => return Transformed::no(expression),
    };
    let Some(filter) = filter else { return Transformed::no(expression) };
    let mut is_changed = false;
    for argument in args.iter_mut().chain(keys) {
        if !is_guarded(argument, filter) && can_fail(argument, schema) {
            *argument = Expr::Case(Case {
                expr: None,
                when_then_expr: vec![(filter.clone(), Box::new(std::mem::take(argument)))],
                else_expr: None,
            });
            is_changed = true;
        }
    }
    if is_changed { Transformed::yes(expression) } else { Transformed::no(expression) }
}

/// Whether a filter guards an argument already: rules run more than once.
fn is_guarded(argument: &Expr, filter: &Expr) -> bool {
    let Expr::Case(Case { expr: None, when_then_expr, else_expr: None }) = argument else { return false };
    matches!(when_then_expr.as_slice(), [(when, _)] if when.as_ref() == filter)
}
