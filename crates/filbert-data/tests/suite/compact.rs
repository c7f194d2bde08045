//! Compact objects as a stock client writes them: fields of every kind with every way of reading,
//! versions, broken bytes.

use std::sync::Arc;

use crate::common::*;
use filbert_data::compact::{FieldKind, Reader, read_fields};
use filbert_data::{BLOB_HEADER_BYTES, Blob, DataError, Path, Value};

/// The value that a path finds in a blob. A reader must find the same, the first time and the
/// second time.
fn find(blob: &Blob, path: &str) -> Result<Value<'static>, DataError> {
    let payload = &blob[BLOB_HEADER_BYTES..];
    let path = Path::parse(path).unwrap();
    let schemas = Arc::new(schemas());
    let mut plain = Vec::new();
    let result = read_fields(payload, &*schemas, &[(7, &path)], &mut |at, value| plain.push((at, value.into_owned())));
    let reader = Reader::new(vec![(7, path)], schemas);
    for _ in 0..2 {
        let mut visited = Vec::new();
        let repeated = reader.read(payload, &mut |at, value| visited.push((at, value.into_owned())));
        assert_eq!((repeated, visited), (result.clone(), plain.clone()));
        assert_eq!(reader.read_first(payload).map(Value::into_owned), result.clone().map(|()| plain[0].1.clone()));
    }
    result.map(|()| plain.remove(0).1)
}

