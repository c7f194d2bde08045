//! Functions over single values, as rows of tables.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use filbert_data::{FieldType, Value};
use filbert_grid::query::{ColumnReader, Dialect, Session, arrow_type};

use super::super::results::{Results, bytes_of};
use super::super::row::wrong_arguments;
use crate::catalogs::Scene;
use crate::surroundings::Surroundings;
use crate::types::{BPCHAR, OID, PgType, field, field_type_of, pg_type_of, scalar_of};

/// What an argument is taken as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::functions) enum Take {
    Text,
    Int,
    Float,
    Bool,
    /// Texts in an array.
    Texts,
    /// Whatever it is.
    Any,
    /// Any number of further arguments, whatever they are.
    Rest,
}

/// When a function gives the same for the same arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::functions) enum When {
    /// Always.
    Always,
    /// For one statement: it depends on who asks, or on the catalog.
    Now,
}

/// What a function gives.
pub(in crate::functions) type Gives = fn(&[FieldType]) -> FieldType;

/// A function.
#[derive(Debug)]
pub(in crate::functions) struct Native {
    pub(in crate::functions) name: &'static str,
    pub(in crate::functions) takes: &'static [Take],
    /// Arguments that may not be left out.
    pub(in crate::functions) least: usize,
    pub(in crate::functions) gives: Gives,
    pub(in crate::functions) when: When,
    /// Whether it is null as soon as an argument is.
    pub(in crate::functions) strict: bool,
    /// As which of PostgreSQL's types its values are told, by those of its arguments; `None` = as they are.
    pub(in crate::functions) gives_pg: fn(&[Option<u32>]) -> Option<u32>,
    pub(in crate::functions) compute: fn(&Call<'_>) -> Result<Value<'static>>,
}

/// A function of its arguments alone.
pub(in crate::functions) const fn pure(
    name: &'static str,
    takes: &'static [Take],
    gives: Gives,
    compute: fn(&Call<'_>) -> Result<Value<'static>>,
) -> Native {
    Native { name, takes, least: least_of(takes), gives, when: When::Always, strict: true, gives_pg: |_| None, compute }
}

/// A function of who asks, and of the catalog.
pub(in crate::functions) const fn now(
    name: &'static str,
    takes: &'static [Take],
    gives: Gives,
    compute: fn(&Call<'_>) -> Result<Value<'static>>,
) -> Native {
    Native { when: When::Now, ..pure(name, takes, gives, compute) }
}

impl Native {
    /// The same with the last arguments left out.
    pub(in crate::functions) const fn least(self, least: usize) -> Native {
        Native { least, ..self }
    }

    /// The same with numbers of objects for its numbers.
    pub(in crate::functions) const fn of_objects(self) -> Native {
        self.of_pg_type(|_| Some(OID))
    }

    /// The same, whose values are told as one of PostgreSQL's types that Arrow has not.
    pub(in crate::functions) const fn of_pg_type(self, gives_pg: fn(&[Option<u32>]) -> Option<u32>) -> Native {
        Native { gives_pg, ..self }
    }

    /// The same for null arguments, too.
    pub(in crate::functions) const fn takes_nulls(self) -> Native {
        Native { strict: false, ..self }
    }
}

const fn least_of(takes: &[Take]) -> usize {
    match takes {
        [first @ .., Take::Rest] => first.len(),
        all => all.len(),
    }
}

pub(in crate::functions) fn text(_: &[FieldType]) -> FieldType {
    FieldType::Varchar
}

pub(in crate::functions) fn texts(_: &[FieldType]) -> FieldType {
    FieldType::Array(Box::new(FieldType::Varchar))
}

pub(in crate::functions) fn bool(_: &[FieldType]) -> FieldType {
    FieldType::Boolean
}

pub(in crate::functions) fn int4(_: &[FieldType]) -> FieldType {
    FieldType::Integer
}

pub(in crate::functions) fn int8(_: &[FieldType]) -> FieldType {
    FieldType::BigInt
}

pub(in crate::functions) fn moment(_: &[FieldType]) -> FieldType {
    FieldType::TimestampTz
}

/// One call: the arguments of a row, and what is around.
pub(in crate::functions) struct Call<'c> {
    pub(in crate::functions) values: &'c [Value<'c>],
    /// The types of the arguments.
    pub(in crate::functions) types: &'c [FieldType],
    /// As which of PostgreSQL's types they are told, where Arrow has none for it.
    pub(in crate::functions) pg_types: &'c [Option<u32>],
    surroundings: Option<&'c Surroundings>,
    pub(in crate::functions) dialect: Dialect,
    scene: Option<&'c Scene<'c>>,
}

impl<'c> Call<'c> {
    /// A text argument; empty if it is none.
    pub(in crate::functions) fn text(&self, at: usize) -> &str {
        match self.values.get(at) {
            Some(Value::Text(text) | Value::Json(text)) => text,
            _ => "",
        }
    }

