//! Resolves expressions over untyped fields: the other operands determine the type of a field.
//!
//! | expression | becomes |
//! |---|---|
//! | `f = 5`, `f > x` | a comparison of values; by `=` with a column, in the column's type |
//! | `f = g`, `ORDER BY f` | keys, which sort like the values |
//! | `f + 1` | a number, which is untyped again |
//! | `f LIKE 'x%'`, `f \|\| 'x'`, `lower(f)` | the field as text |
//! | `f IN (1, 2)`, `f IN (SELECT ..)`, `coalesce(f, 0)` | the field in the type of the others |
//! | `NOT f`, `CASE WHEN f`, `f AND ..` | the field as a boolean |
//! | `CAST(f AS t)` | the field as `t`, or an error |
//! | `min(f)`, `sum(f)` | aggregates of fields |

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, InList, InSubquery, Like};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlanBuilder, Operator, lit};
use filbert_data::FieldType;

use super::function::What;
use super::totals;
use crate::types::{field_type_of_arrow, is_untyped};

/// The maximum number of `IN` items that are compared one by one in any type.
const COMPARED_MAX: usize = 32;

fn field_of(expr: &Expr, schema: &DFSchema) -> Option<FieldRef> {
    expr.to_field(schema).ok().map(|(_, field)| field)
}

/// Whether an expression is an untyped field.
pub(super) fn untyped(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        // A cast keeps the mark of its operand, but its result is typed.
        Expr::Cast(_) | Expr::TryCast(_) => false,
        // Conditions are many and deep. The result of a DataFusion operator is never untyped.
        Expr::BinaryExpr(_) | Expr::Not(_) | Expr::InList(_) | Expr::Between(_) | Expr::Like(_) => false,
        Expr::Alias(alias) => untyped(&alias.expr, schema),
        Expr::Literal(_, metadata) => metadata.as_ref().is_some_and(|metadata| {
            is_untyped(&Field::new("", DataType::Utf8View, true).with_metadata(metadata.to_hashmap()))
        }),
        expr => field_of(expr, schema).is_some_and(|field| is_untyped(&field)),
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8)
}

pub(super) fn read(expr: Expr, to: FieldType) -> Expr {
    What::Read { to, strict: false }.call(vec![expr])
}

fn as_text(expr: Expr) -> Expr {
    read(expr, FieldType::Varchar)
}

fn as_truth(expr: Expr) -> Expr {
    read(expr, FieldType::Boolean)
}

/// A field in the type that it is compared with.
pub(super) fn as_type(expr: Expr, data_type: &DataType) -> Expr {
    let to = match data_type {
        whole if whole.is_integer() => FieldType::Decimal(None),
        decimal if decimal.is_decimal() => FieldType::Decimal(None),
        other => match field_type_of_arrow(other) {
            FieldType::Real => FieldType::Double,
            FieldType::Object | FieldType::Binary => FieldType::Varchar,
            other => other,
        },
    };
    read(expr, to)
}

/// Converts untyped fields to text; other expressions are unchanged.
fn texts(expr: Expr, schema: &DFSchema) -> Expr {
    if untyped(&expr, schema) { as_text(expr) } else { expr }
}

fn truths(expr: Expr, schema: &DFSchema) -> Expr {
    if untyped(&expr, schema) { as_truth(expr) } else { expr }
}

fn operation(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
}

/// An operator with an untyped operand; `None` if no operand is untyped.
pub(crate) fn binary(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let both = [untyped(left, schema), untyped(right, schema)];
    if both == [false, false] {
        return None;
    }
    let (left, right) = (left.clone(), right.clone());
    Some(match op {
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo => {
            computed(left, op, right, both, schema)
        }
        Operator::And | Operator::Or => operation(truths(left, schema), op, truths(right, schema)),
        Operator::Eq
        | Operator::NotEq
        | Operator::Lt
        | Operator::LtEq
        | Operator::Gt
        | Operator::GtEq
        | Operator::IsDistinctFrom
        | Operator::IsNotDistinctFrom => compared(left, op, right, both, schema),
        Operator::StringConcat
        | Operator::RegexMatch
        | Operator::RegexIMatch
        | Operator::RegexNotMatch
        | Operator::RegexNotIMatch
        | Operator::LikeMatch
        | Operator::ILikeMatch
        | Operator::NotLikeMatch
        | Operator::NotILikeMatch => operation(texts(left, schema), op, texts(right, schema)),
        _ => return None,
    })
}

