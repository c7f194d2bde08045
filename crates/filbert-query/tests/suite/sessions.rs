//! Sessions: settings, transactions, jobs, and the meaning of expressions in PostgreSQL's and
//! CrateDB's dialects.

use std::time::Duration;

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::{Command, Dialect, QueryEngine, TransactionState, WriteMode};

#[track_caller]
fn check(member: &Member, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(member.rows(text).join(";"), *expected, "{text}");
    }
}

#[track_caller]
fn refused(member: &Member, cases: &[(&str, &str, Option<u32>)]) {
    for (text, sqlstate, position) in cases {
        let error = member.error(text);
        assert_eq!((error.sqlstate(), error.position), (*sqlstate, *position), "{text}: {error}");
    }
}

#[test]
fn settings_are_set_shown_and_reset() {
    let member = Member::of(Dialect::Postgres);
    let version = concat!("14.0 (Filbert ", env!("CARGO_PKG_VERSION"), ")");
    check(&member, &[("SHOW search_path", "\"$user\", public"), ("SHOW server_version", version)]);
    member.change("SET search_path TO a, \"B\"");
    member.change("SET SESSION extra_float_digits = 3");
    member.change("SET TIME ZONE 'Europe/Vienna'");
    check(
        &member,
        &[
            ("SHOW search_path", "a, B"),
            ("SELECT current_setting('extra_float_digits')", "3"),
            ("SELECT current_setting('nonsense', true) IS NULL", "true"),
            ("SELECT set_config('application_name', 'tests', false)", "tests"),
            ("SELECT setting FROM pg_settings WHERE name = 'application_name'", "tests"),
            ("SHOW timezone", "Europe/Vienna"),
        ],
    );
    member.change("RESET search_path");
    member.change("DISCARD ALL");
    check(&member, &[("SHOW search_path", "\"$user\", public"), ("SHOW TimeZone", "UTC")]);
    refused(
        &member,
        &[
            ("SHOW nonsense", "42704", None),
            ("SET nonsense = 1", "42704", None),
            ("SET server_version = '9'", "55P02", None),
            ("SET statement_timeout = 'x'", "22023", None),
            ("SELECT current_setting('nonsense')", "42704", None),
        ],
    );
}

#[test]
fn who_asks_is_told_anew_for_each_session() {
    let member = Member::of(Dialect::Postgres);
    let text = "SELECT current_user, current_database(), current_schema, current_schemas(true)";
    assert_eq!(member.rows(text), ["somebody|filbert|public|[pg_catalog, public]"]);
    // The plan is cached, but its values are not.
    let other = std::sync::Arc::new(filbert_grid::query::Session::new(Dialect::Postgres, "ann"));
    let member = Member { session: Some(other), ..member };
    assert_eq!(member.rows(text), ["ann|filbert|public|[pg_catalog, public]"]);
    let first = member.rows("SELECT now()");
    std::thread::sleep(Duration::from_millis(2));
    assert_ne!(member.rows("SELECT now()"), first);
    assert_eq!(member.rows("SELECT now() = now()"), ["true"]);
}

/// The SQLSTATEs of the notices for the client.
fn told(member: &Member) -> Vec<&'static str> {
    let notices = member.session.as_ref().unwrap().take_notices();
    notices.iter().map(|notice| notice.sqlstate).collect()
}

