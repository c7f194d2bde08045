//! Arithmetic of whole numbers that fails on overflow.
//!
//! DataFusion computes `+`, `-` and `*` in the type of the operands, and wraps around. Here they
//! are computed in 64 bits, and fail beyond that. In Hazelcast's dialect the result has the
//! smallest type that holds every result, as Hazelcast's: a `TINYINT` and a `TINYINT` give a
//! `SMALLINT`.
//!
//! | operator | bits of the result, for operands of `l` and `r` bits |
//! |---|---|
//! | `+`, `-`, `/` | one more than the larger of `l` and `r` |
//! | `*` | `l + r` |
//! | `%` | the larger of `l` and `r` |
//! | `-x`, `ABS(x)` | one more than `x` has |
//!
//! The functions replace the operators at planning. If a type is known only with the values of
//! parameters, an analyzer rule replaces them later, and types are coerced again.

use std::sync::{Arc, LazyLock};

use arrow_array::types::Int64Type;
use arrow_array::{Array, cast::AsArray};
use arrow_schema::DataType;
use datafusion::arrow::compute::kernels::numeric::{add, mul, sub};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr};
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, cast,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use filbert_data::FieldType;
use filbert_dialect::calls::{ABSOLUTE, NEGATED};
use filbert_grid::query::{Dialect, SqlSubject, arrow_type};

use super::math;
use super::numbers;
use super::numbers::decimals::FREE;
use super::numbers::written;
use super::row::{Function, failed, is_integer, is_text, wrong_arguments};
use super::text::JSON_AS_TEXT;
use crate::error::{carried, data_error};
use crate::named::{map_named, schema_within};

static ADD: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(Function::udf("checked_add", coerce, returns, |args| compute(args, Operator::Plus))));
static SUBTRACT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("checked_subtract", coerce, returns, |args| compute(args, Operator::Minus)))
});
static MULTIPLY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("checked_multiply", coerce, returns, |args| compute(args, Operator::Multiply)))
});

static ABS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(math::absolute()));

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    [&ADD, &SUBTRACT, &MULTIPLY].map(|function| function.as_ref().clone()).to_vec()
}

/// The left operands of binary operators that stand for operators with one operand.
pub(super) fn operators() -> [ScalarUDF; 2] {
    let none = |name: &str, types: &[DataType]| {
        if types.is_empty() { Ok(Vec::new()) } else { Err(wrong_arguments(name, types)) }
    };
    [NEGATED, ABSOLUTE].map(|name| Function::udf(name, none, returns, |_| Err(failed("an operand is missing"))))
}

/// Replaces operators by the functions at planning.
#[derive(Debug)]
pub(super) struct Planner {
    pub(super) dialect: Dialect,
}

