//! Types that depend on neighbouring expressions, set right after planning: string literals beside
//! decimals and as elements of arrays, and casts of arrays.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, cast};
use filbert_dialect::calls::{CAST_ITEMS, COMPARE_ALL, COMPARE_ANY};
use filbert_grid::query::Dialect;

use crate::elements::ARRAY_LIKE_UDF;
use crate::named::{map_named, schema_within};
use crate::numbers::written::{exact, is_quoted, widen_operands};
use crate::postgres::marked::field_of_items;
use crate::postgres::operators::{self, literal_like, type_literals};
use crate::postgres::{constructed, item_casts, operands};
use crate::types::innermost;

/// Sets the types in a plan.
///
/// # Errors
/// Columns of a table are ambiguous.
pub fn with_related_types(plan: LogicalPlan, dialect: Dialect) -> Result<LogicalPlan> {
    let mut is_concerned = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            is_concerned |= concerns(expression)?;
            Ok(if is_concerned { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    if !is_concerned {
        return Ok(plan);
    }
    let mut is_changed = false;
    let transformed = plan.transform_up_with_subqueries(|plan| {
        let schema = schema_within(&plan)?;
        let transformed = map_named(plan, |expression| related_within(expression, &schema, dialect))?;
        is_changed |= transformed.transformed;
        // The nodes above get the new types as well.
        if is_changed { transformed.map_data(LogicalPlan::recompute_schema) } else { Ok(transformed) }
    })?;
    Ok(transformed.data)
}

/// Like [`with_related_types`], for an expression over rows with this schema.
///
/// # Errors
/// In PostgreSQL's dialect: the operands of `IS DISTINCT FROM` cannot be compared.
pub fn related_within(expression: Expr, schema: &DFSchema, dialect: Dialect) -> Result<Transformed<Expr>> {
    if !concerns(&expression)? {
        return Ok(Transformed::no(expression));
    }
    expression.transform_up(|mut inner| {
        if let Some(mut cast) = constructed::cast_element(&inner, schema) {
            planned_cast(&mut cast, schema);
            return Ok(Transformed::yes(cast));
        }
        let is_changed = match &mut inner {
            // DataFusion casts the second part of a recursive query to the types of the first one.
            Expr::Cast(cast)
                if dialect == Dialect::Postgres && is_quoted(&cast.expr) && cast.field.data_type().is_binary() =>
            {
                let read = literal_like(cast.expr.as_ref().clone(), &cast.field);
                let is_read = read.is_some();
                read.into_iter().for_each(|read| inner = read);
                is_read
            }
            Expr::Cast(cast) if dialect == Dialect::Postgres => {
                let is_changed = cast_array(cast, schema);
                planned_cast(&mut inner, schema) || is_changed
            }
            Expr::ScalarFunction(call) if call.func.name() == CAST_ITEMS => planned_cast(&mut inner, schema),
            Expr::ScalarFunction(call) if items_of(call.func.name()).is_some() => type_items(call, schema),
            Expr::ScalarFunction(call) if ALTERNATIVES.contains(&call.func.name()) => {
                let is_typed = type_literals(call.args.iter_mut().collect(), schema);
                widen_operands(&mut inner, schema) || is_typed
            }
            Expr::WindowFunction(window) if DEFAULTS.contains(&window.fun.name()) => {
                let args = window.params.args.iter_mut().enumerate();
                let is_typed = type_literals(args.filter(|(at, _)| *at != 1).map(|(_, arg)| arg).collect(), schema);
                if let [value, _, default] = window.params.args.as_mut_slice() {
                    widen_array(value, default, schema);
                }
                widen_operands(&mut inner, schema) || is_typed
            }
            Expr::BinaryExpr(compared) if is_distinction(compared.op) && dialect == Dialect::Postgres => {
                operands::equal(&compared.left, [&*compared.right].into_iter(), schema)?;
                match distinction(compared, schema) {
                    Some(distinction) => {
                        inner = distinction;
                        true
                    }
                    None => widen_operands(&mut inner, schema),
                }
            }
            other => widen_operands(other, schema),
        };
        Ok(if is_changed { Transformed::yes(inner) } else { Transformed::no(inner) })
    })
}

fn concerns(expression: &Expr) -> Result<bool> {
    expression.exists(|inner| {
        let is_array = |field: &FieldRef| matches!(field.data_type(), DataType::List(_));
        Ok(match inner {
            Expr::Cast(cast) => is_array(&cast.field),
            Expr::ScalarFunction(call) => {
                let is_array = call.func.name() == CAST_ITEMS || items_of(call.func.name()).is_some();
                is_array || constructed::is_part(inner) || is_quoted(inner)
            }
            Expr::BinaryExpr(compared) => is_distinction(compared.op),
            other => is_quoted(other),
        })
    })
}

/// Functions that return one of their arguments, or an array of them.
const ALTERNATIVES: [&str; 4] = ["coalesce", "greatest", "least", "make_array"];
/// Window functions with a default value.
const DEFAULTS: [&str; 2] = ["lag", "lead"];

fn is_distinction(op: Operator) -> bool {
    matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
}

/// `IS DISTINCT FROM` with the meaning of `=`, where Arrow compares otherwise.
fn distinction(compared: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let (left, right) = (compared.left.as_ref(), compared.right.as_ref());
    let are_arrays = [left, right].iter().any(|side| side.get_type(schema).is_ok_and(|found| depth(&found) > 0));
    if !are_arrays {
        return operators::compared(compared.op, left.clone(), right.clone(), schema);
    }
    let array =
        |text: &Expr, array: &Expr| operators::as_array(text.clone(), array, schema).filter(|_| is_quoted(text));
    let (left, right) = match (array(left, right), array(right, left)) {
        (Some(typed), _) => (typed, right.clone()),
        (None, Some(typed)) => (left.clone(), typed),
        _ => return None,
    };
    Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op: compared.op, right: Box::new(right) }))
}

