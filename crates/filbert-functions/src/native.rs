//! Functions over single values, declared as rows of tables.

use std::any::Any;
use std::cell::OnceCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use filbert_data::{FieldType, Value};
use filbert_grid::query::{ColumnReader, Dialect, Session, arrow_type};

use crate::context::StatementContext;
use crate::results::{Results, bytes_of};

pub use crate::row::failed;
pub use crate::row::wrong_arguments;
use crate::strict;
use crate::types::{BPCHAR, OID, PgType, REGPROC, field, field_type_of, pg_type_of, scalar_of, type_of_objects};

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// A text.
    Text,
    /// A whole number.
    Int,
    /// A floating-point number.
    Float,
    /// A boolean.
    Bool,
    /// An array of texts.
    Texts,
    /// A subscript of the first argument: a whole number for an array, a text for a document.
    Subscript,
    /// Any value.
    Any,
    /// Any number of further arguments of any type.
    Rest,
}

/// The volatility of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The result depends on the arguments alone.
    Always,
    /// The result is constant within one statement: it depends on the session or the catalog.
    Now,
}

/// The result type of a function.
pub type Gives = fn(&[FieldType]) -> FieldType;

/// A function.
#[derive(Debug)]
pub struct Native {
    pub(crate) name: &'static str,
    takes: &'static [Take],
    /// The number of required arguments.
    least: usize,
    gives: Gives,
    when: When,
    /// Whether the result is null if an argument is null.
    strict: bool,
    /// The reported PostgreSQL type of the result, from those of the arguments; `None` = the
    /// natural type.
    gives_pg: fn(&[Option<u32>]) -> Option<u32>,
    compute: fn(&Call<'_>) -> Result<Value<'static>>,
}

/// A function of its arguments alone.
pub const fn pure(
    name: &'static str,
    takes: &'static [Take],
    gives: Gives,
    compute: fn(&Call<'_>) -> Result<Value<'static>>,
) -> Native {
    Native { name, takes, least: least_of(takes), gives, when: When::Always, strict: true, gives_pg: |_| None, compute }
}

/// A function of the session and the catalog.
pub const fn now(
    name: &'static str,
    takes: &'static [Take],
    gives: Gives,
    compute: fn(&Call<'_>) -> Result<Value<'static>>,
) -> Native {
    Native { when: When::Now, ..pure(name, takes, gives, compute) }
}

impl Native {
    /// Makes the arguments after the first `least` ones optional.
    pub const fn least(self, least: usize) -> Native {
        Native { least, ..self }
    }

    /// Marks the result as OIDs.
    pub const fn of_objects(self) -> Native {
        self.of_pg_type(|_| Some(OID))
    }

    /// Marks the result as objects of the kind that the first argument names.
    pub const fn of_named_objects(self) -> Native {
        self.of_pg_type(|_| Some(REGPROC))
    }

    /// Reports the result as a PostgreSQL type that Arrow does not have.
    pub const fn of_pg_type(self, gives_pg: fn(&[Option<u32>]) -> Option<u32>) -> Native {
        Native { gives_pg, ..self }
    }

    /// Accepts null arguments.
    pub const fn takes_nulls(self) -> Native {
        Native { strict: false, ..self }
    }
}

const fn least_of(takes: &[Take]) -> usize {
    match takes {
        [first @ .., Take::Rest] => first.len(),
        all => all.len(),
    }
}

/// The result type text.
pub fn text(_: &[FieldType]) -> FieldType {
    FieldType::Varchar
}

/// The result type array of text.
pub fn texts(_: &[FieldType]) -> FieldType {
    FieldType::Array(Box::new(FieldType::Varchar))
}

/// The result type boolean.
pub fn bool(_: &[FieldType]) -> FieldType {
    FieldType::Boolean
}

/// The result type `integer`.
pub fn int4(_: &[FieldType]) -> FieldType {
    FieldType::Integer
}

/// The result type `bigint`.
pub fn int8(_: &[FieldType]) -> FieldType {
    FieldType::BigInt
}

/// The result type `timestamp with time zone`.
pub fn timestamptz(_: &[FieldType]) -> FieldType {
    FieldType::TimestampTz
}

/// One call: the arguments of a row, and the context.
pub struct Call<'c> {
    /// The arguments.
    pub values: &'c [Value<'c>],
    /// The types of the arguments.
    pub types: &'c [FieldType],
    /// The reported PostgreSQL types of the arguments, where Arrow has no such types.
    pub pg_types: &'c [Option<u32>],
    /// The dialect of the statement.
    pub dialect: Dialect,
    options: &'c ConfigOptions,
    kept: &'c OnceCell<Option<Box<dyn Any>>>,
}

impl<'c> Call<'c> {
    /// A text argument; empty for other types.
    pub fn text(&self, at: usize) -> &str {
        match self.values.get(at) {
            Some(Value::Text(text) | Value::Json(text)) => text,
            _ => "",
        }
    }

