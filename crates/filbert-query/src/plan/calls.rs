//! Expressions that DataFusion's planner resolves with too little context. They become function
//! calls during planning, and get their final form afterwards.
//!
//! - DataFusion plans the elements of `ARRAY[..]` without the context of the statement: parameters
//!   have no types there, and names from `WITH` are unknown. The arguments of a function have both.
//! - DataFusion takes the type of a `CASE` from its first result. A function takes the common type
//!   of all results ([`choices`]).
//! - The result of `nullif` has the type that an operator coerces its first argument to
//!   ([`operand`]).
//! - DataFusion plans `BETWEEN` as an operator of its own, although it stands for two comparisons.
//! - DataFusion takes the types of a recursive query from its first part. If numbers get more
//!   digits in later rounds, the first ones have to have all digits.
//! - Frames of windows have constant distances only ([`frames`]).

use std::ops::ControlFlow;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::logical_plan::RecursiveQuery;
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr as PlannedExpr, LogicalPlan, Operator, and, or};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, SelectItem, SetExpr, SetOperator, Visit, VisitMut, Visitor, VisitorMut,
};
use filbert_dialect::{call, walk};
use filbert_functions::choices::{self, OF_CONDITIONS, OF_VALUE};
use filbert_functions::error::{carried, parsing_error};
use filbert_functions::named::map_named;
use filbert_functions::numbers::free::{self, WITH_FREE_SCALE};
use filbert_functions::operand;

use crate::plan::frames;
use crate::plan::session::dialect_of;

/// The function that makes an array of its arguments.
const MAKE_ARRAY: &str = "make_array";
/// The maximum number of nodes of a value that is computed twice.
const DOUBLED_NODES_MAX: usize = 2_000;

/// Replaces the arrays and `CASE` expressions of a statement or an expression by calls. Returns
/// whether its plan has to be [`settled`].
///
/// `has_free_scales` = numbers of recursive queries get all digits.
pub(crate) fn written(statement: &mut impl VisitMut, has_free_scales: bool) -> bool {
    let mut calls = Calls { is_to_be_settled: false, has_free_scales };
    let _ = walk::change(statement, &mut calls);
    calls.is_to_be_settled
}

struct Calls {
    is_to_be_settled: bool,
    has_free_scales: bool,
}

impl VisitorMut for Calls {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let with = query.with.as_mut().filter(|with| with.recursive && self.has_free_scales);
        let Some(with) = with else { return ControlFlow::Continue(()) };
        for table in &mut with.cte_tables {
            if let SetExpr::SetOperation { op: SetOperator::Union, left, .. } = table.query.body.as_mut() {
                self.is_to_be_settled = true;
                with_free_scales(left);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Array(array) => {
                *expression = call(MAKE_ARRAY, std::mem::take(&mut array.elem), Vec::new(), None);
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                let name = if operand.is_some() { OF_VALUE } else { OF_CONDITIONS };
                let pairs = std::mem::take(conditions).into_iter().flat_map(|pair| [pair.condition, pair.result]);
                let value = operand.take().map(|operand| *operand);
                let otherwise = else_result.take().map(|result| *result);
                *expression = call(name, value.into_iter().chain(pairs).chain(otherwise).collect(), Vec::new(), None);
                self.is_to_be_settled = true;
            }
            Expr::Between { .. } => self.is_to_be_settled = true,
            Expr::Function(function) if function.over.is_some() => frames::written(function),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Removes the scale of a number in the first part of a recursive query.
fn with_free_scale(item: &mut Expr) {
    let inner = std::mem::replace(item, Expr::Identifier("".into()));
    *item = call(WITH_FREE_SCALE, vec![inner], Vec::new(), None);
}

fn with_free_scales(first: &mut SetExpr) {
    match first {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                    with_free_scale(expr);
                }
            }
        }
        SetExpr::Query(query) => with_free_scales(&mut query.body),
        _ => {}
    }
}

