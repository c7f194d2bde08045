//! Values as blobs, as texts, as values of other types, and their order.

use std::cmp::Ordering;
use std::fmt::Debug;

use crate::common::{array, date, decimal, golden, text, time, timestamp, timestamp_tz};
use bigdecimal::{BigDecimal, num_bigint::BigInt};
use chrono::{FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};
use filbert_data::{Blob, FieldType, FromBlob, ToBlob, TypeId, Value};
use uuid::Uuid;

#[test]
fn decimals_dates_and_times_are_written_and_read_as_stock_clients_do() {
    fn same<T: ToBlob + FromBlob + PartialEq + Debug>(name: &str, value: T) {
        let blob = golden(name);
        assert_eq!(value.to_blob().unwrap(), blob, "{name} as written");
        assert_eq!(T::from_blob(&blob).unwrap(), value, "{name} as read");
    }
    let number = |text: &str| text.parse::<BigDecimal>().unwrap();
    same("decimal_pi", number("3.14159"));
    same("decimal_negative", number("-123456789012345678901234567890.123"));
    same("decimal_tiny", number("1E-30"));
    same("decimal_huge", BigDecimal::new(1.into(), -30));
    same("decimal_zero", number("0"));
    same("decimal_scaled_zero", BigDecimal::new(0.into(), 2));
    same("big_zero", BigInt::from(0));
    same("big_minus_one", BigInt::from(-1));
    same("big_128", BigInt::from(128));
    same("big_minus_128", BigInt::from(-128));
    same("big_large", -(BigInt::from(1) << 100u8));
    same("date", date());
    same("date_early", NaiveDate::from_ymd_opt(1, 1, 1).unwrap());
    same("time", time());
    same("time_midnight", NaiveTime::MIN);
    same("moment", timestamp_tz());
    let before = NaiveDate::from_ymd_opt(1969, 12, 31).unwrap().and_hms_opt(23, 59, 59).unwrap();
    same("moment_utc", before.and_utc().fixed_offset());
}

#[test]
fn a_blob_is_the_value_that_it_was_made_of() {
    for value in [
        Value::Null,
        Value::Boolean(true),
        Value::Int8(-8),
        Value::Int16(-16),
        Value::Int32(-32),
        Value::Int64(i64::MIN),
        Value::Float32(1.5),
        Value::Float64(-2.5),
        decimal("-1.10"),
        text("Grüße"),
        text(""),
        Value::Date(date()),
        Value::Time(time()),
        Value::Timestamp(timestamp()),
        Value::TimestampTz(timestamp_tz()),
        Value::Uuid(Uuid::from_u128(7)),
        Value::Json("{\"a\": 1}".into()),
        array([]),
        array([Value::Int32(1), Value::Null, array([text("a"), array([])])]),
    ] {
        let blob = value.to_blob().unwrap();
        assert_eq!(Value::from_blob(&blob).unwrap(), value);
    }
}

#[test]
fn stock_clients_lists_and_arrays_are_read_item_by_item() {
    let list = array([
        Value::Int32(1),
        text("a"),
        Value::Null,
        Value::Float64(2.5),
        Value::Boolean(true),
        decimal("1.10"),
        Value::Date(date()),
        Value::Uuid(Uuid::from_u128(1)),
        Value::Json("{\"a\": 1}".into()),
        array([Value::Int32(1), array([Value::Int32(2)])]),
    ]);
    assert_eq!(Value::from_blob(&golden("list_mixed")).unwrap(), list);
    assert_eq!(list.to_blob().unwrap(), golden("list_mixed"));

    fn check(blob: impl ToBlob, expect: Value<'static>) {
        assert_eq!(Value::from_blob(&blob.to_blob().unwrap()).unwrap(), expect);
    }
    check(vec![1u8, 255], array([Value::Int8(1), Value::Int8(-1)]));
    check(vec![true, false], array([Value::Boolean(true), Value::Boolean(false)]));
    check(vec!['a', '€'], array([text("a"), text("€")]));
    check(vec![-1i16], array([Value::Int16(-1)]));
    check(vec![1i32, 2], array([Value::Int32(1), Value::Int32(2)]));
    check(vec![1i64], array([Value::Int64(1)]));
    check(vec![1f32], array([Value::Float32(1.0)]));
    check(vec![1f64], array([Value::Float64(1.0)]));
    check(vec![Some("a".to_owned()), None], array([text("a"), Value::Null]));
    check('€', text("€"));
    check(BigInt::from(300), decimal("300"));
}

