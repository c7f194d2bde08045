//! Conversions between SQL types and Arrow fields, and between values and scalars.
//!
//! Arrow has one type for texts and JSON documents, and none for objects. The metadata of a field
//! has the information that its Arrow type lacks. Plans preserve it for columns that they pass on.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow_array::Array;
use arrow_buffer::{IntervalMonthDayNano, i256};
use arrow_schema::{DataType, Field};
use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive};
use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Timelike};
use datafusion::common::ScalarValue;
use filbert_data::{FieldType, Interval, ToBlob, Value};
use filbert_grid::query::{ColumnReader, QUOTIENT_SCALE, SqlError, arrow_type};

use crate::error::data_error;

/// The metadata key for types that are the same in Arrow.
const TYPE_KEY: &str = "filbert.type";
/// The metadata key for the OID of the PostgreSQL type.
const PG_KEY: &str = "filbert.pg_type";
/// The OID of PostgreSQL's `regproc`: the OID of a function, which is shown as its name.
pub const REGPROC: u32 = 24;
/// The OID of PostgreSQL's `oid`.
pub const OID: u32 = 26;
/// The OID of PostgreSQL's `int2vector`.
pub const INT2VECTOR: u32 = 22;
/// The OID of PostgreSQL's `oidvector`.
pub const OIDVECTOR: u32 = 30;
/// The OIDs of types of objects, with the names of the kinds: values are the OIDs of objects, which
/// are shown as their names.
const OBJECTS: [(u32, &str); 6] =
    [(REGPROC, "proc"), (2202, "procedure"), (2205, "class"), (2206, "type"), (4089, "namespace"), (4096, "role")];
/// The OID of PostgreSQL's `char(n)`.
pub const BPCHAR: u32 = 1042;
/// The metadata key for the length of a padded text.
const LENGTH_KEY: &str = "filbert.length";
/// The OID of PostgreSQL's `varchar`.
pub const VARCHAR: u32 = 1043;
/// The OID of PostgreSQL's `json`.
pub const JSON: u32 = 114;
/// The OID of PostgreSQL's `uuid`.
pub const UUID: u32 = 2950;
/// The OID of PostgreSQL's `jsonb`.
pub const JSONB: u32 = 3802;
/// The OID of PostgreSQL's `numeric`, for columns without declared digits.
pub const NUMERIC: u32 = 1700;
/// The OID of PostgreSQL's `numeric[]`.
pub const ARRAY_OF_NUMERIC: u32 = 1231;
/// The OID of PostgreSQL's `uuid[]`.
pub const ARRAY_OF_UUID: u32 = 2951;
/// The OID of PostgreSQL's `varchar[]`.
pub const ARRAY_OF_VARCHAR: u32 = 1015;
/// The OID of PostgreSQL's `char(n)[]`.
pub const ARRAY_OF_BPCHAR: u32 = 1014;
/// The OID of PostgreSQL's `json[]`.
pub const ARRAY_OF_JSON: u32 = 199;
/// The OID of PostgreSQL's `jsonb[]`.
pub const ARRAY_OF_JSONB: u32 = 3807;
/// Types with their array types, where Arrow has no such types.
const WITH_ARRAYS: [(u32, u32); 6] = [
    (JSON, ARRAY_OF_JSON),
    (BPCHAR, ARRAY_OF_BPCHAR),
    (VARCHAR, ARRAY_OF_VARCHAR),
    (UUID, ARRAY_OF_UUID),
    (JSONB, ARRAY_OF_JSONB),
    (19, 1003),
];
/// The length mark of texts that are padded already.
const OWN_LENGTH: &str = "own";
/// The mark of values with a type that is known only from the value: members of objects, in JSON.
const UNTYPED: &str = "FIELD";
/// The metadata key for the declared members of an object.
pub const MEMBERS_KEY: &str = "filbert.members";
/// The scale of a decimal without a declared scale.
pub const DECIMAL_SCALE: i8 = 38;
/// Days from the start of the common era to 1970-01-01.
const EPOCH_DAYS_FROM_CE: i32 = 719_163;

/// The type of the elements of an array of any number of dimensions; other types as they are.
pub(crate) fn innermost(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::List(item) => innermost(item.data_type()),
        other => other,
    }
}

