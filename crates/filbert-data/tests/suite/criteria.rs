//! Predicates, aggregators and projections, with the same bytes as a stock client writes, and the
//! SQL-like dialect of predicates.

use std::collections::BTreeMap;
use std::fmt::Debug;

use chrono::{DateTime, NaiveDate, NaiveTime};
use filbert_data::criteria::{
    Aggregator, Distinct, Entry, IterationType, PagingPredicate, Predicate, Projection, distinct_blob, entry_blob,
    row_blob,
};
use filbert_data::{Blob, DataError, FromBlob, Json, List, ToBlob, TypeId, Value};
use uuid::Uuid;

fn golden() -> BTreeMap<&'static str, Blob> {
    let lines = include_str!("../criteria.txt").lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let (name, hex) = line.split_once(' ').unwrap();
        (name, Blob::from(bytes(hex)))
    });
    parsed.collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn text(text: &str) -> Value<'static> {
    Value::Text(text.to_owned().into())
}

fn equal(attribute: &str, value: Value<'static>) -> Predicate {
    Predicate::Equal(attribute.into(), value)
}

fn compare(attribute: &str, value: Value<'static>, equal: bool, less: bool) -> Predicate {
    Predicate::Compare { attribute: attribute.into(), value, equal, less }
}

fn like(attribute: &str, pattern: Option<&str>, ignore_case: bool) -> Predicate {
    Predicate::Like { attribute: attribute.into(), pattern: pattern.map(Into::into), ignore_case }
}

fn between(attribute: &str, from: Value<'static>, to: Value<'static>) -> Predicate {
    Predicate::Between { attribute: attribute.into(), from, to }
}

fn isin(attribute: &str, values: impl IntoIterator<Item = Value<'static>>) -> Predicate {
    Predicate::In(attribute.into(), values.into_iter().collect())
}

fn not(predicate: Predicate) -> Predicate {
    Predicate::Not(Box::new(predicate))
}

/// Removes `name` from the golden blobs, and checks that `value` is written as this blob and is
/// read from it.
fn same<T: ToBlob + PartialEq + Debug>(
    golden: &mut BTreeMap<&str, Blob>,
    read: fn(&[u8]) -> Result<T, DataError>,
    name: &str,
    value: T,
) {
    let blob = golden.remove(name).unwrap_or_else(|| panic!("{name} is not among the golden blobs"));
    assert_eq!(value.to_blob().unwrap(), blob, "{name} as written");
    assert_eq!(read(&blob).unwrap(), value, "{name} as read");
}

#[test]
fn predicates_are_written_and_read_as_stock_clients_do() {
    let mut golden = golden();
    let mut is = |name, predicate| same(&mut golden, Predicate::from_blob, name, predicate);
    is("sql", Predicate::Sql("age > 30 AND name LIKE 'J%'".into()));
    is("and", Predicate::And(vec![equal("age", Value::Int32(30)), Predicate::True]));
    is("and_empty", Predicate::And(vec![]));
    is("or", Predicate::Or(vec![not(equal("name", text("Ada"))), Predicate::False]));
    is("between", between("age", Value::Int32(20), Value::Int32(30)));
    is("equal_null", equal("this", Value::Null));
    is("not_equal", Predicate::NotEqual("address.city".into(), text("Bonn")));
    is("greater", compare("age", Value::Float64(1.5), false, false));
    is("greater_equal", compare("age", Value::Int32(2), true, false));
    is("less", compare("__key", text("k"), false, true));
    is("less_equal", compare("ok", Value::Boolean(true), true, true));
    is("like", like("name", Some("J%_\\%"), false));
    is("like_null", like("name", None, false));
    is("ilike", like("name", Some("j%"), true));
    is("regex", Predicate::Regex { attribute: "name".into(), pattern: Some("J.*".into()) });
    is("in", isin("age", [Value::Int32(1), Value::Int32(2), Value::Null]));
    is("in_lists", isin("tags", [Value::Array(vec![Value::Int32(1), text("a")]), Value::Array(vec![])]));
    is("instance_of", Predicate::InstanceOf("java.lang.String".into()));
    is("date", equal("d", Value::Date(NaiveDate::from_ymd_opt(2024, 2, 29).unwrap())));
    is("time", equal("d", Value::Time(NaiveTime::from_hms_milli_opt(12, 34, 56, 789).unwrap())));
    let timestamp = DateTime::parse_from_rfc3339("2024-02-29T12:34:56.789-05:30").unwrap();
    is("timestamp", equal("d", Value::TimestampTz(timestamp)));
    is("decimal", equal("d", Value::Decimal("-1.20".parse().unwrap())));
    is("uuid", equal("d", Value::Uuid(Uuid::from_u128(0xe9da1dd7_fcee_1ac8_0000_000b00000001))));
    is("json", equal("d", Value::Json("{\"a\":1}".into())));
    let either = Predicate::Or(vec![equal("a", Value::Int32(1)), equal("b", Value::Int32(2))]);
    is("nested", Predicate::And(vec![either, not(isin("c", [text("x")]))]));
    for (name, blob) in golden {
        let read = [
            Predicate::from_blob(&blob).is_ok(),
            PagingPredicate::from_blob(&blob).is_ok(),
            Aggregator::from_blob(&blob).is_ok(),
            Projection::from_blob(&blob).is_ok_and(|projection| !matches!(projection, Projection::Unknown(_))),
        ];
        assert_eq!(read.iter().filter(|read| **read).count(), 1, "{name} is one thing");
    }
}

