//! Casts between dates, times, intervals and texts. A rule replaces Arrow's casts by them.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
};
use datafusion::optimizer::AnalyzerRule;
use filbert_data::FieldType;
use filbert_data::dates::{
    DAY_US, DateError, Zone, check_micros, read_date, read_interval, read_time, read_timestamp, read_timestamptz,
    split_micros, write_date, write_interval, write_time, write_timestamp, write_timestamptz,
};
use filbert_grid::query::Dialect;

use super::super::super::row::{Function, wrong_arguments};
use super::super::item_casts;
use super::calculate::micros_of;
use super::cells::{Cell, Kind, compute};
use super::operators::call_of;
use super::{refused, wrong, zone_of};
use crate::named::{map_named, schema_within};

macro_rules! to {
    ($function:ident, $name:literal, $type:ident, $kind:ident) => {
        static $function: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
            let returns = |_: &ReturnFieldArgs<'_>| Ok(FieldType::$type);
            Arc::new(Function::udf($name, coerce, returns, |args| run(args, Kind::$kind)))
        });
    };
}

to!(TO_DATE, "dates_as_date", Date, Date);
to!(TO_TIME, "dates_as_time", Time, Time);
to!(TO_TIMESTAMP, "dates_as_timestamp", Timestamp, Timestamp);
to!(TO_TIMESTAMPTZ, "dates_as_timestamptz", TimestampTz, Timestamptz);
to!(TO_INTERVAL, "dates_as_interval", Interval, Interval);
to!(TO_TEXT, "dates_as_text", Varchar, Text);

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [&TO_DATE, &TO_TIME, &TO_TIMESTAMP, &TO_TIMESTAMPTZ, &TO_INTERVAL, &TO_TEXT]
        .map(|function| Arc::clone(function))
        .to_vec()
}

/// The function of a cast; `None` where Arrow's cast is correct.
fn function(from: Kind, to: Kind) -> Option<&'static LazyLock<Arc<ScalarUDF>>> {
    if from == to || matches!((from, to), (Kind::Date, Kind::Timestamp)) {
        return None;
    }
    let of_text = from == Kind::Text || from.is_temporal();
    match to {
        Kind::Date if of_text => Some(&TO_DATE),
        Kind::Time if of_text => Some(&TO_TIME),
        Kind::Timestamp if of_text => Some(&TO_TIMESTAMP),
        Kind::Timestamptz if of_text => Some(&TO_TIMESTAMPTZ),
        Kind::Interval if of_text => Some(&TO_INTERVAL),
        Kind::Text if from.is_temporal() => Some(&TO_TEXT),
        _ => None,
    }
}

/// Whether PostgreSQL has a cast.
fn is_served(from: Kind, to: Kind) -> bool {
    match (from, to) {
        (Kind::Text | Kind::Unknown, _) | (_, Kind::Text | Kind::Unknown) => true,
        (Kind::Date, Kind::Date | Kind::Timestamp | Kind::Timestamptz) => true,
        (Kind::Time, Kind::Time | Kind::Interval) | (Kind::Interval, Kind::Interval | Kind::Time) => true,
        (Kind::Timestamp | Kind::Timestamptz, Kind::Date | Kind::Time | Kind::Timestamp | Kind::Timestamptz) => true,
        _ => !from.is_temporal() && !to.is_temporal(),
    }
}

/// Replaces DataFusion's casts and operators of dates, times and intervals.
#[derive(Debug)]
pub(crate) struct Dates {
    /// The dialect of the plan.
    pub dialect: Dialect,
}

impl AnalyzerRule for Dates {
    fn name(&self) -> &str {
        "dates"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let transformed = plan.transform_up_with_subqueries(|plan| self.plan(plan))?;
        Ok(transformed.data)
    }
}

impl Dates {
    fn plan(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let schema = schema_within(&plan)?;
        let transformed =
            map_named(plan, |expression| expression.transform_up(|expression| self.expression(expression, &schema)))?;
        match transformed.transformed {
            true => transformed.map_data(LogicalPlan::recompute_schema),
            false => Ok(transformed),
        }
    }

