//! Keys of arrays: the bytes of Arrow's rows, with nulls in arrays after all elements. Equal arrays
//! have equal keys.
//!
//! DataFusion orders arrays in two ways. Its sorts place nulls in arrays where they place null
//! arrays. Its comparisons, which discard rows for an order with a limit, place them first. Bytes
//! have one order.

use std::sync::{Arc, LazyLock};

use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_schema::{DataType, SortOptions};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::super::row::wrong_arguments;
use super::compared_items::Items;

const NAME: &str = "array_order";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(ArrayOrder { signature: Signature::any(1, Volatility::Immutable) }))
});

/// The key of an array, for orders and groups; null for a null array.
pub(super) fn key(array: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FUNCTION), vec![array]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayOrder {
    signature: Signature,
}

impl ScalarUDFImpl for ArrayOrder {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [array] = args.args.as_slice() else { return Err(wrong_arguments(NAME, &[])) };
        let is_constant = matches!(array, ColumnarValue::Scalar(_));
        let arrays = array.to_array(if is_constant { 1 } else { args.number_rows })?;
        let arrays = match args.arg_fields.first().and_then(|field| Items::of(field)) {
            Some(items) => items.compared(&arrays)?,
            None => arrays,
        };
        let options = SortOptions { descending: false, nulls_first: false };
        let converter = RowConverter::new(vec![SortField::new_with_options(arrays.data_type().clone(), options)])?;
        let rows = converter.convert_columns(&[Arc::clone(&arrays)])?;
        let nulls = arrays.logical_nulls();
        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let keys = rows.iter().enumerate().map(|(row, key)| (!is_null(row)).then_some(key));
        let keys: ArrayRef = Arc::new(keys.collect::<BinaryArray>());
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&keys, 0)?),
            false => ColumnarValue::Array(keys),
        })
    }
}
