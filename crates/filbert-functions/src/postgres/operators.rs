//! Operators with a meaning that depends on operand types: `||`, `@>`, `&&`, `-` and comparisons of
//! documents, arrays and UUIDs.
//!
//! They become functions at planning. An analyzer rule handles the constructs without an operator
//! (`IN`, `ORDER BY`, casts).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::string;
use datafusion::logical_expr::expr::{InList, Placeholder, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF, cast, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use filbert_data::FieldType;

use super::super::row::is_text;
use super::{arrays, casts, dates, extremes, json, marked, operands};
use crate::named::{map_named, schema_within};
use crate::native;
use crate::types::{BPCHAR, JSONB, Mark, VARCHAR, field_type_of, pg_type_of};

/// The functions that operators become, by name.
static FUNCTIONS: LazyLock<HashMap<&'static str, Arc<ScalarUDF>>> = LazyLock::new(|| {
    let groups = [json::FUNCTIONS, arrays::FUNCTIONS, casts::FUNCTIONS, extremes::FUNCTIONS];
    let natives = groups.into_iter().flatten().map(|found| (found.name, Arc::new(native::udf(found))));
    natives.chain([("cast_uuid", super::super::text::CAST_UUID.clone())]).collect()
});

/// A call of one of the functions.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Option<Expr> {
    let func = FUNCTIONS.get(name)?.clone();
    Some(Expr::ScalarFunction(ScalarFunction { func, args }))
}

/// The kind of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Jsonb,
    Json,
    Array,
    Uuid,
    Bytes,
    Text,
    /// A text with insignificant trailing blanks.
    Char,
    /// A parameter, or null.
    Unknown,
    Other,
}

pub(super) fn kind_of(field: &FieldRef) -> Kind {
    match field_type_of(field) {
        FieldType::Json if pg_type_of(field) == Some(JSONB) => Kind::Jsonb,
        FieldType::Json => Kind::Json,
        FieldType::Uuid => Kind::Uuid,
        FieldType::Array(_) => Kind::Array,
        FieldType::Binary => Kind::Bytes,
        // An object appears as its bytes.
        FieldType::Object if field.data_type().is_binary() => Kind::Bytes,
        _ if field.data_type().is_null() => Kind::Unknown,
        _ if pg_type_of(field) == Some(BPCHAR) => Kind::Char,
        _ if is_text(field.data_type()) => Kind::Text,
        _ => Kind::Other,
    }
}

/// The kind of an operand in a plan.
pub(crate) fn kind(operand: &Expr, schema: &DFSchema) -> Kind {
    match operand {
        Expr::Placeholder(placeholder) if placeholder.field.is_none() => Kind::Unknown,
        // `json` has no operators: a document parameter is taken as `jsonb`.
        Expr::Placeholder(_) if is_json(operand, schema) => Kind::Jsonb,
        other => match other.to_field(schema) {
            Ok((_, field)) if is_text(field.data_type()) && marked::loses(other) => {
                marked::mark_of(other, schema).map_or(Kind::Text, kind_of_text)
            }
            Ok((_, field)) => kind_of(&field),
            Err(_) => Kind::Unknown,
        },
    }
}

fn is_json(operand: &Expr, schema: &DFSchema) -> bool {
    operand.to_field(schema).is_ok_and(|(_, field)| kind_of(&field) == Kind::Json)
}

/// The kind of a text.
fn kind_of_text(mark: Mark) -> Kind {
    match mark {
        _ if mark.oid == Some(JSONB) => Kind::Jsonb,
        _ if mark.is_json() => Kind::Json,
        _ if mark.is_uuid() => Kind::Uuid,
        _ if mark.oid == Some(BPCHAR) => Kind::Char,
        _ => Kind::Text,
    }
}