/// The type of an array with other elements, in as many dimensions.
pub(crate) fn with_innermost(array: &DataType, item: &DataType) -> DataType {
    match array {
        DataType::List(inner) => DataType::new_list(with_innermost(inner.data_type(), item), true),
        _ => item.clone(),
    }
}

/// An Arrow field of a type.
pub fn field(name: &str, field_type: &FieldType, nullable: bool) -> Field {
    let field = Field::new(name, arrow_type(field_type), nullable);
    match marker(field_type) {
        Some(marker) => field.with_metadata(HashMap::from([(TYPE_KEY.to_owned(), marker.to_owned())])),
        None => field,
    }
}

/// The field, marked as a PostgreSQL type that Arrow does not have.
pub fn with_pg_type(field: Field, oid: u32) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(PG_KEY.to_owned(), oid.to_string());
    field.with_metadata(metadata)
}

/// A PostgreSQL type with more information than its Arrow type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PgType {
    /// The OID of the type.
    pub oid: u32,
    /// The declared length of texts.
    pub length: Option<u32>,
}

impl PgType {
    /// A type without a length.
    pub fn of(oid: u32) -> PgType {
        PgType { oid, length: None }
    }

    /// Marks a field with the type.
    pub fn mark(self, field: Field) -> Field {
        let field = with_pg_type(field, self.oid);
        let Some(length) = self.length else { return field };
        let mut metadata = field.metadata().clone();
        metadata.insert(LENGTH_KEY.to_owned(), length.to_string());
        field.with_metadata(metadata)
    }
}

/// The metadata that distinguishes types with the same Arrow type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The kind, for values that are stored as text but are not text.
    pub kind: Option<&'static str>,
    /// The OID of the PostgreSQL type.
    pub oid: Option<u32>,
    /// The length of a fixed-length text.
    pub length: Length,
}

/// The length of a fixed-length text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Length {
    /// The text is not of fixed length, or its length is unknown.
    #[default]
    Unknown,
    /// The text is stored without trailing blanks, and padded to this length when it leaves the
    /// engine.
    Of(u32),
    /// Each value contains its trailing blanks.
    Own,
}

impl Mark {
    /// The mark of a PostgreSQL type.
    pub fn of_oid(oid: u32, length: Length) -> Mark {
        Mark { kind: None, oid: Some(oid), length }
    }

    /// The mark of a field.
    pub fn of(field: &Field) -> Mark {
        let kind = match field.metadata().get(TYPE_KEY).map(String::as_str) {
            Some("JSON") if is_text(field.data_type()) => Some("JSON"),
            Some("UUID") if is_text(field.data_type()) => Some("UUID"),
            _ => None,
        };
        let oid = pg_type_of(field);
        let length = match field.metadata().get(LENGTH_KEY).filter(|_| oid == Some(BPCHAR)) {
            Some(length) if length == OWN_LENGTH => Length::Own,
            Some(length) => length.parse().map_or(Length::Unknown, Length::Of),
            None => Length::Unknown,
        };
        Mark { kind, oid, length }
    }

