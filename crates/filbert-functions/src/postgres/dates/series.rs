//! `generate_series` of timestamps, as an array. Its elements become rows.

use std::sync::{Arc, LazyLock};

use arrow_array::{Array, ListArray};
use arrow_buffer::{IntervalMonthDayNano, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_nested::range::gen_series_udf;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use filbert_data::Interval;
use filbert_data::dates::Zone;

use super::super::super::results::count_series;
use super::super::super::row::{is_integer, wrong_arguments};
use super::calculate::{add_to_timestamp, add_to_timestamptz};
use super::cells::{Cell, Kind, array_of, column_cells};
use super::intervals::length;
use super::{refused, wrong, zone_of};

/// The maximum number of elements of one series: all of them are in memory at once.
const ITEMS_MAX: usize = 10_000_000;

static SERIES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Series { signature }))
});

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![Arc::clone(&SERIES)]
}

/// Wraps DataFusion's function, except for timestamps.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Series {
    signature: Signature,
}

/// The kind of the elements, if they are timestamps with or without a zone.
fn item(types: &[DataType]) -> Option<Kind> {
    let kinds: Vec<Kind> = types.iter().map(Kind::of).collect();
    let [from, to, step] = kinds.as_slice() else { return None };
    let is_datetime = |kind: &Kind| matches!(kind, Kind::Date | Kind::Timestamp | Kind::Timestamptz);
    let fits = |kind: &Kind| is_datetime(kind) || matches!(kind, Kind::Text | Kind::Unknown);
    let is_step = matches!(step, Kind::Interval | Kind::Text | Kind::Unknown);
    if !(is_datetime(from) || is_datetime(to)) || !fits(from) || !fits(to) || !is_step {
        return None;
    }
    let has = |kind: Kind| *from == kind || *to == kind;
    Some(if has(Kind::Timestamp) && !has(Kind::Timestamptz) { Kind::Timestamp } else { Kind::Timestamptz })
}

impl ScalarUDFImpl for Series {
    fn name(&self) -> &str {
        "generate_series"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if let Some(item) = item(types) {
            return Ok(vec![item.arrow(), item.arrow(), Kind::Interval.arrow()]);
        }
        if types.iter().any(|data_type| Kind::of(data_type).is_temporal()) {
            let names: Vec<&str> = types.iter().map(|data_type| Kind::of(data_type).name()).collect();
            return Err(refused(format!("function generate_series({}) does not exist", names.join(", ")), "42883"));
        }
        if !(1..=3).contains(&types.len()) || !types.iter().all(is_integer) {
            return Err(wrong_arguments(self.name(), types));
        }
        let number = if is_narrow(types) { DataType::Int32 } else { DataType::Int64 };
        Ok(vec![number; types.len()])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match item(types) {
            Some(item) => Ok(DataType::new_list(item.arrow(), true)),
            None if is_narrow(types) => Ok(DataType::new_list(DataType::Int32, true)),
            None => gen_series_udf().return_type(types),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        match item(&types) {
            Some(_) => Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true))),
            None if is_narrow(&types) => Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, true))),
            None => gen_series_udf().return_field_from_args(args),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        check_steps(&args)?;
        count_series(&args)?;
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let Some(item) = item(&types) else { return of_numbers(args, &types) };
        let zone = zone_of(&args.config_options);
        let rows = args.number_rows;
        let mut items = Vec::new();
        let (mut lengths, mut valid) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for cells in column_cells(&args)? {
            let before = items.len();
            let series = series(&cells, &zone, &mut items)?;
            lengths.push(items.len() - before);
            valid.push(series);
        }
        let values = array_of(&item.arrow(), items)?;
        let field = Arc::new(Field::new_list_field(item.arrow(), true));
        let offsets = OffsetBuffer::from_lengths(lengths);
        let list = ListArray::try_new(field, offsets, values, Some(NullBuffer::from(valid)))?;
        Ok(ColumnarValue::Array(Arc::new(list)))
    }
}