#[test]
fn changes_that_stay_are_told() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    let cases: [(&[&str], &[&str]); 8] = [
        (&["BEGIN", "INSERT INTO t VALUES (1, 1)", "ROLLBACK"], &["01000"]),
        (&["BEGIN", "SELECT * FROM t", "UPDATE t SET n = 2 WHERE id = 77", "ROLLBACK"], &[]),
        (&["BEGIN", "INSERT INTO t VALUES (2, 1)", "COMMIT"], &[]),
        (&["BEGIN", "SAVEPOINT a", "DELETE FROM t WHERE id = 2", "ROLLBACK TO a", "COMMIT"], &["01000"]),
        (&["BEGIN", "DELETE FROM t WHERE id = 1", "SAVEPOINT a", "ROLLBACK TO a", "COMMIT"], &[]),
        (&["BEGIN", "CREATE TABLE u (a INT)", "ABORT"], &["01000"]),
        (&["BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK"], &["25001", "25P01", "25P01"]),
        (&["SET LOCAL jit = on", "SET TRANSACTION READ ONLY"], &["25P01", "25P01"]),
    ];
    for (texts, expected) in cases {
        for text in texts {
            member.run(text, &[]).unwrap();
        }
        assert_eq!(told(&member), expected, "{texts:?}");
    }
    // A COMMIT of a failed transaction counts as a rollback, and gives the same warning.
    member.change("BEGIN");
    member.change("INSERT INTO t VALUES (3, 1)");
    member.session.as_ref().unwrap().set_transaction(TransactionState::Failed);
    member.change("COMMIT");
    assert_eq!(told(&member), ["01000"]);
    member.change("BEGIN");
    refused(
        &member,
        &[("ROLLBACK TO nowhere", "3B001", None), ("RELEASE nowhere", "3B001", None), ("DISCARD ALL", "25001", None)],
    );
    member.change("COMMIT");
    refused(&member, &[("COMMIT AND CHAIN", "25P01", None)]);
}

#[test]
fn transactions_that_read_only_change_nothing() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    member.change("INSERT INTO t VALUES (1, 1)");
    let changes = [
        "INSERT INTO t VALUES (2, 2)",
        "INSERT INTO t SELECT 3, 3",
        "UPDATE t SET n = 5 WHERE id = 1",
        "UPDATE t SET n = n + 1",
        "DELETE FROM t",
        "DELETE FROM t WHERE id = 1 RETURNING n",
        "TRUNCATE t",
        "CREATE TABLE u (a INT)",
        "CREATE TABLE u AS SELECT 1 AS a",
        "CREATE VIEW v AS SELECT 1 AS a",
        "CREATE INDEX i ON t (n)",
        "ALTER TABLE t ADD COLUMN b INT",
        "COMMENT ON TABLE t IS 'x'",
        "CREATE SCHEMA s",
        "DROP TABLE t",
        "COPY t FROM '/nowhere'",
    ];
    let all_are_refused = || {
        for text in changes {
            let error = member.error(text);
            assert_eq!(error.sqlstate(), "25006", "{text}: {error}");
            assert!(error.message.starts_with("cannot execute "), "{error}");
        }
        assert_eq!(member.row_writer("COPY t FROM STDIN", WriteMode::All).err().unwrap().sqlstate(), "25006");
        let insert = "INSERT INTO t VALUES ($1, $2)";
        assert_eq!(member.row_writer(insert, WriteMode::Each).err().unwrap().sqlstate(), "25006");
        assert_eq!(member.rows("SELECT * FROM t"), ["1|1"]);
        assert_eq!(member.rows("SHOW transaction_read_only"), ["on"]);
    };
    let cases: [&[&str]; 8] = [
        &["BEGIN READ ONLY"],
        &["START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY"],
        &["BEGIN", "SET TRANSACTION READ ONLY"],
        &["BEGIN", "SET transaction_read_only = on"],
        &["BEGIN READ ONLY", "COMMIT AND CHAIN"],
        &["SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"],
        &["SET default_transaction_read_only = on"],
        &["SET default_transaction_read_only = on", "BEGIN"],
    ];
    for texts in cases {
        texts.iter().for_each(|text| assert_eq!(member.change(text), 0, "{text}"));
        all_are_refused();
        if member.session.as_ref().unwrap().transaction() != TransactionState::Idle {
            assert_eq!(member.error("SET TRANSACTION READ WRITE").sqlstate(), "25001");
            member.change("ROLLBACK");
        }
        member.change("RESET ALL");
        assert_eq!(member.rows("SHOW transaction_read_only"), ["off"]);
        assert_eq!(member.change("UPDATE t SET n = 1 WHERE id = 1"), 1, "{texts:?}");
    }
    member.change("SET default_transaction_read_only = on");
    member.change("BEGIN READ WRITE");
    assert_eq!(member.change("UPDATE t SET n = 1"), 1);
    member.change("COMMIT");
    assert_eq!(member.error("UPDATE t SET n = 1").sqlstate(), "25006");
}

