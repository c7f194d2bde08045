//! Portable objects as a stock client writes them: fields of every kind with every way of reading,
//! versions, broken bytes.

use crate::common::*;
use filbert_data::portable::{Reader, cut_out, read_fields};
use filbert_data::{BLOB_HEADER_BYTES, Blob, DataError, Path, Value};

/// The value that a path finds in a blob. A reader must find the same, the first time and the
/// second time.
fn find(blob: &Blob, path: &str) -> Result<Value<'static>, DataError> {
    let payload = &blob[BLOB_HEADER_BYTES..];
    let path = Path::parse(path).unwrap();
    let mut plain = Vec::new();
    let result = read_fields(payload, &[(7, &path)], &mut |at, value| plain.push((at, value.into_owned())));
    let reader = Reader::new(vec![(7, path)]);
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
        "portable.all",
        &[
            ("b", Value::Boolean(true)),
            ("i8", Value::Int8(8)),
            ("ch", text("€")),
            ("i16", Value::Int16(-1600)),
            ("i32", Value::Int32(-320_000)),
            ("i64", Value::Int64(-640_000_000_000)),
            ("f32", Value::Float32(1.5)),
            ("f64", Value::Float64(-2.25)),
            ("str", text("Grüße")),
            ("nothing", Value::Null),
            ("dec", decimal("-123456789012345678901234567890.123")),
            ("nodec", Value::Null),
            ("time", Value::Time(time())),
            ("date", Value::Date(date())),
            ("ts", Value::Timestamp(timestamp())),
            ("tz", Value::TimestampTz(timestamp_tz())),
            ("nowhere", Value::Null),
        ],
    );
}

#[test]
fn arrays_of_every_kind_are_read() {
    check(
        "portable.all",
        &[
            ("ab", array([Value::Boolean(true), Value::Boolean(false)])),
            ("a8", array([Value::Int8(1), Value::Int8(2)])),
            ("ach", array([text("a"), text("€")])),
            ("a16", array([Value::Int16(-1), Value::Int16(2)])),
            ("a32", array([1, -2, 3].map(Value::Int32))),
            ("a64", array([Value::Int64(4), Value::Int64(-5)])),
            ("af32", array([Value::Float32(1.0), Value::Float32(-0.5)])),
            ("af64", array([Value::Float64(2.0)])),
            ("astr", array([text("a"), Value::Null, text("ccc")])),
            ("adec", array([decimal("1.10"), decimal("2")])),
            ("atime", array([Value::Time(time())])),
            ("adate", array([Value::Date(date())])),
            ("ats", array([Value::Timestamp(timestamp())])),
            ("atz", array([Value::TimestampTz(timestamp_tz()), Value::TimestampTz(timestamp_tz())])),
            ("noarray", Value::Null),
            ("nodecs", Value::Null),
            ("nodates", array([])),
        ],
    );
}

#[test]
fn a_path_goes_into_objects_and_arrays() {
    check(
        "portable.all",
        &[
            ("inner.city", text("Bonn")),
            ("inner.zip", Value::Int32(53_111)),
            ("inner.nowhere", Value::Null),
            ("inner.city.deeper", Value::Null),
            ("inner[0]", Value::Null),
            ("dec.deeper", Value::Null),
            ("a32[1]", Value::Int32(-2)),
            ("a32[3]", Value::Null),
            ("a32[1].deeper", Value::Null),
            ("a32.deeper", Value::Null),
            ("a32[any]", array([1, -2, 3].map(Value::Int32))),
            ("astr[2]", text("ccc")),
            ("astr[1]", Value::Null),
            ("adec[1]", decimal("2")),
            ("noarray[any]", Value::Null),
            ("ap[0].city", text("Ulm")),
            ("ap[1].zip", Value::Int32(3)),
            ("ap[2].zip", Value::Null),
            ("ap[any].city", array([text("Ulm"), Value::Null])),
            ("ap[any].zip", array([Value::Int32(1), Value::Int32(3)])),
        ],
    );
    let cities = array([text("Rom"), text("Bari"), text("Rom"), text("Bari")]);
    check(
        "portable.deep",
        &[
            ("mid.best.city", text("Rom")),
            ("mid.cities[1].city", text("Bari")),
            ("mids[1].cities[0].zip", Value::Int32(1)),
            ("mids[any].cities[any].city", cities),
            ("mids[any].sums[1]", array([decimal("-2"), decimal("-2")])),
        ],
    );
    check("portable.person_null", &[("address", Value::Null), ("address.city", Value::Null), ("name", text("Tim"))]);
    check("portable.empty", &[("name", Value::Null)]);
}

#[test]
fn a_nested_object_is_the_blob_that_a_client_would_write_for_it_alone() {
    for (name, path, expect) in [
        ("portable.all", "inner", "portable.city"),
        ("portable.deep", "mid", "portable.mid"),
        ("portable.deep", "mids[0]", "portable.mid"),
        ("portable.deep", "mids[1]", "portable.mid"),
        ("portable.all", "this", "portable.all"),
        ("portable.deep", "this", "portable.deep"),
        ("portable.empty", "this", "portable.empty"),
    ] {
        assert_eq!(find(&golden(name), path).unwrap(), Value::Object(golden(expect).to_vec().into()), "{path}");
    }
}

#[test]
fn an_item_of_a_list_is_cut_out() {
    let list = golden("portable.list");
    // After the list's length and the item's type id, and again after the first item.
    let payload = &list[BLOB_HEADER_BYTES..];
    let (ulm, bytes) = cut_out(payload, 8).unwrap();
    let (bonn, last) = cut_out(payload, 8 + bytes + 4).unwrap();
    assert_eq!(find(&ulm, "city").unwrap(), text("Ulm"));
    assert_eq!(find(&bonn, "zip").unwrap(), Value::Int32(2));
    assert_eq!(8 + bytes + 4 + last, payload.len());
}

#[test]
fn versions_of_a_class_are_read_side_by_side_and_classes_that_share_their_ids() {
    let paths = ["name", "age", "email", "address.city"];
    let reader = Reader::new(paths.iter().map(|path| Path::parse(path).unwrap()).enumerate().collect());
    let ada = [text("Ada"), Value::Int32(36), Value::Null, text("London")];
    let bob = [text("Bob"), Value::Int64(37), text("bob@x"), Value::Null];
    let eve = [text("Eve"), Value::Int16(38), text("eve@x"), Value::Null];
    let tim = [text("Tim"), Value::Int32(0), Value::Null, Value::Null];
    for _ in 0..3 {
        for (name, expect) in [
            ("portable.person", &ada),
            ("portable.person2", &bob),
            ("portable.person_other", &eve),
            ("portable.person_null", &tim),
        ] {
            let blob = golden(name);
            let mut row = vec![text("not visited"); 4];
            reader.read(&blob[BLOB_HEADER_BYTES..], &mut |at, value| row[at] = value.into_owned()).unwrap();
            assert_eq!(row, expect);
        }
    }
}

#[test]
fn an_object_that_is_cut_off_is_an_error() {
    for name in ["portable.all", "portable.person", "portable.deep", "portable.empty"] {
        let whole = golden(name);
        for length in BLOB_HEADER_BYTES..whole.len() {
            let cut = Blob::from(&whole[..length]);
            for path in ["this", "name", "age", "inner.city", "ap[any].city", "astr", "mids", "adec[0]"] {
                assert!(find(&cut, path).is_err(), "{path} of {name} up to {length}");
            }
        }
    }
}
