//! Primary keys of every type in PostgreSQL's dialect. Two values are the same key exactly if they
//! are equal. A change by key affects exactly the rows that a query with the same condition
//! returns. Both hold for every form of a value and in every time zone.

use crate::common::Member;
use crate::parameters::run;
use filbert_data::{FieldType, Value};
use filbert_grid::query::{Dialect, ParameterType};

/// Types of keys, their values, and further operands for comparisons with them.
const TYPES: &[(&str, &[&str], &[&str])] = &[
    ("smallint", &["1", "'2'", "1.4", "-3"], &["1.5", "70000", "'x'", "1.0", "1e0"]),
    ("int", &["1", "'2'", "1.4", "-3"], &["1.5", "3000000000", "'x'", "1.0", "null"]),
    ("bigint", &["1", "'2'", "1.4", "9223372036854775807"], &["1.5", "9223372036854775808", "1.0::float8"]),
    ("boolean", &["true", "'f'", "'on'"], &["'t'", "false", "1"]),
    ("text", &["'abc'", "'abc '", "''", "5", "1.50", "true"], &["'abc'::char(5)", "'5'", "5"]),
    ("varchar(3)", &["'abc'", "'ab '", "'ab'"], &["'abc '", "'abcd'", "'abc'::char(5)"]),
    ("char(5)", &["'abc'", "'abc  '", "''", "' a'"], &["'abc '::text", "'abc'::varchar", "'abc    '"]),
    ("numeric", &["1", "1.0", "1.00", "'1.5'", "0", "-0.0", "1e2", "100"], &["1.0::float8", "'1.000'", "1.4999"]),
    ("numeric(6,2)", &["1", "1.004", "1.005", "'2.5'", "-0.001"], &["1.004", "1.00::float8", "2.50"]),
    ("real", &["1", "1.1", "'0'", "'-0'", "'nan'", "0.1::float8"], &["1.1", "1.1::real", "0", "-0.0", "'NaN'"]),
    ("float8", &["1", "1.1", "'0'", "'-0'", "'nan'", "0.1::real"], &["1.1::real", "0", "'-0'", "'NaN'", "0.1"]),
    ("date", &["'2024-01-01'", "date '2024-01-02'", "'20240101'"], &["timestamp '2024-01-01'", "'2024-1-1'", "'x'"]),
    ("time", &["'10:00'", "time '10:00:00.5'", "'10:00:00'"], &["'10:00:00.500'", "'10'"]),
    (
        "timestamp",
        &["'2024-01-01'", "'2024-01-01 12:00'", "date '2024-01-01'", "'2024-07-01 00:30'"],
        &["date '2024-01-01'", "timestamptz '2024-01-01 12:00+00'", "'2024-01-01 12:00+05'"],
    ),
    (
        "timestamptz",
        &["'2024-01-01'", "'2024-01-01 12:00+00'", "'2024-01-01 14:00+02'", "'2024-07-01 00:30'"],
        &["date '2024-01-01'", "timestamp '2024-01-01 12:00'", "'2024-01-01 12:00Z'", "'2024-01-01 12:00'"],
    ),
    (
        "uuid",
        &["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"],
        &["'{a0eebc999c0b4ef8bb6d6bb9bd380a11}'"],
    ),
    ("bytea", &["'\\x01'", "'\\001'", "'a'"], &["'\\x61'", "'\\x0'"]),
];

const ZONES: [&str; 3] = ["UTC", "Europe/Berlin", "America/New_York"];

fn member(zone: &str) -> Member {
    let member = Member::of(Dialect::Postgres);
    member.run(&format!("SET TimeZone TO '{zone}'"), &[]).unwrap();
    member
}

/// The number of changed or found rows, or the SQLSTATE.
fn outcome(member: &Member, text: &str) -> Result<u64, String> {
    match member.try_rows(text, &[]) {
        Ok(rows) => Ok(rows[0].trim_start_matches("count ").parse().unwrap()),
        Err(error) => Err(error.sqlstate().to_owned()),
    }
}

#[test]
fn equal_values_are_one_key_and_different_values_are_two() {
    for zone in ZONES {
        let member = member(zone);
        for (key_type, values, _) in TYPES {
            for (one, other) in values.iter().flat_map(|one| values.iter().map(move |other| (one, other))) {
                member.change(&format!("CREATE TABLE t (k {key_type} PRIMARY KEY)"));
                member.change(&format!("CREATE TABLE beside (k {key_type})"));
                member.change(&format!("INSERT INTO t VALUES ({one})"));
                member.change(&format!("INSERT INTO beside VALUES ({other})"));
                let equal = member.rows("SELECT count(*) FROM t, beside WHERE t.k = beside.k") == ["1"];
                let again = outcome(&member, &format!("INSERT INTO t VALUES ({other})"));
                let expected = if equal { Err("23505".to_owned()) } else { Ok(1) };
                assert_eq!(again, expected, "{key_type} {one} and {other}, {zone}");
                member.change("DROP TABLE t, beside");
            }
        }
    }
}

