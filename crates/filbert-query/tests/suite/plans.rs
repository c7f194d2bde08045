//! Cached plans follow changes of the catalog: a statement that ran before has the same result as
//! one that is planned anew, and changes of other tables leave its plan in the cache.

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::{Dialect, QueryEngine};
use proptest::prelude::*;
use proptest::sample::select;

/// All tables have keys: without one, the outcome of an `UPDATE` by several rows is arbitrary.
const CHANGES: [&str; 36] = [
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE t (id INT PRIMARY KEY, n TEXT, m INT DEFAULT 5)",
    "DROP TABLE t",
    "INSERT INTO t (id, n) VALUES (1, '10')",
    "ALTER TABLE t ADD COLUMN m INT DEFAULT 7",
    "ALTER TABLE t DROP COLUMN m",
    "ALTER TABLE t RENAME COLUMN n TO m",
    "ALTER TABLE t RENAME COLUMN m TO n",
    "ALTER TABLE t ALTER COLUMN n SET DEFAULT '4'",
    "ALTER TABLE t ALTER COLUMN n TYPE TEXT",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE u RENAME TO t",
    "TRUNCATE t",
    "CREATE INDEX by_n ON t (n)",
    "DROP INDEX by_n",
    "CREATE TABLE u (id INT PRIMARY KEY, n INT)",
    "INSERT INTO u VALUES (1, 20), (2, 30)",
    "DROP TABLE u",
    "CREATE SCHEMA s",
    "DROP SCHEMA s",
    "CREATE TABLE s.t (id INT PRIMARY KEY, n INT)",
    "INSERT INTO s.t VALUES (1, 100)",
    "DROP TABLE s.t",
    "CREATE TABLE s.v (id INT PRIMARY KEY, n INT)",
    "DROP TABLE s.v",
    "CREATE VIEW v AS SELECT id, n FROM t",
    "CREATE VIEW v AS SELECT id + 1 AS id, 'view' AS n FROM u",
    "CREATE OR REPLACE VIEW v AS SELECT 9 AS id, 'nine' AS n",
    "DROP VIEW v",
    "DROP VIEW w",
    "CREATE VIEW w AS SELECT count(*) AS c FROM v",
    "CREATE TABLE pg_class (id INT PRIMARY KEY, relname TEXT)",
    "DROP TABLE pg_class",
    "SET search_path TO s, public",
    "SET search_path TO public",
    "RESET search_path",
];

/// None shows a number that differs between members, such as an OID.
const STATEMENTS: [&str; 28] = [
    "SELECT * FROM t ORDER BY id",
    "SELECT * FROM t WHERE id = 1",
    "SELECT n FROM t WHERE n = '10'",
    "SELECT count(*), max(n) FROM t",
    "SELECT * FROM s.t ORDER BY 1",
    "SELECT n FROM s.t WHERE id = 1",
    "SELECT * FROM u ORDER BY id",
    "SELECT n FROM u WHERE id IN (1, 2) ORDER BY n",
    "SELECT * FROM v ORDER BY 1",
    "SELECT * FROM w",
    "SELECT t.n, u.n FROM t JOIN u ON t.id = u.id",
    "SELECT (SELECT max(n) FROM u) AS m, count(*) AS c FROM t",
    "WITH v AS (SELECT 3 AS id) SELECT * FROM v",
    "SELECT relname FROM pg_class WHERE relname IN ('t', 'u', 'v', 'w', 'by_n') ORDER BY 1",
    "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns \
     WHERE table_name IN ('t', 'u', 'v', 'w') ORDER BY 1, 2, 3",
    "SELECT to_regclass('t') IS NULL, to_regclass('s.t') IS NULL, to_regclass('v') IS NULL",
    "SELECT 't'::regclass::text",
    "SELECT pg_get_viewdef('v'::regclass)",
    "SELECT indexname FROM pg_indexes WHERE tablename = 't' ORDER BY 1",
    "EXPLAIN SELECT * FROM t WHERE n = '10'",
    "INSERT INTO t (id, n) VALUES (2, '11') ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (3, '12') ON CONFLICT (id) DO UPDATE SET n = '13'",
    "INSERT INTO u SELECT id + 10, 5 FROM t ON CONFLICT DO NOTHING",
    "UPDATE t SET n = '14' WHERE id = 2",
    "UPDATE t SET n = u.n FROM u WHERE u.id = t.id",
    "DELETE FROM t WHERE id = 3",
    "DELETE FROM u WHERE id > 10 RETURNING *",
    "UPDATE s.t SET n = n + 1 WHERE id = 1 RETURNING n",
];

/// The outcome of a statement; rows have no order.
fn outcome(member: &Member, text: &str) -> Result<Vec<String>, String> {
    let rows = member.try_rows(text, &[]).map(|mut rows| {
        rows.sort();
        rows
    });
    rows.map_err(|error| format!("{} {}", error.sqlstate(), error.message))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_from_before_a_change_is_not_used_after_it(
        steps in proptest::collection::vec((select(CHANGES.to_vec()), proptest::collection::vec(select(STATEMENTS.to_vec()), 4)), 1..60),
    ) {
        let (cached, anew) = (Member::of(Dialect::Postgres), Member::of(Dialect::Postgres));
        for text in STATEMENTS {
            // Plans of errors are not kept. All others are.
            prop_assert_eq!(outcome(&cached, text).is_ok(), outcome(&anew, text).is_ok());
        }
        for (number, (change, statements)) in steps.iter().enumerate() {
            prop_assert_eq!(outcome(&cached, change), outcome(&anew, change), "{}", change);
            for (at, text) in statements.iter().enumerate() {
                let planned = format!("{text} -- {number} {at}");
                prop_assert_eq!(outcome(&cached, text), outcome(&anew, &planned), "{} after {}", text, change);
            }
        }
    }
}

#[test]
fn changes_of_other_tables_leave_plans_in_the_cache() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    member.change("INSERT INTO t VALUES (1, 10), (2, 20)");
    let lookup = "SELECT n FROM t WHERE id = $1";
    let count = "SELECT count(*), sum(n) FROM t WHERE id <= $1";
    let change = "UPDATE t SET n = n + 1 WHERE id = $1";
    let parameters = [Value::Int32(2)];
    let run = |text: &str| outcome_with(&member, text, &parameters);
    for text in [lookup, count, change] {
        run(text);
    }
    let misses = || member.engine.statistics().plans.misses;
    let before = misses();
    for round in 0..30 {
        for text in [
            format!("CREATE TABLE o{round} (id INT PRIMARY KEY, n INT)"),
            format!("CREATE INDEX i{round} ON o{round} (n)"),
            format!("CREATE VIEW v{round} AS SELECT * FROM o{round}"),
            format!("DROP VIEW v{round}"),
            format!("ALTER TABLE o{round} ADD COLUMN m INT"),
            format!("DROP TABLE o{round}"),
        ] {
            member.change(&text);
            assert!(member.engine.execute_short(&member.statement(lookup, &parameters)).is_some(), "{text}");
            assert_eq!(run(count), ["2|31"]);
        }
    }
    assert_eq!(run(change), ["count 1"]);
    assert_eq!(misses(), before);
    member.change("ALTER TABLE t ADD COLUMN m INT");
    assert!(member.engine.execute_short(&member.statement(lookup, &parameters)).is_none());
    assert_eq!(run(lookup), ["22"]);
    assert_eq!(misses(), before + 1);
}

fn outcome_with(member: &Member, text: &str, parameters: &[Value<'_>]) -> Vec<String> {
    member.try_rows(text, parameters).unwrap_or_else(|error| vec![error.message])
}
