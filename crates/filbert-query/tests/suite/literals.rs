//! String literals and equal values in PostgreSQL's dialect: a literal takes the type of its
//! neighbour, and two forms of one value are equal, in every construct.

use crate::common::Member;
use filbert_grid::query::Dialect;

/// Types, each with a value as a literal.
const VALUES: &[(&str, &str)] = &[
    ("date", "2020-01-02"),
    ("time", "10:00"),
    ("timestamp", "2020-01-02 03:04"),
    ("timestamptz", "2020-01-02 03:04+02"),
    ("interval", "24 hours"),
    ("uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
    ("jsonb", "{\"b\": 1.0,  \"a\": 2}"),
    ("bytea", "\\x0102"),
    ("boolean", "t"),
    ("int", "5"),
    ("numeric", "1.5"),
    ("float8", "1.5"),
    ("text", "a "),
    ("int[]", "{1,2}"),
    ("text[]", "{a,b}"),
    ("interval[]", "{24 hours,NULL}"),
    ("date[]", "{2020-01-02}"),
    ("uuid[]", "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}"),
    ("jsonb[]", "{\"{\\\"b\\\": 1,  \\\"a\\\": 2}\"}"),
    ("timestamptz[]", "{2020-01-02 03:04+02}"),
    ("boolean[]", "{t,f}"),
];

/// Queries with a value `{t}` and a literal `{l}`, which is also given its type.
const NEIGHBOURS: &[&str] = &[
    "SELECT x::text FROM (VALUES ({t}), ({l})) q(x)",
    "SELECT x::text FROM (VALUES ({l}), (NULL), ({t})) q(x)",
    "SELECT x::text FROM (SELECT {t} AS x UNION ALL SELECT {l}) q",
    "SELECT x::text FROM (SELECT {l} AS x UNION ALL SELECT {t}) q",
    "SELECT x::text FROM (SELECT {t} AS x UNION SELECT {l}) q",
    "SELECT x::text FROM (SELECT {t} AS x INTERSECT SELECT {l}) q",
    "SELECT coalesce(NULL, {t}, {l})::text",
    "SELECT (CASE WHEN false THEN {l} ELSE {t} END)::text",
    "SELECT (CASE {t} WHEN {l} THEN 'same' ELSE 'other' END)",
    "SELECT (ARRAY[{t}, {l}])::text",
    "SELECT nullif({t}, {l})::text",
    "SELECT {t} = {l}, {l} = {t}, {t} <> {l}",
    "SELECT {t} IN ({l})",
    "SELECT {l} = ANY (ARRAY[{t}])",
    "SELECT {t} IS NOT DISTINCT FROM {l}, {t} IS DISTINCT FROM {l}, {l} IS NOT DISTINCT FROM {t}",
    "SELECT ({t}, 1) = ({l}, 1), ({t}, 1) IN (({l}, 1))",
    "SELECT {t} BETWEEN {l} AND {l}",
    "SELECT array_position(ARRAY[{t}], {l})",
    "SELECT array_remove(ARRAY[{t}], {l})::text",
];

#[test]
fn a_literal_takes_the_type_of_its_neighbour() {
    let member = Member::of(Dialect::Postgres);
    let (mut compared, mut differences) = (0, Vec::new());
    for (of, value) in VALUES {
        let literal = format!("'{}'", value.replace('\'', "''"));
        let typed = format!("{literal}::{of}");
        for query in NEIGHBOURS {
            // An element of an array is not an array itself.
            if of.ends_with("[]") && ["ANY", "array_"].iter().any(|part| query.contains(part)) {
                continue;
            }
            let told = |of_literal: &str| {
                let text = query.replace("{t}", &typed).replace("{l}", of_literal);
                let rows = member.try_rows(&text, &[]).map_err(|error| format!("{} {error}", error.sqlstate()));
                (rows.map(|mut rows| (rows.sort(), rows).1), text)
            };
            let (expected, _) = told(&typed);
            let (found, text) = told(&literal);
            assert!(expected.is_ok(), "{of}: {query}: {expected:?}");
            // A rejection is not a wrong result.
            if found.as_ref().is_err_and(|error| error.starts_with("0A000") || error.starts_with("42804")) {
                continue;
            }
            if found != expected {
                differences.push(format!("{text}: {found:?}, expected {expected:?}"));
            }
            compared += 1;
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 250, "{compared}");
}

/// Types, each with two forms of one value.
const FORMS: &[(&str, &str, &str)] = &[
    ("interval", "24 hours", "1 day"),
    ("interval", "1 mon", "30 days"),
    ("jsonb", "{\"a\": 1, \"b\": 2.0}", "{\"b\":2,\"a\":1.00}"),
    ("float8", "0", "-0"),
    ("real", "0", "-0"),
    ("numeric", "1.5", "1.500"),
    ("char(5)", "a", "a   "),
    ("uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc999c0b4ef8bb6d6bb9bd380a11}"),
    ("bytea", "\\x61", "a"),
    ("timestamptz", "2020-01-02 03:04+02", "2020-01-02 01:04Z"),
    ("boolean", "t", "yes"),
];

/// Conditions on rows `f (id, a, b)` where `a` and `b` are two forms of one value.
const EQUAL: &[&str] = &[
    "SELECT a = b AND b = a AND NOT a <> b FROM f",
    "SELECT a <= b AND a >= b AND NOT a < b AND NOT a > b FROM f",
    "SELECT a IN (b) AND a BETWEEN b AND b FROM f",
    "SELECT a IS NOT DISTINCT FROM b FROM f",
    "SELECT nullif(a, b) IS NULL FROM f",
    "SELECT CASE a WHEN b THEN true ELSE false END FROM f",
    "SELECT (a, 1) = (b, 1) AND NOT (a, 1) < (b, 1) FROM f",
    "SELECT a = ANY (ARRAY[b]) AND NOT a <> ALL (ARRAY[b]) FROM f",
    "SELECT a IN (SELECT b FROM f) AND NOT a NOT IN (SELECT b FROM f) FROM f",
    "SELECT a = ANY (SELECT b FROM f) AND EXISTS (SELECT 1 FROM f g WHERE g.b = f.a) FROM f",
    "SELECT count(*) = 1 FROM f JOIN f g ON f.a = g.b",
    "SELECT count(DISTINCT x) = 1 FROM (SELECT a AS x FROM f UNION ALL SELECT b FROM f) q",
    "SELECT count(*) = 1 FROM (SELECT DISTINCT x FROM (SELECT a AS x FROM f UNION ALL SELECT b FROM f) q) r",
    "SELECT count(*) = 1 FROM (SELECT x FROM (SELECT a AS x FROM f UNION ALL SELECT b FROM f) q GROUP BY x) r",
    "SELECT count(*) = 1 FROM (SELECT a FROM f UNION SELECT b FROM f) q",
    "SELECT count(*) = 1 FROM (SELECT a FROM f INTERSECT SELECT b FROM f) q",
    "SELECT count(*) = 0 FROM (SELECT a FROM f EXCEPT SELECT b FROM f) q",
    "SELECT max(r) = 1 FROM (SELECT rank() OVER (ORDER BY x) AS r FROM (SELECT a AS x FROM f UNION ALL SELECT b FROM f) q) s",
    "SELECT min(n) = 2 FROM (SELECT count(*) OVER (PARTITION BY x) AS n FROM (SELECT a AS x FROM f UNION ALL SELECT b FROM f) q) s",
    "SELECT count(*) = 1 FROM (SELECT DISTINCT ON (x) x FROM (SELECT a AS x FROM f UNION ALL SELECT b FROM f) q) r",
];

/// Conditions on rows of arrays.
const EQUAL_ARRAYS: &[&str] = &[
    "SELECT a @> b AND a <@ b AND a && b FROM f",
    "SELECT array_position(a, b[1]) = 1 AND array_remove(a, b[1]) = '{}' FROM f",
    "SELECT a[1] = ANY (b) AND NOT a[1] <> ALL (b) FROM f",
];

#[test]
fn two_forms_of_one_value_are_equal() {
    let member = Member::of(Dialect::Postgres);
    let mut differences = Vec::new();
    for (of, one, other) in FORMS {
        for is_array in [false, true] {
            // Arrays of bytes are not served.
            if is_array && *of == "bytea" {
                continue;
            }
            let value =
                |form: &str| if is_array { format!("ARRAY['{form}'::{of}]") } else { format!("'{form}'::{of}") };
            let column = if is_array { format!("{of}[]") } else { (*of).to_owned() };
            member.change(&format!("CREATE TABLE f (id int PRIMARY KEY, a {column}, b {column})"));
            member.change(&format!("INSERT INTO f VALUES (1, {}, {})", value(one), value(other)));
            let of_arrays = EQUAL_ARRAYS.iter().filter(|_| is_array);
            for query in EQUAL.iter().chain(of_arrays) {
                let rows = member.try_rows(query, &[]).map_err(|error| format!("{} {error}", error.sqlstate()));
                if rows != Ok(vec!["true".to_owned()]) {
                    differences.push(format!("{column}, {one} and {other}: {query}: {rows:?}"));
                }
            }
            member.change("DROP TABLE f");
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