    /// A whole number; `None` for other types.
    pub fn int(&self, at: usize) -> Option<i64> {
        match self.values.get(at)? {
            Value::Int8(value) => Some(i64::from(*value)),
            Value::Int16(value) => Some(i64::from(*value)),
            Value::Int32(value) => Some(i64::from(*value)),
            Value::Int64(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether an argument is true.
    pub fn bool(&self, at: usize) -> bool {
        matches!(self.values.get(at), Some(Value::Boolean(true)))
    }

    /// The session of the statement.
    pub fn session(&self) -> Option<&'c Session> {
        self.context().and_then(StatementContext::session).map(Arc::as_ref)
    }

    /// The statement context, if the call belongs to a statement.
    pub fn context(&self) -> Option<&'c StatementContext> {
        StatementContext::of(self.options)
    }

    /// The settings of the call.
    pub fn options(&self) -> &'c ConfigOptions {
        self.options
    }

    /// A value that a function needs for every row; created with the first row of a batch. A
    /// function uses one type of such values.
    pub fn kept<T: Any>(&self, make: impl FnOnce(&ConfigOptions) -> Option<T>) -> Option<&'c T> {
        let boxed = || make(self.options).map(|made| -> Box<dyn Any> { Box::new(made) });
        self.kept.get_or_init(boxed).as_ref()?.downcast_ref()
    }
}

/// A text as a value.
pub fn of_text(text: impl Into<String>) -> Value<'static> {
    Value::Text(text.into().into())
}

/// A function for DataFusion.
#[derive(Debug)]
struct Wrapped {
    native: &'static Native,
    signature: Signature,
}

/// A function for DataFusion.
pub fn udf(native: &'static Native) -> ScalarUDF {
    let volatility = match native.when {
        When::Always => Volatility::Immutable,
        // Plans are cached, so a result that differs between statements must not become a constant
        // of a plan.
        When::Now => Volatility::Volatile,
    };
    ScalarUDF::new_from_impl(Wrapped { native, signature: Signature::user_defined(volatility) })
}

/// The type of an argument, if the function accepts only one; `None` for functions that are not
/// declared here.
pub fn taken_as(function: &ScalarUDF, at: usize) -> Option<DataType> {
    let wrapped = function.inner().downcast_ref::<Wrapped>()?;
    match wrapped.native.takes.get(at)? {
        Take::Text => Some(DataType::Utf8View),
        Take::Int => Some(DataType::Int32),
        Take::Float => Some(DataType::Float64),
        Take::Bool => Some(DataType::Boolean),
        Take::Texts => Some(DataType::new_list(DataType::Utf8View, true)),
        Take::Subscript | Take::Any | Take::Rest => None,
    }
}

impl PartialEq for Wrapped {
    fn eq(&self, other: &Self) -> bool {
        self.native.name == other.native.name
    }
}

impl Eq for Wrapped {}

impl Hash for Wrapped {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.native.name.hash(state);
    }
}