impl ExprPlanner for Planner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if let Expr::ScalarFunction(call) = &expr.left {
            match call.name() {
                NEGATED => return Ok(PlannerResult::Planned(negated(expr.right, schema))),
                ABSOLUTE => return Ok(PlannerResult::Planned(absolute(expr.right, schema))),
                _ => {}
            }
        }
        if let Some(planned) = super::fields::binary(&expr.left, &expr.op, &expr.right, schema) {
            return Ok(PlannerResult::Planned(planned));
        }
        let expr = if self.dialect == Dialect::Postgres { with_typed_null(expr, schema) } else { expr };
        if self.dialect == Dialect::Postgres
            && let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema))
            && let Some(planned) = numbers::operators::plan(&expr, &left, &right)?
        {
            return Ok(PlannerResult::Planned(planned));
        }
        if self.dialect != Dialect::Hazelcast
            && let Some(planned) = as_in_postgresql(&expr, schema)
        {
            return Ok(PlannerResult::Planned(planned));
        }
        let expr = if self.dialect == Dialect::Hazelcast { at_midnight(expr, schema) } else { expr };
        if self.dialect == Dialect::Hazelcast && expr.op == BinaryOperator::StringConcat {
            return Ok(PlannerResult::Original(of_texts(expr, schema)));
        }
        let (function, op) = match expr.op {
            BinaryOperator::Plus => (&ADD, Operator::Plus),
            BinaryOperator::Minus => (&SUBTRACT, Operator::Minus),
            BinaryOperator::Multiply if is_fine(&expr, schema) => return Ok(product(expr)),
            BinaryOperator::Multiply => (&MULTIPLY, Operator::Multiply),
            BinaryOperator::Divide => return Ok(divided(expr, Operator::Divide, self.dialect, schema)),
            BinaryOperator::Modulo => return Ok(divided(expr, Operator::Modulo, self.dialect, schema)),
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let Some((left, right)) = bits_of_both(&expr, self.dialect, schema) else {
            return Ok(PlannerResult::Original(expr));
        };
        let computed = call(function, vec![expr.left, expr.right]).data;
        Ok(PlannerResult::Planned(of_bits(computed, bits_after(op, left, right))))
    }

    fn plan_aggregate(&self, mut expr: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        if self.dialect == Dialect::Hazelcast
            && let [argument @ Expr::Literal(ScalarValue::Null, _)] = expr.args.as_mut_slice()
            && let Some(of_null) = match expr.func.name() {
                "sum" | "avg" => Some(FREE),
                "min" | "max" => Some(DataType::Int64),
                _ => None,
            }
        {
            *argument = cast(argument.clone(), of_null);
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// `-x` in Hazelcast's dialect.
fn negated(operand: Expr, schema: &DFSchema) -> Expr {
    match bits(&operand, schema) {
        Some(bits) => {
            let zero = Expr::Literal(ScalarValue::Int64(Some(0)), None);
            of_bits(call(&SUBTRACT, vec![zero, operand]).data, bits + 1)
        }
        None if is_null(&operand, schema) => cast(operand, DataType::Int64),
        None => Expr::Negative(Box::new(operand)),
    }
}

/// `ABS(x)` in Hazelcast's dialect.
fn absolute(operand: Expr, schema: &DFSchema) -> Expr {
    match bits(&operand, schema) {
        Some(bits) => of_bits(call(&ABS, vec![cast(operand, DataType::Int64)]).data, bits + 1),
        None if is_null(&operand, schema) => cast(operand, DataType::Int64),
        None => call(&ABS, vec![operand]).data,
    }
}

/// `||` in Hazelcast's dialect, which takes values of all types. At least one operand is a text for
/// DataFusion.
fn of_texts(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let is_other = |operand: &Expr| operand.get_type(schema).is_ok_and(|found| !found.is_string());
    match is_other(&expr.left) && is_other(&expr.right) {
        true => RawBinaryExpr { left: cast(expr.left, DataType::Utf8View), ..expr },
        false => expr,
    }
}

fn is_null(operand: &Expr, schema: &DFSchema) -> bool {
    operand.get_type(schema).is_ok_and(|found| found == DataType::Null)
}

/// The bits of the operands of an operator; `None` if an operand is not a whole number. In
/// Hazelcast's dialect a NULL without a type has as many bits as the other operand.
fn bits_of_both(expr: &RawBinaryExpr, dialect: Dialect, schema: &DFSchema) -> Option<(u32, u32)> {
    let null_takes = |operand: &Expr| dialect == Dialect::Hazelcast && is_null(operand, schema);
    match (bits(&expr.left, schema), bits(&expr.right, schema)) {
        (Some(left), Some(right)) => Some((left, right)),
        (Some(bits), None) if null_takes(&expr.right) => Some((bits, bits)),
        (None, Some(bits)) if null_takes(&expr.left) => Some((bits, bits)),
        _ => None,
    }
}

/// The bits of the result of an operator, for the given bits of the operands.
fn bits_after(op: Operator, left: u32, right: u32) -> u32 {
    match op {
        Operator::Multiply => left + right,
        Operator::Modulo => left.max(right),
        _ => left.max(right) + 1,
    }
}

/// A number that was computed in 64 bits, as the smallest type with `bits` bits beside the sign.
fn of_bits(computed: Expr, bits: u32) -> Expr {
    match bits {
        0..=7 => cast(computed, DataType::Int8),
        8..=15 => cast(computed, DataType::Int16),
        16..=31 => cast(computed, DataType::Int32),
        _ => computed,
    }
}

/// A date beside an interval is a timestamp in Hazelcast's dialect; as a date it would lose the
/// hours.
fn at_midnight(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let is_sum = matches!(expr.op, BinaryOperator::Plus | BinaryOperator::Minus);
    let types = (expr.left.get_type(schema), expr.right.get_type(schema));
    let RawBinaryExpr { op, left, right } = expr;
    let timestamp = |date| cast(date, arrow_type(&FieldType::Timestamp));
    match types {
        (Ok(DataType::Date32), Ok(DataType::Interval(_))) if is_sum => {
            RawBinaryExpr { op, left: timestamp(left), right }
        }
        (Ok(DataType::Interval(_)), Ok(DataType::Date32)) if is_sum => {
            RawBinaryExpr { op, left, right: timestamp(right) }
        }
        _ => RawBinaryExpr { op, left, right },
    }
}

/// Arithmetic with a NULL in the type of the other operand, if that is a number, as in PostgreSQL.
fn with_typed_null(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
    let is_null = |operand: &Expr| matches!(operand, Expr::Literal(ScalarValue::Null, _));
    let null_like = |other: &Expr| {
        let of_other = match other {
            // A numeric literal has the smallest type that holds it.
            Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => DataType::Int32,
            other => other.get_type(schema).ok().filter(DataType::is_numeric)?,
        };
        Some(Expr::Literal(ScalarValue::try_from(of_other).ok()?, None))
    };
    let RawBinaryExpr { mut left, op, mut right } = expr;
    if matches!(op, Plus | Minus | Multiply | Divide | Modulo) {
        match (is_null(&left), is_null(&right)) {
            (true, false) => left = null_like(&right).unwrap_or(left),
            (false, true) => right = null_like(&left).unwrap_or(right),
            _ => {}
        }
    }
    RawBinaryExpr { left, op, right }
}

/// Operators that PostgreSQL evaluates differently: a string literal has the other operand's type,
/// and whole numbers give a result of the larger operand's type.
fn as_in_postgresql(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let (left, right) = (expr.left.get_type(schema).ok()?, expr.right.get_type(schema).ok()?);
    let quoted = |operand: &Expr| matches!(operand, Expr::Literal(scalar, _) if is_text(&scalar.data_type()) && !scalar.is_null());
    let takes_texts = |data_type: &DataType| !is_text(data_type) && !data_type.is_null() && !data_type.is_nested();
    let operator = match expr.op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply | BinaryOperator::Divide => {
            return whole_numbers(expr, &left, &right);
        }
        _ => return None,
    };
    if let (true, Some(item)) = (quoted(&expr.right), item_of(&left)) {
        let item = Expr::Literal(ScalarValue::try_from(item).ok()?, None);
        let array = call(&crate::elements::ARRAY_LIKE_UDF, vec![expr.right.clone(), item]).data;
        return Some(Expr::BinaryExpr(BinaryExpr {
            left: Box::new(expr.left.clone()),
            op: operator,
            right: Box::new(array),
        }));
    }
    let (mut left_side, mut right_side) = (expr.left.clone(), expr.right.clone());
    let typed = match (quoted(&expr.left), quoted(&expr.right)) {
        // Beside a decimal, it keeps its digits.
        (true, false) | (false, true) if written::widen(vec![&mut left_side, &mut right_side], schema) => {
            (left_side, right_side)
        }
        (true, false) if takes_texts(&right) => (cast(expr.left.clone(), right), expr.right.clone()),
        (false, true) if takes_texts(&left) => (expr.left.clone(), cast(expr.right.clone(), left)),
        _ => return None,
    };
    Some(Expr::BinaryExpr(BinaryExpr { left: Box::new(typed.0), op: operator, right: Box::new(typed.1) }))
}

fn item_of(array: &DataType) -> Option<&DataType> {
    match array {
        DataType::List(item) => Some(item.data_type()),
        _ => None,
    }
}

/// Arithmetic of whole numbers: computed in 64 bits, and checked against the larger operand's type.
fn whole_numbers(expr: &RawBinaryExpr, left: &DataType, right: &DataType) -> Option<Expr> {
    let bits = |operand: &Expr, data_type: &DataType| match (operand, data_type) {
        (Expr::Literal(ScalarValue::Int64(Some(number)), _), _) if i32::try_from(*number).is_ok() => Some(32),
        (_, DataType::Int8 | DataType::Int16 | DataType::UInt8) => Some(16),
        (_, DataType::Int32 | DataType::UInt16) => Some(32),
        (_, DataType::Int64 | DataType::UInt32 | DataType::UInt64) => Some(64),
        _ => None,
    };
    let size = bits(&expr.left, left)?.max(bits(&expr.right, right)?);
    let function = match expr.op {
        BinaryOperator::Plus => Some(&ADD),
        BinaryOperator::Minus => Some(&SUBTRACT),
        BinaryOperator::Multiply => Some(&MULTIPLY),
        _ => None,
    };
    let computed = match function {
        Some(function) => call(function, vec![expr.left.clone(), expr.right.clone()]).data,
        None => Expr::BinaryExpr(BinaryExpr {
            left: Box::new(cast(expr.left.clone(), DataType::Int64)),
            op: Operator::Divide,
            right: Box::new(cast(expr.right.clone(), DataType::Int64)),
        }),
    };
    Some(match size {
        16 => cast(computed, DataType::Int16),
        32 => cast(computed, DataType::Int32),
        _ => computed,
    })
}

/// A quotient or a remainder in the dialects of Hazelcast and CrateDB.
fn divided(expr: RawBinaryExpr, op: Operator, dialect: Dialect, schema: &DFSchema) -> PlannerResult<RawBinaryExpr> {
    let Some((left, right)) = bits_of_both(&expr, dialect, schema) else {
        return if op == Operator::Divide { quotient(expr, schema) } else { PlannerResult::Original(expr) };
    };
    let size = bits_after(op, left, right);
    PlannerResult::Planned(of_bits(in_64_bits(expr.left, op, expr.right), size))
}

fn in_64_bits(left: Expr, op: Operator, right: Expr) -> Expr {
    let [left, right] = [left, right].map(|operand| Box::new(cast(operand, DataType::Int64)));
    Expr::BinaryExpr(BinaryExpr { left, op, right })
}

/// A quotient or a remainder with an unknown type at planning. All others are already computed in
/// 64 bits.
fn quotient_of_parameters(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_planned = [&left, &right].into_iter().all(|operand| {
        matches!(operand, Expr::Cast(_)) && operand.get_type(schema).is_ok_and(|found| found == DataType::Int64)
    });
    match (bits(&left, schema), bits(&right, schema)) {
        (Some(of_left), Some(of_right)) if !is_planned => {
            let size = bits_after(op, of_left, of_right);
            Transformed::yes(of_bits(in_64_bits(left, op, right), size))
        }
        _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })),
    }
}

