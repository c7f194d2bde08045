//! Functions on texts that DataFusion lacks or defines differently.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::Int32Builder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, StringViewArray};
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::unicode::substr;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Volatility};
use filbert_data::{FieldType, ToBlob, uuid_of};
use filbert_grid::query::SqlSubject;
use uuid::Uuid;

use super::around::{Around, coerced};
use super::results::check_value;
use super::row::{
    Function, Texts, collect, collect_texts, constant_text, failed, is_integer, is_text, wrong_arguments,
};
use crate::error::{carried, data_error};
use crate::types::{field_type_of, value_of};

/// `SUBSTRING` in Hazelcast's dialect, for whole numbers of all types.
pub(super) fn section() -> ScalarUDF {
    coerced(substr(), Section)
}

#[derive(Debug)]
struct Section;

impl Around for Section {
    fn coerce_types(&self, inner: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [text, places @ ..]
                if is_text(text) && (1..=2).contains(&places.len()) && places.iter().all(is_integer) =>
            {
                let places = vec![DataType::Int64; places.len()];
                Ok([vec![DataType::Utf8View], places].concat())
            }
            _ => Err(wrong_arguments(inner.name(), types)),
        }
    }
}

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::udf("like_pattern", coerce_texts, returns_text, like_pattern),
        Function::udf("position", coerce_position, |_| Ok(FieldType::Integer), position),
        Function::udf("lpad", coerce_pad, returns_text, |args| pad(args, true)),
        Function::udf("rpad", coerce_pad, returns_text, |args| pad(args, false)),
        JSON_AS_TEXT.as_ref().clone(),
        CAST_UUID.as_ref().clone(),
        Function::udf("cast_object", |_, types| Ok(types.to_vec()), |_| Ok(FieldType::Object), cast_object),
    ]
}

/// A JSON document as plain text. Arrow has the same type for both.
pub(super) static JSON_AS_TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("json_as_text", coerce_texts, returns_text, |args| {
        Ok(args.args.first().cloned().unwrap_or(ColumnarValue::Scalar(ScalarValue::Utf8View(None))))
    }))
});

/// The name of the function that parses UUIDs.
pub(super) const CAST_UUID_NAME: &str = "cast_uuid";
/// Random UUIDs.
pub(super) fn random_uuid() -> ScalarUDF {
    let no_arguments = |name: &str, types: &[DataType]| match types {
        [] => Ok(Vec::new()),
        _ => Err(wrong_arguments(name, types)),
    };
    let volatility = Volatility::Volatile;
    Function::with_volatility(
        "gen_random_uuid",
        volatility,
        no_arguments,
        |_| Ok(FieldType::Uuid),
        |args| {
            let uuids = (0..args.number_rows).map(|_| Some(Uuid::new_v4().hyphenated().to_string()));
            Ok(ColumnarValue::Array(Arc::new(uuids.collect::<StringViewArray>())))
        },
    )
}

/// A text as a UUID.
pub(super) static CAST_UUID: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(Function::udf(CAST_UUID_NAME, coerce_texts, |_| Ok(FieldType::Uuid), cast_uuid)));

fn returns_text(_: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    Ok(FieldType::Varchar)
}

/// A value as the bytes of a blob; an object is returned unchanged.
fn cast_object(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let [value] = args.args.as_slice() else { return Err(wrong_arguments("cast_object", &[])) };
    if value.data_type().is_binary() {
        return Ok(value.clone());
    }
    let field_type = args.arg_fields.first().map_or(FieldType::Varchar, |field| field_type_of(field));
    collect(args, |row| {
        let scalar = match value {
            ColumnarValue::Scalar(scalar) => scalar.clone(),
            ColumnarValue::Array(rows) => ScalarValue::try_from_array(rows, row)?,
        };
        let value = value_of(&scalar, &field_type);
        if value.is_null() {
            return Ok(ScalarValue::BinaryView(None));
        }
        let blob = value.to_blob().map_err(|error| failed(error.to_string()))?;
        Ok(ScalarValue::BinaryView(Some(blob.into_vec())))
    })
}

/// The canonical form of a UUID, which comparisons use: lower case, with hyphens.
fn cast_uuid(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let texts = Texts::of(args, 0)?;
    collect_texts(args, |row| match texts.get(row) {
        Some(text) => match uuid_of(text.trim()) {
            Some(uuid) => Ok(Some(uuid.hyphenated().to_string())),
            None => {
                let message = format!("invalid input syntax for type uuid: {text:?}");
                let subject = SqlSubject::Text { text: text.to_owned(), field_type: FieldType::Uuid };
                Err(carried(data_error(message).with_sqlstate("22P02").about(subject)))
            }
        },
        None => Ok(None),
    })
}

fn coerce_texts(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    if !types.iter().all(is_text) {
        return Err(wrong_arguments(name, types));
    }
    Ok(vec![DataType::Utf8View; types.len()])
}

/// Converts a pattern with another escape character, or none, to one with the backslash.
fn like_pattern(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let escape = constant_text(args, 1).and_then(|escape| escape.chars().next());
    let patterns = Texts::of(args, 0)?;
    collect_texts(args, |row| match patterns.get(row) {
        Some(pattern) => filbert_dialect::like_pattern(pattern, escape).map(Some).map_err(crate::error::carried),
        None => Ok(None),
    })
}

