//! Changes of table rows: conflicts, `RETURNING`, changes with joins, and constraints with
//! expressions.

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::{Dialect, StatementResult, WriteMode};

#[track_caller]
fn sqlstate(member: &Member, text: &str, expected: &str) -> String {
    let error = member.error(text);
    assert_eq!(error.sqlstate(), expected, "{text}: {error}");
    error.message
}

fn stock() -> Member {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE stock (id INT PRIMARY KEY, name TEXT, n INT DEFAULT 0, CHECK (n >= 0))");
    member.change("INSERT INTO stock VALUES (1, 'bolt', 10), (2, 'nut', 20)");
    member
}

#[test]
fn a_row_that_is_there_can_be_left_or_updated() {
    let member = stock();
    assert_eq!(member.change("INSERT INTO stock VALUES (1, 'x', 1), (3, 'pin', 3) ON CONFLICT DO NOTHING"), 1);
    let upsert = "INSERT INTO stock AS s VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET n = s.n + excluded.n, name = excluded.name";
    let values = [Value::Int64(1), Value::text("BOLT"), Value::Int64(5)];
    assert_eq!(member.change_with(upsert, &values), 1);
    assert_eq!(member.change_with(upsert, &values), 1);
    assert_eq!(member.rows("SELECT * FROM stock ORDER BY id"), ["1|BOLT|20", "2|nut|20", "3|pin|3"]);
    let guarded = "INSERT INTO stock (id, n) SELECT id, 100 FROM stock ON CONFLICT ON CONSTRAINT stock_pkey DO UPDATE SET n = excluded.n \
                   WHERE stock.n < 10";
    assert_eq!(member.change(guarded), 1);
    assert_eq!(member.rows("SELECT n FROM stock WHERE id = 3"), ["100"]);
    let with_parameter =
        "INSERT INTO stock (id) VALUES (2) ON CONFLICT (id) DO UPDATE SET n = stock.n + $1 RETURNING n";
    assert_eq!(member.rows_with(with_parameter, &[Value::Int32(7)]), ["27"]);
    sqlstate(&member, "INSERT INTO stock VALUES (1) ON CONFLICT (name) DO NOTHING", "42P10");
    sqlstate(&member, "INSERT INTO stock VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 5", "0A000");
    sqlstate(&member, "INSERT INTO stock VALUES (1) ON CONFLICT (id) DO UPDATE SET n = -1", "23514");
}

#[test]
fn a_row_writer_takes_conflicts() {
    let member = stock();
    let text = "INSERT INTO stock (id, n) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = stock.n + excluded.n";
    for mode in [WriteMode::Each, WriteMode::All] {
        let mut writer = member.row_writer(text, mode).unwrap();
        let mut outcomes = Vec::new();
        let rows = [1, 2, 9, 1].map(Value::Int32);
        writer.write(&rows, &mut |outcome| outcomes.push(outcome.unwrap()));
        assert_eq!(outcomes, [1, 1]);
        // If all rows are changed together, no key may occur twice.
        writer.write(&[1, 1].map(Value::Int32), &mut |outcome| match mode {
            WriteMode::Each => assert_eq!(outcome.unwrap(), 1),
            WriteMode::All => assert_eq!(outcome.unwrap_err().sqlstate(), "21000"),
        });
        assert_eq!(writer.finish().unwrap(), if mode == WriteMode::Each { 3 } else { 2 });
    }
    assert_eq!(member.rows("SELECT id, n FROM stock ORDER BY id"), ["1|15", "2|20", "9|2"]);
    let text = "INSERT INTO stock (id) VALUES ($1) ON CONFLICT DO NOTHING";
    let mut writer = member.row_writer(text, WriteMode::Each).unwrap();
    let mut outcomes = Vec::new();
    writer.write(&[Value::Int32(1), Value::Int32(50)], &mut |outcome| outcomes.push(outcome.unwrap()));
    assert_eq!(outcomes, [0, 1]);
}

#[test]
fn rows_that_were_changed_are_told() {
    let member = stock();
    assert_eq!(member.rows("INSERT INTO stock (id, name) VALUES (7, 'new') RETURNING *"), ["7|new|0"]);
    assert_eq!(
        member
            .rows("INSERT INTO stock SELECT id + 10, upper(name) FROM stock RETURNING id, name || '!' AS shout")
            .len(),
        3
    );
    assert_eq!(member.rows("UPDATE stock SET n = n + 1 WHERE id = 1 RETURNING n, id * 2"), ["11|2"]);
    assert_eq!(member.rows("UPDATE stock SET n = 5 WHERE id > 10 RETURNING n").len(), 3);
    assert_eq!(member.rows("DELETE FROM stock WHERE id = 2 RETURNING name"), ["nut"]);
    assert_eq!(member.rows("DELETE FROM stock WHERE n = 5 RETURNING stock.id").len(), 3);
    assert!(member.rows("DELETE FROM stock WHERE id = 77 RETURNING *").is_empty());
    let described = member.describe("INSERT INTO stock VALUES ($1) RETURNING id, n").unwrap();
    let columns: Vec<String> =
        described.columns.as_ref().unwrap().iter().map(|column| column.field_type.to_string()).collect();
    assert_eq!(columns, ["INTEGER", "INTEGER"]);
}

