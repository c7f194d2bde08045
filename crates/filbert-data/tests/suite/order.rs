//! Index keys have the same order as their values, for all values.

use std::cmp::Ordering;

use bigdecimal::BigDecimal;
use filbert_data::Value;
use proptest::prelude::*;

/// Numbers close to each other, and numbers far from each other.
fn number() -> impl Strategy<Value = Value<'static>> {
    let near = prop_oneof![
        Just(0i64),
        Just(1 << 53),
        Just(-(1 << 53)),
        Just(1 << 60),
        Just(i64::MAX),
        Just(i64::MIN),
        any::<i64>()
    ];
    let close = (near, -3i64..4).prop_map(|(near, by)| near.saturating_add(by));
    prop_oneof![
        any::<i8>().prop_map(Value::Int8),
        any::<i32>().prop_map(Value::Int32),
        close.clone().prop_map(Value::Int64),
        close.clone().prop_map(|number| Value::Float64(number as f64)),
        close.clone().prop_map(|number| Value::Float32(number as f32)),
        (close.clone(), 0i64..4).prop_map(|(number, scale)| Value::Decimal(BigDecimal::new(number.into(), scale))),
        (close, any::<i64>(), 15i64..25).prop_map(|(number, fraction, scale)| {
            Value::Decimal(BigDecimal::from(number) + BigDecimal::new(fraction.into(), scale))
        }),
        any::<f64>().prop_map(Value::Float64),
        any::<f32>().prop_map(Value::Float32),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(|number| { Value::Decimal(BigDecimal::try_from(number).unwrap()) }),
        (any::<i64>(), -2_000_000_000i64..2_000_000_000)
            .prop_map(|(digits, scale)| Value::Decimal(BigDecimal::new(digits.into(), scale))),
        (any::<i64>(), -400i64..400).prop_map(|(digits, scale)| Value::Decimal(BigDecimal::new(digits.into(), scale))),
    ]
}

fn text() -> impl Strategy<Value = Value<'static>> {
    proptest::collection::vec(prop_oneof![Just('\0'), Just('a'), any::<char>()], 0..6)
        .prop_map(|chars| Value::Text(chars.into_iter().collect::<String>().into()))
}

fn array() -> impl Strategy<Value = Value<'static>> {
    let item = prop_oneof![(0i32..3).prop_map(Value::Int32), (0i64..3).prop_map(Value::Int64)];
    proptest::collection::vec(item, 0..4).prop_map(Value::Array)
}

fn key(values: &[&Value<'_>]) -> Vec<u8> {
    let mut key = Vec::new();
    for value in values {
        value.append_index_key(&mut key);
    }
    key
}

/// Whether the order of keys agrees with the order of values. Decimals that are nearly equal may
/// share a key.
fn agrees(values: Ordering, keys: Ordering, a: &Value<'_>, b: &Value<'_>) -> bool {
    let rounded = matches!(a, Value::Decimal(_)) || matches!(b, Value::Decimal(_));
    keys == values || rounded && keys == Ordering::Equal
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers(a in number(), b in number()) {
        let order = a.compare(&b).unwrap();
        prop_assert_eq!(b.compare(&a).unwrap(), order.reverse());
        prop_assert!(agrees(order, key(&[&a]).cmp(&key(&[&b])), &a, &b));
        prop_assert_eq!(a.compare(&a), Some(Ordering::Equal));
    }

    #[test]
    fn texts(a in text(), b in text()) {
        prop_assert_eq!(key(&[&a]).cmp(&key(&[&b])), a.compare(&b).unwrap());
    }

    #[test]
    fn arrays(a in array(), b in array()) {
        prop_assert_eq!(key(&[&a]).cmp(&key(&[&b])), a.compare(&b).unwrap());
    }

    #[test]
    fn two_values_after_each_other(a in text(), b in any::<i64>(), c in text(), d in any::<i64>()) {
        let (b, d) = (Value::Int64(b), Value::Int64(d));
        let order = a.compare(&c).unwrap().then(b.compare(&d).unwrap());
        prop_assert_eq!(key(&[&a, &b]).cmp(&key(&[&c, &d])), order);
    }

    #[test]
    fn doubles_and_integers_compare_as_their_digits_do(a in any::<i64>(), b in any::<f64>(), by in -2i32..3) {
        let near = f64::from_bits((a as f64).to_bits().saturating_add_signed(by.into()));
        for double in [b, near] {
            prop_assume!(double.is_finite());
            let expect = BigDecimal::from(a).cmp(&BigDecimal::try_from(double).unwrap());
            prop_assert_eq!(Value::Int64(a).compare(&Value::Float64(double)), Some(expect));
        }
    }
}