/// A quotient of decimals with the maximum number of decimal places.
fn quotient(expr: RawBinaryExpr, schema: &DFSchema) -> PlannerResult<RawBinaryExpr> {
    let types = [expr.left.get_type(schema), expr.right.get_type(schema)];
    let [Ok(left), Ok(right)] = types else { return PlannerResult::Original(expr) };
    let is_exact = |data_type: &DataType| data_type.is_decimal() || data_type.is_integer();
    if !is_exact(&left) || !is_exact(&right) || !(left.is_decimal() || right.is_decimal()) {
        return PlannerResult::Original(expr);
    }
    exact("decimal_divide", expr)
}

/// Whether the product of decimals has more decimal places than a decimal can have.
fn is_fine(expr: &RawBinaryExpr, schema: &DFSchema) -> bool {
    let scale = |operand: &Expr| operand.get_type(schema).ok().as_ref().and_then(numbers::decimals::scale_of);
    match (scale(&expr.left), scale(&expr.right)) {
        (Some(left), Some(right)) => i32::from(left) + i32::from(right) > i32::from(crate::types::DECIMAL_SCALE),
        _ => false,
    }
}

/// A product of decimals, rounded if it has more decimal places than a decimal can have.
fn product(expr: RawBinaryExpr) -> PlannerResult<RawBinaryExpr> {
    exact("decimal_multiply", expr)
}