#[test]
fn what_has_fields_stays_the_blob_that_it_is() {
    let portable = golden("portable.all");
    let read = Value::from_blob(&portable).unwrap();
    assert!(matches!(&read, Value::Object(blob) if **blob == *portable));
    assert_eq!(read.to_blob().unwrap(), portable);

    // A list with items of unknown length is an object as a whole.
    let mut pickles = vec![0, 0, 0, 0];
    pickles.extend(TypeId::ARRAY_LIST.0.to_be_bytes());
    pickles.extend(1i32.to_be_bytes());
    pickles.extend(TypeId::JAVA_SERIALIZABLE.0.to_be_bytes());
    pickles.extend(b"whatever");
    let read = Value::from_blob(&pickles).unwrap();
    assert!(matches!(&read, Value::Object(blob) if **blob == *pickles));

    // The positions of a Portable count from the start of the enclosing blob. They are adjusted on
    // writing and on reading.
    let list = array([Value::Int32(1), array([portable.clone().into()]), portable.into()]);
    let blob = list.to_blob().unwrap();
    assert_eq!(Value::from_blob(&blob).unwrap(), list);
    let mut out = vec![9; 5];
    list.write_blob(&mut out).unwrap();
    assert_eq!(out[5..], *blob);
}

#[test]
fn broken_blobs_are_errors_and_cost_no_memory() {
    for broken in [
        "00000000fffffff9000000",
        "00000000ffffffcd000007e80d1d",
        "00000000ffffffcc180000000000 00",
        "00000000ffffffca000007e8021d0c22382f072f407fffffff",
        "00000000ffffffe37fffffff",
        "00000000ffffffee7fffffff",
        "00000000ffffffe57fffffff00",
        "00000000fffffff500000001ff",
        "0000",
    ] {
        let hex = broken.replace(' ', "");
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        assert!(Value::from_blob(&bytes).is_err(), "{broken}");
    }
    // A list with a nesting depth of a thousand.
    let mut deep = vec![0, 0, 0, 0];
    for _ in 0..1000 {
        deep.extend(TypeId::ARRAY_LIST.0.to_be_bytes());
        deep.extend(1i32.to_be_bytes());
    }
    deep.extend([0; 4]);
    assert!(matches!(Value::from_blob(&deep), Ok(Value::Object(_))));
}

#[test]
fn texts_of_values_are_those_of_a_cast() {
    fn check(value: Value<'_>, expect: &str) {
        assert_eq!(value.to_string(), expect);
    }
    check(Value::Boolean(true), "true");
    check(Value::Int8(-8), "-8");
    check(Value::Int64(i64::MIN), "-9223372036854775808");
    for (number, expect) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1.25e-7, "-1.25E-7"),
        (1e300, "1.0E300"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        check(Value::Float64(number), expect);
    }
    check(Value::Float32(0.1), "0.1");
    check(Value::Float32(1.5e10), "1.5E10");
    for (digits, scale, expect) in [
        (0, 0, "0"),
        (0, 2, "0.00"),
        (123, 0, "123"),
        (-123, 1, "-12.3"),
        (123, 5, "0.00123"),
        (123, 8, "0.00000123"),
        (123, 9, "1.23E-7"),
        (1, -3, "1E+3"),
        (-12, -3, "-1.2E+4"),
        (1, 2_000_000_000, "1E-2000000000"),
    ] {
        check(Value::Decimal(BigDecimal::new(digits.into(), scale)), expect);
    }
    check(Value::Date(date()), "2024-02-29");
    check(Value::Time(time()), "12:34:56.789");
    check(Value::Timestamp(timestamp()), "2024-02-29T12:34:56.789");
    check(Value::TimestampTz(timestamp_tz()), "2024-02-29T12:34:56.789-05:30");
    check(Value::TimestampTz(timestamp().and_utc().fixed_offset()), "2024-02-29T12:34:56.789Z");
    check(array([Value::Int32(1), text("a"), Value::Null]), "[1, a, null]");
    check(Value::Object(golden("compact.person").as_bytes().into()), "a Compact (-55)");
}