    /// The metadata of a field, with this mark instead of its former one.
    pub fn metadata(self, mut metadata: HashMap<String, String>) -> HashMap<String, String> {
        [TYPE_KEY, PG_KEY, LENGTH_KEY].into_iter().for_each(|key| drop(metadata.remove(key)));
        let length = match self.length {
            Length::Unknown => None,
            Length::Of(length) => Some(length.to_string()),
            Length::Own => Some(OWN_LENGTH.to_owned()),
        };
        let oid = self.oid.map(|oid| oid.to_string());
        let entries = [(TYPE_KEY, self.kind.map(str::to_owned)), (PG_KEY, oid), (LENGTH_KEY, length)];
        metadata.extend(entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        metadata
    }

    /// Whether computations treat the values as text.
    pub fn is_of_text(self) -> bool {
        self.kind.is_none() && matches!(self.oid, None | Some(19 | BPCHAR | VARCHAR))
    }

    /// Whether the values are arrays of a text type other than `text`.
    pub fn is_of_texts(self) -> bool {
        let item = WITH_ARRAYS.iter().find(|(_, array)| Some(*array) == self.oid);
        item.is_some_and(|(item, _)| matches!(*item, BPCHAR | VARCHAR))
    }

    /// Whether the type is UUID.
    pub fn is_uuid(self) -> bool {
        self.kind == Some("UUID")
    }

    /// Whether the type is JSON.
    pub fn is_json(self) -> bool {
        self.kind == Some("JSON")
    }

    /// The mark of an array of such values.
    pub fn of_array(self) -> Mark {
        let item = match (self.kind, self.oid) {
            (_, Some(oid)) => Some(oid),
            (Some("JSON"), None) => Some(JSON),
            (Some("UUID"), None) => Some(UUID),
            _ => None,
        };
        // An array of arrays has the type of the arrays within it.
        let array = item.and_then(|item| {
            WITH_ARRAYS.iter().find(|(of, array)| [*of, *array].contains(&item)).map(|(_, array)| *array)
        });
        Mark { oid: array, ..Mark::default() }
    }

    /// The mark of an element of such an array.
    pub fn of_item(self) -> Mark {
        let item = self.oid.and_then(|oid| WITH_ARRAYS.iter().find(|(_, array)| *array == oid).map(|(item, _)| *item));
        match item {
            Some(JSON) => Mark { kind: Some("JSON"), ..Mark::default() },
            Some(UUID) => Mark { kind: Some("UUID"), ..Mark::default() },
            Some(JSONB) => Mark { kind: Some("JSON"), oid: Some(JSONB), length: Length::Unknown },
            Some(BPCHAR) => Mark::of_oid(BPCHAR, Length::Own),
            oid => Mark { oid, ..Mark::default() },
        }
    }
}

/// The length to which texts of a field are padded when they leave the engine.
pub fn filled_length(field: &Field) -> Option<i64> {
    (pg_type_of(field) == Some(BPCHAR)).then(|| field.metadata().get(LENGTH_KEY)?.parse().ok()).flatten()
}

/// The declared length of the texts of a table's column.
pub fn declared_length(field: &Field) -> Option<u32> {
    let is_text = matches!(pg_type_of(field), Some(BPCHAR | VARCHAR));
    is_text.then(|| field.metadata().get(LENGTH_KEY)?.parse().ok()).flatten()
}

/// The OID of a field's PostgreSQL type, if it has one. A cast keeps metadata whatever it does to
/// the value, so the field's type is compared with the OID.
pub fn pg_type_of(field: &Field) -> Option<u32> {
    let oid = field.metadata().get(PG_KEY)?.parse().ok()?;
    let fits = match oid {
        OID | 28 => *field.data_type() == DataType::Int64,
        _ if object_kind(oid).is_some() => *field.data_type() == DataType::Int64,
        18 | 19 | BPCHAR | VARCHAR | JSONB => is_text(field.data_type()),
        INT2VECTOR => matches!(field.data_type(), DataType::List(item) if *item.data_type() == DataType::Int16),
        OIDVECTOR => matches!(field.data_type(), DataType::List(item) if *item.data_type() == DataType::Int64),
        199 | 1002 | 1003 | 1014 | 1015 | 1028 | 2951 | 3807 => matches!(field.data_type(), DataType::List(_)),
        _ => false,
    };
    fits.then_some(oid)
}

/// The kind of objects of a type like `regclass`; `None` for other types.
pub fn object_kind(oid: u32) -> Option<&'static str> {
    OBJECTS.iter().find(|(known, _)| *known == oid).map(|(_, kind)| *kind)
}

/// The OID of the type of objects of a kind, such as `regclass` for `class`.
pub fn type_of_objects(kind: &str) -> Option<u32> {
    OBJECTS.iter().find(|(_, known)| *known == kind).map(|(oid, _)| *oid)
}

/// Whether a type is one of the arrays of the system catalog with elements that count from 0.
pub fn is_vector(oid: Option<u32>) -> bool {
    matches!(oid, Some(INT2VECTOR | OIDVECTOR))
}

/// A field with types that are known only from the values.
pub fn untyped_field(name: &str) -> Field {
    let mark = HashMap::from([(TYPE_KEY.to_owned(), UNTYPED.to_owned())]);
    Field::new(name, DataType::Utf8View, true).with_metadata(mark)
}