#[test]
fn settings_of_a_transaction_end_with_it() {
    let member = Member::of(Dialect::Postgres);
    let name = || member.rows("SHOW application_name").concat();
    member.change("SET application_name = 'a'");
    let cases: [(&[&str], &str, &str); 3] = [
        (&["SET LOCAL application_name = 'b'"], "b", "a"),
        (&["SET application_name = 'b'", "SET LOCAL application_name = 'c'"], "c", "b"),
        (&["SET LOCAL application_name = 'c'", "SET application_name = 'd'"], "d", "d"),
    ];
    for (texts, within, after) in cases {
        member.change("BEGIN");
        texts.iter().for_each(|text| assert_eq!(member.change(text), 0));
        assert_eq!(name(), within, "{texts:?}");
        member.change("COMMIT");
        assert_eq!(name(), after, "{texts:?}");
    }
    member.change("BEGIN");
    member.change("SET application_name = 'x'");
    member.change("SAVEPOINT s");
    member.change("SET application_name = 'y'");
    member.change("ROLLBACK TO s");
    assert_eq!(name(), "x");
    member.change("ROLLBACK");
    assert_eq!(name(), "d");
    member.change("BEGIN ISOLATION LEVEL SERIALIZABLE");
    assert_eq!(member.rows("SHOW transaction_isolation"), ["serializable"]);
    member.change("COMMIT");
    assert_eq!(member.rows("SHOW transaction_isolation"), ["read committed"]);
}

#[test]
fn transactions_have_a_state() {
    let member = Member::of(Dialect::Postgres);
    let state = |member: &Member| member.session.as_ref().unwrap().transaction();
    for (text, tag, expected) in [
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN", TransactionState::Open),
        ("SAVEPOINT a", "SAVEPOINT", TransactionState::Open),
        ("ROLLBACK TO a", "ROLLBACK", TransactionState::Open),
        ("RELEASE a", "RELEASE", TransactionState::Open),
        ("COMMIT AND CHAIN", "COMMIT", TransactionState::Open),
        ("END", "COMMIT", TransactionState::Idle),
        ("START TRANSACTION", "START TRANSACTION", TransactionState::Open),
        ("ABORT", "ROLLBACK", TransactionState::Idle),
    ] {
        assert_eq!(member.describe(text).unwrap().command, Command::Other(tag), "{text}");
        member.change(text);
        assert_eq!(state(&member), expected, "{text}");
    }
    refused(&member, &[("SAVEPOINT a", "25P01", None), ("BEGIN x", "42601", Some(7))]);
}

#[test]
fn statements_end_when_their_session_says_so() {
    let member = Member::of(Dialect::Postgres);
    member.change("SET statement_timeout = '50ms'");
    let error = member.error("SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 1000) b");
    assert_eq!(error.sqlstate(), "57014");
}

#[test]
fn jobs_are_listed_logged_and_ended() {
    let member = Member::of(Dialect::Crate);
    check(&member, &[("SELECT stmt, username FROM sys.jobs", "SELECT stmt, username FROM sys.jobs|somebody")]);
    assert_eq!(member.error("SELECT 1 / 0").sqlstate(), "22012");
    let logged = member.rows("SELECT stmt, error IS NOT NULL FROM sys.jobs_log ORDER BY started");
    assert_eq!(logged, ["SELECT stmt, username FROM sys.jobs|false", "SELECT 1 / 0|true"]);
    let (sender, receiver) = std::sync::mpsc::channel();
    let long = "SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 1000) b";
    let statement = member.statement(long, &[]);
    let _running = member.engine.execute(&statement, Box::new(move |result| sender.send(result.is_ok()).unwrap()));
    // The job does not end before its rows are read.
    receiver.recv_timeout(Duration::from_secs(20)).ok();
    assert_eq!(member.change("KILL 'nonsense'"), 0);
    let member = Member { session: member.session.clone(), ..member };
    assert!(member.engine.figures().threads > 0);
}

