//! String literals beside values of other types, which PostgreSQL parses as literals of those
//! types: `b IN ('t', 'f')`, `CASE b WHEN 't' ..`, `coalesce(b, 'f')`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::core::{coalesce, greatest, least, nullif};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarUDF, cast};
use datafusion::optimizer::AnalyzerRule;

use super::super::around::{Around, around};
use super::super::numbers::common_type;
use super::super::numbers::written::common_of_arguments;
use super::super::row::is_text;
use super::blanks::{in_list, trim_beside_rows, untell};
use super::dates;
use super::marked::field_of;
use super::operands::{self, OF_ONE_TYPE};
use super::operators::{as_array, narrow, trim_literals, type_literals};
use crate::named::{map_named, schema_within};
use crate::types::Mark;

/// Functions of an array and an element, where a NULL as the array gets a type.
const OF_ELEMENTS: [&str; 3] = ["array_append", "array_prepend", "array_remove"];

/// Gives string literals the type of neighbouring operands, in constructs without a planned
/// operator.
#[derive(Debug)]
pub struct Quoted;

impl AnalyzerRule for Quoted {
    fn name(&self) -> &str {
        "texts_in_quotes"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_changed = false;
        let transformed = plan.transform_up_with_subqueries(|plan| {
            let done = typed_plan(plan)?;
            is_changed |= done.transformed;
            // The nodes above get the new types as well.
            if is_changed { done.map_data(LogicalPlan::recompute_schema) } else { Ok(done) }
        })?;
        Ok(transformed.data)
    }
}

fn typed_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = schema_within(&plan)?;
    map_named(plan, |expression| {
        let mut is_concerned = false;
        expression.apply(|inner| {
            operands::check(inner, &schema)?;
            is_concerned |= match inner {
                Expr::Between(_) | Expr::InList(_) | Expr::Case(_) => true,
                Expr::InSubquery(_) | Expr::SetComparison(_) => true,
                Expr::ScalarFunction(call) => {
                    let name = call.func.name();
                    OF_ONE_TYPE.contains(&name) || OF_ELEMENTS.contains(&name)
                }
                _ => false,
            };
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !is_concerned {
            return Ok(Transformed::no(expression));
        }
        expression.transform_up(|expression| typed(expression, &schema))
    })
}

fn typed(mut expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_changed = match &mut expression {
        Expr::InSubquery(compared) => trim_beside_rows(&mut compared.expr, &mut compared.subquery, schema)?,
        Expr::SetComparison(compared) => trim_beside_rows(&mut compared.expr, &mut compared.subquery, schema)?,
        Expr::Between(between) => {
            let is_trimmed = trim_literals(vec![&mut *between.expr, &mut *between.low, &mut *between.high], schema);
            unify(vec![&mut *between.expr, &mut *between.low, &mut *between.high], schema) || is_trimmed
        }
        Expr::InList(list) => match in_list(list, schema) {
            Some(trimmed) => return Ok(Transformed::yes(trimmed)),
            None => {
                let is_untold = untell(std::iter::once(&mut *list.expr).chain(&mut list.list));
                unify(std::iter::once(&mut *list.expr).chain(&mut list.list).collect(), schema) || is_untold
            }
        },
        Expr::Case(case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            let is_changed = unify(results.chain(case.else_expr.as_deref_mut()).collect(), schema);
            match &mut case.expr {
                Some(compared) => {
                    let others = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                    let operands = std::iter::once(&mut **compared).chain(others);
                    let is_changed = trim_literals(operands.collect(), schema) || is_changed;
                    let others = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                    unify(std::iter::once(&mut **compared).chain(others).collect(), schema) || is_changed
                }
                None => is_changed,
            }
        }
        Expr::ScalarFunction(call) if OF_ONE_TYPE.contains(&call.func.name()) => as_arrays(&mut call.args, schema),
        Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_mut_slice()) {
            ("array_append" | "array_remove", [array, element]) => null_as_array(array, element, schema),
            ("array_prepend", [element, array]) => null_as_array(array, element, schema),
            _ => false,
        },
        _ => false,
    };
    Ok(if is_changed { Transformed::yes(expression) } else { Transformed::no(expression) })
}

fn is_quoted(operand: &Expr) -> bool {
    matches!(operand, Expr::Literal(scalar, _) if is_text(&scalar.data_type()) && !scalar.is_null())
}