fn compared(left: Expr, op: Operator, right: Expr, both: [bool; 2], schema: &DFSchema) -> Expr {
    let same = matches!(op, Operator::Eq | Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom);
    if both == [true, true] && same {
        let key = |expr| What::Key.call(vec![expr]);
        return operation(key(left), op, key(right));
    }
    let typed = if both == [true, false] { &right } else { &left };
    let of_typed = field_of(typed, schema).map(|field| field.data_type().clone());
    // A join key must be an equality of two typed values.
    let is_key = op == Operator::Eq && !typed.column_refs().is_empty();
    let is_distinct = matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom);
    match of_typed.filter(|data_type| !data_type.is_null() && both != [true, true] && (is_key || is_distinct)) {
        Some(data_type) if both == [true, false] => operation(as_type(left, &data_type), op, right),
        Some(data_type) => operation(left, op, as_type(right, &data_type)),
        None if is_distinct => operation(as_text_of(left, both, 0), op, as_text_of(right, both, 1)),
        None => What::Compare(op, both).call(vec![left, right]),
    }
}

fn as_text_of(expr: Expr, both: [bool; 2], side: usize) -> Expr {
    if both.get(side) == Some(&true) { as_text(expr) } else { expr }
}

fn computed(left: Expr, op: Operator, right: Expr, both: [bool; 2], schema: &DFSchema) -> Expr {
    let typed = if both == [true, false] { &right } else { &left };
    let timestamp = DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, Some("UTC".into()));
    let other = field_of(typed, schema).filter(|_| both != [true, true]);
    let of_field = other.and_then(|field| match field.data_type() {
        DataType::Interval(_) | DataType::Duration(_) => Some(timestamp),
        temporal if temporal.is_temporal() => Some(temporal.clone()),
        _ => None,
    });
    match of_field {
        Some(data_type) if both == [true, false] => operation(as_type(left, &data_type), op, right),
        Some(data_type) => operation(left, op, as_type(right, &data_type)),
        None => What::Compute(op, both).call(vec![left, right]),
    }
}

fn comparison(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Expr {
    binary(left, op, right, schema).unwrap_or_else(|| operation(left.clone(), op, right.clone()))
}

/// Resolves an expression with resolved operands.
pub(crate) fn resolve(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(operation) => match binary(&operation.left, operation.op, &operation.right, schema) {
            Some(resolved) => Transformed::yes(resolved),
            None => Transformed::no(Expr::BinaryExpr(operation)),
        },
        Expr::Like(like) => match like_of_texts(like, schema) {
            Ok(like) => Transformed::yes(Expr::Like(like)),
            Err(like) => Transformed::no(Expr::Like(like)),
        },
        Expr::SimilarTo(like) => match like_of_texts(like, schema) {
            Ok(like) => Transformed::yes(Expr::SimilarTo(like)),
            Err(like) => Transformed::no(Expr::SimilarTo(like)),
        },
        Expr::Between(between) => between_of(between, schema),
        Expr::InList(list) => in_list(list, schema),
        Expr::InSubquery(within) => in_subquery(within, schema)?,
        Expr::Case(case) => case_of(case, schema),
        Expr::Negative(inner) if untyped(&inner, schema) => {
            Transformed::yes(What::Compute(Operator::Minus, [false, true]).call(vec![lit(0_i64), *inner]))
        }
        Expr::Not(inner) if untyped(&inner, schema) => Transformed::yes(Expr::Not(Box::new(as_truth(*inner)))),
        Expr::IsTrue(inner) if untyped(&inner, schema) => Transformed::yes(Expr::IsTrue(Box::new(as_truth(*inner)))),
        Expr::IsFalse(inner) if untyped(&inner, schema) => Transformed::yes(Expr::IsFalse(Box::new(as_truth(*inner)))),
        Expr::IsNotTrue(inner) if untyped(&inner, schema) => {
            Transformed::yes(Expr::IsNotTrue(Box::new(as_truth(*inner))))
        }
        Expr::IsNotFalse(inner) if untyped(&inner, schema) => {
            Transformed::yes(Expr::IsNotFalse(Box::new(as_truth(*inner))))
        }
        Expr::Cast(cast) if untyped(&cast.expr, schema) => {
            Transformed::yes(cast_to(*cast.expr, cast.field.data_type(), true))
        }
        Expr::TryCast(cast) if untyped(&cast.expr, schema) => {
            Transformed::yes(cast_to(*cast.expr, cast.field.data_type(), false))
        }
        Expr::ScalarFunction(call) => {
            let expr = Expr::ScalarFunction(call);
            let Expr::ScalarFunction(call) = &expr else { return Ok(Transformed::no(expr)) };
            match arguments(call.func.name(), &call.args, schema) {
                Some(arguments) => {
                    let Expr::ScalarFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
                    let all = call.args.iter().all(|argument| untyped(argument, schema) || is_null(argument, schema));
                    let is_one = is_choice(call.func.name()) && all;
                    call.args = arguments;
                    let expr = Expr::ScalarFunction(call);
                    Transformed::yes(if is_one { What::Mark.call(vec![expr]) } else { expr })
                }
                None => Transformed::no(expr),
            }
        }
        Expr::AggregateFunction(_) | Expr::WindowFunction(_) => totals::resolve(expr, schema),
        other => Transformed::no(other),
    })
}

