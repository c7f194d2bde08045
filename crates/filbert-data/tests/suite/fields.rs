//! Reading fields of entries of every format.

use std::sync::Arc;

use crate::common::{array, date, decimal, golden, schemas, text};
use filbert_data::{
    Blob, DataError, FieldPath, FieldReader, FieldType, Formats, IdsLayout, Json, List, ToBlob, TypeId, Value, ids,
};
use uuid::Uuid;

fn reader(fields: &[&str], value_layout: Option<IdsLayout>) -> FieldReader {
    let fields = fields.iter().map(|field| FieldPath::parse(field).unwrap()).collect();
    let value_layout = value_layout.map(Arc::new);
    FieldReader::new(fields, Formats { schemas: Arc::new(schemas()), key_layout: None, value_layout })
}

/// Reads the fields of one entry, all together and each alone.
fn read(reader: &FieldReader, key: &[u8], value: &[u8]) -> Result<Vec<Value<'static>>, DataError> {
    let mut found = vec![None; reader.fields().len()];
    reader.read(key, value, &mut |field, value| {
        let before = found[field].replace(value.into_owned());
        assert_eq!(before, None, "field {field} is visited twice");
    })?;
    Ok(found.into_iter().map(|value| value.unwrap_or_else(|| panic!("a field is not visited"))).collect())
}

/// Checks the fields of a value, read together and one by one.
fn check(value: &[u8], expect: &[(&str, Value<'_>)]) {
    let names: Vec<&str> = expect.iter().map(|(name, _)| *name).collect();
    let key = 7i32.to_blob().unwrap();
    let found = read(&reader(&names, None), &key, value).unwrap();
    for ((name, expect), found) in expect.iter().zip(found) {
        assert_eq!(&found, expect, "{name}");
        assert_eq!(&reader(&[name], None).read_one(&key, value).unwrap(), expect, "{name} alone");
    }
}

fn json(text: &str) -> Blob {
    Json::new(text).to_blob().unwrap()
}

fn json_part(text: &str) -> Value<'_> {
    Value::Json(text.into())
}

fn int(number: i32) -> Value<'static> {
    Value::Int32(number)
}

fn long(number: i64) -> Value<'static> {
    Value::Int64(number)
}

