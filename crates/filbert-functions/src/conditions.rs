//! `AND` and `OR` of conditions. Programs generate chains of thousands.
//!
//! Each operator asks for the types of its operands, and its left operand contains the whole chain
//! before it. A chain of conditions is recognized by its form, without examining the operands.

use arrow_schema::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::ending;

/// Plans `AND` and `OR` of conditions before another planner asks for types.
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
