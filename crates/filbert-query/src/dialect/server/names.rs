//! The names of columns that a SELECT list gives none.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, DataType, Expr, Ident, ObjectName, SelectItem, SetExpr, Value, ValueWithSpan,
};
use filbert_grid::query::Dialect;

use crate::plan::columns::REPEATED;

/// PostgreSQL's name for an expression that suggests none.
const NO_NAME: &str = "?column?";

/// Names the expressions of a SELECT list; `outermost` is that of the result, whose names no other query refers to.
pub(super) fn name(items: &mut [SelectItem], of: Dialect, outermost: bool) {
    let mut names: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let (expression, given) = match &*item {
            SelectItem::ExprWithAlias { alias, .. } => {
                names.push(alias.value.clone());
                continue;
            }
            SelectItem::UnnamedExpr(expression @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) => {
                // A column has its name; `current_schema` and the like only look as if they were one.
                match expression {
                    Expr::Identifier(name) if super::WITHOUT_BRACKETS.contains(&name.value.as_str()) => {
                        (expression, name.value.clone())
                    }
                    Expr::Identifier(name) => {
                        names.push(name.value.clone());
                        continue;
                    }
                    _ => continue,
                }
            }
            SelectItem::UnnamedExpr(expression) => {
                let given = match of {
                    Dialect::Crate => expression.to_string(),
                    _ => postgres_name(expression).unwrap_or_else(|| NO_NAME.to_owned()),
                };
                (expression, given)
            }
            _ => continue,
        };
        // Within a plan names are unique; the mark is taken off where results are described.
        // What is made of a column `t.c` is called `c` as well, and ORDER BY may still be about the column.
        let hides = outermost && is_of_qualified(expression);
        let unique = match hides || names.contains(&given) {
            true => format!("{given}{REPEATED}{}", names.len()),
            false => given.clone(),
        };
        names.push(given);
        *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias: Ident::with_quote('"', unique) };
    }
}

/// Whether an expression is a column `t.c` under casts and brackets.
fn is_of_qualified(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } | Expr::Collate { expr: inner, .. } => {
            is_of_qualified(inner)
        }
        Expr::CompoundFieldAccess { root, .. } => is_of_qualified(root),
        Expr::CompoundIdentifier(_) => true,
        _ => false,
    }
}

fn last_part(name: &ObjectName) -> Option<String> {
    Some(name.0.last()?.as_ident()?.value.to_ascii_lowercase())
}

/// The name that PostgreSQL gives an expression, as its `FigureColname` does.
fn postgres_name(expression: &Expr) -> Option<String> {
    let fixed = match expression {
        Expr::Identifier(name) => return Some(name.value.clone()),
        Expr::CompoundIdentifier(parts) => return parts.last().map(|part| part.value.clone()),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => return postgres_name(inner),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(name.value.clone()),
                _ => None,
            });
            return field.or_else(|| postgres_name(root));
        }
        Expr::Cast { expr, data_type, .. } => return postgres_name(expr).or_else(|| Some(type_name(data_type))),
        Expr::TypedString(typed) => return Some(type_name(&typed.data_type)),
        Expr::Function(function) => return last_part(&function.name),
        Expr::Case { else_result, .. } => {
            return else_result.as_deref().and_then(postgres_name).or_else(|| Some("case".to_owned()));
        }
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first()? {
                SelectItem::ExprWithAlias { alias, .. } => return Some(alias.value.clone()),
                SelectItem::UnnamedExpr(expression) => return postgres_name(expression),
                _ => return None,
            },
            _ => return None,
        },
        Expr::Exists { .. } => "exists",
        Expr::Array(_) => "array",
        Expr::Extract { .. } => "extract",
        Expr::Substring { .. } => "substring",
        Expr::Position { .. } => "position",
        Expr::Overlay { .. } => "overlay",
        Expr::Trim { .. } => "btrim",
        Expr::Ceil { .. } => "ceil",
        Expr::Floor { .. } => "floor",
        Expr::AtTimeZone { .. } => "timezone",
        Expr::Interval(_) => "interval",
        Expr::Tuple(_) => "row",
        Expr::Value(ValueWithSpan { value: Value::Boolean(_), .. }) => "bool",
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// A type's name as `pg_type` has it.
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
        DataType::Custom(name, _) => return last_part(name).unwrap_or_default(),
        other => return other.to_string().to_ascii_lowercase(),
    };
    fixed.to_owned()
}
