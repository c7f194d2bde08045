//! Casts of arrays beside casts of single values: each element is cast as a single value is.

use crate::common::Member;
use filbert_grid::query::Dialect;

/// The types of elements, each with a value as text.
const TYPES: &[(&str, &str)] = &[
    ("smallint", "7"),
    ("int", "7"),
    ("bigint", "7"),
    ("numeric", "2.5"),
    ("numeric(5,1)", "3.5"),
    ("real", "0.1"),
    ("float8", "2.5"),
    ("boolean", "true"),
    ("text", "7"),
    ("varchar(2)", "7"),
    ("char(3)", "7"),
    ("date", "2024-01-02"),
    ("timestamp", "2024-01-02 03:04:05.5"),
    ("timestamp(0)", "2024-07-02 03:04:05"),
    ("timestamptz", "2024-01-02 03:04:05.5+00"),
    ("time", "13:14:15.25"),
    ("interval", "1 mon 2 days 03:00"),
    ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("json", "7"),
    ("jsonb", "7"),
];

/// The rows of a query; `None` for an error.
fn answered(member: &Member, text: &str) -> Option<Vec<String>> {
    member.try_rows(text, &[]).ok()
}

#[test]
fn elements_are_cast_as_single_values_between_all_types() {
    let member = Member::of(Dialect::Postgres);
    let columns: Vec<String> = TYPES.iter().enumerate().map(|(at, (of, _))| format!("c{at} {of}[]")).collect();
    let values: Vec<String> = TYPES.iter().map(|(of, value)| format!("array[NULL, '{value}']::{of}[]")).collect();
    member.change(&format!("CREATE TABLE t (id int PRIMARY KEY, {})", columns.join(", ")));
    member.change(&format!("INSERT INTO t VALUES (1, {})", values.join(", ")));
    let mut served = 0;
    for (at, (from, _)) in TYPES.iter().enumerate() {
        for (to, _) in TYPES {
            let array = format!("c{at}::{to}[]");
            let cast = format!("SELECT (({array})[2])::text, ({array})[1] IS NULL, cardinality({array}) FROM t");
            let single = format!("SELECT ((c{at}[2])::{to})::text, true, 2 FROM t");
            let found = answered(&member, &cast);
            assert_eq!(found, answered(&member, &single), "{from} to {to}");
            served += usize::from(found.is_some());
        }
    }
    assert!(served > 200, "{served} casts are served");
}
