//! `+ - * /` of dates, times and intervals.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, cast,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use filbert_data::FieldType;
use filbert_data::dates::{DAY_US, DateError, Zone, scaled, spread};
use filbert_grid::query::Dialect;

use super::super::super::row::{Function, wrong_arguments};
use super::calculate::{add, add_days, add_to_timestamp, add_to_timestamptz, difference, micros_of, negated};
use super::cells::{Cell, Kind, compute};
use super::{refused, wrong, zone_of};

static PLUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("dates_plus", coerce, |args| returns(args, Operator::Plus), |args| run(args, plus)))
});
static MINUS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("dates_minus", coerce, |args| returns(args, Operator::Minus), |args| run(args, minus)))
});
static TIMES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("dates_times", coerce, |args| returns(args, Operator::Multiply), |args| run(args, times)))
});
static OVER: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("dates_over", coerce, |args| returns(args, Operator::Divide), |args| run(args, over)))
});

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [&PLUS, &MINUS, &TIMES, &OVER].map(|function| Arc::clone(function)).to_vec()
}

/// Replaces operators by functions at planning.
#[derive(Debug)]
pub(crate) struct Planner {
    /// The dialect of the operators.
    pub dialect: Dialect,
}

impl ExprPlanner for Planner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if self.dialect != Dialect::Hazelcast && is_comparison(&expr.op) {
            return Ok(PlannerResult::Original(in_zone(expr, schema)));
        }
        let operator = match expr.op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        if self.dialect == Dialect::Hazelcast {
            return Ok(PlannerResult::Original(expr));
        }
        Ok(match call_of(&expr.left, operator, &expr.right, schema)? {
            Some(call) => PlannerResult::Planned(call),
            None => PlannerResult::Original(expr),
        })
    }
}

fn is_comparison(operator: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// A comparison of a `timestamptz` with a date or a timestamp, as a comparison of `timestamptz`.
fn in_zone(expr: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let mut operands = [expr.left, expr.right];
    unify(operands.iter_mut().collect(), schema);
    let [left, right] = operands;
    RawBinaryExpr { left, op: expr.op, right }
}

/// Casts dates and timestamps to their common type; returns whether any was cast. DataFusion's
/// common type counts nanoseconds, which end in 2262.
pub(crate) fn unify(expressions: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let kinds: Vec<Option<Kind>> = expressions.iter().map(|expression| kind(expression, schema)).collect();
    let Some(common) = common(kinds.iter().flatten().copied()) else { return false };
    let mut is_changed = false;
    for (expression, kind) in expressions.into_iter().zip(kinds) {
        if matches!(kind, Some(Kind::Date | Kind::Timestamp)) && kind != Some(common) {
            *expression = cast(expression.clone(), common.arrow());
            is_changed = true;
        }
    }
    is_changed
}

/// The kind that holds all dates and timestamps of these kinds, if there are timestamps.
pub(super) fn common(kinds: impl Iterator<Item = Kind>) -> Option<Kind> {
    kinds.fold(None, |common, kind| match (common, kind) {
        (_, Kind::Timestamptz) | (Some(Kind::Timestamptz), _) => Some(Kind::Timestamptz),
        (_, Kind::Timestamp) => Some(Kind::Timestamp),
        (common, _) => common,
    })
}

/// The common type of dates and timestamps; `None` for other types, or without a timestamp.
pub fn common_type(types: &[&DataType]) -> Option<DataType> {
    let kinds = || types.iter().map(|found| Kind::of(found));
    let are_all = kinds().all(|kind| matches!(kind, Kind::Date | Kind::Timestamp | Kind::Timestamptz));
    common(kinds()).filter(|_| are_all).map(Kind::arrow)
}

/// The call that replaces an operator; `None` if no operand is a date, a time or an interval.
///
/// # Errors
/// The operator does not exist, or is ambiguous for the operands.
pub(super) fn call_of(left: &Expr, operator: Operator, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (of_left, of_right) = (kind(left, schema), kind(right, schema));
    let (Some(of_left), Some(of_right)) = (of_left, of_right) else { return Ok(None) };
    if !of_left.is_temporal() && !of_right.is_temporal() {
        return Ok(None);
    }
    let function = match operator {
        Operator::Plus => &PLUS,
        Operator::Minus => &MINUS,
        Operator::Multiply => &TIMES,
        Operator::Divide => &OVER,
        _ => return Ok(None),
    };
    let (of_left, of_right) = (
        if of_left == Kind::Unknown { meant(operator, of_right, true)? } else { of_left },
        if of_right == Kind::Unknown { meant(operator, of_left, false)? } else { of_right },
    );
    if result(operator, of_left, of_right).is_none() {
        let sign = operator.to_string();
        let message = format!("operator does not exist: {} {sign} {}", of_left.name(), of_right.name());
        return Err(refused(message, "42883"));
    }
    let args = vec![typed(left, of_left, schema), typed(right, of_right, schema)];
    Ok(Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), args))))
}

