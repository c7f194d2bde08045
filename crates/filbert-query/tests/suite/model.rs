//! A model of rows and conditions in plain Rust. Every kind of query must return its results.
#![allow(
    unreachable_pub,
    clippy::float_cmp,
    reason = "the doubles here are halves of small numbers, exact in every sum"
)]

use std::fmt::Write as _;

use filbert_data::Value;
use filbert_data::criteria::Predicate;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// The value of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub n: Option<i64>,
    pub t: Option<String>,
    pub d: Option<f64>,
    pub b: Option<bool>,
}

impl Row {
    /// The row in a format that cannot store null numbers.
    pub fn without_null_numbers(self) -> Row {
        Row { n: self.n.or(Some(0)), d: self.d.or(Some(0.0)), b: self.b.or(Some(false)), ..self }
    }

    /// The key and the columns as a row of a result, joined by `|`.
    pub fn text(&self, key: i32) -> String {
        format!("{key}|{}|{}|{}|{}", shown(self.n), shown(self.t.as_deref()), shown(self.d.map(Double)), shown(self.b))
    }

    /// The columns as SQL literals.
    pub fn literals(&self) -> String {
        [Field::N, Field::T, Field::D, Field::B].map(|field| literal(&self.value(0, field))).join(", ")
    }

    pub fn value(&self, key: i32, field: Field) -> Value<'static> {
        match field {
            Field::Key => Value::Int32(key),
            Field::N => self.n.map_or(Value::Null, Value::Int64),
            Field::T => self.t.clone().map_or(Value::Null, |text| Value::Text(text.into())),
            Field::D => self.d.map_or(Value::Null, Value::Float64),
            Field::B => self.b.map_or(Value::Null, Value::Boolean),
        }
    }
}

/// A double as results display it.
pub struct Double(pub f64);

