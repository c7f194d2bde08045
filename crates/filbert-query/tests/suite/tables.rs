//! Tables: their declarations, and changes of their rows.

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::{Command, Dialect, RowWriter, SqlError, WriteMode};

const DIALECTS: [Dialect; 3] = [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres];

#[track_caller]
fn sqlstate(member: &Member, text: &str, expected: &str) -> String {
    let error = member.error(text);
    assert_eq!(error.sqlstate(), expected, "{text}: {error}");
    error.message
}

#[test]
fn rows_of_a_table_come_and_go_in_every_dialect() {
    for dialect in DIALECTS {
        let member = Member::of(dialect);
        member.change("CREATE TABLE people (id INT PRIMARY KEY, name TEXT NOT NULL, age BIGINT DEFAULT 18, born DATE)");
        assert_eq!(
            member.change("INSERT INTO people VALUES (1, 'Ada', 36, DATE '1815-12-10'), (2, 'Alan', DEFAULT, NULL)"),
            2
        );
        assert_eq!(member.change("INSERT INTO people (name, id) VALUES ('Grace', 3)"), 1);
        assert_eq!(
            member.change_with("INSERT INTO people (id, name) VALUES (?, ?)", &[Value::Int64(4), Value::text("Bob")]),
            1
        );
        assert_eq!(
            member.rows("SELECT * FROM people ORDER BY id"),
            ["1|Ada|36|1815-12-10", "2|Alan|18|NULL", "3|Grace|18|NULL", "4|Bob|18|NULL"]
        );
        assert_eq!(member.change("UPDATE people SET age = age + 1 WHERE age > 18"), 1);
        assert_eq!(member.change("UPDATE people SET age = 85 WHERE id = 3"), 1);
        assert_eq!(member.change("DELETE FROM people WHERE id = 4"), 1);
        assert_eq!(member.rows("SELECT age FROM people WHERE id = 3"), ["85"]);
        assert_eq!(member.rows("SELECT sum(age) FROM people"), ["140"]);
        assert_eq!(member.change("INSERT INTO people SELECT id + 10, name, age, born FROM people"), 3);
        assert_eq!(member.change("REFRESH TABLE people"), 1);
        assert_eq!(member.change("TRUNCATE people"), 6);
        assert_eq!(member.rows("SELECT count(*) FROM people"), ["0"]);
        member.change("DROP TABLE people");
        sqlstate(&member, "SELECT * FROM people", "42P01");
        sqlstate(&member, "DROP TABLE people", "42P01");
        assert_eq!(member.change("DROP TABLE IF EXISTS people"), 0);
    }
}

#[test]
fn a_table_has_all_names_of_its_schema() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE doc.t (id INT PRIMARY KEY, x INT)");
    member.change("INSERT INTO public.t VALUES (1, 1)");
    member.change("INSERT INTO \"doc\".\"t\" VALUES (2, 2)");
    member.change("UPDATE crate.doc.t SET x = 5 WHERE id = 2");
    for name in ["t", "public.t", "doc.t", "filbert.public.t", "crate.doc.t", "hazelcast.public.t"] {
        assert_eq!(member.rows(&format!("SELECT x FROM {name} WHERE id = 2")), ["5"], "{name}");
    }
    assert_eq!(member.rows("SELECT doc.t.x, t.id FROM doc.t ORDER BY t.id"), ["1|1", "5|2"]);
    member.change("CREATE TABLE s.t (id INT PRIMARY KEY, y TEXT)");
    member.change("INSERT INTO s.t VALUES (1, 'other')");
    assert_eq!(member.rows("SELECT y FROM s.t"), ["other"]);
    assert_eq!(member.change("UPDATE s.t SET y = y || '!' WHERE t.id > 0"), 1);
    assert_eq!(member.rows("SELECT t.y FROM s.t WHERE id = 1"), ["other!"]);
    sqlstate(&member, "SELECT * FROM nowhere.t", "42P01");
    sqlstate(&member, "CREATE TABLE pg_catalog.t (id INT)", "42501");
    sqlstate(&member, "CREATE TABLE doc.t (id INT)", "42P07");
    member.change("CREATE TABLE IF NOT EXISTS doc.t (id INT)");
}