#[test]
fn rows_are_changed_as_other_tables_say() {
    let member = stock();
    member.change("CREATE TABLE orders (nr INT PRIMARY KEY, item INT, count INT)");
    member.change("INSERT INTO orders VALUES (100, 1, 3), (101, 2, 4), (102, 2, 5)");
    assert_eq!(
        member.change("UPDATE stock SET n = stock.n - o.count FROM orders AS o WHERE o.item = stock.id AND o.nr < 102"),
        2
    );
    assert_eq!(member.rows("SELECT id, n FROM stock ORDER BY id"), ["1|7", "2|16"]);
    assert_eq!(member.change("UPDATE stock s SET n = 0 FROM orders WHERE item = s.id"), 2);
    assert_eq!(member.change("DELETE FROM stock USING orders WHERE orders.item = stock.id AND orders.count > 3"), 1);
    assert_eq!(member.rows("SELECT id FROM stock"), ["1"]);
    assert_eq!(member.change("UPDATE stock SET (name, n) = ('a', 9) WHERE id = 1"), 1);
    assert_eq!(member.rows("SELECT name, n FROM stock"), ["a|9"]);
    assert_eq!(member.change("UPDATE stock SET n = DEFAULT"), 1);
    assert_eq!(member.rows("SELECT n FROM stock"), ["0"]);
}