pub(super) fn comparison(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

/// Plans operators of documents, arrays and UUIDs, before DataFusion does.
#[derive(Debug)]
pub struct Values {
    /// Whether only PostgreSQL's operators are allowed.
    pub is_strict: bool,
}

impl ExprPlanner for Values {
    fn plan_binary_op(&self, mut expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        untell(&mut expr, schema);
        let planned = if self.is_strict { operands::planned(&expr, schema)? } else { None };
        Ok(match planned.or_else(|| binary(&expr, schema)) {
            Some(planned) => PlannerResult::Planned(planned),
            None => PlannerResult::Original(expr),
        })
    }
}

/// Removes the type of a cast to `varchar` from the operands of a comparison, unless a fixed-length
/// text is beside it.
fn untell(expr: &mut RawBinaryExpr, schema: &DFSchema) {
    let (left, right) = (marked::untold(&expr.left), marked::untold(&expr.right));
    let is_beside_char = |other: &Expr| kind(other, schema) == Kind::Char;
    if left.is_some() && is_beside_char(&expr.right) || right.is_some() && is_beside_char(&expr.left) {
        return;
    }
    left.into_iter().for_each(|left| expr.left = left);
    right.into_iter().for_each(|right| expr.right = right);
}

/// A comparison with a column of a subquery, for types that Arrow compares otherwise: documents,
/// arrays and fixed-length texts.
pub fn compared_with_rows(op: Operator, left: Expr, right: Expr, schema: &DFSchema) -> Option<Expr> {
    match (kind(&left, schema), kind(&right, schema)) {
        (Kind::Jsonb, _)
        | (_, Kind::Jsonb)
        | (Kind::Array, Kind::Array)
        | (Kind::Char, Kind::Text)
        | (Kind::Text, Kind::Char) => compared(op, left, right, schema),
        _ => None,
    }
}

/// The expression for a comparison of documents, arrays, UUIDs or texts of other types; `None` for
/// other operands.
pub(crate) fn compared(op: Operator, left: Expr, right: Expr, schema: &DFSchema) -> Option<Expr> {
    let kinds = (kind(&left, schema), kind(&right, schema));
    let has = |kind: Kind| kinds.0 == kind || kinds.1 == kind;
    let joined = |left: Option<Expr>, right: Option<Expr>| {
        Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(left?), op, right: Box::new(right?) }))
    };
    match kinds {
        _ if has(Kind::Jsonb) => joined(call("jsonb_order", vec![left]), call("jsonb_order", vec![right])),
        // A parameter's value may be a text in any form.
        (Kind::Uuid, Kind::Text | Kind::Unknown) => joined(Some(left), call("cast_uuid", vec![right])),
        (Kind::Text | Kind::Unknown, Kind::Uuid) => joined(call("cast_uuid", vec![left]), Some(right)),
        (Kind::Array, Kind::Array) => {
            joined(call("array_compare", vec![left, right]), Some(lit(ScalarValue::Int32(Some(0)))))
        }
        (Kind::Array, Kind::Text) if is_quoted(&right) => {
            let order = of_arrays("array_compare", left, right, kinds, schema);
            joined(order, Some(lit(ScalarValue::Int32(Some(0)))))
        }
        (Kind::Text, Kind::Array) if is_quoted(&left) => {
            let order = of_arrays("array_compare", left, right, kinds, schema);
            joined(order, Some(lit(ScalarValue::Int32(Some(0)))))
        }
        (Kind::Char, Kind::Text) => joined(Some(left), Some(beside_char(&right, schema)?)),
        (Kind::Text, Kind::Char) => joined(Some(beside_char(&left, schema)?), Some(right)),
        // The type of such a value is not in its field, from which DataFusion would take it.
        (Kind::Char, Kind::Unknown) if marked::loses(&left) => {
            let parameter = parameter_like(&right, &left, schema)?;
            joined(Some(left), Some(parameter))
        }
        (Kind::Unknown, Kind::Char) if marked::loses(&right) => {
            joined(Some(parameter_like(&left, &right, schema)?), Some(right))
        }
        (Kind::Bytes, Kind::Text) => joined(Some(left), call("cast_bytea", vec![right])),
        (Kind::Text, Kind::Bytes) => joined(call("cast_bytea", vec![left]), Some(right)),
        _ => None,
    }
}