fn coerce_position(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [seek, text] if is_text(seek) && is_text(text) => Ok(vec![DataType::Utf8View; 2]),
        [seek, bytes] if [seek, bytes].iter().all(|one| one.is_binary() || one.is_null()) => {
            Ok(vec![DataType::BinaryView; 2])
        }
        [seek, text, from] if is_text(seek) && is_text(text) && is_integer(from) => {
            Ok(vec![DataType::Utf8View, DataType::Utf8View, DataType::Int64])
        }
        _ => Err(wrong_arguments(name, types)),
    }
}

/// The position of a text in another, from 1, at or after a start position; 0 = not found.
fn position(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    if args.args.first().is_some_and(|seek| seek.data_type().is_binary()) {
        return position_of_bytes(args);
    }
    let (seeks, texts) = (Texts::of(args, 0)?, Texts::of(args, 1)?);
    let from = match args.args.get(2) {
        None => None,
        Some(from) => Some(from.to_array(super::row::rows_of(args))?),
    };
    let one = |row: usize| -> Result<Option<i32>> {
        let (Some(seek), Some(text)) = (seeks.get(row), texts.get(row)) else { return Ok(None) };
        let from = match &from {
            None => 1,
            Some(from) => match ScalarValue::try_from_array(from, row)? {
                ScalarValue::Int64(Some(from)) => from,
                _ => return Ok(None),
            },
        };
        let skipped = usize::try_from(from.max(1) - 1).unwrap_or(usize::MAX);
        let Some((start, _)) = text.char_indices().nth(skipped) else {
            let at_end = seek.is_empty() && skipped == text.chars().count();
            return Ok(Some(if at_end { i32::try_from(skipped + 1).unwrap_or(i32::MAX) } else { 0 }));
        };
        let rest = text.get(start..).unwrap_or_default();
        let found = rest.find(seek).map(|at| skipped + rest.get(..at).unwrap_or_default().chars().count() + 1);
        Ok(Some(found.and_then(|found| i32::try_from(found).ok()).unwrap_or(0)))
    };
    collect_places(args, one)
}

/// The position of bytes within bytes.
fn position_of_bytes(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = args.args.iter().map(|value| value.to_array(super::row::rows_of(args))).collect::<Result<Vec<_>>>()?;
    let [seeks, whole] = arrays.as_slice() else { return Err(wrong_arguments("position", &[])) };
    let (Some(seeks), Some(whole)) = (seeks.as_binary_view_opt(), whole.as_binary_view_opt()) else {
        return Err(wrong_arguments("position", &[]));
    };
    collect_places(args, |row| {
        if seeks.is_null(row) || whole.is_null(row) {
            return Ok(None);
        }
        let (seek, bytes) = (seeks.value(row), whole.value(row));
        let found = match seek.is_empty() {
            true => Some(0),
            false => bytes.windows(seek.len()).position(|window| window == seek),
        };
        Ok(Some(found.and_then(|at| i32::try_from(at + 1).ok()).unwrap_or(0)))
    })
}

fn collect_places(args: &ScalarFunctionArgs, one: impl Fn(usize) -> Result<Option<i32>>) -> Result<ColumnarValue> {
    if args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_))) {
        return Ok(ColumnarValue::Scalar(ScalarValue::Int32(one(0)?)));
    }
    let mut builder = Int32Builder::with_capacity(args.number_rows);
    for row in 0..args.number_rows {
        builder.append_option(one(row)?);
    }
    Ok(ColumnarValue::Array(Arc::new(builder.finish())))
}

fn coerce_pad(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text, length] if is_text(text) && is_integer(length) => Ok(vec![DataType::Utf8View, DataType::Int64]),
        [text, length, fill] if is_text(text) && is_integer(length) && is_text(fill) => {
            Ok(vec![DataType::Utf8View, DataType::Int64, DataType::Utf8View])
        }
        _ => Err(wrong_arguments(name, types)),
    }
}

/// A text of a given length: padded on one side, or truncated at its end.
fn pad(args: &ScalarFunctionArgs, is_left: bool) -> Result<ColumnarValue> {
    let (texts, lengths) = (Texts::of(args, 0)?, args.args.get(1));
    let fills = if args.args.len() > 2 { Some(Texts::of(args, 2)?) } else { None };
    let lengths = match lengths {
        Some(lengths) => lengths.to_array(args.number_rows.max(1))?,
        None => return Err(wrong_arguments("lpad", &[])),
    };
    collect_texts(args, |row| {
        let fill = fills.as_ref().map_or(Some(" "), |fills| fills.get(row));
        let (Some(text), Some(fill)) = (texts.get(row), fill) else { return Ok(None) };
        let ScalarValue::Int64(Some(length)) = ScalarValue::try_from_array(&lengths, row)? else { return Ok(None) };
        let length = usize::try_from(length).unwrap_or(0);
        // A character has at least one byte.
        check_value(length)?;
        let count = text.chars().count();
        if count >= length {
            return Ok(Some(text.chars().take(length).collect()));
        }
        let filled = fill.chars().cycle().take(length - count);
        let mut padded = String::with_capacity(text.len() + (length - count));
        match is_left {
            true => padded.extend(filled.chain(text.chars())),
            false => padded.extend(text.chars().chain(filled)),
        }
        Ok(Some(padded))
    })
}
