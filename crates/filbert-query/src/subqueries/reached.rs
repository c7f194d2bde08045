//! The rows for which a subquery is evaluated.
//!
//! A correlated subquery is evaluated for all distinct outer values at once. In `CASE WHEN b <> 0
//! THEN (SELECT a / b ..) END`, a row with `b = 0` does not need the subquery, but its outer value
//! would fail the statement. Therefore this module tracks the conditions under which an expression
//! is evaluated, and the outer values are taken only from rows that satisfy them:
//!
//! | expression | an operand is evaluated for rows where |
//! |---|---|
//! | `a AND b` | `a` is not false |
//! | `a OR b` | `a` is not true |
//! | `CASE` | no earlier condition is true, and the condition of the branch is true |
//! | `coalesce(a, b)` | `a` is null |
//! | `WHERE`, `ON` | all terms without subqueries are true |
//!
//! Conditions that contain subqueries are ignored: the outer rows would be joined with their
//! results a second time.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, LogicalPlan, LogicalPlanBuilder, Operator, lit};
use filbert_functions::guards;

use super::{Outer, Place, Unnest, has_subquery};

impl Unnest {
    /// Adds a condition for the expressions that are rewritten next, until [`Unnest::assume_only`].
    pub(super) fn assume(&mut self, condition: Expr) {
        if !has_subquery(&condition) && !condition.contains_outer() && !condition.is_volatile() {
            self.assumed.push(condition);
        }
    }

    /// The number of conditions.
    pub(super) fn assumptions(&self) -> usize {
        self.assumed.len()
    }

    /// Removes the conditions that were added since there were this many.
    pub(super) fn assume_only(&mut self, many: usize) {
        self.assumed.truncate(many);
    }

    /// The outer rows for which a subquery is evaluated.
    pub(super) fn rows_that_reach(&self, rows: &LogicalPlan) -> Result<LogicalPlan> {
        let is_known =
            |condition: &&Expr| condition.column_refs().iter().all(|column| rows.schema().has_column(column));
        match guards::all_of(self.assumed.iter().filter(is_known).cloned()) {
            Some(condition) => LogicalPlanBuilder::from(rows.clone()).filter(condition)?.build(),
            None => Ok(rows.clone()),
        }
    }

    /// Rewrites the operands of an expression, each under its conditions.
    #[recursive::recursive]
    pub(super) fn operands(&mut self, expression: Expr, input: &mut Outer, place: Place) -> Result<Expr> {
        let many = self.assumptions();
        let rewritten = match expression {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let left = self.value(*left, input, place)?;
                if has_subquery(&right) {
                    let reaches = if op == Operator::And { Expr::is_not_false } else { Expr::is_not_true };
                    self.assume(reaches(left.clone()));
                }
                let right = self.value(*right, input, place)?;
                Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
            }
            Expr::Case(case) => self.branches(case, input, place)?,
            Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "coalesce" => {
                let mut values = Vec::with_capacity(args.len());
                for argument in args {
                    let value = self.value(argument, input, place)?;
                    self.assume(value.clone().is_null());
                    values.push(value);
                }
                Expr::ScalarFunction(ScalarFunction { func, args: values })
            }
            other => other.map_children(|child| self.value(child, input, place).map(Transformed::yes))?.data,
        };
        self.assume_only(many);
        Ok(rewritten)
    }

    fn branches(&mut self, case: Case, input: &mut Outer, place: Place) -> Result<Expr> {
        let Case { expr: operand, when_then_expr, else_expr } = case;
        let operand = operand.map(|operand| self.value(*operand, input, place)).transpose()?;
        let (mut whens, mut thens) = (Vec::new(), Vec::new());
        for (when, then) in when_then_expr {
            let before = self.assumptions();
            if operand.is_none() && has_subquery(&when) {
                // No condition is evaluated after the first one that is true.
                whens.iter().for_each(|earlier: &Expr| self.assume(earlier.clone().is_not_true()));
            }
            whens.push(self.value(*when, input, place)?);
            self.assume_only(before);
            thens.push(then);
        }
        // With an operand, only the same CASE compares in the same way: its values have one type.
        let reaches = |branch: Option<usize>| {
            let flags = (0..whens.len()).map(|at| Box::new(lit(branch == Some(at))));
            let pairs = whens.iter().cloned().map(Box::new).zip(flags).collect();
            let otherwise = Some(Box::new(lit(branch.is_none())));
            Expr::Case(Case { expr: operand.clone().map(Box::new), when_then_expr: pairs, else_expr: otherwise })
        };
        let assume = |this: &mut Self, branch: Option<usize>| match operand {
            Some(_) => this.assume(reaches(branch)),
            None => {
                let earlier = branch.unwrap_or(whens.len());
                whens.iter().take(earlier).for_each(|when| this.assume(when.clone().is_not_true()));
                whens.iter().skip(earlier).take(1).for_each(|when| this.assume(when.clone().is_true()));
            }
        };
        let before = self.assumptions();
        let mut pairs = Vec::with_capacity(whens.len());
        for (at, (when, then)) in whens.iter().zip(thens).enumerate() {
            if has_subquery(&then) {
                assume(self, Some(at));
            }
            pairs.push((Box::new(when.clone()), Box::new(self.value(*then, input, place)?)));
            self.assume_only(before);
        }
        assume(self, None);
        let otherwise = else_expr.map(|otherwise| self.value(*otherwise, input, place)).transpose()?;
        self.assume_only(before);
        Ok(Expr::Case(Case { expr: operand.map(Box::new), when_then_expr: pairs, else_expr: otherwise.map(Box::new) }))
    }
}
