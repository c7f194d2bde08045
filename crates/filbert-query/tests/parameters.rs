//! Parameters have the types that the client declares, else those of what they stand beside: operators and functions are chosen by them,
//! and a statement means the same with literals, with parameters of declared types, and with parameters alone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::slice::from_ref;
use std::sync::mpsc;

use common::{Member, pages, texts};
use filbert_data::{FieldType, Value};
use filbert_grid::query::{Dialect, ParameterType, QueryEngine, SqlError, Statement, StatementResult};

fn run(
    member: &Member,
    text: &str,
    values: &[Value<'_>],
    types: &[Option<ParameterType>],
) -> Result<Vec<String>, SqlError> {
    let statement = Statement { types, ..member.statement(text, values) };
    let result = match member.engine.execute_short(&statement) {
        Some(result) => result,
        None => {
            let (sender, receiver) = mpsc::channel();
            member.engine.execute(&statement, Box::new(move |result| sender.send(result).unwrap()));
            receiver.recv().unwrap()
        }
    };
    match result? {
        StatementResult::Count(count) => Ok(vec![format!("count {count}")]),
        StatementResult::Rows(cursor) => Ok(pages(cursor, 1_000)?.iter().flat_map(texts).collect()),
    }
}

fn declared(field_type: FieldType) -> Option<ParameterType> {
    Some(field_type.into())
}

fn decimal(text: &str) -> Value<'static> {
    Value::Decimal(text.parse().unwrap())
}

fn member() -> Member {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id BIGINT PRIMARY KEY, x INT, n NUMERIC(10, 2), f DOUBLE PRECISION, s TEXT)");
    member.change("INSERT INTO t VALUES (1, 7, 1.5, 2.5, 'a'), (2, NULL, NULL, NULL, NULL)");
    member
}

#[test]
fn declared_types_choose_operators_and_functions() {
    let member = member();
    let (int, exact, double) =
        (declared(FieldType::Integer), declared(FieldType::Decimal(None)), declared(FieldType::Double));
    let check = |text: &str, values: &[Value<'_>], types: &[Option<ParameterType>], expected: &str| {
        let text = format!("SELECT ({text})::text");
        assert_eq!(run(&member, &text, values, types).unwrap(), [expected], "{text}");
    };
    let exacts = [exact.clone(), exact.clone()];
    check("$1 - $2", &[decimal("2.5"), decimal("1")], &exacts, "1.5");
    check("7 / $1", &[decimal("2")], &exacts, "3.5000000000000000");
    check("7 / $1", &[Value::Int32(2)], from_ref(&int), "3");
    check("coalesce($1, 0)", &[decimal("0.5")], &exacts, "0.5");
    check("$1 + $2", &[Value::Int32(1), Value::Int32(2)], &[int.clone(), int.clone()], "3");
    check("$1 + $2", &[Value::Int32(1), Value::Float64(2.5)], &[int.clone(), double.clone()], "3.5");
    check("$1 < $2", &[Value::Int32(9), Value::Int32(10)], &[int.clone(), int.clone()], "true");
    check("round($1)", &[Value::Float64(2.5)], from_ref(&double), "2");
    check("round($1)", &[decimal("2.5")], &exacts, "3");
    check("sqrt($1)", &[Value::Int32(4)], from_ref(&int), "2");
    check("substr('abc', $1)", &[Value::Int16(2)], &[declared(FieldType::SmallInt)], "bc");
    check("$1 || $2", &[Value::Text("a".into()), Value::Text("b".into())], &[], "ab");
    check("coalesce($1, 7)", &[Value::Null], &[], "7");
    // PostgreSQL's numbers of types that Arrow has not: `jsonb` has one form, `bpchar` blanks that do not count.
    let of_postgres = |field_type, oid| [Some(ParameterType { field_type, pg_type: Some(oid) })];
    let jsonb = of_postgres(FieldType::Json, 3802);
    check("$1", &[Value::Json("{\"b\":1, \"a\":2}".into())], &jsonb, "{\"a\": 2, \"b\": 1}");
    check("$1 = '{\"a\":2,\"b\":1}'", &[Value::Json("{\"b\":1, \"a\":2}".into())], &jsonb, "true");
    check("$1 = 'a '", &[Value::Text("a".into())], &of_postgres(FieldType::Varchar, 1042), "true");
    check("$1 || array['b']", &[Value::Text("a".into())], &of_postgres(FieldType::Varchar, 1043), "{a,b}");
    let unknown = run(&member, "SELECT $1 + $2", &[Value::Null, Value::Null], &[]).unwrap_err();
    assert_eq!(unknown.sqlstate(), "42725");
}

#[test]
fn parameters_mean_what_literals_mean() {
    let member = member();
    let (int, exact) = (declared(FieldType::Integer), declared(FieldType::Decimal(None)));
    let cases: [(&str, &str, Value<'static>, Option<ParameterType>); 9] = [
        ("SELECT x / # FROM t ORDER BY id", "2", Value::Int32(2), int.clone()),
        ("SELECT (x / #)::text FROM t ORDER BY id", "2.0", decimal("2.0"), exact.clone()),
        ("SELECT id FROM t WHERE x = #", "7", Value::Int32(7), int.clone()),
        ("SELECT id FROM t WHERE x = #", "7.0", decimal("7.0"), exact.clone()),
        ("SELECT id FROM t WHERE x > # ORDER BY id", "6.5", decimal("6.5"), exact.clone()),
        ("SELECT id FROM t WHERE id = #", "1", Value::Int32(1), int.clone()),
        ("SELECT id FROM t WHERE id = #", "1.5", decimal("1.5"), exact.clone()),
        ("SELECT n * # FROM t ORDER BY id", "2", Value::Int32(2), int.clone()),
        ("SELECT coalesce(x, #) FROM t ORDER BY id", "5", Value::Int32(5), int),
    ];
    for (text, literal, value, of) in cases {
        let expected = run(&member, &text.replace('#', literal), &[], &[]).unwrap();
        let with_parameter = text.replace('#', "$1");
        let found = run(&member, &with_parameter, from_ref(&value), &[of]).unwrap();
        assert_eq!(found, expected, "{text}, {literal}");
    }
}

#[test]
fn changes_take_parameters_of_their_types() {
    let member = member();
    let int = declared(FieldType::Integer);
    let change = |text: &str, values: &[Value<'_>], types: &[Option<ParameterType>]| {
        assert_eq!(run(&member, text, values, types).unwrap(), ["count 1"], "{text}");
    };
    change(
        "UPDATE t SET x = coalesce(x, $1) + 1 WHERE id = $2",
        &[Value::Int32(5), Value::Int32(2)],
        &[int.clone(), int.clone()],
    );
    change("UPDATE t SET n = n * $1 WHERE id = 1", &[decimal("1.5")], &[declared(FieldType::Decimal(None))]);
    change("UPDATE t SET x = $1 WHERE id = 1", &[decimal("2.5")], &[declared(FieldType::Decimal(None))]);
    change("UPDATE t SET f = f + $1 WHERE id = 1", &[Value::Text("1".into())], &[]);
    assert_eq!(member.rows("SELECT x, n, f FROM t ORDER BY id"), ["3|2.25|3.5", "6|NULL|NULL"]);
    let described = member.describe("UPDATE t SET x = x + $1, n = $2 WHERE id = $3").unwrap();
    let expected = [FieldType::Integer, FieldType::Decimal(Some((10, 2))), FieldType::BigInt];
    assert_eq!(described.parameters.as_ref(), expected);
}
