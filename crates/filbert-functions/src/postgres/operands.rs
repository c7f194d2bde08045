//! The operand types for which an operator is defined in PostgreSQL.
//!
//! A string literal and a NULL match any type; any other text has the type text. With such a text,
//! `||` converts documents and bytes to text.

use arrow_schema::DataType;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, Like, ScalarFunction};
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use filbert_dialect::calls::{ARRAY_LIKE, COMPARE_ALL, COMPARE_ANY};

use super::super::row::text_of;
use super::marked;
use super::operators::{Kind, call, comparison, concatenated, is_quoted, kind};
use super::quantified::no_array;
use super::signatures;
use crate::error::{carried, parsing_error};
use crate::pg_types;
use crate::types::{field_type_of, innermost, is_untyped, pg_type_of};

/// Functions that return one of their arguments.
pub(super) const OF_ONE_TYPE: [&str; 3] = ["coalesce", "greatest", "least"];

/// The meaning of `||` between a text and a value of another type; `None` for other expressions.
///
/// # Errors
/// The operator does not exist.
pub(super) fn planned(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    use Kind::{Bytes, Char, Json, Jsonb, Text, Uuid};
    if !is_defined(expr, schema) {
        return Err(missing(&expr.left, &expr.op.to_string(), &expr.right, schema));
    }
    if expr.op != BinaryOperator::StringConcat {
        return Ok(None);
    }
    let (left, right) = (&expr.left, &expr.right);
    Ok(match (known(left, schema), known(right, schema)) {
        (Text | Char, Jsonb | Json | Bytes | Uuid) => {
            call("cast_text", vec![right.clone()]).and_then(|right| concatenated(left.clone(), right))
        }
        (Jsonb | Json | Bytes | Uuid, Text | Char) => {
            call("cast_text", vec![left.clone()]).and_then(|left| concatenated(left, right.clone()))
        }
        _ => None,
    })
}

/// Rejects undefined operators that are no binary expressions in a plan: `LIKE` of bytes, `IN`,
/// operators of documents, and functions of texts with other arguments.
///
/// # Errors
/// The operator does not exist, or is not supported.
pub(crate) fn check(expression: &Expr, schema: &DFSchema) -> Result<()> {
    match expression {
        Expr::Like(Like { expr, .. }) if known(expr, schema) == Kind::Bytes => {
            Err(super::unserved("LIKE of bytea is not served"))
        }
        Expr::Like(like) => signatures::check_like(like, schema),
        Expr::InList(list) => equal(&list.expr, list.list.iter(), schema),
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            if let Some(value) = expr {
                equal(value, when_then_expr.iter().map(|(other, _)| other.as_ref()), schema)?;
            }
            let results = when_then_expr.iter().map(|(_, result)| result.as_ref());
            together("CASE", else_expr.as_deref().into_iter().chain(results), schema)
        }
        Expr::AggregateFunction(call) if call.func.name() == "string_agg" => {
            match call.params.args.iter().any(|value| known(value, schema) == Kind::Bytes) {
                true => Err(super::unserved("string_agg of bytea is not served")),
                false => signatures::check_joined(call, schema),
            }
        }
        Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
            ("nullif", [value, other]) => equal(value, [other].into_iter(), schema),
            (COMPARE_ANY | COMPARE_ALL, [Expr::Literal(sign, _), value, array]) => items_of(sign, value, array, schema),
            (name, values) if OF_ONE_TYPE.contains(&name) => together(name, values.iter(), schema),
            ("make_array", values) => together("array", values.iter(), schema),
            _ => match sign_of(call) {
                Some(sign) => looks_into(call, sign, schema),
                None => signatures::check(call, schema),
            },
        },
        _ => Ok(()),
    }
}

/// Rejects values that cannot be compared for equality.
///
/// # Errors
/// The operator `=` does not exist for the value and one of the others.
pub(crate) fn equal<'e>(value: &Expr, mut others: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> Result<()> {
    others.try_for_each(|other| compares(&BinaryOperator::Eq, value, other, schema))
}

fn compares(op: &BinaryOperator, value: &Expr, other: &Expr, schema: &DFSchema) -> Result<()> {
    let compared = RawBinaryExpr { op: op.clone(), left: value.clone(), right: other.clone() };
    match is_defined(&compared, schema) {
        true => Ok(()),
        false => Err(missing(value, &op.to_string(), other, schema)),
    }
}

