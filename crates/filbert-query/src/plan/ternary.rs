//! `IN` lists in three-valued logic: `a IN (1) AND a IN (3)`, `a IN (1, 2) AND a NOT IN (1, NULL)`.
//!
//! DataFusion merges two lists over the same expression, and forgets that a null makes the result
//! unknown. It treats the first example as false where `a` is null (and its negation as true), and
//! the second as `a IN (2)`. It also treats different expressions as different values:
//! `a IN ($1, b) AND a NOT IN ($2, c)` becomes `a IN ($1, b)`, even where `$1` and `$2` are equal.
//! The same happens with the conditions of a query and of the subquery that it reads. Therefore
//! nulls are removed from lists. Lists that would be merged wrongly, and all lists with items that
//! are not constants, are hidden from the optimizer.
//!
//! Positive and negative zero are equal floating-point numbers, but not as list items or as
//! literals in DataFusion's comparison. A list therefore contains both of them, and a literal is
//! compared as the positive one.
//!
//! DataFusion also treats nulls as equal in all conditions of a join that has an
//! `IS NOT DISTINCT FROM` (`null_safe`).

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;
use filbert_functions::lists;
use filbert_functions::named::map_named;

use crate::subqueries::is_same;

/// Keeps lists separate that must not be merged.
#[derive(Debug)]
pub(crate) struct Lists;

impl AnalyzerRule for Lists {
    fn name(&self) -> &str {
        "lists_with_nulls"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let transformed = plan.transform_up_with_subqueries(|plan| {
            let is_condition = matches!(plan, LogicalPlan::Filter(_));
            // Conditions of a join.
            let is_joined = |input: &&LogicalPlan| matches!(input, LogicalPlan::Join(_));
            let joined = match &plan {
                LogicalPlan::Join(_) => Some(merge_schema(&plan.inputs())),
                LogicalPlan::Filter(_) if plan.inputs().iter().any(is_joined) => Some(merge_schema(&plan.inputs())),
                _ => None,
            };
            map_named(plan, |expression| {
                let expression = match &joined {
                    Some(schema) => null_safe(expression, schema)?,
                    None => Transformed::no(expression),
                };
                let expression = expression.transform_data(positive_zeros)?;
                let is_list = |inner: &Expr| Ok(matches!(inner, Expr::InList(_)) || list_of(inner).is_some());
                match expression.data.exists(is_list)? {
                    true => expression.transform_data(|expression| apart(expression, is_condition)),
                    false => Ok(expression),
                }
            })
        })?;
        Ok(transformed.data)
    }
}

/// `a IN (1, b + 1)` becomes `a IN (1) OR a = b + 1`. DataFusion evaluates the list once over no
/// rows. It then takes the value of a `CASE` or `coalesce` over no rows for a constant, and a list
/// of one scalar subquery for all its rows. A list of constants and columns is returned unchanged.
/// If `a` is volatile, all items must be compared with one value of it, so the list remains.
fn compared(list: InList) -> std::result::Result<Expr, InList> {
    let is_plain = |item: &Expr| match uncast(item) {
        Expr::Column(_) => true,
        _ => {
            item.column_refs().is_empty()
                && !item.exists(|inner| Ok(matches!(inner, Expr::ScalarSubquery(_)))).unwrap_or(true)
        }
    };
    if list.list.iter().all(is_plain) {
        return Err(list);
    }
    let InList { expr, list, negated } = list;
    if expr.is_volatile() {
        // It must have one value for all items.
        let of_each_row = |item| if is_plain(&item) { item } else { lists::of_each_row(item) };
        return Err(InList { expr, list: list.into_iter().map(of_each_row).collect(), negated });
    }
    let (plain, computed): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(is_plain);
    let plain = (!plain.is_empty()).then(|| of_unknown_items(InList { expr: expr.clone(), list: plain, negated }));
    Ok(joined(&expr, plain, computed, negated))
}

/// A list with items that are not literals, in a form that the optimizer may see. A short list
/// becomes comparisons, which the optimizer would make of it anyway. So does a list of
/// floating-point numbers, because zero has two signs.
fn of_unknown_items(list: InList) -> Expr {
    /// Equal to `THRESHOLD_INLINE_INLIST` of DataFusion.
    const COMPARED_MAX: usize = 3;
    let InList { expr, list, negated } = list;
    let is_short = list.len() == 1 || list.len() <= COMPARED_MAX && matches!(*expr, Expr::Column(_));
    if !expr.is_volatile() && (is_short || list.iter().any(is_floating)) {
        return joined(&expr, None, list, negated);
    }
    lists::kept(Expr::InList(InList { expr, list, negated }))
}