#[test]
fn aggregators_and_projections_are_written_and_read_as_stock_clients_do() {
    let mut golden = golden();
    let path = || Some("age".to_owned());
    let mut is = |name, aggregator| same(&mut golden, Aggregator::from_blob, name, aggregator);
    is("count", Aggregator::Count(path()));
    is("count_all", Aggregator::Count(None));
    is("distinct", Aggregator::Distinct(path()));
    is("double_avg", Aggregator::DoubleAvg(path()));
    is("double_sum", Aggregator::DoubleSum(path()));
    is("fixed_point_sum", Aggregator::FixedSum(path()));
    is("floating_point_sum", Aggregator::FloatingSum(path()));
    is("int_avg", Aggregator::IntegerAvg(path()));
    is("int_sum", Aggregator::IntegerSum(path()));
    is("long_avg", Aggregator::LongAvg(path()));
    is("long_sum", Aggregator::LongSum(path()));
    is("max", Aggregator::Max(path()));
    is("min", Aggregator::Min(path()));
    is("number_avg", Aggregator::NumberAvg(path()));
    is("max_by", Aggregator::MaxBy(path()));
    is("min_by", Aggregator::MinBy(path()));
    let mut is = |name, projection| same(&mut golden, Projection::from_blob, name, projection);
    is("single", Projection::Single("name".into()));
    is("multi", Projection::Multi(vec!["name".into(), "age".into()]));
    is("identity", Projection::Identity);
}

#[test]
fn aggregators_that_only_java_has_are_read_back() {
    let path = || Some("amount".to_owned());
    for aggregator in [
        Aggregator::BigDecimalAvg(path()),
        Aggregator::BigDecimalSum(None),
        Aggregator::BigIntegerAvg(None),
        Aggregator::BigIntegerSum(path()),
    ] {
        assert_eq!(Aggregator::from_blob(&aggregator.to_blob().unwrap()).unwrap(), aggregator);
    }
}

#[test]
fn a_paging_predicate_is_read_and_its_comparator_refused() {
    let blob = &golden()["paging"];
    let expected = PagingPredicate {
        predicate: Some(equal("age", Value::Int32(1))),
        page_size: 10,
        page: 1,
        iteration: IterationType::Entry,
    };
    assert_eq!(PagingPredicate::from_blob(blob).unwrap(), expected);
    let head = &blob[..8 + 9];
    let with_comparator = [head, &0i32.to_be_bytes(), &(-100i32).to_be_bytes(), b"code"].concat();
    let error = PagingPredicate::from_blob(&with_comparator).unwrap_err().to_string();
    assert!(error.contains("comparators are Java code, which this server does not run"), "{error}");
    let error = Predicate::from_blob(blob).unwrap_err().to_string();
    assert!(error.contains("paging"), "{error}");
}

