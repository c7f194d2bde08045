//! Queries about kinds of types that do not exist here: composite types, domains, enumerations and
//! ranges.
//!
//! asyncpg looks up the base types of domains by a recursive query that refers to the outer row,
//! which DataFusion does not plan.

use sqlparser::ast::{BinaryOperator, Expr, ObjectName, Select, SelectItem, TableFactor, Value, ValueWithSpan};

/// The values of `pg_type.typtype` that no row has.
const ABSENT: [&str; 5] = ["c", "d", "e", "m", "r"];

/// Removes recursive queries about such kinds from `CASE` expressions of a SELECT list.
pub(super) fn prune(select: &mut Select) {
    let factors = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let types: Vec<String> = factors.filter_map(name_of_types).collect();
    if types.is_empty() {
        return;
    }
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) = item else {
            continue;
        };
        let mut inner = &mut *expression;
        while let Expr::Nested(nested) = inner {
            inner = nested;
        }
        let Expr::Case { operand: None, conditions, else_result, .. } = inner else { continue };
        conditions.retain(|when| !(is_recursive(&when.result) && asks_for_absent(&when.condition, &types)));
        if conditions.is_empty() {
            *expression = else_result.take().map_or_else(|| Expr::value(Value::Null), |otherwise| *otherwise);
        }
    }
}

/// The alias of `pg_type` in a query, if the relation is `pg_type`.
fn name_of_types(factor: &TableFactor) -> Option<String> {
    let TableFactor::Table { name: ObjectName(parts), alias, args: None, .. } = factor else { return None };
    let parts: Option<Vec<&str>> = parts.iter().map(|part| Some(part.as_ident()?.value.as_str())).collect();
    if !matches!(parts?.as_slice(), ["pg_type"] | ["pg_catalog", "pg_type"]) {
        return None;
    }
    Some(alias.as_ref().map_or_else(|| "pg_type".to_owned(), |alias| alias.name.value.clone()))
}

fn is_recursive(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_recursive(inner),
        Expr::Subquery(query) => query.with.as_ref().is_some_and(|with| with.recursive),
        _ => false,
    }
}

fn asks_for_absent(condition: &Expr, types: &[String]) -> bool {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return false };
    let (Expr::CompoundIdentifier(column), Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(kind), .. })) =
        (left.as_ref(), right.as_ref())
    else {
        return false;
    };
    match column.as_slice() {
        [table, column] => types.contains(&table.value) && column.value == "typtype" && ABSENT.contains(&kind.as_str()),
        _ => false,
    }
}
