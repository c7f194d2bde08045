//! Compact and Portable objects are written with the same bytes as a stock client writes.

use std::borrow::Cow;

use crate::common::*;
use filbert_data::compact::{self, read_fields};
use filbert_data::portable::{self, ClassDefinition, ClassId, FieldDefinition, FieldKind};
use filbert_data::{BLOB_HEADER_BYTES, Blob, FieldType, Path, Value};
use uuid::Uuid;

/// Columns with their SQL types, and the values of one row.
fn columns() -> Vec<(&'static str, FieldType, Value<'static>)> {
    vec![
        ("name", FieldType::Varchar, text("Ada")),
        ("age", FieldType::Integer, Value::Int32(36)),
        ("ok", FieldType::Boolean, Value::Boolean(false)),
        ("score", FieldType::Double, Value::Float64(1.5)),
        ("balance", FieldType::Decimal(None), decimal("10.50")),
        ("born", FieldType::Date, Value::Date(date())),
        ("at", FieldType::Time, Value::Time(time())),
        ("ts", FieldType::Timestamp, Value::Timestamp(timestamp())),
        ("tz", FieldType::TimestampTz, Value::TimestampTz(timestamp_tz())),
        ("n8", FieldType::TinyInt, Value::Int8(1)),
        ("n16", FieldType::SmallInt, Value::Int16(-2)),
        ("n64", FieldType::BigInt, Value::Int64(3)),
        ("f", FieldType::Real, Value::Float32(0.25)),
    ]
}

fn of_kinds(type_name: &str, fields: &[(&str, compact::FieldKind)]) -> compact::Writer {
    compact::Writer::of_kinds(type_name, fields.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect())
}

