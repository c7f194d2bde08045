//! Prevents wrong conclusions of DataFusion from casts and operators. DataFusion assumes that only
//! one value has a given result, and computes this value from the result. Two rules hide the
//! conditions for which this is wrong.
//!
//! - In a comparison, DataFusion removes a cast, and casts the other operand instead:
//!   `n::numeric(9,1) = 1.0` became `n = 1.00`. Such a cast is hidden before the other rules
//!   ([`lists::of_each_row`]).
//! - From the condition of a filter, DataFusion concludes the bounds of columns. A column with a
//!   single possible value is a constant, and orders leave it out:
//!   `SELECT a FROM t WHERE a::boolean ORDER BY a` was not sorted, because true is 1 as a number.
//!   And the computation fails where the condition does not: `WHERE a * 0 = 0` divided by zero.
//!   Such a condition is hidden after the other rules ([`lists::kept`]).

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Filter, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::expressions::CastExpr;
use filbert_functions::named::{map_named, schema_within};
use filbert_functions::{guards, lists};

/// The rule for comparisons. It is the first one.
pub(super) fn of_comparisons() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(Comparisons)
}

/// The rule for filters. It is the last one: others look into conditions.
pub(super) fn of_filters() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(Bounds)
}

#[derive(Debug)]
struct Comparisons;

impl OptimizerRule for Comparisons {
    fn name(&self) -> &str {
        "comparisons_with_casts"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let schema = schema_within(&plan)?;
        map_named(plan, |expression| {
            expression.transform_up(|mut inner| {
                let mut is_changed = false;
                for operand in compared(&mut inner) {
                    is_changed |= hide(operand, &schema);
                }
                Ok(if is_changed { Transformed::yes(inner) } else { Transformed::no(inner) })
            })
        })
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

/// The operands of a comparison.
fn compared(expression: &mut Expr) -> Vec<&mut Expr> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    match expression {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom,
            right,
        }) => vec![left, right],
        Expr::InList(list) => vec![&mut list.expr],
        Expr::Between(between) => vec![&mut between.expr, &mut between.low, &mut between.high],
        _ => Vec::new(),
    }
}

/// Hides casts of columns, one within the other, that give several values the same result.
fn hide(operand: &mut Expr, schema: &DFSchema) -> bool {
    let mut innermost: &Expr = operand;
    let mut are_one_to_one = true;
    while let Expr::Cast(cast) = innermost {
        are_one_to_one &= is_one_to_one(cast, schema) || is_of_whole_number(cast, schema);
        innermost = &cast.expr;
    }
    if are_one_to_one || innermost.column_refs().is_empty() {
        return false;
    }
    *operand = lists::of_each_row(std::mem::take(operand));
    true
}

/// Whether a cast of a whole number may leave a comparison. A cast to another whole number fails
/// instead of returning a different one. In place of a text, the library compares the number only
/// if the text is how the number is written, so that `id::text = '5'` finds a key.
fn is_of_whole_number(cast: &Cast, schema: &DFSchema) -> bool {
    let to = cast.field.data_type();
    (to.is_integer() || to.is_string()) && cast.expr.get_type(schema).is_ok_and(|from| from.is_integer())
}

#[derive(Debug)]
struct Bounds;

impl OptimizerRule for Bounds {
    fn name(&self) -> &str {
        "conditions_without_bounds"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
        let schema = filter.input.schema().clone();
        if !is_backwards_wrong(&filter.predicate, &schema) {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let conditions = split_conjunction_owned(filter.predicate.clone()).into_iter();
        let conditions = conditions.map(|condition| match is_backwards_wrong(&condition, &schema) {
            true => lists::kept(condition),
            false => condition,
        });
        let Some(predicate) = guards::all_of(conditions) else {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        };
        Filter::try_new(predicate, filter.input).map(|filter| Transformed::yes(LogicalPlan::Filter(filter)))
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

/// Whether a condition has a part that DataFusion must not compute backwards. Hidden parts are left
/// out.
fn is_backwards_wrong(condition: &Expr, schema: &DFSchema) -> bool {
    let mut found = false;
    // The closure returns no errors.
    let _ = condition.apply(|inner| {
        if lists::what_is_kept(inner).is_some() {
            return Ok(TreeNodeRecursion::Jump);
        }
        found |= match inner {
            Expr::Cast(cast) => !is_one_to_one(cast, schema),
            Expr::BinaryExpr(binary) => binary.op.is_numerical_operators(),
            Expr::Negative(_) => true,
            _ => false,
        };
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// Whether each result of a cast comes from one value alone.
fn is_one_to_one(cast: &Cast, schema: &DFSchema) -> bool {
    let to = cast.field.data_type();
    let Ok(from) = cast.expr.get_type(schema) else { return false };
    CastExpr::check_bigger_cast(to, &from)
        || from.is_string() && to.is_string()
        || match (&from, to) {
            (DataType::Float32, DataType::Float64) => true,
            (DataType::Decimal128(precision, scale), DataType::Decimal128(wider, finer)) => {
                finer >= scale && i16::from(*wider) - i16::from(*finer) >= i16::from(*precision) - i16::from(*scale)
            }
            (from, DataType::Decimal128(precision, scale)) => whole_digits(from)
                .is_some_and(|digits| *scale >= 0 && i16::from(*precision) - i16::from(*scale) >= digits),
            _ => false,
        }
}

/// The digits of the largest number of a type of whole numbers.
fn whole_digits(data_type: &DataType) -> Option<i16> {
    match data_type {
        DataType::Int8 => Some(3),
        DataType::Int16 => Some(5),
        DataType::Int32 => Some(10),
        DataType::Int64 => Some(19),
        _ => None,
    }
}