#[test]
fn an_offset_with_seconds_keeps_them_in_a_text() {
    let offset = FixedOffset::east_opt(-(19 * 3600 + 35 * 60 + 5)).unwrap();
    let value = Value::TimestampTz(timestamp().and_utc().with_timezone(&offset));
    let written = value.clone().convert(&FieldType::Varchar).unwrap();
    assert!(written.to_string().ends_with("-19:35:05"), "{written}");
    assert_eq!(written.convert(&FieldType::TimestampTz).unwrap(), value);
    text("2024-12-31T23:59:59+01:02:60:").convert(&FieldType::TimestampTz).unwrap_err();
}

#[test]
fn a_value_converts_to_every_type_that_has_the_same_value() {
    fn check(value: Value<'_>, to: FieldType, expect: Value<'_>) {
        let shown = format!("{value:?} to {to}");
        let found = value.convert(&to).unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert_eq!(found, expect, "{shown}");
        assert_eq!(found.type_name(), expect.type_name());
    }
    use FieldType::*;
    for to in [Boolean, TinyInt, Varchar, Date, Json, Object] {
        check(Value::Null, to, Value::Null);
    }
    check(Value::Int32(5), TinyInt, Value::Int8(5));
    check(Value::Int64(-32_768), SmallInt, Value::Int16(i16::MIN));
    check(Value::Int8(5), BigInt, Value::Int64(5));
    check(Value::Float64(5.0), Integer, Value::Int32(5));
    check(Value::Float64(-9_223_372_036_854_775_808.0), BigInt, Value::Int64(i64::MIN));
    check(decimal("5.00"), TinyInt, Value::Int8(5));
    check(decimal("9223372036854775807"), BigInt, Value::Int64(i64::MAX));
    check(text(" 42 "), Integer, Value::Int32(42));
    check(Value::Int64(1 << 60), Double, Value::Float64((1i64 << 60) as f64));
    check(Value::Float64(0.1), Real, Value::Float32(0.1));
    check(Value::Float32(0.5), Double, Value::Float64(0.5));
    check(decimal("1.5"), Double, Value::Float64(1.5));
    check(text("1e3"), Double, Value::Float64(1000.0));
    check(Value::Float64(0.1), Decimal(None), decimal("0.1"));
    check(Value::Int8(1), Decimal(None), decimal("1"));
    check(text("-1.50"), Decimal(None), decimal("-1.50"));
    check(decimal("1.005"), Decimal(Some((10, 2))), decimal("1.01"));
    check(Value::Decimal(BigDecimal::new(1.into(), 2_000_000_000)), Decimal(Some((10, 2))), decimal("0.00"));
    check(Value::Int32(12), Decimal(Some((4, 2))), decimal("12.00"));
    check(text("TRUE"), Boolean, Value::Boolean(true));
    check(Value::Int32(-7), Varchar, text("-7"));
    check(Value::Json("[1]".into()), Varchar, text("[1]"));
    check(text("[1]"), Json, Value::Json("[1]".into()));
    check(text("€"), Char, text("€"));
    check(text("2024-02-29"), Date, Value::Date(date()));
    check(Value::Timestamp(date().and_time(NaiveTime::MIN)), Date, Value::Date(date()));
    check(text("12:34:56.789"), Time, Value::Time(time()));
    check(text("12:34"), Time, Value::Time(NaiveTime::from_hms_opt(12, 34, 0).unwrap()));
    check(text("2024-02-29T12:34:56.789"), Timestamp, Value::Timestamp(timestamp()));
    check(text("2024-02-29 12:34:56.789"), Timestamp, Value::Timestamp(timestamp()));
    check(Value::Date(date()), Timestamp, Value::Timestamp(date().and_time(NaiveTime::MIN)));
    check(text("2024-02-29"), Timestamp, Value::Timestamp(date().and_time(NaiveTime::MIN)));
    check(text("2024-02-29T12:34:56.789-05:30"), TimestampTz, Value::TimestampTz(timestamp_tz()));
    check(text("2024-02-29 12:34:56.789-05:30"), TimestampTz, Value::TimestampTz(timestamp_tz()));
    let utc = timestamp().and_utc().fixed_offset();
    check(text("2024-02-29T12:34:56.789"), TimestampTz, Value::TimestampTz(utc));
    check(Value::Timestamp(timestamp()), TimestampTz, Value::TimestampTz(utc));
    check(Value::TimestampTz(utc), Timestamp, Value::Timestamp(timestamp()));
    let uuid = ::uuid::Uuid::from_u128(7);
    check(text("00000000-0000-0000-0000-000000000007"), FieldType::Uuid, Value::Uuid(uuid));
    check(Value::Uuid(uuid), Varchar, text("00000000-0000-0000-0000-000000000007"));
    check(array([Value::Int32(1), Value::Null]), Array(BigInt.into()), array([Value::Int64(1), Value::Null]));
    check(array([Value::Int32(1)]), Object, array([Value::Int32(1)]));
}