fn exact(name: &str, expr: RawBinaryExpr) -> PlannerResult<RawBinaryExpr> {
    match numbers::operators::function(name) {
        Some(function) => {
            PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![expr.left, expr.right])))
        }
        None => PlannerResult::Original(expr),
    }
}

/// The maximum number of value bits of a whole number in Hazelcast's dialect, without the sign.
fn bits(operand: &Expr, schema: &DFSchema) -> Option<u32> {
    match operand {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => {
            return Some(u64::BITS - number.unsigned_abs().leading_zeros());
        }
        // A parameter is a BIGINT, whatever its value is.
        Expr::Placeholder(_) => {
            return operand.get_type(schema).is_ok_and(|found| found.is_integer()).then_some(63);
        }
        // Its type is known later, with the values of parameters.
        Expr::Negative(inner) => return bits(inner, schema).map(|bits| bits + 1),
        // The type of a result may have more bits than the result.
        Expr::Cast(cast) => {
            if let Some(bits) = bits_computed(&cast.expr, schema) {
                return Some(bits);
            }
        }
        _ => {}
    }
    bits_of(&operand.get_type(schema).ok()?)
}

/// The bits of the result of an operator that was planned here; `None` for other expressions.
fn bits_computed(computed: &Expr, schema: &DFSchema) -> Option<u32> {
    let (op, left, right) = match computed {
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            if let ([Expr::Cast(operand)], true) = (args.as_slice(), *func == *ABS) {
                return Some(bits(&operand.expr, schema)? + 1);
            }
            let [left, right] = args.as_slice() else { return None };
            let op = match func.name() {
                name if name == ADD.name() => Operator::Plus,
                name if name == SUBTRACT.name() => Operator::Minus,
                name if name == MULTIPLY.name() => Operator::Multiply,
                _ => return None,
            };
            (op, left, right)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Divide | Operator::Modulo), right }) => {
            let (Expr::Cast(left), Expr::Cast(right)) = (left.as_ref(), right.as_ref()) else { return None };
            (*op, left.expr.as_ref(), right.expr.as_ref())
        }
        _ => return None,
    };
    Some(bits_after(op, bits(left, schema)?, bits(right, schema)?))
}

