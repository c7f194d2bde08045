//! Arrays of arrays. PostgreSQL requires that all arrays of a dimension have the same length:
//! `ARRAY[..]` and `array_agg` reject others.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, UInt32Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::compute::take;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_nested::make_array::make_array_udf;
use datafusion::logical_expr::{Accumulator, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};

use super::super::around::{Around, around};
use super::super::numbers::common_type;
use super::super::numbers::written::common_of_arguments;
use super::super::row::is_text;
use super::refused;

/// `ARRAY[..]`.
pub(crate) fn make_array() -> ScalarUDF {
    around(make_array_udf(), Rectangular)
}

/// Wraps DataFusion's function. Numbers get their common type, which DataFusion does not have for
/// all of them, and arrays of arrays are rectangular.
#[derive(Debug)]
struct Rectangular;

impl Around for Rectangular {
    fn coerce_types(&self, inner: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        let known: Vec<&DataType> = types.iter().filter(|found| !found.is_null()).collect();
        if let Some(common) = common_type(&known) {
            return Ok(vec![common; types.len()]);
        }
        // A string literal is parsed as a value of the other elements' type; any other text beside
        // them is rejected.
        let others: Vec<DataType> = known.iter().filter(|found| !is_text(found)).map(|of| (*of).clone()).collect();
        if others.is_empty() || others.len() == known.len() {
            // DataFusion does not know a type beside NULL for all types.
            return inner.coerce_types(types).or_else(|_| {
                let common = inner.coerce_types(&known.into_iter().cloned().collect::<Vec<_>>())?;
                Ok(common.first().map_or_else(|| types.to_vec(), |common| vec![common.clone(); types.len()]))
            });
        }
        let common = inner.coerce_types(&others)?;
        Ok(common.first().map_or_else(|| types.to_vec(), |common| vec![common.clone(); types.len()]))
    }

    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match common_of_arguments(&args) {
            Some(common) => Ok(Arc::new(Field::new_list(inner.name(), Field::new_list_field(common, true), true))),
            None => inner.return_field_from_args(args),
        }
    }

    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match inner.invoke_with_args(args)? {
            ColumnarValue::Scalar(ScalarValue::List(array)) => {
                ColumnarValue::Scalar(ScalarValue::List(Arc::new(rectangular(&array)?)))
            }
            ColumnarValue::Array(arrays) => match arrays.as_list_opt::<i32>() {
                Some(lists) => ColumnarValue::Array(Arc::new(rectangular(lists)?)),
                None => ColumnarValue::Array(arrays),
            },
            other => other,
        })
    }
}

/// Replaces arrays that contain only empty arrays and nulls by empty arrays.
fn rectangular(arrays: &ListArray) -> Result<ListArray> {
    if !is_nested(arrays.data_type()) {
        return Ok(arrays.clone());
    }
    let mut kept = Vec::with_capacity(arrays.len());
    for row in 0..arrays.len() {
        let lengths = if arrays.is_null(row) { Some(Vec::new()) } else { lengths(&arrays.value(row)) };
        let Some(lengths) = lengths else {
            let message = "multidimensional arrays must have array expressions with matching dimensions";
            return Err(refused("2202E", message));
        };
        kept.push(!lengths.is_empty());
    }
    let mut places: Vec<u32> = Vec::with_capacity(arrays.values().len());
    let offsets = arrays.value_offsets().windows(2).zip(&kept).map(|(offsets, is_kept)| {
        let [from, to] = offsets else { return 0 };
        let before = places.len();
        if *is_kept {
            places.extend((*from..*to).filter_map(|place| u32::try_from(place).ok()));
        }
        places.len() - before
    });
    let offsets = OffsetBuffer::from_lengths(offsets.collect::<Vec<_>>());
    let DataType::List(item) = arrays.data_type() else { return Ok(arrays.clone()) };
    let values = take(arrays.values(), &UInt32Array::from(places), None)?;
    Ok(ListArray::try_new(Arc::clone(item), offsets, values, arrays.nulls().cloned())?)
}

/// Whether a type is an array of arrays.
pub fn is_nested(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(item) if matches!(item.data_type(), DataType::List(_)))
}

/// The lengths of the dimensions of an array with these elements; empty for an empty array; `None`
/// if inner arrays differ.
fn lengths(items: &ArrayRef) -> Option<Vec<usize>> {
    let mut lengths_within: Option<Vec<usize>> = None;
    let Some(arrays) = items.as_list_opt::<i32>() else {
        return Some(if items.is_empty() { Vec::new() } else { vec![items.len()] });
    };
    for row in 0..arrays.len() {
        let own = if arrays.is_null(row) { Vec::new() } else { lengths(&arrays.value(row))? };
        if lengths_within.as_ref().is_some_and(|others| *others != own) {
            return None;
        }
        lengths_within = Some(own);
    }
    let within = lengths_within.unwrap_or_default();
    Some(if within.is_empty() { within } else { std::iter::once(arrays.len()).chain(within).collect() })
}

/// An accumulator of `array_agg` over arrays.
#[derive(Debug)]
pub(super) struct OfArrays(pub(super) Box<dyn Accumulator>);

impl Accumulator for OfArrays {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.0.evaluate()?;
        let ScalarValue::List(array) = &result else { return Ok(result) };
        let Some(row) = (!array.is_null(0) && !array.is_empty()).then(|| array.value(0)) else { return Ok(result) };
        let Some(items) = row.as_list_opt::<i32>() else { return Ok(result) };
        if items.null_count() > 0 {
            return Err(refused("22004", "cannot accumulate null arrays"));
        }
        match lengths(&row) {
            None => Err(refused("2202E", "cannot accumulate arrays of different dimensionality")),
            Some(lengths) if lengths.is_empty() => Err(refused("2202E", "cannot accumulate empty arrays")),
            Some(_) => Ok(result),
        }
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }
}
