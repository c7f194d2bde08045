//! Compact and Portable objects of any fields: each written value is read back, whatever other
//! values the object contains.

use std::sync::Arc;

use crate::common::*;
use chrono::{FixedOffset, NaiveDate, NaiveTime, TimeZone};
use filbert_data::compact::{self, FieldKind as Compact};
use filbert_data::portable::{self, FieldKind as Portable};
use filbert_data::{BLOB_HEADER_BYTES, FieldType, Path, Value};
use proptest::prelude::*;

/// Random values of a type.
fn value(field_type: &FieldType) -> BoxedStrategy<Value<'static>> {
    let date = (-9999..9999i32, 1..366u32).prop_map(|(year, day)| NaiveDate::from_yo_opt(year, day).unwrap());
    let time = (0..86_400u32, 0..1_000_000_000u32)
        .prop_map(|(second, nano)| NaiveTime::from_num_seconds_from_midnight_opt(second, nano).unwrap());
    let timestamp = (date.clone(), time.clone()).prop_map(|(date, time)| date.and_time(time));
    match field_type {
        FieldType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        FieldType::TinyInt => any::<i8>().prop_map(Value::Int8).boxed(),
        FieldType::SmallInt => any::<i16>().prop_map(Value::Int16).boxed(),
        FieldType::Integer => any::<i32>().prop_map(Value::Int32).boxed(),
        FieldType::BigInt => any::<i64>().prop_map(Value::Int64).boxed(),
        FieldType::Real => any::<f32>().prop_map(Value::Float32).boxed(),
        FieldType::Double => any::<f64>().prop_map(Value::Float64).boxed(),
        FieldType::Decimal(_) => "-?[1-9][0-9]{0,50}(\\.[0-9]{1,30})?".prop_map(|digits| decimal(&digits)).boxed(),
        FieldType::Char => "[a-zé€]".prop_map(|one| text(&one)).boxed(),
        FieldType::Date => date.prop_map(Value::Date).boxed(),
        FieldType::Time => time.prop_map(Value::Time).boxed(),
        FieldType::Timestamp => timestamp.prop_map(Value::Timestamp).boxed(),
        FieldType::TimestampTz => (timestamp, -64_800..64_800i32)
            .prop_map(|(local, offset)| {
                let zone = FixedOffset::east_opt(offset).unwrap();
                Value::TimestampTz(zone.from_local_datetime(&local).unwrap())
            })
            .boxed(),
        FieldType::Array(item) => prop::collection::vec(value(item), 0..20).prop_map(Value::Array).boxed(),
        _ => prop_oneof![".{0,40}", Just("x".repeat(300))].prop_map(|long| text(&long)).boxed(),
    }
}

fn column() -> impl Strategy<Value = (FieldType, Value<'static>)> {
    let scalar = prop::sample::select(vec![
        FieldType::Boolean,
        FieldType::TinyInt,
        FieldType::SmallInt,
        FieldType::Integer,
        FieldType::BigInt,
        FieldType::Real,
        FieldType::Double,
        FieldType::Decimal(None),
        FieldType::Varchar,
        FieldType::Date,
        FieldType::Time,
        FieldType::Timestamp,
        FieldType::TimestampTz,
    ]);
    (scalar, any::<bool>())
        .prop_map(|(scalar, array)| if array { FieldType::Array(Box::new(scalar)) } else { scalar })
        .prop_flat_map(|field_type| value(&field_type).prop_map(move |value| (field_type.clone(), value)))
}

/// Columns that are not sorted by name.
fn columns() -> impl Strategy<Value = Vec<(String, FieldType, Value<'static>)>> {
    prop::collection::btree_map("[a-z]{1,8}", column(), 0..30)
        .prop_map(|columns| columns.into_iter().map(|(name, (field_type, value))| (name, field_type, value)).collect())
        .prop_shuffle()
}

/// The kind without nulls if there is one, else the same kind.
fn not_nullable(kind: Compact) -> Compact {
    match kind {
        Compact::NullableBoolean => Compact::Boolean,
        Compact::NullableInt8 => Compact::Int8,
        Compact::NullableInt16 => Compact::Int16,
        Compact::NullableInt32 => Compact::Int32,
        Compact::NullableInt64 => Compact::Int64,
        Compact::NullableFloat32 => Compact::Float32,
        Compact::NullableFloat64 => Compact::Float64,
        Compact::ArrayOfNullableBoolean => Compact::ArrayOfBoolean,
        Compact::ArrayOfNullableInt8 => Compact::ArrayOfInt8,
        Compact::ArrayOfNullableInt16 => Compact::ArrayOfInt16,
        Compact::ArrayOfNullableInt32 => Compact::ArrayOfInt32,
        Compact::ArrayOfNullableInt64 => Compact::ArrayOfInt64,
        Compact::ArrayOfNullableFloat32 => Compact::ArrayOfFloat32,
        Compact::ArrayOfNullableFloat64 => Compact::ArrayOfFloat64,
        kind => kind,
    }
}