#[test]
fn a_value_that_another_type_has_no_place_for_is_an_error_that_says_so() {
    fn check(value: Value<'_>, to: FieldType, expect: &str) {
        assert_eq!(value.convert(&to).unwrap_err().to_string(), expect);
    }
    use FieldType::*;
    let tiny = "a whole number of -128 to 127 is expected";
    check(Value::Int32(300), TinyInt, &format!("the INTEGER 300 cannot be a TINYINT; {tiny}"));
    check(Value::Float64(1.5), TinyInt, &format!("the DOUBLE 1.5 cannot be a TINYINT; {tiny}"));
    check(text("x"), TinyInt, &format!("the VARCHAR \"x\" cannot be a TINYINT; {tiny}"));
    check(Value::Boolean(true), TinyInt, &format!("the BOOLEAN true cannot be a TINYINT; {tiny}"));
    let long = "a whole number of 64 bits is expected";
    check(
        Value::Float64(2f64.powi(63)),
        BigInt,
        &format!("the DOUBLE 9.223372036854776E18 cannot be a BIGINT; {long}"),
    );
    check(Value::Float64(f64::NAN), BigInt, &format!("the DOUBLE NaN cannot be a BIGINT; {long}"));
    let huge = Value::Decimal(BigDecimal::new(1.into(), -2_000_000_000));
    check(huge.clone(), BigInt, &format!("the DECIMAL 1E+2000000000 cannot be a BIGINT; {long}"));
    check(
        huge.clone(),
        Double,
        "the DECIMAL 1E+2000000000 cannot be a DOUBLE; a number within the range of DOUBLE is expected",
    );
    check(
        huge,
        Decimal(Some((38, 2))),
        "the DECIMAL 1E+2000000000 cannot be a DECIMAL(38, 2); a number with fewer digits is expected",
    );
    check(
        Value::Int32(123),
        Decimal(Some((4, 2))),
        "the INTEGER 123 cannot be a DECIMAL(4, 2); a number with fewer digits is expected",
    );
    check(
        Value::Float64(1e39),
        Real,
        "the DOUBLE 1.0E39 cannot be a REAL; a number within the range of REAL is expected",
    );
    check(Value::Float64(f64::NAN), Decimal(None), "the DOUBLE NaN cannot be a DECIMAL; a finite number is expected");
    check(
        text("2024-02-30"),
        Date,
        "the VARCHAR \"2024-02-30\" cannot be a DATE; a date such as 2024-12-31 is expected",
    );
    check(text("ab"), Char, "the VARCHAR \"ab\" cannot be a CHAR; one character is expected");
    check(Value::Int32(1), Json, "the INTEGER 1 cannot be a JSON; a JSON document or its text is expected");
    check(Value::Int32(1), Array(Integer.into()), "the INTEGER 1 cannot be a INTEGER[]; an array is expected");
    let shown = text(&"x".repeat(100)).convert(&Boolean).unwrap_err().to_string();
    assert!(shown.len() < 150 && shown.contains("xxx..."), "{shown}");
}