/// The number of value bits of a type of whole numbers.
fn bits_of(found: &DataType) -> Option<u32> {
    match found {
        DataType::Int8 => Some(7),
        DataType::Int16 | DataType::UInt8 => Some(15),
        DataType::Int32 | DataType::UInt16 => Some(31),
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => Some(63),
        _ => None,
    }
}

fn coerce(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    if types.len() != 2 || !types.iter().all(is_integer) {
        return Err(wrong_arguments(name, types));
    }
    Ok(vec![DataType::Int64; 2])
}

fn returns(_: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(FieldType::BigInt)
}

fn compute(args: &ScalarFunctionArgs, operator: Operator) -> Result<ColumnarValue> {
    let [left, right] = args.args.as_slice() else { return Err(failed("an operator has two operands")) };
    let computed = match operator {
        Operator::Plus => datafusion::physical_expr_common::datum::apply(left, right, |l, r| add(l, r)),
        Operator::Minus => datafusion::physical_expr_common::datum::apply(left, right, |l, r| sub(l, r)),
        _ => datafusion::physical_expr_common::datum::apply(left, right, |l, r| mul(l, r)),
    };
    let out_of_range = SqlSubject::OutOfRange { field_type: FieldType::BigInt };
    computed
        .map_err(|_| carried(data_error(overflow(left, right, operator)).with_sqlstate("22003").about(out_of_range)))
}

/// The error message for the first row that overflows.
fn overflow(left: &ColumnarValue, right: &ColumnarValue, operator: Operator) -> String {
    let rows = match (left, right) {
        (ColumnarValue::Array(rows), _) | (_, ColumnarValue::Array(rows)) => rows.len(),
        _ => 1,
    };
    let numbers = |operand: &ColumnarValue| operand.to_array(rows).ok();
    let (left, right) = (numbers(left), numbers(right));
    let at = |array: &Option<arrow_array::ArrayRef>, row: usize| {
        let array = array.as_ref()?.as_primitive_opt::<Int64Type>()?;
        array.is_valid(row).then(|| array.value(row))
    };
    for row in 0..rows {
        let (Some(left), Some(right)) = (at(&left, row), at(&right, row)) else { continue };
        let computed = match operator {
            Operator::Plus => left.checked_add(right),
            Operator::Minus => left.checked_sub(right),
            _ => left.checked_mul(right),
        };
        if computed.is_none() {
            return format!(
                "BIGINT overflow in '{operator}' operator: {left} {operator} {right} (consider adding explicit CAST to DECIMAL)"
            );
        }
    }
    format!("BIGINT overflow in '{operator}' operator (consider adding explicit CAST to DECIMAL)")
}

/// Replaces operators by the functions in a plan.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) dialect: Dialect,
    /// The function that returns the name of an object, if the dialect has one.
    pub(super) reg_name: Option<Arc<ScalarUDF>>,
}