/// Rejects steps of zero, before the elements of an endless series are counted.
fn check_steps(args: &ScalarFunctionArgs) -> Result<()> {
    let [from, to, step] = args.args.as_slice() else { return Ok(()) };
    let bounds = [from.to_array(args.number_rows)?, to.to_array(args.number_rows)?];
    let rows = if let ColumnarValue::Scalar(_) = step { args.number_rows.min(1) } else { args.number_rows };
    for row in 0..rows {
        let is_zero = match step {
            ColumnarValue::Scalar(step) => is_zero(step),
            ColumnarValue::Array(steps) => is_zero(&ScalarValue::try_from_array(steps, row)?),
        };
        // A series with a NULL is NULL.
        let is_there = match step {
            ColumnarValue::Scalar(_) => bounds.iter().all(|bound| bound.null_count() < bound.len()),
            ColumnarValue::Array(_) => bounds.iter().all(|bound| bound.is_valid(row)),
        };
        if is_zero && is_there {
            return Err(refused("step size cannot equal zero", "22023"));
        }
    }
    Ok(())
}

fn is_zero(step: &ScalarValue) -> bool {
    match step {
        ScalarValue::Int32(step) => *step == Some(0),
        ScalarValue::Int64(step) => *step == Some(0),
        ScalarValue::IntervalMonthDayNano(Some(step)) => {
            let IntervalMonthDayNano { months, days, nanoseconds } = *step;
            length(&Interval { months, days, nanoseconds }) == 0
        }
        _ => false,
    }
}

/// Whether the numbers have 32 bits; the series then has as well.
fn is_narrow(types: &[DataType]) -> bool {
    types.contains(&DataType::Int32)
        && types
            .iter()
            .all(|number| matches!(number, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Null))
}

/// Series of whole numbers.
fn of_numbers(args: ScalarFunctionArgs, types: &[DataType]) -> Result<ColumnarValue> {
    if !is_narrow(types) {
        return gen_series_udf().invoke_with_args(args);
    }
    let wide = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(DataType::Int64));
    let narrow = args.return_field.data_type().clone();
    let arg_fields: Vec<FieldRef> = args.arg_fields.iter().map(wide).collect();
    let wide_types = vec![DataType::Int64; types.len()];
    let list = Field::new("series", gen_series_udf().return_type(&wide_types)?, true);
    let values = args.args.iter().map(|value| value.cast_to(&DataType::Int64, None)).collect::<Result<Vec<_>>>()?;
    let wide = ScalarFunctionArgs { args: values, arg_fields, return_field: Arc::new(list), ..args };
    gen_series_udf().invoke_with_args(wide)?.cast_to(&narrow, None)
}

/// Appends the elements of one row; returns whether the series exists.
fn series(cells: &[Cell], zone: &Zone, items: &mut Vec<Cell>) -> Result<bool> {
    let (from, to, step, is_zoned) = match cells {
        [Cell::Timestamp(from), Cell::Timestamp(to), Cell::Interval(step)] => (*from, *to, step, false),
        [Cell::Timestamptz(from), Cell::Timestamptz(to), Cell::Interval(step)] => (*from, *to, step, true),
        _ => return Ok(false),
    };
    let sign = length(step).signum();
    if sign == 0 {
        return Err(refused("step size cannot equal zero", "22023"));
    }
    let next = |at: i64, step: &Interval| match is_zoned {
        true => add_to_timestamptz(at, step, zone),
        false => add_to_timestamp(at, step),
    };
    let start = items.len();
    let mut at = from;
    while (sign > 0 && at <= to) || (sign < 0 && at >= to) {
        if items.len() - start >= ITEMS_MAX {
            return Err(refused(format!("a series has {ITEMS_MAX} items at most"), "54000"));
        }
        items.push(if is_zoned { Cell::Timestamptz(at) } else { Cell::Timestamp(at) });
        at = next(at, step).map_err(|error| wrong(&error))?;
    }
    Ok(true)
}