/// The kind of an operand; unknown for a string literal and an untyped parameter.
fn kind(operand: &Expr, schema: &DFSchema) -> Option<Kind> {
    let is_quoted = matches!(operand, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Utf8View(_), _));
    if is_quoted || matches!(operand, Expr::Placeholder(Placeholder { field: None, .. })) {
        return Some(Kind::Unknown);
    }
    operand.get_type(schema).ok().map(|data_type| Kind::of(&data_type))
}

/// The kind of an unknown operand beside a known one, as in PostgreSQL: the same kind if such an
/// operator exists, otherwise the kind of the only operator that does.
fn meant(operator: Operator, known: Kind, is_left: bool) -> Result<Kind> {
    Ok(match (operator, known) {
        (Operator::Plus, Kind::Date) => {
            let (left, right) = if is_left { ("unknown", "date") } else { ("date", "unknown") };
            return Err(refused(format!("operator is not unique: {left} + {right}"), "42725"));
        }
        (Operator::Plus, _) => Kind::Interval,
        (Operator::Multiply | Operator::Divide, Kind::Interval) => Kind::Number,
        (_, known) => known,
    })
}

/// An operand as a value of this kind.
fn typed(operand: &Expr, kind: Kind, schema: &DFSchema) -> Expr {
    let data_type = kind.arrow();
    if let Expr::Placeholder(Placeholder { id, field: None }) = operand {
        let field = Field::new("parameter", data_type, true);
        return Expr::Placeholder(Placeholder::new_with_field(id.clone(), Some(Arc::new(field))));
    }
    match operand.get_type(schema) {
        Ok(found) if found == data_type => operand.clone(),
        _ => cast(operand.clone(), data_type),
    }
}

/// The kind of an operator's result.
fn result(operator: Operator, left: Kind, right: Kind) -> Option<Kind> {
    use Kind::{Date, Integer, Interval, Number, Time, Timestamp, Timestamptz};
    Some(match (operator, left, right) {
        (Operator::Plus | Operator::Minus, Date, Integer) | (Operator::Plus, Integer, Date) => Date,
        (Operator::Plus, Date, Interval | Time) | (Operator::Plus, Interval | Time, Date) => Timestamp,
        (Operator::Minus, Date, Interval) => Timestamp,
        (Operator::Minus, Date, Date) => Integer,
        (Operator::Plus | Operator::Minus, of @ (Time | Timestamp | Timestamptz | Interval), Interval)
        | (Operator::Plus, Interval, of @ (Time | Timestamp | Timestamptz)) => of,
        (Operator::Plus, Timestamp, Time) | (Operator::Plus, Time, Timestamp) => Timestamp,
        (Operator::Plus, Timestamptz, Time) | (Operator::Plus, Time, Timestamptz) => Timestamptz,
        (Operator::Minus, of @ (Timestamp | Timestamptz | Time), Time) => {
            if of == Time {
                Interval
            } else {
                of
            }
        }
        (Operator::Minus, Interval, Time) => Interval,
        (Operator::Minus, Date | Timestamp | Timestamptz, Date | Timestamp | Timestamptz) => Interval,
        (Operator::Minus, Date, Time) => Timestamp,
        (Operator::Multiply, Interval, Integer | Number)
        | (Operator::Multiply, Integer | Number, Interval)
        | (Operator::Divide, Interval, Integer | Number) => Interval,
        _ => return None,
    })
}

/// The SQL type of a kind.
pub(super) fn field_type(kind: Kind) -> FieldType {
    match kind {
        Kind::Date => FieldType::Date,
        Kind::Time => FieldType::Time,
        Kind::Timestamp => FieldType::Timestamp,
        Kind::Timestamptz => FieldType::TimestampTz,
        Kind::Interval => FieldType::Interval,
        Kind::Integer => FieldType::BigInt,
        Kind::Number => FieldType::Double,
        Kind::Boolean => FieldType::Boolean,
        Kind::Text | Kind::Unknown | Kind::Other => FieldType::Varchar,
    }
}

fn returns(args: &ReturnFieldArgs<'_>, operator: Operator) -> Result<FieldType> {
    let kinds: Vec<Kind> = args.arg_fields.iter().map(|field| Kind::of(field.data_type())).collect();
    let found = match kinds.as_slice() {
        [left, right] => result(operator, *left, *right),
        _ => None,
    };
    let kind = found.ok_or_else(|| refused("operator does not exist", "42883"))?;
    Ok(if kind == Kind::Integer { FieldType::Integer } else { field_type(kind) })
}

fn coerce(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [left, right] => Ok(vec![taken(left), taken(right)]),
        _ => Err(wrong_arguments(name, types)),
    }
}

/// One representation for each kind.
fn taken(data_type: &DataType) -> DataType {
    match Kind::of(data_type) {
        Kind::Unknown | Kind::Other => data_type.clone(),
        kind => kind.arrow(),
    }
}

type Row = fn(&Cell, &Cell, &Zone) -> Result<Cell, DateError>;

fn run(args: &ScalarFunctionArgs, row: Row) -> Result<ColumnarValue> {
    let zone = zone_of(&args.config_options);
    compute(args, |cells| match cells {
        [left, right] => row(left, right, &zone).map_err(|error| wrong(&error)),
        _ => Ok(Cell::Null),
    })
}

