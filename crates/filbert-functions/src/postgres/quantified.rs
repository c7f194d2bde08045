//! `compare_any(operator, item, array)` and `compare_all(operator, item, array)`:
//! `item <operator> ANY (array)` and `ALL`.
//!
//! Three-valued, as in PostgreSQL: ANY is true if the comparison is true for an element of the
//! array, otherwise unknown if it is unknown for one, otherwise false. ALL is the same with true
//! and false exchanged. For an array that is known at planning, `= ANY` is `IN` and `<> ALL` is
//! `NOT IN`, which indexes serve.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, UInt32Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use datafusion::arrow::compute::kernels::cmp;
use datafusion::arrow::compute::take;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use filbert_dialect::calls::{COMPARE_ALL, COMPARE_ANY};
use filbert_grid::query::Dialect;

use super::super::numbers::compared_as;
use super::super::row::{failed, is_text, text_of, wrong_arguments};
use super::compared_items::Items;
use crate::error::{carried, parsing_error};
use crate::lists;

pub(super) fn udfs(dialect: Dialect) -> [ScalarUDF; 2] {
    [COMPARE_ANY, COMPARE_ALL].map(|name| {
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::new_from_impl(Quantified { name, dialect, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantified {
    name: &'static str,
    /// The dialect, which decides how numbers are compared.
    dialect: Dialect,
    signature: Signature,
}

impl Quantified {
    /// The result that one element decides.
    fn decisive(&self) -> bool {
        self.name == COMPARE_ANY
    }
}

impl ScalarUDFImpl for Quantified {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let wrong = || wrong_arguments(self.name, types);
        let [operator, item, array] = types else { return Err(wrong()) };
        let (of_array, depth) = match array {
            DataType::LargeList(field) | DataType::FixedSizeList(field, _) => (field.data_type(), 1),
            DataType::List(_) => innermost(array),
            DataType::Null => (item, 1),
            // Rejected by code with more context: an error from here would be reworded.
            _ => return Ok(types.to_vec()),
        };
        let common = compared_as(item, of_array, self.dialect)
            .or_else(|| comparison_coercion(item, of_array))
            // A string literal is parsed as an element; a rule rejects any other text.
            .or_else(|| (self.dialect == Dialect::Postgres && is_text(item)).then(|| of_array.clone()))
            .ok_or_else(wrong)?;
        let list = (0..depth).fold(common.clone(), |item, _| DataType::new_list(item, true));
        Ok(vec![operator.clone(), common, list])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [Expr::Literal(operator, _), item, Expr::Literal(ScalarValue::List(array), metadata)] = args.as_slice()
        else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let negated = match (text_of(operator), self.decisive()) {
            (Some("="), true) => false,
            (Some("<>"), false) => true,
            _ => return Ok(ExprSimplifyResult::Original(args)),
        };
        let field = Field::new("", array.data_type().clone(), true);
        let field = metadata.as_ref().map_or(field.clone(), |metadata| metadata.add_to_field(field));
        // Not compared by Arrow's equality.
        let is_of_keys = matches!(Items::of(&field), Some(Items::Intervals | Items::Documents | Items::Fixed));
        let is_nested = matches!(array.value_type(), DataType::List(_));
        if is_of_keys || is_nested || array.is_null(0) || array.value_length(0) == 0 {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let items = array.value(0);
        let literal = |at| Ok(Expr::Literal(ScalarValue::try_from_array(&items, at)?, None));
        let list = (0..items.len()).map(literal).collect::<Result<Vec<_>>>()?;
        // Nulls are elements too.
        let list = lists::with_both_zeros(InList::new(Box::new(item.clone()), list, negated));
        Ok(ExprSimplifyResult::Simplified(lists::kept(Expr::InList(list))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(operator), item, array] = args.args.as_slice() else {
            return Err(failed("a comparison with the items of an array has an operator"));
        };
        let operator = text_of(operator).unwrap_or_default();
        let is_scalar = matches!((item, array), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        if !matches!(array.data_type(), DataType::List(_)) {
            return Err(no_array());
        }
        let (item, array) = (item.to_array(rows)?, array.to_array(rows)?);
        let result = match args.arg_fields.get(2).and_then(|field| Items::of(field)) {
            Some(items) => self.compare(operator, &items.compared(&item)?, &items.compared(&array)?)?,
            None => self.compare(operator, &item, &array)?,
        };
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// The error of a comparison with the elements of a value that is no array.
pub(crate) fn no_array() -> DataFusionError {
    carried(parsing_error("op ANY/ALL (array) requires array on right side").with_sqlstate("42809"))
}

/// The innermost element type of nested arrays, and their depth.
fn innermost(array: &DataType) -> (&DataType, usize) {
    match array {
        DataType::List(item) => {
            let (found, depth) = innermost(item.data_type());
            (found, depth + 1)
        }
        other => (other, 0),
    }
}

/// Flattens nested arrays.
fn flat(mut arrays: ListArray) -> Result<ListArray> {
    while matches!(arrays.value_type(), DataType::List(_)) {
        let inner = arrays.values().as_list::<i32>().clone();
        let starts = inner.value_offsets();
        let offsets = arrays.value_offsets().iter().map(|place| {
            let found = usize::try_from(*place).ok().and_then(|place| starts.get(place));
            found.copied().ok_or_else(|| failed("an array has items beyond its end"))
        });
        let offsets = OffsetBuffer::new(offsets.collect::<Result<Vec<i32>>>()?.into());
        let item = Arc::new(Field::new_list_field(inner.value_type(), true));
        arrays = ListArray::try_new(item, offsets, inner.values().clone(), arrays.nulls().cloned())?;
    }
    Ok(arrays)
}

impl Quantified {
    fn compare(&self, operator: &str, items: &ArrayRef, arrays: &ArrayRef) -> Result<ArrayRef> {
        let arrays = flat(arrays.as_list::<i32>().clone())?;
        let mut places = Vec::with_capacity(arrays.values().len());
        let mut within = Vec::with_capacity(arrays.values().len());
        for (row, offsets) in (0_u32..).zip(arrays.value_offsets().windows(2)) {
            let [from, to] = offsets else { continue };
            if usize::try_from(row).is_ok_and(|row| arrays.is_null(row)) {
                continue;
            }
            for place in *from..*to {
                places.push(row);
                within.push(u32::try_from(place).unwrap_or_default());
            }
        }
        let left = take(items.as_ref(), &UInt32Array::from(places.clone()), None)?;
        let right = take(arrays.values().as_ref(), &UInt32Array::from(within), None)?;
        let compared = match operator {
            "=" => cmp::eq(&left, &right),
            "<>" => cmp::neq(&left, &right),
            "<" => cmp::lt(&left, &right),
            "<=" => cmp::lt_eq(&left, &right),
            ">" => cmp::gt(&left, &right),
            ">=" => cmp::gt_eq(&left, &right),
            other => return Err(failed(format!("the operator {other} does not compare"))),
        }?;
        let decisive = self.decisive();
        let mut results: Vec<Option<bool>> =
            (0..arrays.len()).map(|row| arrays.is_valid(row).then_some(!decisive)).collect();
        for (row, compared) in places.into_iter().zip(compared.iter()) {
            let Some(result) = usize::try_from(row).ok().and_then(|row| results.get_mut(row)) else { continue };
            if compared == Some(decisive) {
                *result = Some(decisive);
            } else if compared.is_none() && *result != Some(decisive) {
                *result = None;
            }
        }
        Ok(Arc::new(BooleanArray::from(results)))
    }
}
