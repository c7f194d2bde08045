//! Sums and averages of floating-point numbers: over sliding windows, and out of range.

use std::collections::VecDeque;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

use crate::error::{carried, data_error};
use crate::numbers::one_nan;
use crate::row::failed;

/// Finds results that are infinite although no argument was, which PostgreSQL rejects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overflow {
    is_checked: bool,
    has_infinite: bool,
}

impl Overflow {
    pub(super) fn new(is_checked: bool) -> Overflow {
        Overflow { is_checked, has_infinite: false }
    }

    /// Looks at arguments, or at states that are merged.
    pub(super) fn note(&mut self, arrays: &[ArrayRef]) {
        if self.is_checked && !self.has_infinite {
            self.has_infinite = arrays.iter().any(has_infinite);
        }
    }

    /// Looks at results.
    ///
    /// # Errors
    /// One of them is infinite, and no argument was.
    pub(super) fn check(&self, results: &ArrayRef) -> Result<()> {
        match self.is_checked && !self.has_infinite && has_infinite(results) {
            true => Err(carried(data_error("value out of range: overflow").with_sqlstate("22003"))),
            false => Ok(()),
        }
    }
}

fn has_infinite(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            floats.values().iter().any(|float| float.is_infinite()) && floats.iter().flatten().any(f64::is_infinite)
        }
        // The state of a total of distinct numbers: all of them.
        DataType::List(_) => has_infinite(array.as_list::<i32>().values()),
        DataType::Float32 => array.as_primitive::<Float32Type>().iter().flatten().any(f32::is_infinite),
        _ => false,
    }
}

/// The floating-point numbers of a sliding window. The total is computed again for each position:
/// subtracting a number would leave its rounding errors, and infinities and NaN cannot be
/// subtracted.
#[derive(Debug)]
pub(super) struct SlidingFloats {
    values: VecDeque<Option<f64>>,
    is_average: bool,
}

impl SlidingFloats {
    /// The average of the numbers, or their sum.
    pub(super) fn new(is_average: bool) -> SlidingFloats {
        SlidingFloats { values: VecDeque::new(), is_average }
    }

    fn total(&self) -> (f64, u64) {
        self.values.iter().flatten().fold((0.0, 0), |(sum, count), value| (sum + value, count + 1))
    }
}

impl Accumulator for SlidingFloats {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let floats = values.first().and_then(|values| values.as_primitive_opt::<Float64Type>());
        let floats = floats.ok_or_else(|| failed("a floating-point number is expected"))?;
        self.values.extend(floats);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let gone = values.first().map_or(0, |values| values.len());
        self.values.drain(..gone.min(self.values.len()));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let (sum, count) = self.total();
        #[allow(clippy::cast_precision_loss, reason = "a window has fewer than 2^53 rows")]
        let total = if self.is_average { sum / count as f64 } else { sum };
        Ok(ScalarValue::Float64((count > 0).then_some(one_nan(total))))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<Option<f64>>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(failed("a window has no state that is merged"))
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(failed("a window has no state that is merged"))
    }
}