impl std::fmt::Display for Double {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

pub fn shown(value: Option<impl std::fmt::Display>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

pub fn literal(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Boolean(value) => value.to_string().to_uppercase(),
        Value::Float64(value) => Double(*value).to_string(),
        other => other.to_string(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Key,
    N,
    T,
    D,
    B,
}

impl Field {
    pub fn name(self) -> &'static str {
        match self {
            Field::Key => "__key",
            Field::N => "n",
            Field::T => "t",
            Field::D => "d",
            Field::B => "b",
        }
    }
}

/// A condition.
#[derive(Clone, Debug)]
pub enum Test {
    Equal(Field, Value<'static>),
    NotEqual(Field, Value<'static>),
    Compare { field: Field, value: Value<'static>, equal: bool, less: bool },
    Between(Field, Value<'static>, Value<'static>),
    In(Field, Vec<Value<'static>>),
    Like(&'static str),
    IsNull(Field),
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
}

impl Test {
    /// Its value in SQL: true, false, or unknown.
    pub fn in_sql(&self, key: i32, row: &Row) -> Option<bool> {
        let known = |field: Field| Some(row.value(key, field)).filter(|value| !value.is_null());
        let order = |field, value: &Value<'_>| known(field).map(|found| found.compare(value).unwrap());
        match self {
            Test::Equal(field, value) => order(*field, value).map(|order| order.is_eq()),
            Test::NotEqual(field, value) => order(*field, value).map(|order| order.is_ne()),
            Test::Compare { field, value, equal, less } => {
                order(*field, value).map(|order| if order.is_eq() { *equal } else { order.is_lt() == *less })
            }
            Test::Between(field, from, to) => Some(order(*field, from)?.is_ge() && order(*field, to)?.is_le()),
            Test::In(field, values) => {
                known(*field).map(|found| values.iter().any(|value| found.compare(value).unwrap().is_eq()))
            }
            Test::Like(pattern) => row.t.as_deref().map(|text| like(pattern, text)),
            Test::IsNull(field) => Some(row.value(key, *field).is_null()),
            Test::And(all) => {
                let all: Vec<_> = all.iter().map(|test| test.in_sql(key, row)).collect();
                if all.contains(&Some(false)) {
                    Some(false)
                } else if all.contains(&None) {
                    None
                } else {
                    Some(true)
                }
            }
            Test::Or(any) => {
                let any: Vec<_> = any.iter().map(|test| test.in_sql(key, row)).collect();
                if any.contains(&Some(true)) {
                    Some(true)
                } else if any.contains(&None) {
                    None
                } else {
                    Some(false)
                }
            }
            Test::Not(inner) => inner.in_sql(key, row).map(|holds| !holds),
        }
    }

    /// Its value in the map API: a comparison with null is false, and the comparison negated by
    /// `NOT` is false as well.
    pub fn in_predicates(&self, key: i32, row: &Row) -> bool {
        match self {
            Test::And(all) => all.iter().all(|test| test.in_predicates(key, row)),
            Test::Or(any) => any.iter().any(|test| test.in_predicates(key, row)),
            Test::Not(inner) if matches!(**inner, Test::Compare { .. }) => {
                inner.in_sql(key, row).is_some_and(|holds| !holds)
            }
            Test::Not(inner) => !inner.in_predicates(key, row),
            Test::NotEqual(..) => self.in_sql(key, row) != Some(false),
            plain => plain.in_sql(key, row) == Some(true),
        }
    }

    /// The condition in SQL. With `parameters`, each value is a `?`, and is added to them.
    pub fn sql(&self, parameters: &mut Option<Vec<Value<'static>>>) -> String {
        let mut value = |value: &Value<'static>| match parameters {
            Some(parameters) => {
                parameters.push(value.clone());
                "?".to_owned()
            }
            None => literal(value),
        };
        match self {
            Test::Equal(field, wanted) => format!("{} = {}", field.name(), value(wanted)),
            Test::NotEqual(field, wanted) => format!("{} <> {}", field.name(), value(wanted)),
            Test::Compare { field, value: wanted, equal, less } => {
                let operator = if *less { '<' } else { '>' };
                format!("{} {operator}{} {}", field.name(), if *equal { "=" } else { "" }, value(wanted))
            }
            Test::Between(field, from, to) => {
                let (from, to) = (value(from), value(to));
                format!("{} BETWEEN {from} AND {to}", field.name())
            }
            Test::In(field, values) => {
                let values: Vec<_> = values.iter().map(value).collect();
                format!("{} IN ({})", field.name(), values.join(", "))
            }
            Test::Like(pattern) => format!("t LIKE '{pattern}'"),
            Test::IsNull(field) => format!("{} IS NULL", field.name()),
            Test::And(tests) => joined(tests, " AND ", parameters),
            Test::Or(tests) => joined(tests, " OR ", parameters),
            Test::Not(inner) => format!("NOT ({})", inner.sql(parameters)),
        }
    }

    pub fn predicate(&self) -> Predicate {
        let all = |tests: &[Test]| tests.iter().map(Test::predicate).collect();
        match self {
            Test::Equal(field, value) => Predicate::Equal(field.name().to_owned(), value.clone()),
            Test::NotEqual(field, value) => Predicate::NotEqual(field.name().to_owned(), value.clone()),
            Test::Compare { field, value, equal, less } => Predicate::Compare {
                attribute: field.name().to_owned(),
                value: value.clone(),
                equal: *equal,
                less: *less,
            },
            Test::Between(field, from, to) => {
                Predicate::Between { attribute: field.name().to_owned(), from: from.clone(), to: to.clone() }
            }
            Test::In(field, values) => Predicate::In(field.name().to_owned(), values.clone()),
            Test::Like(pattern) => {
                Predicate::Like { attribute: "t".to_owned(), pattern: Some((*pattern).to_owned()), ignore_case: false }
            }
            Test::IsNull(field) => Predicate::Equal(field.name().to_owned(), Value::Null),
            Test::And(tests) => Predicate::And(all(tests)),
            Test::Or(tests) => Predicate::Or(all(tests)),
            Test::Not(inner) => Predicate::Not(Box::new(inner.predicate())),
        }
    }
}

fn joined(tests: &[Test], by: &str, parameters: &mut Option<Vec<Value<'static>>>) -> String {
    let mut text = String::new();
    for (index, test) in tests.iter().enumerate() {
        write!(text, "{}({})", if index > 0 { by } else { "" }, test.sql(parameters)).unwrap();
    }
    text
}

fn like(pattern: &str, text: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return text.is_empty() };
    let rest = pattern.strip_prefix(first).unwrap();
    if first == '%' {
        let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        return ends.into_iter().any(|at| like(rest, text.get(at..).unwrap()));
    }
    let Some(found) = text.chars().next() else { return false };
    (first == '_' || first == found) && like(rest, text.strip_prefix(found).unwrap())
}

const TEXTS: [&str; 9] = ["", "a", "ab", "abc", "b%", "x_y", "é", "A", "it's"];
const PATTERNS: [&str; 8] = ["%", "", "a%", "%b%", "_", "_b", "x_%", "abc"];

pub fn number() -> impl Strategy<Value = i64> {
    prop_oneof![8 => -4..8_i64, 1 => Just(1_000_000_000_007), 1 => Just(-9_007_199_254_740_993)]
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(TEXTS.to_vec()).prop_map(str::to_owned)
}

fn double() -> impl Strategy<Value = f64> {
    (-6..7_i32).prop_map(|halves| f64::from(halves) / 2.0)
}

pub fn row() -> impl Strategy<Value = Row> {
    (
        option::weighted(0.8, number()),
        option::weighted(0.8, text()),
        option::weighted(0.8, double()),
        any::<Option<bool>>(),
    )
        .prop_map(|(n, t, d, b)| Row { n, t, d, b })
}

fn value_of(field: Field) -> BoxedStrategy<Value<'static>> {
    match field {
        Field::Key => (0..40_i32).prop_map(Value::Int32).boxed(),
        Field::N => number().prop_map(Value::Int64).boxed(),
        Field::T => text().prop_map(|text| Value::Text(text.into())).boxed(),
        Field::D => double().prop_map(Value::Float64).boxed(),
        Field::B => any::<bool>().prop_map(Value::Boolean).boxed(),
    }
}

fn of_field(field: Field) -> BoxedStrategy<Test> {
    let value = || value_of(field);
    let compare = (value(), any::<bool>(), any::<bool>()).prop_map(move |(value, equal, less)| Test::Compare {
        field,
        value,
        equal,
        less,
    });
    let plain = prop_oneof![
        3 => value().prop_map(move |value| Test::Equal(field, value)),
        1 => value().prop_map(move |value| Test::NotEqual(field, value)),
        2 => vec(value(), 1..4).prop_map(move |values| Test::In(field, values)),
        1 => Just(Test::IsNull(field)),
    ];
    // Only one of the two languages defines an order of booleans.
    if field == Field::B {
        return plain.boxed();
    }
    let between = (value(), value()).prop_map(move |(from, to)| Test::Between(field, from, to));
    prop_oneof![3 => plain, 2 => compare, 1 => between].boxed()
}

pub fn test() -> impl Strategy<Value = Test> {
    let fields = prop::sample::select(vec![Field::Key, Field::N, Field::N, Field::T, Field::T, Field::D, Field::B]);
    let like = prop::sample::select(PATTERNS.to_vec()).prop_map(Test::Like);
    let one = prop_oneof![9 => fields.prop_flat_map(of_field), 1 => like];
    one.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 2..4).prop_map(Test::And),
            2 => vec(inner.clone(), 2..4).prop_map(Test::Or),
            1 => inner.prop_map(|test| Test::Not(Box::new(test))),
        ]
    })
}
