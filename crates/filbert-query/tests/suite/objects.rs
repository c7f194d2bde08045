//! Members of objects: their types, conditions on them, and changes of them.

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::{Dialect, Session, StatementResult};
use std::sync::Arc;

#[track_caller]
fn sqlstate(member: &Member, text: &str, expected: &str) {
    let error = member.error(text);
    assert_eq!(error.sqlstate(), expected, "{text}: {error}");
}

#[track_caller]
fn check(member: &Member, cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        assert_eq!(member.rows(text), *expected, "{text}");
    }
}

/// Objects with members of all kinds.
fn things() -> Member {
    let member = Member::of(Dialect::Crate);
    member.change("CREATE TABLE things (id INT PRIMARY KEY, o OBJECT)");
    for (id, object) in [
        (1, r#"{"n": 5, "t": "b", "f": true, "tags": ["x", "y"], "in": {"deep": 1.5}}"#),
        (2, r#"{"n": 10, "t": "a\"q", "f": false, "tags": [1, 2], "in": {"deep": 2}}"#),
        (3, r#"{"n": 7.5, "t": null}"#),
        (4, r#"{"t": "10"}"#),
    ] {
        member.change(&format!("INSERT INTO things VALUES ({id}, '{object}')"));
    }
    member
}

#[test]
fn members_are_what_they_are() {
    let member = things();
    check(
        &member,
        &[
            ("SELECT o['n'], o['t'], o['in'] FROM things WHERE id = 1", &[r#"5|"b"|{"deep": 1.5}"#]),
            (
                "SELECT o['tags'], o['tags'][1], o['in']['deep'], o['no'], o['in']['no'] FROM things WHERE id = 1",
                &[r#"["x", "y"]|"x"|1.5|NULL|NULL"#],
            ),
            ("SELECT o['t'] FROM things WHERE id = 3", &["NULL"]),
            ("SELECT count(*) FROM things WHERE o['t'] IS NULL", &["1"]),
            (
                "SELECT n, t FROM (SELECT o['n'] AS n, o['t'] AS t FROM things) s WHERE n > 5 AND t > 'a'",
                &[r#"10|"a\"q""#],
            ),
        ],
    );
}

#[test]
fn members_compare_as_what_they_are_compared_with() {
    let member = things();
    let found = |condition: &str, expected: &[&str]| {
        check(&member, &[(&format!("SELECT id FROM things WHERE {condition} ORDER BY id"), expected)]);
    };
    found("o['n'] > 5", &["2", "3"]);
    found("5 < o['n']", &["2", "3"]);
    found("o['n'] = 5", &["1"]);
    found("o['n'] = '5'", &["1"]);
    found("o['n'] <> 5", &["2", "3"]);
    found("NOT (o['n'] = 5)", &["2", "3"]);
    found("o['n'] BETWEEN 5 AND 7.5", &["1", "3"]);
    found("o['n'] NOT BETWEEN 5 AND 7.5", &["2"]);
    found("o['n'] IN (5, 10)", &["1", "2"]);
    found("o['n'] IN (5.0, 7.5)", &["1", "3"]);
    found("o['t'] IN ('b', '10')", &["1", "4"]);
    found("o['t'] NOT IN ('b', '10')", &["2"]);
    found("o['t'] = 'a\"q'", &["2"]);
    found("o['t'] = 10", &["4"]);
    found("o['t'] LIKE 'a%'", &["2"]);
    found("o['t'] ~ '^[0-9]+$'", &["4"]);
    found("o['f']", &["1"]);
    found("NOT o['f']", &["2"]);
    found("o['f'] = true AND o['n'] < 100", &["1"]);
    found("o['f'] AND id > 0", &["1"]);
    found("'x' = ANY(o['tags'])", &["1"]);
    found("2 = ANY(o['tags'])", &["2"]);
    found("o['in']['deep'] * 2 = 3", &["1"]);
    found("o['n'] = id * 5", &["1", "2"]);
    found("o['n'] = o['n']", &["1", "2", "3"]);
    found("o['n'] IN (SELECT id * 5 FROM things)", &["1", "2"]);
    found("o['n'] IN (SELECT o['n'] FROM things WHERE id = 2)", &["2"]);
    found("10 IN (SELECT o['n'] FROM things) AND id = 1", &["1"]);
    found("o['n'] IS DISTINCT FROM 5", &["2", "3", "4"]);
    found("o['in'] = '{\"deep\":1.5}'", &["1"]);
    found("CASE o['n'] WHEN 5 THEN true ELSE false END", &["1"]);
    found("coalesce(o['n'], 0) < 6", &["1", "4"]);
}

#[test]
fn parameters_are_taken_as_they_come() {
    let member = things();
    let ids = |condition: &str, parameters: &[Value<'_>]| {
        member.rows_with(&format!("SELECT id FROM things WHERE {condition} ORDER BY id"), parameters)
    };
    for _ in 0..2 {
        assert_eq!(ids("o['n'] > ?", &[Value::Int64(7)]), ["2", "3"]);
        assert_eq!(ids("o['n'] > ?", &[Value::Float64(7.5)]), ["2"]);
        assert_eq!(ids("o['n'] > ?", &[Value::text("7")]), ["2", "3"]);
        assert_eq!(ids("o['n'] IN (?, ?)", &[Value::Int64(5), Value::Int64(10)]), ["1", "2"]);
        assert_eq!(ids("o['n'] BETWEEN ? AND ?", &[Value::Int64(6), Value::Int64(10)]), ["2", "3"]);
        assert_eq!(ids("o['t'] = ?", &[Value::text("b")]), ["1"]);
        assert_eq!(ids("o['f'] = ?", &[Value::Boolean(false)]), ["2"]);
        assert_eq!(ids("id = ? AND o['n'] = ?", &[Value::Int32(2), Value::Int64(10)]), ["2"]);
    }
}

#[test]
fn members_are_computed_with_ordered_and_aggregated() {
    let member = things();
    check(
        &member,
        &[
            ("SELECT o['n'] + 1, o['n'] / 2, -o['n'], o['n'] * 1.5 FROM things WHERE id = 1", &["6|2|-5|7.5"]),
            ("SELECT o['n'] / 2, abs(o['n']), o['t'] || '!' FROM things WHERE id = 3", &["3.75|7.5|NULL"]),
            ("SELECT upper(o['t']), length(o['t']), o['n'] || '' FROM things WHERE id = 2", &["A\"Q|3|10"]),
            ("SELECT o['n']::int + 1, o['n']::text, CAST(o['t'] AS text) FROM things WHERE id = 1", &["6|5|b"]),
            ("SELECT id FROM things ORDER BY o['n'], id", &["1", "3", "2", "4"]),
            ("SELECT id FROM things ORDER BY o['n'] DESC NULLS LAST, id", &["2", "3", "1", "4"]),
            ("SELECT id FROM (SELECT id, o['n'] AS n FROM things) s ORDER BY n LIMIT 2", &["1", "3"]),
            ("SELECT sum(o['n']), min(o['n']), max(o['n']), count(o['n']) FROM things", &["22.5|5|10|3"]),
            ("SELECT sum(o['n']) FROM things WHERE id < 3", &["15"]),
            ("SELECT avg(o['n']) FROM things", &["7.5"]),
            ("SELECT sum(n), max(n) FROM (SELECT o['n'] AS n FROM things) s", &["22.5|10"]),
            ("SELECT min(o['t']), max(o['t']) FROM things", &[r#""10"|"b""#]),
            (
                "SELECT o['n'], count(*) FROM things GROUP BY o['n'] HAVING o['n'] > 6 ORDER BY o['n']",
                &["7.5|1", "10|1"],
            ),
            ("SELECT count(*) FROM things GROUP BY o['f'] HAVING sum(o['n']) > 9", &["1"]),
            ("SELECT max(o['n']) + 1 FROM things", &["11"]),
            ("SELECT DISTINCT o['f'] FROM things WHERE o['f'] IS NOT NULL ORDER BY 1", &["false", "true"]),
            ("SELECT rank() OVER (ORDER BY o['n']) FROM things WHERE id = 1", &["1"]),
            ("SELECT coalesce(o['t'], 'none') FROM things WHERE id = 3", &["none"]),
            ("SELECT coalesce(o['t'], o['n']) FROM things WHERE id = 3", &["7.5"]),
            ("SELECT CASE WHEN o['f'] THEN o['n'] ELSE o['t'] END FROM things WHERE id = 1", &["5"]),
            (
                "SELECT n::int FROM (SELECT o['n'] AS n FROM things WHERE id = 1 UNION ALL SELECT 2) s ORDER BY 1 DESC",
                &["5", "2"],
            ),
            ("SELECT 'x' UNION ALL SELECT o['t'] FROM things WHERE id = 1 ORDER BY 1 DESC", &["x", "b"]),
            ("SELECT o['t'] FROM things WHERE id = 1 UNION ALL SELECT NULL ORDER BY 1", &[r#""b""#, "NULL"]),
            ("SELECT a.id FROM things a JOIN things b ON a.o['n'] = b.o['n'] WHERE b.id = 2", &["2"]),
            ("SELECT a.id FROM things a JOIN things b ON a.o['n'] = b.id * 5 ORDER BY 1", &["1", "2"]),
        ],
    );
    sqlstate(&member, "SELECT o['t'] + 1 FROM things WHERE id = 1", "22P02");
    sqlstate(&member, "SELECT o['n'] / 0 FROM things WHERE id = 1", "22012");
    sqlstate(&member, "SELECT CAST(o['t'] AS INT) FROM things WHERE id = 1", "22P02");
    sqlstate(&member, "SELECT sum(upper(o['t'])) FROM things", "42883");
}

#[test]
fn declared_members_have_their_types() {
    let member = Member::of(Dialect::Crate);
    member.change(
        "CREATE TABLE t (id INT PRIMARY KEY, o OBJECT(DYNAMIC) AS (a INT, b TEXT, at TIMESTAMP WITH TIME ZONE, \
         tags ARRAY(TEXT), \"In\" OBJECT AS (x DOUBLE PRECISION)))",
    );
    let object = r#"{"a": 3, "b": "x", "at": 1500, "tags": ["p", "q"], "In": {"x": 2}, "more": 1}"#;
    member.change(&format!("INSERT INTO t VALUES (1, '{object}'), (2, '{{\"a\": \"7\", \"b\": 5}}')"));
    check(
        &member,
        &[
            (
                "SELECT o['a'], o['b'], o['at'], o['tags'], o['In']['x'] FROM t WHERE id = 1",
                &["3|x|1970-01-01T00:00:01.500Z|[p, q]|2.0"],
            ),
            ("SELECT o['a'], o['b'], o['more'] FROM t WHERE id = 2", &["7|5|NULL"]),
            ("SELECT sum(o['a']), max(o['b']), sum(o['more']) FROM t", &["10|x|1"]),
            ("SELECT i['x'] FROM (SELECT o['In'] AS i FROM t WHERE id = 1) s", &["2.0"]),
            ("SELECT id FROM t WHERE o['tags'][1] = 'p'", &["1"]),
            ("SELECT id FROM t WHERE 'q' = ANY(o['tags'])", &["1"]),
        ],
    );
    let described = member.describe("SELECT o['a'], o['b'], o['In']['x'], o['more'] FROM t").unwrap();
    let types: Vec<String> =
        described.columns.as_ref().unwrap().iter().map(|column| column.field_type.to_string()).collect();
    assert_eq!(types, ["INTEGER", "VARCHAR", "DOUBLE", "JSON"]);
}

#[test]
fn what_is_no_object_is_refused() {
    let member = things();
    for broken in ["{", "[1]", "5", "x", r#"{"a": }"#] {
        sqlstate(&member, &format!("INSERT INTO things VALUES (9, '{broken}')"), "22P02");
        sqlstate(&member, &format!("UPDATE things SET o = '{broken}' WHERE id = 1"), "22P02");
        sqlstate(&member, &format!("UPDATE things SET o = '{broken}' WHERE id > 0"), "22P02");
    }
    member.change("CREATE TABLE documents (id INT PRIMARY KEY, j JSON, k JSONB, many ARRAY(OBJECT))");
    member.change("INSERT INTO documents VALUES (1, '[1]', '5', '[{\"a\": 1}]')");
    sqlstate(&member, "INSERT INTO documents (id, j) VALUES (2, '[1')", "22P02");
    sqlstate(&member, "INSERT INTO documents (id, k) VALUES (2, 'x')", "22P02");
    assert_eq!(member.rows("SELECT count(*) FROM documents"), ["1"]);
}

#[test]
fn members_are_set() {
    let member = things();
    let objects = |id: i32| member.rows(&format!("SELECT o FROM things WHERE id = {id}"));
    // By key, and by any condition.
    assert_eq!(member.change("UPDATE things SET o['n'] = 6, o['new']['deep'] = 'x' WHERE id = 3"), 1);
    assert_eq!(objects(3), [r#"{"n":6,"t":null,"new":{"deep":"x"}}"#]);
    assert_eq!(member.change("UPDATE things SET o['n'] = o['n'] + 1, o['t'] = NULL WHERE o['n'] = 6"), 1);
    assert_eq!(objects(3), [r#"{"n":7,"t":null,"new":{"deep":"x"}}"#]);
    member.change("INSERT INTO things (id) VALUES (5)");
    assert_eq!(member.change("UPDATE things SET o['a']['b'] = true WHERE o IS NULL"), 1);
    assert_eq!(objects(5), [r#"{"a":{"b":true}}"#]);
    for id in [5, 4] {
        let text = format!("UPDATE things SET o['p'] = ?, o['q'] = ?, o['r'] = ? WHERE id = {id}");
        let values = [Value::Int64(1), Value::text("one"), Value::Json(r#"{"is": [1]}"#.into())];
        assert_eq!(member.change_with(&text, &values), 1);
    }
    assert_eq!(objects(4), [r#"{"t":"10","p":1,"q":"one","r":{"is": [1]}}"#]);
    let values = [Value::Int64(2), Value::Array(vec![Value::Int64(1), Value::Null])];
    assert_eq!(member.change_with("UPDATE things SET o['p'] = ?, o['r'] = ? WHERE o['q'] = 'one'", &values), 2);
    assert_eq!(objects(5), [r#"{"a":{"b":true},"p":2,"q":"one","r":[1,null]}"#]);
    // Setting a member of a value that is not an object is an error, and so is assigning a column
    // twice.
    sqlstate(&member, "UPDATE things SET o['q']['x'] = 1 WHERE id = 4", "22P02");
    sqlstate(&member, "UPDATE things SET o = '{}', o['q'] = 1 WHERE id = 4", "42601");
    let told = member.rows("UPDATE things SET o['n'] = 0 WHERE id = 1 RETURNING o['n'], o['n'] + 1, o['t']");
    assert_eq!(told, [r#"0|1|"b""#]);
}

#[test]
fn members_go_into_columns() {
    let member = things();
    member.change(
        "CREATE TABLE plain (id INT PRIMARY KEY, n INT, t TEXT, d DOUBLE PRECISION, o OBJECT, tags ARRAY(TEXT))",
    );
    member.change(
        "INSERT INTO plain SELECT id, o['n'], o['t'], o['in']['deep'], o['in'], o['tags'] FROM things WHERE id < 3",
    );
    assert_eq!(
        member.rows("SELECT * FROM plain ORDER BY id"),
        [r#"1|5|b|1.5|{"deep": 1.5}|[x, y]"#, r#"2|10|a"q|2.0|{"deep": 2}|[1, 2]"#,]
    );
    member.change("UPDATE plain SET n = o['deep'], t = o['deep'] WHERE id = 2");
    member.change("UPDATE plain SET t = o['deep'] WHERE n > 2");
    assert_eq!(member.rows("SELECT n, t FROM plain ORDER BY id"), ["5|1.5", "2|2"]);
    sqlstate(&member, "UPDATE plain SET n = o['deep'] WHERE id = 1", "22P02");
    member.change(
        "INSERT INTO plain (id, o) VALUES (1, '{\"deep\": 9}') ON CONFLICT (id) DO UPDATE SET t = excluded.o['deep']",
    );
    assert_eq!(member.rows("SELECT t FROM plain WHERE id = 1"), ["9"]);
    member.change(
        "CREATE TABLE made (id INT PRIMARY KEY, o OBJECT, n INT GENERATED ALWAYS AS (o['n'] + 1), CHECK (o['n'] > 0))",
    );
    member.change("INSERT INTO made (id, o) VALUES (1, '{\"n\": 4}')");
    assert_eq!(member.rows("SELECT n FROM made"), ["5"]);
    sqlstate(&member, "INSERT INTO made (id, o) VALUES (2, '{\"n\": 0}')", "23514");
}

#[test]
fn rows_are_deleted_by_their_members() {
    let member = things();
    assert_eq!(member.change("DELETE FROM things WHERE o['n'] >= 7 AND o['n'] < 8"), 1);
    assert_eq!(member.change("DELETE FROM things WHERE o['f']"), 1);
    assert_eq!(member.change_with("DELETE FROM things WHERE o['n'] = ?", &[Value::Int64(10)]), 1);
    assert_eq!(member.rows("SELECT id FROM things"), ["4"]);
}

#[test]
fn documents_of_postgresql_stay_what_they_are() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE d (id INT PRIMARY KEY, j JSONB)");
    member.change("INSERT INTO d VALUES (1, '{\"n\": 5, \"t\": \"x\", \"list\": [7, 8]}')");
    check(
        &member,
        &[
            ("SELECT j -> 't', j ->> 't', j['t'], j -> 'list' -> 0, j['list'][0] FROM d", &[r#""x"|x|"x"|7|7"#]),
            ("SELECT id FROM d WHERE j ->> 't' = 'x' AND j -> 't' = '\"x\"' AND j['n'] > '4'", &["1"]),
            ("SELECT (j ->> 'n')::int + 1 FROM d", &["6"]),
        ],
    );
    member.change("UPDATE d SET j['n'] = 6, j['new'] = '\"y\"' WHERE id = 1");
    assert_eq!(member.rows("SELECT j FROM d"), [r#"{"n": 6, "t": "x", "new": "y", "list": [7, 8]}"#]);
}

#[test]
fn names_are_looked_for_along_the_path() {
    let with_path = |dialect, path: &str| {
        let session = Session::new(dialect, "somebody").with_defaults([("search_path".to_owned(), path.to_owned())]);
        Some(Arc::new(session))
    };
    for dialect in [Dialect::Crate, Dialect::Postgres] {
        let mut member = Member::of(dialect);
        member.change("CREATE TABLE t (a INT PRIMARY KEY)");
        member.change("CREATE TABLE only_here (a INT PRIMARY KEY)");
        member.change("INSERT INTO t VALUES (1)");
        assert_eq!(member.rows("SELECT a FROM t"), ["1"]);
        let default = member.session.clone();
        member.session = with_path(dialect, "mine");
        member.change("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)");
        member.change("CREATE VIEW v AS SELECT a + 100 AS a FROM t");
        member.change("INSERT INTO t VALUES (2, 'x')");
        member.change("INSERT INTO t (a) SELECT t.a + 1 FROM t");
        member.change("UPDATE t SET b = 'y' WHERE t.a = 3");
        assert_eq!(member.rows("SELECT t.a, b FROM t ORDER BY t.a"), ["2|x", "3|y"]);
        assert_eq!(member.rows("WITH t AS (SELECT 9 AS a) SELECT a FROM t"), ["9"]);
        assert_eq!(member.rows("SELECT count(*) FROM only_here"), ["0"]);
        let named = ("SELECT 't'::regclass::text, 'mine.t'::regclass::text", "t|t");
        assert_eq!(member.rows(named.0), [named.1]);
        let visible = "SELECT n.nspname, pg_table_is_visible(c.oid) FROM pg_class c JOIN pg_namespace n ON \
                       n.oid = c.relnamespace WHERE c.relname = 't' ORDER BY 1";
        let default_schema = if dialect == Dialect::Crate { "doc" } else { "public" };
        let mut expected = [format!("{default_schema}|false"), "mine|true".to_owned()];
        expected.sort();
        assert_eq!(member.rows(visible), expected);
        let listed = "SELECT table_schema FROM information_schema.tables WHERE table_name = 't' ORDER BY 1";
        let mut schemas = [default_schema, "mine"];
        schemas.sort_unstable();
        assert_eq!(member.rows(listed), schemas);
        if dialect == Dialect::Crate {
            assert_eq!(member.rows("SHOW TABLES LIKE 't'"), ["t"]);
        }

        // Other sessions use its qualified name, and the view keeps its meaning.
        member.session = default;
        assert_eq!(member.rows("SELECT a FROM t"), ["1"]);
        assert_eq!(member.rows("SELECT a FROM mine.t ORDER BY a"), ["2", "3"]);
        assert_eq!(member.rows("SELECT a FROM mine.v ORDER BY a"), ["102", "103"]);
        member.change("SET search_path TO mine, public");
        assert_eq!(member.rows("SELECT a FROM t ORDER BY a"), ["2", "3"]);
        if dialect == Dialect::Postgres {
            assert_eq!(member.error("ALTER TABLE t RENAME TO u").sqlstate(), "2BP01");
            member.change("DROP VIEW v");
        }
        member.change("ALTER TABLE t RENAME TO u");
        assert_eq!(member.rows("SELECT a FROM t"), ["1"]);
        assert_eq!(member.rows("SELECT a FROM mine.u ORDER BY a"), ["2", "3"]);
        member.change("CREATE INDEX by_b ON u (b)");
        member.change("TRUNCATE u");
        member.change("DROP TABLE u");
        assert_eq!(member.rows("SELECT a FROM t"), ["1"]);
    }
}

#[test]
fn a_schema_that_is_not_there_is_passed_over_by_postgresql() {
    let member = Member::of(Dialect::Postgres);
    member.change("SET search_path TO nothing, public");
    member.change("CREATE TABLE t (a INT)");
    assert_eq!(member.rows("SELECT table_schema FROM information_schema.tables WHERE table_name = 't'"), ["public"]);
    member.change("CREATE SCHEMA nothing");
    member.change("CREATE TABLE t (a INT)");
    assert_eq!(member.rows("SELECT count(*) FROM nothing.t"), ["0"]);
    assert!(matches!(member.run("DROP TABLE t, public.t", &[]), Ok(StatementResult::Count(_))));
}

#[test]
fn a_view_over_members_means_the_same_to_hazelcasts_clients() {
    let member = things();
    member.change("CREATE VIEW numbers AS SELECT id, o['n'] AS n FROM things");
    let member = Member { session: None, ..member };
    check(
        &member,
        &[
            ("SELECT id FROM numbers WHERE n IS NOT NULL ORDER BY n", &["1", "3", "2"]),
            ("SELECT id FROM numbers WHERE n BETWEEN 6 AND 20 ORDER BY id", &["2", "3"]),
            ("SELECT min(n), max(n), sum(n), avg(n) FROM numbers", &["5|10|22.5|7.5"]),
        ],
    );
}