fn midnight(days: i64) -> i64 {
    days * DAY_US
}

fn plus(left: &Cell, right: &Cell, zone: &Zone) -> Result<Cell, DateError> {
    Ok(match (left, right) {
        (Cell::Date(days), Cell::Integer(count)) | (Cell::Integer(count), Cell::Date(days)) => {
            Cell::Date(add_days(*days, *count)?)
        }
        (Cell::Date(days), Cell::Time(time)) | (Cell::Time(time), Cell::Date(days)) => {
            Cell::Timestamp(midnight(*days) + time)
        }
        (Cell::Date(days), Cell::Interval(span)) | (Cell::Interval(span), Cell::Date(days)) => {
            Cell::Timestamp(add_to_timestamp(midnight(*days), span)?)
        }
        (Cell::Timestamp(local), Cell::Interval(span)) | (Cell::Interval(span), Cell::Timestamp(local)) => {
            Cell::Timestamp(add_to_timestamp(*local, span)?)
        }
        (Cell::Timestamp(local), Cell::Time(time)) | (Cell::Time(time), Cell::Timestamp(local)) => {
            Cell::Timestamp(add_to_timestamp(*local, &of_time(*time))?)
        }
        (Cell::Timestamptz(utc), Cell::Interval(span)) | (Cell::Interval(span), Cell::Timestamptz(utc)) => {
            Cell::Timestamptz(add_to_timestamptz(*utc, span, zone)?)
        }
        (Cell::Timestamptz(utc), Cell::Time(time)) | (Cell::Time(time), Cell::Timestamptz(utc)) => {
            Cell::Timestamptz(add_to_timestamptz(*utc, &of_time(*time), zone)?)
        }
        (Cell::Time(time), Cell::Interval(span)) | (Cell::Interval(span), Cell::Time(time)) => {
            Cell::Time((time + micros_of(span) % DAY_US).rem_euclid(DAY_US))
        }
        (Cell::Interval(one), Cell::Interval(other)) => Cell::Interval(add(one, other)?),
        _ => Cell::Null,
    })
}

fn minus(left: &Cell, right: &Cell, zone: &Zone) -> Result<Cell, DateError> {
    Ok(match (left, right) {
        (Cell::Date(days), Cell::Integer(count)) => {
            let count = count.checked_neg().ok_or(DateError::Overflow { kind: "date" })?;
            Cell::Date(add_days(*days, count)?)
        }
        (Cell::Date(one), Cell::Date(other)) => Cell::Integer(one - other),
        (Cell::Time(one), Cell::Time(other)) => Cell::Interval(of_time(one - other)),
        (any, Cell::Interval(span)) => return plus(any, &Cell::Interval(negated(span)?), zone),
        (any, Cell::Time(time)) => return plus(any, &Cell::Interval(of_time(-time)), zone),
        (one, other) => {
            let is_datetime = matches!(one, Cell::Timestamptz(_)) || matches!(other, Cell::Timestamptz(_));
            match (timestamp_of(one, is_datetime, zone), timestamp_of(other, is_datetime, zone)) {
                (Some(one), Some(other)) => Cell::Interval(difference(one, other)?),
                _ => Cell::Null,
            }
        }
    })
}

fn of_time(micros: i64) -> filbert_data::Interval {
    filbert_data::Interval { months: 0, days: 0, nanoseconds: micros * 1_000 }
}

/// Microseconds since 1970-01-01, in local time or in UTC.
fn timestamp_of(cell: &Cell, is_utc: bool, zone: &Zone) -> Option<i64> {
    match cell {
        Cell::Timestamptz(utc) => Some(*utc),
        Cell::Timestamp(local) if !is_utc => Some(*local),
        Cell::Timestamp(local) => i64::try_from(zone.to_utc(*local)).ok(),
        Cell::Date(days) => timestamp_of(&Cell::Timestamp(midnight(*days)), is_utc, zone),
        _ => None,
    }
}

fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Integer(value) => Some(*value as f64),
        Cell::Number(value) => Some(*value),
        _ => None,
    }
}

fn times(left: &Cell, right: &Cell, _: &Zone) -> Result<Cell, DateError> {
    let ((Cell::Interval(span), factor) | (factor, Cell::Interval(span))) = (left, right) else {
        return Ok(Cell::Null);
    };
    match number(factor) {
        Some(factor) if factor.is_nan() => Err(DateError::Overflow { kind: "interval" }),
        Some(factor) => scaled(span, factor).map(Cell::Interval),
        None => Ok(Cell::Null),
    }
}

fn over(left: &Cell, right: &Cell, _: &Zone) -> Result<Cell, DateError> {
    let (Cell::Interval(span), Some(divisor)) = (left, number(right)) else { return Ok(Cell::Null) };
    if divisor == 0.0 {
        return Err(DateError::Division);
    }
    if divisor.is_nan() {
        return Err(DateError::Overflow { kind: "interval" });
    }
    spread(span, divisor).map(Cell::Interval)
}