/// The text of values. NaN does not equal itself, but has the same text.
fn shown(values: &[Value<'_>]) -> String {
    format!("{values:?}")
}

proptest! {
    #[test]
    fn a_compact_is_read_as_it_was_written(
        columns in columns(),
        nullable in prop::collection::vec(any::<bool>(), 30),
        null in prop::collection::vec(any::<bool>(), 30),
    ) {
        let kinds = columns.iter().zip(&nullable).map(|((name, field_type, _), nullable)| {
            let kind = Compact::of_type(field_type);
            (name.clone(), if *nullable { kind } else { not_nullable(kind) })
        });
        let kinds: Vec<_> = kinds.collect();
        let writer = compact::Writer::of_kinds("t", kinds.clone());
        let row: Vec<_> = columns.iter().enumerate().map(|(at, (_, field_type, value))| {
            // Arrays and texts can always be null.
            let can_be = nullable[at] || matches!(field_type, FieldType::Array(_) | FieldType::Varchar);
            if null[at] && can_be { Value::Null } else { value.clone() }
        }).collect();
        let blob = writer.write(&row).unwrap();
        let schemas = Arc::new(Schemas::of(&[writer.schema().clone()]));
        let paths = columns.iter().map(|(name, ..)| Path::field(&**name)).enumerate().collect();
        let mut read = vec![text("not visited"); row.len()];
        compact::Reader::new(paths, schemas.clone())
            .read(&blob[BLOB_HEADER_BYTES..], &mut |at, value| read[at] = value)
            .unwrap();
        prop_assert_eq!(shown(&read), shown(&row));
        prop_assert_eq!(compact::object_bytes(&blob[BLOB_HEADER_BYTES..], &*schemas).unwrap(), blob.len() - 8);
        compact::to_json(&blob[BLOB_HEADER_BYTES..], &*schemas).unwrap();
        let fields = compact::fields_of(&blob[BLOB_HEADER_BYTES..], &*schemas).unwrap();
        for (name, field_type, _) in columns {
            prop_assert!(fields.contains(&(name, field_type)));
        }
    }

    #[test]
    fn a_portable_is_read_as_it_was_written(columns in columns()) {
        let class = portable::ClassId { factory_id: 3, class_id: 5, version: 7 };
        let fields: Vec<_> = columns.iter().map(|(name, field_type, _)| (name.clone(), field_type.clone())).collect();
        let row: Vec<_> = columns.iter().map(|(.., value)| value.clone()).collect();
        let writer = portable::Writer::new(portable::ClassDefinition::of_types(class, fields.clone())).unwrap();
        let blob = writer.write(&row).unwrap();
        let paths = columns.iter().map(|(name, ..)| Path::field(&**name)).enumerate().collect();
        let mut read = vec![text("not visited"); row.len()];
        portable::Reader::new(paths)
            .read(&blob[BLOB_HEADER_BYTES..], &mut |at, value| read[at] = value)
            .unwrap();
        prop_assert_eq!(shown(&read), shown(&row));
        prop_assert_eq!(portable::class_of(&blob[BLOB_HEADER_BYTES..]).unwrap(), class);
        prop_assert_eq!(portable::fields_of(&blob[BLOB_HEADER_BYTES..]).unwrap(), fields);
        prop_assert_eq!(&portable::definition_of(&blob[BLOB_HEADER_BYTES..]).unwrap(), writer.class());
        portable::to_json(&blob[BLOB_HEADER_BYTES..]).unwrap();
        // The object is unchanged after it is nested in another object and read from there.
        let outer = portable::ClassDefinition {
            factory_id: 3,
            class_id: 6,
            version: 0,
            fields: [("before", Portable::ArrayOfPortable), ("inner", Portable::Portable)]
                .map(|(name, kind)| portable::FieldDefinition { name: name.to_owned(), kind, nested: (3, 5) })
                .to_vec(),
        };
        let inner = Value::Object(blob.to_vec().into());
        let row = [Value::Array(vec![inner.clone(), inner.clone()]), inner];
        let outer = portable::Writer::new(outer).unwrap().write(&row).unwrap();
        let mut read = vec![Value::Null; 2];
        let paths = ["before", "inner"].map(Path::field);
        let paths = [(0, &paths[0]), (1, &paths[1])];
        portable::read_fields(&outer[BLOB_HEADER_BYTES..], &paths, &mut |at, value| read[at] = value).unwrap();
        prop_assert_eq!(read, row);
    }
}
