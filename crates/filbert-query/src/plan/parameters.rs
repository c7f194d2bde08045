//! The types of parameters of which neither the client nor an operator tells anything: that of what they stand beside.
//!
//! A parameter in an array, in `coalesce`, `nullif`, `greatest`, `least` or as a result of `CASE` has the type of the others there, as a text in
//! quotes has in PostgreSQL.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::logical_plan::{Projection, Union};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::named::map_named;
use crate::plan::planner::unaliased;

/// Functions whose arguments are of one type.
const OF_ONE_TYPE: [&str; 7] = ["coalesce", "nullif", "greatest", "least", "nvl", "ifnull", "make_array"];

/// Gives parameters of a plan the types of what they stand beside.
pub(crate) fn infer_in_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    let transformed = plan.transform_up_with_subqueries(|plan| {
        let plan = match plan {
            LogicalPlan::Union(union) => return in_union(union),
            plan => plan,
        };
        let schema = merge_schema(&plan.inputs());
        let transformed = map_named(plan, |expression| {
            if !has_open(&expression) {
                return Ok(Transformed::no(expression));
            }
            infer(expression, &schema)
        })?;
        if !transformed.transformed {
            return Ok(transformed);
        }
        transformed.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(transformed.data)
}

/// Parameters that are columns of one query of a `UNION` have the types of the columns of the others.
fn in_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let open_columns = |input: &LogicalPlan| match input {
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().map(|expr| is_open(unaliased(expr))).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    let open: Vec<Vec<bool>> = union.inputs.iter().map(|input| open_columns(input)).collect();
    if !open.iter().flatten().any(|open| *open) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let mut known: Vec<Option<FieldRef>> = Vec::new();
    for (input, open) in union.inputs.iter().zip(&open) {
        for (at, field) in input.schema().fields().iter().enumerate() {
            known.resize(known.len().max(at + 1), None);
            let is_known = !open.get(at).is_some_and(|open| *open) && !field.data_type().is_null();
            if let Some(place @ None) = known.get_mut(at)
                && is_known
            {
                *place = Some(Arc::clone(field));
            }
        }
    }
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for input in &union.inputs {
        inputs.push(match input.as_ref() {
            LogicalPlan::Projection(projection) => {
                let mut exprs = projection.expr.clone();
                for (expr, wanted) in exprs.iter_mut().zip(&known) {
                    let name = expr.schema_name().to_string();
                    if is_open(unaliased(expr)) {
                        let mut inner = unaliased(expr).clone();
                        give(std::iter::once(&mut inner), wanted.as_ref());
                        *expr = inner.alias(name);
                    }
                }
                Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, Arc::clone(&projection.input))?))
            }
            _ => Arc::clone(input),
        });
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// As [`infer_in_plan`], of an expression.
pub(crate) fn infer(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expression.transform_up(|expression| {
        Ok(match expression {
            Expr::ScalarFunction(mut call) if OF_ONE_TYPE.contains(&call.func.name()) => {
                let wanted = common_type(call.args.iter(), schema);
                let changed = give(call.args.iter_mut(), wanted.as_ref());
                Transformed::new_transformed(Expr::ScalarFunction(call), changed)
            }
            Expr::Case(mut case) => {
                let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
                let wanted = common_type(results.chain(case.else_expr.as_deref()), schema);
                let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
                let changed = give(results.chain(case.else_expr.as_deref_mut()), wanted.as_ref());
                Transformed::new_transformed(Expr::Case(case), changed)
            }
            other => Transformed::no(other),
        })
    })
}

fn is_open(expression: &Expr) -> bool {
    matches!(expression, Expr::Placeholder(placeholder) if placeholder.field.is_none())
}

fn has_open(expression: &Expr) -> bool {
    expression.exists(|expression| Ok(is_open(expression))).unwrap_or(false)
}

/// The type of what stands beside parameters: the largest of the numbers, else the first.
fn common_type<'e>(siblings: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> Option<FieldRef> {
    let mut found: Option<FieldRef> = None;
    for sibling in siblings {
        let field = match sibling {
            Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => {
                Arc::new(Field::new("", DataType::Int32, true))
            }
            sibling if is_open(sibling) => continue,
            sibling => match sibling.to_field(schema) {
                Ok((_, field)) => field,
                Err(_) => continue,
            },
        };
        let is_larger = |known: &FieldRef| rank(field.data_type()) > rank(known.data_type());
        if !field.data_type().is_null() && found.as_ref().is_none_or(is_larger) {
            found = Some(field);
        }
    }
    found
}

/// In which order numbers become others of them.
fn rank(data_type: &DataType) -> u8 {
    match data_type {
        DataType::Int8 => 1,
        DataType::Int16 => 2,
        DataType::Int32 => 3,
        DataType::Int64 => 4,
        decimal if decimal.is_decimal() => 5,
        DataType::Float32 => 6,
        DataType::Float64 => 7,
        _ => 0,
    }
}

/// Gives parameters a type; whether there were any.
fn give<'e>(siblings: impl Iterator<Item = &'e mut Expr>, wanted: Option<&FieldRef>) -> bool {
    let Some(wanted) = wanted else { return false };
    let mut changed = false;
    for sibling in siblings {
        if let Expr::Placeholder(placeholder) = sibling
            && placeholder.field.is_none()
        {
            let field = wanted.as_ref().clone().with_name(&placeholder.id).with_nullable(true);
            *placeholder = Placeholder::new_with_field(placeholder.id.clone(), Some(Arc::new(field)));
            changed = true;
        }
    }
    changed
}