fn unify(operands: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    if !operands.iter().any(|operand| is_quoted(operand)) {
        return false;
    }
    if let Some(float) = common_float(&operands, schema) {
        for literal in operands.into_iter().filter(|operand| is_quoted(operand)) {
            *literal = cast(std::mem::take(literal), float.clone());
        }
        return true;
    }
    let others = operands.iter().filter(|operand| !is_quoted(operand));
    let known = others.filter_map(|operand| field_of(operand, schema)).find(|field| !field.data_type().is_null());
    // Arrays are parsed elsewhere, and numbers are compared with texts directly.
    let is_typed = |field: &Field| {
        let found = field.data_type();
        let is_of_text = is_text(found) && Mark::of(field).is_of_text();
        !is_of_text && !found.is_nested() && !found.is_numeric()
    };
    known.is_some_and(|field| is_typed(&field)) && type_literals(operands, schema)
}

/// The common type of the operands that are no string literals, if these are floating-point numbers
/// and others.
fn common_float(operands: &[&mut Expr], schema: &DFSchema) -> Option<DataType> {
    let others = operands.iter().filter(|operand| !is_quoted(operand));
    let types: Vec<DataType> = others.map(|operand| operand.get_type(schema)).collect::<Result<_>>().ok()?;
    let known: Vec<&DataType> = types.iter().filter(|found| !found.is_null()).collect();
    common_type(&known).filter(DataType::is_floating)
}

/// Parses string literals beside an array as arrays.
fn as_arrays(args: &mut [Expr], schema: &DFSchema) -> bool {
    let is_array = |arg: &&Expr| matches!(arg.get_type(schema), Ok(DataType::List(_)));
    let Some(array) = args.iter().find(is_array).cloned() else { return false };
    let mut is_changed = false;
    for arg in args.iter_mut().filter(|arg| is_quoted(arg)) {
        if let Some(read) = as_array(arg.clone(), &array, schema) {
            *arg = read;
            is_changed = true;
        }
    }
    is_changed
}

/// Gives a NULL beside an element the type of its arrays.
fn null_as_array(array: &mut Expr, element: &mut Expr, schema: &DFSchema) -> bool {
    if !matches!(array, Expr::Literal(scalar, _) if scalar.data_type().is_null()) {
        return false;
    }
    *element = narrow(std::mem::take(element));
    let Some(field) = field_of(element, schema).filter(|field| !field.data_type().is_null()) else { return false };
    let Ok(null) = ScalarValue::try_from(DataType::new_list(field.data_type().clone(), true)) else { return false };
    let mark = Mark::of(&field).of_array();
    let list = Field::new("", null.data_type(), true).with_metadata(mark.metadata(HashMap::new()));
    *array = Expr::Literal(null, Some(FieldMetadata::new_from_field(&list)));
    true
}

/// Functions that return one of their arguments; they parse texts as values of the other arguments'
/// type.
pub(in super::super) fn functions() -> Vec<ScalarUDF> {
    [coalesce(), greatest(), least()]
        .map(|inner| around(inner, OneOf))
        .into_iter()
        .chain([around(nullif(), NullIf)])
        .collect()
}

/// The field of a result that is one of the arguments.
fn one_of_arguments(inner: &ScalarUDF, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    match common_of_arguments(&args) {
        Some(common) => Ok(Arc::new(Field::new(inner.name(), common, true))),
        None => inner.return_field_from_args(args),
    }
}

#[derive(Debug)]
struct NullIf;

impl Around for NullIf {
    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.scalar_arguments {
            // Only the first argument is a result.
            [Some(literal), _] if is_text(&literal.data_type()) => one_of_arguments(inner, args),
            _ => inner.return_field_from_args(args),
        }
    }
}

#[derive(Debug)]
struct OneOf;

impl Around for OneOf {
    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        one_of_arguments(inner, args)
    }

    fn coerce_types(&self, inner: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        let known: Vec<DataType> =
            types.iter().filter(|found| !is_text(found) && !found.is_null() && !found.is_nested()).cloned().collect();
        let numbers: Vec<&DataType> = known.iter().collect();
        let common = common_type(&numbers).or_else(|| dates::common_type(&numbers));
        if let Some(common) = common.filter(|_| !types.iter().any(DataType::is_nested)) {
            return Ok(vec![common; types.len()]);
        }
        // A string literal is parsed as an array; any other text beside an array is rejected.
        if types.iter().any(DataType::is_nested) && types.iter().any(is_text) {
            let arrays: Vec<DataType> = types.iter().filter(|found| !is_text(found)).cloned().collect();
            let common = inner.coerce_types(&arrays)?;
            return Ok(common.first().map_or_else(|| types.to_vec(), |common| vec![common.clone(); types.len()]));
        }
        if known.is_empty() || !types.iter().any(is_text) {
            return inner.coerce_types(types);
        }
        let common = inner.coerce_types(&known)?;
        Ok(common.first().map_or_else(|| types.to_vec(), |common| vec![common.clone(); types.len()]))
    }
}
