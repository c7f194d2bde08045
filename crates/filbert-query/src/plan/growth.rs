//! An estimate of the growth of a statement during planning, before it is planned.
//!
//! Some forms have more than one copy of an operand when they are planned: `coalesce(x, y)` becomes
//! `CASE WHEN x IS NOT NULL THEN x ELSE y END`. DataFusion validates the plan of a subquery as part
//! of each plan around it. If such forms are nested, the statement doubles with each level. Thirty
//! levels of `coalesce` have 400 bytes, and would fill the memory of any machine within one step of
//! the optimizer. Such a step cannot be ended.
//!
//! The estimate is linear in the size of the statement: each node counts as often as the forms
//! around it copy it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{InSubquery, ScalarFunction, SetComparison};
use datafusion::logical_expr::{Between, Cast, Expr, LogicalPlan, TryCast};
use filbert_functions::choices::OF_CONDITIONS;
use filbert_functions::error::{carried, parsing_error};

/// The maximum number of copied nodes. They take about a second to plan. Not a setting: no
/// statement in use comes near.
const COPIED_MAX: u64 = 1 << 17;

/// The assumed number of copies of an operand of a quantified comparison with a subquery: it is
/// compared, tested for null, and part of the subqueries that the comparison becomes. An estimate:
/// with four levels of such comparisons, planning took seconds.
const QUANTIFIED: u64 = 32;

/// Checks a plan that is not optimized yet.
///
/// # Errors
/// 54001: it would grow too much.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    let mut growth = Growth::default();
    growth.plan(plan, 1)?;
    growth.subqueries()
}

/// Like [`check`], for an expression.
///
/// # Errors
/// Like [`check`].
pub(crate) fn check_expression(expression: &Expr) -> Result<()> {
    let mut growth = Growth::default();
    growth.expression(expression, 1)?;
    growth.subqueries()
}

#[derive(Default)]
struct Growth {
    /// The copied nodes so far.
    copied: u64,
    /// The subqueries that are not counted yet, each with the number of its copies.
    subqueries: Vec<(Arc<LogicalPlan>, u64)>,
}

impl Growth {
    fn count(&mut self, copies: u64) -> Result<()> {
        // Two copies of a large operand are no growth: it takes a second level to double them.
        self.copied = self.copied.saturating_add(copies.saturating_sub(2));
        if self.copied <= COPIED_MAX {
            return Ok(());
        }
        let text = "the statement is too complex: within each other, subqueries, COALESCE, BETWEEN, conditions of \
                    CASE and conditions as numbers double with each level";
        Err(carried(parsing_error(text).with_sqlstate("54001")))
    }

    fn subqueries(mut self) -> Result<()> {
        while let Some((plan, copies)) = self.subqueries.pop() {
            self.plan(&plan, copies)?;
        }
        Ok(())
    }

    fn plan(&mut self, root: &LogicalPlan, copies: u64) -> Result<()> {
        let mut plans = vec![root];
        while let Some(plan) = plans.pop() {
            self.count(copies)?;
            plans.extend(plan.inputs());
            plan.apply_expressions(|expression| {
                self.expression(expression, copies)?;
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(())
    }

    fn expression(&mut self, root: &Expr, copies: u64) -> Result<()> {
        let mut expressions = vec![(root, copies)];
        while let Some((expression, copies)) = expressions.pop() {
            self.count(copies)?;
            let doubled = copies.saturating_mul(2);
            match expression {
                Expr::ScalarFunction(call) => {
                    let arguments = call.args.iter().enumerate();
                    expressions.extend(
                        arguments.map(|(at, argument)| (argument, if is_copied(call, at) { doubled } else { copies })),
                    );
                    continue;
                }
                Expr::InSubquery(InSubquery { expr, subquery, .. })
                | Expr::SetComparison(SetComparison { expr, subquery, .. }) => {
                    expressions.push((expr, copies.saturating_mul(QUANTIFIED)));
                    self.subqueries.push((subquery.subquery.clone(), doubled));
                    continue;
                }
                Expr::Between(Between { expr, low, high, .. }) => {
                    // It becomes two comparisons when it is executed.
                    expressions.extend([(expr.as_ref(), doubled), (low.as_ref(), copies), (high.as_ref(), copies)]);
                    continue;
                }
                Expr::ScalarSubquery(subquery) => self.subqueries.push((subquery.subquery.clone(), doubled)),
                Expr::Exists(exists) => self.subqueries.push((exists.subquery.subquery.clone(), doubled)),
                _ => {}
            }
            let of_children = if is_cast_of_condition(expression) { doubled } else { copies };
            expression.apply_children(|child| {
                expressions.push((child, of_children));
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(())
    }
}

/// Whether planning copies an argument of a call.
fn is_copied(call: &ScalarFunction, at: usize) -> bool {
    let is_last = at + 1 == call.args.len();
    match call.func.name() {
        "coalesce" | "nvl" | "ifnull" => !is_last,
        OF_CONDITIONS => at.is_multiple_of(2) && !is_last,
        _ => false,
    }
}

/// Whether an expression converts a truth value, which a `CASE` over it does.
fn is_cast_of_condition(expression: &Expr) -> bool {
    let (Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. })) = expression else { return false };
    match expr.as_ref() {
        Expr::BinaryExpr(binary) => binary.op.negate().is_some() || binary.op.is_logic_operator(),
        Expr::Not(_) | Expr::Between(_) | Expr::InList(_) | Expr::Like(_) | Expr::SimilarTo(_) => true,
        Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::Exists(_) => true,
        Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::IsTrue(_) | Expr::IsNotTrue(_) => true,
        Expr::IsFalse(_) | Expr::IsNotFalse(_) | Expr::IsUnknown(_) | Expr::IsNotUnknown(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::DataType;
    use datafusion::functions::core::coalesce;
    use datafusion::logical_expr::{cast, lit, when};
    use datafusion::prelude::col;

    use super::*;

    /// A form within itself.
    fn nested(levels: usize, form: impl Fn(Expr) -> Expr) -> Expr {
        (0..levels).fold(col("a"), |operand, _| form(operand))
    }

    fn is_refused(expression: &Expr) -> bool {
        check_expression(expression).is_err()
    }

    #[test]
    fn operands_that_double_with_each_level_are_refused() {
        let first = |operand| coalesce().call(vec![operand, lit(1)]);
        assert!(!is_refused(&nested(10, first)));
        assert!(is_refused(&nested(30, first)));
        let last = |operand| coalesce().call(vec![lit(1), operand]);
        assert!(!is_refused(&nested(1_000, last)));
    }

    #[test]
    fn conditions_as_numbers_double_with_each_level() {
        let of_condition = |operand: Expr| cast(operand.gt(lit(2)), DataType::Int32);
        assert!(!is_refused(&nested(10, of_condition)));
        assert!(is_refused(&nested(30, of_condition)));
        let of_number = |operand: Expr| cast(operand + lit(2), DataType::Int32);
        assert!(!is_refused(&nested(1_000, of_number)));
    }

    #[test]
    fn size_alone_is_no_growth() {
        let many = (0..50_000).map(lit).collect::<Vec<Expr>>();
        assert!(!is_refused(&coalesce().call(many)));
        let chain = |operand| when(col("b"), lit(1)).otherwise(operand);
        let chain = (0..1_000).try_fold(col("a"), |operand, _| chain(operand));
        assert!(chain.is_ok_and(|chain| !is_refused(&chain)));
    }
}