/// A parameter without a type, with the type of a value beside it.
fn parameter_like(parameter: &Expr, like: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::Placeholder(Placeholder { id, field: None }) = parameter else { return None };
    let field = marked::field_of(like, schema)?.with_name(id).with_nullable(true);
    Some(Expr::Placeholder(Placeholder::new_with_field(id.clone(), Some(Arc::new(field)))))
}

/// The expression for an operator of documents, arrays or UUIDs; `None` for other operands.
pub(crate) fn binary(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let is_of_values = comparison(&expr.op).is_some()
        || matches!(
            expr.op,
            BinaryOperator::StringConcat
                | BinaryOperator::AtArrow
                | BinaryOperator::ArrowAt
                | BinaryOperator::PGOverlap
                | BinaryOperator::Minus
                | BinaryOperator::HashMinus
                | BinaryOperator::Question
                | BinaryOperator::QuestionPipe
                | BinaryOperator::QuestionAnd
        );
    if !is_of_values {
        return None;
    }
    let (left, right) = (expr.left.clone(), expr.right.clone());
    if let Some(op) = comparison(&expr.op) {
        return compared(op, left, right, schema);
    }
    let kinds = (kind(&left, schema), kind(&right, schema));
    let has = |kind: Kind| kinds.0 == kind || kinds.1 == kind;
    match &expr.op {
        BinaryOperator::StringConcat => match kinds {
            _ if has(Kind::Jsonb) => call("jsonb_concat", vec![left, right]),
            (Kind::Array, Kind::Array) => call("array_cat", vec![left, right]),
            (Kind::Array, Kind::Text | Kind::Unknown) | (Kind::Text | Kind::Unknown, Kind::Array) => {
                concatenated_with_text(left, right, kinds, schema)
            }
            (Kind::Array, _) => call("array_append", vec![left, narrow(right)]),
            (_, Kind::Array) => call("array_prepend", vec![narrow(left), right]),
            (Kind::Bytes, Kind::Text) => concatenated(left, call("cast_bytea", vec![right])?),
            (Kind::Text, Kind::Bytes) => concatenated(call("cast_bytea", vec![left])?, right),
            (Kind::Text, Kind::Other | Kind::Uuid | Kind::Json) => concatenated(left, call("cast_text", vec![right])?),
            (Kind::Other | Kind::Uuid | Kind::Json, Kind::Text) => concatenated(call("cast_text", vec![left])?, right),
            _ => None,
        },
        BinaryOperator::AtArrow => match kinds {
            (Kind::Array, _) | (_, Kind::Array) => of_arrays("array_contains", left, right, kinds, schema),
            _ => call("jsonb_contains", vec![left, right]),
        },
        BinaryOperator::ArrowAt => match kinds {
            (Kind::Array, _) | (_, Kind::Array) => of_arrays("array_contains", right, left, (kinds.1, kinds.0), schema),
            _ => call("jsonb_contains", vec![right, left]),
        },
        BinaryOperator::PGOverlap => match kinds {
            (Kind::Array, _) | (_, Kind::Array) => of_arrays("array_overlaps", left, right, kinds, schema),
            _ => None,
        },
        BinaryOperator::Minus if kinds.0 == Kind::Jsonb => call("jsonb_delete", vec![left, right]),
        BinaryOperator::HashMinus => call("jsonb_delete_path", vec![left, right]),
        BinaryOperator::Question => call("jsonb_exists", vec![left, right]),
        BinaryOperator::QuestionPipe => call("jsonb_exists_any", vec![left, right]),
        BinaryOperator::QuestionAnd => call("jsonb_exists_all", vec![left, right]),
        _ => None,
    }
}

/// A literal or a `varchar` without trailing blanks, for comparison with a text whose trailing
/// blanks are insignificant; `None` if it stays unchanged.
pub(super) fn beside_char(operand: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_varchar = || marked::mark_of(operand, schema).is_some_and(|mark| mark.oid == Some(VARCHAR));
    without_blanks(operand).or_else(|| is_varchar().then(|| string::rtrim().call(vec![operand.clone()])))
}