    fn expression(&self, expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        match expression {
            Expr::Cast(ref cast) => {
                let Ok(found) = cast.expr.get_type(schema) else { return Ok(Transformed::no(expression)) };
                let (from, to) = (Kind::of(&found), Kind::of(cast.field.data_type()));
                if !is_served(from, to) && self.dialect == Dialect::Postgres {
                    let message = format!("cannot cast type {} to {}", from.name(), to.name());
                    return Err(refused(message, "42846"));
                }
                Ok(match function(from, to) {
                    Some(function) => Transformed::yes(call(function, vec![cast.expr.as_ref().clone()])),
                    None => Transformed::no(expression),
                })
            }
            Expr::BinaryExpr(BinaryExpr { ref left, op, ref right }) => Ok(match call_of(left, op, right, schema)? {
                Some(call) => Transformed::yes(call),
                None => Transformed::no(expression),
            }),
            Expr::ScalarFunction(mut function) if OF_TEXTS.contains(&function.name()) => {
                let is_temporal = |argument: &Expr| {
                    argument.get_type(schema).is_ok_and(|data_type| Kind::of(&data_type).is_temporal())
                };
                let has_zone =
                    |argument: &Expr| argument.get_type(schema).is_ok_and(|found| is_array_with_zone(&found));
                if !function.args.iter().any(|argument| is_temporal(argument) || has_zone(argument)) {
                    return Ok(Transformed::no(Expr::ScalarFunction(function)));
                }
                for argument in &mut function.args {
                    if is_temporal(argument) {
                        *argument = call(&TO_TEXT, vec![argument.clone()]);
                    } else if has_zone(argument) {
                        *argument = item_casts::as_texts(argument.clone());
                    }
                }
                Ok(Transformed::yes(Expr::ScalarFunction(function)))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

/// Whether the text form of an array depends on the session time zone.
fn is_array_with_zone(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) => is_array_with_zone(item.data_type()) || Kind::of(item.data_type()) == Kind::Timestamptz,
        _ => false,
    }
}

/// Functions that take the text forms of their arguments.
const OF_TEXTS: [&str; 9] = [
    "array_to_string",
    "cast_char",
    "cast_text",
    "cast_varchar",
    "concat",
    "concat_ws",
    "format",
    "quote_literal",
    "quote_nullable",
];

pub(super) fn call(function: &LazyLock<Arc<ScalarUDF>>, args: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), args))
}

fn coerce(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [argument] => match Kind::of(argument) {
            Kind::Other => Err(wrong_arguments(name, types)),
            Kind::Unknown => Ok(types.to_vec()),
            kind => Ok(vec![kind.arrow()]),
        },
        _ => Err(wrong_arguments(name, types)),
    }
}

fn run(args: &ScalarFunctionArgs, to: Kind) -> Result<ColumnarValue> {
    let zone = zone_of(&args.config_options);
    compute(args, |cells| match cells {
        [cell] => converted(cell, to, &zone).map_err(|error| wrong(&error)),
        _ => Ok(Cell::Null),
    })
}

/// Converts a value to another kind, in a time zone.
pub(super) fn converted(cell: &Cell, to: Kind, zone: &Zone) -> Result<Cell, DateError> {
    Ok(match to {
        Kind::Text => Cell::Text(text_of(cell, zone)),
        Kind::Interval => match cell {
            Cell::Text(text) => Cell::Interval(read_interval(text)?),
            Cell::Time(micros) => {
                Cell::Interval(filbert_data::Interval { months: 0, days: 0, nanoseconds: micros * 1_000 })
            }
            other => other.clone(),
        },
        Kind::Time => match cell {
            Cell::Text(text) => Cell::Time(read_time(text)?),
            Cell::Interval(span) => Cell::Time(micros_of(span).rem_euclid(DAY_US)),
            other => match local(other, zone)? {
                Some(local) => Cell::Time(split_micros(local).1),
                None => other.clone(),
            },
        },
        Kind::Date => match cell {
            Cell::Text(text) => Cell::Date(read_date(text)?.into()),
            other => match local(other, zone)? {
                Some(local) => Cell::Date(split_micros(local).0),
                None => Cell::Null,
            },
        },
        Kind::Timestamp => match cell {
            Cell::Text(text) => Cell::Timestamp(read_timestamp(text)?),
            other => local(other, zone)?.map_or(Cell::Null, Cell::Timestamp),
        },
        Kind::Timestamptz => match cell {
            Cell::Text(text) => Cell::Timestamptz(read_timestamptz(text, zone)?),
            Cell::Timestamptz(utc) => Cell::Timestamptz(*utc),
            other => match local(other, zone)? {
                Some(local) => Cell::Timestamptz(check_micros(zone.to_utc(local))?),
                None => Cell::Null,
            },
        },
        _ => cell.clone(),
    })
}

/// The local time in microseconds.
pub(super) fn local(cell: &Cell, zone: &Zone) -> Result<Option<i64>, DateError> {
    Ok(match cell {
        Cell::Date(days) => Some(days * DAY_US),
        Cell::Timestamp(local) => Some(*local),
        Cell::Timestamptz(utc) => Some(check_micros(zone.to_local(*utc))?),
        _ => None,
    })
}

/// The text form of a value.
pub(super) fn text_of(cell: &Cell, zone: &Zone) -> String {
    let mut out = String::new();
    match cell {
        Cell::Date(days) => write_date(*days, &mut out),
        Cell::Time(micros) => write_time(*micros, &mut out),
        Cell::Timestamp(micros) => write_timestamp(*micros, &mut out),
        Cell::Timestamptz(micros) => write_timestamptz(*micros, zone, &mut out),
        Cell::Interval(interval) => write_interval(interval, &mut out),
        Cell::Text(text) => out.push_str(text),
        _ => {}
    }
    out
}