impl AnalyzerRule for Checked {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let transformed = plan.transform_up_with_subqueries(|plan| checked_plan(plan, self))?;
        if !transformed.transformed {
            return Ok(transformed.data);
        }
        TypeCoercion::new().analyze(transformed.data, config)
    }
}

fn checked_plan(plan: LogicalPlan, rule: &Checked) -> Result<Transformed<LogicalPlan>> {
    let schema = schema_within(&plan)?;
    let transformed = map_named(plan, |expression| {
        expression.transform_up(|expression| {
            let checked = checked(expression, &schema, rule);
            match rule.dialect {
                Dialect::Postgres => checked.transform_data(|expression| Ok(in_postgresql(expression, &schema))),
                _ => Ok(checked),
            }
        })
    })?;
    if !transformed.transformed {
        return Ok(transformed);
    }
    transformed.map_data(LogicalPlan::recompute_schema)
}

fn checked(expression: Expr, schema: &DFSchema, rule: &Checked) -> Transformed<Expr> {
    let whole = |operand: &Expr| match operand.get_type(schema) {
        Ok(data_type) => data_type.is_integer(),
        // A column of an outer query has no known type here, but the other operand may have one.
        Err(_) => false,
    };
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if whole(&left) && whole(&right) => {
            let function = match op {
                Operator::Plus => &ADD,
                Operator::Minus => &SUBTRACT,
                Operator::Multiply => &MULTIPLY,
                Operator::Divide | Operator::Modulo if rule.dialect == Dialect::Hazelcast => {
                    return quotient_of_parameters(*left, op, *right, schema);
                }
                _ => return Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            };
            call(function, vec![*left, *right])
        }
        // A cast keeps the metadata that marks a text as a JSON document.
        Expr::Cast(to_text) if is_text(to_text.field.data_type()) && is_json(&to_text.expr, schema) => {
            call(&JSON_AS_TEXT, vec![*to_text.expr])
        }
        // A text from a decimal without a declared scale has no trailing zeros. A floating-point
        // number from it keeps all significant digits.
        Expr::Cast(of_decimal) if is_free_decimal(&of_decimal, schema) => {
            let (from, to) = (numbers::decimals::FREE, of_decimal.field.data_type().clone());
            match numbers::casts::call(*of_decimal.expr, &from, &to, numbers::operators::function) {
                Ok(call) => Transformed::yes(call),
                Err(expr) => Transformed::no(cast(expr, to)),
            }
        }
        // Arrow multiplies a floating-point number by a power of ten, which adds digits.
        Expr::Cast(of_float) if is_float(&of_float.expr, schema) && of_float.field.data_type().is_decimal() => {
            let (from, to) = (of_float.expr.get_type(schema), of_float.field.data_type().clone());
            let Ok(from) = from else { return Transformed::no(Expr::Cast(of_float)) };
            match numbers::casts::call(*of_float.expr, &from, &to, numbers::operators::function) {
                Ok(call) => Transformed::yes(call),
                Err(expr) => Transformed::no(cast(expr, to)),
            }
        }
        // The OID of an object becomes its name as text.
        Expr::Cast(to_text)
            if is_text(to_text.field.data_type()) && kind_of_objects(&to_text.expr, schema).is_some() =>
        {
            let (Some(reg_name), Some(kind)) = (&rule.reg_name, kind_of_objects(&to_text.expr, schema)) else {
                return Transformed::no(Expr::Cast(to_text));
            };
            let kind = Expr::Literal(ScalarValue::Utf8View(Some(kind.to_owned())), None);
            let named = ScalarFunction { func: reg_name.clone(), args: vec![kind, *to_text.expr] };
            Transformed::yes(Expr::ScalarFunction(named))
        }
        Expr::Negative(operand) if !matches!(*operand, Expr::Literal(..)) && whole(&operand) => {
            let size = match rule.dialect {
                Dialect::Hazelcast => bits(&operand, schema).map(|bits| bits + 1),
                _ => operand.get_type(schema).ok().as_ref().and_then(bits_of),
            };
            let computed = call(&SUBTRACT, vec![Expr::Literal(ScalarValue::Int64(Some(0)), None), *operand]);
            match size {
                Some(bits) => computed.update_data(|computed| of_bits(computed, bits)),
                None => computed,
            }
        }
        other => Transformed::no(other),
    }
}