#[test]
fn errors_say_what_and_where() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, name TEXT)");
    refused(
        &member,
        &[
            ("SELECT id, nam FROM t", "42703", Some(12)),
            ("SELECT *\nFROM t WHERE\n  nonsense = 1", "42703", Some(25)),
            ("SELECT * FROM nonsense", "42P01", Some(15)),
            ("SELECT nonsense(1)", "42883", Some(8)),
            ("SELECT FROM FROM", "42601", Some(13)),
            ("SELECT 'x'::int", "22P02", None),
            ("SELECT 1 / 0", "22012", None),
            ("SELECT 2147483647 + 1", "22003", None),
            ("SELECT id FROM pg_catalog.nonsense", "42P01", Some(16)),
            ("SELECT 'nonsense'::regclass", "42P01", None),
        ],
    );
}

#[test]
fn errors_are_in_the_words_of_the_dialect() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE people (id INT PRIMARY KEY, name TEXT, small SMALLINT)");
    let translated = |member: &Member, text: &str| {
        let error = member.error(text);
        (error.message.clone(), error.suggestion.clone().unwrap_or_default(), error.position)
    };
    for (text, message, hint, position) in [
        (
            "SELECT 1, peple FROM peple",
            "relation \"peple\" does not exist",
            "Perhaps you meant to reference the relation \"people\".",
            Some(22),
        ),
        ("SELECT * FROM people, a.b", "relation \"a.b\" does not exist", "", Some(23)),
        ("INSERT INTO nonsense VALUES (1)", "relation \"nonsense\" does not exist", "", Some(13)),
        ("UPDATE nonsense SET a = 1", "relation \"nonsense\" does not exist", "", Some(8)),
        ("DELETE FROM nonsense", "relation \"nonsense\" does not exist", "", Some(13)),
        ("DROP VIEW nonsense", "relation \"nonsense\" does not exist", "", None),
        (
            "SELECT nam FROM people",
            "column \"nam\" does not exist",
            "Perhaps you meant to reference the column \"people.name\".",
            Some(8),
        ),
        (
            "SELECT p.nam FROM people p",
            "column p.nam does not exist",
            "Perhaps you meant to reference the column \"p.name\".",
            Some(8),
        ),
        ("SELECT q.name FROM people p", "missing FROM-clause entry for table \"q\"", "", Some(8)),
        ("SELECT id FROM people a, people b", "column reference \"id\" is ambiguous", "", Some(8)),
        (
            "UPDATE people SET nam = 'x'",
            "column \"nam\" does not exist",
            "Perhaps you meant to reference the column \"people.name\".",
            None,
        ),
        ("SELECT 'x'::int", "invalid input syntax for type integer: \"x\"", "", None),
        ("SELECT 3000000000::int", "integer out of range", "", None),
        ("SELECT 9223372036854775807 + 1", "bigint out of range", "", None),
        (
            "SELECT quote_ident(1, 2)",
            "function quote_ident(bigint, bigint) does not exist",
            "No function matches the given name and argument types. You might need to add explicit type casts.",
            None,
        ),
        ("INSERT INTO people (id) VALUES ('x')", "invalid input syntax for type integer: \"x\"", "", None),
        ("CREATE TABLE people (id INT)", "relation \"people\" already exists", "", None),
    ] {
        assert_eq!(translated(&member, text), (message.to_owned(), hint.to_owned(), position), "{text}");
    }
    assert_eq!(member.error("SELECT q.name FROM people p").sqlstate(), "42P01");
    assert!(translated(&member, "SELECT quote_idnt('x')").0.starts_with("function quote_idnt does not exist"));

    let session = std::sync::Arc::new(filbert_grid::query::Session::new(Dialect::Crate, "crate"));
    let member = Member { session: Some(session), ..member };
    for (text, message) in [
        ("SELECT * FROM nonsense", "Relation 'nonsense' unknown"),
        ("SELECT nam FROM people", "Column nam unknown"),
        ("SELECT 'x'::int", "Cannot cast `'x'` of type `text` to type `integer`"),
    ] {
        assert_eq!(translated(&member, text).0, message, "{text}");
    }
    // Only clients of Hazelcast's dialect receive Hazelcast's texts.
    let member = Member { session: None, ..member };
    assert!(translated(&member, "SELECT * FROM nonsense").0.contains("did you forget to CREATE MAPPING"));
}