/// Checks the order of values and of their index keys: each group of equal values is less than the
/// next group.
fn check_order(groups: Vec<Vec<Value<'_>>>) {
    let key = |value: &Value<'_>| {
        let mut key = Vec::new();
        value.append_index_key(&mut key);
        key
    };
    let all: Vec<_> =
        groups.iter().enumerate().flat_map(|(at, group)| group.iter().map(move |value| (at, value))).collect();
    for (at, a) in &all {
        for (other, b) in &all {
            assert_eq!(a.compare(b), Some(at.cmp(other)), "{a:?} with {b:?}");
            assert_eq!(key(a).cmp(&key(b)), at.cmp(other), "keys of {a:?} and {b:?}");
        }
    }
}

#[test]
fn numbers_of_all_types_have_one_order() {
    use Value::{Float32, Float64, Int8, Int16, Int32, Int64};
    check_order(vec![
        vec![Float64(f64::NEG_INFINITY), Float32(f32::NEG_INFINITY)],
        vec![decimal("-1e400")],
        vec![Float64(f64::MIN)],
        vec![Int64(i64::MIN), Float64(-9_223_372_036_854_775_808.0), decimal("-9223372036854775808")],
        vec![Int64(i64::MIN + 1), decimal("-9223372036854775807.0")],
        vec![Int8(-1), Int16(-1), Int32(-1), Int64(-1), Float32(-1.0), Float64(-1.0), decimal("-1.000")],
        vec![Float64(-0.1)],
        // The double is a little more than a tenth.
        vec![decimal("-0.1")],
        vec![Value::Decimal(BigDecimal::new((-1).into(), 2_000_000_000))],
        // Keys distinguish tiny numbers from 0, but not from each other.
        vec![Int8(0), Float64(0.0), Float64(-0.0), Float32(-0.0), decimal("0.00")],
        vec![Value::Decimal(BigDecimal::new(1.into(), 2_000_000_000))],
        vec![Float64(f64::MIN_POSITIVE)],
        vec![decimal("0.1")],
        vec![Float64(0.1)],
        vec![Float32(0.1)],
        vec![Int64((1 << 53) - 1), Float64(9_007_199_254_740_991.0)],
        vec![Int64(1 << 53), Float64(9_007_199_254_740_992.0)],
        vec![Int64((1 << 53) + 1), decimal("9007199254740993")],
        vec![Int64((1 << 53) + 2)],
        vec![Int64(i64::MAX - 1)],
        vec![Int64(i64::MAX), decimal("9223372036854775807")],
        vec![Float64(9_223_372_036_854_775_808.0), decimal("9223372036854775808")],
        vec![decimal("9223372036854775809")],
        vec![Float64(f64::MAX)],
        vec![decimal("1e400")],
        vec![Float64(f64::INFINITY)],
        vec![Float64(f64::NAN), Float32(f32::NAN), Float64(-f64::NAN)],
    ]);
    let tiny = |scale| Value::Decimal(BigDecimal::new(1.into(), scale));
    assert_eq!(tiny(2_000_000_000).compare(&tiny(2_000_000_001)), Some(Ordering::Greater));
}