#[test]
fn partitions_are_named_by_keys_of_any_type_that_ends() {
    for key in [7i32.to_blob().unwrap(), "key".to_blob().unwrap(), List(vec![1i64]).to_blob().unwrap()] {
        let one = Predicate::Partition { key: key.clone(), predicate: Box::new(Predicate::True) };
        assert_eq!(Predicate::from_blob(&one.to_blob().unwrap()).unwrap(), one);
        let several = Predicate::Partitions {
            keys: vec![key, 1.5f64.to_blob().unwrap()],
            predicate: Box::new(equal("a", Value::Int64(1))),
        };
        assert_eq!(Predicate::from_blob(&several.to_blob().unwrap()).unwrap(), several);
    }
}

#[test]
fn values_that_are_not_known_may_stand_at_the_end_alone() {
    let object = Value::Object(b"\0\0\0\0\0\0\0\x09anything".to_vec().into());
    let at_the_end = equal("a", object.clone());
    assert_eq!(Predicate::from_blob(&at_the_end.to_blob().unwrap()).unwrap(), at_the_end);
    let error = Predicate::from_blob(&not(at_the_end).to_blob().unwrap()).unwrap_err().to_string();
    assert!(error.contains("type 9") && error.contains("tells where it ends"), "{error}");
    let compared = compare("a", object, true, true);
    Predicate::from_blob(&compared.to_blob().unwrap()).unwrap_err();
}

#[test]
fn code_of_users_is_refused_by_name() {
    let named = bytes("00000000fffffffe00 00000005 782e592e5a".replace(' ', "").as_str());
    let error = Predicate::from_blob(&named).unwrap_err().to_string();
    assert!(error.contains("\"x.Y.Z\""), "{error}");
    let other = bytes("00000000fffffffe0100000007 00000003".replace(' ', "").as_str());
    let error = Predicate::from_blob(&other).unwrap_err().to_string();
    assert!(error.contains("factory 7 (3)"), "{error}");
    let error = Aggregator::from_blob(&Predicate::True.to_blob().unwrap()).unwrap_err().to_string();
    assert!(error.contains("an aggregator is expected"), "{error}");
    assert!(matches!(Projection::from_blob(&other).unwrap(), Projection::Unknown(_)));
    assert!(matches!(Predicate::from_blob(&7i32.to_blob().unwrap()), Err(DataError::WrongType { .. })));
}

#[test]
fn nesting_has_a_limit() {
    let one = not(Predicate::True).to_blob().unwrap();
    let outer = &one[4..8 + 9];
    let nest = |levels| [&[0; 4], outer.repeat(levels).as_slice(), &Predicate::True.to_blob().unwrap()[4..]].concat();
    assert_eq!(Predicate::from_blob(&nest(2)).unwrap(), not(not(Predicate::True)));
    Predicate::from_blob(&nest(200)).unwrap();
    let error = Predicate::from_blob(&nest(201)).unwrap_err().to_string();
    assert!(error.contains("more than 200 levels"), "{error}");
    Predicate::from_blob(&nest(20_000)).unwrap_err();
}

#[test]
fn results_are_written_as_stock_clients_read_them() {
    let (key, value) = ("k".to_blob().unwrap(), Json::new("{}").to_blob().unwrap());
    let entry = entry_blob(&key, &value).unwrap();
    let ids = |factory_class: &str| bytes(&format!("00000000fffffffe01{factory_class}"));
    let objects = bytes("fffffff5000000016bffffff7e000000027b7d");
    assert_eq!(entry.as_bytes(), [ids("fffffffc00000078"), objects.clone()].concat());
    let items = || [key.as_bytes(), value.as_bytes()].into_iter();
    let distinct = distinct_blob(items()).unwrap();
    assert_eq!(distinct.as_bytes(), [ids("ffffffe30000001300000002"), objects.clone()].concat());
    let distinct = distinct_blob([&key].into_iter()).unwrap();
    assert_eq!(Distinct::<Blob>::from_blob(&distinct).unwrap().0, std::slice::from_ref(&key));
    let read = Entry::<String, Json>::from_blob(&entry).unwrap();
    assert_eq!(read, Entry { key: "k".into(), value: Json::new("{}") });
    assert_eq!(
        Distinct::<i32>::from_blob(&distinct_blob([7i32.to_blob().unwrap()].into_iter()).unwrap()).unwrap().0,
        [7]
    );
    Entry::<String, Json>::from_blob(&distinct).unwrap_err();
    let row = row_blob(items()).unwrap();
    assert_eq!(row.as_bytes(), [bytes("00000000ffffffe400000002"), objects].concat());
}

