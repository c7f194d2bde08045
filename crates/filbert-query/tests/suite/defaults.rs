//! Defaults in PostgreSQL's dialect: a column without a value gets the value that an `INSERT` of
//! the default's expression would store.

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::Dialect;

/// Types of columns, and defaults of them.
const DEFAULTS: &[(&str, &[&str])] = &[
    ("int", &["5", "'5'", "-5", "1.5", "2 + 3", "length('abc')", "null", "1e2", "'x'", "now()", "3000000000"]),
    ("bigint", &["5", "9223372036854775807", "1.5::float8", "'1.5'"]),
    ("boolean", &["true", "'t'", "'off'", "not true", "1", "'maybe'"]),
    ("text", &["'a'", "5", "1.50", "1e-7", "true", "date '2024-01-01'", "timestamp '2024-01-01 10:00'", "'a' || 'b'"]),
    (
        "text",
        &["interval '1 day'", "1.5::float8", "1e21::float8", "array[1,2]", "'\\x01'::bytea", "'{\"a\": 1}'::jsonb"],
    ),
    ("text", &["timestamptz '2024-01-01 10:00'", "current_date", "now()::date", "user"]),
    ("varchar(3)", &["'abc'", "'abc  '", "'abcd'", "12345", "true"]),
    ("char(3)", &["' '", "'a'", "'a   '", "'abcd'", "''", "5"]),
    ("numeric", &["1.50", "1e-7", "'1.5'", "1", "1.5::float8", "'NaN'"]),
    ("numeric(5,2)", &["1.005", "'1.005'", "1000", "1"]),
    ("real", &["1.1", "'1.1'", "1", "'nan'"]),
    ("float8", &["1.1", "'-0'", "1e300", "'infinity'"]),
    ("date", &["'2024-01-01'", "date '2024-01-01'", "timestamp '2024-01-01 23:59'", "current_date", "'2024-13-01'"]),
    ("time", &["'10:00'", "time '10:00'", "timestamp '2024-01-01 10:00'"]),
    ("timestamp", &["'2024-01-01'", "date '2024-01-01'", "timestamptz '2024-01-01 12:00+00'", "current_date", "'x'"]),
    ("timestamptz", &["'2024-01-01 12:00'", "'2024-01-01 12:00+05'", "timestamp '2024-07-01'", "current_date"]),
    ("interval", &["'1 day'", "interval '90 minutes'", "'1 mon 2 days'", "time '10:00'"]),
    ("uuid", &["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'x'"]),
    ("bytea", &["'\\x0102'", "'a\\001'", "5"]),
    ("jsonb", &["'{\"b\":1,  \"a\":2, \"a\":3}'", "'[1, 2]'", "'x'", "5", "to_jsonb(5)"]),
    ("json", &["'{\"b\":1,  \"a\":2}'"]),
    ("int[]", &["'{}'", "'{1,2}'", "array[1,2]", "'{a}'", "array[]::int[]"]),
    ("text[]", &["'{}'", "'{a,NULL,\"b c\"}'", "array['a']", "array[1]"]),
    ("numeric[]", &["'{1.50}'", "array[1, 2.5]"]),
];

fn told(member: &Member, text: &str) -> Result<String, String> {
    match member.try_rows(text, &[]) {
        Ok(rows) => Ok(rows.join(",")),
        Err(error) => Err(error.sqlstate().to_owned()),
    }
}

#[test]
fn a_default_gives_what_its_expression_gives() {
    for zone in ["UTC", "America/New_York"] {
        let member = Member::of(Dialect::Postgres);
        member.run(&format!("SET TimeZone TO '{zone}'"), &[]).unwrap();
        for (column, default) in DEFAULTS.iter().flat_map(|(column, of)| of.iter().map(move |it| (column, it))) {
            let context = format!("{column} DEFAULT {default}, {zone}");
            member.change(&format!("CREATE TABLE given (id int, d {column})"));
            let given = told(&member, &format!("INSERT INTO given VALUES (1, {default})"))
                .and_then(|_| told(&member, "SELECT d::text, d IS NULL FROM given"));
            // PostgreSQL reports some of these errors at the first row. Here all of them are
            // reported at the declaration.
            let created = told(&member, &format!("CREATE TABLE t (id int, d {column} DEFAULT {default})"));
            let defaulted = created.and_then(|_| {
                told(&member, "INSERT INTO t (id) VALUES (1)")?;
                told(&member, "INSERT INTO t VALUES (1, DEFAULT)")?;
                member.change_with("INSERT INTO t (id) VALUES ($1)", &[Value::Int32(1)]);
                told(&member, "ALTER TABLE t ALTER d DROP DEFAULT")?;
                told(&member, &format!("ALTER TABLE t ALTER d SET DEFAULT {default}"))?;
                told(&member, "INSERT INTO t (id) SELECT 1")?;
                told(&member, "SELECT DISTINCT d::text, d IS NULL FROM t")
            });
            match given {
                Ok(_) => assert_eq!(defaulted, given, "{context}"),
                // The type of an expression and the value of a literal have different SQLSTATEs.
                Err(_) => assert!(defaulted.is_err(), "{context}: {defaulted:?}, but the value is refused: {given:?}"),
            }
            member.change("DROP TABLE IF EXISTS given, t");
        }
    }
}

#[test]
fn a_literal_has_the_time_zone_of_the_session_that_declares_it() {
    let member = Member::of(Dialect::Postgres);
    let set = |zone: &str| drop(member.run(&format!("SET TimeZone TO '{zone}'"), &[]).unwrap());
    set("Europe/Berlin");
    member.change("CREATE TABLE t (id int PRIMARY KEY, at timestamptz DEFAULT '2024-01-01 12:00')");
    set("UTC");
    member.change("INSERT INTO t VALUES (1)");
    set("Europe/Berlin");
    member.change("ALTER TABLE t ADD COLUMN more timestamptz DEFAULT '2024-07-01 12:00'");
    member.change("ALTER TABLE t ALTER at SET DEFAULT '2024-07-01 12:00'");
    set("America/New_York");
    member.change("INSERT INTO t VALUES (2)");
    set("UTC");
    assert_eq!(
        member.rows("SELECT id || ' ' || at::text || ' ' || more::text FROM t ORDER BY id"),
        ["1 2024-01-01 11:00:00+00 2024-07-01 10:00:00+00", "2 2024-07-01 10:00:00+00 2024-07-01 10:00:00+00"]
    );
}

#[test]
fn a_default_is_no_expression_over_the_row() {
    let member = Member::of(Dialect::Postgres);
    let error = member.error("CREATE TABLE t (a int, b int DEFAULT a + 1)");
    assert_eq!(error.sqlstate(), "0A000", "{error}");
    member.change("CREATE TABLE t (a int)");
    let error = member.error("ALTER TABLE t ADD COLUMN b int DEFAULT a + 1");
    assert_eq!(error.sqlstate(), "0A000", "{error}");
}

#[test]
fn moments_of_defaults_are_moments_of_the_transaction_or_of_the_call() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id int, now timestamptz DEFAULT now(), at timestamptz DEFAULT clock_timestamp())");
    let run = |text: &str| drop(member.run(text, &[]).unwrap());
    run("BEGIN");
    run("INSERT INTO t (id) SELECT generate_series(1, 1000)");
    run("INSERT INTO t (id) VALUES (1001)");
    assert_eq!(member.rows("SELECT count(DISTINCT now), min(now) = now() FROM t"), ["1|true"]);
    run("COMMIT");
    assert_eq!(member.rows("SELECT count(DISTINCT at) > 1, bool_and(at > now) FROM t"), ["true|true"]);
}