/// Rejects a comparison with array elements for which the operator does not exist.
fn items_of(sign: &ScalarValue, value: &Expr, array: &Expr, schema: &DFSchema) -> Result<()> {
    let op = match text_of(sign) {
        Some("=") => BinaryOperator::Eq,
        Some("<>") => BinaryOperator::NotEq,
        Some("<") => BinaryOperator::Lt,
        Some("<=") => BinaryOperator::LtEq,
        Some(">") => BinaryOperator::Gt,
        Some(">=") => BinaryOperator::GtEq,
        _ => return Ok(()),
    };
    // A string literal or a parameter is an array of the type that it is compared with.
    let is_open = matches!(array, Expr::ScalarFunction(call) if call.func.name() == ARRAY_LIKE);
    let Ok(found) = array.get_type(schema) else { return Ok(()) };
    let is_array = matches!(found, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..));
    if !is_open && !found.is_null() && !is_array {
        return Err(no_array());
    }
    if is_open || !matches!(found, DataType::List(_)) || innermost(&found).is_null() {
        return Ok(());
    }
    // A null with the type of the elements represents them.
    let Some(field) = marked::field_of_items(array, schema) else { return Ok(()) };
    let item = Expr::Literal(ScalarValue::try_from(field.data_type())?, Some(FieldMetadata::new_from_field(&field)));
    compares(&op, value, &item, schema)
}

/// Rejects alternatives that have no common type.
fn together<'e>(name: &str, values: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> Result<()> {
    let mut first: Option<(&Expr, Kind)> = None;
    for value in values {
        let own = match known(value, schema) {
            Kind::Unknown => continue,
            // A document from a client is of either type.
            Kind::Jsonb if matches!(value, Expr::Placeholder(_)) => continue,
            Kind::Other if !is_of_its_own(value, schema) => continue,
            Kind::Char => Kind::Text,
            own => own,
        };
        let Some((other, of_other)) = first else {
            first = Some((value, own));
            continue;
        };
        let (left, right) = (beside(other, of_other, own), beside(value, own, of_other));
        if left != right && left != Kind::Unknown && right != Kind::Unknown {
            let (name, other, value) = (name.to_uppercase(), named(other, schema), named(value, schema));
            let message = format!("{name} types {other} and {value} cannot be matched");
            return Err(carried(parsing_error(message).with_sqlstate("42804")));
        }
    }
    Ok(())
}

/// The symbol of a document operator.
fn sign_of(call: &ScalarFunction) -> Option<&'static str> {
    Some(match call.func.name() {
        "json_get" => "->",
        "json_get_text" => "->>",
        "json_get_path" => "#>",
        "json_get_path_text" => "#>>",
        _ => return None,
    })
}

fn looks_into(call: &ScalarFunction, sign: &str, schema: &DFSchema) -> Result<()> {
    let [document, place] = call.args.as_slice() else { return Ok(()) };
    let is_document = matches!(known(document, schema), Kind::Jsonb | Kind::Json | Kind::Text | Kind::Unknown);
    let is_place = match known(place, schema) {
        Kind::Unknown => true,
        Kind::Array => sign.starts_with('#') && has_texts(place, schema),
        Kind::Text | Kind::Char => sign.starts_with('-'),
        Kind::Other => sign.starts_with('-') && is_place(place, schema),
        _ => false,
    };
    if is_document && is_place { Ok(()) } else { Err(missing(document, sign, place, schema)) }
}

/// Whether the operator exists for the operands, unless both are numbers or dates.
fn is_defined(expr: &RawBinaryExpr, schema: &DFSchema) -> bool {
    use Kind::{Array, Bytes, Char, Json, Jsonb, Other, Text, Unknown, Uuid};
    let (left, right) = (&expr.left, &expr.right);
    let (of_left, of_right) = (known(left, schema), known(right, schema));
    let kinds = (beside(left, of_left, of_right), beside(right, of_right, of_left));
    let are_alike = || alike(left, right, schema);
    match &expr.op {
        BinaryOperator::AtArrow | BinaryOperator::ArrowAt | BinaryOperator::PGOverlap => match kinds {
            (Array, Array) => are_alike(),
            (Array, Unknown) | (Unknown, Array) => true,
            (Array, _) | (_, Array) => false,
            _ if expr.op == BinaryOperator::PGOverlap => true,
            (Jsonb | Unknown, Jsonb | Unknown) => true,
            _ => false,
        },
        BinaryOperator::Question => {
            matches!(kinds, (Jsonb | Unknown, Text | Char | Unknown))
        }
        BinaryOperator::QuestionPipe | BinaryOperator::QuestionAnd | BinaryOperator::HashMinus => match kinds {
            (Jsonb | Unknown, Array) => has_texts(right, schema),
            kinds => matches!(kinds, (Jsonb | Unknown, Unknown)),
        },
        BinaryOperator::Minus if kinds.0 == Jsonb => match kinds.1 {
            Text | Char | Unknown => true,
            Array => has_texts(right, schema),
            Other => is_place(right, schema),
            _ => false,
        },
        BinaryOperator::StringConcat => match kinds {
            (Array, Unknown) | (Unknown, Array) => true,
            (Array, _) | (_, Array) => are_alike(),
            (Jsonb, Jsonb | Unknown | Text | Char) | (Unknown | Text | Char, Jsonb) => true,
            (Jsonb, _) | (_, Jsonb) => false,
            (Json | Uuid | Bytes, Json | Uuid | Other) | (Json | Uuid | Other, Json | Uuid | Bytes) => false,
            _ => true,
        },
        op if comparison(op).is_some() => match kinds {
            (Jsonb, Jsonb | Unknown) | (Unknown, Jsonb) => true,
            (Jsonb | Json, _) | (_, Jsonb | Json) => false,
            (Uuid, Uuid | Unknown) | (Unknown, Uuid) => true,
            (Uuid, _) | (_, Uuid) => false,
            (Bytes, Bytes | Unknown) | (Unknown, Bytes) => true,
            (Bytes, _) | (_, Bytes) => false,
            (Array, Array) => are_alike(),
            (Text | Char, Other) => !is_of_its_own(right, schema),
            (Other, Text | Char) => !is_of_its_own(left, schema),
            _ => true,
        },
        _ => true,
    }
}

