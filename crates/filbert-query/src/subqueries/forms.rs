//! Classifies subqueries by their form.

use arrow_schema::Field;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{ExprSchema, Result};
use datafusion::logical_expr::utils::{split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, FetchType, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Operator,
    Projection, SkipType,
};
use filbert_functions::fallible;

/// The form of an EXISTS: its rows and the conditions over them.
pub(super) struct ExistsForm {
    pub(super) terms: Vec<Expr>,
    pub(super) rows: LogicalPlan,
}

/// The form of an EXISTS; `Err` = the result is known: it always has rows, or never.
pub(super) fn exists_form(rows: &LogicalPlan) -> Result<std::result::Result<ExistsForm, bool>> {
    let mut rows = rows;
    let mut terms = Vec::new();
    loop {
        rows = match rows {
            // Before the first condition, which may use them, columns do not matter.
            LogicalPlan::Projection(projection) if terms.is_empty() && is_row_by_row(projection) => &projection.input,
            LogicalPlan::SubqueryAlias(alias) if terms.is_empty() => &alias.input,
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
            LogicalPlan::Limit(limit) if terms.is_empty() => match limited(limit)? {
                Some((0, None | Some(1..))) => &limit.input,
                Some((_, Some(0))) => return Ok(Err(false)),
                _ => break,
            },
            LogicalPlan::Aggregate(aggregate) if terms.is_empty() && aggregate.group_expr.is_empty() => {
                return Ok(Err(true));
            }
            LogicalPlan::Filter(filter) => {
                terms.extend(split_conjunction_owned(filter.predicate.clone()));
                &filter.input
            }
            _ => break,
        };
    }
    Ok(Ok(ExistsForm { terms, rows: rows.clone() }))
}

/// The rows to skip and to fetch, if they are known at planning.
pub(super) fn limited(limit: &Limit) -> Result<Option<(usize, Option<usize>)>> {
    Ok(match (limit.get_skip_type()?, limit.get_fetch_type()?) {
        (SkipType::Literal(skip), FetchType::Literal(fetch)) => Some((skip, fetch)),
        _ => None,
    })
}

/// Whether a projection returns one row for each input row.
fn is_row_by_row(projection: &Projection) -> bool {
    let unnests = |item: &Expr| item.exists(|inner| Ok(matches!(inner, Expr::Unnest(_)))).unwrap_or(true);
    !projection.expr.iter().any(unnests)
}

/// The rows of a one-column subquery that satisfy a condition over the column and an outer
/// expression.
pub(super) fn narrowed(
    rows: &LogicalPlan,
    expr: Expr,
    condition: impl FnOnce(Expr, Expr) -> Expr,
) -> Result<LogicalPlan> {
    let (column, rows) = match rows {
        LogicalPlan::Projection(projection) if is_row_by_row(projection) && projection.expr.len() == 1 => {
            let item = projection.expr.first().cloned().map(Expr::unalias);
            (item, projection.input.as_ref())
        }
        other => (other.schema().columns().into_iter().next().map(Expr::Column), other),
    };
    let Some(column) = column else { return Ok(rows.clone()) };
    LogicalPlanBuilder::from(rows.clone()).filter(condition(column, expr))?.build()
}

/// Whether a subquery returns at most one row for each outer row.
pub(super) fn is_one_row(rows: &LogicalPlan) -> bool {
    match rows {
        LogicalPlan::Projection(projection) => is_row_by_row(projection) && is_one_row(&projection.input),
        LogicalPlan::Filter(filter) => is_one_row(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        LogicalPlan::Sort(sort) => is_one_row(&sort.input),
        LogicalPlan::Limit(limit) => matches!(limited(limit), Ok(Some((_, Some(0 | 1))))) || is_one_row(&limit.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    }
}

/// Whether a subquery always returns a row, whatever the tables contain.
pub(super) fn has_always_a_row(rows: &LogicalPlan) -> bool {
    match rows {
        LogicalPlan::Projection(projection) => is_row_by_row(projection) && has_always_a_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_always_a_row(&alias.input),
        LogicalPlan::Sort(sort) => has_always_a_row(&sort.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(relation) => relation.produce_one_row,
        _ => false,
    }
}

/// Whether a subquery's column is an unchanged column of a table.
pub(super) fn is_of_table(rows: &LogicalPlan) -> bool {
    match rows {
        LogicalPlan::Projection(projection) => {
            let is_column = |item: &Expr| matches!(item.clone().unalias(), Expr::Column(_));
            projection.expr.iter().all(is_column) && is_of_table(&projection.input)
        }
        LogicalPlan::Filter(filter) => is_of_table(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => is_of_table(&alias.input),
        LogicalPlan::Sort(sort) => is_of_table(&sort.input),
        LogicalPlan::Limit(limit) => is_of_table(&limit.input),
        LogicalPlan::TableScan(_) => true,
        _ => false,
    }
}

/// Whether two columns are compared by an operator of DataFusion. A decimal and a number of another
/// type may be compared by a function.
fn are_compared_plainly(left: &Field, right: &Field) -> bool {
    let (left, right) = (left.data_type(), right.data_type());
    left == right || !(left.is_decimal() || right.is_decimal())
}

/// Whether a subquery is an aggregate over rows with `inner = outer`, which DataFusion turns into
/// an aggregation.
pub(super) fn is_plain_aggregate(rows: &LogicalPlan) -> bool {
    let (items, rows) = match rows {
        LogicalPlan::Projection(projection) => (projection.expr.as_slice(), projection.input.as_ref()),
        other => (&[] as &[Expr], other),
    };
    let LogicalPlan::Aggregate(Aggregate { input, group_expr, aggr_expr, .. }) = rows else { return false };
    let LogicalPlan::Filter(Filter { predicate, input: source, .. }) = input.as_ref() else { return false };
    let has_subquery = |expression: &Expr| super::has_subquery(expression);
    let of_outer = |expression: &Expr| expression.contains_outer() || has_subquery(expression);
    let is_known = |term: &Expr| match term {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let is_pair = |inner: &Expr, outer: &Expr| match (inner, outer) {
                (Expr::Column(column), Expr::OuterReferenceColumn(outer, _)) => {
                    source.schema().field_from_column(column).is_ok_and(|inner| are_compared_plainly(inner, outer))
                }
                _ => false,
            };
            is_pair(left, right) || is_pair(right, left)
        }
        _ => false,
    };
    // The aggregation is over all groups, also over groups that no outer row refers to.
    let can_fail = |expressions: &[Expr], rows: &LogicalPlan| {
        expressions.iter().any(|expression| fallible::can_fail(expression, rows.schema()))
    };
    group_expr.is_empty()
        && !can_fail(aggr_expr, input)
        && !can_fail(items, rows)
        && !super::has_namesakes(source.schema(), split_conjunction(predicate))
        && !items.iter().chain(aggr_expr).any(of_outer)
        && source.all_out_ref_exprs().is_empty()
        && split_conjunction(predicate).into_iter().all(|term| !of_outer(term) || is_known(term))
}
