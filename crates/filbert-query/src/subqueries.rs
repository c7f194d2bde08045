//! Correlated scalar subqueries that DataFusion does not plan: those that compare with the outer row by anything but `=`.
//!
//! `SELECT (SELECT count(*) FROM t AS x WHERE x.b < t.b) FROM t` becomes one join and one aggregation:
//!
//! ```text
//!  outer rows, numbered ─┐
//!                        ├─ left join on x.b < t.b ─► group by number and outer columns ─► the row with its scalar
//!  rows of x, marked ────┘
//! ```
//!
//! Only rows that carry the mark count for an aggregate: where nothing joined, a count is 0 and all else null.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::expr_rewriter::{NamePreserver, strip_outer_reference};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Subquery, lit, when,
};
use datafusion::optimizer::AnalyzerRule;

/// Puts joins in the place of such subqueries.
#[derive(Debug)]
pub(crate) struct ScalarSubqueries;

impl AnalyzerRule for ScalarSubqueries {
    fn name(&self) -> &str {
        "correlated_scalar_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut number = 0;
        let transformed = plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Projection(projection) => in_projection(projection, &mut number),
            LogicalPlan::Filter(filter) => in_filter(filter, &mut number),
            other => Ok(Transformed::no(other)),
        })?;
        Ok(transformed.data)
    }
}

fn in_projection(projection: Projection, number: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new_for_projection();
    let saved: Vec<_> = projection.expr.iter().map(|expression| names.save(expression)).collect();
    let mut input = projection.input.clone();
    let Some(expressions) = replaced(projection.expr.clone(), &mut input, number)? else {
        return Ok(Transformed::no(LogicalPlan::Projection(projection)));
    };
    let expressions = expressions.into_iter().zip(saved).map(|(expression, saved)| saved.restore(expression)).collect();
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(expressions, input)?)))
}

fn in_filter(filter: Filter, number: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let mut input = filter.input.clone();
    let Some(mut conditions) = replaced(vec![filter.predicate.clone()], &mut input, number)? else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    };
    let Some(condition) = conditions.pop() else { return Ok(Transformed::no(LogicalPlan::Filter(filter))) };
    let plan = LogicalPlanBuilder::from(input).filter(condition)?.project(columns(&filter.input))?.build()?;
    Ok(Transformed::yes(plan))
}

/// The columns of a plan as expressions.
fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// The expressions with columns in the place of subqueries, which `input` has from then on; `None` = there are none.
fn replaced(expressions: Vec<Expr>, input: &mut Arc<LogicalPlan>, number: &mut usize) -> Result<Option<Vec<Expr>>> {
    let mut any = false;
    let mut rewritten = Vec::with_capacity(expressions.len());
    for expression in expressions {
        let transformed = expression.transform_down(|expression| {
            let Expr::ScalarSubquery(subquery) = &expression else { return Ok(Transformed::no(expression)) };
            let Some((joined, scalar)) = joined(subquery, input, number)? else {
                return Ok(Transformed::no(expression));
            };
            *input = Arc::new(joined);
            Ok(Transformed::new(scalar, true, TreeNodeRecursion::Jump))
        })?;
        any |= transformed.transformed;
        rewritten.push(transformed.data);
    }
    Ok(any.then_some(rewritten))
}

/// The parts of a subquery of the one form that is rewritten.
struct Parts<'p> {
    /// What is made of the aggregates.
    result: Option<&'p Expr>,
    aggregates: &'p [Expr],
    condition: &'p Expr,
    rows: &'p Arc<LogicalPlan>,
}

fn parts(subquery: &Subquery) -> Option<Parts<'_>> {
    let (result, plan) = match subquery.subquery.as_ref() {
        LogicalPlan::Projection(projection) => match projection.expr.as_slice() {
            [result] => (Some(result), projection.input.as_ref()),
            _ => return None,
        },
        plan => (None, plan),
    };
    let LogicalPlan::Aggregate(Aggregate { input, group_expr, aggr_expr, .. }) = plan else { return None };
    let LogicalPlan::Filter(filter) = input.as_ref() else { return None };
    let beyond_equality = split_conjunction(&filter.predicate).into_iter().any(|term| {
        let is_equality = matches!(term, Expr::BinaryExpr(BinaryExpr { op: Operator::Eq, .. }));
        term.contains_outer() && !is_equality
    });
    let fits = group_expr.is_empty()
        && beyond_equality
        && !filter.input.contains_outer_reference()
        && !aggr_expr.iter().chain(result).any(Expr::contains_outer);
    fits.then_some(Parts { result, aggregates: aggr_expr, condition: &filter.predicate, rows: &filter.input })
}

