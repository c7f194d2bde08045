//! Tables that change, schemas, indexes, and rows from and to files.

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::{Command, CopyKind, Dialect, Session, WriteMode};
use filbert_query::QueryConfig;
use std::sync::Arc;

#[track_caller]
fn sqlstate(member: &Member, text: &str, expected: &str) -> String {
    let error = member.error(text);
    assert_eq!(error.sqlstate(), expected, "{text}: {error}");
    error.message
}

fn table() -> Member {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b INT)");
    member.change("INSERT INTO t VALUES (1, 'x', 10), (2, 'y', NULL)");
    member
}

#[test]
fn columns_come_go_and_change() {
    let member = table();
    member.change("ALTER TABLE t ADD COLUMN c BIGINT DEFAULT 7, ADD d TEXT");
    assert_eq!(member.rows("SELECT * FROM t ORDER BY id"), ["1|x|10|7|NULL", "2|y|NULL|7|NULL"]);
    sqlstate(&member, "ALTER TABLE t ADD COLUMN c INT", "42701");
    member.change("ALTER TABLE t ADD COLUMN IF NOT EXISTS c INT");
    member.change("ALTER TABLE t RENAME COLUMN a TO name");
    member.change("INSERT INTO t (id, name) VALUES (3, 'z')");
    assert_eq!(member.rows("SELECT name, c FROM t ORDER BY id"), ["x|7", "y|7", "z|7"]);
    member.change("ALTER TABLE t DROP COLUMN b");
    member.change("ALTER TABLE t ADD COLUMN b TEXT");
    assert_eq!(member.rows("SELECT b FROM t WHERE id = 1"), ["NULL"]);
    member.change("ALTER TABLE t ALTER COLUMN c TYPE TEXT");
    assert_eq!(member.rows("SELECT c || '!' FROM t WHERE id = 2"), ["7!"]);
    member.change("ALTER TABLE t ALTER COLUMN c TYPE INT USING length(name) + 41");
    assert_eq!(member.rows("SELECT c FROM t WHERE id = 2"), ["42"]);
    sqlstate(&member, "ALTER TABLE t ALTER COLUMN name TYPE INT", "22P02");
    assert_eq!(member.rows("SELECT name FROM t WHERE id = 1"), ["x"]);
    sqlstate(&member, "ALTER TABLE t DROP COLUMN nothing", "42703");
    sqlstate(&member, "ALTER TABLE t DROP COLUMN id", "2BP01");
    sqlstate(&member, "ALTER TABLE nothing ADD COLUMN a INT", "42P01");
    member.change("ALTER TABLE IF EXISTS nothing ADD COLUMN a INT");
}

#[test]
fn constraints_come_and_go() {
    let member = table();
    sqlstate(&member, "ALTER TABLE t ALTER COLUMN b SET NOT NULL", "23502");
    member.change("INSERT INTO t VALUES (3, 'z', NULL)");
    member.change("UPDATE t SET b = 0 WHERE b IS NULL");
    member.change("ALTER TABLE t ALTER COLUMN b SET NOT NULL, ALTER b SET DEFAULT 5");
    member.change("INSERT INTO t (id) VALUES (4)");
    sqlstate(&member, "INSERT INTO t VALUES (5, 'n', NULL)", "23502");
    sqlstate(&member, "ALTER TABLE t ADD CONSTRAINT small CHECK (b < 10)", "23514");
    member.change("UPDATE t SET b = 9 WHERE b = 10");
    member.change("ALTER TABLE t ADD CONSTRAINT small CHECK (b < 10)");
    sqlstate(&member, "UPDATE t SET b = 11 WHERE id = 1", "23514");
    member.change("ALTER TABLE t DROP CONSTRAINT small");
    member.change("UPDATE t SET b = 11 WHERE id = 1");
    member.change("ALTER TABLE t ALTER COLUMN b DROP NOT NULL, ALTER COLUMN b DROP DEFAULT");
    member.change("INSERT INTO t VALUES (6)");
    sqlstate(&member, "ALTER TABLE t DROP CONSTRAINT small", "42704");
    member.change("ALTER TABLE t SET (number_of_replicas = 1, \"refresh_interval\" = 5)");
    member.change("ALTER TABLE t RESET (refresh_interval)");
}