impl ScalarUDFImpl for Wrapped {
    fn name(&self) -> &str {
        self.native.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("{} returns a field", self.native.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<FieldType> = args.arg_fields.iter().map(|field| field_type_of(field)).collect();
        let field = field(self.native.name, &(self.native.gives)(&types), true);
        let pg_types: Vec<Option<u32>> = args.arg_fields.iter().map(|field| pg_type_of(field)).collect();
        Ok(match (self.native.gives_pg)(&pg_types) {
            // The length is an argument of the call.
            Some(BPCHAR) => {
                let length = match args.scalar_arguments.get(1) {
                    Some(Some(ScalarValue::Int64(Some(length)))) => u32::try_from(*length).ok(),
                    _ => None,
                };
                PgType { oid: BPCHAR, length }.mark(field).into()
            }
            // The kind of the objects is an argument of the call.
            Some(REGPROC) if field.data_type() == &DataType::Int64 => {
                let kind =
                    args.scalar_arguments.first().copied().flatten().and_then(|kind| kind.try_as_str().flatten());
                PgType::of(kind.and_then(type_of_objects).unwrap_or(OID)).mark(field).into()
            }
            Some(oid) => PgType::of(oid).mark(field).into(),
            None => field.into(),
        })
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let Native { name, takes, least, .. } = self.native;
        let open = takes.last() == Some(&Take::Rest);
        if types.len() < *least || (types.len() > takes.len() && !open) {
            return Err(wrong_arguments(name, types));
        }
        let of = |(at, found): (usize, &DataType)| match takes.get(at).copied().unwrap_or(Take::Rest) {
            Take::Text => DataType::Utf8View,
            Take::Int => DataType::Int64,
            Take::Float => DataType::Float64,
            Take::Bool => DataType::Boolean,
            Take::Texts => DataType::new_list(DataType::Utf8View, true),
            Take::Subscript if types.first().is_some_and(DataType::is_string) => DataType::Utf8View,
            Take::Subscript => DataType::Int64,
            Take::Any | Take::Rest if *found == DataType::Null => DataType::Utf8View,
            Take::Any | Take::Rest => arrow_type(&crate::types::field_type_of_arrow(found)),
        };
        Ok(types.iter().enumerate().map(of).collect())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match self.native.strict {
            true => strict::simplified(args, info, |args| self.return_field_from_args(args)),
            false => Ok(ExprSimplifyResult::Original(args)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        // A constant result is computed once.
        let array_of = |value: &ColumnarValue| match value {
            ColumnarValue::Scalar(scalar) => Ok((scalar.to_array()?, true)),
            ColumnarValue::Array(array) => Ok((Arc::clone(array), false)),
        };
        let arrays = args.args.iter().map(array_of).collect::<Result<Vec<_>>>()?;
        let types: Vec<FieldType> = args.arg_fields.iter().map(|field| field_type_of(field)).collect();
        let pg_types: Vec<Option<u32>> = args.arg_fields.iter().map(|field| pg_type_of(field)).collect();
        let mut readers = Vec::with_capacity(arrays.len());
        for (((array, is_one), field), at) in arrays.iter().zip(&args.arg_fields).zip(0..) {
            let found = match (self.native.takes.get(at), field_type_of(field)) {
                // The cast to a text keeps the mark of a UUID.
                (Some(Take::Text), FieldType::Uuid) => FieldType::Varchar,
                (_, found) => found,
            };
            let reader = ColumnReader::new(array.as_ref(), &found);
            let reader = reader.ok_or_else(|| wrong_arguments(self.native.name, &[field.data_type().clone()]))?;
            readers.push((reader, *is_one));
        }
        let session = StatementContext::of(&args.config_options).and_then(StatementContext::session);
        let dialect = session.map_or(Dialect::Postgres, |session| session.dialect());
        let kept = OnceCell::new();
        let mut counted = Results::of(&args.config_options);
        let mut results = Vec::with_capacity(rows);
        for row in 0..rows {
            let values: Vec<Value<'_>> =
                readers.iter().map(|(reader, is_one)| reader.get(if *is_one { 0 } else { row })).collect();
            if self.native.strict && values.iter().any(Value::is_null) {
                results.push(ScalarValue::try_from(args.return_field.data_type())?);
                continue;
            }
            let call = Call {
                values: &values,
                types: &types,
                pg_types: &pg_types,
                dialect,
                options: &args.config_options,
                kept: &kept,
            };
            let value = (self.native.compute)(&call)?;
            counted.add(bytes_of(&value))?;
            results.push(match value.is_null() {
                true => ScalarValue::try_from(args.return_field.data_type())?,
                false => typed(&value, args.return_field.data_type())?,
            });
        }
        match (is_constant, results.pop()) {
            (true, Some(value)) => Ok(ColumnarValue::Scalar(value)),
            (_, None) => Ok(ColumnarValue::Array(arrow_array::new_empty_array(args.return_field.data_type()))),
            (_, Some(last)) => {
                results.push(last);
                Ok(ColumnarValue::Array(ScalarValue::iter_to_array(results)?))
            }
        }
    }
}

/// A value as a scalar of the declared result type.
fn typed(value: &Value<'_>, data_type: &DataType) -> Result<ScalarValue> {
    let scalar = match (value, data_type) {
        // An empty array has no type of its own.
        (Value::Array(items), DataType::List(item)) => {
            let items = items.iter().map(|item_value| match item_value.is_null() {
                true => ScalarValue::try_from(item.data_type()),
                false => typed(item_value, item.data_type()),
            });
            let items = items.collect::<Result<Vec<_>>>()?;
            ScalarValue::List(ScalarValue::new_list(&items, item.data_type(), true))
        }
        _ => scalar_of(value).map_err(crate::error::carried)?,
    };
    if scalar.data_type() == *data_type { Ok(scalar) } else { scalar.cast_to(data_type) }
}
