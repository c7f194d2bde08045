//! Sums, averages and extremes of intervals.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use filbert_data::Interval;
use filbert_data::dates::spread;

use super::calculate::{add, negated};
use super::cells::Kind;
use super::intervals::length;
use super::wrong;

/// The aggregate of all intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Total {
    Sum,
    Average,
    Least,
    Greatest,
}

static TOTALS: LazyLock<[(&str, Arc<AggregateUDF>); 4]> = LazyLock::new(|| {
    let of = |total: Total| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(OfIntervals { total, signature }))
    };
    [("sum", of(Total::Sum)), ("avg", of(Total::Average)), ("min", of(Total::Least)), ("max", of(Total::Greatest))]
});

/// The interval aggregate that replaces another one.
pub(in super::super) fn total(name: &str) -> Option<Arc<AggregateUDF>> {
    TOTALS.iter().find(|(known, _)| *known == name).map(|(_, total)| Arc::clone(total))
}

#[derive(Debug)]
struct OfIntervals {
    total: Total,
    signature: Signature,
}

impl PartialEq for OfIntervals {
    fn eq(&self, other: &Self) -> bool {
        self.total == other.total
    }
}

impl Eq for OfIntervals {}

impl Hash for OfIntervals {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.total.hash(state);
    }
}

impl AggregateUDFImpl for OfIntervals {
    fn name(&self) -> &str {
        match self.total {
            Total::Sum => "interval_sum",
            Total::Average => "interval_avg",
            Total::Least => "interval_min",
            Total::Greatest => "interval_max",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, _: &[DataType]) -> Result<Vec<DataType>> {
        Ok(vec![Kind::Interval.arrow()])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(Kind::Interval.arrow())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Found { total: self.total, interval: None, count: 0 }))
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![
            Arc::new(Field::new("interval", Kind::Interval.arrow(), true)),
            Arc::new(Field::new("count", DataType::Int64, true)),
        ])
    }
}

/// The state so far.
#[derive(Debug)]
struct Found {
    total: Total,
    interval: Option<Interval>,
    count: i64,
}

impl Found {
    fn take(&mut self, interval: Interval, count: i64) -> Result<()> {
        self.count += count;
        let Some(known) = self.interval else {
            self.interval = Some(interval);
            return Ok(());
        };
        self.interval = Some(match self.total {
            Total::Sum | Total::Average => add(&known, &interval).map_err(|error| wrong(&error))?,
            // Of equal intervals the later one wins, as in PostgreSQL.
            Total::Least if length(&interval) <= length(&known) => interval,
            Total::Greatest if length(&interval) >= length(&known) => interval,
            Total::Least | Total::Greatest => known,
        });
        Ok(())
    }
}

fn each(values: &[ArrayRef], mut take: impl FnMut(usize, Interval) -> Result<()>) -> Result<()> {
    let Some(values) = values.first() else { return Ok(()) };
    let Some(rows) = values.as_primitive_opt::<IntervalMonthDayNanoType>() else { return Ok(()) };
    for (at, value) in rows.iter().enumerate() {
        let Some(IntervalMonthDayNano { months, days, nanoseconds }) = value else { continue };
        take(at, Interval { months, days, nanoseconds })?;
    }
    Ok(())
}

fn scalar(interval: Option<Interval>) -> ScalarValue {
    ScalarValue::IntervalMonthDayNano(interval.map(|Interval { months, days, nanoseconds }| IntervalMonthDayNano {
        months,
        days,
        nanoseconds,
    }))
}

impl Accumulator for Found {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each(values, |_, interval| self.take(interval, 1))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return Ok(scalar(None));
        }
        Ok(scalar(match (self.total, self.interval) {
            (Total::Average, Some(sum)) => Some(spread(&sum, self.count as f64).map_err(|error| wrong(&error))?),
            (_, interval) => interval,
        }))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![scalar(self.interval), ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let counts = states.get(1).and_then(|counts| counts.as_primitive_opt::<Int64Type>());
        each(states, |at, interval| {
            let count = counts.filter(|counts| at < counts.len()).map_or(0, |counts| counts.value(at));
            self.take(interval, count)
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each(values, |_, interval| {
            self.count -= 1;
            let Some(known) = self.interval else { return Ok(()) };
            let less = negated(&interval).and_then(|interval| add(&known, &interval));
            self.interval = Some(less.map_err(|error| wrong(&error))?);
            Ok(())
        })
    }

    fn supports_retract_batch(&self) -> bool {
        matches!(self.total, Total::Sum | Total::Average)
    }
}