fn is_float(operand: &Expr, schema: &DFSchema) -> bool {
    operand.get_type(schema).is_ok_and(|found| found.is_floating())
}

/// PostgreSQL's casts between numbers and text, and results with a known scale.
fn in_postgresql(expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expression {
        Expr::Cast(Cast { expr, field }) => {
            let Ok(from) = expr.get_type(schema) else { return Transformed::no(Expr::Cast(Cast { expr, field })) };
            match numbers::casts::call(*expr, &from, field.data_type(), numbers::operators::function) {
                Ok(call) => Transformed::yes(call),
                Err(expr) => Transformed::no(Expr::Cast(Cast { expr: Box::new(expr), field })),
            }
        }
        Expr::AggregateFunction(call) => of_floats(call, schema),
        Expr::Negative(operand) if operand.get_type(schema).is_ok_and(|found| found.is_floating()) => {
            match numbers::operators::function(numbers::NEGATE) {
                Some(function) => {
                    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![*operand])))
                }
                None => Transformed::no(Expr::Negative(operand)),
            }
        }
        Expr::ScalarFunction(call) => {
            let known = match Expr::ScalarFunction(call.clone()).get_type(schema) {
                Ok(result) => numbers::with_scale(&call, &result),
                Err(_) => None,
            };
            match known {
                Some(known) => Transformed::yes(known),
                None => Transformed::no(Expr::ScalarFunction(call)),
            }
        }
        other => Transformed::no(other),
    }
}

/// Aggregates of floating-point numbers: NaN is greater than all other numbers, and zero has no
/// sign.
fn of_floats(mut call: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
    let is_float = |argument: &Expr| argument.get_type(schema).is_ok_and(|found| found.is_floating());
    let [argument] = call.params.args.as_slice() else { return Transformed::no(Expr::AggregateFunction(call)) };
    if !is_float(argument) {
        return Transformed::no(Expr::AggregateFunction(call));
    }
    if let Some(extreme) = numbers::extreme(&call.func) {
        // A second run of the rule leaves the aggregate unchanged.
        let is_new = extreme != call.func;
        call.func = extreme;
        return Transformed::new_transformed(Expr::AggregateFunction(call), is_new);
    }
    let Some(add) = numbers::operators::function("float_add").filter(|_| call.params.distinct) else {
        return Transformed::no(Expr::AggregateFunction(call));
    };
    // A second run of the rule finds the added zero.
    let is_zero = |operand: Option<&Expr>| {
        matches!(operand, Some(Expr::Literal(ScalarValue::Float32(Some(0.0)) | ScalarValue::Float64(Some(0.0)), _)))
    };
    if matches!(argument, Expr::ScalarFunction(sum) if sum.func.name() == add.name() && is_zero(sum.args.last())) {
        return Transformed::no(Expr::AggregateFunction(call));
    }
    let order = call.params.order_by.iter_mut().map(|sort| &mut sort.expr);
    for argument in call.params.args.iter_mut().chain(order) {
        let zero = match argument.get_type(schema) {
            Ok(DataType::Float32) => ScalarValue::Float32(Some(0.0)),
            Ok(DataType::Float64) => ScalarValue::Float64(Some(0.0)),
            _ => continue,
        };
        let args = vec![std::mem::take(argument), Expr::Literal(zero, None)];
        *argument = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&add), args));
    }
    Transformed::yes(Expr::AggregateFunction(call))
}

fn is_free_decimal(of_decimal: &Cast, schema: &DFSchema) -> bool {
    let to = of_decimal.field.data_type();
    (is_text(to) || *to == DataType::Float64)
        && of_decimal.expr.get_type(schema).is_ok_and(|from| numbers::decimals::is_free(&from))
}

fn is_json(expression: &Expr, schema: &DFSchema) -> bool {
    expression.to_field(schema).is_ok_and(|(_, field)| crate::types::field_type_of(&field) == FieldType::Json)
}

/// The kind of the objects that an expression has the OIDs of; `None` for other expressions.
fn kind_of_objects(expression: &Expr, schema: &DFSchema) -> Option<&'static str> {
    let (_, field) = expression.to_field(schema).ok()?;
    crate::types::object_kind(crate::types::pg_type_of(&field)?)
}

fn call(function: &LazyLock<Arc<ScalarUDF>>, args: Vec<Expr>) -> Transformed<Expr> {
    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), args)))
}