/// The outer rows with the scalar, and the scalar's column.
fn joined(subquery: &Subquery, outer: &LogicalPlan, number: &mut usize) -> Result<Option<(LogicalPlan, Expr)>> {
    let Some(parts) = parts(subquery) else { return Ok(None) };
    let of_outer = |expression: &Expr| match expression {
        Expr::OuterReferenceColumn(_, column) => outer.schema().has_column(column),
        _ => false,
    };
    let qualifiers = |plan: &LogicalPlan| -> Vec<_> {
        plan.schema().iter().filter_map(|(qualifier, _)| qualifier.cloned()).collect()
    };
    let (outer_names, inner_names) = (qualifiers(outer), qualifiers(parts.rows));
    let is_clear = inner_names.iter().all(|name| !outer_names.contains(name))
        && parts.rows.schema().iter().all(|(qualifier, _)| qualifier.is_some());
    // References beyond the next query outwards are for that one to resolve.
    if !is_clear || !subquery.outer_ref_columns.iter().all(of_outer) {
        return Ok(None);
    }
    *number += 1;
    let (row, found, scalar) = (format!("$row{number}"), format!("$found{number}"), format!("$scalar{number}"));

    let numbering = row_number();
    let numbering_name = numbering.schema_name().to_string();
    let mut numbered = columns(outer);
    numbered.push(Expr::Column(Column::new_unqualified(numbering_name)).alias(&row));
    let outer_rows = LogicalPlanBuilder::from(outer.clone()).window([numbering])?.project(numbered)?.build()?;

    let mut marked = columns(parts.rows);
    marked.push(lit(true).alias(&found));
    let inner_rows = LogicalPlanBuilder::from(parts.rows.clone()).project(marked)?.build()?;

    let condition = strip_outer_reference(parts.condition.clone());
    let mut groups = vec![name(&row)];
    groups.extend(columns(outer));
    let aggregates =
        parts.aggregates.iter().map(|aggregate| of_found(aggregate.clone(), &found)).collect::<Result<Vec<_>>>()?;
    let result = match parts.result {
        Some(result) => result.clone(),
        None => match parts.aggregates {
            [aggregate] => name(&aggregate.schema_name().to_string()),
            _ => return Ok(None),
        },
    };
    let mut outputs = columns(outer);
    outputs.push(result.unalias().alias(&scalar));
    let plan = LogicalPlanBuilder::from(outer_rows)
        .join_on(inner_rows, JoinType::Left, [condition])?
        .aggregate(groups, aggregates)?
        .project(outputs)?
        .build()?;
    Ok(Some((plan, name(&scalar))))
}

fn name(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// An aggregate over rows that carry the mark, under the name that it had.
fn of_found(aggregate: Expr, found: &str) -> Result<Expr> {
    let known_as = aggregate.schema_name().to_string();
    let transformed = aggregate.transform_down(|expression| match expression {
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let args = std::mem::take(&mut params.args);
            params.args = args.into_iter().map(|argument| when(name(found), argument).end()).collect::<Result<_>>()?;
            let aggregate = Expr::AggregateFunction(AggregateFunction { func, params });
            Ok(Transformed::new(aggregate, true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(transformed.data.unalias().alias(known_as))
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn rows(text: &str) -> Vec<String> {
        let context = SessionContext::new();
        context.add_analyzer_rule(Arc::new(ScalarSubqueries));
        context
            .sql("CREATE TABLE t (a BIGINT, b BIGINT) AS VALUES (1, 10), (2, 20), (3, 20), (4, NULL)")
            .await
            .unwrap();
        let batches = context.sql(text).await.unwrap().collect().await.unwrap();
        let mut rows = Vec::new();
        for batch in batches {
            for row in 0..batch.num_rows() {
                let cell =
                    |column: &arrow_array::ArrayRef| ScalarValue::try_from_array(column, row).unwrap().to_string();
                rows.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join("|"));
            }
        }
        rows
    }

    #[tokio::test]
    async fn a_subquery_may_compare_with_the_outer_row_as_it_likes() {
        for (text, expected) in [
            (
                "SELECT a, (SELECT count(*) FROM t AS x WHERE x.b < t.b) FROM t ORDER BY a",
                vec!["1|0", "2|1", "3|1", "4|0"],
            ),
            (
                "SELECT a, (SELECT sum(x.a) + 1 FROM t AS x WHERE x.b = t.b AND x.a <> t.a) AS s FROM t ORDER BY a",
                vec!["1|NULL", "2|4", "3|3", "4|NULL"],
            ),
            ("SELECT a FROM t WHERE (SELECT count(*) FROM t AS x WHERE x.b < t.b) = 1 ORDER BY a", vec!["2", "3"]),
            (
                "SELECT (SELECT count(*) FROM t AS x WHERE x.a < t.a), (SELECT max(y.b) FROM t AS y WHERE y.a > t.a) FROM t ORDER BY a",
                vec!["0|20", "1|20", "2|NULL", "3|NULL"],
            ),
            (
                "SELECT CASE WHEN (SELECT count(*) FROM t AS x WHERE x.a >= t.a) > 2 THEN 'few' ELSE 'many' END FROM t ORDER BY a",
                vec!["few", "few", "many", "many"],
            ),
        ] {
            assert_eq!(rows(text).await, expected, "{text}");
        }
    }
}