/// The kind of an operand. A string literal matches any type, and so does an untyped member of a
/// document.
pub(super) fn known(operand: &Expr, schema: &DFSchema) -> Kind {
    let is_open = || operand.to_field(schema).is_ok_and(|(_, field)| is_untyped(&field));
    // The NULL of a parameter has no type of its own either.
    let is_null = matches!(operand, Expr::Literal(scalar, None) if scalar.is_null() && scalar.data_type().is_string());
    if is_quoted(operand) || is_null || is_open() { Kind::Unknown } else { kind(operand, schema) }
}

/// The kind of an operand beside another one. The column of a subquery may be a document or a UUID
/// that is not marked yet, so it matches any type beside these.
fn beside(operand: &Expr, own: Kind, other: Kind) -> Kind {
    let is_column = matches!(operand, Expr::Column(_) | Expr::OuterReferenceColumn(..));
    let is_open = own == Kind::Text && is_column && matches!(other, Kind::Jsonb | Kind::Uuid);
    if is_open { Kind::Unknown } else { own }
}

/// Whether two arrays, or an array and an element, have a common element type.
pub(super) fn alike(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    let types = (left.get_type(schema), right.get_type(schema));
    let (Ok(left), Ok(right)) = types else { return true };
    let (left, right) = (innermost(&left), innermost(&right));
    let both = |is_one: fn(&DataType) -> bool| is_one(left) && is_one(right);
    let is_of_days = |found: &DataType| matches!(found, DataType::Date32 | DataType::Timestamp(..));
    left == right
        || left.is_null()
        || right.is_null()
        || both(DataType::is_numeric)
        || both(DataType::is_string)
        || both(DataType::is_binary)
        || both(is_of_days)
}

/// Whether it is a number, a boolean or a timestamp, which cannot be compared with a text. OIDs are
/// compared by name.
fn is_of_its_own(operand: &Expr, schema: &DFSchema) -> bool {
    operand.to_field(schema).is_ok_and(|(_, field)| {
        let found = field.data_type();
        let is_one = found.is_numeric() || found.is_temporal() || *found == DataType::Boolean;
        is_one && pg_type_of(&field).is_none()
    })
}

/// Whether it is an array of texts, or of nulls alone.
fn has_texts(array: &Expr, schema: &DFSchema) -> bool {
    let found = array.get_type(schema);
    found.map_or(true, |found| innermost(&found).is_string() || innermost(&found).is_null())
}

/// Whether it is an array index: a whole number of at most 32 bits. At planning, a literal, and a
/// computation with literals, has 64 bits.
fn is_place(operand: &Expr, schema: &DFSchema) -> bool {
    let Ok(found) = operand.get_type(schema) else { return true };
    match operand {
        _ if !found.is_integer() => false,
        Expr::Alias(alias) => is_place(&alias.expr, schema),
        Expr::Cast(_) | Expr::TryCast(_) | Expr::Column(_) | Expr::OuterReferenceColumn(..) => found != DataType::Int64,
        _ => true,
    }
}

/// The type name of an operand.
pub(super) fn named(operand: &Expr, schema: &DFSchema) -> String {
    match operand.to_field(schema) {
        Ok((_, field)) if known(operand, schema) != Kind::Unknown => {
            let of_arrow = || pg_types::of_field_type(&field_type_of(&field)).0;
            let oid = pg_type_of(&field).map_or_else(of_arrow, i64::from);
            pg_types::format(oid, None)
        }
        _ => "unknown".to_owned(),
    }
}

fn missing(left: &Expr, sign: &str, right: &Expr, schema: &DFSchema) -> DataFusionError {
    let message = format!("operator does not exist: {} {sign} {}", named(left, schema), named(right, schema));
    carried(parsing_error(message).with_sqlstate("42883"))
}