fn is_null(expr: &Expr, schema: &DFSchema) -> bool {
    field_of(expr, schema).is_some_and(|field| field.data_type().is_null())
}

/// Converts fields to text; returns the expression as `Err` if nothing changes.
fn like_of_texts(like: Like, schema: &DFSchema) -> std::result::Result<Like, Like> {
    if !untyped(&like.expr, schema) && !untyped(&like.pattern, schema) {
        return Err(like);
    }
    let (expr, pattern) = (Box::new(texts(*like.expr, schema)), Box::new(texts(*like.pattern, schema)));
    Ok(Like { expr, pattern, ..like })
}

fn between_of(between: Between, schema: &DFSchema) -> Transformed<Expr> {
    let Between { expr, low, high, negated } = &between;
    if ![expr, low, high].into_iter().any(|part| untyped(part, schema)) {
        return Transformed::no(Expr::Between(between));
    }
    let low = comparison(expr, Operator::GtEq, low, schema);
    let high = comparison(expr, Operator::LtEq, high, schema);
    let both = operation(low, Operator::And, high);
    Transformed::yes(if *negated { Expr::Not(Box::new(both)) } else { both })
}

fn in_list(list: InList, schema: &DFSchema) -> Transformed<Expr> {
    let InList { expr, list: items, negated } = &list;
    if !untyped(expr, schema) && !items.iter().any(|item| untyped(item, schema)) {
        return Transformed::no(Expr::InList(list));
    }
    let types: Vec<DataType> = items
        .iter()
        .map(|item| field_of(item, schema).map_or(DataType::Null, |field| field.data_type().clone()))
        .collect();
    let typed = |is: fn(&DataType) -> bool| untyped(expr, schema) && types.iter().all(is);
    let read_as = if typed(DataType::is_numeric) {
        let of_double = types.iter().any(DataType::is_floating);
        Some(if of_double { DataType::Float64 } else { DataType::Int64 })
    } else if items.len() > COMPARED_MAX && typed(is_text) {
        Some(DataType::Utf8View)
    } else {
        None
    };
    if let Some(data_type) = read_as {
        let expr = Box::new(as_type((**expr).clone(), &data_type));
        return Transformed::yes(Expr::InList(InList { expr, list: items.clone(), negated: *negated }));
    }
    let one_of = any_of(items.iter().map(|item| comparison(expr, Operator::Eq, item, schema)).collect());
    let one_of = one_of.unwrap_or_else(|| lit(false));
    Transformed::yes(if *negated { Expr::Not(Box::new(one_of)) } else { one_of })
}

/// A disjunction of conditions, as a balanced tree.
fn any_of(mut conditions: Vec<Expr>) -> Option<Expr> {
    if conditions.len() < 2 {
        return conditions.pop();
    }
    let right = conditions.split_off(conditions.len().div_ceil(2));
    Some(operation(any_of(conditions)?, Operator::Or, any_of(right)?))
}

fn in_subquery(within: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some(found) = within.subquery.subquery.schema().fields().first().cloned() else {
        return Ok(Transformed::no(Expr::InSubquery(within)));
    };
    let (outer, inner) = (untyped(&within.expr, schema), is_untyped(&found));
    if !outer && !inner {
        return Ok(Transformed::no(Expr::InSubquery(within)));
    }
    let mut within = within;
    if inner {
        let columns = within.subquery.subquery.schema().columns();
        let Some(column) = columns.into_iter().next().map(Expr::Column) else {
            return Ok(Transformed::no(Expr::InSubquery(within)));
        };
        let read = match field_of(&within.expr, schema).filter(|_| !outer) {
            Some(field) => as_type(column, field.data_type()),
            None => What::Key.call(vec![column]),
        };
        let plan = LogicalPlanBuilder::from(Arc::clone(&within.subquery.subquery)).project([read])?.build()?;
        within.subquery = within.subquery.with_plan(Arc::new(plan));
    }
    if outer {
        let expr = *within.expr;
        within.expr = Box::new(if inner { What::Key.call(vec![expr]) } else { as_type(expr, found.data_type()) });
    }
    Ok(Transformed::yes(Expr::InSubquery(within)))
}