#[test]
fn portables_within_results_count_their_positions_from_the_result_s_start() {
    let objects = include_str!("../objects.txt").lines();
    let mut checked = 0;
    for (name, hex) in objects.filter_map(|line| line.split_once(' ')).filter(|(name, _)| name.starts_with("portable."))
    {
        let object = Blob::from(bytes(hex));
        if filbert_data::type_id(&object).unwrap() != TypeId::PORTABLE {
            continue;
        }
        let entry = entry_blob(&"key".to_blob().unwrap(), &object).unwrap();
        let payload = &entry[8..];
        let at = payload.len() - (object.len() - 8);
        assert_ne!(payload[at..], object[8..], "{name}");
        let (cut, cut_bytes) = filbert_data::portable::cut_out(payload, at).unwrap();
        assert_eq!((cut.as_bytes(), cut_bytes), (object.as_bytes(), object.len() - 8), "{name}");
        checked += 1;
    }
    assert!(checked > 5);
}

#[test]
fn a_condition_is_read_as_hazelcast_reads_it() {
    let int = Value::Int64;
    let is_true = |attribute| equal(attribute, Value::Boolean(true));
    let and = |all: &[Predicate]| Predicate::And(all.to_vec());
    let or = |all: &[Predicate]| Predicate::Or(all.to_vec());
    let cases = [
        ("active", is_true("active")),
        ("age=30", equal("age", int(30))),
        (" age  ==\t-30 ", equal("age", int(-30))),
        ("age != 30", Predicate::NotEqual("age".into(), int(30))),
        ("age<>30", Predicate::NotEqual("age".into(), int(30))),
        ("age>30", compare("age", int(30), false, false)),
        ("age >=30", compare("age", int(30), true, false)),
        ("age< 30", compare("age", int(30), false, true)),
        ("age <= 30", compare("age", int(30), true, true)),
        ("%age <= 30", compare("age", int(30), true, true)),
        ("price > 1.50", compare("price", Value::Float64(1.5), false, false)),
        ("price > 1e3", compare("price", Value::Float64(1000.0), false, false)),
        ("n = 9223372036854775808", equal("n", Value::Decimal("9223372036854775808".parse().unwrap()))),
        ("code = 007", equal("code", text("007"))),
        ("day = 2024-02-29", equal("day", text("2024-02-29"))),
        ("name = Ada", equal("name", text("Ada"))),
        ("name = 'Ada Lovelace'", equal("name", text("Ada Lovelace"))),
        ("name = 'O''Hara'", equal("name", text("O'Hara"))),
        ("name = ''", equal("name", text(""))),
        ("name = ''''", equal("name", text("'"))),
        ("name='30'", equal("name", text("30"))),
        ("name = null", equal("name", Value::Null)),
        ("ok = TRUE", equal("ok", Value::Boolean(true))),
        ("'odd name' = 1", equal("odd name", int(1))),
        ("address.city = 'Köln'", equal("address.city", text("Köln"))),
        ("tags[any] = 'x'", equal("tags[any]", text("x"))),
        ("name LIKE 'J%'", like("name", Some("J%"), false)),
        ("name like 30", like("name", Some("30"), false)),
        ("name ILIKE 'j%'", like("name", Some("j%"), true)),
        ("name LIKE null", like("name", None, false)),
        ("name REGEX 'J.*(a|b)'", Predicate::Regex { attribute: "name".into(), pattern: Some("J.*(a|b)".into()) }),
        ("age BETWEEN 20 AND 30", between("age", int(20), int(30))),
        ("age between 20 and 30 and ok", and(&[between("age", int(20), int(30)), is_true("ok")])),
        ("age IN (1,2 , 3)", isin("age", [int(1), int(2), int(3)])),
        ("age in('a b', null)", isin("age", [text("a b"), Value::Null])),
        ("NOT active", not(is_true("active"))),
        ("not (a or b)", not(or(&[is_true("a"), is_true("b")]))),
        ("NOT a = 1 AND b", and(&[not(equal("a", int(1))), is_true("b")])),
        ("name NOT LIKE 'J%'", not(like("name", Some("J%"), false))),
        ("age NOT IN (1)", not(isin("age", [int(1)]))),
        ("age NOT BETWEEN 1 AND 2", not(between("age", int(1), int(2)))),
        ("a OR b AND c", or(&[is_true("a"), and(&[is_true("b"), is_true("c")])])),
        ("(a OR b) AND c", and(&[or(&[is_true("a"), is_true("b")]), is_true("c")])),
        ("a AND (b AND c)", and(&[is_true("a"), is_true("b"), is_true("c")])),
        ("a or b or c", or(&[is_true("a"), is_true("b"), is_true("c")])),
        ("((a))", is_true("a")),
        (
            "age > 30 AND (name LIKE 'J%' OR active)",
            and(&[compare("age", int(30), false, false), or(&[like("name", Some("J%"), false), is_true("active")])]),
        ),
    ];
    for (condition, expected) in cases {
        assert_eq!(Predicate::parse_sql(condition).unwrap(), expected, "{condition}");
    }
}

