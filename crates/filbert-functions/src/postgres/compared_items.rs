//! Elements of arrays in the form in which they are compared: intervals by length, documents by
//! value, fixed-length texts without trailing blanks, and zeros without a sign.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef, BinaryArray, Decimal128Array, ListArray, StringViewArray};
use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::{DataType, Field, IntervalUnit};
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use filbert_data::Interval;

use super::arrays::key_of_document;
use super::dates::length;
use crate::types::{ARRAY_OF_BPCHAR, ARRAY_OF_JSONB, pg_type_of};

/// Elements that Arrow compares differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Items {
    Intervals,
    Documents,
    /// Texts of type `char(n)`.
    Fixed,
    Floats,
}

impl Items {
    /// The elements of arrays in a field; `None` if Arrow compares them as PostgreSQL does.
    pub(super) fn of(arrays: &Field) -> Option<Items> {
        let mut innermost = arrays.data_type();
        while let DataType::List(item) = innermost {
            innermost = item.data_type();
        }
        match (innermost, pg_type_of(arrays)) {
            (_, Some(ARRAY_OF_JSONB)) => Some(Items::Documents),
            (_, Some(ARRAY_OF_BPCHAR)) => Some(Items::Fixed),
            (DataType::Interval(IntervalUnit::MonthDayNano), _) => Some(Items::Intervals),
            (DataType::Float32 | DataType::Float64, _) => Some(Items::Floats),
            _ => None,
        }
    }

    /// Elements, or arrays of them, in the form in which they are compared. Values of other types
    /// stay as they are.
    pub(super) fn compared(self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(match values.data_type() {
            DataType::List(_) => {
                let arrays = values.as_list::<i32>();
                let items = self.compared(arrays.values())?;
                let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
                Arc::new(ListArray::try_new(field, arrays.offsets().clone(), items, arrays.nulls().cloned())?)
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                let of = |IntervalMonthDayNano { months, days, nanoseconds }| {
                    length(&Interval { months, days, nanoseconds })
                };
                let intervals = values.as_primitive::<IntervalMonthDayNanoType>().iter();
                let lengths: Decimal128Array = intervals.map(|interval| interval.map(of)).collect();
                Arc::new(lengths.with_precision_and_scale(38, 0)?)
            }
            // The sum of a negative and a positive zero is positive.
            DataType::Float64 => Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(|x| x + 0.0)),
            DataType::Float32 => Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(|x| x + 0.0)),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if self != Items::Floats => {
                let texts = cast(values, &DataType::Utf8View)?;
                let texts = texts.as_string_view().iter();
                match self {
                    Items::Documents => {
                        // A text that is no document is compared as it is.
                        let key = |text: &str| key_of_document(text).unwrap_or_else(|| text.as_bytes().to_vec());
                        Arc::new(texts.map(|text| text.map(key)).collect::<BinaryArray>())
                    }
                    _ => Arc::new(
                        texts.map(|text| text.map(|text| text.trim_end_matches(' '))).collect::<StringViewArray>(),
                    ),
                }
            }
            _ => Arc::clone(values),
        })
    }
}
