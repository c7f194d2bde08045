//! `array_like(values, item)`: values as an array with elements of the other argument's type, or of
//! a wider one for numbers.
//!
//! `x = ANY($1)` and `x = ANY('{1,2}')` do not say which type the elements have; `x` does. A driver
//! thus learns the type of its parameter, and a literal becomes a list that an index may serve.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::arrow::compute::cast;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, lit,
};
use filbert_data::dates::Zone;
use filbert_data::{FieldType, Value};
use filbert_dialect::calls::ARRAY_LIKE;
use filbert_grid::query::{ParameterType, arrow_type};

use crate::builder::ColumnBuilder;
use crate::error::carried;
use crate::literals;
use crate::moments::zone_of_changes;
use crate::numbers::common_type;
use crate::numbers::decimals::FREE;
use crate::numbers::written::common_with_literals;
use crate::row::{failed, is_text, text_of, wrong_arguments};
use crate::text::CAST_UUID_NAME;
use crate::types::{
    ARRAY_OF_JSON, ARRAY_OF_JSONB, ARRAY_OF_UUID, JSONB, Mark, field, field_type_of, field_type_of_arrow,
};

/// The function, for expressions that planning creates.
pub(crate) static ARRAY_LIKE_UDF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(udf()));

pub(super) fn udf() -> ScalarUDF {
    ScalarUDF::new_from_impl(ArrayLike { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayLike {
    signature: Signature,
}

/// The type of an array of such elements; without a type, it is an array of text.
fn array_type(item: FieldType, of: &DataType) -> FieldType {
    FieldType::Array(Box::new(if of.is_null() { FieldType::Varchar } else { item }))
}

/// The type of the array of these values. Numbers keep their digits, so that they are compared as
/// they are: elements of an array have the common type of both, and a text beside decimals has the
/// digits that it is written with.
///
/// `literal` are the values if they are constant.
fn type_of_values(values: &DataType, literal: Option<&ScalarValue>, item: FieldType, of: &DataType) -> FieldType {
    let numbers = match values {
        DataType::List(own) if own.data_type().is_numeric() && of.is_numeric() => common_type(&[own.data_type(), of]),
        DataType::List(_) => None,
        _ if of.is_decimal() => match literal.and_then(text_of) {
            Some(text) => {
                let items: Vec<Expr> = literals_of(text).into_iter().map(lit).collect();
                common_with_literals(&[of], items.iter())
            }
            None => Some(FREE),
        },
        _ => None,
    };
    match numbers {
        Some(common) => array_type(field_type_of_arrow(&common), &common),
        None => array_type(item, of),
    }
}

/// The elements of an array that is written as a text, also of arrays within it.
fn literals_of(text: &str) -> Vec<String> {
    let elements = text.split(['{', '}', '[', ']', ',', '"']).map(|element| element.trim().to_owned());
    elements.filter(|element| !element.is_empty()).collect()
}

impl ScalarUDFImpl for ArrayLike {
    fn name(&self) -> &str {
        ARRAY_LIKE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::List(_), _] => Ok(types.to_vec()),
            [values, _] if is_text(values) => Ok(types.to_vec()),
            _ => Err(wrong_arguments(ARRAY_LIKE, types)),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, item] => Ok(arrow_type(&array_type(field_type_of_arrow(item), item))),
            _ => Err(wrong_arguments(ARRAY_LIKE, types)),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [values, item] = args.arg_fields else { return Err(wrong_arguments(ARRAY_LIKE, &[])) };
        let literal = args.scalar_arguments.first().copied().flatten();
        let found = type_of_values(values.data_type(), literal, field_type_of(item), item.data_type());
        Ok(field(ARRAY_LIKE, &found, true).into())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [Expr::Literal(values, _), item] = args.as_slice() else { return Ok(ExprSimplifyResult::Original(args)) };
        let (_, item) = item.to_field(info.schema())?;
        let of = item.data_type();
        let field_type = type_of_values(&values.data_type(), Some(values), field_type_of(&item), of);
        let list = one(values, &field_type, zone_of_changes(info.config_options()).as_ref())?;
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(list, None)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let field_type = field_type_of(&args.return_field);
        let zone = zone_of_changes(&args.config_options);
        match args.args.first() {
            Some(ColumnarValue::Scalar(values)) => Ok(ColumnarValue::Scalar(one(values, &field_type, zone.as_ref())?)),
            Some(ColumnarValue::Array(rows)) => Ok(ColumnarValue::Array(all(rows, &field_type, zone.as_ref())?)),
            None => Err(wrong_arguments(ARRAY_LIKE, &[])),
        }
    }
}

fn one(values: &ScalarValue, field_type: &FieldType, zone: Option<&Zone>) -> Result<ScalarValue> {
    match text_of(values) {
        Some(text) => ScalarValue::try_from_array(&of_texts([Some(text)].into_iter(), field_type, zone)?, 0),
        None if values.is_null() => ScalarValue::try_from(&arrow_type(field_type)),
        None => values.cast_to(&arrow_type(field_type)),
    }
}

fn all(rows: &ArrayRef, field_type: &FieldType, zone: Option<&Zone>) -> Result<ArrayRef> {
    if !is_text(rows.data_type()) {
        return Ok(cast(rows, &arrow_type(field_type))?);
    }
    let texts = cast(rows, &DataType::Utf8View)?;
    of_texts(texts.as_string_view().iter(), field_type, zone)
}

fn of_texts<'t>(
    texts: impl Iterator<Item = Option<&'t str>>,
    field_type: &FieldType,
    zone: Option<&Zone>,
) -> Result<ArrayRef> {
    let mut column = ColumnBuilder::new(field_type);
    for text in texts {
        let value = match text {
            Some(text) => literals::convert(Value::text(text), field_type, None, zone).map_err(carried)?,
            None => Value::Null,
        };
        column.append(value).map_err(|error| failed(error.to_string()))?;
    }
    Ok(column.finish())
}

