//! Expressions that DataFusion's planner knows too little of: as calls of functions while it plans, and what they stand for afterwards.
//!
//! - It plans the items of `ARRAY[..]` without the context of the statement: parameters have no types there, and names that `WITH`
//!   gives are not known. The arguments of a function have both.
//! - It tells a `CASE` by its first result. A function tells the type that all results have together ([`choices`]).
//! - It plans `BETWEEN` as an operator of its own, which is two others.
//! - It takes the types of a recursive query from its first part. Numbers there may get more digits with each round.

use std::ops::ControlFlow;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan, and, or};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, SelectItem, SetExpr, SetOperator, VisitMut, VisitorMut,
};

use crate::dialect::call;
use crate::functions::choices::{self, OF_CONDITIONS, OF_VALUE};
use crate::functions::numbers::free::{self, WITH_FREE_SCALE};

/// The function that makes an array of its arguments.
const MAKE_ARRAY: &str = "make_array";

/// Makes calls of the arrays and of `CASE` within a statement or an expression.
pub(crate) fn written(statement: &mut impl VisitMut) {
    let _ = statement.visit(&mut Calls);
}

struct Calls;

impl VisitorMut for Calls {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let Some(with) = query.with.as_mut().filter(|with| with.recursive) else { return ControlFlow::Continue(()) };
        for table in &mut with.cte_tables {
            if let SetExpr::SetOperation { op: SetOperator::Union, left, .. } = table.query.body.as_mut() {
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
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Numbers of the rows that a recursive query begins with.
fn with_free_scales(first: &mut SetExpr) {
    match first {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                    let inner = std::mem::replace(expr, Expr::Identifier("".into()));
                    *expr = call(WITH_FREE_SCALE, vec![inner], Vec::new(), None);
                }
            }
        }
        SetExpr::Query(query) => with_free_scales(&mut query.body),
        _ => {}
    }
}

/// Makes the calls of a plan a `CASE` again, and `BETWEEN` the operators that it stands for where they are planned otherwise than
/// DataFusion has them.
pub(crate) fn settled(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_changed = false;
    let transformed = plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        // The filter of an aggregate stands in its name as it is written.
        let names = NamePreserver::new(&plan);
        let transformed = plan.map_expressions(|expression| {
            let name = names.save(&expression);
            Ok(settled_expression(state, expression, &schema)?.update_data(|expression| name.restore(expression)))
        })?;
        is_changed |= transformed.transformed;
        // What is above has the new types as well.
        if is_changed { transformed.map_data(LogicalPlan::recompute_schema) } else { Ok(transformed) }
    })?;
    Ok(transformed.data)
}

/// As [`settled`], of an expression.
pub(crate) fn settled_expression(
    state: &SessionState,
    expression: PlannedExpr,
    schema: &DFSchema,
) -> Result<Transformed<PlannedExpr>> {
    expression.transform_up(|inner| {
        Ok(match inner {
            PlannedExpr::ScalarFunction(call) => match choices::case_of(&call) {
                Some(case) => Transformed::yes(choices::settled(case, schema)?),
                None => match free::settled(&call, schema)? {
                    Some(settled) => Transformed::yes(settled),
                    None => Transformed::no(PlannedExpr::ScalarFunction(call)),
                },
            },
            PlannedExpr::Between(between) => match compared(state, &between, schema)? {
                Some(compared) => Transformed::yes(compared),
                None => Transformed::no(PlannedExpr::Between(between)),
            },
            other => Transformed::no(other),
        })
    })
}

/// The comparisons that a `BETWEEN` stands for; `None` if DataFusion has both.
fn compared(state: &SessionState, between: &Between, schema: &DFSchema) -> Result<Option<PlannedExpr>> {
    let (from, to) = match between.negated {
        false => (BinaryOperator::GtEq, BinaryOperator::LtEq),
        true => (BinaryOperator::Lt, BinaryOperator::Gt),
    };
    let value = || between.expr.as_ref().clone();
    let low = operator(state, RawBinaryExpr { left: value(), op: from, right: between.low.as_ref().clone() }, schema)?;
    let high = operator(state, RawBinaryExpr { left: value(), op: to, right: between.high.as_ref().clone() }, schema)?;
    Ok(match (low, high) {
        (None, None) => None,
        (low, high) => {
            let (plain_low, plain_high) = match between.negated {
                false => (value().gt_eq(between.low.as_ref().clone()), value().lt_eq(between.high.as_ref().clone())),
                true => (value().lt(between.low.as_ref().clone()), value().gt(between.high.as_ref().clone())),
            };
            let (low, high) = (low.unwrap_or(plain_low), high.unwrap_or(plain_high));
            Some(if between.negated { or(low, high) } else { and(low, high) })
        }
    })
}

/// What an operator is planned as; `None` if it stays the operator.
fn operator(state: &SessionState, raw: RawBinaryExpr, schema: &DFSchema) -> Result<Option<PlannedExpr>> {
    let mut raw = raw;
    for planner in state.expr_planners() {
        match planner.plan_binary_op(raw, schema)? {
            PlannerResult::Planned(planned) => return Ok(Some(planned)),
            PlannerResult::Original(original) => raw = original,
        }
    }
    Ok(None)
}