    /// A whole number; `None` if it is none.
    pub(in crate::functions) fn int(&self, at: usize) -> Option<i64> {
        match self.values.get(at)? {
            Value::Int8(value) => Some(i64::from(*value)),
            Value::Int16(value) => Some(i64::from(*value)),
            Value::Int32(value) => Some(i64::from(*value)),
            Value::Int64(value) => Some(*value),
            _ => None,
        }
    }

    pub(in crate::functions) fn bool(&self, at: usize) -> bool {
        matches!(self.values.get(at), Some(Value::Boolean(true)))
    }

    pub(in crate::functions) fn session(&self) -> Option<&'c Session> {
        self.surroundings.and_then(Surroundings::session).map(Arc::as_ref)
    }

    pub(in crate::functions) fn surroundings(&self) -> Option<&'c Surroundings> {
        self.surroundings
    }

    /// What the catalog has, if there is one.
    pub(in crate::functions) fn scene(&self) -> Option<&'c Scene<'c>> {
        self.scene
    }
}

/// A text as a value.
pub(in crate::functions) fn of_text(text: impl Into<String>) -> Value<'static> {
    Value::Text(text.into().into())
}

/// A function as DataFusion sees it.
#[derive(Debug)]
struct Wrapped {
    native: &'static Native,
    signature: Signature,
}

pub(in crate::functions) fn udf(native: &'static Native) -> ScalarUDF {
    let volatility = match native.when {
        When::Always => Volatility::Immutable,
        // Plans are kept: what is not the same for all statements must not become a constant of a plan.
        When::Now => Volatility::Volatile,
    };
    ScalarUDF::new_from_impl(Wrapped { native, signature: Signature::user_defined(volatility) })
}

/// The type that a function takes an argument as, where that is one; `None` of functions that are no rows of tables.
pub(crate) fn taken_as(function: &ScalarUDF, at: usize) -> Option<DataType> {
    let wrapped = function.inner().downcast_ref::<Wrapped>()?;
    match wrapped.native.takes.get(at)? {
        Take::Text => Some(DataType::Utf8View),
        Take::Int => Some(DataType::Int32),
        Take::Float => Some(DataType::Float64),
        Take::Bool => Some(DataType::Boolean),
        Take::Texts => Some(DataType::new_list(DataType::Utf8View, true)),
        Take::Any | Take::Rest => None,
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
            // The length stands in the call.
            Some(BPCHAR) => {
                let length = match args.scalar_arguments.get(1) {
                    Some(Some(ScalarValue::Int64(Some(length)))) => u32::try_from(*length).ok(),
                    _ => None,
                };
                PgType { oid: BPCHAR, length }.mark(field).into()
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
            Take::Any | Take::Rest if *found == DataType::Null => DataType::Utf8View,
            Take::Any | Take::Rest => arrow_type(&crate::types::field_type_of_arrow(found)),
        };
        Ok(types.iter().enumerate().map(of).collect())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        // What is the same for all rows is there once.
        let array_of = |value: &ColumnarValue| match value {
            ColumnarValue::Scalar(scalar) => Ok((scalar.to_array()?, true)),
            ColumnarValue::Array(array) => Ok((Arc::clone(array), false)),
        };
        let arrays = args.args.iter().map(array_of).collect::<Result<Vec<_>>>()?;
        let types: Vec<FieldType> = args.arg_fields.iter().map(|field| field_type_of(field)).collect();
        let pg_types: Vec<Option<u32>> = args.arg_fields.iter().map(|field| pg_type_of(field)).collect();
        let mut readers = Vec::with_capacity(arrays.len());
        for ((array, is_one), field) in arrays.iter().zip(&args.arg_fields) {
            let reader = ColumnReader::new(array.as_ref(), &field_type_of(field));
            let reader = reader.ok_or_else(|| wrong_arguments(self.native.name, &[field.data_type().clone()]))?;
            readers.push((reader, *is_one));
        }
        let surroundings = Surroundings::of(&args.config_options);
        let session = surroundings.and_then(Surroundings::session);
        let dialect = session.map_or(Dialect::Postgres, |session| session.dialect());
        let scene = surroundings.map(|surroundings| Scene::new(surroundings.server(), session, dialect));
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
                surroundings,
                dialect,
                scene: scene.as_ref(),
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

/// A value as a scalar of the type that was promised.
fn typed(value: &Value<'_>, data_type: &DataType) -> Result<ScalarValue> {
    let scalar = match (value, data_type) {
        // An array without items has no type of its own.
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
