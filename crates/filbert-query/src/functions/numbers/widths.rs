//! Numbers whose common type is another in DataFusion, or none: decimals that together would have more digits than a decimal can
//! have get as many behind the point as the one with the most, and what does not fit then is an overflow; beside floating-point
//! numbers all are such.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::logical_plan::Union;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, cast};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::decimals::{exact_type, scale_of};
use crate::named::map_named;

/// Digits of a decimal at most.
const DIGITS_MAX: i32 = 76;

/// The type that decimals of several types have in common, where DataFusion knows none.
fn common<'t>(types: impl Iterator<Item = &'t DataType> + Clone) -> Option<DataType> {
    let exact = types.filter(|found| found.is_decimal() || found.is_integer()).map(exact_type);
    let (mut has_wide, mut before, mut behind) = (false, 0, 0);
    for found in exact {
        let (DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) = found else { continue };
        has_wide |= matches!(found, DataType::Decimal256(..));
        before = before.max(i32::from(precision) - i32::from(scale));
        behind = behind.max(i32::from(scale));
    }
    let behind_max = i8::try_from(behind).ok()?;
    (has_wide && before + behind > DIGITS_MAX).then_some(DataType::Decimal256(76, behind_max))
}

/// The type of floating-point numbers that decimals beside them become.
fn floating<'t>(types: impl Iterator<Item = &'t DataType> + Clone) -> Option<DataType> {
    let has = |wanted: fn(&DataType) -> bool| types.clone().any(wanted);
    if !has(DataType::is_decimal) || !has(DataType::is_floating) {
        return None;
    }
    Some(if has(|found| *found == DataType::Float64) { DataType::Float64 } else { DataType::Float32 })
}

/// The type that numbers have together; `None` if something else is among them.
pub(crate) fn common_type(types: &[&DataType]) -> Option<DataType> {
    if !types.iter().all(|found| found.is_numeric()) {
        return None;
    }
    let of_all = || types.iter().copied();
    let special = floating(of_all()).or_else(|| common(of_all())).or_else(|| whole(of_all()));
    special.or_else(|| {
        let (first, rest) = types.split_first()?;
        let rest: Vec<DataType> = rest.iter().map(|other| (*other).clone()).collect();
        get_coerce_type_for_case_expression(&rest, Some(first))
    })
}

fn as_common(expr: &Expr, found: &DataType, to: &DataType) -> Expr {
    match found.is_decimal() || found.is_integer() {
        true if found != to => cast(expr.clone(), to.clone()),
        _ => expr.clone(),
    }
}

/// A comparison of decimals; `None` where DataFusion has it.
pub(super) fn comparison(raw: &RawBinaryExpr, left: &DataType, right: &DataType) -> Option<Expr> {
    let op = match raw.op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    };
    scale_of(left).or(scale_of(right))?;
    let both = [left, right].into_iter().all(|found| found.is_decimal() || found.is_integer());
    let to = common([left, right].into_iter()).filter(|_| both)?;
    let (left, right) = (as_common(&raw.left, left, &to), as_common(&raw.right, right, &to));
    Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
}

/// Gives the values of `BETWEEN`, `IN` and `CASE` their common type.
#[derive(Debug)]
pub(crate) struct Widths;

impl AnalyzerRule for Widths {
    fn name(&self) -> &str {
        "widths_of_decimals"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_changed = false;
        let transformed = plan.transform_up_with_subqueries(|plan| {
            let done = match plan {
                LogicalPlan::Union(union) => united(union)?,
                other => widened(other)?,
            };
            is_changed |= done.transformed;
            // What is above has the new types as well.
            if is_changed { done.map_data(LogicalPlan::recompute_schema) } else { Ok(done) }
        })?;
        Ok(transformed.data)
    }
}

fn widened(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut schema: Option<Arc<DFSchema>> = None;
    let inputs = merge_schema(&plan.inputs());
    map_named(plan, |expression| {
        let is_one = |inner: &Expr| Ok(matches!(inner, Expr::Between(_) | Expr::InList(_) | Expr::Case(_)));
        if !expression.exists(is_one)? {
            return Ok(Transformed::no(expression));
        }
        let schema = schema.get_or_insert_with(|| Arc::new(inputs.clone()));
        expression.transform_up(|expression| Ok(one(expression, schema)))
    })
}

/// The type of whole numbers of which some are counts of a window's rows, which have no sign: they are not decimals together.
fn whole<'t>(types: impl Iterator<Item = &'t DataType> + Clone) -> Option<DataType> {
    let mut with_sign = types.clone().filter(|found| found.is_signed_integer());
    let is_mixed = types.clone().any(|found| *found == DataType::UInt64) && with_sign.next().is_some();
    (is_mixed && types.clone().all(DataType::is_integer)).then_some(DataType::Int64)
}

/// Rows of several queries, of which some have decimals where others have floating-point numbers.
fn united(union: Union) -> Result<Transformed<LogicalPlan>> {
    let types =
        |at: usize| union.inputs.iter().filter_map(move |input| Some(input.schema().fields().get(at)?.data_type()));
    let wanted: Vec<Option<DataType>> =
        (0..union.schema.fields().len()).map(|at| floating(types(at)).or_else(|| whole(types(at)))).collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for input in &union.inputs {
        let columns = input.schema().columns().into_iter().zip(&wanted);
        let items = columns.map(|(column, wanted)| {
            let name = column.name.clone();
            match wanted {
                Some(wanted) => cast(Expr::Column(column), wanted.clone()).alias(name),
                None => Expr::Column(column),
            }
        });
        let items: Vec<Expr> = items.collect();
        inputs.push(Arc::new(LogicalPlanBuilder::from(Arc::clone(input)).project(items)?.build()?));
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

fn one(mut expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_changed = match &mut expression {
        Expr::Between(between) => unify(vec![&mut *between.expr, &mut *between.low, &mut *between.high], schema),
        Expr::InList(list) => unify(std::iter::once(&mut *list.expr).chain(&mut list.list).collect(), schema),
        Expr::Case(case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            let is_changed = unify(results.chain(case.else_expr.as_deref_mut()).collect(), schema);
            match &mut case.expr {
                Some(compared) => {
                    let others = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                    unify(std::iter::once(&mut **compared).chain(others).collect(), schema) || is_changed
                }
                None => is_changed,
            }
        }
        _ => false,
    };
    if is_changed { Transformed::yes(expression) } else { Transformed::no(expression) }
}

fn unify(operands: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Option<Vec<DataType>> = operands.iter().map(|operand| operand.get_type(schema).ok()).collect();
    let Some(types) = types else { return false };
    let is_number = |found: &DataType| found.is_numeric() || found.is_null();
    let to = floating(types.iter()).or_else(|| common(types.iter()));
    let Some(to) = to.filter(|_| types.iter().all(is_number)) else { return false };
    for (operand, found) in operands.into_iter().zip(&types) {
        *operand = as_common(operand, found, &to);
    }
    true
}
