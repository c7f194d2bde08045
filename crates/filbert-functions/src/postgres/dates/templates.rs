//! The functions with a template: `to_char`, `to_timestamp`, `to_date`.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use filbert_data::FieldType;
use filbert_data::dates::{SECOND_US, check_micros};

use super::super::super::row::{Function, is_text, wrong_arguments};
use super::super::super::time;
use super::casts::converted;
use super::cells::{Cell, Kind, compute};
use super::format::to_char;
use super::parse::read;
use super::{refused, wrong, zone_of};

static TO_CHAR: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(Function::udf("to_char", coerce_to_char, |_| Ok(FieldType::Varchar), run_to_char)));
static TO_TIMESTAMP: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("to_timestamp", coerce_to_timestamp, |_| Ok(FieldType::TimestampTz), to_timestamp))
});
static TO_DATE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(Function::udf("to_date", coerce_texts, |_| Ok(FieldType::Date), to_date)));

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [&TO_CHAR, &TO_TIMESTAMP, &TO_DATE].map(|function| Arc::clone(function)).to_vec()
}

fn coerce_to_char(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [value, template] if is_text(template) => Ok(vec![
            match Kind::of(value) {
                Kind::Date => Kind::Timestamptz.arrow(),
                kind if kind.is_temporal() => kind.arrow(),
                Kind::Integer | Kind::Number => value.clone(),
                Kind::Unknown => Kind::Timestamptz.arrow(),
                _ => return Err(wrong_arguments(name, types)),
            },
            DataType::Utf8View,
        ]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn run_to_char(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    if args.arg_fields.first().is_some_and(|field| field.data_type().is_numeric()) {
        return time::numbers_to_char(args);
    }
    let zone = zone_of(&args.config_options);
    compute(args, |cells| match cells {
        [of, Cell::Text(template)] => Ok(to_char(of, template, &zone)?.map_or(Cell::Null, Cell::Text)),
        _ => Ok(Cell::Null),
    })
}

fn coerce_to_timestamp(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [seconds] if seconds.is_numeric() || seconds.is_null() || is_text(seconds) => Ok(vec![DataType::Float64]),
        _ => coerce_texts(name, types),
    }
}

fn coerce_texts(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text, template] if is_text(text) && is_text(template) => Ok(vec![DataType::Utf8View; 2]),
        _ => Err(wrong_arguments(name, types)),
    }
}

fn to_timestamp(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let zone = zone_of(&args.config_options);
    compute(args, |cells| match cells {
        [Cell::Number(seconds)] => {
            if !seconds.is_finite() {
                return Err(refused(
                    format!("a timestamp of {seconds} seconds is not served: timestamps are finite"),
                    "0A000",
                ));
            }
            let micros = (seconds * SECOND_US as f64).round_ties_even();
            let micros = check_micros(micros as i128);
            micros
                .map(Cell::Timestamptz)
                .map_err(|_| refused(format!("timestamp out of range: \"{seconds}\""), "22008"))
        }
        [Cell::Text(text), Cell::Text(template)] => read(text, template)?.utc(&zone).map(Cell::Timestamptz),
        _ => Ok(Cell::Null),
    })
}

fn to_date(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let zone = zone_of(&args.config_options);
    compute(args, |cells| match cells {
        [Cell::Text(text), Cell::Text(template)] => {
            let days = Cell::Date(read(text, template)?.days);
            converted(&days, Kind::Date, &zone).map_err(|error| wrong(&error))
        }
        _ => Ok(Cell::Null),
    })
}
