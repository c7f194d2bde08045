//! Descriptions of Compact and Portable objects: types, fields, and JSON text.

use crate::common::*;
use filbert_data::compact::{self, FieldKind};
use filbert_data::portable::{self, ClassId};
use filbert_data::{BLOB_HEADER_BYTES, FieldType, Value};

fn compact_json(name: &str) -> String {
    compact::to_json(&golden(name)[BLOB_HEADER_BYTES..], &schemas()).unwrap()
}

fn portable_json(name: &str) -> String {
    portable::to_json(&golden(name)[BLOB_HEADER_BYTES..]).unwrap()
}

#[test]
fn a_compact_is_shown_as_json() {
    assert_eq!(
        compact_json("compact.person"),
        r#"{"address":{"city":"London","zip":7},"age":36,"member":true,"name":"Ada"}"#
    );
    let all = compact_json("compact.all");
    for part in [
        r#""acom":[{"city":"Ulm","zip":1},null,{"city":null,"zip":3}]"#,
        r#""adec":[1.10,null]"#,
        r#""ab":[true,false,true,true,false,false,false,false,true]"#,
        r#""date":"2024-02-29""#,
        r#""time":"12:34:56.789""#,
        r#""ts":"2024-02-29T12:34:56.789""#,
        r#""tz":"2024-02-29T12:34:56.789-05:30""#,
        r#""noarray":null"#,
        r#""str":"Grüße""#,
    ] {
        assert!(all.contains(part), "{part} in {all}");
    }
}

#[test]
fn a_portable_is_shown_as_json() {
    assert_eq!(portable_json("portable.person"), r#"{"name":"Ada","age":36,"address":{"city":"London","zip":7}}"#);
    assert_eq!(portable_json("portable.person_null"), r#"{"name":"Tim","age":0,"address":null}"#);
    assert_eq!(portable_json("portable.empty"), "{}");
    assert_eq!(
        portable_json("portable.mid"),
        r#"{"cities":[{"city":"Rom","zip":1},{"city":"Bari","zip":2}],"sums":[1.5,-2],"best":{"city":"Rom","zip":1}}"#
    );
    let all = portable_json("portable.all");
    for part in
        [r#""ach":["a","€"]"#, r#""nodec":null"#, r#""noarray":null,"nodecs":null,"nodates":[]"#, r#""f64":-2.25"#]
    {
        assert!(all.contains(part), "{part} in {all}");
    }
}

#[test]
fn texts_and_numbers_are_escaped_as_json_wants_it() {
    let kinds = [
        ("a", FieldKind::String),
        ("b", FieldKind::Float64),
        ("c", FieldKind::ArrayOfFloat64),
        ("d", FieldKind::ArrayOfBoolean),
    ];
    let writer = compact::Writer::of_kinds("t", kinds.map(|(name, kind)| (name.to_owned(), kind)).to_vec());
    let row = [
        text("\"\\\n\u{1}é"),
        Value::Float64(f64::NAN),
        array([1e300, -1e-300, 3.0, f64::INFINITY].map(Value::Float64).into_iter().cycle().take(400)),
        array(std::iter::repeat_n(Value::Boolean(false), 10_000)),
    ];
    let blob = writer.write(&row).unwrap();
    let json = compact::to_json(&blob[BLOB_HEADER_BYTES..], &Schemas::of(&[writer.schema().clone()])).unwrap();
    let start = r#"{"a":"\"\\\n\u0001é","b":"NaN","c":[1e300,-1e-300,3.0,"inf","#;
    assert!(json.starts_with(start) && json.ends_with("false]}"), "{json}");
}

#[test]
fn objects_tell_their_types_and_fields() {
    let person = golden("compact.person");
    let schemas = schemas();
    assert_eq!(compact::schema_of(&person[BLOB_HEADER_BYTES..], &schemas).unwrap().type_name(), "person");
    let fields = compact::fields_of(&person[BLOB_HEADER_BYTES..], &schemas).unwrap();
    let shown: Vec<_> = fields.iter().map(|(name, field_type)| format!("{name} {field_type}")).collect();
    assert_eq!(shown, ["address OBJECT", "age INTEGER", "member BOOLEAN", "name VARCHAR"]);
    assert_eq!(
        compact::object_bytes(&person[BLOB_HEADER_BYTES..], &schemas).unwrap(),
        person.len() - BLOB_HEADER_BYTES
    );

    let person = golden("portable.person2");
    let class = ClassId { factory_id: 1, class_id: 3, version: 2 };
    assert_eq!(portable::class_of(&person[BLOB_HEADER_BYTES..]).unwrap(), class);
    let fields = portable::fields_of(&person[BLOB_HEADER_BYTES..]).unwrap();
    let shown: Vec<_> = fields.iter().map(|(name, field_type)| format!("{name} {field_type}")).collect();
    assert_eq!(shown, ["age BIGINT", "email VARCHAR", "name VARCHAR"]);

    let fields = portable::fields_of(&golden("portable.all")[BLOB_HEADER_BYTES..]).unwrap();
    assert_eq!(fields.len(), 35);
    assert_eq!(fields[31], ("ap".to_owned(), FieldType::Array(Box::new(FieldType::Object))));
}

#[test]
fn a_writer_is_made_from_an_object() {
    for name in ["portable.deep", "portable.person_null", "portable.all_without_raw"] {
        let blob = golden(name);
        let class = portable::definition_of(&blob[BLOB_HEADER_BYTES..]).unwrap();
        let paths = class.fields.iter().map(|field| filbert_data::Path::field(&*field.name)).enumerate().collect();
        let mut row = vec![Value::Null; class.fields.len()];
        portable::Reader::new(paths).read(&blob[BLOB_HEADER_BYTES..], &mut |at, value| row[at] = value).unwrap();
        assert_eq!(portable::Writer::new(class).unwrap().write(&row).unwrap(), blob, "{name}");
    }
}

#[test]
fn an_object_that_contains_itself_is_an_error() {
    // The positions of the nested object point into the outer object again.
    let mut blob = golden("portable.person").into_vec();
    let address = u32::from_be_bytes(blob[36..40].try_into().unwrap()) as usize;
    let nested = address + 2 + "address".len() + 1 + 9;
    blob[nested + 12..nested + 16].copy_from_slice(&(address as u32).to_be_bytes());
    let error = portable::to_json(&blob[BLOB_HEADER_BYTES..]).unwrap_err().to_string();
    assert!(error.contains("a position within the part is expected"), "{error}");
}
