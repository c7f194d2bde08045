//! Compact and Portable objects with broken bytes: errors, no panics, and no memory out of
//! proportion to the bytes.

use std::sync::Arc;

use crate::common::*;
use filbert_data::{BLOB_HEADER_BYTES, Path, Value, compact, portable};
use proptest::prelude::*;
use proptest::sample::Index;

/// The number of bytes that a value owns or borrows, including the value itself.
fn weight(value: &Value<'_>) -> usize {
    size_of::<Value<'_>>()
        + match value {
            Value::Text(text) | Value::Json(text) => text.len(),
            Value::Decimal(value) => value.digits() as usize / 2,
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(blob) => blob.len(),
            _ => 0,
        }
}

/// Reads a Compact with all functions.
fn read_compact(payload: &[u8], paths: &[Path], schemas: &Arc<Schemas>) {
    let in_proportion = |value: &Value<'_>| assert!(weight(value) <= 400 * (payload.len() + 1), "{value:?}");
    for path in paths {
        let reader = compact::Reader::new(vec![(0, path.clone())], schemas.clone());
        let _ = reader.read(payload, &mut |_, value| in_proportion(&value));
        let _ = compact::read_fields(payload, &**schemas, &[(0, path)], &mut |_, value| in_proportion(&value));
    }
    let _ = compact::fields_of(payload, &**schemas);
    let _ = compact::object_bytes(payload, &**schemas).inspect(|bytes| assert!(*bytes <= payload.len()));
    let _ = compact::to_json(payload, &**schemas).inspect(|json| assert!(json.len() < 1000 * (payload.len() + 1)));
}

/// Reads a Portable with all functions.
fn read_portable(payload: &[u8], paths: &[Path]) {
    let in_proportion = |value: &Value<'_>| assert!(weight(value) <= 400 * (payload.len() + 1), "{value:?}");
    for path in paths {
        let reader = portable::Reader::new(vec![(0, path.clone())]);
        let _ = reader.read(payload, &mut |_, value| in_proportion(&value));
        let _ = portable::read_fields(payload, &[(0, path)], &mut |_, value| in_proportion(&value));
    }
    let _ = portable::class_of(payload);
    let _ = portable::cut_out(payload, 0);
    let _ = portable::to_json(payload).inspect(|json| assert!(json.len() < 1000 * (payload.len() + 1)));
    let Ok(class) = portable::definition_of(payload) else { return };
    let paths = class.fields.iter().map(|field| Path::field(&*field.name)).enumerate().collect();
    let mut row = vec![Value::Null; class.fields.len()];
    if portable::Reader::new(paths).read(payload, &mut |at, value| row[at] = value).is_ok() {
        let _ = portable::Writer::new(class).unwrap().write(&row);
    }
}

fn paths(texts: &[&str]) -> Vec<Path> {
    texts.iter().map(|text| Path::parse(text).unwrap()).collect()
}

/// The damage to bytes: numbers of one, two or four bytes, each written at a random place, and an
/// optional cut of the end.
type Damage = (Vec<(Index, u8, i32)>, Option<Index>);

fn damage() -> impl Strategy<Value = Damage> {
    let number = prop_oneof![any::<i32>(), -2..300i32, Just(i32::MAX), Just(i32::MIN), Just(0xffff), Just(0xff)];
    (prop::collection::vec((any::<Index>(), 0..3u8, number), 0..6), any::<Option<Index>>())
}