#[test]
fn keys_are_of_one_column_of_several_or_made() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE pairs (a INT, b TEXT, c INT, PRIMARY KEY (a, b))");
    assert_eq!(member.change("INSERT INTO pairs VALUES (1, 'x', 10), (1, 'y', 20), (2, 'x', 30)"), 3);
    let message = sqlstate(&member, "INSERT INTO pairs VALUES (1, 'y', 99)", "23505");
    assert_eq!(message, "duplicate key value violates unique constraint \"pairs_pkey\"");
    assert_eq!(member.rows("SELECT * FROM pairs WHERE a = 1 AND b = 'y'"), ["1|y|20"]);
    assert_eq!(member.change("UPDATE pairs SET c = c + 1 WHERE b = 'x'"), 2);
    assert_eq!(member.rows("SELECT * FROM pairs ORDER BY a, b"), ["1|x|11", "1|y|20", "2|x|31"]);
    assert_eq!(member.change("DELETE FROM pairs WHERE a = 1 AND b = 'x'"), 1);
    sqlstate(&member, "INSERT INTO pairs (a, c) VALUES (1, 1)", "23502");

    member.change("CREATE TABLE log (line TEXT, level INT)");
    assert_eq!(member.change("INSERT INTO log VALUES ('a', 1), ('a', 1), ('b', 2)"), 3);
    assert_eq!(member.rows("SELECT * FROM log ORDER BY line"), ["a|1", "a|1", "b|2"]);
    assert_eq!(member.change("UPDATE log SET level = 3 WHERE line = 'a'"), 2);
    assert_eq!(member.change("DELETE FROM log WHERE level = 3"), 2);
    assert_eq!(member.rows("SELECT count(*), count(DISTINCT _id) FROM log"), ["1|1"]);
}

#[test]
fn constraints_name_table_and_column() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, n TEXT NOT NULL, v VARCHAR(3), i SMALLINT)");
    let message = sqlstate(&member, "INSERT INTO t (id) VALUES (1)", "23502");
    assert_eq!(message, "null value in column \"n\" of relation \"t\" violates not-null constraint");
    sqlstate(&member, "INSERT INTO t VALUES (1, 'n', 'long', 1)", "22001");
    sqlstate(&member, "INSERT INTO t VALUES (1, 'n', 'v', 100000)", "22003");
    sqlstate(&member, "INSERT INTO t VALUES (1, 'n', 'v', 'x')", "22P02");
    member.change("INSERT INTO t VALUES (1, 'n', 'v', 1)");
    sqlstate(&member, "UPDATE t SET n = NULL WHERE id = 1", "23502");
    sqlstate(&member, "UPDATE t SET n = NULL", "23502");
    sqlstate(&member, "UPDATE t SET v = 'abcd' WHERE i = 1", "22001");
    sqlstate(&member, "CREATE TABLE u (id INT, id INT)", "42701");
    sqlstate(&member, "CREATE TABLE u (id NOTYPE)", "42704");
    sqlstate(&member, "CREATE TABLE u (a INT, PRIMARY KEY (b))", "42703");
    sqlstate(&member, "DROP MAPPING t", "42809");
}

#[test]
fn crates_clauses_are_taken() {
    let member = Member::of(Dialect::Crate);
    member.change(
        "CREATE TABLE doc.metrics (ts TIMESTAMP WITH TIME ZONE, host TEXT INDEX OFF, v DOUBLE PRECISION STORAGE WITH (columnstore = false), \
         tags OBJECT(DYNAMIC) AS (a INT, b OBJECT(IGNORED)), list ARRAY(INTEGER), place GEO_POINT, addr IP, PRIMARY KEY (ts, host)) \
         CLUSTERED BY (host) INTO 4 SHARDS PARTITIONED BY (ts) WITH (number_of_replicas = '0-1', \"translog.durability\" = 'ASYNC', refresh_interval = 500)",
    );
    member.change("INSERT INTO doc.metrics (ts, host, v) VALUES ('2024-01-01T00:00:00Z', 'a', 1.5)");
    assert_eq!(member.rows("SELECT host, v FROM metrics"), ["a|1.5"]);
    sqlstate(
        &member,
        "INSERT INTO doc.metrics (ts, host, addr) VALUES ('2024-01-01T00:00:00Z', 'b', 'nowhere')",
        "22P02",
    );
    member.change("CREATE TABLE x (a INT) CLUSTERED INTO 2 SHARDS");
    sqlstate(&member, "CREATE TABLE y (a INT) CLUSTERED BY (b)", "42703");
}