#[test]
fn a_table_gets_a_key_and_another_name() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE accounts (aid INT NOT NULL, bid INT, filler CHAR(84)) WITH (fillfactor=100)");
    member.change("INSERT INTO accounts SELECT v, v * 2, '' FROM generate_series(1, 100) AS g(v)");
    member.change("ALTER TABLE accounts ADD PRIMARY KEY (aid)");
    assert_eq!(member.rows("SELECT count(*), sum(bid) FROM accounts"), ["100|10100"]);
    sqlstate(&member, "INSERT INTO accounts VALUES (7, 7, 'x')", "23505");
    assert_eq!(member.change("UPDATE accounts SET bid = bid + 1 WHERE aid = 7"), 1);
    assert_eq!(member.rows("SELECT bid FROM accounts WHERE aid = 7"), ["15"]);
    sqlstate(&member, "ALTER TABLE accounts ADD PRIMARY KEY (bid)", "42P16");
    member.change("ALTER TABLE accounts RENAME TO renamed");
    sqlstate(&member, "SELECT * FROM accounts", "42P01");
    assert_eq!(member.rows("SELECT bid FROM renamed WHERE aid = 7"), ["15"]);
    member.change("ALTER TABLE renamed DROP CONSTRAINT accounts_pkey");
    assert_eq!(member.change("INSERT INTO renamed VALUES (7, 7, 'x')"), 1);
    sqlstate(&member, "ALTER TABLE renamed ADD PRIMARY KEY (aid)", "23505");
    assert_eq!(member.rows("SELECT count(*) FROM renamed"), ["101"]);
}

#[test]
fn schemas_indexes_and_tables_of_queries() {
    let member = table();
    member.change("CREATE SCHEMA s");
    sqlstate(&member, "CREATE SCHEMA s", "42P06");
    member.change("CREATE SCHEMA IF NOT EXISTS s");
    member.change("CREATE TABLE s.copy AS SELECT id, upper(a) AS name, b FROM t");
    assert_eq!(member.rows("SELECT name FROM s.copy ORDER BY id"), ["X", "Y"]);
    member.change("CREATE TABLE other (k, v) AS SELECT id, a FROM t WITH NO DATA");
    assert_eq!(member.change("INSERT INTO other VALUES (1, 'v')"), 1);
    member.change("CREATE TABLE liked (LIKE t, extra INT)");
    member.change("INSERT INTO liked VALUES (1, 'a', 2, 3)");
    sqlstate(&member, "DROP SCHEMA s", "2BP01");
    member.change("DROP SCHEMA s CASCADE");
    sqlstate(&member, "SELECT * FROM s.copy", "42P01");
    member.change("CREATE INDEX by_a ON t USING btree (a DESC NULLS LAST)");
    member.change("CREATE INDEX IF NOT EXISTS by_a ON public.t (a)");
    member.change("CREATE UNIQUE INDEX u ON t (id)");
    assert!(member.rows("EXPLAIN SELECT b FROM t WHERE a = 'x'")[0].contains("index by_a"));
    sqlstate(&member, "CREATE UNIQUE INDEX v ON t (a)", "0A000");
    member.change("ALTER TABLE t RENAME a TO word");
    assert!(member.rows("EXPLAIN SELECT b FROM t WHERE word = 'x'")[0].contains("index by_a"));
    assert_eq!(member.rows("SELECT id FROM t WHERE word = 'x'"), ["1"]);
    member.change("DROP INDEX by_a");
    sqlstate(&member, "DROP INDEX by_a", "42704");
    member.change("COMMENT ON TABLE t IS 'words'");
    member.change("COMMENT ON COLUMN t.word IS 'one'");
}

