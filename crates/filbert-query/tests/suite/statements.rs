//! Statements against a member, and their results, which do not depend on the kind of execution.

use std::sync::{Arc, mpsc};

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::{ColumnMeta, Dialect, QueryEngine, Statement};

const PEOPLE: &str = "CREATE MAPPING people (__key INT, name VARCHAR, age BIGINT, city VARCHAR) TYPE IMap \
                      OPTIONS ('keyFormat'='int', 'valueFormat'='json-flat')";

fn people() -> Member {
    let member = Member::start();
    member.change(PEOPLE);
    let count = member.change(
        "INSERT INTO people VALUES (1, 'Ada', 36, 'London'), (2, 'Alan', 41, 'London'), (3, 'Grace', 85, 'New York'), \
         (4, 'Edsger', 72, 'Nuenen'), (5, 'Nobody', NULL, NULL)",
    );
    assert_eq!(count, 5);
    member
}

#[test]
fn rows_that_were_inserted_are_selected() {
    let member = people();
    assert_eq!(member.rows("SELECT name, age FROM people WHERE __key = 3"), ["Grace|85"]);
    assert_eq!(member.rows("SELECT * FROM people ORDER BY __key LIMIT 2"), ["1|Ada|36|London", "2|Alan|41|London"]);
    assert_eq!(member.rows("SELECT count(*) FROM people"), ["5"]);
    assert_eq!(member.rows("SELECT name FROM people WHERE age > 40 AND city = 'London'"), ["Alan"]);
    assert_eq!(member.sorted("SELECT name FROM people WHERE __key IN (1, 4)"), ["Ada", "Edsger"]);
}

#[test]
fn a_lookup_by_key_is_short_the_second_time() {
    let member = people();
    for key in [1, 2, 1] {
        let rows = member.rows_with("SELECT name FROM people WHERE __key = ?", &[Value::Int32(key)]);
        assert_eq!(rows, [if key == 1 { "Ada" } else { "Alan" }]);
    }
    assert!(member.engine.statistics().plans.hits >= 2);
    assert_eq!(
        member.rows("EXPLAIN SELECT name FROM people WHERE __key = 1"),
        ["ShortLookup: map=people, access=one key, columns=[name], filter=__key = Int32(1)"]
    );
}

#[test]
fn groups_joins_and_subqueries_are_answered() {
    let member = people();
    assert_eq!(
        member.rows("SELECT city, count(*), max(age) FROM people WHERE city IS NOT NULL GROUP BY city ORDER BY city"),
        ["London|2|41", "New York|1|85", "Nuenen|1|72"]
    );
    assert_eq!(
        member.rows("SELECT a.name, b.name FROM people a JOIN people b ON a.city = b.city AND a.__key < b.__key"),
        ["Ada|Alan"]
    );
    assert_eq!(member.rows("SELECT name FROM people WHERE age = (SELECT max(age) FROM people)"), ["Grace"]);
    assert_eq!(
        member.rows(
            "SELECT name FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.city = p.city AND q.__key <> p.__key) \
             ORDER BY name"
        ),
        ["Ada", "Alan"]
    );
}

#[test]
fn updates_and_deletes_honour_their_condition_exactly() {
    let member = people();
    assert_eq!(member.change("UPDATE people SET age = age + 1 WHERE city = 'London'"), 2);
    assert_eq!(member.rows("SELECT age FROM people WHERE city = 'London' ORDER BY age"), ["37", "42"]);
    assert_eq!(member.change("UPDATE people SET city = 'Paris' WHERE __key = 4"), 1);
    assert_eq!(member.rows("SELECT name, age, city FROM people WHERE __key = 4"), ["Edsger|72|Paris"]);
    assert_eq!(member.change("UPDATE people SET city = 'Paris' WHERE __key = 77"), 0);
    let text = "DELETE FROM people WHERE __key IN (SELECT __key FROM people WHERE age > 80)";
    assert_eq!(member.change(text), 1);
    assert_eq!(member.change("DELETE FROM people WHERE EXISTS (SELECT 1 FROM people q WHERE q.age > 1000)"), 0);
    assert_eq!(member.change("DELETE FROM people WHERE __key = 1"), 1);
    assert_eq!(member.sorted("SELECT name FROM people"), ["Alan", "Edsger", "Nobody"]);
    assert_eq!(member.change("DELETE FROM people"), 3);
}

#[test]
fn an_insert_of_a_key_that_is_there_is_an_error_and_a_sink_is_not() {
    let member = people();
    assert_eq!(member.error("INSERT INTO people VALUES (1, 'Eve', 1, 'X')").message, "Duplicate key");
    assert_eq!(member.change("SINK INTO people VALUES (1, 'Eve', 1, 'X')"), 1);
    assert_eq!(member.rows("SELECT name FROM people WHERE __key = 1"), ["Eve"]);
    assert_eq!(member.change("INSERT INTO people SELECT __key + 100, name, age, city FROM people"), 5);
    assert_eq!(member.rows("SELECT count(*) FROM people"), ["10"]);
}