/// `first OR expr = item OR ..`, or, for a negated list, `first AND expr <> item AND ..`. The tree
/// is balanced, so many items do not make it deep.
fn joined(expr: &Expr, first: Option<Expr>, items: Vec<Expr>, negated: bool) -> Expr {
    let compared = items.into_iter().map(|item| match negated {
        true => expr.clone().not_eq(item),
        false => expr.clone().eq(item),
    });
    let mut terms: Vec<Expr> = first.into_iter().chain(compared).collect();
    while terms.len() > 1 {
        let mut pairs = terms.into_iter();
        terms = Vec::new();
        while let Some(left) = pairs.next() {
            terms.push(match (pairs.next(), negated) {
                (Some(right), true) => left.and(right),
                (Some(right), false) => left.or(right),
                (None, _) => left,
            });
        }
    }
    terms.pop().unwrap_or_else(|| lit(negated))
}

fn is_literal(item: &Expr) -> bool {
    matches!(uncast(item), Expr::Literal(..))
}

/// Whether an item is known to be a floating-point number.
fn is_floating(item: &Expr) -> bool {
    match item {
        Expr::Literal(scalar, _) => scalar.data_type().is_floating(),
        Expr::Cast(cast) => cast.field.data_type().is_floating(),
        Expr::Placeholder(placeholder) => {
            placeholder.field.as_ref().is_some_and(|field| field.data_type().is_floating())
        }
        other => lists::floating(other).is_some(),
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Turns comparisons with -0.0 into comparisons with 0.0.
fn positive_zeros(expression: Expr) -> Result<Transformed<Expr>> {
    let positive =
        |side: &Expr| lists::floating(side).filter(lists::is_negative_zero).and_then(|zero| lists::other_zero(&zero));
    expression.transform_down(|inner| match inner {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let (of_left, of_right) = (positive(&left), positive(&right));
            let changed = of_left.is_some() || of_right.is_some();
            let left = of_left.map_or(left, |zero| Box::new(lit(zero)));
            let right = of_right.map_or(right, |zero| Box::new(lit(zero)));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(BinaryExpr { left, op, right }), changed))
        }
        inner => Ok(Transformed::no(inner)),
    })
}

/// `a IN (1, NULL)` becomes `a IN (1) OR NULL`; as a condition it becomes `a IN (1)`.
fn without_null(list: InList, is_condition: bool) -> Transformed<Expr> {
    let is_null = |item: &Expr| matches!(uncast(item), Expr::Literal(scalar, _) if scalar.is_null());
    if !list.list.iter().any(is_null) {
        return Transformed::no(Expr::InList(list));
    }
    let unknown = lit(ScalarValue::Boolean(None));
    let InList { expr, list, negated } = list;
    let rest: Vec<Expr> = list.into_iter().filter(|item| !is_null(item)).collect();
    if rest.is_empty() {
        return Transformed::yes(unknown);
    }
    let rest = Expr::InList(InList { expr, list: rest, negated });
    Transformed::yes(match (negated, is_condition) {
        (true, _) => rest.and(unknown),
        (false, true) => rest,
        (false, false) => rest.or(unknown),
    })
}

/// `t.a IS NOT DISTINCT FROM u.a` becomes equalities. DataFusion would make a join with equal
/// nulls, also for `t.b = u.b`.
fn null_safe(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expression.transform_down(|inner| match &inner {
        Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }) => Ok(Transformed::no(inner)),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::IsNotDistinctFrom, right }) => {
            match (left.as_ref(), right.as_ref()) {
                (Expr::Column(one), Expr::Column(other)) if one.relation != other.relation => {
                    let (of_one, of_other) = (schema.field_from_column(one)?, schema.field_from_column(other)?);
                    if of_one.data_type() != of_other.data_type() {
                        return Ok(Transformed::new(inner, false, TreeNodeRecursion::Jump));
                    }
                    let field = of_one.as_ref().clone().with_nullable(of_one.is_nullable() || of_other.is_nullable());
                    let same = is_same(Expr::Column(one.clone()), Expr::Column(other.clone()), &field);
                    Ok(Transformed::new(same, true, TreeNodeRecursion::Jump))
                }
                _ => Ok(Transformed::new(inner, false, TreeNodeRecursion::Jump)),
            }
        }
        _ => Ok(Transformed::new(inner, false, TreeNodeRecursion::Jump)),
    })
}

