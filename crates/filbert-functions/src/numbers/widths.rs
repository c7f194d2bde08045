//! Numbers with another common type than in DataFusion, or with none there.
//!
//! Decimals of 128 bits that together need more digits are combined as decimals of 256 bits.
//! Decimals that together would exceed the maximum precision get the largest of their scales; a
//! number that does not fit then is an overflow. Beside floating-point numbers all decimals become
//! floating-point. In PostgreSQL's dialect a `real` and an exact number are compared as
//! `double precision`, which has digits that a `real` lacks: 1.1 as a `real` is not equal to 1.1.
//! In the other dialects the exact number becomes a `real`, and both are equal.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{InSubquery, SetComparison};
use datafusion::logical_expr::logical_plan::Union;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, cast, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use filbert_grid::query::Dialect;

use super::decimals::{FREE, exact_type, number_at, scale_of};
use crate::named::{map_named, with_types_of_inputs};

/// The maximum precision of a decimal.
const DIGITS_MAX: i32 = 76;
/// The maximum precision of a decimal of 128 bits.
const SHORT_DIGITS_MAX: i32 = 38;

/// The common type of decimals, if DataFusion has none.
pub(super) fn wide<'t>(types: impl Iterator<Item = &'t DataType> + Clone) -> Option<DataType> {
    let exact = types.filter(|found| found.is_decimal() || found.is_integer()).map(exact_type);
    let (mut has_wide, mut before, mut behind) = (false, 0, 0);
    for found in exact {
        let (DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) = found else { continue };
        has_wide |= matches!(found, DataType::Decimal256(..));
        before = before.max(i32::from(precision) - i32::from(scale));
        behind = behind.max(i32::from(scale));
    }
    let digits_max = if has_wide { DIGITS_MAX } else { SHORT_DIGITS_MAX };
    if before + behind <= digits_max {
        return None;
    }
    let precision = u8::try_from((before + behind).min(DIGITS_MAX)).ok()?;
    Some(DataType::Decimal256(precision, i8::try_from(behind).ok()?))
}

/// The common type of two exact numbers, if DataFusion has none.
fn wide_of_two(left: &DataType, right: &DataType) -> Option<DataType> {
    let both = [left, right];
    both.iter().all(|found| is_exact(found)).then(|| wide(both.into_iter())).flatten()
}

/// The type of an operand. A whole number that is written out has its own digits only, so that an
/// index serves a comparison of a decimal with it.
fn type_of_operand(operand: &Expr, found: &DataType) -> DataType {
    let number = match operand {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => *number,
        Expr::Literal(ScalarValue::Int32(Some(number)), _) => i64::from(*number),
        _ => return found.clone(),
    };
    let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    DataType::Decimal128(u8::try_from(digits).unwrap_or(20), 0)
}

fn is_exact(data_type: &DataType) -> bool {
    data_type.is_decimal() || data_type.is_integer()
}

/// The floating-point type that decimals beside it are converted to.
fn floating<'t>(types: impl Iterator<Item = &'t DataType> + Clone) -> Option<DataType> {
    let has = |wanted: fn(&DataType) -> bool| types.clone().any(wanted);
    if !has(DataType::is_decimal) || !has(DataType::is_floating) {
        return None;
    }
    Some(if has(|found| *found == DataType::Float64) { DataType::Float64 } else { DataType::Float32 })
}

/// The type in which two numbers are compared, if it differs from DataFusion's.
pub fn compared_as(left: &DataType, right: &DataType, dialect: Dialect) -> Option<DataType> {
    with_float_as(left, right, dialect).or_else(|| wide_of_two(left, right))
}

/// The type in which a floating-point number and an exact number are compared, if it differs from
/// DataFusion's.
fn with_float_as(left: &DataType, right: &DataType, dialect: Dialect) -> Option<DataType> {
    if dialect != Dialect::Postgres {
        return floating([left, right].into_iter());
    }
    let is_mixed = |float: &DataType, exact: &DataType| {
        let is_wide = *float == DataType::Float64;
        float.is_floating() && (exact.is_decimal() || (exact.is_integer() && !is_wide))
    };
    (is_mixed(left, right) || is_mixed(right, left)).then_some(DataType::Float64)
}

/// The common type of numbers; `None` if other types are among them.
pub fn common_type(types: &[&DataType]) -> Option<DataType> {
    if !types.iter().all(|found| found.is_numeric()) {
        return None;
    }
    let of_all = || types.iter().copied();
    let special = floating(of_all()).or_else(|| wide(of_all())).or_else(|| whole(of_all()));
    special.or_else(|| {
        let (first, rest) = types.split_first()?;
        let rest: Vec<DataType> = rest.iter().map(|other| (*other).clone()).collect();
        get_coerce_type_for_case_expression(&rest, Some(first))
    })
}