#[test]
fn statements_that_change_rows_know_who_asks_and_when() {
    let member = Member::of(Dialect::Postgres);
    member.change("SET application_name = 'tests'");
    member.change(
        "CREATE TABLE t (id INT PRIMARY KEY, by TEXT DEFAULT current_user, app TEXT DEFAULT current_setting('application_name'), \
         a TIMESTAMPTZ DEFAULT now(), b TIMESTAMPTZ)",
    );
    let known = "somebody|tests";
    for text in [
        "INSERT INTO t (id) VALUES (1), (2)",
        "INSERT INTO t (id, by, app, b) VALUES (3, current_user, current_setting('application_name'), now())",
        "INSERT INTO t (id, by, app) SELECT 4, current_user, current_setting('application_name')",
        "UPDATE t SET by = current_user, app = current_setting('application_name'), a = now(), b = now() WHERE id = 1",
        "UPDATE t SET by = current_user, app = current_setting('application_name'), a = now(), b = now() WHERE id > 1",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET by = current_user, app = current_setting('application_name')",
    ] {
        // The second time the plan comes from the cache, without the values of the session.
        for _ in 0..2 {
            member.try_rows(text, &[]).ok();
            assert_eq!(member.rows("SELECT DISTINCT by, app FROM t"), [known], "{text}");
            member.change("UPDATE t SET by = 'x' || id WHERE id < 0");
        }
    }
    let again = "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET by = DEFAULT, a = DEFAULT";
    let first = (member.change(again), member.rows("SELECT a FROM t WHERE id = 1"));
    std::thread::sleep(Duration::from_millis(2));
    assert_ne!((member.change(again), member.rows("SELECT a FROM t WHERE id = 1")), first);
    member.change("UPDATE t SET b = a");
    // All calls of `now()` in one statement return the same timestamp.
    assert_eq!(member.rows("SELECT count(*) FROM t WHERE a <> b"), ["0"]);
    assert_eq!(
        member.rows("INSERT INTO t (id, b) VALUES (5, now()) RETURNING a = b, a = now(), by, current_user"),
        ["true|true|somebody|somebody"]
    );
    member.change("INSERT INTO t (id) VALUES (6), (7)");
    assert_eq!(member.rows("SELECT count(DISTINCT a) FROM t WHERE id IN (6, 7)"), ["1"]);
    let other = std::sync::Arc::new(filbert_grid::query::Session::new(Dialect::Postgres, "ann"));
    let member = Member { session: Some(other), ..member };
    for text in ["UPDATE t SET by = current_user WHERE id = 6", "UPDATE t SET by = current_user WHERE id = 6"] {
        member.change(text);
    }
    member.change("INSERT INTO t (id) VALUES (8)");
    assert_eq!(member.rows("SELECT by, app FROM t WHERE id IN (6, 8) ORDER BY id"), ["ann|tests", "ann|"]);
    assert_eq!(member.change("DELETE FROM t WHERE by = current_user"), 2);
}