fn columns_of(columns: &[(&str, FieldType, Value<'_>)]) -> Vec<(String, FieldType)> {
    columns.iter().map(|(name, field_type, _)| ((*name).to_owned(), field_type.clone())).collect()
}

#[test]
fn a_row_of_columns_is_the_compact_that_a_client_writes_with_nullable_fields() {
    let mut columns = columns();
    columns[2].2 = Value::Null;
    columns[9].2 = Value::Int8(-1);
    columns[11].2 = Value::Null;
    let writer = compact::Writer::new("sql", columns_of(&columns));
    let row: Vec<_> = columns.into_iter().map(|(_, _, value)| value).collect();
    assert_eq!(writer.write(&row).unwrap(), golden("compact.sql"));
}

#[test]
fn a_row_of_columns_is_the_portable_that_a_client_writes() {
    let mut columns = columns();
    columns.extend([
        ("c", FieldType::Char, text("x")),
        ("nodec", FieldType::Decimal(Some((38, 2))), Value::Null),
        ("nostr", FieldType::Varchar, Value::Null),
    ]);
    let class = ClassId { factory_id: 1, class_id: 7, version: 1 };
    let writer = portable::Writer::new(ClassDefinition::of_types(class, columns_of(&columns))).unwrap();
    let row: Vec<_> = columns.into_iter().map(|(_, _, value)| value).collect();
    assert_eq!(writer.write(&row).unwrap(), golden("portable.sql"));
}

#[test]
fn what_was_read_of_a_compact_is_written_as_it_was() {
    for (name, type_name) in
        [("compact.all_by_name", "all"), ("compact.fixed", "fixed"), ("compact.big", "big"), ("compact.person", "")]
    {
        let (blob, schemas) = (golden(name), schemas());
        let id = i64::from_be_bytes(blob[8..16].try_into().unwrap());
        let schema = &schemas.0[&compact::SchemaId(id)];
        let paths: Vec<Path> = schema.fields().iter().map(|field| Path::field(&*field.name)).collect();
        let paths: Vec<(usize, &Path)> = paths.iter().enumerate().collect();
        let mut row = vec![Value::Null; paths.len()];
        read_fields(&blob[BLOB_HEADER_BYTES..], &schemas, &paths, &mut |at, value| row[at] = value).unwrap();
        // The order of the given fields does not matter.
        row.reverse();
        let fields: Vec<_> = schema.fields().iter().rev().map(|field| (&*field.name, field.kind)).collect();
        let writer = of_kinds(if type_name.is_empty() { "person" } else { type_name }, &fields);
        assert_eq!(writer.schema(), &**schema);
        let written = writer.write(&row).unwrap();
        if name == "compact.person" {
            // The client wrote the name first.
            assert_eq!(written.len(), blob.len());
        } else {
            assert_eq!(written, blob, "{name}");
        }
    }
}

#[test]
fn what_was_read_of_a_portable_is_written_as_it_was() {
    let names = [
        ("b", FieldKind::Boolean),
        ("i8", FieldKind::Byte),
        ("ch", FieldKind::Char),
        ("i16", FieldKind::Short),
        ("i32", FieldKind::Int),
        ("i64", FieldKind::Long),
        ("f32", FieldKind::Float),
        ("f64", FieldKind::Double),
        ("str", FieldKind::String),
        ("nothing", FieldKind::String),
        ("dec", FieldKind::Decimal),
        ("nodec", FieldKind::Decimal),
        ("time", FieldKind::Time),
        ("date", FieldKind::Date),
        ("ts", FieldKind::Timestamp),
        ("tz", FieldKind::TimestampWithTimezone),
        ("inner", FieldKind::Portable),
        ("ab", FieldKind::ArrayOfBoolean),
        ("a8", FieldKind::ArrayOfByte),
        ("ach", FieldKind::ArrayOfChar),
        ("a16", FieldKind::ArrayOfShort),
        ("a32", FieldKind::ArrayOfInt),
        ("a64", FieldKind::ArrayOfLong),
        ("af32", FieldKind::ArrayOfFloat),
        ("af64", FieldKind::ArrayOfDouble),
        ("astr", FieldKind::ArrayOfString),
        ("adec", FieldKind::ArrayOfDecimal),
        ("atime", FieldKind::ArrayOfTime),
        ("adate", FieldKind::ArrayOfDate),
        ("ats", FieldKind::ArrayOfTimestamp),
        ("atz", FieldKind::ArrayOfTimestampWithTimezone),
        ("ap", FieldKind::ArrayOfPortable),
        ("noarray", FieldKind::ArrayOfInt),
        ("nodecs", FieldKind::ArrayOfDecimal),
        ("nodates", FieldKind::ArrayOfDate),
    ];
    let person = [("name", FieldKind::String), ("age", FieldKind::Int), ("address", FieldKind::Portable)];
    let deep = [("id", FieldKind::Int), ("mid", FieldKind::Portable), ("mids", FieldKind::ArrayOfPortable)];
    let class = |class_id, names: &[(&str, FieldKind)]| {
        let field = |(name, kind): &(&str, FieldKind)| FieldDefinition {
            name: (*name).to_owned(),
            kind: *kind,
            nested: (1, 2),
        };
        ClassDefinition { factory_id: 1, class_id, version: 0, fields: names.iter().map(field).collect() }
    };
    for (name, class) in [
        ("portable.all_without_raw", class(1, &names)),
        ("portable.person", class(3, &person)),
        ("portable.person_null", class(3, &person)),
        ("portable.deep", class(4, &deep)),
        ("portable.empty", class(6, &[])),
    ] {
        let blob = golden(name);
        let paths: Vec<Path> = class.fields.iter().map(|field| Path::field(&*field.name)).collect();
        let mut row = vec![Value::Null; paths.len()];
        let reader = portable::Reader::new(paths.into_iter().enumerate().collect());
        reader.read(&blob[BLOB_HEADER_BYTES..], &mut |at, value| row[at] = value).unwrap();
        assert_eq!(portable::Writer::new(class).unwrap().write(&row).unwrap(), blob, "{name}");
    }
}

#[test]
fn positions_widen_with_the_data() {
    let writer = of_kinds("t", &[("a", compact::FieldKind::ArrayOfString), ("z", compact::FieldKind::String)]);
    let schemas = Schemas::of(&[writer.schema().clone()]);
    for length in [0, 200, 230, 240, 250, 254, 255, 256, 65_490, 65_510, 65_520, 65_530, 65_534, 65_535, 65_536, 70_000]
    {
        let row = [array([text(&"x".repeat(length)), Value::Null, text("y")]), text("z")];
        let blob = writer.write(&row).unwrap();
        let paths = [Path::field("a"), Path::field("z")];
        let mut read = vec![Value::Null; 2];
        let paths = [(0, &paths[0]), (1, &paths[1])];
        read_fields(&blob[BLOB_HEADER_BYTES..], &schemas, &paths, &mut |at, value| read[at] = value).unwrap();
        assert_eq!(read, row, "{length}");
    }
}

#[test]
fn whole_numbers_go_into_any_width_that_holds_them_and_uuids_and_json_into_texts() {
    let uuid = Uuid::from_u128(7);
    let types = [FieldType::TinyInt, FieldType::BigInt, FieldType::Decimal(None), FieldType::Uuid, FieldType::Json];
    let columns = types.into_iter().enumerate().map(|(at, column)| (format!("f{at}"), column)).collect();
    let writer = compact::Writer::new("t", columns);
    let json = Value::Json(Cow::Borrowed("{}"));
    let row = [Value::Int64(-7), Value::Int8(7), Value::Int32(7), Value::Uuid(uuid), json];
    let blob = writer.write(&row).unwrap();
    let schemas = Schemas::of(&[writer.schema().clone()]);
    let mut read = Vec::new();
    for at in 0..5 {
        let path = Path::field(format!("f{at}"));
        let visit = &mut |_, value: Value<'_>| read.push(value.into_owned());
        read_fields(&blob[BLOB_HEADER_BYTES..], &schemas, &[(0, &path)], visit).unwrap();
    }
    assert_eq!(read, [Value::Int8(-7), Value::Int64(7), decimal("7"), text(&uuid.to_string()), text("{}")]);
}

#[test]
fn a_value_that_does_not_fit_is_an_error_that_names_field_value_and_kind() {
    let compact = |kind, value: Value<'_>| {
        let error = of_kinds("t", &[("f", kind)]).write(&[value]).unwrap_err();
        error.to_string()
    };
    let portable = |kind, value: Value<'_>| {
        let field = FieldDefinition { name: "f".to_owned(), kind, nested: (0, 0) };
        let class = ClassDefinition { factory_id: 1, class_id: 1, version: 0, fields: vec![field] };
        portable::Writer::new(class).unwrap().write(&[value]).unwrap_err().to_string()
    };
    use compact::FieldKind as Compact;
    let object = Value::Object(Cow::Owned(5i32.to_be_bytes().to_vec()));
    for (found, expect) in [
        (compact(Compact::Int8, Value::Int32(300)), r#"Int32(300) does not fit into the field "f", which holds Int8"#),
        (
            compact(Compact::NullableInt8, text("x")),
            r#"Text("x") does not fit into the field "f", which holds NullableInt8"#,
        ),
        (compact(Compact::Int32, Value::Null), r#"Null does not fit into the field "f", which holds Int32"#),
        (compact(Compact::Compact, object.clone()), r#"does not fit into the field "f", which holds Compact"#),
        (compact(Compact::ArrayOfInt32, array([Value::Null])), r#"which holds ArrayOfInt32"#),
        (compact(Compact::Char, text("x")), r#"which holds Char"#),
        (compact(Compact::Date, text(&"x".repeat(100))), r#"xxx... does not fit"#),
        (portable(FieldKind::Int, Value::Null), r#"Null does not fit into the field "f", which holds Int"#),
        (portable(FieldKind::Char, text("xx")), r#"which holds Char"#),
        (portable(FieldKind::Portable, object), r#"which holds Portable"#),
        (portable(FieldKind::ArrayOfDecimal, array([Value::Null])), r#"which holds ArrayOfDecimal"#),
    ] {
        assert!(found.contains(expect), "{found}");
    }
    let error = of_kinds("t", &[]).write(&[Value::Null]).unwrap_err();
    assert_eq!(error.to_string(), "1 values for an object of 0 fields");
    let cut = Blob::from(&golden("portable.city")[..30]);
    assert!(portable(FieldKind::Portable, Value::Object(cut.to_vec().into())).contains("which holds Portable"));
}
