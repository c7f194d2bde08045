//! `AND` and `OR` of conditions, of which programs write thousands beside each other.
//!
//! Each operator asks for the types of its operands, and the left one holds all that was written before it. A chain of
//! conditions is one by its form, so that nobody has to look into it.

use arrow_schema::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::ending;

/// Plans `AND` and `OR` of what is a condition already, before anybody else asks for types.
#[derive(Debug)]
pub struct Conditions;

impl ExprPlanner for Conditions {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        ending::check()?;
        let op = match expr.op {
            BinaryOperator::And => Operator::And,
            BinaryOperator::Or => Operator::Or,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        if !is_condition(&expr.left, schema) || !is_condition(&expr.right, schema) {
            return Ok(PlannerResult::Original(expr));
        }
        let condition = BinaryExpr { left: Box::new(expr.left), op, right: Box::new(expr.right) };
        Ok(PlannerResult::Planned(Expr::BinaryExpr(condition)))
    }
}

fn is_condition(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }) => true,
        other => matches!(other.get_type(schema), Ok(DataType::Boolean)),
    }
}