#[test]
fn functions_are_listed() {
    let member = Member::of(Dialect::Postgres);
    check(
        &member,
        &[
            (
                "SELECT routine_schema, routine_type FROM information_schema.routines WHERE routine_name = 'upper'",
                "pg_catalog|FUNCTION",
            ),
            ("SELECT prokind FROM pg_proc WHERE proname IN ('upper', 'array_agg') ORDER BY proname", "a;f"),
            (
                "SELECT count(*) FROM information_schema.routines r JOIN pg_proc p ON r.specific_name = p.proname || '_' || p.oid WHERE r.routine_name = 'upper'",
                "1",
            ),
        ],
    );
    assert!(member.rows("SELECT version()").join("").contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn expressions_have_the_types_and_names_of_their_dialect() {
    let member = Member::of(Dialect::Postgres);
    let columns = |member: &Member, text: &str| {
        let columns = member.describe(text).unwrap().columns.clone().unwrap();
        columns.iter().map(|column| format!("{} {}", column.name, column.field_type)).collect::<Vec<_>>().join(", ")
    };
    for (text, expected) in [
        ("SELECT 1, 1 + 1, count(*), 'x'", "?column? INTEGER, ?column? INTEGER, count BIGINT, ?column? VARCHAR"),
        (
            "SELECT 3000000000, 7 / 2, upper('a'), 1::bigint",
            "?column? BIGINT, ?column? INTEGER, upper VARCHAR, int8 BIGINT",
        ),
        (
            "SELECT CASE WHEN true THEN 1 END, now(), true",
            "case INTEGER, now TIMESTAMP WITH TIME ZONE, ?column? BOOLEAN",
        ),
    ] {
        assert_eq!(columns(&member, text), expected, "{text}");
    }
    check(
        &member,
        &[
            ("SELECT 7 / 2, -7 / 2, 7 % 4", "3|-3|3"),
            ("SELECT E'a\\tb', $$it's$$", "a\tb|it's"),
            ("SELECT 'abc' ~ '^a', 'abc' !~* 'B', 'abc' OPERATOR(pg_catalog.~~) 'a%'", "true|false|true"),
            ("SELECT (1, 2) = (1, 2), (1, 2) IN ((1, 3), (1, 2))", "true|true"),
            ("SELECT '{1,2,3}'::int[], 2 = ANY('{1,2}'::int[]), ARRAY[1, 2]", "[1, 2, 3]|true|[1, 2]"),
            ("SELECT g FROM generate_series(1, 3) g", "1;2;3"),
            ("SELECT generate_series(1, 2)", "1;2"),
            ("SELECT x FROM unnest(ARRAY[1, 2]) AS u(x)", "1;2"),
            ("SELECT '{\"a\": {\"b\": [1, 2]}}'::json #>> '{a,b,1}', '{\"a\": 1}'::jsonb ->> 'a'", "2|1"),
            ("SELECT json_build_object('a', 1, 'b', 'x')", "{\"a\" : 1, \"b\" : \"x\"}"),
            ("SELECT format('%s is %I', 'x', 'A b')", "x is \"A b\""),
            ("SELECT pg_size_pretty(10240.0), pg_typeof(1::bigint)", "10 kB|bigint"),
            ("SELECT id FROM (VALUES (1), (2)) AS v(id) WHERE id = '2'", "2"),
        ],
    );
}

#[test]
fn arrays_to_compare_with_are_of_the_type_of_what_they_are_compared_with() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, name TEXT)");
    member.change("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)");
    let parameters = |text: &str| {
        let described = member.describe(text).unwrap();
        described.parameters.iter().map(|of| of.field_type.to_string()).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(parameters("SELECT id FROM t WHERE id = ANY($1) AND name = ANY ($2)"), "INTEGER[], VARCHAR[]");
    assert_eq!(parameters("SELECT id FROM t WHERE id <> ALL($1)"), "INTEGER[]");
    let list = |items: &[i32]| Value::Array(items.iter().map(|item| Value::Int32(*item)).collect());
    let any = "SELECT id FROM t WHERE id = ANY($1) ORDER BY id";
    assert_eq!(member.rows_with(any, &[list(&[3, 1, 7])]), ["1", "3"]);
    assert_eq!(member.rows_with(any, &[list(&[])]).len(), 0);
    assert_eq!(member.rows_with("SELECT id FROM t WHERE id <> ALL($1)", &[list(&[3, 1])]), ["2"]);
    check(
        &member,
        &[
            ("SELECT id FROM t WHERE id = ANY('{1,2}') ORDER BY id", "1;2"),
            ("SELECT id FROM t WHERE name = ANY ('{b,\"c d\",NULL}')", "2"),
            ("SELECT id FROM t WHERE id < ANY('{2}')", "1"),
        ],
    );
    let plan = member.rows("EXPLAIN SELECT name FROM t WHERE id = ANY('{1,2}')").join("");
    assert!(plan.contains("access=2 keys"), "{plan}");
    assert_eq!(member.error("SELECT id FROM t WHERE id = ANY('nonsense')").sqlstate(), "22P02");
}

#[test]
fn a_subquery_that_is_one_value_may_refer_to_the_outer_row() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, of INT)");
    member.change("INSERT INTO t VALUES (1, 2), (2, 1), (3, 3)");
    check(
        &member,
        &[
            ("SELECT id, (SELECT x.of FROM t x WHERE x.id = t.of) FROM t ORDER BY id", "1|1;2|2;3|3"),
            (
                "SELECT id, ARRAY(SELECT x.id FROM t x WHERE x.id <> t.id ORDER BY 1 DESC) FROM t WHERE id = 1",
                "1|[3, 2]",
            ),
        ],
    );
    assert_eq!(member.error("SELECT (SELECT id FROM t x WHERE x.id <> t.id) FROM t").sqlstate(), "21000");
}

