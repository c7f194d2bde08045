//! `array_like(values, item)`: values as an array of items that are like the other argument.
//!
//! `x = ANY($1)` and `x = ANY('{1,2}')` do not say what they are arrays of; `x` does. A driver learns so in which type it has to send
//! its parameter, and a literal becomes a list that an index may serve.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef};
use datafusion::arrow::compute::cast;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use filbert_data::{FieldType, Value};
use filbert_dialect::calls::ARRAY_LIKE;
use filbert_grid::query::arrow_type;

use crate::builder::ColumnBuilder;
use crate::error::carried;
use crate::literals;
use crate::row::{failed, is_text, text_of, wrong_arguments};
use crate::text::CAST_UUID_NAME;
use crate::types::{Mark, field, field_type_of, field_type_of_arrow};

/// The function, for expressions that are made when a statement is planned.
pub(crate) static ARRAY_LIKE_UDF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(udf()));

pub(super) fn udf() -> ScalarUDF {
    ScalarUDF::new_from_impl(ArrayLike { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayLike {
    signature: Signature,
}

/// The type of an array of such items; an item of no type is a text.
fn array_type(item: FieldType, of: &DataType) -> FieldType {
    FieldType::Array(Box::new(if of.is_null() { FieldType::Varchar } else { item }))
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
        let [_, item] = args.arg_fields else { return Err(wrong_arguments(ARRAY_LIKE, &[])) };
        Ok(field(ARRAY_LIKE, &array_type(field_type_of(item), item.data_type()), true).into())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [Expr::Literal(values, _), item] = args.as_slice() else { return Ok(ExprSimplifyResult::Original(args)) };
        let (_, item) = item.to_field(info.schema())?;
        let list = one(values, &array_type(field_type_of(&item), item.data_type()))?;
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(list, None)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let field_type = field_type_of(&args.return_field);
        match args.args.first() {
            Some(ColumnarValue::Scalar(values)) => Ok(ColumnarValue::Scalar(one(values, &field_type)?)),
            Some(ColumnarValue::Array(rows)) => Ok(ColumnarValue::Array(all(rows, &field_type)?)),
            None => Err(wrong_arguments(ARRAY_LIKE, &[])),
        }
    }
}

fn one(values: &ScalarValue, field_type: &FieldType) -> Result<ScalarValue> {
    match text_of(values) {
        Some(text) => ScalarValue::try_from_array(&of_texts([Some(text)].into_iter(), field_type)?, 0),
        None if values.is_null() => ScalarValue::try_from(&arrow_type(field_type)),
        None => values.cast_to(&arrow_type(field_type)),
    }
}

fn all(rows: &ArrayRef, field_type: &FieldType) -> Result<ArrayRef> {
    if !is_text(rows.data_type()) {
        return Ok(cast(rows, &arrow_type(field_type))?);
    }
    let texts = cast(rows, &DataType::Utf8View)?;
    of_texts(texts.as_string_view().iter(), field_type)
}

fn of_texts<'t>(texts: impl Iterator<Item = Option<&'t str>>, field_type: &FieldType) -> Result<ArrayRef> {
    let mut column = ColumnBuilder::new(field_type);
    for text in texts {
        let value = match text {
            Some(text) => literals::convert(Value::text(text), field_type, None).map_err(carried)?,
            None => Value::Null,
        };
        column.append(value).map_err(|error| failed(error.to_string()))?;
    }
    Ok(column.finish())
}

/// Tells the types of parameters that no operator tells: of arrays that a value is compared with the items of, and of UUIDs.
///
/// # Errors
/// An expression has no type.
pub fn told_parameters(plan: &LogicalPlan, mut tell: impl FnMut(&str, FieldType)) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expression| {
            expression.apply(|inner| {
                match inner {
                    Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
                        (ARRAY_LIKE, [Expr::Placeholder(parameter), item]) => {
                            let (_, item) = item.to_field(&schema)?;
                            tell(&parameter.id, array_type(field_type_of(&item), item.data_type()));
                        }
                        (CAST_UUID_NAME, [Expr::Placeholder(parameter)]) => tell(&parameter.id, FieldType::Uuid),
                        _ => {}
                    },
                    Expr::InList(list)
                        if list.expr.to_field(&schema).is_ok_and(|(_, field)| Mark::of(&field).is_uuid()) =>
                    {
                        for item in &list.list {
                            if let Expr::Placeholder(parameter) = item {
                                tell(&parameter.id, FieldType::Uuid);
                            }
                        }
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}