#[test]
fn comparisons_with_null_are_unknown() {
    let member = people();
    assert_eq!(member.rows("SELECT count(*) FROM people WHERE city = NULL"), ["0"]);
    assert_eq!(member.rows("SELECT count(*) FROM people WHERE NOT (age > 0)"), ["0"]);
    assert_eq!(member.rows("SELECT name FROM people WHERE age IS NULL"), ["Nobody"]);
    let rows = member.rows_with("SELECT name FROM people WHERE __key = ?", &[Value::Null]);
    assert!(rows.is_empty());
}

#[test]
fn what_is_wrong_with_a_statement_is_said() {
    let member = people();
    let error = member.error("SELECT nam FROM people");
    assert!(error.message.contains("name"), "{error}");
    let error = member.error("SELECT * FROM peple");
    assert!(error.message.contains("did you forget to CREATE MAPPING"), "{error}");
    let error = member.error("SELECT FROM WHERE");
    assert_eq!(error.code, filbert_grid::query::SqlErrorCode::Parsing, "{error}");
    let error = member.error("SELECT 1 / 0");
    assert!(error.message.to_lowercase().contains("zero"), "{error}");
}

#[test]
fn views_stand_for_their_queries() {
    let member = people();
    member.change("CREATE VIEW londoners AS SELECT name, age FROM people WHERE city = 'London'");
    assert_eq!(member.rows("SELECT name FROM londoners WHERE age > 40"), ["Alan"]);
    assert_eq!(member.rows("SHOW VIEWS"), ["londoners"]);
    assert_eq!(member.rows("SHOW MAPPINGS"), ["people"]);
    member.change("DROP VIEW londoners");
    member.error("SELECT * FROM londoners");
}

#[test]
fn a_map_without_a_mapping_is_read_by_what_is_in_it() {
    let member = people();
    member.change("DROP MAPPING people");
    assert_eq!(member.rows("SELECT count(*) FROM people"), ["5"]);
    assert_eq!(member.sorted("SELECT JSON_VALUE(this, '$.name') FROM people WHERE __key < 3"), ["Ada", "Alan"]);
}

#[test]
fn a_plan_does_not_outlive_its_map_and_knows_new_indexes() {
    let member = people();
    let count = || member.rows("SELECT count(*) FROM people WHERE city = 'London'");
    assert_eq!(count(), ["2"]);
    let explain = || member.rows("EXPLAIN SELECT name FROM people WHERE city = 'London'").join("");
    assert!(!explain().contains("index"), "{}", explain());
    let attributes = vec!["city".to_owned()];
    let index = filbert_grid::IndexConfig { name: Some("by_city".to_owned()), attributes, ..Default::default() };
    member.grid.map("people").unwrap().add_index(index).unwrap();
    assert!(explain().contains("index by_city"), "{}", explain());
    assert_eq!(count(), ["2"]);
    member.grid.destroy_map("people").unwrap();
    assert_eq!(count(), ["0"]);
    assert_eq!(member.change("INSERT INTO people VALUES (9, 'Konrad', 85, 'London')"), 1);
    assert_eq!(count(), ["1"]);
}

#[test]
fn a_result_has_the_types_that_its_expressions_have() {
    let member = people();
    assert_eq!(member.rows("SELECT CAST(count(*) AS INTEGER) + 1 FROM people"), ["6"]);
    assert_eq!(member.rows("SELECT sum(age), sum(__key) FROM people"), ["234|15"]);
    assert_eq!(member.rows("SELECT name AS n, age AS n FROM people WHERE __key = 1"), ["Ada|36"]);
}

/// A plan that doubled with each subquery would take too long, and all memory of the member.
#[test]
fn a_plan_grows_with_the_number_of_its_subqueries() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id int PRIMARY KEY, k int)");
    member.change("INSERT INTO t SELECT g, g FROM generate_series(1, 8) g");
    type Term = fn(usize) -> String;
    let terms: [Term; 4] = [
        |at| format!("EXISTS (SELECT 1 FROM t t{at} WHERE t{at}.k <= t.k + {at})"),
        |at| format!("t.k NOT IN (SELECT t{at}.k + 8 FROM t t{at} WHERE t{at}.k <> t.k)"),
        |at| format!("(SELECT max(t{at}.k) FROM t t{at} WHERE t{at}.k <= t.k + {at}) >= t.k"),
        |at| format!("(t.k = {at} OR EXISTS (SELECT 1 FROM t t{at} WHERE t{at}.k <= t.k))"),
    ];
    for term in terms {
        let text = |count: usize| {
            let terms: Vec<String> = (0..count).map(term).collect();
            format!("SELECT count(*) FROM t WHERE {}", terms.join(" AND "))
        };
        let lines = |count| member.rows(&format!("EXPLAIN {}", text(count))).join("\n").lines().count();
        let (four, eight) = (lines(4), lines(8));
        assert!(eight < four * 3, "{four} lines, then {eight}: {}", text(8));
        assert_eq!(member.rows(&text(24)), ["8"], "{}", text(24));
    }
}