#[test]
fn cratedb_clients_may_give_more_values_than_are_asked_for() {
    let member = Member::of(Dialect::Crate);
    let values = [Value::text("doc"), Value::text("more")];
    assert_eq!(member.rows_with("SELECT ?", &values), ["doc"]);
    assert_eq!(member.rows_with("SELECT 1 AS one", &values), ["1"]);
    assert_eq!(member.rows("SELECT current_schema"), ["doc"]);
    assert_eq!(member.describe("SELECT count(*)").unwrap().columns.clone().unwrap()[0].name, "count(*)");
}

/// The examples of `docs/reference/sessions.md`. The expected rows follow a statement as comments,
/// or `-- error SQLSTATE`.
#[test]
fn every_example_of_the_page_is_as_it_says() {
    let page = include_str!("../../../../docs/reference/sessions.md");
    let member = Member::of(Dialect::Postgres);
    let (mut statement, mut expected, mut inside, mut run) = (String::new(), Vec::new(), false, 0);
    let mut check = |statement: &mut String, expected: &mut Vec<String>| {
        let text = std::mem::take(statement);
        let expected = std::mem::take(expected);
        let text = text.trim().trim_end_matches(';');
        if text.is_empty() {
            return;
        }
        run += 1;
        match member.try_rows(text, &[]) {
            Err(error) => assert_eq!(expected, [format!("error {}", error.sqlstate())], "{text}: {error}"),
            Ok(rows) if rows.first().is_some_and(|row| row.starts_with("count ")) => {
                assert!(expected.is_empty(), "{text}")
            }
            Ok(rows) => {
                let rows: Vec<String> = rows.iter().map(|row| row.replace('|', " | ")).collect();
                assert_eq!(rows, expected, "{text}");
            }
        }
    };
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```sql";
            check(&mut statement, &mut expected);
        } else if let Some(row) = line.strip_prefix("-- ").filter(|_| inside) {
            expected.push(row.to_owned());
        } else if inside && line.is_empty() {
            check(&mut statement, &mut expected);
        } else if inside {
            statement.push_str(line);
            statement.push(' ');
        }
    }
    assert!(run > 15, "{run} examples");
}