/// Reports the types of parameters that Arrow's types do not determine: arrays with elements that a
/// value is compared with, UUIDs, documents, and arrays of them.
///
/// # Errors
/// An expression has no type.
pub fn reported_parameters(plan: &LogicalPlan, mut report: impl FnMut(&str, ParameterType)) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expression| {
            reported_in(expression, &schema, &mut report)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// Like [`reported_parameters`], for an expression.
fn reported_in(expression: &Expr, schema: &DFSchema, report: &mut impl FnMut(&str, ParameterType)) -> Result<()> {
    expression.apply(|inner| {
        match inner {
            Expr::Placeholder(parameter) => {
                if let Some(found) = parameter.field.as_ref().and_then(|field| marked_parameter(field)) {
                    report(&parameter.id, found);
                }
            }
            Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
                (ARRAY_LIKE, [Expr::Placeholder(parameter), item]) => {
                    let item = match item {
                        Expr::Literal(ScalarValue::Int64(Some(number)), _) if i32::try_from(*number).is_ok() => {
                            Arc::new(Field::new("", DataType::Int32, true))
                        }
                        item => field_beside(item, schema)?,
                    };
                    let own = parameter.field.as_ref().map_or(DataType::Null, |own| own.data_type().clone());
                    let found = type_of_values(&own, None, field_type_of(&item), item.data_type());
                    let pg_type = Mark::of(&item).of_array().oid.filter(|oid| *oid == ARRAY_OF_JSONB);
                    report(&parameter.id, ParameterType { field_type: found, pg_type });
                }
                (CAST_UUID_NAME, [Expr::Placeholder(parameter)]) => report(&parameter.id, FieldType::Uuid.into()),
                _ => {}
            },
            Expr::InList(list) => {
                if let Some(found) = field_beside(&list.expr, schema).ok().and_then(|field| marked_parameter(&field)) {
                    for item in &list.list {
                        if let Expr::Placeholder(parameter) = item {
                            report(&parameter.id, found.clone());
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The field of an expression that gives a parameter beside it its type. A cast keeps the metadata
/// of its operand, but its values are of the type that it casts to.
///
/// # Errors
/// The expression has no type.
pub fn field_beside(expression: &Expr, schema: &DFSchema) -> Result<FieldRef> {
    match expression {
        Expr::Alias(alias) => field_beside(&alias.expr, schema),
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => Ok(Arc::clone(field)),
        other => Ok(other.to_field(schema)?.1),
    }
}

/// The type of a parameter with such a field, if it is more than the Arrow type.
fn marked_parameter(field: &Field) -> Option<ParameterType> {
    let mark = Mark::of(field);
    let array = |item: FieldType| FieldType::Array(Box::new(item));
    Some(match (mark.kind, mark.oid) {
        (Some("UUID"), _) => FieldType::Uuid.into(),
        (Some("JSON"), Some(JSONB)) | (None, Some(JSONB)) => {
            ParameterType { field_type: FieldType::Json, pg_type: Some(JSONB) }
        }
        (Some("JSON"), _) => FieldType::Json.into(),
        (_, Some(ARRAY_OF_UUID)) => array(FieldType::Uuid).into(),
        (_, Some(ARRAY_OF_JSON)) => array(FieldType::Json).into(),
        (_, Some(ARRAY_OF_JSONB)) => {
            ParameterType { field_type: array(FieldType::Json), pg_type: Some(ARRAY_OF_JSONB) }
        }
        _ => return None,
    })
}
