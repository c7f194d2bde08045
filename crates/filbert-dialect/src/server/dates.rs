//! Literals, casts and operators of dates, times and intervals with a syntax of their own.

use std::ops::ControlFlow;

use filbert_data::dates::read_interval_of;
use filbert_grid::query::{Dialect, SqlError, data_error};
use sqlparser::ast::{
    BinaryOperator, DataType, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Interval,
    IntervalFields, TypedString, Value, ValueWithSpan,
};

use super::super::json::{call, text};
use super::{refuse, taken};

/// The maximum number of fractional digits of seconds.
const PRECISION_MAX: u64 = 6;

/// Rewrites operators to calls, and interval literals to an unambiguous form.
pub(super) fn rewrite(expression: &mut Expr) -> ControlFlow<SqlError> {
    match expression {
        Expr::Extract { field, expr, .. } => {
            let field = field.to_string().trim_matches(['\'', '"']).to_ascii_lowercase();
            *expression = call("extract", vec![text(&field), taken(expr)], Vec::new(), None);
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            *expression = call("timezone", vec![taken(time_zone), taken(timestamp)], Vec::new(), None);
        }
        Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } => {
            let (Expr::Tuple(one), Expr::Tuple(other)) = (left.as_mut(), right.as_mut()) else {
                return refuse("OVERLAPS stands between two pairs", "42601");
            };
            let arguments: Vec<Expr> = one.iter_mut().chain(other).map(taken).collect();
            if arguments.len() != 4 {
                return refuse("wrong number of parameters on a side of OVERLAPS expression", "42601");
            }
            *expression = call("overlaps", arguments, Vec::new(), None);
        }
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("make_interval") => {
            if let FunctionArguments::List(list) = &mut function.args {
                return in_order(&mut list.args);
            }
        }
        // The literal has several parts by now; a sign before it would apply to the first part
        // only.
        Expr::UnaryOp { expr, .. } => {
            let inner = taken(expr);
            let zero = literal("0", None)?;
            *expression = Expr::Nested(Box::new(Expr::BinaryOp {
                left: Box::new(zero),
                op: BinaryOperator::Minus,
                right: Box::new(inner),
            }));
        }
        Expr::Interval(interval) => {
            let Interval { value, leading_field, leading_precision, last_field, fractional_seconds_precision } =
                interval;
            // `second(2)`: fractional digits of the seconds.
            if last_field.is_none() && *leading_field == Some(DateTimeField::Second) {
                *fractional_seconds_precision = leading_precision.take().or(*fractional_seconds_precision);
            }
            if leading_precision.is_some() {
                return refuse("an interval's precision is served behind its seconds only", "0A000");
            }
            let Some(written) = quoted(value) else {
                return refuse("an interval's literal is a text in quotes", "42601");
            };
            // The literal was rewritten already.
            if written.ends_with(" nanoseconds") {
                return ControlFlow::Continue(());
            }
            let last = last_field.as_ref().or(leading_field.as_ref()).and_then(unit);
            let first = leading_field.as_ref().and_then(unit);
            if leading_field.is_some() && (first.is_none() || last.is_none()) {
                return refuse("an interval has the fields year, month, day, hour, minute and second", "42601");
            }
            let precision = *fractional_seconds_precision;
            let found = literal(&written, first.zip(last))?;
            *expression = found;
            if let Some(precision) = precision {
                rounded(expression, precision);
            }
        }
        Expr::TypedString(TypedString { data_type: DataType::Interval { fields, precision }, value, .. }) => {
            let Value::SingleQuotedString(written) = &value.value else {
                return refuse("an interval's literal is a text in quotes", "42601");
            };
            let precision = *precision;
            *expression = literal(written, fields.as_ref().and_then(range))?;
            if let Some(precision) = precision {
                rounded(expression, precision);
            }
        }
        Expr::Cast { expr, data_type: DataType::Interval { fields, precision }, .. } => {
            let precision = *precision;
            let range = match fields {
                None => None,
                Some(fields) => match range(fields) {
                    Some(range) => Some(range),
                    None => return refuse("an interval's fields are served as of SQL", "0A000"),
                },
            };
            match quoted(expr) {
                Some(written) => *expression = literal(&written, range)?,
                None if range.is_some() => {
                    return refuse("a cast to some fields of an interval is served of a text in quotes", "0A000");
                }
                None => {}
            }
            if let Some(precision) = precision {
                rounded(expression, precision);
            }
        }
        Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => {
            if let DataType::Timestamp(Some(precision), _) | DataType::Time(Some(precision), _) = data_type {
                let precision = *precision;
                rounded(expression, precision);
            }
        }
        _ => {}
    }
    ControlFlow::Continue(())
}