#[test]
fn rows_are_copied_from_and_to_clients() {
    let member = table();
    let command = |text: &str| member.describe(text).unwrap().command.clone();
    let Command::CopyIn(format) =
        command("COPY t (id, a) FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';', NULL 'null')")
    else {
        panic!("not a copy")
    };
    assert_eq!(
        (format.kind, format.header, format.delimiter, format.null.as_str()),
        (CopyKind::Csv, true, ';', "null")
    );
    assert!(matches!(command("copy t to stdout"), Command::CopyOut(format) if format.kind == CopyKind::Text));
    assert!(matches!(command("COPY (SELECT 1) TO STDOUT CSV HEADER"), Command::CopyOut(format) if format.header));
    assert!(matches!(command("COPY BINARY t FROM STDIN"), Command::CopyIn(format) if format.kind == CopyKind::Binary));
    assert_eq!(member.rows("COPY t (a) TO STDOUT").len(), 2);
    let mut writer = member.row_writer("COPY t FROM STDIN", WriteMode::All).unwrap();
    let mut failed = 0;
    let rows = ["7", "seven", "77", "8", "eight", "x"].map(Value::text);
    writer.write(&rows, &mut |outcome| failed += usize::from(outcome.is_err()));
    assert_eq!((failed, writer.finish().unwrap()), (1, 1));
    assert_eq!(member.rows("SELECT a, b FROM t WHERE id = 7"), ["seven|77"]);
    sqlstate(&member, "COPY t FROM '/etc/passwd'", "42501");
    sqlstate(&member, "COPY t FROM PROGRAM 'ls'", "0A000");
}

