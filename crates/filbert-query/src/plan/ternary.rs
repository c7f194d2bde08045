//! Lists within lists: `a IN (1) AND a IN (3)`, `a IN (1, 2) AND a NOT IN (1, NULL)`.
//!
//! DataFusion makes one list of two about the same expression, and forgets that a null makes the result unknown: it takes the first
//! for false where `a` is null (and its negation for true), the second for `a IN (2)`. So nulls are taken out of
//! lists, and lists that it would join wrongly are kept apart by a function that it does not look into.
//!
//! It also takes nulls for equal in all conditions of a join that has an `IS NOT DISTINCT FROM` (`null_safe`).

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};
use datafusion::optimizer::AnalyzerRule;

use crate::named::map_named;
use crate::subqueries::is_same;

/// Keeps lists apart that are not to become one.
#[derive(Debug)]
pub(crate) struct Lists;

impl AnalyzerRule for Lists {
    fn name(&self) -> &str {
        "lists_with_nulls"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let transformed = plan.transform_up_with_subqueries(|plan| {
            let is_condition = matches!(plan, LogicalPlan::Filter(_));
            // Conditions that a join is made of.
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

/// `a IN (1, b + 1)` as `a IN (1) OR a = b + 1`: DataFusion computes the list once over no rows, and takes what a `CASE` or `coalesce`
/// gives for none for a constant, and a list of one scalar subquery for all rows of it. A list of constants and columns comes back as
/// it is.
fn compared(list: InList) -> std::result::Result<Expr, InList> {
    let is_plain = |item: &Expr| match uncast(item) {
        Expr::Column(_) => true,
        _ => {
            item.column_refs().is_empty()
                && !item.exists(|inner| Ok(matches!(inner, Expr::ScalarSubquery(_)))).unwrap_or(true)
        }
    };
    if list.list.iter().all(is_plain) || list.expr.is_volatile() {
        return Err(list);
    }
    let InList { expr, list, negated } = list;
    let (plain, computed): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(is_plain);
    let plain = (!plain.is_empty()).then(|| Expr::InList(InList { expr: expr.clone(), list: plain, negated }));
    let computed = computed.into_iter().map(|item| match negated {
        true => (*expr).clone().not_eq(item),
        false => (*expr).clone().eq(item),
    });
    let terms = plain.into_iter().chain(computed);
    let joined = match negated {
        true => terms.reduce(Expr::and),
        false => terms.reduce(Expr::or),
    };
    Ok(joined.unwrap_or_else(|| lit(negated)))
}

/// `a IN (1, NULL)` as `a IN (1) OR NULL`; as a condition, as `a IN (1)`.
fn without_null(list: InList, is_condition: bool) -> Transformed<Expr> {
    let is_null = |item: &Expr| matches!(item, Expr::Literal(scalar, _) if scalar.is_null());
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

/// `t.a IS NOT DISTINCT FROM u.a` as equalities: DataFusion makes a join of it in which nulls are equal, also for `t.b = u.b`.
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

/// What an expression compares with constants, if it is such a list or becomes one.
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

/// Keeps the lists of an expression apart; in a condition, unknown is as good as false.
fn apart(expression: Expr, is_condition: bool) -> Result<Transformed<Expr>> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (apart(*left, is_condition)?, apart(*right, is_condition)?);
            let changed = left.transformed || right.transformed;
            let (left, right) = (left.data, right.data);
            let clash = match op {
                // Of a condition, the join of two lists is false where it should be unknown.
                Operator::And => !is_condition && clashes(&left, &right, Operator::And, false),
                // The join of two negated lists is true where it should be unknown.
                _ => clashes(&left, &right, Operator::Or, true),
            };
            let right = if clash { KEPT.call(vec![right]) } else { right };
            let joined = Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) });
            Ok(Transformed::new_transformed(joined, changed || clash))
        }
        Expr::InList(list) => {
            let list = Expr::InList(list).map_children(|child| apart(child, false))?;
            let changed = list.transformed;
            let list = match list.data {
                Expr::InList(list) => match compared(list) {
                    Ok(equalities) => Transformed::yes(equalities),
                    Err(list) => without_null(list, is_condition),
                },
                other => Transformed::no(other),
            };
            Ok(Transformed::new_transformed(list.data, changed || list.transformed))
        }
        other => other.map_children(|child| apart(child, false)),
    }
}

/// Whether a list on one side meets a list about the same expression on the other; `negated` = two negated ones.
fn clashes(left: &Expr, right: &Expr, op: Operator, negated: bool) -> bool {
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    terms(left, op, &mut lefts);
    terms(right, op, &mut rights);
    let matters = |list: &&(&Expr, bool)| !negated || list.1;
    lefts.iter().filter(matters).any(|(of, _)| rights.iter().filter(matters).any(|(other, _)| of == other))
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

static KEPT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::uniform(1, vec![DataType::Boolean], Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Kept { signature }))
});

/// A condition that the optimizer does not look into.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kept {
    signature: Signature,
}

impl ScalarUDFImpl for Kept {
    fn name(&self) -> &str {
        "kept"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(condition) => Ok(condition),
            None => internal_err!("a condition is kept"),
        }
    }
}
