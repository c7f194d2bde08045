//! Reading of arbitrary bytes returns a value or an error, and never more items than bytes.

use std::sync::Arc;

use filbert_data::{FieldPath, FieldReader, FieldType, Formats, IdsLayout, TypeId, Value};
use proptest::prelude::*;

fn type_id() -> impl Strategy<Value = i32> {
    prop_oneof![-60i32..1, Just(-100), Just(-130), any::<i32>()]
}

/// Random bytes with small lengths and known type ids among them, which reach more code than purely
/// random bytes.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        (-1i32..20).prop_map(|number| number.to_be_bytes().to_vec()),
        type_id().prop_map(|number| number.to_be_bytes().to_vec()),
        "[\\[\\]{}\":,0-9a]{0,8}".prop_map(String::into_bytes),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn layout() -> IdsLayout {
    let array = |item| FieldType::Array(Box::new(item));
    let types = [
        FieldType::Boolean,
        FieldType::Varchar,
        array(FieldType::Integer),
        FieldType::Decimal(None),
        array(FieldType::Varchar),
        FieldType::Object,
        FieldType::BigInt,
    ];
    let fields = types.into_iter().enumerate().map(|(at, of)| (format!("f{at}"), of)).collect();
    IdsLayout { factory_id: 1, class_id: 1, fields }
}

fn check(blob: &[u8]) {
    let items = |value: &Value<'_>| if let Value::Array(items) = value { items.len() } else { 0 };
    if let Ok(value) = Value::from_blob(blob) {
        assert!(items(&value) <= blob.len());
        let mut key = Vec::new();
        value.append_index_key(&mut key);
        let _ = (value.to_string(), value.compare(&value), value.convert(&FieldType::Varchar));
    }
    for field in ["this", "a", "[3]", "[any]", "[any][any]", "[0].a", "f0", "f6", "f5.a", "f2[1]"] {
        let formats = Formats {
            schemas: Arc::new(crate::common::schemas()),
            key_layout: None,
            value_layout: Some(Arc::new(layout())),
        };
        let reader = FieldReader::new(vec![FieldPath::parse(field).unwrap()], formats);
        let one = reader.read_one(&[], blob);
        let mut all = Value::Null;
        let result = reader.read(&[], blob, &mut |_, value| all = value);
        assert_eq!(one.is_ok(), result.is_ok());
        // The texts are compared, because NaN does not equal itself.
        assert!(one.is_err() || format!("{:?}", one.unwrap()) == format!("{all:?}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_any_type(type_id in type_id(), payload in payload()) {
        check(&[&[0; 4], &type_id.to_be_bytes()[..], &payload].concat());
    }

    #[test]
    fn identified(payload in payload()) {
        let head = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe, 1, 0, 0, 0, 1, 0, 0, 0, 1];
        check(&[&head[..], &payload].concat());
    }

    #[test]
    fn changed_golden(of in prop::sample::select(vec!["list_mixed", "identified", "moment", "decimal_negative"]),
                      at in any::<prop::sample::Index>(), byte in any::<u8>(), end in any::<prop::sample::Index>()) {
        let mut blob = crate::common::golden(of).into_vec();
        let (at, end) = (at.index(blob.len()), end.index(blob.len()));
        blob[at] = byte;
        check(&blob);
        check(&blob[..end]);
    }
}

#[test]
fn type_ids_of_lists_differ_from_those_of_objects() {
    // A list that claims an item of each type, but does not contain the item's bytes.
    for type_id in -140..1 {
        let list = [&[0; 4], &TypeId::ARRAY_LIST.0.to_be_bytes(), &1i32.to_be_bytes(), &i32::to_be_bytes(type_id)];
        check(&list.map(|part| part.as_slice()).concat());
    }
}

#[test]
fn documents_are_not_looked_at_behind_what_a_path_may_find() {
    for text in ["[0", r#"{"a":1"#, r#"{"a":{"b":2}"#, r#"{"f0":[{"a":1}"#, r#"[{"b":1},"#, "[[0],", "[3"] {
        let length = u32::try_from(text.len()).unwrap().to_be_bytes();
        check(&[&[0; 4], &TypeId::JSON.0.to_be_bytes()[..], &length, text.as_bytes()].concat());
    }
}
