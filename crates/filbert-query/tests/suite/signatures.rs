//! Functions and operators of texts: only a text is a text. A value of another type needs a cast.

use std::sync::Arc;

use crate::common::Member;
use filbert_grid::query::{Dialect, Session};

/// Expressions of a text, which stands for `?`.
const OF_TEXTS: &[&str] = &[
    "ascii(?)",
    "concat_ws(?, 'a', 'b')",
    "decode(?, 'escape')",
    "format(?, 'a')",
    "initcap(?)",
    "left(?, 1)",
    "lower(?)",
    "lpad(?, 3)",
    "lpad('a', 3, ?)",
    "quote_ident(?)",
    "regexp_match(?, 'a')",
    "regexp_match('a', ?)",
    "regexp_replace(?, 'a', 'b')",
    "regexp_split_to_array(?, 'a')",
    "repeat(?, 2)",
    "replace(?, 'a', 'b')",
    "replace('a', 'a', ?)",
    "reverse(?)",
    "right(?, 1)",
    "rpad(?, 3)",
    "split_part(?, 'a', 1)",
    "starts_with(?, 'a')",
    "starts_with('a', ?)",
    "string_to_array(?, 'a')",
    "string_to_array('a', ?)",
    "translate(?, 'a', 'b')",
    "upper(?)",
    "? ILIKE 'a'",
    "? ~ 'a'",
    "? ~ ANY (a)",
    "? NOT LIKE ALL (a)",
    "'a' ~ ?",
    "? !~* 'a'",
    "? SIMILAR TO 'a'",
    "'a' SIMILAR TO ?",
];

/// Expressions of a text or of bytes.
const OF_BYTES_TOO: &[&str] = &[
    "bit_length(?)",
    "length(?)",
    "ltrim(?)",
    "md5(?)",
    "octet_length(?)",
    "rtrim(?)",
    "strpos(?, 'a')",
    "substr(?, 1)",
    "substring(? from 1 for 2)",
    "trim(both from ?)",
    "? LIKE 'a'",
    "? NOT LIKE 'a'",
    "'a' LIKE ?",
    "? LIKE ANY (ARRAY['a', 'b'])",
];

fn member() -> Member {
    let member = Member::of(Dialect::Postgres);
    member.change(
        "CREATE TABLE v (id int PRIMARY KEY, t text, c char(3), u uuid, j json, b jsonb, y bytea, i int, n numeric, \
         f float8, o boolean, d date, ts timestamp, tz timestamptz, iv interval, a text[])",
    );
    member.change(
        "INSERT INTO v VALUES (1, 'a', 'a', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{}', '{}', 'a', 1, 1.5, 2.5, true, \
         '2024-01-01', '2024-01-01', '2024-01-01', '1 day', '{a}')",
    );
    member
}

/// How a statement with an expression of a column ends: its SQLSTATE, or `None` if it is served.
fn ended(member: &Member, expression: &str, column: &str) -> Option<&'static str> {
    let found = member.try_rows(&format!("SELECT ({})::text FROM v", expression.replace('?', column)), &[]);
    found.err().map(|error| error.sqlstate())
}

#[test]
fn only_texts_are_texts() {
    let member = member();
    for expression in OF_TEXTS.iter().chain(OF_BYTES_TOO) {
        for column in ["t", "c", "'a'", "NULL", "u::text", "b->>'a'", "t::varchar(2)"] {
            assert_eq!(ended(&member, expression, column), None, "{expression} of {column}");
        }
        for column in ["u", "j", "b", "i", "n", "f", "o", "d", "ts", "tz", "iv", "a"] {
            assert_eq!(ended(&member, expression, column), Some("42883"), "{expression} of {column}");
        }
    }
    for expression in OF_TEXTS {
        assert_eq!(ended(&member, expression, "y"), Some("42883"), "{expression} of bytes");
    }
}

#[test]
fn only_whole_numbers_are_whole() {
    let member = member();
    for expression in ["left(t, ?)", "lpad(t, ?)", "repeat(t, ?)", "split_part(t, 'a', ?)", "right(t, ?)"] {
        for number in ["i", "1", "'1'", "NULL"] {
            assert_eq!(ended(&member, expression, number), None, "{expression} of {number}");
        }
        for other in ["n", "f", "1.5", "u", "b", "d", "o"] {
            assert_eq!(ended(&member, expression, other), Some("42883"), "{expression} of {other}");
        }
    }
}

/// The element decides the type of an array that is NULL.
#[test]
fn a_null_takes_an_element() {
    let member = member();
    for (expression, expected) in [
        ("array_append(NULL, i)", "{1}|integer[]"),
        ("array_append(array_append(NULL, 2), 3)", "{2,3}|integer[]"),
        ("array_append(NULL, u)", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}|uuid[]"),
        ("array_append(NULL, b)", "{\"{}\"}|jsonb[]"),
        ("array_prepend(d, NULL)", "{2024-01-01}|date[]"),
        ("array_remove(NULL, n)", "NULL|numeric[]"),
    ] {
        let text = format!("SELECT coalesce(({expression})::text, 'NULL'), pg_typeof({expression})::text FROM v");
        assert_eq!(member.rows(&text), [expected], "{expression}");
    }
    for expression in ["array_append(a, i)", "array_remove(a, d)", "array_position(ARRAY[1], 'a'::text)", "a || i"] {
        assert_eq!(ended(&member, expression, ""), Some("42883"), "{expression}");
    }
}

/// Another dialect takes a UUID for its text.
#[test]
fn a_uuid_is_its_text_in_another_dialect() {
    let mut member = member();
    member.session = Some(Arc::new(Session::new(Dialect::Crate, "somebody")));
    assert_eq!(
        member.rows("SELECT left(u, 2), right(u, 2), replace(u, '-', '') FROM doc.v"),
        ["a0|11|a0eebc999c0b4ef8bb6d6bb9bd380a11"]
    );
}