/// Whether a statement has a recursive query.
pub(crate) fn has_recursion(statement: &impl Visit) -> bool {
    struct Queries;
    impl Visitor for Queries {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            match &query.with {
                Some(with) if with.recursive => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk::read(statement, &mut Queries).is_break()
}

/// Whether a recursive query gives its later numbers fewer digits than they have: the planner casts
/// them to the types of the first ones. The casts of the statement itself look the same.
pub(crate) fn narrows_numbers(plan: &LogicalPlan) -> bool {
    let narrows = |query: &RecursiveQuery| match query.recursive_term.as_ref() {
        LogicalPlan::Projection(projection) => projection.expr.iter().any(|item| {
            let item = item.clone().unalias_nested().data;
            matches!(item, PlannedExpr::Cast(cast) if cast.field.data_type().is_decimal())
        }),
        other => other.schema().fields().iter().any(|field| field.data_type().is_decimal()),
    };
    let mut found = false;
    let _ = plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::RecursiveQuery(query) if narrows(query));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// Turns the calls of a plan back into `CASE`. Turns `BETWEEN` into comparisons where these are
/// planned differently from DataFusion's operators.
pub(crate) fn settled(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_changed = false;
    let transformed = plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        // The filter of an aggregate is part of its column name as written.
        let transformed = map_named(plan, |expression| settled_expression(state, expression, &schema))?;
        is_changed |= transformed.transformed;
        // The nodes above get the new types as well.
        if is_changed { transformed.map_data(LogicalPlan::recompute_schema) } else { Ok(transformed) }
    })?;
    Ok(transformed.data)
}

/// Like [`settled`], for an expression.
pub(crate) fn settled_expression(
    state: &SessionState,
    expression: PlannedExpr,
    schema: &DFSchema,
) -> Result<Transformed<PlannedExpr>> {
    expression.transform_up(|inner| {
        Ok(match inner {
            PlannedExpr::ScalarFunction(call) => match choices::case_of(&call) {
                Some(case) => Transformed::yes(choices::settled(case, schema, dialect_of(state))?),
                None => {
                    let settled = match free::settled(&call, schema)? {
                        None => operand::settled(&call, schema)?,
                        settled => settled,
                    };
                    settled.map_or_else(|| Transformed::no(PlannedExpr::ScalarFunction(call)), Transformed::yes)
                }
            },
            PlannedExpr::Between(between) => match compared(state, &between, schema)? {
                Some(compared) => Transformed::yes(compared),
                None => Transformed::no(PlannedExpr::Between(between)),
            },
            other => Transformed::no(other),
        })
    })
}

/// The comparisons that a `BETWEEN` stands for. If both comparisons use the same operand types, the
/// result is a `BETWEEN` with other operands; otherwise it is two comparisons, which compute the
/// value twice. `None` if DataFusion plans both comparisons the same way.
///
/// # Errors
/// A value that would be computed twice is too large: nested values double with every level.
fn compared(state: &SessionState, between: &Between, schema: &DFSchema) -> Result<Option<PlannedExpr>> {
    let (from, to) = match between.negated {
        false => ((BinaryOperator::GtEq, Operator::GtEq), (BinaryOperator::LtEq, Operator::LtEq)),
        true => ((BinaryOperator::Lt, Operator::Lt), (BinaryOperator::Gt, Operator::Gt)),
    };
    let low = operator(state, between, from.0, &between.low, schema)?;
    let high = operator(state, between, to.0, &between.high, schema)?;
    if low.is_none() && high.is_none() {
        return Ok(None);
    }
    let plain = |op, bound: &PlannedExpr| {
        PlannedExpr::BinaryExpr(BinaryExpr::new(between.expr.clone(), op, Box::new(bound.clone())))
    };
    let low = low.unwrap_or_else(|| plain(from.1, &between.low));
    let high = high.unwrap_or_else(|| plain(to.1, &between.high));
    if let (PlannedExpr::BinaryExpr(of_low), PlannedExpr::BinaryExpr(of_high)) = (&low, &high)
        && (of_low.op, of_high.op) == (from.1, to.1)
        && of_low.left == of_high.left
    {
        let (value, low, high) = (of_low.left.clone(), of_low.right.clone(), of_high.right.clone());
        return Ok(Some(PlannedExpr::Between(Between { expr: value, negated: between.negated, low, high })));
    }
    let mut nodes = 0_usize;
    between.expr.apply(|_| {
        nodes += 1;
        Ok(if nodes > DOUBLED_NODES_MAX { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if nodes > DOUBLED_NODES_MAX {
        let message = "the first operand of BETWEEN is too large for values of its type: compute it in a subquery";
        return Err(carried(parsing_error(message).with_sqlstate("54001")));
    }
    Ok(Some(if between.negated { or(low, high) } else { and(low, high) }))
}

/// The plan of the comparison of the value with a bound; `None` if it stays the operator.
fn operator(
    state: &SessionState,
    between: &Between,
    op: BinaryOperator,
    bound: &PlannedExpr,
    schema: &DFSchema,
) -> Result<Option<PlannedExpr>> {
    let mut raw = RawBinaryExpr { left: between.expr.as_ref().clone(), op, right: bound.clone() };
    for planner in state.expr_planners() {
        match planner.plan_binary_op(raw, schema)? {
            PlannerResult::Planned(planned) => return Ok(Some(planned)),
            PlannerResult::Original(original) => raw = original,
        }
    }
    Ok(None)
}