/// The expression that is compared with constants, if an expression is such a list or becomes one.
fn list_of(expression: &Expr) -> Option<(&Expr, bool)> {
    match expression {
        Expr::InList(InList { expr, negated, .. }) => Some((uncast(expr), *negated)),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (uncast(left), uncast(right)) {
            (column @ Expr::Column(_), Expr::Literal(..)) | (Expr::Literal(..), column @ Expr::Column(_)) => {
                Some((column, false))
            }
            _ => None,
        },
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (left, right) = (list_of(left)?, list_of(right)?);
            (left == right && !left.1).then_some(left)
        }
        _ => None,
    }
}

/// An expression without casts, which the optimizer moves to the constants.
fn uncast(expression: &Expr) -> &Expr {
    match expression {
        Expr::Cast(cast) => uncast(&cast.expr),
        other => other,
    }
}

/// Keeps the lists of an expression separate. In a condition, unknown is equivalent to false.
fn apart(expression: Expr, is_condition: bool) -> Result<Transformed<Expr>> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (apart(*left, is_condition)?, apart(*right, is_condition)?);
            let changed = left.transformed || right.transformed;
            let (left, right) = (left.data, right.data);
            let right = match op {
                // The merged list of a conjunction is false where it should be unknown, which
                // matters outside of conditions.
                Operator::And if is_condition => Transformed::no(right),
                Operator::And => without_clashes(right, &left, Operator::And, false),
                // The merged list of two negated lists is true where it should be unknown.
                _ => without_clashes(right, &left, Operator::Or, true),
            };
            let (right, clash) = (right.data, right.transformed);
            let joined = Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) });
            Ok(Transformed::new_transformed(joined, changed || clash))
        }
        Expr::InList(list) => {
            let list = Expr::InList(list).map_children(|child| apart(child, false))?;
            let changed = list.transformed;
            let list = match list.data {
                Expr::InList(list) => match compared(list) {
                    Ok(equalities) => Transformed::yes(equalities),
                    Err(list) if !list.list.iter().all(is_literal) => Transformed::yes(of_unknown_items(list)),
                    Err(list) => without_null(lists::with_both_zeros(list), is_condition),
                },
                other => Transformed::no(other),
            };
            Ok(Transformed::new_transformed(list.data, changed || list.transformed))
        }
        kept if lists::what_is_kept(&kept).is_some() => Ok(Transformed::no(kept)),
        other => other.map_children(|child| apart(child, false)),
    }
}

/// Hides the lists of one side that would be merged with a list over the same expression on the
/// other; `negated` = two negated lists. The other terms of a chain stay visible: some of them are
/// moved to one side of a join, and guard the other terms that are moved there.
fn without_clashes(side: Expr, other: &Expr, op: Operator, negated: bool) -> Transformed<Expr> {
    let mut lists = Vec::new();
    terms(other, op, &mut lists);
    lists.retain(|list| !negated || list.1);
    if lists.is_empty() { Transformed::no(side) } else { hidden(side, &lists, op, negated) }
}

fn hidden(side: Expr, others: &[(&Expr, bool)], op: Operator, negated: bool) -> Transformed<Expr> {
    match side {
        Expr::BinaryExpr(BinaryExpr { left, op: own, right }) if own == op => {
            let (left, right) = (hidden(*left, others, op, negated), hidden(*right, others, op, negated));
            let changed = left.transformed || right.transformed;
            Transformed::new_transformed(binary_expr(left.data, op, right.data), changed)
        }
        term => {
            let list = list_of(&term).filter(|list| !negated || list.1);
            let clashes = list.is_some_and(|(of, _)| others.iter().any(|(other, _)| of == *other));
            if clashes { Transformed::yes(lists::kept(term)) } else { Transformed::no(term) }
        }
    }
}

fn terms<'e>(expression: &'e Expr, op: Operator, found: &mut Vec<(&'e Expr, bool)>) {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op: own, right }) if *own == op => {
            terms(left, op, found);
            terms(right, op, found);
        }
        other => found.extend(list_of(other)),
    }
}