/// The field with the declared members of its objects.
pub fn with_members(field: &Field, members: String) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(MEMBERS_KEY.to_owned(), members);
    field.clone().with_metadata(metadata)
}

/// Whether the types of a field's values are known only from the values.
pub fn is_untyped(field: &Field) -> bool {
    is_text(field.data_type()) && field.metadata().get(TYPE_KEY).is_some_and(|mark| mark == UNTYPED)
}

/// The metadata of a JSON literal.
pub fn json_metadata() -> HashMap<String, String> {
    HashMap::from([(TYPE_KEY.to_owned(), "JSON".to_owned())])
}

fn marker(field_type: &FieldType) -> Option<&'static str> {
    match field_type {
        FieldType::Json => Some("JSON"),
        FieldType::Decimal(None) => Some("DECIMAL"),
        FieldType::Uuid => Some("UUID"),
        FieldType::Object => Some("OBJECT"),
        _ => None,
    }
}

/// The type of an Arrow field.
pub fn field_type_of(field: &Field) -> FieldType {
    match field.metadata().get(TYPE_KEY).map(String::as_str) {
        Some("JSON" | UNTYPED) if is_text(field.data_type()) => FieldType::Json,
        Some("UUID") if is_text(field.data_type()) => FieldType::Uuid,
        Some("OBJECT")
            if matches!(field.data_type(), DataType::BinaryView | DataType::Binary | DataType::LargeBinary) =>
        {
            FieldType::Object
        }
        _ => field_type_of_arrow(field.data_type()),
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The SQL type of an Arrow type.
pub fn field_type_of_arrow(data_type: &DataType) -> FieldType {
    match data_type {
        DataType::Boolean => FieldType::Boolean,
        DataType::Int8 => FieldType::TinyInt,
        DataType::Int16 | DataType::UInt8 => FieldType::SmallInt,
        DataType::Int32 | DataType::UInt16 => FieldType::Integer,
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => FieldType::BigInt,
        DataType::Float16 | DataType::Float32 => FieldType::Real,
        DataType::Float64 => FieldType::Double,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => FieldType::Decimal(Some((*precision, *scale))),
        DataType::Decimal256(_, scale) if *scale >= QUOTIENT_SCALE => FieldType::Decimal(None),
        DataType::Decimal256(precision, scale) => FieldType::Decimal(Some((*precision, *scale))),
        DataType::Date32 | DataType::Date64 => FieldType::Date,
        DataType::Time32(_) | DataType::Time64(_) => FieldType::Time,
        DataType::Timestamp(_, None) => FieldType::Timestamp,
        DataType::Timestamp(_, Some(_)) => FieldType::TimestampTz,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => FieldType::Varchar,
        DataType::Interval(_) | DataType::Duration(_) => FieldType::Interval,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            FieldType::Binary
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item) => FieldType::Array(Box::new(match item.data_type() {
            // As in PostgreSQL, an array of nulls alone is one of texts.
            DataType::Null => FieldType::Varchar,
            _ => field_type_of(item),
        })),
        DataType::Dictionary(_, value) => field_type_of_arrow(value),
        _ => FieldType::Object,
    }
}

/// Days since 1970-01-01.
pub fn days_of(date: NaiveDate) -> i32 {
    date.num_days_from_ce() - EPOCH_DAYS_FROM_CE
}

/// The date from a number of days since 1970-01-01.
pub fn date_of(days: i32) -> Option<NaiveDate> {
    NaiveDate::from_num_days_from_ce_opt(days.checked_add(EPOCH_DAYS_FROM_CE)?)
}

/// Nanoseconds since midnight.
pub fn nanoseconds_of(time: NaiveTime) -> i64 {
    i64::from(time.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(time.nanosecond())
}

/// A decimal as a whole number of units of `10^-scale`, rounded half up; `None` beyond 256 bits.
pub fn decimal256_of(value: &BigDecimal, scale: i8) -> Option<i256> {
    let (unscaled, _) = value.with_scale_round(i64::from(scale), RoundingMode::HalfUp).into_bigint_and_exponent();
    let bytes = unscaled.to_signed_bytes_le();
    if bytes.len() > 32 {
        return None;
    }
    let fill = if unscaled.sign() == bigdecimal::num_bigint::Sign::Minus { 0xff } else { 0 };
    let mut full = [fill; 32];
    full.get_mut(..bytes.len())?.copy_from_slice(&bytes);
    Some(i256::from_le_bytes(full))
}

/// Like [`decimal256_of`], in 128 bits.
pub fn decimal128_of(value: &BigDecimal, scale: i8) -> Option<i128> {
    let (unscaled, _) = value.with_scale_round(i64::from(scale), RoundingMode::HalfUp).into_bigint_and_exponent();
    unscaled.to_i128()
}

/// A value as a scalar of its natural type.
pub fn scalar_of(value: &Value<'_>) -> Result<ScalarValue, SqlError> {
    Ok(match value {
        Value::Null => ScalarValue::Null,
        Value::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Value::Int8(value) => ScalarValue::Int8(Some(*value)),
        Value::Int16(value) => ScalarValue::Int16(Some(*value)),
        Value::Int32(value) => ScalarValue::Int32(Some(*value)),
        Value::Int64(value) => ScalarValue::Int64(Some(*value)),
        Value::Float32(value) => ScalarValue::Float32(Some(*value)),
        Value::Float64(value) => ScalarValue::Float64(Some(*value)),
        Value::Decimal(value) => {
            let (_, scale) = value.normalized().into_bigint_and_exponent();
            if scale > i64::from(DECIMAL_SCALE) {
                let text =
                    format!("the decimal {value} has more than the {DECIMAL_SCALE} digits behind the point that fit");
                return Err(data_error(text).with_sqlstate("22003"));
            }
            let scale = i8::try_from(scale.max(0)).unwrap_or(DECIMAL_SCALE);
            let unscaled = decimal256_of(value, scale)
                .ok_or_else(|| data_error(format!("the decimal {value} has more digits than the 76 that fit")))?;
            ScalarValue::Decimal256(Some(unscaled), 76, scale)
        }
        Value::Text(text) | Value::Json(text) => ScalarValue::Utf8View(Some(text.to_string())),
        Value::Date(date) => ScalarValue::Date32(Some(days_of(*date))),
        Value::Time(time) => ScalarValue::Time64Nanosecond(Some(nanoseconds_of(*time))),
        Value::Timestamp(count) => ScalarValue::TimestampMicrosecond(Some(count.and_utc().timestamp_micros()), None),
        Value::TimestampTz(count) => {
            ScalarValue::TimestampMicrosecond(Some(count.timestamp_micros()), Some("UTC".into()))
        }
        Value::Uuid(uuid) => ScalarValue::Utf8View(Some(uuid.to_string())),
        Value::Bytes(bytes) => ScalarValue::BinaryView(Some(bytes.to_vec())),
        Value::Interval(interval) => ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano {
            months: interval.months,
            days: interval.days,
            nanoseconds: interval.nanoseconds,
        })),
        Value::Array(items) => list_of(items)?,
        Value::Object(_) => {
            let blob = value.to_blob().map_err(|error| data_error(error.to_string()))?;
            ScalarValue::BinaryView(Some(blob.into_vec()))
        }
    })
}