/// A literal without trailing blanks, for comparison with a text whose trailing blanks are
/// insignificant; `None` if it has no trailing blanks.
fn without_blanks(literal: &Expr) -> Option<Expr> {
    let Expr::Literal(scalar, metadata) = literal else { return None };
    let text = scalar.try_as_str().flatten().filter(|text| text.ends_with(' '))?;
    let trimmed = ScalarValue::Utf8View(Some(text.trim_end_matches(' ').to_owned()));
    Some(Expr::Literal(trimmed, metadata.clone()))
}

/// Trims literals among compared operands if trailing blanks are insignificant in one of them;
/// returns whether any literal changed.
pub(super) fn trim_literals(operands: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    if !operands.iter().any(|operand| kind(operand, schema) == Kind::Char) {
        return false;
    }
    let mut is_changed = false;
    for operand in operands {
        if let Some(trimmed) = without_blanks(operand) {
            *operand = trimmed;
            is_changed = true;
        }
    }
    is_changed
}

/// The same after type coercion; other expressions stay unchanged.
fn coerced_without_blanks(item: &Expr) -> Expr {
    let literal = match item {
        Expr::Cast(cast) if is_text(cast.field.data_type()) => cast.expr.as_ref(),
        other => other,
    };
    without_blanks(literal).unwrap_or_else(|| item.clone())
}

pub(super) fn concatenated(left: Expr, right: Expr) -> Option<Expr> {
    Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op: Operator::StringConcat, right: Box::new(right) }))
}

/// A text as an array of the type of the given array.
pub(crate) fn as_array(text: Expr, array: &Expr, schema: &DFSchema) -> Option<Expr> {
    let like = marked::field_of(array, schema)?;
    matches!(like.data_type(), DataType::List(_)).then(|| literal_like(text, &like)).flatten()
}

/// A string literal as a value of a field's type, where it is neither a text nor a number.
pub fn literal_like(literal: Expr, like: &Field) -> Option<Expr> {
    let mark = Mark::of(like);
    match like.data_type() {
        DataType::List(item) => {
            let of_item = mark.of_item();
            let of_marked = match of_item {
                _ if of_item.is_uuid() => Some("cast_uuids"),
                _ if of_item.oid == Some(JSONB) => Some("cast_jsonbs"),
                _ if of_item.is_json() => Some("cast_json_documents"),
                _ => None,
            };
            if let Some(function) = of_marked {
                return call(function, vec![literal]);
            }
            let item = Expr::Literal(ScalarValue::try_from(item.data_type()).ok()?, None);
            let func = crate::elements::ARRAY_LIKE_UDF.clone();
            Some(Expr::ScalarFunction(ScalarFunction { func, args: vec![literal, item] }))
        }
        found if found.is_binary() => call("cast_bytea", vec![literal]),
        _ if mark.is_uuid() => call("cast_uuid", vec![literal]),
        _ if mark.oid == Some(JSONB) => call("cast_jsonb", vec![literal]),
        _ if mark.is_json() => call("cast_json_document", vec![literal]),
        found if is_text(found) || found.is_numeric() || found.is_null() => None,
        found => Some(cast(literal, found.clone())),
    }
}

/// Gives string literals the type of the other operands: their common type if they are dates and
/// timestamps, otherwise that of the first one. Returns whether any changed.
pub(crate) fn type_literals(operands: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let is_known = |operand: &&&mut Expr| !is_quoted(operand) && kind(operand, schema) != Kind::Unknown;
    let known = operands.iter().filter(is_known).filter_map(|found| marked::field_of(found, schema));
    let known: Vec<Field> = known.collect();
    let Some(first) = known.first() else { return false };
    let types: Vec<&DataType> = known.iter().map(Field::data_type).collect();
    let like = match dates::common_type(&types) {
        Some(common) => first.clone().with_data_type(common),
        None => first.clone(),
    };
    let mut is_changed = false;
    for operand in operands.into_iter().filter(|operand| is_quoted(operand)) {
        if let Some(typed) = literal_like(operand.clone(), &like) {
            *operand = typed;
            is_changed = true;
        }
    }
    is_changed
}