fn as_common(expr: &Expr, found: &DataType, to: &DataType) -> Expr {
    match is_exact(found) {
        true if found != to => cast(expr.clone(), to.clone()),
        _ => expr.clone(),
    }
}

/// A comparison of decimals; `None` if DataFusion supports it.
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
    let to = wide_of_two(&type_of_operand(&raw.left, left), &type_of_operand(&raw.right, right))?;
    let (left, right) = (as_common(&raw.left, left, &to), as_common(&raw.right, right, &to));
    Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
}

/// Gives compared operands, and the values of `CASE`, their common type.
#[derive(Debug)]
pub struct Widths {
    /// The dialect of the statements.
    pub dialect: Dialect,
}

impl AnalyzerRule for Widths {
    fn name(&self) -> &str {
        "widths_of_decimals"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_changed = false;
        let transformed = plan.transform_up_with_subqueries(|plan| {
            let done = match plan {
                LogicalPlan::Union(union) => united(union)?,
                LogicalPlan::Join(join) => {
                    let done = joined(join, self.dialect);
                    let is_joined = done.transformed;
                    let done = widened(done.data, self.dialect)?;
                    Transformed::new_transformed(done.data, done.transformed || is_joined)
                }
                other => widened(other, self.dialect)?,
            };
            is_changed |= done.transformed;
            // The nodes above get the new types as well.
            if is_changed { done.map_data(LogicalPlan::recompute_schema) } else { Ok(done) }
        })?;
        Ok(transformed.data)
    }
}

fn widened(plan: LogicalPlan, dialect: Dialect) -> Result<Transformed<LogicalPlan>> {
    let mut schema: Option<Arc<DFSchema>> = None;
    let inputs = merge_schema(&plan.inputs());
    map_named(plan, |expression| {
        let is_one = |inner: &Expr| {
            Ok(match inner {
                Expr::Between(_) | Expr::InList(_) | Expr::Case(_) => true,
                Expr::InSubquery(_) | Expr::SetComparison(_) => true,
                Expr::BinaryExpr(compared) => compares(compared.op),
                _ => false,
            })
        };
        if !expression.exists(is_one)? {
            return Ok(Transformed::no(expression));
        }
        let schema = schema.get_or_insert_with(|| Arc::new(inputs.clone()));
        expression.transform_up(|expression| one(expression, schema, dialect))
    })
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// The keys of a join with `USING`.
fn joined(mut join: Join, dialect: Dialect) -> Transformed<LogicalPlan> {
    let mut is_changed = false;
    for (left, right) in &mut join.on {
        let types = (left.get_type(join.left.schema()), right.get_type(join.right.schema()));
        let (Ok(of_left), Ok(of_right)) = types else { continue };
        if let Some(to) = compared_as(&of_left, &of_right, dialect) {
            (*left, *right) = (as_type(left, &of_left, &to), as_type(right, &of_right, &to));
            is_changed = true;
        }
    }
    Transformed::new_transformed(LogicalPlan::Join(join), is_changed)
}

/// The common type of signed whole numbers and unsigned row counts of a window. It is not a
/// decimal.
fn whole<'t>(types: impl Iterator<Item = &'t DataType> + Clone) -> Option<DataType> {
    let mut with_sign = types.clone().filter(|found| found.is_signed_integer());
    let is_mixed = types.clone().any(|found| *found == DataType::UInt64) && with_sign.next().is_some();
    (is_mixed && types.clone().all(DataType::is_integer)).then_some(DataType::Int64)
}

