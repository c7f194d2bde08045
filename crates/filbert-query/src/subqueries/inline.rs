//! Inlines subqueries that are one expression: `(SELECT x)` becomes `x`.
//!
//! Within the condition of another subquery, DataFusion would turn them into joins and confuse
//! their columns.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use filbert_functions::named::map_named;

/// Replaces such subqueries by their expressions.
pub(super) fn inline(plan: LogicalPlan) -> Result<LogicalPlan> {
    let inlined = plan.transform_up_with_subqueries(|plan| {
        if !super::has_subqueries(&plan) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let inlined = map_named(plan, |expression| {
            expression.transform_up(|inner| {
                Ok(match expression_of(&inner) {
                    Some(expression) => Transformed::yes(within(expression, &schema)?),
                    None => Transformed::no(inner),
                })
            })
        })?;
        match inlined.transformed {
            true => inlined.map_data(LogicalPlan::recompute_schema),
            false => Ok(inlined),
        }
    })?;
    Ok(inlined.data)
}

/// The expression of a subquery without a relation; `None` for other subqueries, and for an
/// expression that must be evaluated only once.
fn expression_of(subquery: &Expr) -> Option<Expr> {
    let Expr::ScalarSubquery(subquery) = subquery else { return None };
    let LogicalPlan::Projection(projection) = subquery.subquery.as_ref() else { return None };
    let is_row = matches!(projection.input.as_ref(), LogicalPlan::EmptyRelation(empty) if empty.produce_one_row);
    let [item] = projection.expr.as_slice() else { return None };
    let item = item.clone().unalias();
    (is_row && !item.is_volatile() && !super::has_subquery(&item)).then_some(item)
}

/// The expression in place of the subquery. Outer columns become columns of the enclosing rows.
fn within(expression: Expr, schema: &DFSchema) -> Result<Expr> {
    let placed = expression.transform_up(|inner| {
        Ok(match inner {
            Expr::OuterReferenceColumn(_, column) if schema.has_column(&column) => {
                Transformed::yes(Expr::Column(column))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(placed.data)
}