#[test]
fn a_row_may_move_to_another_key_in_postgres_alone() {
    let member = stock();
    assert_eq!(member.change("UPDATE stock SET id = 5 WHERE id = 1"), 1);
    assert_eq!(member.rows("SELECT id, name FROM stock ORDER BY id"), ["2|nut", "5|bolt"]);
    sqlstate(&member, "UPDATE stock SET id = 2 WHERE id = 5", "23505");
    assert_eq!(member.rows("SELECT count(*) FROM stock"), ["2"]);
    let crate_ = Member::of(Dialect::Crate);
    crate_.change("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    sqlstate(&crate_, "UPDATE t SET id = 2", "0A000");
}

#[test]
fn computed_columns_and_checks_hold() {
    let member = Member::of(Dialect::Postgres);
    member.change(
        "CREATE TABLE t (id BIGSERIAL PRIMARY KEY, a INT CHECK (a < 100), b INT, \
         total INT GENERATED ALWAYS AS (a + b) STORED, at TIMESTAMP WITH TIME ZONE DEFAULT now(), u UUID DEFAULT gen_random_uuid(), \
         d TEXT DEFAULT upper('x') || 'y', CONSTRAINT ordered CHECK (a <= b))",
    );
    assert_eq!(member.rows("INSERT INTO t (a, b) VALUES (1, 2), (3, 4) RETURNING id, total, d"), ["1|3|Xy", "2|7|Xy"]);
    assert_eq!(member.change("UPDATE t SET b = 10 WHERE id = 1"), 1);
    assert_eq!(member.change("UPDATE t SET b = b + 1 WHERE a > 0"), 2);
    assert_eq!(member.rows("SELECT id, total FROM t ORDER BY id"), ["1|12", "2|8"]);
    assert_eq!(member.rows("SELECT count(at), count(DISTINCT u) FROM t"), ["2|2"]);
    assert!(sqlstate(&member, "INSERT INTO t (a, b) VALUES (100, 200)", "23514").contains("\"t_a_check\""));
    assert!(sqlstate(&member, "INSERT INTO t (a, b) VALUES (9, 8)", "23514").contains("\"ordered\""));
    assert!(sqlstate(&member, "UPDATE t SET a = 50 WHERE id = 1", "23514").contains("\"ordered\""));
    sqlstate(&member, "INSERT INTO t (total) VALUES (1)", "428C9");
    sqlstate(&member, "UPDATE t SET total = 1", "428C9");
    member.change("INSERT INTO t (a, b) VALUES (NULL, NULL)");
    assert_eq!(member.rows("INSERT INTO t DEFAULT VALUES RETURNING a, total"), ["NULL|NULL"]);
    sqlstate(&member, "CREATE TABLE u (a INT DEFAULT nothing)", "42703");
    sqlstate(&member, "CREATE TABLE u (a INT UNIQUE)", "0A000");
    member.change(
        "CREATE TABLE v (id INT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5) PRIMARY KEY, n INT)",
    );
    assert_eq!(member.rows("INSERT INTO v (n) VALUES (1), (2) RETURNING id"), ["10", "15"]);
    sqlstate(&member, "INSERT INTO v (id, n) VALUES (1, 1)", "428C9");
    member.change("TRUNCATE v RESTART IDENTITY");
    assert_eq!(member.rows("INSERT INTO v (n) VALUES (1) RETURNING id"), ["10"]);
}

#[test]
fn changes_by_key_are_short() {
    let member = stock();
    member.change("CREATE TABLE pairs (a INT, b INT, n INT, PRIMARY KEY (a, b))");
    for (text, parameters) in [
        ("INSERT INTO stock VALUES ($1, 'x', 1) RETURNING id", vec![Value::Int32(100)]),
        ("UPDATE stock SET n = n + $1 WHERE id = $2", vec![Value::Int32(1), Value::Int32(1)]),
        ("UPDATE stock SET n = n - 1 WHERE stock.id = 1 RETURNING n", vec![]),
        ("INSERT INTO stock VALUES ($1) ON CONFLICT (id) DO UPDATE SET n = stock.n + 1", vec![Value::Int32(1)]),
        ("INSERT INTO pairs VALUES (1, 2, $1) ON CONFLICT DO NOTHING", vec![Value::Int32(1)]),
        ("UPDATE pairs SET n = 5 WHERE b = $1 AND a = 1", vec![Value::Int32(2)]),
        ("DELETE FROM pairs WHERE a = 1 AND $1 = b", vec![Value::Int32(2)]),
        ("DELETE FROM stock WHERE id = $1", vec![Value::Int32(100)]),
    ] {
        let statement = member.statement(text, &parameters);
        member.describe(text).unwrap();
        let result = filbert_grid::query::QueryEngine::execute_short(&member.engine, &statement);
        match result {
            Some(Ok(StatementResult::Count(count))) => assert_eq!(count, 1, "{text}"),
            Some(Ok(StatementResult::Rows(mut rows))) => {
                assert_eq!(rows.page_now(10).unwrap().unwrap().rows.num_rows(), 1, "{text}");
            }
            Some(Err(error)) => panic!("{text}: {error}"),
            None => panic!("not short: {text}"),
        }
    }
    assert_eq!(member.rows("SELECT id, n FROM stock ORDER BY id"), ["1|11", "2|20"]);
}

#[test]
fn keys_of_several_columns_are_looked_up() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE pairs (a INT, at TIMESTAMPTZ, n INT, PRIMARY KEY (a, at))");
    member.change("INSERT INTO pairs VALUES (1, '2024-01-01T00:00:00Z', 1), (1, '2024-01-02T01:00:00+01:00', 2), (2, '2024-01-01T00:00:00Z', 3)");
    let plan = |text: &str| member.rows(&format!("EXPLAIN {text}")).join("");
    let one = "SELECT n FROM pairs WHERE at = '2024-01-02T00:00:00Z' AND a = 1";
    assert!(plan(one).contains("access=one key"), "{}", plan(one));
    assert_eq!(member.rows(one), ["2"]);
    let some = "SELECT n FROM pairs WHERE a IN (1, 2) AND at = '2024-01-01T00:00:00Z' AND n > 1";
    assert!(plan(some).contains("access=2 keys"), "{}", plan(some));
    assert_eq!(member.rows(some), ["3"]);
    assert_eq!(member.rows("SELECT n FROM pairs WHERE a = 1 AND n = 2"), ["2"]);
    let moment = chrono::DateTime::parse_from_rfc3339("2024-01-02T02:00:00+02:00").unwrap();
    let rows = member
        .rows_with("SELECT n FROM pairs WHERE a = $1 AND at = $2", &[Value::Int32(1), Value::TimestampTz(moment)]);
    assert_eq!(rows, ["2"]);
}

#[test]
fn arrays_come_as_lists_and_as_texts() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, n INT[], words TEXT[], place GEO_POINT)");
    member.change("INSERT INTO t VALUES (1, '{1,2,NULL}', '{a,\"b c\"}', '[9.5, 47.25]')");
    member.change("INSERT INTO t (id, n, words, place) VALUES (2, ARRAY[3, 4], ARRAY['x'], 'POINT (1 2)')");
    let list = Value::Array(vec![Value::Int64(5), Value::Null]);
    member.change_with("INSERT INTO t (id, n) VALUES ($1, $2)", &[Value::Int32(3), list]);
    assert_eq!(
        member.rows("SELECT n, words, place FROM t ORDER BY id"),
        ["[1, 2, NULL]|[a, b c]|[9.5, 47.25]", "[3, 4]|[x]|[1.0, 2.0]", "[5, NULL]|NULL|NULL"]
    );
    assert_eq!(member.change("UPDATE t SET n = '{7}' WHERE id = 1"), 1);
    assert_eq!(member.change("UPDATE t SET n = ARRAY[8] WHERE id > 1"), 2);
    assert_eq!(member.rows("SELECT n FROM t ORDER BY id"), ["[7]", "[8]", "[8]"]);
    sqlstate(&member, "INSERT INTO t (id, n) VALUES (9, '{x}')", "22P02");
    sqlstate(&member, "INSERT INTO t (id, n) VALUES (9, 'nothing')", "22P02");
    sqlstate(&member, "INSERT INTO t (id, place) VALUES (9, '[200, 0]')", "22P02");
}