#[test]
fn changes_by_key_take_the_rows_that_queries_find() {
    for zone in ZONES {
        let member = member(zone);
        for (key_type, values, others) in TYPES {
            member.change(&format!("CREATE TABLE one (k {key_type} PRIMARY KEY, v int)"));
            member.change(&format!("CREATE TABLE two (k {key_type}, j int, v int, PRIMARY KEY (j, k))"));
            for operand in values.iter().chain(*others) {
                for (at, value) in values.iter().enumerate() {
                    let _ = outcome(&member, &format!("INSERT INTO one VALUES ({value}, 0) ON CONFLICT DO NOTHING"));
                    let two = format!("INSERT INTO two VALUES ({value}, {}, 0) ON CONFLICT DO NOTHING", at % 2);
                    let _ = outcome(&member, &two);
                }
                let conditions = [
                    ("one", format!("k = {operand}")),
                    ("one", format!("{operand} = k")),
                    ("one", format!("k IN ({operand}, {operand})")),
                    ("two", format!("j = 1 AND k = {operand}")),
                    ("two", format!("k = {operand} AND j = 0")),
                ];
                for (table, condition) in conditions {
                    let context = format!("{key_type}: {table} WHERE {condition}, {zone}");
                    let found = outcome(&member, &format!("SELECT count(*) FROM {table} WHERE {condition}"));
                    let updated = outcome(&member, &format!("UPDATE {table} SET v = v + 1 WHERE {condition}"));
                    assert_eq!(updated, found, "UPDATE, {context}");
                    let marked = outcome(&member, &format!("SELECT count(*) FROM {table} WHERE v <> 0"));
                    assert_eq!(marked, Ok(found.clone().unwrap_or(0)), "updated rows, {context}");
                    let deleted = outcome(&member, &format!("DELETE FROM {table} WHERE {condition}"));
                    assert_eq!(deleted, found, "DELETE, {context}");
                    let left = outcome(&member, &format!("SELECT count(*) FROM {table} WHERE v <> 0"));
                    assert_eq!(left, Ok(0), "rows left, {context}");
                    for value in *values {
                        let insert = format!("INSERT INTO one VALUES ({value}, 0) ON CONFLICT DO NOTHING");
                        let _ = outcome(&member, &insert);
                    }
                }
            }
            member.change("DROP TABLE one, two");
        }
    }
}

#[test]
fn parameters_of_any_declared_type_take_the_rows_that_queries_find() {
    let member = member("Europe/Berlin");
    let decimal = |text: &str| Value::Decimal(text.parse().unwrap());
    let parameters: [(FieldType, Value<'_>); 8] = [
        (FieldType::SmallInt, Value::Int16(1)),
        (FieldType::Integer, Value::Int32(1)),
        (FieldType::BigInt, Value::Int64(1)),
        (FieldType::Double, Value::Float64(1.5)),
        (FieldType::Double, Value::Float64(-0.0)),
        (FieldType::Real, Value::Float32(1.1)),
        (FieldType::Decimal(None), decimal("1.500")),
        (FieldType::Varchar, Value::text("1")),
    ];
    for (key_type, values) in [
        ("smallint", ["1", "0"]),
        ("int", ["1", "2"]),
        ("bigint", ["1", "0"]),
        ("numeric", ["1.5", "0"]),
        ("real", ["1.1", "0"]),
        ("float8", ["1.5", "0"]),
        ("text", ["'1'", "'1.5'"]),
    ] {
        member.change(&format!("CREATE TABLE t (k {key_type} PRIMARY KEY)"));
        for (field_type, value) in &parameters {
            for value in values {
                let _ = outcome(&member, &format!("INSERT INTO t VALUES ({value}) ON CONFLICT DO NOTHING"));
            }
            let types = [Some(ParameterType::from(field_type.clone()))];
            let values = std::slice::from_ref(value);
            let count = |text: &str| match run(&member, text, values, &types) {
                Ok(rows) => Ok(rows[0].trim_start_matches("count ").to_owned()),
                Err(error) => Err(error.sqlstate().to_owned()),
            };
            let found = count("SELECT count(*) FROM t WHERE k = $1");
            assert_eq!(count("DELETE FROM t WHERE k = $1"), found, "{key_type} = {value:?}");
        }
        member.change("DROP TABLE t");
    }
}

#[test]
fn types_with_several_forms_of_equal_values_are_no_keys() {
    let member = member("UTC");
    for key_type in ["interval", "jsonb", "json", "interval[]", "jsonb[]", "int[]"] {
        let error = member.error(&format!("CREATE TABLE t (k {key_type} PRIMARY KEY)"));
        assert_eq!(error.sqlstate(), "0A000", "{key_type}: {error}");
        let error = member.error(&format!("CREATE TABLE t (k {key_type}, j int, PRIMARY KEY (j, k))"));
        assert_eq!(error.sqlstate(), "0A000", "{key_type}: {error}");
    }
}