#[test]
fn fields_of_key_and_value_are_read_together() {
    let reader = reader(&["name", "__key", "age", "this", "__key.x"], None);
    let value = json(r#"{"age":36,"name":"Ada"}"#);
    let found = read(&reader, &7i32.to_blob().unwrap(), &value).unwrap();
    assert_eq!(found, [text("Ada"), int(7), long(36), json_part(r#"{"age":36,"name":"Ada"}"#), Value::Null]);
}

#[test]
fn a_half_without_requested_fields_is_not_read() {
    assert_eq!(read(&reader(&["__key"], None), &7i32.to_blob().unwrap(), &[]).unwrap(), [int(7)]);
    assert_eq!(read(&reader(&["this"], None), &[], &7i32.to_blob().unwrap()).unwrap(), [int(7)]);
    assert!(read(&reader(&["this"], None), &[], &[]).is_err());
    assert_eq!(reader(&[], None).read_one(&[], &[]).unwrap(), Value::Null);
}

#[test]
fn a_json_document_is_read_in_one_pass() {
    let document = r#" { "a" : 1 , "b":{"c":[10,{"d":"x"},[ ]],"e":null,"f":{}},"g":-2.5e3, "h":true,"i":false,
        "j":"Gr\u00fc\u00dfe \ud83c\udf30 \"q\"\n","k\u0041":"escaped name","a":"again","l":[[1,2],[3]] } "#;
    check(
        &json(document),
        &[
            ("a", long(1)),
            ("b.c", json_part(r#"[10,{"d":"x"},[ ]]"#)),
            ("b.c[0]", long(10)),
            ("b.c[1]", json_part(r#"{"d":"x"}"#)),
            ("b.c[1].d", text("x")),
            ("b.c[2]", json_part("[ ]")),
            ("b.c[3]", Value::Null),
            ("b.c[1][0]", Value::Null),
            ("b.c[any]", array([long(10), json_part(r#"{"d":"x"}"#), json_part("[ ]")])),
            ("b.c[any].d", array([Value::Null, text("x"), Value::Null])),
            ("b.e", Value::Null),
            ("b.f", json_part("{}")),
            ("b.f.x", Value::Null),
            ("b[any]", Value::Null),
            ("a.x", Value::Null),
            ("g", Value::Float64(-2500.0)),
            ("h", Value::Boolean(true)),
            ("i", Value::Boolean(false)),
            ("j", text("Grüße 🌰 \"q\"\n")),
            ("kA", text("escaped name")),
            ("missing", Value::Null),
            ("l[any][any]", array([long(1), long(2), long(3)])),
            ("l[any][0]", array([long(1), long(3)])),
            ("l[1]", json_part("[3]")),
            ("l[1][any]", array([long(3)])),
            ("this", json_part(document)),
        ],
    );
    // The same field twice, and a field within another field.
    let found = read(&reader(&["a", "a", "b", "b.e"], None), &[], &json(r#"{"b":{"e":1},"a":2}"#)).unwrap();
    assert_eq!(found, [long(2), long(2), json_part(r#"{"e":1}"#), long(1)]);
}

#[test]
fn a_json_document_that_is_no_object_has_no_fields() {
    for document in ["1", "\"text\"", "null", "true", "[1,2]", "{}", "[]"] {
        check(&json(document), &[("a", Value::Null), ("a.b", Value::Null), ("this", json_part(document))]);
    }
    check(
        &json("[1,[2]]"),
        &[("[0]", long(1)), ("[1][0]", long(2)), ("this[any]", array([long(1), json_part("[2]")]))],
    );
    check(&json("[]"), &[("[any]", array([])), ("[0]", Value::Null)]);
    let mut null = json("");
    null = Blob::from([&null[..8], &[255; 4]].concat());
    check(&null, &[("a", Value::Null), ("this", Value::Null)]);
}

#[test]
fn json_numbers_keep_their_digits() {
    for (number, expect) in [
        ("0", long(0)),
        ("-0", long(0)),
        ("9223372036854775807", long(i64::MAX)),
        ("-9223372036854775808", long(i64::MIN)),
        ("9223372036854775808", decimal("9223372036854775808")),
        ("1.0", Value::Float64(1.0)),
        ("0.1", Value::Float64(0.1)),
        ("1e2", Value::Float64(100.0)),
        ("1E-2", Value::Float64(0.01)),
        ("1e400", decimal("1e400")),
        ("-5e-324", Value::Float64(-5e-324)),
    ] {
        check(&json(&format!("{{\"a\":{number}}}")), &[("a", expect.clone())]);
        check(&json(&format!("[{number}]")), &[("[any]", array([expect]))]);
    }
}

#[test]
fn broken_json_before_a_field_is_an_error_that_names_the_byte() {
    for (document, at) in [
        ("", 0),
        ("{", 1),
        ("{\"", 2),
        ("{a", 1),
        ("{\"b\" 1}", 5),
        ("{\"b\":01}", 6),
        ("{\"b\":1,}", 7),
        ("{\"b\":-}", 6),
        ("{\"b\":1.}", 7),
        ("{\"b\":1e}", 7),
        ("{\"b\":tru}", 5),
        ("{\"b\":[1,]}", 8),
        ("{\"b\":[1}", 7),
        ("{\"b\":{]}", 6),
        ("{\"b\":\"\\x\"}", 7),
        ("{\"b\":\"\\u12\"}", 7),
        ("{\"b\":\"\n\"}", 6),
        ("{\"b\":1 \"a\":2}", 7),
        ("{\"b\":\"\\", 7),
        ("{\"a\":+1}", 5),
        ("{\"a\":\"x", 7),
        ("{\"a\":'x'}", 5),
    ] {
        let error = read(&reader(&["a"], None), &[], &json(document)).unwrap_err();
        let DataError::BrokenJson { at: found, .. } = error else { panic!("{document}: {error}") };
        assert_eq!(found, at, "{document}: {error}");
        assert_eq!(reader(&["a"], None).read_one(&[], &json(document)).unwrap_err(), error, "{document}");
    }
    // The text after the last field is not read.
    check(&json("{\"a\":1, oops"), &[("a", long(1))]);
    let deep = format!("{{\"b\":{}1{},\"a\":2}}", "[".repeat(1024), "]".repeat(1024));
    check(&json(&deep), &[("a", long(2))]);
    let deeper = json(&format!("{{\"b\":{}", "[".repeat(100_000)));
    assert!(reader(&["a"], None).read_one(&[], &deeper).unwrap_err().to_string().contains("1,024"));
}

#[test]
fn items_of_arrays_and_lists_are_found() {
    check(
        &vec![1i32, -2].to_blob().unwrap(),
        &[
            ("[0]", int(1)),
            ("this[1]", int(-2)),
            ("[2]", Value::Null),
            ("[any]", array([int(1), int(-2)])),
            ("a", Value::Null),
            ("[0].a", Value::Null),
        ],
    );
    check(
        &golden("list_mixed"),
        &[
            ("[1]", text("a")),
            ("[2]", Value::Null),
            ("[8].a", long(1)),
            ("[9][0]", int(1)),
            ("[9][1][0]", int(2)),
            ("[9][any]", array([int(1), array([int(2)])])),
        ],
    );
    let lists = List(vec![List(vec![1]), List(vec![]), List(vec![2, 3])]).to_blob().unwrap();
    check(
        &lists,
        &[("[any][any]", array([int(1), int(2), int(3)])), ("[any][0]", array([int(1), Value::Null, int(2)]))],
    );
    // A whole array is unchanged, so that the client gets an array and not a list.
    let ints = vec![1i32].to_blob().unwrap();
    check(&ints, &[("this", Value::Object(ints.as_bytes().into()))]);

    let person = golden("compact.person");
    let people =
        Value::Array(vec![Value::Object(person.as_bytes().into()), int(1), Value::Object(person.as_bytes().into())]);
    check(
        &people.to_blob().unwrap(),
        &[
            ("[any].name", array([text("Ada"), Value::Null, text("Ada")])),
            ("[2].age", int(36)),
            ("[1]", int(1)),
            ("[0]", Value::Object(person.as_bytes().into())),
        ],
    );
}

#[test]
fn fields_of_portable_and_compact_objects_are_found() {
    check(&golden("portable.all"), &[("str", text("Grüße")), ("i32", int(-320_000)), ("missing", Value::Null)]);
    check(
        &golden("compact.person"),
        &[("name", text("Ada")), ("age", int(36)), ("address.zip", int(7)), ("missing", Value::Null)],
    );
    for blob in [golden("portable.all"), golden("compact.person")] {
        check(&blob, &[("this", Value::Object(blob.as_bytes().into()))]);
    }
}

#[test]
fn plain_values_have_no_fields() {
    for blob in [7i32.to_blob(), "text".to_blob(), Value::Null.to_blob(), true.to_blob()] {
        check(&blob.unwrap(), &[("a", Value::Null), ("[0]", Value::Null), ("[any]", Value::Null)]);
    }
}

fn layout() -> IdsLayout {
    use FieldType::*;
    let array = |item: FieldType| Array(Box::new(item));
    let fields = [
        ("boolean", Boolean),
        ("byte", TinyInt),
        ("short", SmallInt),
        ("int", Integer),
        ("long", BigInt),
        ("float", Real),
        ("double", Double),
        ("char", Char),
        ("text", Varchar),
        ("no_text", Varchar),
        ("ints", array(Integer)),
        ("texts", array(Varchar)),
        ("booleans", array(Boolean)),
        ("bytes", array(TinyInt)),
        ("no_longs", array(BigInt)),
        ("decimal", Decimal(None)),
        ("date", Date),
        ("no_object", Object),
        ("uuid", Uuid),
        ("json", Json),
        ("end", Varchar),
    ];
    let fields = fields.map(|(name, field_type)| (name.to_owned(), field_type)).to_vec();
    IdsLayout { factory_id: 7, class_id: 3, fields }
}

fn identified() -> Vec<(&'static str, Value<'static>)> {
    vec![
        ("boolean", Value::Boolean(true)),
        ("byte", Value::Int8(-8)),
        ("short", Value::Int16(-1600)),
        ("int", int(-320_000)),
        ("long", long(-640_000_000_000)),
        ("float", Value::Float32(1.5)),
        ("double", Value::Float64(-2.25)),
        ("char", text("€")),
        ("text", text("Grüße")),
        ("no_text", Value::Null),
        ("ints", array([int(1), int(-2)])),
        ("texts", array([text("a"), Value::Null])),
        ("booleans", array([Value::Boolean(true), Value::Boolean(false)])),
        ("bytes", array([Value::Int8(1), Value::Int8(-1)])),
        ("no_longs", Value::Null),
        ("decimal", decimal("1.10")),
        ("date", Value::Date(date())),
        ("no_object", Value::Null),
        ("uuid", Value::Uuid(Uuid::from_u128(1))),
        ("json", Value::Json("{\"x\":[1,2]}".into())),
        ("end", text("end")),
    ]
}

#[test]
fn an_identified_object_is_read_and_written_by_its_layout() {
    let blob = golden("identified");
    let (names, values): (Vec<&str>, Vec<Value<'_>>) = identified().into_iter().unzip();
    assert_eq!(read(&reader(&names, Some(layout())), &[], &blob).unwrap(), values);
    for (name, value) in identified() {
        assert_eq!(reader(&[name], Some(layout())).read_one(&[], &blob).unwrap(), value, "{name}");
    }
    let inner = reader(&["ints[1]", "json.x[any]", "missing", "this", "texts[any]"], Some(layout()));
    let object = Value::Object(blob.as_bytes().into());
    let expect = [int(-2), array([long(1), long(2)]), Value::Null, object, array([text("a"), Value::Null])];
    assert_eq!(read(&inner, &[], &blob).unwrap(), expect);

    let mut written = Vec::new();
    ids::write(&layout(), &values, &mut written).unwrap();
    assert_eq!(written, blob.as_bytes());
}

#[test]
fn an_identified_object_of_another_class_or_without_a_layout_is_an_error() {
    let blob = golden("identified");
    assert_eq!(read(&reader(&["int"], None), &[], &blob), Err(DataError::NoLayout));
    assert_eq!(read(&reader(&["this"], None), &[], &blob), Ok(vec![Value::Object(blob.as_bytes().into())]));
    let other = IdsLayout { class_id: 4, ..layout() };
    let error = read(&reader(&["int"], Some(other)), &[], &blob).unwrap_err();
    let expect = "an object of factory 7 and class 3; the mapping declares the layout of factory 7 and class 4";
    assert_eq!(error.to_string(), expect);
    for length in 0..blob.len() {
        assert!(read(&reader(&["end"], Some(layout())), &[], &blob[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn an_identified_object_takes_only_values_that_it_has_a_place_for() {
    let mut values: Vec<Value<'_>> = identified().into_iter().map(|(_, value)| value).collect();
    let write =
        |values: &[Value<'_>]| ids::write(&layout(), values, &mut Vec::new()).map_err(|error| error.to_string());
    assert!(write(&values[1..]).unwrap_err().contains("20 values for an object of 21 fields"));
    values[1] = int(300);
    assert!(write(&values).unwrap_err().contains("the INTEGER 300 cannot be a TINYINT"));
    values[1] = Value::Null;
    assert!(write(&values).unwrap_err().contains("\"byte\""));
    values[1] = int(-8);
    write(&values).unwrap();
}

#[test]
fn an_object_of_unknown_type_is_read_where_it_is_the_last_field() {
    let fields = vec![("a".to_owned(), FieldType::Object), ("b".to_owned(), FieldType::Integer)];
    let layout = IdsLayout { factory_id: 1, class_id: 1, fields };
    let mut blob = vec![0, 0, 0, 0, 255, 255, 255, 254, 1, 0, 0, 0, 1, 0, 0, 0, 1];
    blob.extend(TypeId::JAVA_SERIALIZABLE.0.to_be_bytes());
    blob.extend([9; 5]);
    let object = Value::Object([&[0; 4], &blob[17..]].concat().into());
    let alone = IdsLayout { fields: layout.fields[..1].to_vec(), ..layout.clone() };
    assert_eq!(read(&reader(&["a"], Some(alone)), &[], &blob), Ok(vec![object]));
    assert!(read(&reader(&["a"], Some(layout.clone())), &[], &blob).is_err());
    assert!(read(&reader(&["b"], Some(layout)), &[], &blob).unwrap_err().to_string().contains("tells where it ends"));
}
