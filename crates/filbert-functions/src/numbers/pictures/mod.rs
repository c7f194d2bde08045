//! Number patterns such as `999D99S`: `to_char(number, ..)` and `to_number(..)`, as in PostgreSQL
//! without a locale.
//!
//! | module | content |
//! |---|---|
//! | `picture` | parsing of patterns, and their properties |
//! | `write` | `to_char` |
//! | `read` | `to_number` |

mod picture;
mod read;
mod write;

use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use filbert_data::FieldType;

use super::super::row::{Function, Texts, is_text, wrong_arguments};
use super::decimals::array_of;

pub(in super::super) use write::to_char;

pub(super) fn functions() -> Vec<ScalarUDF> {
    // The scale of a number is known only from its text.
    vec![Function::udf("to_number", coerce_texts, |_| Ok(FieldType::Decimal(None)), to_number)]
}

fn coerce_texts(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let are_texts = types.iter().all(|found| is_text(found) || found.is_null());
    if types.len() == 2 && are_texts { Ok(vec![DataType::Utf8View; 2]) } else { Err(wrong_arguments(name, types)) }
}

fn to_number(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let (texts, pictures) = (Texts::of(args, 0)?, Texts::of(args, 1)?);
    let is_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let rows = if is_constant { 1 } else { args.number_rows };
    let one = |row: usize| match (texts.get(row), pictures.get(row)) {
        (Some(text), Some(picture)) => read::to_number(text, picture),
        _ => Ok(None),
    };
    let numbers = (0..rows).map(one).collect::<Result<Vec<_>>>()?;
    let array = array_of(&numbers, args.return_field.data_type())?;
    Ok(match is_constant {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?),
        false => ColumnarValue::Array(array),
    })
}