/// A whole-number literal as a 32-bit integer if it fits, so it does not widen the numbers of an
/// array.
pub(super) fn narrow(item: Expr) -> Expr {
    match &item {
        Expr::Literal(ScalarValue::Int64(Some(number)), metadata) => match i32::try_from(*number) {
            Ok(number) => Expr::Literal(ScalarValue::Int32(Some(number)), metadata.clone()),
            Err(_) => item,
        },
        _ => item,
    }
}

/// Whether it is a string literal.
pub(super) fn is_quoted(operand: &Expr) -> bool {
    matches!(operand, Expr::Literal(scalar, _) if scalar.try_as_str().flatten().is_some())
}

/// A function of two arrays. A text beside an array is one, too; a parameter gets its type later.
fn of_arrays(name: &str, left: Expr, right: Expr, kinds: (Kind, Kind), schema: &DFSchema) -> Option<Expr> {
    match kinds {
        _ if is_open(&left) || is_open(&right) => call(name, vec![left, right]),
        (Kind::Array, Kind::Text | Kind::Unknown) => {
            let right = as_array(right, &left, schema)?;
            call(name, vec![left, right])
        }
        (Kind::Text | Kind::Unknown, Kind::Array) => {
            let left = as_array(left, &right, schema)?;
            call(name, vec![left, right])
        }
        _ => call(name, vec![left, right]),
    }
}

/// Whether an operand is a parameter without a type.
fn is_open(operand: &Expr) -> bool {
    matches!(operand, Expr::Placeholder(placeholder) if placeholder.field.is_none())
}

/// `array || 'text'`: a literal or an untyped parameter is an array; any other text is an element
/// of an array of texts.
fn concatenated_with_text(left: Expr, right: Expr, kinds: (Kind, Kind), schema: &DFSchema) -> Option<Expr> {
    let is_written = |operand: &Expr| is_open(operand) || matches!(operand, Expr::Literal(..));
    match kinds.0 {
        Kind::Array if is_written(&right) => of_arrays("array_cat", left, right, kinds, schema),
        Kind::Array => call("array_append", vec![left, right]),
        _ if is_written(&left) => of_arrays("array_cat", left, right, kinds, schema),
        _ => call("array_prepend", vec![left, right]),
    }
}

/// Handles the constructs without an operator.
#[derive(Debug)]
pub struct ValuesRule {
    /// As for [`Values`]. Casts to text keep trailing blanks, and literals were trimmed before
    /// ([`super::Quoted`]).
    pub is_strict: bool,
}

impl AnalyzerRule for ValuesRule {
    fn name(&self) -> &str {
        "values_of_postgresql"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let transformed = plan.transform_up_with_subqueries(|plan| mended_plan(plan, self.is_strict))?;
        match transformed.transformed {
            true => TypeCoercion::new().analyze(transformed.data, config),
            false => Ok(transformed.data),
        }
    }
}

fn mended_plan(plan: LogicalPlan, is_strict: bool) -> Result<Transformed<LogicalPlan>> {
    let schema = schema_within(&plan)?;
    let is_sort = matches!(plan, LogicalPlan::Sort(_));
    let transformed = map_named(plan, |expression| {
        let transformed = expression.transform_up(|expression| Ok(mended(expression, &schema, is_strict)))?;
        Ok(match is_sort && kind(&transformed.data, &schema) == Kind::Jsonb {
            true => match call("jsonb_order", vec![transformed.data.clone()]) {
                Some(ordered) => Transformed::yes(ordered),
                None => transformed,
            },
            false => transformed,
        })
    })?;
    match transformed.transformed {
        true => transformed.map_data(LogicalPlan::recompute_schema),
        false => Ok(transformed),
    }
}

