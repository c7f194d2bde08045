//! Corrects the precedence of `NOT EXISTS (..)` before an operator.
//!
//! The grammar parses it as one operand, so `NOT EXISTS (..) IS NULL` would test it for NULL. In
//! SQL, `NOT` binds weaker than any operator except `AND` and `OR`: it negates the result of the
//! operator.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, CastKind, Expr, UnaryOperator, VisitMut};

use crate::walk;

/// Moves each `NOT` at an operator's left operand before the operator.
pub(super) fn resolve(statement: &mut impl VisitMut) {
    let _ = walk::change_expressions(statement, |expression| {
        of_operator(expression);
        ControlFlow::<()>::Continue(())
    });
}

fn of_operator(expression: &mut Expr) {
    let Some(left) = left_of(expression) else { return };
    match left {
        Expr::Exists { negated: negated @ true, .. } => *negated = false,
        // Moved here from an inner operator. The grammar itself allows none there.
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            let inner = std::mem::replace(expr.as_mut(), Expr::Identifier("".into()));
            *left = inner;
        }
        _ => return,
    }
    let inner = std::mem::replace(expression, Expr::Identifier("".into()));
    *expression = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(inner) };
}

/// The left operand of an operator other than `AND` and `OR`.
fn left_of(expression: &mut Expr) -> Option<&mut Expr> {
    match expression {
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => None,
        Expr::BinaryOp { left, .. }
        | Expr::AnyOp { left, .. }
        | Expr::AllOp { left, .. }
        | Expr::IsDistinctFrom(left, _)
        | Expr::IsNotDistinctFrom(left, _) => Some(left),
        Expr::IsNull(operand)
        | Expr::IsNotNull(operand)
        | Expr::IsTrue(operand)
        | Expr::IsNotTrue(operand)
        | Expr::IsFalse(operand)
        | Expr::IsNotFalse(operand)
        | Expr::IsUnknown(operand)
        | Expr::IsNotUnknown(operand) => Some(operand),
        Expr::Cast { kind: CastKind::DoubleColon, expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::SimilarTo { expr, .. }
        | Expr::RLike { expr, .. }
        | Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::Between { expr, .. } => Some(expr),
        _ => None,
    }
}
