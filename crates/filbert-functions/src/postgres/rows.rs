//! `array_of_rows(array)`: the array of an aggregate over rows, or an empty array if there were no
//! rows.
//!
//! `ARRAY(SELECT ..)` is always an array, but `array_agg` of no rows is null.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::compute::concat;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use filbert_dialect::calls::ARRAY_OF_ROWS;

use super::super::row::wrong_arguments;

pub(super) fn udf() -> ScalarUDF {
    ScalarUDF::new_from_impl(ArrayOfRows { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayOfRows {
    signature: Signature,
}

impl ScalarUDFImpl for ArrayOfRows {
    fn name(&self) -> &str {
        ARRAY_OF_ROWS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| wrong_arguments(ARRAY_OF_ROWS, types))
    }

    /// The metadata of the argument applies to the result.
    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        args.arg_fields.first().cloned().ok_or_else(|| wrong_arguments(ARRAY_OF_ROWS, &[]))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.first() {
            Some(ColumnarValue::Array(arrays)) => Ok(ColumnarValue::Array(without_nulls(arrays)?)),
            Some(ColumnarValue::Scalar(scalar)) => {
                let filled = without_nulls(&scalar.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&filled, 0)?))
            }
            None => Err(wrong_arguments(ARRAY_OF_ROWS, &[])),
        }
    }
}

/// Replaces null arrays by empty arrays.
fn without_nulls(arrays: &ArrayRef) -> Result<ArrayRef> {
    let Some(lists) = arrays.as_list_opt::<i32>().filter(|lists| lists.null_count() > 0) else {
        return Ok(Arc::clone(arrays));
    };
    // Values behind a null must be skipped.
    let kept: Vec<ArrayRef> = (0..lists.len()).filter(|at| lists.is_valid(*at)).map(|at| lists.value(at)).collect();
    let values = match kept.as_slice() {
        [] => arrow_array::new_empty_array(&lists.value_type()),
        kept => concat(&kept.iter().map(AsRef::as_ref).collect::<Vec<_>>())?,
    };
    let lengths = (0..lists.len()).map(|at| match lists.is_valid(at) {
        true => usize::try_from(lists.value_length(at)).unwrap_or_default(),
        false => 0,
    });
    let item = Arc::new(Field::new_list_field(lists.value_type(), true));
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), values, None)?))
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int64Type;

    use super::*;

    #[test]
    fn a_null_becomes_an_array_without_items() {
        let rows = [Some(vec![Some(7), None]), None, Some(vec![]), Some(vec![Some(9)])];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows));
        let expected = [Some(vec![]), Some(vec![]), Some(vec![Some(9)])];
        let expected = ListArray::from_iter_primitive::<Int64Type, _, _>(expected);
        assert_eq!(without_nulls(&lists.slice(1, 3)).unwrap().as_list::<i32>(), &expected);
    }
}
