//! `information_schema._pg_expandarray(array)`: the elements of an array with their positions, as
//! an array of rows `(x, n)`.
//!
//! In PostgreSQL it returns rows. Where statements call it in a SELECT list, it is wrapped in
//! `unnest(..)`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int32Array, ListArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::super::row::wrong_arguments;

const NAME: &str = "_pg_expandarray";

pub(super) fn udf() -> ScalarUDF {
    ScalarUDF::new_from_impl(ExpandArray { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExpandArray {
    signature: Signature,
}

/// The columns of the rows.
fn columns(item: &DataType) -> Fields {
    Fields::from(vec![Field::new("x", item.clone(), true), Field::new("n", DataType::Int32, true)])
}

impl ScalarUDFImpl for ExpandArray {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::List(_)] => Ok(types.to_vec()),
            _ => Err(wrong_arguments(NAME, types)),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::List(item)] => Ok(DataType::new_list(DataType::Struct(columns(item.data_type())), true)),
            _ => Err(wrong_arguments(NAME, types)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        match arrays.first().and_then(|array| array.as_list_opt::<i32>()) {
            Some(list) => Ok(ColumnarValue::Array(expanded(list)?)),
            None => Err(wrong_arguments(NAME, &[])),
        }
    }
}

fn expanded(list: &ListArray) -> Result<ArrayRef> {
    let mut places = vec![0; list.values().len()];
    for pair in list.offsets().windows(2) {
        let [start, end] = pair else { continue };
        let (Ok(start), Ok(end)) = (usize::try_from(*start), usize::try_from(*end)) else { continue };
        for (place, number) in places.get_mut(start..end).unwrap_or_default().iter_mut().zip(1..) {
            *place = number;
        }
    }
    let fields = columns(&list.value_type());
    let rows = StructArray::try_new(fields, vec![list.values().clone(), Arc::new(Int32Array::from(places))], None)?;
    let item = Arc::new(Field::new_list_field(rows.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(item, list.offsets().clone(), Arc::new(rows), list.nulls().cloned())?))
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Int32Type, Int64Type};

    use super::*;

    #[test]
    fn items_have_the_places_that_they_have_in_their_array() {
        let rows = [Some(vec![Some(7), None]), None, Some(vec![]), Some(vec![Some(9)])];
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>(rows);
        // The first row is cut off, so the elements of the others do not start at the beginning.
        let expanded = expanded(&list.slice(1, 3)).unwrap();
        let expanded = expanded.as_list::<i32>();
        assert_eq!((expanded.len(), expanded.is_null(0), expanded.value(1).len()), (3, true, 0));
        let last = expanded.value(2);
        let last = last.as_struct();
        assert_eq!(last.column(0).as_primitive::<Int64Type>().value(0), 9);
        assert_eq!(last.column(1).as_primitive::<Int32Type>().value(0), 1);
    }
}
