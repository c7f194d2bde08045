//! Paths find the same values in random documents as another parser, and broken documents are
//! errors.

use std::sync::Arc;

use filbert_data::{DataError, FieldPath, FieldReader, Formats, Json, Path, Side, Step, ToBlob, Value};
use proptest::prelude::*;
use serde_json::Value as Document;

/// Only a few names, so that paths match them often; some need escapes.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("ä\"\\"), Just("")].prop_map(str::to_owned)
}

fn document() -> impl Strategy<Value = Document> {
    let leaf = prop_oneof![
        Just(Document::Null),
        any::<bool>().prop_map(Document::from),
        any::<i64>().prop_map(Document::from),
        // The other parser does not read every double exactly.
        any::<i32>().prop_map(|number| Document::from(f64::from(number) / 8.0)),
        any::<String>().prop_map(Document::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Document::from),
            proptest::collection::vec((name(), inner), 0..5)
                .prop_map(|members| Document::Object(members.into_iter().collect())),
        ]
    })
}

fn path() -> impl Strategy<Value = Path> {
    let step = prop_oneof![
        4 => name().prop_map(|name| Step::Field(name.into())),
        2 => (0usize..4).prop_map(Step::Index),
        1 => Just(Step::Any),
    ];
    proptest::collection::vec(step, 1..4).prop_map(Path::of)
}

/// The value that a path finds in a document, by the rules of this crate. Nested documents are
/// compared as documents.
fn expected(document: &Document, steps: &[Step]) -> Found {
    let Some((step, rest)) = steps.split_first() else { return Found::One(document.clone()) };
    match (step, document) {
        (Step::Field(name), Document::Object(members)) => {
            members.get(&**name).map_or(Found::One(Document::Null), |member| expected(member, rest))
        }
        (Step::Index(index), Document::Array(items)) => {
            items.get(*index).map_or(Found::One(Document::Null), |item| expected(item, rest))
        }
        (Step::Any, Document::Array(items)) => {
            let flat = rest.contains(&Step::Any);
            let mut all = Vec::new();
            for item in items {
                match expected(item, rest) {
                    Found::Many(found) if flat => all.extend(found),
                    found => all.push(found),
                }
            }
            Found::Many(all)
        }
        _ => Found::One(Document::Null),
    }
}

#[derive(Debug, PartialEq)]
enum Found {
    One(Document),
    Many(Vec<Found>),
}

fn found(value: &Value<'_>) -> Found {
    Found::One(match value {
        Value::Null => Document::Null,
        Value::Boolean(value) => (*value).into(),
        Value::Int64(value) => (*value).into(),
        Value::Float64(value) => (*value).into(),
        Value::Text(text) => text.to_string().into(),
        Value::Json(text) => serde_json::from_str(text).unwrap(),
        Value::Array(items) => return Found::Many(items.iter().map(found).collect()),
        other => panic!("{other:?} in JSON"),
    })
}

fn reader(paths: &[Path]) -> FieldReader {
    let fields = paths.iter().map(|path| FieldPath { side: Side::Value, path: path.clone() }).collect();
    FieldReader::new(
        fields,
        Formats { schemas: Arc::new(crate::common::schemas()), key_layout: None, value_layout: None },
    )
}

fn read(paths: &[Path], text: &str) -> Result<Vec<Value<'static>>, DataError> {
    let mut values = vec![None; paths.len()];
    let blob = Json::new(text).to_blob()?;
    reader(paths).read(&[], &blob, &mut |field, value| {
        assert!(values.get_mut(field).unwrap().replace(value.into_owned()).is_none());
    })?;
    Ok(values.into_iter().map(Option::unwrap).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn paths_find_what_is_there(
        document in document(),
        paths in proptest::collection::vec(path(), 1..6),
        pretty in any::<bool>(),
    ) {
        let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) }.unwrap();
        let values = read(&paths, &text).unwrap();
        let blob = Json::new(text.as_str()).to_blob().unwrap();
        for (path, value) in paths.iter().zip(&values) {
            prop_assert_eq!(found(value), expected(&document, path.steps()), "{} in {}", path, &text);
            prop_assert_eq!(&reader(std::slice::from_ref(path)).read_one(&[], &blob).unwrap(), value);
        }
    }

    /// With a missing field, the whole document is read and checked.
    #[test]
    fn what_another_parser_refuses_is_refused(
        document in document(),
        at in any::<prop::sample::Index>(),
        change in prop_oneof![Just(None), any::<char>().prop_map(Some), "[\\[\\]{}\",:0-9eE+.tn\\\\ -]".prop_map(|text| text.chars().next())],
    ) {
        let text = serde_json::to_string(&document).unwrap();
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        match change {
            Some(changed) => *chars.get_mut(at).unwrap() = changed,
            None => { chars.remove(at); }
        }
        let text: String = chars.into_iter().collect();
        let read = read(&[Path::field("not there")], &text);
        // Only the first document, because the text after it is not read.
        let mut parser = serde_json::Deserializer::from_str(&text).into_iter::<Document>();
        match parser.next() {
            Some(Ok(_)) => prop_assert_eq!(read, Ok(vec![Value::Null]), "{}", &text),
            // The other parser rejects numbers beyond the range of doubles.
            Some(Err(error)) if error.to_string().contains("out of range") => {}
            // The other parser requires a separator after a number or a word; this crate does not.
            Some(Err(error)) if error.to_string().contains("trailing characters") => {}
            Some(Err(_)) if text.trim_start().starts_with(|first: char| first.is_ascii_digit() || first == '-') => {}
            Some(Err(error)) if error.to_string().contains("surrogate") => {}
            Some(Err(error)) => prop_assert!(read.is_err(), "{}: {}", &text, error),
            None => prop_assert!(read.is_err()),
        }
    }
}
