//! A parameter has the type that the client declares, or else the type of the neighbouring
//! expression. Operators and functions are selected by these types. A statement has the same
//! meaning with literals, with parameters of declared types, and with parameters without types.

use std::slice::from_ref;
use std::sync::mpsc;

use crate::common::{Member, pages, texts};
use filbert_data::{FieldType, Value};
use filbert_grid::query::{Dialect, ParameterType, QueryEngine, SqlError, Statement, StatementResult};

pub(crate) fn run(
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
fn queries_before_a_change_have_parameters() {
    let member = member();
    let check = |text: &str, values: &[Value<'_>], expected: &[&str]| {
        assert_eq!(run(&member, text, values, &[]).unwrap(), expected, "{text}");
    };
    let text = "WITH c AS (SELECT $1::int AS a) UPDATE t SET x = x + c.a FROM c WHERE id = $2 RETURNING id, x";
    check(text, &[Value::Int32(5), Value::Int64(1)], &["1|12"]);
    let text = "WITH c AS (SELECT x AS a FROM t WHERE id = $1) INSERT INTO t (id, x, s) SELECT $2, a, $3 FROM c";
    check(text, &[Value::Int64(1), Value::Int64(3), Value::Text("b".into())], &["count 1"]);
    check("SELECT id, x, s FROM t WHERE id = 3", &[], &["3|12|b"]);
    let text = "WITH c AS (SELECT id FROM t WHERE s = $1) DELETE FROM t USING c WHERE c.id = t.id";
    check(text, &[Value::Text("b".into())], &["count 1"]);
    check("SELECT count(*) FROM t", &[], &["2"]);
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
    // PostgreSQL types that Arrow lacks, by OID: `jsonb` has a canonical text, and trailing blanks
    // of a `bpchar` are insignificant.
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
    let found = described(&member, "UPDATE t SET x = x + $1, n = $2 WHERE id = $3");
    assert_eq!(found, [FieldType::Integer, FieldType::Decimal(Some((10, 2))), FieldType::BigInt]);
}

/// The types of the parameters in the description of a statement.
fn described(member: &Member, text: &str) -> Vec<FieldType> {
    member.describe(text).unwrap().parameters.iter().map(|parameter| parameter.field_type.clone()).collect()
}

#[test]
fn clients_are_told_what_parameters_are_taken_as() {
    let member = member();
    member.change("CREATE TABLE u (id UUID PRIMARY KEY, d DATE, tags TEXT[], b BOOLEAN)");
    let (big, int, text, truth) = (FieldType::BigInt, FieldType::Integer, FieldType::Varchar, FieldType::Boolean);
    let (double, bytes) = (FieldType::Double, FieldType::Binary);
    let ints = FieldType::Array(Box::new(FieldType::Integer));
    let uuids = FieldType::Array(Box::new(FieldType::Uuid));
    // The types that PostgreSQL 15 reports.
    let cases: [(&str, &[FieldType]); 45] = [
        ("SELECT * FROM t LIMIT $1 OFFSET $2", &[big.clone(), big.clone()]),
        ("SELECT id FROM u WHERE id = $1", &[FieldType::Uuid]),
        ("SELECT id FROM u WHERE id IN ($1, $2)", &[FieldType::Uuid, FieldType::Uuid]),
        ("SELECT id FROM u WHERE id = ANY($1)", from_ref(&uuids)),
        ("DELETE FROM u WHERE id = ANY($1)", from_ref(&uuids)),
        ("UPDATE u SET d = $1 WHERE id = $2", &[FieldType::Date, FieldType::Uuid]),
        ("SELECT d FROM u WHERE d = ANY($1)", &[FieldType::Array(Box::new(FieldType::Date))]),
        ("SELECT 1 WHERE $1", from_ref(&truth)),
        ("SELECT CASE WHEN $1 THEN 1 ELSE 2.5 END", from_ref(&truth)),
        ("SELECT generate_series(1, $1)", from_ref(&int)),
        ("SELECT * FROM generate_series(1, $1)", from_ref(&int)),
        ("SELECT left($1, $2)", &[text.clone(), int.clone()]),
        ("SELECT repeat($1, $2)", &[text.clone(), int.clone()]),
        ("SELECT lpad($1, $2, $3)", &[text.clone(), int.clone(), text.clone()]),
        ("SELECT split_part($1, $2, $3)", &[text.clone(), text.clone(), int.clone()]),
        ("SELECT make_date($1, $2, $3)", &[int.clone(), int.clone(), int.clone()]),
        ("SELECT make_time($1, $2, $3)", &[int.clone(), int.clone(), FieldType::Double]),
        ("SELECT to_timestamp($1)", &[FieldType::Double]),
        ("SELECT round(n, $1) FROM t", from_ref(&int)),
        ("SELECT lag(x, $1) OVER (ORDER BY id) FROM t", from_ref(&int)),
        ("SELECT ntile($1) OVER (ORDER BY id) FROM t", from_ref(&int)),
        ("SELECT array_append(ARRAY[1, 2]::int[], $1)", from_ref(&int)),
        ("SELECT array_remove(tags, $1) FROM u", from_ref(&text)),
        ("SELECT array_length(tags, $1) FROM u", from_ref(&int)),
        ("SELECT $1 IN (1, 2)", from_ref(&int)),
        ("SELECT s LIKE ANY($1) FROM t", &[FieldType::Array(Box::new(FieldType::Varchar))]),
        ("SELECT s NOT ILIKE ALL($1) FROM t", &[FieldType::Array(Box::new(FieldType::Varchar))]),
        ("SELECT coalesce($1, $2)", &[text.clone(), text.clone()]),
        ("SELECT min($1), max($2)", &[text.clone(), text.clone()]),
        ("SELECT bool_and($1), every($2), bool_or($3) OVER ()", &[truth.clone(), truth.clone(), truth.clone()]),
        ("SELECT stddev($1), corr($2, $3)", &[double.clone(), double.clone(), double.clone()]),
        ("SELECT count(*) FILTER (WHERE $1)", from_ref(&truth)),
        ("SELECT $1 ^ 2, 3 ^ $2, $3 ^ $4", &[double.clone(), double.clone(), double.clone(), double.clone()]),
        ("SELECT id::smallint << $1 FROM t", from_ref(&int)),
        ("SELECT array_append($1, 1), array_prepend(1, $2)", &[ints.clone(), ints.clone()]),
        ("SELECT array_remove($1, 1), array_position($2, 1)", &[ints.clone(), ints.clone()]),
        ("SELECT array_append($1, 'a')", &[FieldType::Array(Box::new(FieldType::Varchar))]),
        ("SELECT 1 = ANY($1)", from_ref(&ints)),
        ("SELECT overlay($1 PLACING '\\x01'::bytea FROM 1)", from_ref(&bytes)),
        ("SELECT sum(id) OVER (ORDER BY id RANGE $1 PRECEDING) FROM t", from_ref(&big)),
        ("SELECT count(*) OVER (ORDER BY d RANGE $1 PRECEDING) FROM u", &[FieldType::Interval]),
        ("VALUES ($1), ($2), ('1'::float8)", &[double.clone(), double.clone()]),
        ("SELECT * FROM (VALUES ($1), ($2), (1), (2.5::float8)) v", &[double.clone(), double.clone()]),
        ("VALUES ($1), ('2024-01-01'::date), ($2)", &[FieldType::Date, FieldType::Date]),
        ("SELECT min($1) UNION SELECT 'a'::char(3)", from_ref(&text)),
    ];
    for (statement, expected) in cases {
        assert_eq!(described(&member, statement), expected, "{statement}");
    }
    // Values of the reported types are accepted.
    let run = |text: &str, values: &[Value<'_>]| run(&member, text, values, &[]).unwrap();
    let uuid = || Value::Uuid("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11".parse().unwrap());
    assert_eq!(run("INSERT INTO u (id, b) VALUES ($1, true)", &[uuid()]), ["count 1"]);
    for condition in ["id = $1", "id IN ($1, $1)", "id >= $1 AND id <= $1"] {
        assert_eq!(run(&format!("SELECT b FROM u WHERE {condition}"), &[uuid()]), ["true"], "{condition}");
    }
    for condition in ["id = ANY($1)", "id = ANY($1::uuid[])", "ARRAY[id] && $1::uuid[]"] {
        let values = [Value::Array(vec![uuid(), Value::Null])];
        let text = format!("SELECT b FROM u WHERE {condition}");
        let found = self::run(&member, &text, &values, &[declared(uuids.clone())]).unwrap();
        assert_eq!(found, ["true"], "{condition}");
    }
    let values = [Value::Int64(1), Value::Int64(1)];
    assert_eq!(run("SELECT id FROM t ORDER BY id LIMIT $1 OFFSET $2", &values), ["2"]);
    let patterns = [Value::Array(vec![Value::Text("b%".into()), Value::Text("_".into())])];
    assert_eq!(run("SELECT s LIKE ANY($1) FROM t ORDER BY id", &patterns), ["true", "NULL"]);
}

#[test]
fn digits_that_come_about_are_not_told() {
    let member = member();
    let told = |text: &str| -> Vec<Option<u32>> {
        let description = member.describe(text).unwrap();
        description.columns.as_ref().unwrap().iter().map(|column| column.pg_type).collect()
    };
    // `None` for a column with its own type; the OIDs of `numeric` and `numeric[]` for numbers
    // without declared digits.
    let (own, free, array) = (None, Some(1700), Some(1231));
    assert_eq!(
        told("SELECT n, n * 2, n::numeric(5, 1), -n, max(n) OVER (), 1.10 FROM t"),
        [own, free, own, free, free, free]
    );
    assert_eq!(
        told("SELECT n, sum(n), avg(n), array_agg(n), count(*) FROM t GROUP BY n"),
        [own, free, own, array, own]
    );
    assert_eq!(told("SELECT a, b FROM (SELECT n AS a, n + 1 AS b FROM t ORDER BY n LIMIT 1) q"), [own, free]);
    assert_eq!(told("SELECT n FROM t UNION SELECT n FROM t"), [own]);
    assert_eq!(told("SELECT n FROM t UNION SELECT n + 1 FROM t"), [free]);
    assert_eq!(told("SELECT l.n, r.m FROM t l JOIN (SELECT id, n * 3 AS m FROM t) r USING (id)"), [own, free]);
    // A table with a computed column keeps all digits of its values.
    member.change("CREATE TABLE c AS SELECT id, n * 2 AS m, n FROM t");
    member.change("INSERT INTO c VALUES (3, 1.23456, 1.23456)");
    assert_eq!(member.rows("SELECT m::text, n::text FROM c WHERE id = 3"), ["1.23456|1.23"]);
}

#[test]
fn parameters_among_rows_of_values_have_the_type_of_the_other_rows() {
    let member = member();
    let literals = [
        "1::int",
        "1::bigint",
        "1.5::float8",
        "'a'::text",
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
        "'{}'::jsonb",
        "'{}'::json",
        "'2024-01-02'::date",
        "'10:00'::time",
        "'2024-01-02'::timestamp",
        "'2024-01-02'::timestamptz",
        "'1 day'::interval",
        r"'\x01'::bytea",
        "true",
        "'{1}'::int[]",
        "'{a}'::text[]",
    ];
    let told = |text: &str| {
        let description = member.describe(text).unwrap();
        let column = description.columns.as_ref().unwrap()[0].clone();
        let parameters = description.parameters.iter().map(|found| (found.field_type.clone(), found.pg_type));
        (parameters.collect::<Vec<_>>(), (column.field_type, column.pg_type))
    };
    for literal in literals {
        let (_, of_literal) = told(&format!("SELECT {literal} AS column1"));
        for rows in 2..=5 {
            for place in 0..rows {
                let row = |at: usize| if at == place { "($1)".to_owned() } else { format!("({literal})") };
                let values = (0..rows).map(row).collect::<Vec<_>>().join(", ");
                for text in [
                    format!("VALUES {values}"),
                    format!("SELECT column1 FROM (VALUES {values}) AS v"),
                    format!("VALUES {values} LIMIT 1"),
                ] {
                    let found = told(&text);
                    assert_eq!(found.1, of_literal, "{text}");
                    assert_eq!(found.0.iter().map(|(found, _)| found).collect::<Vec<_>>(), [&of_literal.0], "{text}");
                }
            }
        }
    }
}

#[test]
fn parameters_beside_literals_mean_the_same_wherever_they_stand() {
    let member = member();
    member.change("CREATE TABLE c (id INT PRIMARY KEY, a INT, s TEXT)");
    let text = |value: &'static str| Value::Text(value.into());
    let numbers = || Value::Array(vec![Value::Int32(3), Value::Int32(4)]);
    let forms: Vec<(&str, Value<'static>, &str)> = vec![
        ("'a' || $1", text("z"), "'a' || 'z'"),
        ("$1 || 'a'", text("z"), "'z' || 'a'"),
        ("coalesce($1, 'm')", text("z"), "coalesce('z', 'm')"),
        ("coalesce($1, 'm')", Value::Null, "coalesce(NULL, 'm')"),
        ("upper(coalesce($1, 'm'))", text("z"), "upper(coalesce('z', 'm'))"),
        ("CASE WHEN c.a = 3 THEN 'x' ELSE $1 END", text("z"), "CASE WHEN c.a = 3 THEN 'x' ELSE 'z' END"),
        ("CASE $1 WHEN 'q' THEN 'a' ELSE 'b' END", text("q"), "CASE 'q' WHEN 'q' THEN 'a' ELSE 'b' END"),
        ("nullif('m', $1)", text("z"), "nullif('m', 'z')"),
        ("nullif($1, 'm')", text("m"), "nullif('m', 'm')"),
        ("greatest('m', $1)", text("z"), "greatest('m', 'z')"),
        ("least($1, 'm', c.s)", text("z"), "least('z', 'm', c.s)"),
        ("$1 IN ('a', 'b')", text("b"), "'b' IN ('a', 'b')"),
        ("'a' IN ($1, 'b')", text("a"), "'a' IN ('a', 'b')"),
        ("$1 BETWEEN 'a' AND 'c'", text("d"), "'d' BETWEEN 'a' AND 'c'"),
        ("'abc' LIKE $1", text("a%"), "'abc' LIKE 'a%'"),
        ("c.a = ANY($1)", numbers(), "c.a = ANY('{3,4}')"),
        ("c.a <> ALL($1)", numbers(), "c.a <> ALL('{3,4}')"),
        ("c.a > ANY($1)", numbers(), "c.a > ANY('{3,4}')"),
        ("c.s = ANY($1)", Value::Array(vec![text("y")]), "c.s = ANY('{y}')"),
    ];
    for (form, value, literal) in forms {
        let write = || {
            member.change("DELETE FROM c");
            member.change("INSERT INTO c VALUES (1, 3, 'y')");
        };
        write();
        let expected = member.rows(&format!("SELECT ({literal})::text FROM c"));
        for place in [
            "SELECT ({})::text FROM c WHERE id = 1",
            "SELECT ({})::text FROM c WHERE a = 3",
            "UPDATE c SET s = ({})::text WHERE id = 1 RETURNING s",
            "UPDATE c SET s = ({})::text WHERE a = 3 RETURNING s",
            "UPDATE c SET a = a WHERE id = 1 RETURNING ({})::text",
            "DELETE FROM c WHERE a = 3 RETURNING ({})::text",
            "INSERT INTO c VALUES (1, 5, 'n') ON CONFLICT (id) DO UPDATE SET s = ({})::text RETURNING s",
        ] {
            write();
            let statement = place.replace("{}", form);
            let found = run(&member, &statement, std::slice::from_ref(&value), &[]);
            assert_eq!(found.unwrap_or_else(|error| panic!("{statement}: {error:?}")), expected, "{statement}");
        }
    }
}