/// Elements of different types are converted to the type of the first one that is not null.
fn list_of(items: &[Value<'_>]) -> Result<ScalarValue, SqlError> {
    let mut scalars = items.iter().map(scalar_of).collect::<Result<Vec<_>, _>>()?;
    let first = scalars.iter().map(ScalarValue::data_type).find(|data_type| *data_type != DataType::Null);
    let item_type = first.unwrap_or(DataType::Null);
    for scalar in &mut scalars {
        if scalar.data_type() != item_type {
            *scalar = scalar.cast_to(&item_type).map_err(|error| data_error(error.to_string()))?;
        }
    }
    Ok(ScalarValue::List(ScalarValue::new_list(&scalars, &item_type, true)))
}

/// A scalar as a value. `field_type` says whether a text is a JSON document.
pub fn value_of(scalar: &ScalarValue, field_type: &FieldType) -> Value<'static> {
    let text = |text: &str| match field_type {
        FieldType::Json => Value::Json(Cow::Owned(text.to_owned())),
        FieldType::Uuid => match uuid::Uuid::try_parse(text) {
            Ok(uuid) => Value::Uuid(uuid),
            Err(_) => Value::Text(Cow::Owned(text.to_owned())),
        },
        _ => Value::Text(Cow::Owned(text.to_owned())),
    };
    let value = match scalar {
        ScalarValue::Boolean(value) => value.map(Value::Boolean),
        ScalarValue::Int8(value) => value.map(Value::Int8),
        ScalarValue::Int16(value) => value.map(Value::Int16),
        ScalarValue::Int32(value) => value.map(Value::Int32),
        ScalarValue::Int64(value) => value.map(Value::Int64),
        ScalarValue::UInt8(value) => value.map(|value| Value::Int16(i16::from(value))),
        ScalarValue::UInt16(value) => value.map(|value| Value::Int32(i32::from(value))),
        ScalarValue::UInt32(value) => value.map(|value| Value::Int64(i64::from(value))),
        ScalarValue::UInt64(value) => value.map(|value| match i64::try_from(value) {
            Ok(value) => Value::Int64(value),
            Err(_) => Value::Decimal(BigDecimal::from(value)),
        }),
        ScalarValue::Float32(value) => value.map(Value::Float32),
        ScalarValue::Float64(value) => value.map(Value::Float64),
        ScalarValue::Decimal128(value, _, scale) => {
            value.map(|value| Value::Decimal(BigDecimal::new(BigInt::from(value), i64::from(*scale))))
        }
        ScalarValue::Decimal256(value, _, scale) => value.map(|value| {
            let number = BigDecimal::new(BigInt::from_signed_bytes_le(&value.to_le_bytes()), i64::from(*scale));
            Value::Decimal(if *scale >= QUOTIENT_SCALE { number.normalized() } else { number })
        }),
        ScalarValue::Utf8(value) | ScalarValue::LargeUtf8(value) | ScalarValue::Utf8View(value) => {
            value.as_deref().map(text)
        }
        ScalarValue::Date32(days) => days.and_then(date_of).map(Value::Date),
        ScalarValue::Time64Nanosecond(nanoseconds) => nanoseconds.and_then(|nanoseconds| {
            let seconds = u32::try_from(nanoseconds / 1_000_000_000).ok()?;
            let rest = u32::try_from(nanoseconds % 1_000_000_000).ok()?;
            NaiveTime::from_num_seconds_from_midnight_opt(seconds, rest).map(Value::Time)
        }),
        ScalarValue::TimestampSecond(count, zone) => timestamp(*count, 1_000_000, zone.is_some()),
        ScalarValue::TimestampMillisecond(count, zone) => timestamp(*count, 1_000, zone.is_some()),
        ScalarValue::TimestampMicrosecond(count, zone) => timestamp(*count, 1, zone.is_some()),
        ScalarValue::TimestampNanosecond(count, zone) => {
            timestamp(count.map(|count| count.div_euclid(1_000)), 1, zone.is_some())
        }
        ScalarValue::Binary(bytes) | ScalarValue::LargeBinary(bytes) | ScalarValue::BinaryView(bytes) => {
            bytes.as_ref().map(|bytes| match field_type {
                FieldType::Binary => Value::Bytes(Cow::Owned(bytes.clone())),
                _ => Value::from_blob(bytes).unwrap_or(Value::Null).into_owned(),
            })
        }
        ScalarValue::IntervalMonthDayNano(value) => value.map(|value| {
            Value::Interval(Interval { months: value.months, days: value.days, nanoseconds: value.nanoseconds })
        }),
        ScalarValue::List(list) => ColumnReader::new(list.as_ref(), &field_type_of_arrow(list.data_type()))
            .map(|reader| reader.get(0).into_owned()),
        ScalarValue::Dictionary(_, value) => return value_of(value, field_type),
        other => (!other.is_null()).then(|| Value::Text(Cow::Owned(other.to_string()))),
    };
    value.unwrap_or(Value::Null)
}

fn timestamp(count: Option<i64>, micros_per_unit: i64, zoned: bool) -> Option<Value<'static>> {
    let count = DateTime::from_timestamp_micros(count?.checked_mul(micros_per_unit)?)?;
    Some(if zoned { Value::TimestampTz(count.fixed_offset()) } else { Value::Timestamp(count.naive_utc()) })
}
