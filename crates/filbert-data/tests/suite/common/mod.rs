//! Golden objects, schemas, and short ways to write values.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    unreachable_pub,
    reason = "a test fails by panicking; not every test uses all"
)]

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};
use filbert_data::compact::{FieldDescriptor, FieldKind, Schema, SchemaId};
use filbert_data::{Blob, SchemaSource, Value};

/// The blob of this name in objects.txt or values.txt.
pub fn golden(name: &str) -> Blob {
    let files = concat!(include_str!("../../objects.txt"), include_str!("../../values.txt"));
    let line = files.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let hex = line.unwrap_or_else(|| panic!("{name} is not among the golden objects"));
    let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
    Blob::from(bytes.collect::<Vec<u8>>())
}

/// Schemas that were announced.
#[derive(Default)]
pub struct Schemas(pub HashMap<SchemaId, Arc<Schema>>);

impl Schemas {
    pub fn of(schemas: &[Schema]) -> Schemas {
        Schemas(schemas.iter().map(|schema| (schema.fingerprint(), Arc::new(schema.clone()))).collect())
    }
}

impl SchemaSource for Schemas {
    fn schema(&self, id: SchemaId) -> Option<Arc<Schema>> {
        self.0.get(&id).cloned()
    }
}

pub fn schema(type_name: &str, fields: &[(&str, FieldKind)]) -> Schema {
    Schema::new(type_name, fields.iter().map(|(name, kind)| FieldDescriptor { name: (*name).into(), kind: *kind }))
}

/// The schemas of the golden objects.
pub fn schemas() -> Schemas {
    use FieldKind::*;
    let all = schema(
        "all",
        &[
            ("b0", Boolean),
            ("b1", Boolean),
            ("b2", Boolean),
            ("i8", Int8),
            ("i16", Int16),
            ("i32", Int32),
            ("i64", Int64),
            ("f32", Float32),
            ("f64", Float64),
            ("str", String),
            ("dec", Decimal),
            ("time", Time),
            ("date", Date),
            ("ts", Timestamp),
            ("tz", TimestampWithTimezone),
            ("inner", Compact),
            ("nb", NullableBoolean),
            ("n8", NullableInt8),
            ("n16", NullableInt16),
            ("n32", NullableInt32),
            ("n64", NullableInt64),
            ("nf32", NullableFloat32),
            ("nf64", NullableFloat64),
            ("ab", ArrayOfBoolean),
            ("a8", ArrayOfInt8),
            ("a16", ArrayOfInt16),
            ("a32", ArrayOfInt32),
            ("a64", ArrayOfInt64),
            ("af32", ArrayOfFloat32),
            ("af64", ArrayOfFloat64),
            ("astr", ArrayOfString),
            ("adec", ArrayOfDecimal),
            ("atime", ArrayOfTime),
            ("adate", ArrayOfDate),
            ("ats", ArrayOfTimestamp),
            ("atz", ArrayOfTimestampWithTimezone),
            ("acom", ArrayOfCompact),
            ("anb", ArrayOfNullableBoolean),
            ("an8", ArrayOfNullableInt8),
            ("an16", ArrayOfNullableInt16),
            ("an32", ArrayOfNullableInt32),
            ("an64", ArrayOfNullableInt64),
            ("anf32", ArrayOfNullableFloat32),
            ("anf64", ArrayOfNullableFloat64),
            ("nothing", String),
            ("noarray", ArrayOfString),
        ],
    );
    Schemas::of(&[
        all,
        schema("inner", &[("city", String), ("zip", Int32)]),
        schema("person", &[("name", String), ("age", Int32), ("member", Boolean), ("address", Compact)]),
        schema("person", &[("name", String), ("age", Int64), ("email", String)]),
        schema("fixed", &[("age", Int32), ("id", Int64), ("x", Boolean)]),
        schema("big", &[("a", String), ("b", String), ("c", ArrayOfString)]),
    ])
}

pub fn text(text: &str) -> Value<'static> {
    Value::Text(Cow::Owned(text.to_owned()))
}

pub fn decimal(text: &str) -> Value<'static> {
    Value::Decimal(text.parse().unwrap())
}

/// 2024-02-29. The functions below add 12:34:56.789, and an offset of five and a half hours west of
/// Greenwich.
pub fn date() -> NaiveDate {
    NaiveDate::from_ymd_opt(2024, 2, 29).unwrap()
}

pub fn time() -> NaiveTime {
    NaiveTime::from_hms_milli_opt(12, 34, 56, 789).unwrap()
}

pub fn timestamp() -> NaiveDateTime {
    date().and_time(time())
}

pub fn timestamp_tz() -> DateTime<FixedOffset> {
    timestamp().and_local_timezone(FixedOffset::west_opt(19_800).unwrap()).unwrap()
}

pub fn array(items: impl IntoIterator<Item = Value<'static>>) -> Value<'static> {
    Value::Array(items.into_iter().collect())
}