fn case_of(case: Case, schema: &DFSchema) -> Transformed<Expr> {
    let Case { expr: operand, when_then_expr, else_expr } = &case;
    let mut changed = false;
    let mut pairs = Vec::with_capacity(when_then_expr.len());
    let by_field = operand.as_deref().is_some_and(|operand| untyped(operand, schema))
        || operand.is_some() && when_then_expr.iter().any(|(when, _)| untyped(when, schema));
    for (when, then) in when_then_expr {
        let when = match operand.as_deref() {
            Some(operand) if by_field => comparison(operand, Operator::Eq, when, schema),
            None if untyped(when, schema) => as_truth((**when).clone()),
            _ => {
                pairs.push((when.clone(), then.clone()));
                continue;
            }
        };
        changed = true;
        pairs.push((Box::new(when), then.clone()));
    }
    let operand = if by_field { None } else { operand.clone() };
    let results = || pairs.iter().map(|(_, then)| then.as_ref()).chain(else_expr.as_deref());
    let has_fields = results().any(|result| untyped(result, schema));
    let typed = results().find(|result| !untyped(result, schema) && !is_null(result, schema)).cloned();
    if !changed && !has_fields {
        return Transformed::no(Expr::Case(case));
    }
    let data_type = typed.as_ref().and_then(|typed| field_of(typed, schema)).map(|field| field.data_type().clone());
    let mut else_expr = else_expr.clone();
    if let Some(data_type) = data_type.filter(|_| has_fields) {
        let read = |result: &mut Box<Expr>| {
            if untyped(result, schema) {
                **result = as_type(std::mem::replace(result, Expr::Literal(ScalarValue::Null, None)), &data_type);
            }
        };
        pairs.iter_mut().map(|(_, then)| then).chain(else_expr.as_mut()).for_each(read);
    }
    let made = Expr::Case(Case { expr: operand, when_then_expr: pairs, else_expr });
    Transformed::yes(if has_fields && typed.is_none() { What::Mark.call(vec![made]) } else { made })
}

/// A field as a value of a type. A value that does not fit is an error if `strict`.
fn cast_to(expr: Expr, data_type: &DataType, strict: bool) -> Expr {
    let to = field_type_of_arrow(data_type);
    let target = filbert_grid::query::arrow_type(&to);
    let read = What::Read { to, strict }.call(vec![expr]);
    if target == *data_type { read } else { datafusion::logical_expr::cast(read, data_type.clone()) }
}

/// Functions that return one of their arguments.
fn is_choice(name: &str) -> bool {
    matches!(name, "coalesce" | "nvl" | "ifnull" | "nullif" | "greatest" | "least")
}

/// The arguments in the types that a function needs; `None` = unchanged.
fn arguments(name: &str, arguments: &[Expr], schema: &DFSchema) -> Option<Vec<Expr>> {
    let takes_documents = ["json", "object", "to_json", "cast_json", "cast_object", "row_to_json"];
    if takes_documents.iter().any(|takes| name.starts_with(takes)) {
        return None;
    }
    let is_field: Vec<bool> = arguments.iter().map(|argument| untyped(argument, schema)).collect();
    if !is_field.contains(&true) {
        return None;
    }
    let typed = arguments.iter().zip(&is_field).find(|(argument, is_field)| !**is_field && !is_null(argument, schema));
    let data_type = typed.and_then(|(typed, _)| Some(field_of(typed, schema)?.data_type().clone()));
    let read = |(argument, is_field): (&Expr, &bool)| match (is_field, &data_type) {
        (false, _) => argument.clone(),
        (true, Some(data_type)) if is_choice(name) => as_type(argument.clone(), data_type),
        (true, None) if is_choice(name) => argument.clone(),
        (true, _) => as_text(argument.clone()),
    };
    Some(arguments.iter().zip(&is_field).map(read).collect())
}

/// Resolves a whole expression.
pub(super) fn resolve_all(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| resolve(expr, schema))
}
