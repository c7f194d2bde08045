//! Finds the numeric columns of a result with declared digits.
//!
//! A `numeric(8,2)` column of a table has declared digits, also where a query passes it on. A
//! computed number has as many digits as result from the computation, and clients are not told
//! them: PostgreSQL reports a `numeric` without digits then.

use arrow_schema::DataType;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

use crate::plan::planner::unaliased;

/// Whether a column of a plan has declared digits.
pub(crate) fn are_declared(plan: &LogicalPlan, at: usize) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => {
            projection.expr.get(at).is_some_and(|item| passes(item, &projection.input))
        }
        LogicalPlan::SubqueryAlias(alias) => are_declared(&alias.input, at),
        LogicalPlan::Filter(filter) => are_declared(&filter.input, at),
        LogicalPlan::Sort(sort) => are_declared(&sort.input, at),
        LogicalPlan::Limit(limit) => are_declared(&limit.input, at),
        LogicalPlan::Repartition(repartition) => are_declared(&repartition.input, at),
        LogicalPlan::Distinct(Distinct::All(input)) => are_declared(input, at),
        LogicalPlan::Distinct(Distinct::On(on)) => on.select_expr.get(at).is_some_and(|item| passes(item, &on.input)),
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.get(at).is_some_and(|group| passes(group, &aggregate.input))
        }
        LogicalPlan::Window(window) => at < window.input.schema().fields().len() && are_declared(&window.input, at),
        LogicalPlan::Join(join) => match at.checked_sub(join.left.schema().fields().len()) {
            None => are_declared(&join.left, at),
            Some(at) => are_declared(&join.right, at),
        },
        LogicalPlan::Union(union) => {
            let digits = |input: &LogicalPlan| input.schema().fields().get(at).map(|field| field.data_type().clone());
            let first = union.inputs.first().and_then(|input| digits(input));
            union.inputs.iter().all(|input| are_declared(input, at) && digits(input) == first)
        }
        LogicalPlan::TableScan(_) | LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    }
}

/// Whether an expression over a plan is a column with declared digits, or a cast that declares
/// them.
fn passes(expression: &Expr, input: &LogicalPlan) -> bool {
    match unaliased(expression) {
        Expr::Column(column) => {
            let place = input.schema().maybe_index_of_column(column);
            place.is_some_and(|at| are_declared(input, at))
        }
        Expr::Cast(cast) => matches!(cast.field.data_type(), DataType::Decimal128(..)),
        _ => false,
    }
}