#[test]
fn a_broken_condition_is_an_error_that_says_where() {
    let cases = [
        ("", "has the end at character 1; an attribute"),
        ("age >", "has the end at character 6; a value"),
        ("age > and", "has and at character 7; a value"),
        ("age = 'x", "has a text without an end at character 7; a closing '"),
        ("(a", "has the end at character 3; )"),
        ("a)", "has ) at character 2; AND, OR or the end"),
        ("a b", "has b at character 3; a comparison"),
        ("ä = 1 b", "has b at character 7; AND, OR or the end"),
        ("age IN 1", "has 1 at character 8; ("),
        ("age IN ()", "has ) at character 9; a value"),
        ("age BETWEEN 1, 2", "has , at character 14; AND"),
        ("age NOT = 1", "has = at character 9; LIKE"),
        ("and", "has and at character 1; an attribute"),
        ("a ! b", "has ! at character 3; a comparison"),
    ];
    for (condition, expected) in cases {
        let error = Predicate::parse_sql(condition).unwrap_err().to_string();
        assert!(error.contains(expected), "{condition}: {error}");
    }
    let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
    let error = Predicate::parse_sql(&deep).unwrap_err().to_string();
    assert!(error.contains("more than 200 levels"), "{error}");
    Predicate::parse_sql(&"NOT ".repeat(100_000)).unwrap_err();
    let long = vec!["a = 1"; 100_000].join(" OR ");
    assert!(matches!(Predicate::parse_sql(&long).unwrap(), Predicate::Or(all) if all.len() == 100_000));
    let digits = format!("a = {}", "9".repeat(1_000_000));
    Predicate::parse_sql(&digits).unwrap();
}

/// The bytes that Java's `PredicateBuilder` sends: flags, the class's name, the last requested
/// attribute, a list of predicates.
fn built(predicates: &[Predicate]) -> Vec<u8> {
    let mut bytes = [[0; 4], (-2_i32).to_be_bytes()].concat();
    bytes.push(0);
    for text in ["com.hazelcast.query.impl.PredicateBuilderImpl", "age"] {
        bytes.extend(i32::try_from(text.len()).unwrap().to_be_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes.extend(i32::try_from(predicates.len()).unwrap().to_be_bytes());
    for predicate in predicates {
        bytes.extend(&predicate.to_blob().unwrap().as_bytes()[4..]);
    }
    bytes
}

#[test]
fn a_built_predicate_is_the_first_of_its_list() {
    let (first, second) = (equal("name", text("Ada")), equal("age", Value::Int32(36)));
    assert_eq!(Predicate::from_blob(&built(&[first.clone(), second])), Ok(first.clone()));
    assert_eq!(Predicate::from_blob(&built(&[not(first.clone())])), Ok(not(first.clone())));
    let error = Predicate::from_blob(&built(&[])).unwrap_err().to_string();
    assert!(error.contains("a builder without a predicate"), "{error}");
    let whole = built(&[first]);
    for end in 8..whole.len() {
        assert!(Predicate::from_blob(&whole[..end]).is_err(), "cut at {end}");
    }
}