fn check(name: &str, cases: &[(&str, Value<'static>)]) {
    let blob = golden(name);
    for (path, expect) in cases {
        assert_eq!(find(&blob, path).as_ref(), Ok(expect), "{path} of {name}");
    }
}

#[test]
fn fields_of_every_kind_are_read() {
    check(
        "compact.all",
        &[
            ("b0", Value::Boolean(true)),
            ("b1", Value::Boolean(false)),
            ("b2", Value::Boolean(true)),
            ("i8", Value::Int8(-8)),
            ("i16", Value::Int16(-1600)),
            ("i32", Value::Int32(-320_000)),
            ("i64", Value::Int64(-640_000_000_000)),
            ("f32", Value::Float32(1.5)),
            ("f64", Value::Float64(-2.25)),
            ("str", text("Grüße")),
            ("dec", decimal("-123456789012345678901234567890.123")),
            ("time", Value::Time(time())),
            ("date", Value::Date(date())),
            ("ts", Value::Timestamp(timestamp())),
            ("tz", Value::TimestampTz(timestamp_tz())),
            ("nb", Value::Boolean(true)),
            ("n8", Value::Int8(8)),
            ("n16", Value::Int16(1600)),
            ("n32", Value::Null),
            ("n64", Value::Int64(64)),
            ("nf32", Value::Float32(0.5)),
            ("nf64", Value::Null),
            ("nothing", Value::Null),
            ("noarray", Value::Null),
        ],
    );
}

#[test]
fn arrays_of_every_kind_are_read() {
    let bits = [true, false, true, true, false, false, false, false, true].map(Value::Boolean);
    check(
        "compact.all",
        &[
            ("ab", array(bits)),
            ("a8", array([Value::Int8(-1), Value::Int8(2)])),
            ("a16", array([Value::Int16(-1), Value::Int16(2)])),
            ("a32", array([1, -2, 3].map(Value::Int32))),
            ("a64", array([Value::Int64(4), Value::Int64(-5)])),
            ("af32", array([Value::Float32(1.0), Value::Float32(-0.5)])),
            ("af64", array([Value::Float64(2.0)])),
            ("astr", array([text("a"), Value::Null, text("ccc")])),
            ("adec", array([decimal("1.10"), Value::Null])),
            ("atime", array([Value::Time(time())])),
            ("adate", array([Value::Null, Value::Date(date())])),
            ("ats", array([Value::Timestamp(timestamp())])),
            ("atz", array([Value::TimestampTz(timestamp_tz()), Value::Null])),
            ("anb", array([Value::Boolean(true), Value::Null, Value::Boolean(false)])),
            ("an8", array([Value::Null, Value::Int8(7)])),
            ("an16", array([Value::Int16(6), Value::Null])),
            ("an32", array([Value::Int32(5), Value::Null, Value::Int32(-5)])),
            ("an64", array([Value::Null])),
            ("anf32", array([Value::Float32(1.0), Value::Null])),
            ("anf64", array([])),
        ],
    );
}

#[test]
fn a_path_goes_into_objects_and_arrays() {
    check(
        "compact.all",
        &[
            ("inner.city", text("Bonn")),
            ("inner.zip", Value::Int32(53_111)),
            ("inner.nowhere", Value::Null),
            ("inner.city.deeper", Value::Null),
            ("inner[0]", Value::Null),
            ("b0.deeper", Value::Null),
            ("a32[1]", Value::Int32(-2)),
            ("a32[3]", Value::Null),
            ("a32[1].deeper", Value::Null),
            ("a32.deeper", Value::Null),
            ("a32[any]", array([1, -2, 3].map(Value::Int32))),
            ("ab[8]", Value::Boolean(true)),
            ("ab[9]", Value::Null),
            ("astr[2]", text("ccc")),
            ("astr[1]", Value::Null),
            ("noarray[any]", Value::Null),
            ("acom[0].city", text("Ulm")),
            ("acom[1].city", Value::Null),
            ("acom[2].zip", Value::Int32(3)),
            ("acom[any].city", array([text("Ulm"), Value::Null, Value::Null])),
            ("acom[any].zip", array([Value::Int32(1), Value::Null, Value::Int32(3)])),
        ],
    );
    check("compact.person", &[("address.city", text("London")), ("member", Value::Boolean(true))]);
    check("compact.big", &[("b", Value::Null), ("c[2]", text("z")), ("c[0]", text(&"y".repeat(400)))]);
    check("compact.fixed", &[("age", Value::Int32(1)), ("id", Value::Int64(2)), ("x", Value::Boolean(true))]);
}

#[test]
fn a_nested_object_is_a_blob_of_its_own() {
    let all = golden("compact.all");
    for path in ["inner", "acom[0]"] {
        let Value::Object(object) = find(&all, path).unwrap() else { panic!("{path} is an object") };
        let object = Blob::from(object.into_owned());
        assert_eq!(find(&object, "this").unwrap(), Value::Object(object.to_vec().into()));
        let city = if path == "inner" { "Bonn" } else { "Ulm" };
        assert_eq!(find(&object, "city").unwrap(), text(city));
    }
    let Value::Array(items) = find(&all, "acom").unwrap() else { panic!("an array") };
    assert_eq!(items.iter().map(Value::is_null).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn versions_of_a_type_are_read_side_by_side() {
    let reader = Reader::new(
        ["name", "age", "email", "address.city"].iter().map(|path| Path::parse(path).unwrap()).enumerate().collect(),
        Arc::new(schemas()),
    );
    let ada = [text("Ada"), Value::Int32(36), Value::Null, text("London")];
    let bob = [text("Bob"), Value::Int64(37), text("bob@x"), Value::Null];
    for _ in 0..3 {
        for (name, expect) in [("compact.person", &ada), ("compact.person2", &bob)] {
            let blob = golden(name);
            let mut row = vec![Value::Null; 4];
            reader.read(&blob[BLOB_HEADER_BYTES..], &mut |at, value| row[at] = value.into_owned()).unwrap();
            assert_eq!(row, expect);
        }
    }
}

#[test]
fn more_schemas_than_are_remembered_are_read_all_the_same() {
    let versions: Vec<_> = (0..40)
        .map(|version| schema("t", &[("a", FieldKind::Int32), (&format!("f{version}"), FieldKind::Int64)]))
        .collect();
    let reader = Reader::new(vec![(0, Path::field("a"))], Arc::new(Schemas::of(&versions)));
    for _ in 0..2 {
        for (number, version) in (0i32..).zip(&versions) {
            // The eight bytes of the wider field come first.
            let mut payload = version.fingerprint().0.to_be_bytes().to_vec();
            payload.extend([0; 8]);
            payload.extend(number.to_be_bytes());
            assert_eq!(reader.read_first(&payload).unwrap(), Value::Int32(number));
        }
    }
}

#[test]
fn an_unknown_schema_is_an_error_that_names_it() {
    let mut blob = golden("compact.person").into_vec();
    blob[15] ^= 1;
    let error = find(&Blob::from(blob), "name").unwrap_err().to_string();
    assert!(error.starts_with("the Compact schema 4951") && error.contains("is not known"), "{error}");
}

#[test]
fn an_object_that_is_cut_off_is_an_error_or_reads_as_before() {
    for name in ["compact.all", "compact.person", "compact.fixed", "compact.big"] {
        let whole = golden(name);
        for length in BLOB_HEADER_BYTES..whole.len() {
            let cut = Blob::from(&whole[..length]);
            for path in ["name", "age", "inner.city", "acom[any].city", "astr", "c", "x", "adec[0]"] {
                assert!(!matches!(find(&cut, path), Ok(found) if found != find(&whole, path).unwrap()), "{path}");
            }
        }
    }
}