/// A union in which a column has numbers of different types.
fn united(union: Union) -> Result<Transformed<LogicalPlan>> {
    let union = with_types_of_inputs(union)?;
    let types =
        |at: usize| union.inputs.iter().filter_map(move |input| Some(input.schema().fields().get(at)?.data_type()));
    let exact = |at| types(at).all(|found| is_exact(found) || found.is_null()).then(|| wide(types(at))).flatten();
    let wanted = |at| floating(types(at)).or_else(|| whole(types(at))).or_else(|| exact(at));
    let wanted: Vec<Option<DataType>> = (0..union.schema.fields().len()).map(wanted).collect();
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

fn one(mut expression: Expr, schema: &DFSchema, dialect: Dialect) -> Result<Transformed<Expr>> {
    let is_changed = match &mut expression {
        Expr::BinaryExpr(compared) if compares(compared.op) => {
            compare(&mut compared.left, &mut compared.right, schema, dialect)
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => compare_with_rows(expr, subquery, schema, dialect)?,
        Expr::SetComparison(SetComparison { expr, subquery, .. }) => {
            compare_with_rows(expr, subquery, schema, dialect)?
        }
        Expr::Between(between) => {
            let all = vec![&mut *between.expr, &mut *between.low, &mut *between.high];
            unify(all, schema, Some(dialect))
        }
        Expr::InList(list) => {
            // Several constants become an array, and its elements have the type of the searched
            // value.
            let constants = list.list.iter().filter(|item| item.column_refs().is_empty()).count();
            let all = std::iter::once(&mut *list.expr).chain(&mut list.list).collect();
            unify(all, schema, (constants < 2).then_some(dialect))
        }
        Expr::Case(case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            let is_changed = unify(results.chain(case.else_expr.as_deref_mut()).collect(), schema, None);
            match &mut case.expr {
                Some(compared) => {
                    let others = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                    unify(std::iter::once(&mut **compared).chain(others).collect(), schema, Some(dialect)) || is_changed
                }
                None => is_changed,
            }
        }
        _ => false,
    };
    Ok(if is_changed { Transformed::yes(expression) } else { Transformed::no(expression) })
}

/// Gives two numbers the type in which they are compared; returns whether it changed them.
fn compare(left: &mut Expr, right: &mut Expr, schema: &DFSchema, dialect: Dialect) -> bool {
    let (Ok(of_left), Ok(of_right)) = (left.get_type(schema), right.get_type(schema)) else { return false };
    let wide = || wide_of_two(&type_of_operand(left, &of_left), &type_of_operand(right, &of_right));
    let Some(to) = with_float_as(&of_left, &of_right, dialect).or_else(wide) else { return false };
    // A literal that is exactly a `real` is compared as such, so an index serves the comparison.
    match (as_real(left), as_real(right)) {
        (Some(literal), _) if of_right == DataType::Float32 => *left = literal,
        (_, Some(literal)) if of_left == DataType::Float32 => *right = literal,
        _ => (*left, *right) = (as_type(left, &of_left, &to), as_type(right, &of_right, &to)),
    }
    true
}

/// Like [`compare`], with the rows of a subquery.
fn compare_with_rows(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema, dialect: Dialect) -> Result<bool> {
    let rows = &subquery.subquery;
    let [of_rows] = rows.schema().fields().as_ref() else { return Ok(false) };
    let Ok(of_expr) = expr.get_type(schema) else { return Ok(false) };
    // A text keeps the digits that it is written with.
    let of_text = || (of_expr.is_decimal() && of_rows.data_type().is_string()).then_some(FREE);
    let Some(to) = compared_as(&of_expr, of_rows.data_type(), dialect).or_else(of_text) else { return Ok(false) };
    let items = rows.schema().columns().into_iter().map(|column| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        cast(Expr::Column(column), to.clone()).alias_qualified(relation, name)
    });
    let plan = LogicalPlanBuilder::from(Arc::clone(rows)).project(items.collect::<Vec<_>>())?.build()?;
    *subquery = subquery.with_plan(Arc::new(plan));
    *expr = as_type(expr, &of_expr, &to);
    Ok(true)
}

/// A numeric literal as a `real`, if it is exactly one.
fn as_real(literal: &Expr) -> Option<Expr> {
    let Expr::Literal(scalar, None) = literal else { return None };
    let double: f64 = match scalar.data_type() {
        found if found.is_decimal() => number_at(&scalar.to_array().ok()?, 0)?.to_string().parse().ok()?,
        found if found.is_integer() => scalar.to_string().parse().ok()?,
        _ => return None,
    };
    #[allow(clippy::cast_possible_truncation, reason = "what is lost is looked at")]
    let real = double as f32;
    (f64::from(real) == double).then(|| lit(real))
}

fn as_type(expr: &Expr, found: &DataType, to: &DataType) -> Expr {
    if found == to { expr.clone() } else { cast(expr.clone(), to.clone()) }
}

/// Gives expressions their common type: as results, or as operands of a comparison in a dialect.
fn unify(operands: Vec<&mut Expr>, schema: &DFSchema, compared: Option<Dialect>) -> bool {
    let types: Option<Vec<DataType>> = operands.iter().map(|operand| operand.get_type(schema).ok()).collect();
    let Some(types) = types else { return false };
    let is_number = |found: &DataType| found.is_numeric() || found.is_null();
    if !types.iter().all(is_number) {
        return false;
    }
    // Otherwise the common type of all of them is the type of the comparison.
    let first = types.first().filter(|_| compared == Some(Dialect::Postgres));
    let as_compared = |first| types.iter().find_map(|other| with_float_as(first, other, Dialect::Postgres));
    if let Some(to) = first.and_then(as_compared) {
        for (operand, found) in operands.into_iter().zip(&types) {
            *operand = as_type(operand, found, &to);
        }
        return true;
    }
    let own: Vec<DataType> = operands.iter().zip(&types).map(|(operand, of)| type_of_operand(operand, of)).collect();
    let Some(to) = floating(types.iter()).or_else(|| wide(own.iter())) else { return false };
    for (operand, found) in operands.into_iter().zip(&types) {
        *operand = as_common(operand, found, &to);
    }
    true
}
