//! Random predicates are written and read back. Random changes of their bytes and texts must never
//! cause a panic.

use chrono::{FixedOffset, NaiveDate, NaiveTime, TimeZone};
use filbert_data::criteria::{Aggregator, PagingPredicate, Predicate, Projection};
use filbert_data::{Blob, ToBlob, Value};
use proptest::prelude::*;
use uuid::Uuid;

fn scalar() -> impl Strategy<Value = Value<'static>> {
    let date = (-100_000i32..100_000, 1u32..366).prop_filter_map("a day", |(y, d)| NaiveDate::from_yo_opt(y, d));
    let time = (0u32..86_400, 0u32..1_000_000_000)
        .prop_filter_map("a time", |(second, nano)| NaiveTime::from_num_seconds_from_midnight_opt(second, nano));
    let timestamp = (date.clone(), time.clone()).prop_map(|(date, time)| date.and_time(time));
    let timestamp_tz = (timestamp.clone(), -64_800i32..64_800).prop_filter_map("a moment", |(local, offset)| {
        FixedOffset::east_opt(offset)?.from_local_datetime(&local).single()
    });
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any::<i8>().prop_map(Value::Int8),
        any::<i16>().prop_map(Value::Int16),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        (-1e30f32..1e30).prop_map(Value::Float32),
        (-1e300..1e300).prop_map(Value::Float64),
        (any::<i128>(), -40i64..40).prop_map(|(unscaled, scale)| Value::Decimal(bigdecimal(unscaled, scale))),
        ".{0,9}".prop_map(|text| Value::Text(text.into())),
        ".{0,9}".prop_map(|text| Value::Json(text.into())),
        date.prop_map(Value::Date),
        time.prop_map(Value::Time),
        timestamp.prop_map(Value::Timestamp),
        timestamp_tz.prop_map(Value::TimestampTz),
        any::<u128>().prop_map(|bits| Value::Uuid(Uuid::from_u128(bits))),
    ]
}

fn bigdecimal(unscaled: i128, scale: i64) -> bigdecimal::BigDecimal {
    bigdecimal::BigDecimal::new(unscaled.into(), scale)
}

fn value() -> impl Strategy<Value = Value<'static>> {
    scalar().prop_recursive(3, 12, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::Array))
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let path = || "[a-z_.\\[\\]]{1,9}";
    let pattern = || prop::option::of(".{0,9}");
    let leaf = prop_oneof![
        Just(Predicate::True),
        Just(Predicate::False),
        ".{0,20}".prop_map(Predicate::Sql),
        (path(), value()).prop_map(|(path, value)| Predicate::Equal(path, value)),
        (path(), value()).prop_map(|(path, value)| Predicate::NotEqual(path, value)),
        (path(), value(), any::<bool>(), any::<bool>())
            .prop_map(|(attribute, value, equal, less)| Predicate::Compare { attribute, value, equal, less }),
        (path(), value(), value()).prop_map(|(attribute, from, to)| Predicate::Between { attribute, from, to }),
        (path(), prop::collection::vec(value(), 0..5)).prop_map(|(path, values)| Predicate::In(path, values)),
        (path(), pattern(), any::<bool>()).prop_map(|(attribute, pattern, ignore_case)| Predicate::Like {
            attribute,
            pattern,
            ignore_case
        }),
        (path(), pattern()).prop_map(|(attribute, pattern)| Predicate::Regex { attribute, pattern }),
        path().prop_map(Predicate::InstanceOf),
    ];
    leaf.prop_recursive(6, 40, 4, |inner| {
        let key = any::<i64>().prop_map(|key| key.to_blob().unwrap());
        let keys = prop::collection::vec(".{0,5}".prop_map(|key| key.to_blob().unwrap()), 0..3);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Predicate::And),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Predicate::Or),
            inner.clone().prop_map(|inner| Predicate::Not(Box::new(inner))),
            (key, inner.clone()).prop_map(|(key, inner)| Predicate::Partition { key, predicate: Box::new(inner) }),
            (keys, inner).prop_map(|(keys, inner)| Predicate::Partitions { keys, predicate: Box::new(inner) }),
        ]
    })
}

fn read_as_anything(blob: &[u8]) {
    let _ = Predicate::from_blob(blob);
    let _ = PagingPredicate::from_blob(blob);
    let _ = Aggregator::from_blob(blob);
    let _ = Projection::from_blob(blob);
}

proptest! {
    #[test]
    fn predicates_come_back(predicate in predicate()) {
        let blob = predicate.to_blob().unwrap();
        prop_assert_eq!(Predicate::from_blob(&blob).unwrap(), predicate);
    }

    #[test]
    fn a_predicate_that_ends_too_early_is_an_error_or_another(predicate in predicate(), cut in any::<prop::sample::Index>()) {
        let blob = predicate.to_blob().unwrap();
        read_as_anything(&blob[..cut.index(blob.len())]);
    }

    #[test]
    fn changed_bytes_never_panic(
        predicate in predicate(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut blob: Vec<u8> = predicate.to_blob().unwrap().into();
        for (at, byte) in changes {
            let at = at.index(blob.len());
            blob[at] = byte;
        }
        read_as_anything(&blob);
    }

    #[test]
    fn random_bytes_behind_a_head_never_panic(
        factory in prop::sample::select(vec![-20i32, -29, -30]),
        class in 0i32..22,
        fields in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let head = [&[0, 0, 0, 0, 255, 255, 255, 254, 1], &factory.to_be_bytes()[..], &class.to_be_bytes()].concat();
        read_as_anything(&Blob::from([head, fields].concat()));
    }

    #[test]
    fn random_conditions_never_panic(condition in "([a-z%'()=<>!,. \u{e4}0-9-]|and|or|not| in | like ){0,40}") {
        let _ = Predicate::parse_sql(&condition);
    }
}
