//! Names of SELECT columns without an alias.

use std::collections::HashSet;

use filbert_grid::query::Dialect;
use sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Ident, ObjectName, SelectItem, SetExpr,
    TrimWhereField,
};

use crate::names::REPEATED;

/// PostgreSQL's name for an expression without a natural name.
const NO_NAME: &str = "?column?";

/// Names the expressions of a SELECT list. `outermost` marks the list of the result: no other query
/// uses its names.
pub(super) fn name(items: &mut [SelectItem], of: Dialect, outermost: bool) {
    let mut names = HashSet::with_capacity(items.len());
    let mut count = 0_usize;
    for item in items {
        let (expression, given) = match &*item {
            SelectItem::ExprWithAlias { alias, .. } => {
                names.insert(alias.value.clone());
                count += 1;
                continue;
            }
            SelectItem::UnnamedExpr(expression @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) => {
                // A column has its name; `current_schema` and similar functions only look like
                // columns.
                match expression {
                    Expr::Identifier(name) if super::WITHOUT_BRACKETS.contains(&name.value.as_str()) => {
                        (expression, name.value.clone())
                    }
                    Expr::Identifier(name) => {
                        names.insert(name.value.clone());
                        count += 1;
                        continue;
                    }
                    _ => continue,
                }
            }
            SelectItem::UnnamedExpr(expression) => (expression, given_name(expression, of)),
            _ => continue,
        };
        // Names are unique within a plan. The mark is removed where results are described. An
        // expression over a column `t.c` may have the same name `c`, but ORDER BY may still refer
        // to the column.
        let hides = outermost && is_of_qualified(expression);
        let unique = match hides || names.contains(&given) {
            true => format!("{given}{REPEATED}{count}"),
            false => given.clone(),
        };
        names.insert(given);
        count += 1;
        *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias: Ident::with_quote('"', unique) };
    }
}

/// Names the expressions of `RETURNING`, which no query refers to.
pub(crate) fn name_returned(items: &mut [SelectItem], of: Dialect) {
    for item in items {
        if let SelectItem::UnnamedExpr(expression) = item {
            let alias = Ident::with_quote('"', given_name(expression, of));
            *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
        }
    }
}

fn given_name(expression: &Expr, of: Dialect) -> String {
    match of {
        Dialect::Crate if !matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => {
            expression.to_string()
        }
        _ => postgres_name(expression).unwrap_or_else(|| NO_NAME.to_owned()),
    }
}

/// Whether an expression is a column `t.c` within casts and parentheses.
fn is_of_qualified(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } | Expr::Collate { expr: inner, .. } => {
            is_of_qualified(inner)
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            let is_qualifier = matches!(root.as_ref(), Expr::Identifier(_));
            is_of_qualified(root) || is_qualifier && matches!(access_chain.first(), Some(AccessExpr::Dot(_)))
        }
        Expr::CompoundIdentifier(_) => true,
        _ => false,
    }
}

fn last_part(name: &ObjectName) -> Option<String> {
    Some(name.0.last()?.as_ident()?.value.to_ascii_lowercase())
}

/// The name that PostgreSQL gives an expression in `FigureColname`.
fn postgres_name(expression: &Expr) -> Option<String> {
    Some(match suggestion(expression)? {
        Suggestion::Own(name) | Suggestion::Weak(name) => name,
    })
}

/// A natural name of an expression.
enum Suggestion {
    /// The name of a computed expression; a cast keeps it.
    Own(String),
    /// The name of a cast or of `CASE`; an outer cast replaces it.
    Weak(String),
}

fn suggestion(expression: &Expr) -> Option<Suggestion> {
    let own = |name: &str| Some(Suggestion::Own(name.to_owned()));
    let weak = |name: String| Some(Suggestion::Weak(name));
    match expression {
        Expr::Identifier(name) => own(&name.value),
        Expr::CompoundIdentifier(parts) => own(&parts.last()?.value),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => suggestion(inner),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => own(&name.value),
                _ => None,
            });
            field.or_else(|| suggestion(root))
        }
        Expr::Cast { expr, data_type, .. } => match suggestion(expr) {
            Some(Suggestion::Own(name)) => own(&name),
            _ => weak(type_name(data_type)),
        },
        Expr::TypedString(typed) => weak(type_name(&typed.data_type)),
        Expr::Interval(_) => weak("interval".to_owned()),
        Expr::Function(function) => last_part(&function.name).map(Suggestion::Own),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(suggestion) {
            Some(Suggestion::Own(name)) => own(&name),
            _ => weak("case".to_owned()),
        },
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first()? {
                SelectItem::ExprWithAlias { alias, .. } => own(&alias.value),
                SelectItem::UnnamedExpr(expression) => {
                    Some(Suggestion::Own(postgres_name(expression).unwrap_or_else(|| NO_NAME.to_owned())))
                }
                _ => None,
            },
            SetExpr::Values(_) => own("column1"),
            _ => None,
        },
        Expr::Exists { negated: false, .. } => own("exists"),
        Expr::Array(_) => own("array"),
        Expr::Extract { .. } => own("extract"),
        Expr::Substring { shorthand: true, .. } => own("substr"),
        Expr::Substring { .. } => own("substring"),
        Expr::Position { .. } => own("position"),
        Expr::BinaryOp { op: BinaryOperator::Overlaps, .. } => own("overlaps"),
        Expr::Overlay { .. } => own("overlay"),
        Expr::Trim { trim_where: Some(TrimWhereField::Leading), .. } => own("ltrim"),
        Expr::Trim { trim_where: Some(TrimWhereField::Trailing), .. } => own("rtrim"),
        Expr::Trim { .. } => own("btrim"),
        Expr::Ceil { .. } => own("ceil"),
        Expr::Floor { .. } => own("floor"),
        Expr::AtTimeZone { .. } => own("timezone"),
        Expr::Tuple(_) => own("row"),
        _ => None,
    }
}

/// A type's name in `pg_type`.
fn type_name(data_type: &DataType) -> String {
    let fixed = match data_type {
        DataType::Boolean | DataType::Bool => "bool",
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 | DataType::Float(_) => "float8",
        DataType::Decimal(_) | DataType::Numeric(_) | DataType::Dec(_) => "numeric",
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => "varchar",
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Timestamp(_, zone) => match zone.to_string().contains("WITH TIME ZONE") || zone.to_string() == "TZ" {
            true => "timestamptz",
            false => "timestamp",
        },
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::Parenthesis(item)) => {
            return type_name(item);
        }
        DataType::Interval { .. } => "interval",
        DataType::Time(_, zone) if zone.to_string().contains("WITH TIME ZONE") => "timetz",
        DataType::Time(..) => "time",
        DataType::Custom(name, _) => return last_part(name).unwrap_or_default(),
        other => return other.to_string().to_ascii_lowercase(),
    };
    fixed.to_owned()
}
