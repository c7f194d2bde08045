//! Lengths of intervals. In comparisons a month has 30 days and a day 24 hours.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF};
use filbert_data::{FieldType, Interval};

use super::super::super::row::{Function, wrong_arguments};
use super::casts::call;
use super::cells::{Cell, Kind, compute, compute_all};

static LENGTH: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf(
        "interval_length",
        intervals,
        |_| Ok(FieldType::Decimal(Some((38, 0)))),
        |args| {
            compute(args, |cells| match cells {
                [Cell::Interval(interval)] => Ok(Cell::Decimal(length(interval))),
                _ => Ok(Cell::Null),
            })
        },
    ))
});
static GREATEST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("interval_greatest", intervals, |_| Ok(FieldType::Interval), |args| extreme(args, false)))
});
static LEAST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("interval_least", intervals, |_| Ok(FieldType::Interval), |args| extreme(args, true)))
});

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [&LENGTH, &GREATEST, &LEAST].map(|function| Arc::clone(function)).to_vec()
}

/// The length of an interval in microseconds, as PostgreSQL compares it.
pub(in super::super) fn length(interval: &Interval) -> i128 {
    interval.length().div_euclid(1_000)
}

fn intervals(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let fits = |data_type: &DataType| matches!(Kind::of(data_type), Kind::Interval | Kind::Unknown);
    if types.is_empty() || !types.iter().all(fits) {
        return Err(wrong_arguments(name, types));
    }
    Ok(vec![Kind::Interval.arrow(); types.len()])
}

fn extreme(args: &ScalarFunctionArgs, is_least: bool) -> Result<ColumnarValue> {
    compute_all(args, false, |cells| {
        let mut best: Option<Interval> = None;
        for cell in cells {
            let Cell::Interval(interval) = cell else { continue };
            let is_better = best.is_none_or(|best| match is_least {
                true => length(interval) < length(&best),
                false => length(interval) > length(&best),
            });
            if is_better {
                best = Some(*interval);
            }
        }
        Ok(best.map_or(Cell::Null, Cell::Interval))
    })
}

/// The length of an interval.
pub(in super::super) fn length_of(interval: Expr) -> Expr {
    call(&LENGTH, vec![interval])
}

/// The longest or the shortest interval.
pub(in super::super) fn extreme_of(intervals: Vec<Expr>, is_least: bool) -> Expr {
    call(if is_least { &LEAST } else { &GREATEST }, intervals)
}

/// Whether a type is an interval.
pub(in super::super) fn is_of_intervals(data_type: &DataType) -> bool {
    Kind::of(data_type) == Kind::Interval
}
