//! Expressions that DataFusion's planner knows too little of, as calls of functions.
//!
//! - It plans the items of `ARRAY[..]` without the context of the statement: parameters have no types there, and names that `WITH`
//!   gives are not known. The arguments of a function have both.
//! - It tells a `CASE` by its first result. A function tells the type that all results have together ([`functions::choices`]).
//! - It takes the types of a recursive query from its first part. Numbers there may get more digits with each round.

use std::ops::ControlFlow;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Expr, Query, SelectItem, SetExpr, SetOperator, VisitMut, VisitorMut};

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

/// Makes the calls of a plan a `CASE` again.
pub(crate) fn settled(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_changed = false;
    let transformed = plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        let transformed = plan.map_expressions(|expression| settled_expression(expression, &schema))?;
        is_changed |= transformed.transformed;
        // What is above has the new types as well.
        if is_changed { transformed.map_data(LogicalPlan::recompute_schema) } else { Ok(transformed) }
    })?;
    Ok(transformed.data)
}

/// As [`settled`], of an expression.
pub(crate) fn settled_expression(expression: PlannedExpr, schema: &DFSchema) -> Result<Transformed<PlannedExpr>> {
    expression.transform_up(|inner| {
        let PlannedExpr::ScalarFunction(call) = &inner else { return Ok(Transformed::no(inner)) };
        if let Some(case) = choices::case_of(call) {
            return choices::settled(case, schema).map(Transformed::yes);
        }
        Ok(match free::settled(call, schema)? {
            Some(settled) => Transformed::yes(settled),
            None => Transformed::no(inner),
        })
    })
}