/// Gives an array of numbers the type of its default value, which has all digits of both.
fn widen_array(value: &mut Expr, default: &Expr, schema: &DFSchema) {
    let (Ok(own), Ok(wanted)) = (value.get_type(schema), default.get_type(schema)) else { return };
    if depth(&own) == depth(&wanted) && depth(&own) > 0 && innermost(&wanted).is_decimal() && own != wanted {
        *value = cast(value.clone(), wanted);
    }
}

/// The position of the array among the arguments of a function of arrays and elements, and of the
/// first element.
fn items_of(function: &str) -> Option<(usize, usize)> {
    match function {
        "array_append" | "array_position" | "array_positions" | "array_remove" | "array_replace" => Some((0, 1)),
        "array_prepend" => Some((1, 0)),
        COMPARE_ANY | COMPARE_ALL => Some((2, 1)),
        _ => None,
    }
}

/// Gives string literals that are elements the type of the array's elements.
fn type_items(call: &mut ScalarFunction, schema: &DFSchema) -> bool {
    let Some((place, first)) = items_of(call.func.name()) else { return false };
    let Some(array) = call.args.get(place) else { return false };
    let is_array = matches!(array.get_type(schema), Ok(DataType::List(_)));
    let Some(item) = field_of_items(array, schema).filter(|_| is_array) else { return false };
    let mut is_changed = false;
    for (at, arg) in call.args.iter_mut().enumerate() {
        if at < first || at == place {
            continue;
        }
        if !is_quoted(arg) {
            if arg.get_type(schema).is_ok_and(|found| becomes_item(&found, item.data_type())) {
                *arg = cast(arg.clone(), item.data_type().clone());
                is_changed = true;
            }
            continue;
        }
        let number = || item.data_type().is_numeric().then(|| cast(arg.clone(), item.data_type().clone()));
        if let Some(typed) = exact(arg, item.data_type()).or_else(|| literal_like(arg.clone(), &item)).or_else(number) {
            *arg = typed;
            is_changed = true;
        }
    }
    is_changed
}

/// Whether a value beside an array takes the type of its elements, which is the preferred or the
/// wider one.
fn becomes_item(value: &DataType, item: &DataType) -> bool {
    match item {
        DataType::Float64 => value.is_numeric() && value != item,
        DataType::Float32 => value.is_integer() || value.is_decimal(),
        DataType::Timestamp(..) => matches!(value, DataType::Date32),
        _ => false,
    }
}

/// Replaces a cast of an array by the function that casts elements; returns whether it did.
fn planned_cast(expression: &mut Expr, schema: &DFSchema) -> bool {
    match item_casts::planned(expression, schema) {
        Some(planned) => {
            *expression = planned;
            true
        }
        None => false,
    }
}

/// Settles a cast to an array; returns whether it changed.
fn cast_array(cast: &mut Cast, schema: &DFSchema) -> bool {
    read_array(cast, schema) || deepen(cast, schema)
}

/// Gives a cast to an array as many dimensions as its operand has: `text[]` is an array of any
/// number of dimensions.
fn deepen(cast: &mut Cast, schema: &DFSchema) -> bool {
    let Ok(from) = cast.expr.get_type(schema) else { return false };
    let missing = depth(&from).saturating_sub(depth(cast.field.data_type()));
    if missing == 0 || depth(cast.field.data_type()) == 0 {
        return false;
    }
    let item = |of: DataType| DataType::List(Arc::new(Field::new_list_field(of, true)));
    let to = (0..missing).fold(cast.field.data_type().clone(), |to, _| item(to));
    cast.field = Arc::new(cast.field.as_ref().clone().with_data_type(to));
    true
}

/// Parses a text that is cast to an array; Arrow would make it the only element of one.
fn read_array(cast: &mut Cast, schema: &DFSchema) -> bool {
    let DataType::List(item) = cast.field.data_type() else { return false };
    let is_text = cast.expr.get_type(schema).is_ok_and(|from| from.is_string());
    let Ok(item) = ScalarValue::try_from(item.data_type()) else { return false };
    if !is_text {
        return false;
    }
    let args = vec![cast.expr.as_ref().clone(), Expr::Literal(item, None)];
    *cast.expr = Expr::ScalarFunction(ScalarFunction { func: ARRAY_LIKE_UDF.clone(), args });
    true
}

fn depth(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(item) => 1 + depth(item.data_type()),
        _ => 0,
    }
}
