//! Comparisons of fixed-length texts with lists and rows. Trailing blanks of such a text do not
//! count; nor do those of a literal or a `varchar` beside it, which become fixed-length texts.

use std::sync::Arc;

use datafusion::common::{DFSchema, Result};
use datafusion::functions::string;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, Subquery};

use super::marked::untold;
use super::operators::{Kind, beside_char, kind, kind_of};
use crate::types::{VARCHAR, pg_type_of};

/// A list in which no insignificant blank is compared; `None` if the expression stays unchanged.
pub(super) fn in_list(searched: &InList, schema: &DFSchema) -> Option<Expr> {
    let InList { expr, list, negated } = searched;
    let joined = |expr: Expr, list: Vec<Expr>| Expr::InList(InList { expr: Box::new(expr), list, negated: *negated });
    let own = kind(expr, schema);
    if own == Kind::Char {
        let trimmed = |item: &Expr| (kind(item, schema) == Kind::Text).then(|| beside_char(item, schema)).flatten();
        let trimmed: Vec<Option<Expr>> = list.iter().map(trimmed).collect();
        if trimmed.iter().all(Option::is_none) {
            return None;
        }
        let list = trimmed.into_iter().zip(list).map(|(trimmed, item)| trimmed.unwrap_or_else(|| item.clone()));
        return Some(joined(expr.as_ref().clone(), list.collect()));
    }
    let is_char = |item: &Expr| !matches!(item, Expr::Literal(..)) && kind(item, schema) == Kind::Char;
    if own != Kind::Text || !list.iter().any(is_char) {
        return None;
    }
    let trimmed = beside_char(expr, schema)?;
    // Several constants become an array, and its elements have the type of the searched value.
    let is_constant = |item: &Expr| !item.any_column_refs();
    let is_array =
        !matches!(expr.as_ref(), Expr::Literal(..)) && list.iter().filter(|item| is_constant(item)).count() > 1;
    let (fixed, others): (Vec<Expr>, Vec<Expr>) =
        list.iter().cloned().partition(|item| is_char(item) && !(is_array && is_constant(item)));
    Some(match (fixed.is_empty(), others.is_empty()) {
        (true, _) => return None,
        (false, true) => joined(trimmed, fixed),
        (false, false) => {
            let (fixed, others) = (joined(trimmed, fixed), joined(expr.as_ref().clone(), others));
            if *negated { fixed.and(others) } else { fixed.or(others) }
        }
    })
}

/// Removes insignificant blanks from a value that is compared with the rows of a subquery, or from
/// the rows; returns whether there may have been any.
///
/// # Errors
/// The rows have no plan.
pub(super) fn trim_beside_rows(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let rows = &subquery.subquery;
    let [field] = rows.schema().fields().as_ref() else { return Ok(false) };
    match (kind(expr, schema), kind_of(field)) {
        (Kind::Text, Kind::Char) => {
            let trimmed = beside_char(expr, schema);
            let is_changed = trimmed.is_some();
            trimmed.into_iter().for_each(|trimmed| *expr = trimmed);
            Ok(is_changed)
        }
        (Kind::Char, Kind::Text) if pg_type_of(field) == Some(VARCHAR) => {
            let items = rows.schema().columns().into_iter().map(|column| {
                let (relation, name) = (column.relation.clone(), column.name.clone());
                string::rtrim().call(vec![Expr::Column(column)]).alias_qualified(relation, name)
            });
            let items: Vec<Expr> = items.collect();
            let plan = LogicalPlanBuilder::from(Arc::clone(rows)).project(items)?.build()?;
            *subquery = subquery.with_plan(Arc::new(plan));
            Ok(true)
        }
        _ => Ok(untell(std::iter::once(expr))),
    }
}

/// Removes types that comparisons do not need; returns whether there were any.
pub(super) fn untell<'e>(operands: impl Iterator<Item = &'e mut Expr>) -> bool {
    let mut is_changed = false;
    for operand in operands {
        if let Some(inner) = untold(operand) {
            *operand = inner;
            is_changed = true;
        }
    }
    is_changed
}