fn write(writer: &mut dyn RowWriter, rows: &[Value<'_>]) -> Vec<Result<u64, SqlError>> {
    let mut outcomes = Vec::new();
    writer.write(rows, &mut |outcome| outcomes.push(outcome));
    outcomes
}

#[test]
fn a_row_writer_takes_each_row_or_all() {
    let member = Member::of(Dialect::Crate);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, name TEXT NOT NULL, n INT DEFAULT 7)");
    let text = "INSERT INTO t (name, id) VALUES (?, ?)";
    let mut writer = member.row_writer(text, WriteMode::Each).unwrap();
    let names: Vec<&str> = writer.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["name", "id"]);
    let rows = [
        [Value::text("a"), Value::Int64(1)],
        [Value::Null, Value::Int64(2)],
        [Value::text("c"), Value::text("x")],
        [Value::text("d"), Value::Int64(1)],
        [Value::text("e"), Value::text("5")],
    ];
    let outcomes = write(&mut *writer, rows.as_flattened());
    let states: Vec<&str> =
        outcomes.iter().map(|row| row.as_ref().map_or_else(|error| error.sqlstate(), |_| "")).collect();
    assert_eq!(states, ["", "23502", "22P02", "23505", ""]);
    assert_eq!(writer.finish().unwrap(), 2);
    assert_eq!(member.rows("SELECT * FROM t ORDER BY id"), ["1|a|7", "5|e|7"]);

    let mut writer = member.row_writer(text, WriteMode::All).unwrap();
    write(&mut *writer, &[Value::text("f"), Value::Int32(6), Value::text("g"), Value::Int32(5)]);
    assert_eq!(member.rows("SELECT count(*) FROM t"), ["2"]);
    assert_eq!(writer.finish().unwrap_err().sqlstate(), "23505");
    assert_eq!(member.rows("SELECT count(*) FROM t"), ["2"]);
    let mut writer = member.row_writer(text, WriteMode::All).unwrap();
    write(&mut *writer, &[Value::text("f"), Value::Int32(6), Value::text("g"), Value::Int32(7)]);
    assert_eq!(writer.finish().unwrap(), 2);
    drop(
        member
            .row_writer(text, WriteMode::All)
            .map(|mut writer| write(&mut *writer, &[Value::text("h"), Value::Int32(8)])),
    );
    assert_eq!(member.rows("SELECT count(*) FROM t"), ["4"]);
    let error = member.row_writer("INSERT INTO t SELECT * FROM t", WriteMode::Each).err().unwrap();
    assert_eq!(error.kind, filbert_grid::ErrorKind::UnsupportedOperation);
}

#[test]
fn statements_are_described() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, name TEXT, n SMALLINT)");
    let command = |text: &str| member.describe(text).unwrap().command.clone();
    for (text, expected) in [
        ("CREATE TABLE u (a INT)", Command::Other("CREATE TABLE")),
        ("DROP TABLE t", Command::Other("DROP TABLE")),
        ("TRUNCATE t", Command::Other("TRUNCATE TABLE")),
        ("REFRESH TABLE t", Command::Other("REFRESH")),
        ("INSERT INTO t VALUES (1)", Command::Insert),
        ("UPDATE t SET n = 1", Command::Update),
        ("DELETE FROM t", Command::Delete),
    ] {
        assert_eq!(command(text), expected, "{text}");
    }
    let types = |text: &str| {
        let described = member.describe(text).unwrap();
        described.parameters.iter().map(|of| of.field_type.to_string()).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(types("INSERT INTO t (n, id) VALUES ($2, $1)"), "INTEGER, SMALLINT");
    assert_eq!(types("UPDATE t SET n = $1, name = $2"), "SMALLINT, VARCHAR");
}
