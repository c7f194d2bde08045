//! Columns that show stored values in another type. An index over the stored values must not change
//! the results.

use crate::common::Member;
use filbert_data::{ToBlob, Value};
use filbert_grid::{Caller, Change, Expiry, PutMode};

/// A map `m` of JSON documents with one field `x`, read as a column of a type.
fn member(column: &str, stored: &[&str]) -> Member {
    let member = Member::start();
    member.change(&format!(
        "CREATE MAPPING m (__key INT, x {column}) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='json-flat')"
    ));
    for (key, x) in (0_i32..).zip(stored) {
        put(&member, key, x);
    }
    member
}

fn put(member: &Member, key: i32, x: &str) {
    let map = member.grid.map("m").unwrap();
    let key = key.to_blob().unwrap();
    let value = Value::Json(format!("{{\"x\": {x}}}").into()).to_blob().unwrap();
    let change = Change::Put { key: &key, value: &value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
    assert!(map.change(map.partition_of(&key), Caller::default(), change, |_| ()).is_ok());
}

#[test]
fn an_index_finds_what_a_scan_finds_whatever_the_column_makes_of_the_values() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("DATE", &["\"2024-02-29\"", "\"2024-03-01\"", "null"], "x = DATE '2024-02-29'"),
        ("DATE", &["\"2024-02-29\"", "\"2024-03-01\""], "x > DATE '2024-02-29'"),
        ("TIMESTAMP", &["\"2024-02-29T01:02:03\"", "\"2024-02-29\""], "x = TIMESTAMP '2024-02-29 00:00:00'"),
        ("VARCHAR", &["5", "\"5\"", "5.0", "true"], "x = '5'"),
        ("VARCHAR", &["10", "\"9\"", "\"80\""], "x < '9'"),
        ("BIGINT", &["\"7\"", "7", "7.0", "8"], "x = 7"),
        ("BIGINT", &["7", "7.0", "8"], "x BETWEEN 6 AND 7"),
        ("REAL", &["0.1", "0.25"], "x = CAST(0.1 AS REAL)"),
        ("DOUBLE", &["9007199254740993", "9007199254740992"], "x = 9007199254740992e0"),
        ("DECIMAL(5, 1)", &["1.25", "1.3", "1.34"], "x = 1.3"),
        ("BOOLEAN", &["\"true\"", "true", "false"], "x = true"),
    ];
    for (column, stored, condition) in cases {
        let query = format!("SELECT __key FROM m WHERE {condition}");
        let without = member(column, stored);
        let expected = without.sorted(&query);
        for kind in ["HASH", "SORTED"] {
            let with = member(column, stored);
            with.change(&format!("CREATE INDEX by_x ON m (x) TYPE {kind}"));
            assert_eq!(with.sorted(&query), expected, "{column} {stored:?} {condition} {kind}");
            // The second time it is a short plan.
            assert_eq!(with.sorted(&query), expected, "{column} {stored:?} {condition} {kind}, again");
        }
        assert!(!expected.is_empty(), "{column} {stored:?} {condition}: a test that finds nothing shows little");
    }
}

#[test]
fn a_value_of_another_type_that_comes_later_is_found() {
    let member = member("BIGINT", &["1", "2"]);
    member.change("CREATE INDEX by_x ON m (x) TYPE HASH");
    assert_eq!(member.rows("SELECT __key FROM m WHERE x = 2"), ["1"]);
    put(&member, 9, "\"2\"");
    assert_eq!(member.sorted("SELECT __key FROM m WHERE x = 2"), ["1", "9"]);
}