fn damaged(name: &str, (numbers, cut): &Damage) -> Vec<u8> {
    let mut payload = golden(name)[BLOB_HEADER_BYTES..].to_vec();
    for (at, width, number) in numbers {
        let at = at.index(payload.len());
        let bytes = number.to_be_bytes();
        let bytes = &bytes[[3, 2, 0][usize::from(*width)]..];
        let count = bytes.len().min(payload.len() - at);
        payload[at..at + count].copy_from_slice(&bytes[..count]);
    }
    if let Some(cut) = cut {
        payload.truncate(cut.index(payload.len() + 1));
    }
    payload
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_broken_compact_never_panics(
        damage in damage(),
        name in prop::sample::select(vec!["compact.all", "compact.person", "compact.person2", "compact.fixed", "compact.big"]),
    ) {
        let schemas = Arc::new(schemas());
        let fields: Vec<_> = schemas.0.values().flat_map(|schema| schema.fields().to_vec()).collect();
        let mut paths = paths(&["this", "inner.city", "acom[any].city", "acom[1]", "astr[2]", "a32[any]", "address.zip"]);
        paths.extend(fields.iter().map(|field| Path::field(&*field.name)));
        read_compact(&damaged(name, &damage), &paths, &schemas);
    }

    #[test]
    fn a_broken_portable_never_panics(
        damage in damage(),
        name in prop::sample::select(vec!["portable.all", "portable.person", "portable.deep", "portable.empty"]),
    ) {
        let mut paths = paths(&["this", "inner.city", "ap[any].city", "mids[any].cities[any].zip", "astr[2]", "adec[1]"]);
        let whole = portable::fields_of(&golden(name)[BLOB_HEADER_BYTES..]).unwrap();
        paths.extend(whole.iter().map(|(name, _)| Path::field(&**name)));
        read_portable(&damaged(name, &damage), &paths);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let schemas = Arc::new(schemas());
        let paths = paths(&["this", "a", "inner.city", "ap[any].city"]);
        read_portable(&bytes, &paths);
        for id in schemas.0.keys() {
            read_compact(&[&id.0.to_be_bytes(), &*bytes].concat(), &paths, &schemas);
        }
    }
}

#[test]
fn fields_that_share_a_nested_object_do_not_multiply_it() {
    // Each object has two fields at the same place, which is the place of the next object.
    let field = |name: &[u8]| [&[0, 1][..], name, &[0, 0], &[0; 8]].concat();
    let (head, depth) = (12 + 3 * 4, 60);
    let step = head + field(b"x").len();
    let end = 8 + 8 + depth * step + head;
    let mut payload = vec![0; 8];
    for level in 0..=depth {
        let from = 8 + payload.len();
        payload.extend([0; 4]);
        payload.extend((end as u32).to_be_bytes());
        if level == depth {
            payload.extend([0; 16]);
        } else {
            payload.extend(2u32.to_be_bytes());
            let at = (from + head) as u32;
            payload.extend([at.to_be_bytes(), at.to_be_bytes(), [0; 4]].concat());
            payload.extend(field(b"x"));
        }
    }
    for error in
        [portable::to_json(&payload).unwrap_err().to_string(), portable::cut_out(&payload, 0).unwrap_err().to_string()]
    {
        assert!(error.contains("share bytes"), "{error}");
    }
}

#[test]
fn objects_nested_too_deep_are_an_error() {
    let kinds = vec![("next".to_owned(), compact::FieldKind::Compact)];
    let writer = compact::Writer::of_kinds("node", kinds);
    let schemas = Schemas::of(&[writer.schema().clone()]);
    let class = portable::ClassDefinition {
        factory_id: 1,
        class_id: 1,
        version: 0,
        fields: vec![portable::FieldDefinition {
            name: "next".to_owned(),
            kind: portable::FieldKind::Portable,
            nested: (1, 1),
        }],
    };
    let portable_writer = portable::Writer::new(class).unwrap();
    let (mut node, mut other) = (Value::Null, Value::Null);
    for depth in 1..=256 {
        let blob = writer.write(&[node]).unwrap();
        let json = compact::to_json(&blob[BLOB_HEADER_BYTES..], &schemas).unwrap();
        assert_eq!(json.matches("next").count(), depth);
        node = Value::Object(blob.into_vec().into());
        let blob = portable_writer.write(&[other]).unwrap();
        assert_eq!(portable::to_json(&blob[BLOB_HEADER_BYTES..]).unwrap(), json);
        other = Value::Object(blob.into_vec().into());
    }
    let blob = writer.write(&[node]).unwrap();
    let error = compact::to_json(&blob[BLOB_HEADER_BYTES..], &schemas).unwrap_err().to_string();
    assert!(error.contains("more than 256 nested objects"), "{error}");
    let blob = portable_writer.write(&[other]).unwrap();
    let error = portable::to_json(&blob[BLOB_HEADER_BYTES..]).unwrap_err().to_string();
    assert!(error.contains("more than 256 nested objects"), "{error}");
}