fn mended(expression: Expr, schema: &DFSchema, is_strict: bool) -> Transformed<Expr> {
    let mended = match &expression {
        Expr::InList(InList { expr, .. }) if is_strict && kind(expr, schema) == Kind::Char => None,
        Expr::InList(InList { expr, list, negated }) => in_list(expr, list, *negated, schema),
        Expr::Between(between) if !is_strict && kind(&between.expr, schema) == Kind::Char => {
            let (low, high) = (coerced_without_blanks(&between.low), coerced_without_blanks(&between.high));
            let (low, high) = (Box::new(low), Box::new(high));
            Some(Expr::Between(Between { low, high, ..between.clone() }))
        }
        Expr::Cast(to) if is_text(to.field.data_type()) => match kind(&to.expr, schema) {
            Kind::Array | Kind::Bytes => call("cast_text", vec![to.expr.as_ref().clone()]),
            _ => None,
        },
        Expr::Cast(to) if !is_text(to.field.data_type()) && kind(&to.expr, schema) == Kind::Jsonb => {
            of_jsonb(&to.expr, to.field.data_type())
        }
        Expr::ScalarFunction(function) => number_of_jsonb(function, schema),
        _ => None,
    };
    match mended {
        Some(mended) => Transformed::yes(mended),
        None => Transformed::no(expression),
    }
}

fn in_list(expr: &Expr, list: &[Expr], negated: bool, schema: &DFSchema) -> Option<Expr> {
    let function = match kind(expr, schema) {
        Kind::Jsonb => "jsonb_order",
        Kind::Uuid => "cast_uuid",
        Kind::Bytes => "cast_bytea",
        Kind::Char => {
            let list = list.iter().map(coerced_without_blanks).collect();
            return Some(Expr::InList(InList { expr: Box::new(expr.clone()), list, negated }));
        }
        _ => return None,
    };
    let is_parameter = |item: &Expr| function == "cast_uuid" && matches!(item, Expr::Placeholder(_));
    let wanted = |item: &Expr| match (function, kind(item, schema)) {
        _ if is_parameter(item) => call(function, vec![item.clone()]),
        ("cast_uuid", Kind::Uuid | Kind::Unknown) | ("cast_bytea", Kind::Bytes | Kind::Unknown) => Some(item.clone()),
        _ => call(function, vec![item.clone()]),
    };
    // Constant expressions are folded, because lookup plans read literals.
    let is_changed =
        function == "jsonb_order" || list.iter().any(|item| kind(item, schema) == Kind::Text || is_parameter(item));
    if !is_changed {
        return None;
    }
    let expr = match function {
        "jsonb_order" => call(function, vec![expr.clone()])?,
        _ => expr.clone(),
    };
    let list = list.iter().map(wanted).collect::<Option<Vec<_>>>()?;
    Some(Expr::InList(InList { expr: Box::new(expr), list, negated }))
}

/// A function that casts a text to a number, for a document.
fn number_of_jsonb(function: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let name = match function.func.name() {
        "to_int2" => "smallint",
        "to_int4" => "integer",
        "to_int8" => "bigint",
        "to_float4" => "real",
        "to_float8" => "double precision",
        "to_numeric" => "numeric",
        _ => return None,
    };
    let (document, rest) = function.args.split_first()?;
    if kind(document, schema) != Kind::Jsonb {
        return None;
    }
    let text = call("jsonb_to_number", vec![document.clone(), lit(name)])?;
    let args = std::iter::once(text).chain(rest.iter().cloned()).collect();
    Some(Expr::ScalarFunction(ScalarFunction { func: Arc::clone(&function.func), args }))
}

/// A document cast to a number or a boolean.
fn of_jsonb(document: &Expr, to: &DataType) -> Option<Expr> {
    let (function, name) = match to {
        DataType::Boolean => ("jsonb_to_boolean", "boolean"),
        DataType::Int16 => ("jsonb_to_number", "smallint"),
        DataType::Int32 => ("jsonb_to_number", "integer"),
        DataType::Int64 => ("jsonb_to_number", "bigint"),
        DataType::Float32 => ("jsonb_to_number", "real"),
        DataType::Float64 => ("jsonb_to_number", "double precision"),
        DataType::Decimal128(..) | DataType::Decimal256(..) => ("jsonb_to_number", "numeric"),
        _ => return None,
    };
    // A number is no document any more.
    Some(cast(call(function, vec![document.clone(), lit(name)])?, to.clone()))
}