#[test]
fn other_values_have_the_order_of_their_type() {
    check_order(vec![vec![Value::Boolean(false)], vec![Value::Boolean(true)]]);
    check_order(
        ["", "\0", "\0\0", "\0a", "\u{1}", "a", "a\0", "a\0b", "aa", "b", "ä", "€", "🌰"]
            .map(|of| vec![text(of)])
            .to_vec(),
    );
    let day = |year, month, day| NaiveDate::from_ymd_opt(year, month, day).unwrap();
    let days = [day(-1, 1, 1), day(1, 1, 1), day(1969, 12, 31), day(1970, 1, 1), day(2024, 2, 29)];
    check_order(days.map(|day| vec![Value::Date(day)]).to_vec());
    let timestamp_at =
        |day: NaiveDate, nanosecond| -> NaiveDateTime { day.and_hms_nano_opt(1, 2, 3, nanosecond).unwrap() };
    let timestamps = days.into_iter().flat_map(|day| [timestamp_at(day, 0), timestamp_at(day, 999_999_999)]);
    check_order(timestamps.clone().map(|timestamp| vec![Value::Timestamp(timestamp)]).collect());
    let in_zones = timestamps.map(|timestamp| {
        let zones = [-3600, 0, 7200].map(|seconds| FixedOffset::east_opt(seconds).unwrap());
        zones.map(|zone| Value::TimestampTz(timestamp.and_utc().with_timezone(&zone))).to_vec()
    });
    check_order(in_zones.collect());
    check_order(
        [NaiveTime::MIN, time(), NaiveTime::from_hms_opt(23, 59, 59).unwrap()].map(|of| vec![Value::Time(of)]).to_vec(),
    );
    check_order([0, 1, u128::MAX].map(|of| vec![Value::Uuid(Uuid::from_u128(of))]).to_vec());
    check_order(vec![
        vec![array([])],
        vec![array([Value::Int32(1)]), array([Value::Int64(1)])],
        vec![array([Value::Int32(1), Value::Int32(0)])],
        vec![array([Value::Int32(2)])],
    ]);
}

#[test]
fn nulls_and_values_of_different_kinds_do_not_compare() {
    let kinds = [
        Value::Null,
        Value::Boolean(true),
        Value::Int32(1),
        text("1"),
        Value::Date(date()),
        Value::Time(time()),
        Value::Timestamp(timestamp()),
        Value::TimestampTz(timestamp_tz()),
        Value::Uuid(Uuid::nil()),
        Value::Json("1".into()),
        array([Value::Int32(1)]),
        golden("compact.person").into(),
    ];
    let keys = kinds.each_ref().map(|value| {
        let mut key = Vec::new();
        value.append_index_key(&mut key);
        key
    });
    assert!(keys.is_sorted());
    for (at, a) in kinds.iter().enumerate() {
        for (other, b) in kinds.iter().enumerate() {
            let expect = (at == other && !a.is_null()).then_some(Ordering::Equal);
            assert_eq!(a.compare(b), expect, "{a:?} with {b:?}");
            assert_eq!(a.equals(b), expect.is_some());
        }
    }
    assert_eq!(array([Value::Null]).compare(&array([Value::Null])), None);
    let hashed = |hash: u8| Value::Object(vec![hash, 0, 0, 0, 0, 0, 0, 9, 1].into());
    assert!(hashed(1).equals(&hashed(2)));
    assert_eq!(Value::from(Blob::from(vec![1u8])), Value::Object(vec![1u8].into()));
}
