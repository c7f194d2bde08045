//! Functions that are computed row by row.

use std::hash::{Hash, Hasher};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use filbert_data::FieldType;
use filbert_grid::query::SqlSubject;

use super::results::Results;
use super::strict;
use crate::error::{carried, data_error, parsing_error};

/// The types that arguments are cast to, from their own types.
pub(super) type Coerce = fn(&str, &[DataType]) -> Result<Vec<DataType>>;
/// The type of the result.
pub(super) type Returns = fn(&ReturnFieldArgs<'_>) -> Result<FieldType>;
/// The computation.
pub(super) type Invoke = fn(&ScalarFunctionArgs) -> Result<ColumnarValue>;

/// A function as a row of a table.
#[derive(Clone, Debug)]
pub(super) struct Function {
    name: &'static str,
    signature: Signature,
    /// Whether the result is null if an argument is null ([`strict`]).
    is_strict: bool,
    coerce: Coerce,
    returns: Returns,
    invoke: Invoke,
}

impl Function {
    /// A function of its arguments alone.
    pub(super) fn udf(name: &'static str, coerce: Coerce, returns: Returns, invoke: Invoke) -> ScalarUDF {
        Function::with_volatility(name, Volatility::Immutable, coerce, returns, invoke)
    }

    /// A function with this volatility.
    pub(super) fn with_volatility(
        name: &'static str,
        volatility: Volatility,
        coerce: Coerce,
        returns: Returns,
        invoke: Invoke,
    ) -> ScalarUDF {
        let signature = Signature::user_defined(volatility);
        let is_strict = strict::is_strict(name);
        ScalarUDF::new_from_impl(Function { name, signature, is_strict, coerce, returns, invoke })
    }

    /// Marks a function as strict that is not listed in [`strict`].
    pub(super) fn strict(function: ScalarUDF) -> ScalarUDF {
        match function.inner().downcast_ref::<Function>() {
            Some(found) => ScalarUDF::new_from_impl(Function { is_strict: true, ..found.clone() }),
            None => function,
        }
    }
}

// Each name has one function.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{} returns a field", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(crate::types::field(self.name, &(self.returns)(&args)?, true).into())
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        (self.coerce)(self.name, types)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match self.is_strict {
            true => strict::simplified(args, info, |args| self.return_field_from_args(args)),
            false => Ok(ExprSimplifyResult::Original(args)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.invoke)(&args)
    }
}

/// The error for arguments that a function does not accept.
pub fn wrong_arguments(name: &str, types: &[DataType]) -> DataFusionError {
    let arguments: Vec<FieldType> = types.iter().map(crate::types::field_type_of_arrow).collect();
    let types: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let message = format!(
        "Cannot apply '{}' function to [{}] (consider adding an explicit CAST)",
        name.to_uppercase(),
        types.join(", ")
    );
    let subject = SqlSubject::Function { name: name.to_lowercase(), arguments: Some(arguments), nearest: None };
    carried(parsing_error(message).with_sqlstate("42883").about(subject))
}

/// An error in a value, within a plan.
pub fn failed(message: impl Into<String>) -> DataFusionError {
    carried(data_error(message))
}

pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
}

pub(super) fn is_integer(data_type: &DataType) -> bool {
    data_type.is_integer() || *data_type == DataType::Null
}

/// The types of a call's arguments.
pub(super) fn types_of(args: &ScalarFunctionArgs) -> Vec<DataType> {
    args.args.iter().map(ColumnarValue::data_type).collect()
}

/// The number of rows that a function computes: one if all arguments are constants, also for an
/// empty batch.
pub(super) fn rows_of(args: &ScalarFunctionArgs) -> usize {
    let is_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    if is_constant { args.number_rows.max(1) } else { args.number_rows }
}

/// An argument as an array of the computed rows.
pub(super) fn array(args: &ScalarFunctionArgs, at: usize) -> Result<ArrayRef> {
    match args.args.get(at) {
        Some(value) => value.to_array(rows_of(args)),
        None => Err(DataFusionError::Internal("an argument is missing".to_owned())),
    }
}

/// A constant argument.
pub(super) fn constant(args: &ScalarFunctionArgs, at: usize) -> Option<&ScalarValue> {
    match args.args.get(at) {
        Some(ColumnarValue::Scalar(scalar)) => Some(scalar),
        _ => None,
    }
}

/// The text of a constant argument.
pub(super) fn constant_text(args: &ScalarFunctionArgs, at: usize) -> Option<&str> {
    text_of(constant(args, at)?)
}

pub(super) fn text_of(scalar: &ScalarValue) -> Option<&str> {
    scalar.try_as_str().flatten()
}

/// The texts of one argument.
pub(super) enum Texts {
    Constant(Option<String>),
    Rows(ArrayRef),
}

impl Texts {
    /// The argument at a position, which has a text type.
    pub(super) fn of(args: &ScalarFunctionArgs, at: usize) -> Result<Texts> {
        match constant(args, at) {
            Some(scalar) => Ok(Texts::Constant(text_of(scalar).map(str::to_owned))),
            None => {
                let rows = array(args, at)?;
                // Converts other representations, from literals and functions of DataFusion.
                let rows = match rows.data_type() {
                    DataType::Utf8View => rows,
                    _ => datafusion::arrow::compute::cast(&rows, &DataType::Utf8View)?,
                };
                Ok(Texts::Rows(rows))
            }
        }
    }

    /// Whether all rows have the same text.
    pub(super) fn are_constant(&self) -> bool {
        matches!(self, Texts::Constant(_))
    }

    /// The text of a row.
    pub(super) fn get(&self, row: usize) -> Option<&str> {
        match self {
            Texts::Constant(text) => text.as_deref(),
            Texts::Rows(rows) => {
                let rows = rows.as_string_view();
                (rows.is_valid(row)).then(|| rows.value(row))
            }
        }
    }
}

/// The results of all rows as one array. It is built from scalars, for functions that are expensive
/// anyway.
pub(super) fn collect(
    args: &ScalarFunctionArgs,
    row: impl FnMut(usize) -> Result<ScalarValue>,
) -> Result<ColumnarValue> {
    let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let rows = if constant { 1 } else { args.number_rows };
    let mut results = Results::of(&args.config_options);
    let mut row = row;
    let mut values = Vec::with_capacity(rows);
    for at in 0..rows {
        let value = row(at)?;
        results.add(value.size())?;
        values.push(value);
    }
    if constant && let Some(value) = values.pop() {
        return Ok(ColumnarValue::Scalar(value));
    }
    if values.is_empty() {
        return Ok(ColumnarValue::Array(arrow_array::new_empty_array(args.return_field.data_type())));
    }
    Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?))
}

/// The text results of all rows.
pub(super) fn collect_texts(
    args: &ScalarFunctionArgs,
    mut row: impl FnMut(usize) -> Result<Option<String>>,
) -> Result<ColumnarValue> {
    let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let mut results = Results::of(&args.config_options);
    if constant {
        let text = row(0)?;
        results.add(text.as_ref().map_or(0, String::len))?;
        return Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(text)));
    }
    let mut builder = arrow_array::builder::StringViewBuilder::with_capacity(args.number_rows);
    for at in 0..args.number_rows {
        let text = row(at)?;
        results.add(text.as_ref().map_or(0, String::len))?;
        builder.append_option(text);
    }
    Ok(ColumnarValue::Array(std::sync::Arc::new(builder.finish())))
}
