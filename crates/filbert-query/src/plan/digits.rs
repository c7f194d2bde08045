//! Finds the columns of a result with declared digits, and those of texts with a declared length.
//!
//! A `numeric(8,2)` or `varchar(7)` column of a table has them, also where a query passes it on. A
//! computed number has as many digits as result from the computation, and clients are not told
//! them: PostgreSQL reports a `numeric` without digits then.

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use filbert_functions::types::declared_length;

use crate::plan::planner::unaliased;

/// A column with a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Declared {
    /// The length of texts.
    length: Option<u32>,
}

/// Whether a column of a plan has declared digits.
pub(crate) fn are_declared(plan: &LogicalPlan, at: usize) -> bool {
    declared(plan, at).is_some()
}

/// The declared length of a plan's column.
pub(crate) fn length(plan: &LogicalPlan, at: usize) -> Option<u32> {
    let is_text = |found: &DataType| matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let field = plan.schema().fields().get(at).filter(|field| is_text(field.data_type()));
    field.and_then(|_| declared(plan, at)).and_then(|declared| declared.length)
}

fn declared(plan: &LogicalPlan, at: usize) -> Option<Declared> {
    match plan {
        LogicalPlan::Projection(projection) => passed(projection.expr.get(at)?, &projection.input),
        LogicalPlan::SubqueryAlias(alias) => declared(&alias.input, at),
        LogicalPlan::Filter(filter) => declared(&filter.input, at),
        LogicalPlan::Sort(sort) => declared(&sort.input, at),
        LogicalPlan::Limit(limit) => declared(&limit.input, at),
        LogicalPlan::Repartition(repartition) => declared(&repartition.input, at),
        LogicalPlan::Distinct(Distinct::All(input)) => declared(input, at),
        LogicalPlan::Distinct(Distinct::On(on)) => passed(on.select_expr.get(at)?, &on.input),
        LogicalPlan::Aggregate(aggregate) => passed(aggregate.group_expr.get(at)?, &aggregate.input),
        LogicalPlan::Window(window) if at < window.input.schema().fields().len() => declared(&window.input, at),
        LogicalPlan::Join(join) => match at.checked_sub(join.left.schema().fields().len()) {
            None => declared(&join.left, at),
            Some(at) => declared(&join.right, at),
        },
        LogicalPlan::Union(union) => {
            let of = |input: &LogicalPlan| {
                Some((declared(input, at)?, input.schema().fields().get(at)?.data_type().clone()))
            };
            // Unions nest in their first inputs, which are therefore looked at once.
            let (first, rest) = union.inputs.split_first()?;
            let first = of(first)?;
            rest.iter().all(|input| of(input).as_ref() == Some(&first)).then_some(first.0)
        }
        LogicalPlan::TableScan(_) => {
            Some(Declared { length: plan.schema().fields().get(at).and_then(|field| declared_length(field)) })
        }
        LogicalPlan::EmptyRelation(_) => Some(Declared { length: None }),
        _ => None,
    }
}

/// The declaration of an expression over a plan: a column that has one, or a cast.
fn passed(expression: &Expr, input: &LogicalPlan) -> Option<Declared> {
    match unaliased(expression) {
        Expr::Column(column) => declared(input, input.schema().maybe_index_of_column(column)?),
        Expr::Cast(cast) => {
            matches!(cast.field.data_type(), DataType::Decimal128(..)).then_some(Declared { length: None })
        }
        Expr::ScalarFunction(call) if matches!(call.func.name(), "cast_varchar" | "cast_char") => {
            let Some(Expr::Literal(ScalarValue::Int64(Some(length)), _)) = call.args.get(1) else { return None };
            Some(Declared { length: u32::try_from(*length).ok() })
        }
        _ => None,
    }
}