/// In a subquery, `a.k` refers to the relation `a` of the outer query, although the subquery's
/// table has a column `a`.
#[test]
fn a_relation_of_an_outer_query_comes_before_a_field_of_a_column() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id int PRIMARY KEY, a int, k int)");
    member.change("INSERT INTO t VALUES (1, 10, 7), (2, 20, 8), (3, 30, 9)");
    for (text, expected) in [
        ("SELECT (SELECT count(*) FROM t b WHERE b.a > a.a) FROM t a ORDER BY id", &["2", "1", "0"][..]),
        ("SELECT a.id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.k = a.k + 1) ORDER BY 1", &["1", "2"]),
        ("SELECT a.id FROM t a WHERE 20 IN (SELECT b.a FROM t b WHERE b.k >= a.k) ORDER BY 1", &["1", "2"]),
        (
            "SELECT (SELECT (SELECT sum(c.k) FROM t c WHERE c.a = a.a AND c.id = b.id) FROM t b WHERE b.k = a.k) FROM t a \
             ORDER BY 1",
            &["7", "8", "9"],
        ),
        ("SELECT x.k FROM t a, LATERAL (SELECT b.k FROM t b WHERE b.a < a.a) x ORDER BY 1", &["7", "7", "8"]),
        ("SELECT a.a FROM t a WHERE a.a = 10", &["10"]),
    ] {
        assert_eq!(member.rows(text), expected, "{text}");
    }
    assert_eq!(member.change("UPDATE t a SET k = (SELECT max(b.k) FROM t b WHERE b.a <= a.a) + 1"), 3);
    assert_eq!(member.rows("SELECT k FROM t a ORDER BY id"), ["8", "9", "10"]);
}

/// A client reads rows with the columns that were described when it prepared the statement.
#[test]
fn a_change_whose_rows_are_not_as_described_changes_nothing() {
    let statements = [
        "INSERT INTO t VALUES (2, 0) RETURNING *",
        "INSERT INTO t (id) SELECT 2 RETURNING *",
        "UPDATE t SET id = id + 1 WHERE id = 1 RETURNING *",
        "UPDATE t SET id = id + 1 RETURNING t.*, 1 AS one",
        "DELETE FROM t WHERE id = 1 RETURNING *",
        "DELETE FROM t WHERE id > 0 RETURNING n",
    ];
    let changes = ["ADD COLUMN more int", "ALTER n TYPE text", "ALTER n TYPE bigint", "RENAME n TO m"];
    for (text, change) in statements.iter().flat_map(|text| changes.iter().map(move |change| (text, change))) {
        let member = Member::of(Dialect::Postgres);
        member.change("CREATE TABLE t (id int PRIMARY KEY, n int)");
        member.change("INSERT INTO t VALUES (1, 0)");
        let described = member.describe(text).unwrap().columns.clone();
        // Once as described, which also caches the plan.
        let run = |described: Option<&Arc<[ColumnMeta]>>| {
            let statement = Statement { described, ..member.statement(text, &[]) };
            if let Some(result) = member.engine.execute_short(&statement) {
                return result.map(|_| ());
            }
            let (sender, receiver) = mpsc::channel();
            member.engine.execute(&statement, Box::new(move |result| sender.send(result.map(|_| ())).unwrap()));
            receiver.recv().unwrap()
        };
        assert_eq!(run(described.as_ref()), Ok(()), "{text}");
        member.change("DELETE FROM t");
        member.change("INSERT INTO t VALUES (1, 0)");
        member.change(&format!("ALTER TABLE t {change}"));
        let is_same = text.ends_with("RETURNING n") && *change == "ADD COLUMN more int";
        let found = run(described.as_ref()).map_err(|error| error.sqlstate().to_owned());
        match found {
            Ok(()) => assert!(is_same, "{text}, {change}"),
            // The column that the statement uses may not exist any more.
            Err(sqlstate) => {
                assert!(["0A000", "42703"].contains(&sqlstate.as_str()) && !is_same, "{text}, {change}: {sqlstate}");
                assert_eq!(member.rows("SELECT id FROM t"), ["1"], "{text}, {change}");
            }
        }
    }
}
