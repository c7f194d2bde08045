//! `INSERT .. VALUES` with several rows stores the same values as a separate INSERT for each row.

use crate::common::Member;
use filbert_grid::query::Dialect;

/// Types of columns, and values for them.
const COLUMNS: &[(&str, &[&str])] = &[
    (
        "timestamp",
        &["date '2024-01-01'", "'2024-01-01 10:00'", "timestamptz '2024-01-01 00:00+00'", "'2024-01-01 10:00+05'"],
    ),
    (
        "timestamptz",
        &["timestamp '2024-01-01'", "'2024-01-01 00:00+05'", "date '2024-01-01'", "null", "'2024-03-10 02:30'"],
    ),
    ("date", &["timestamptz '2024-01-01 00:00+00'", "'2024-01-01 23:00-05'", "'2024-1-1'", "null"]),
    ("time", &["'10:00'", "timestamp '2024-01-01 11:00'", "time '12:00'"]),
    ("interval", &["'1 mon'", "interval '1 day'", "time '10:00'", "null"]),
    ("text", &["' 7'", "7", "7.50", "1e3", "7::bigint", "1e3::float8", "'ab   '", "'x'::char(5)", "true"]),
    ("text", &["'2024-1-1'", "date '2024-01-01'", "timestamp '2024-01-01 10:00'", "'2024-01-01 10:00+05'", "null"]),
    ("text", &["'{\"b\":1,  \"a\":2}'", "'{\"b\":1}'::jsonb", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    ("text", &["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid", "'A0'", "array[1, 2]", "'{1,  2}'", "upper('a')"]),
    ("json", &["'{\"b\":1,  \"a\":2}'", "'{\"b\":1}'::jsonb", "null"]),
    ("numeric", &["'12345678901234567890.12345'", "2::bigint", "1.50", "1", "'1e2'", "1.5::float8"]),
    ("float8", &["1", "'1.5'", "1.1::real", "0.1", "1e300"]),
    ("int", &["1", "'2'", "1.5", "2.5::float8", "null", "3::smallint"]),
    ("boolean", &["true", "'f'", "null", "not true"]),
    ("int[]", &["'{1}'", "array[10, 2]", "null", "'{}'", "array[1.5]"]),
    ("text[]", &["'{a, b}'", "array['a']", "array[1, 2]", "null"]),
    ("bytea", &["'\\x01'", "'a'", "'\\x02'::bytea", "null"]),
    ("uuid", &["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'::uuid", "null"]),
];

#[test]
fn rows_of_values_do_not_change_each_other() {
    for zone in ["UTC", "America/New_York"] {
        let member = Member::of(Dialect::Postgres);
        member.run(&format!("SET TimeZone TO '{zone}'"), &[]).unwrap();
        for (column, values) in COLUMNS {
            member.change(&format!("CREATE TABLE alone (id int, v {column})"));
            member.change(&format!("CREATE TABLE together (id int, v {column})"));
            let accepted: Vec<&&str> = values
                .iter()
                .enumerate()
                .filter(|(id, value)| member.run(&format!("INSERT INTO alone VALUES ({id}, {value})"), &[]).is_ok())
                .map(|(_, value)| value)
                .collect();
            member.change("DELETE FROM alone");
            for (id, value) in accepted.iter().enumerate() {
                member.change(&format!("INSERT INTO alone VALUES ({id}, {value})"));
            }
            let expected = member.rows("SELECT id, v::text FROM alone ORDER BY id");
            assert!(expected.len() > 1, "{column}: a test that compares nothing shows nothing");
            let rows: Vec<String> = accepted.iter().enumerate().map(|(id, value)| format!("({id}, {value})")).collect();
            let mut backwards = rows.clone();
            backwards.reverse();
            // The rows in reverse order, and each row twice.
            for rows in [rows.clone(), backwards, [rows.clone(), rows].concat()] {
                member.change("DELETE FROM together");
                let statement = format!("INSERT INTO together VALUES {}", rows.join(", "));
                member.change(&statement);
                let found = member.rows("SELECT DISTINCT id, v::text FROM together ORDER BY id");
                assert_eq!(found, expected, "{column}, {zone}: {statement}");
            }
            member.change("DROP TABLE alone, together");
        }
    }
}