/// The operand of `date(x)`, which is a cast.
pub(super) fn cast_by_name(function: &mut Function, of: Dialect) -> Option<Expr> {
    if of != Dialect::Postgres || !function.name.to_string().trim_matches('"').eq_ignore_ascii_case("date") {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else { return None };
    match list.args.as_mut_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(operand))] => Some(taken(operand)),
        _ => None,
    }
}

/// The arguments of `make_interval` without their names.
fn in_order(arguments: &mut Vec<FunctionArg>) -> ControlFlow<SqlError> {
    const NAMES: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];
    if arguments.iter().all(|argument| matches!(argument, FunctionArg::Unnamed(_))) {
        return ControlFlow::Continue(());
    }
    let zero = || FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::value(Value::Number("0".to_owned(), false))));
    let mut places: Vec<FunctionArg> = NAMES.iter().map(|_| zero()).collect();
    for (at, argument) in std::mem::take(arguments).into_iter().enumerate() {
        let (at, argument) = match argument {
            FunctionArg::Named { name, arg, .. } => {
                (NAMES.iter().position(|known| name.value.eq_ignore_ascii_case(known)), FunctionArg::Unnamed(arg))
            }
            other => (Some(at), other),
        };
        match at.and_then(|at| places.get_mut(at)) {
            Some(place) => *place = argument,
            None => return refuse("make_interval takes years, months, weeks, days, hours, mins and secs", "42883"),
        }
    }
    *arguments = places;
    ControlFlow::Continue(())
}

/// Rounds the value to fewer fractional digits of its seconds.
fn rounded(expression: &mut Expr, precision: u64) {
    if precision < PRECISION_MAX {
        let digits = Expr::value(Value::Number(precision.to_string(), false));
        *expression = call("dates_rounded", vec![taken(expression), digits], Vec::new(), None);
    }
}

fn quoted(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text.clone()),
        Expr::Nested(inner) => quoted(inner),
        _ => None,
    }
}

fn unit(field: &DateTimeField) -> Option<&'static str> {
    Some(match field {
        DateTimeField::Year | DateTimeField::Years => "year",
        DateTimeField::Month | DateTimeField::Months => "month",
        DateTimeField::Day | DateTimeField::Days => "day",
        DateTimeField::Hour | DateTimeField::Hours => "hour",
        DateTimeField::Minute | DateTimeField::Minutes => "minute",
        DateTimeField::Second | DateTimeField::Seconds => "second",
        _ => return None,
    })
}

fn range(fields: &IntervalFields) -> Option<(&'static str, &'static str)> {
    Some(match fields {
        IntervalFields::Year => ("year", "year"),
        IntervalFields::Month => ("month", "month"),
        IntervalFields::Day => ("day", "day"),
        IntervalFields::Hour => ("hour", "hour"),
        IntervalFields::Minute => ("minute", "minute"),
        IntervalFields::Second => ("second", "second"),
        IntervalFields::YearToMonth => ("year", "month"),
        IntervalFields::DayToHour => ("day", "hour"),
        IntervalFields::DayToMinute => ("day", "minute"),
        IntervalFields::DayToSecond => ("day", "second"),
        IntervalFields::HourToMinute => ("hour", "minute"),
        IntervalFields::HourToSecond => ("hour", "second"),
        IntervalFields::MinuteToSecond => ("minute", "second"),
    })
}

/// An interval as a literal that DataFusion parses correctly.
fn literal(written: &str, range: Option<(&str, &str)>) -> ControlFlow<SqlError, Expr> {
    let interval = match read_interval_of(written, range) {
        Ok(interval) => interval,
        Err(error) => return ControlFlow::Break(data_error(error.to_string()).with_sqlstate(error.sqlstate())),
    };
    let filbert_data::Interval { months, days, nanoseconds } = interval;
    ControlFlow::Continue(Expr::Interval(Interval {
        value: Box::new(text(&format!("{months} months {days} days {nanoseconds} nanoseconds"))),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}