#[test]
fn rows_are_copied_from_and_to_files() {
    let folder = std::env::temp_dir().join(format!("filbert-copy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut member = Member::with(QueryConfig { copy_directory: Some(folder.clone()), ..QueryConfig::default() });
    for dialect in [Dialect::Postgres, Dialect::Crate] {
        member.session = Some(Arc::new(Session::new(dialect, "somebody")));
        member.change("DROP TABLE IF EXISTS t");
        member.change("CREATE TABLE t (id INT PRIMARY KEY, a TEXT, n DOUBLE PRECISION, at TIMESTAMP, j JSON)");
        member.change(
            "INSERT INTO t VALUES (1, 'a \"b\", c', 1.5, '2024-05-06T07:08:09', '{\"x\": [1, 2]}'), (2, NULL, NULL, NULL, NULL)",
        );
        let before = member.rows("SELECT * FROM t ORDER BY id");
        for name in ["t.csv", "t.json", "t.parquet", "t.txt"] {
            let format = if name == "t.txt" { " WITH (format = 'text')" } else { "" };
            assert_eq!(member.change(&format!("COPY t TO '{name}'{format}")), 2, "{name}");
            member.change("DELETE FROM t");
            assert_eq!(member.change(&format!("COPY t FROM '{name}'{format}")), 2, "{name}");
            assert_eq!(member.rows("SELECT * FROM t ORDER BY id"), before, "{name}");
        }
        assert_eq!(
            member.change("COPY (SELECT id, a FROM t WHERE id = 1) TO 'part.csv' WITH (format = 'csv', header = true)"),
            1
        );
        assert_eq!(std::fs::read_to_string(folder.join("part.csv")).unwrap(), "id,a\n1,\"a \"\"b\"\", c\"\n");
        sqlstate(&member, "COPY t FROM '../x.csv'", "42501");
        sqlstate(&member, "COPY t FROM '/etc/passwd'", "42501");
        sqlstate(&member, "COPY t FROM 'nothing.csv'", "58P01");
        std::fs::write(folder.join("bad.csv"), "9,a,b\n").unwrap();
        sqlstate(&member, "COPY t FROM 'bad.csv' WITH (header = false)", "22P04");
    }
    std::fs::write(folder.join("many1.json"), "{\"id\": 10, \"a\": \"x\"}\n\n{\"id\": \"no\"}\n").unwrap();
    std::fs::write(folder.join("many2.json"), "{\"a\": \"y\", \"id\": 11, \"other\": 1}\n{\"id\": 10}\n").unwrap();
    // A JSON member without a column would be lost, so it is an error unless the statement lists
    // the columns.
    sqlstate(&member, "COPY t FROM 'many*.json'", "42703");
    member.change("DELETE FROM t WHERE id >= 10");
    assert_eq!(member.change("COPY t (id, a) FROM 'many*.json'"), 2);
    assert_eq!(member.rows("SELECT id, a FROM t WHERE id >= 10 ORDER BY id"), ["10|x", "11|y"]);
    columns_of_files(&mut member, &folder);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The columns of a file: by their order in PostgreSQL's dialect, otherwise by the names in the
/// file. Columns that a file does not have get their defaults.
fn columns_of_files(member: &mut Member, folder: &std::path::Path) {
    std::fs::write(folder.join("order.csv"), "b,id\n7,1\n").unwrap();
    std::fs::write(folder.join("other.csv"), "id,x\n1,7\n").unwrap();
    std::fs::write(folder.join("few.json"), "{\"id\": 1}\n{\"id\": 2, \"b\": null}\n{\"id\": 3, \"b\": 4}\n").unwrap();
    for dialect in [Dialect::Postgres, Dialect::Crate] {
        member.session = Some(Arc::new(Session::new(dialect, "somebody")));
        member.change("DROP TABLE IF EXISTS c");
        member.change("CREATE TABLE c (id INT PRIMARY KEY, b INT DEFAULT 5, d TEXT DEFAULT 'none')");
        let copied = |text: &str| {
            member.change("DELETE FROM c");
            member.change(text);
            member.rows("SELECT id, b, d FROM c ORDER BY id")
        };
        assert_eq!(copied("COPY c FROM 'few.json'"), ["1|5|none", "2|NULL|none", "3|4|none"]);
        if dialect == Dialect::Crate {
            assert_eq!(copied("COPY c FROM 'order.csv' WITH (header = true)"), ["1|7|none"]);
            assert_eq!(copied("COPY c (id) FROM 'order.csv' WITH (header = true)"), ["1|5|none"]);
            sqlstate(member, "COPY c FROM 'other.csv' WITH (header = true)", "42703");
        } else {
            assert_eq!(copied("COPY c (id, b) FROM 'order.csv' WITH (format csv, header true)"), ["7|1|none"]);
            assert_eq!(copied("COPY c (id, b) FROM 'other.csv' WITH (format csv, header true)"), ["1|7|none"]);
            sqlstate(member, "COPY c FROM 'order.csv' WITH (format csv, header true)", "22P04");
        }
    }
}

/// `COPY` does not read or write files outside of its directory, whatever links the directory
/// contains.
#[cfg(unix)]
#[test]
fn copying_follows_no_link_and_reads_no_pipe() {
    use std::os::unix::fs::symlink;

    let folder = std::env::temp_dir().join(format!("filbert-copy-links-{}", std::process::id()));
    let (inside, outside) = (folder.join("inside"), folder.join("outside"));
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("t.csv"), "1\n").unwrap();
    symlink(&outside, inside.join("way")).unwrap();
    symlink(outside.join("t.csv"), inside.join("t.csv")).unwrap();
    symlink(outside.join("made"), inside.join("x.csv.part")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        inside.join("pipe.csv"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let mut member = Member::with(QueryConfig { copy_directory: Some(inside.clone()), ..QueryConfig::default() });
    for dialect in [Dialect::Postgres, Dialect::Crate] {
        member.session = Some(Arc::new(Session::new(dialect, "somebody")));
        member.change("DROP TABLE IF EXISTS t");
        member.change("CREATE TABLE t (id INT PRIMARY KEY)");
        member.change("INSERT INTO t VALUES (7)");
        for path in ["t.csv", "way/t.csv", "pipe.csv", "*.csv", "way/*"] {
            sqlstate(&member, &format!("COPY t FROM '{path}' WITH (header = false)"), "42501");
        }
        sqlstate(&member, "COPY t TO 'way/new.csv'", "42501");
        // An existing entry with the temporary name does not prevent the copy.
        assert_eq!(member.change("COPY t TO 'x.csv'"), 1);
        // The file replaces a link with its name.
        assert_eq!(member.change("COPY t TO 'made.csv'"), 1);
        symlink(outside.join("t.csv"), inside.join("linked.csv")).unwrap();
        assert_eq!(member.change("COPY t TO 'linked.csv'"), 1);
        assert!(std::fs::symlink_metadata(inside.join("linked.csv")).unwrap().is_file());
        std::fs::remove_file(inside.join("linked.csv")).unwrap();
        // A copy that fails leaves no file behind.
        for name in ["half.csv", "half.json", "half.parquet"] {
            sqlstate(&member, &format!("COPY (SELECT 1 / (id - 7) AS q FROM t) TO '{name}'"), "22012");
        }
        assert_eq!(member.rows("SELECT id FROM t"), ["7"]);
    }
    let mut names: Vec<String> =
        std::fs::read_dir(&inside).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["made.csv", "pipe.csv", "t.csv", "way", "x.csv", "x.csv.part"]);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(outside.join("t.csv")).unwrap(), "1\n");
    std::fs::remove_dir_all(folder).unwrap();
}
