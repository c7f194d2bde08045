//! Results of functions: short statements that request gigabytes or hours.

use crate::load::Expect::{Cancelled, Closed, Ends, Refused};
use crate::load::{Kind, Load, States, Table};

/// A value or a batch of values is too large.
const TOO_LARGE: States = &["54000", "53200"];

/// As [`TOO_LARGE`], or a number is out of the range of its type first.
const OUT_OF_RANGE: States = &["54000", "53200", "22003"];

/// As [`OUT_OF_RANGE`], or the function rejects the value, or no function accepts so large a
/// number.
const REFUSED: States = &["54000", "53200", "22003", "22023", "0A000", "42883"];

pub(crate) fn loads() -> Vec<Load> {
    let t = Table(Kind::Functions);
    vec![
        t.sql("repeat-1gb", "SELECT length(repeat('x', 1000000000))", Refused(TOO_LARGE)).short(),
        t.sql("repeat-of-repeat", "SELECT length(repeat(repeat('x', 60000000), 60))", Refused(TOO_LARGE)),
        t.sql("repeat-per-row", "SELECT max(length(repeat(t, 100000))) FROM crowd", Refused(TOO_LARGE)).short(),
        t.sql("repeat-60mb-per-row", "SELECT max(length(repeat('x', 60000000 + id % 2))) FROM crowd", Refused(TOO_LARGE)),
        t.sql("lpad-2gb", "SELECT length(lpad('x', 2147483647, 'y'))", Refused(TOO_LARGE)),
        t.sql("rpad-per-row", "SELECT sum(length(rpad(t, 1000000))) FROM crowd", Refused(TOO_LARGE)),
        t.sql("replace-grows", "SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 100000)))", Refused(TOO_LARGE)).short(),
        t.sql("replace-per-row", "SELECT sum(length(replace(t, 'x', repeat('z', 100000)))) FROM crowd", Refused(TOO_LARGE)),
        t.sql("translate-per-row", "SELECT sum(length(translate(repeat(t, 10000), 'x', 'é'))) FROM crowd", Refused(TOO_LARGE)),
        t.sql("regexp-replace-grows", "SELECT length(regexp_replace(repeat('x', 1000000), 'x', repeat('y', 100000), 'g'))", Refused(TOO_LARGE)),
        t.sql("regexp-replace-groups", "SELECT length(regexp_replace(repeat('x', 1000000), '(.*)', repeat('\\1', 1000)))", Refused(TOO_LARGE)),
        t.sql("regexp-nested-counts", "SELECT count(*) FROM crowd WHERE t ~ '(((x{1,100}){1,100}){1,100}){1,100}$'", Refused(&["2201B", "54000", "53200", "0A000"])),
        t.sql("regexp-long-alternation", "SELECT count(*) FROM crowd WHERE repeat(t, 20) ~ '(x|xx|xxx|xxxx|xxxxx)*(x|xx|xxx)*y$'", Ends(TOO_LARGE)),
        t.sql("regexp-split-per-row", "SELECT sum(cardinality(regexp_split_to_array(repeat(t, 1000), ''))) FROM crowd", Cancelled(TOO_LARGE)),
        t.sql("regexp-matches-per-row", "SELECT count(*) FROM crowd, regexp_matches(repeat(t, 1000), '.', 'g')", Cancelled(TOO_LARGE)),
        t.sql("like-3000-wildcards", "SELECT repeat('a', 1000000) LIKE repeat('%a', 3000) || 'b'", Ends(TOO_LARGE)),
        t.sql("like-wildcards-per-row", "SELECT count(*) FROM crowd WHERE repeat(t, 50) LIKE repeat('%x', 1000) || 'y'", Ends(TOO_LARGE)),
        t.sql("ilike-wildcards-per-row", "SELECT count(*) FROM crowd WHERE repeat(t, 50) ILIKE repeat('%X', 1000) || 'y'", Ends(TOO_LARGE)),
        t.sql("similar-to-per-row", "SELECT count(*) FROM crowd WHERE repeat(t, 100) SIMILAR TO '(x|xx|x%)*y'", Ends(&["54000", "53200", "0A000"])),
        t.sql("array-fill-1e9", "SELECT cardinality(array_fill(1, ARRAY[1000000000]))", Refused(REFUSED)).short(),
        t.sql("array-fill-cube", "SELECT cardinality(array_fill(1, ARRAY[2000, 2000, 2000]))", Refused(REFUSED)),
        t.sql("array-repeat-1e9", "SELECT cardinality(array_repeat(1, 1000000000))", Refused(REFUSED)),
        t.sql("array-repeat-per-row", "SELECT sum(cardinality(array_repeat(t, 10000))) FROM crowd", Refused(REFUSED)),
        t.sql("array-append-grows", "SELECT cardinality(array_cat(array_agg(a.id), array_agg(b.id))) FROM crowd a, crowd b", Cancelled(TOO_LARGE)),
        t.sql("array-to-string-grows", "SELECT length(array_to_string(array_fill('x'::text, ARRAY[1000000]), repeat('y', 10000)))", Refused(REFUSED)),
        t.sql("string-to-array-per-row", "SELECT sum(cardinality(string_to_array(repeat(t, 1000), 'x'))) FROM crowd", Cancelled(TOO_LARGE)),
        t.sql("range-1e9", "SELECT cardinality(ARRAY(SELECT generate_series(1, 1000000000)))", Cancelled(TOO_LARGE)).short(),
        t.sql("series-in-select-per-row", "SELECT generate_series(1, 1000000), t FROM crowd ORDER BY 1 DESC", Cancelled(TOO_LARGE)),
        t.sql("series-1e12", "SELECT count(*) FROM generate_series(1, 1000000000000)", Cancelled(&[])).short(),
        t.sql("series-of-timestamps", "SELECT count(*) FROM generate_series('0001-01-01'::timestamp, '9999-01-01', '1 microsecond')", Cancelled(TOO_LARGE)),
        t.sql("series-times-unnest", "SELECT count(*) FROM crowd, unnest(array_fill(id, ARRAY[100000]))", Cancelled(TOO_LARGE)),
        t.sql("string-agg-of-all", "SELECT length(string_agg(repeat(t, 100), ',')) FROM crowd", Refused(TOO_LARGE)),
        t.sql("string-agg-by-group", "SELECT max(length(s)) FROM (SELECT g, string_agg(repeat(t, 1000), ',') AS s FROM crowd GROUP BY g) x", Refused(TOO_LARGE)),
        t.sql("json-agg-of-products", "SELECT length(json_agg(a.t)::text) FROM crowd a, crowd b", Cancelled(TOO_LARGE)),
        t.sql("jsonb-object-agg-of-all", "SELECT length(jsonb_object_agg(id, repeat(t, 100))::text) FROM crowd", Refused(TOO_LARGE)),
        t.made("json-nested-builds", || format!("SELECT length(({}'1'{})::text)", "json_build_array(".repeat(300), ")".repeat(300)), Ends(&["54001", "54000", "42601"])),
        t.made("jsonb-deep-text", || format!("SELECT '{}{}'::jsonb", "[".repeat(1_000_000), "]".repeat(1_000_000)), Refused(&["54001", "54000", "22P02", "22032"])).short(),
        t.sql("format-width", "SELECT length(format('%2147483647s', 'x'))", Refused(OUT_OF_RANGE)),
        t.sql("format-many", "SELECT length(format(repeat('%1$s', 100000), repeat('x', 100000)))", Refused(TOO_LARGE)),
        t.sql("to-char-picture", "SELECT length(to_char(now(), repeat('Day Month YYYY ', 10000000)))", Refused(TOO_LARGE)),
        t.sql("to-char-numeric-picture", "SELECT length(to_char(1.5, repeat('9', 10000000)))", Ends(&["54000", "53200", "22023", "42601", "0A000"])),
        t.sql("to-char-per-row", "SELECT sum(length(to_char(now(), repeat('Month ', 100000)))) FROM crowd", Ends(TOO_LARGE)),
        t.made("concat-doubles", || doubled("concat(", ", ", ")"), Refused(TOO_LARGE)).short(),
        t.made("pipes-double", || doubled("(", " || ", ")"), Refused(TOO_LARGE)),
        t.sql("concat-ws-per-row", "SELECT sum(length(concat_ws(repeat('x', 1000000), t, t, t, t, t, t))) FROM crowd", Refused(TOO_LARGE)),
        t.sql("encode-hex-grows", "SELECT length(encode(encode(convert_to(repeat('x', 60000000), 'UTF8'), 'hex')::bytea, 'hex'))", Refused(TOO_LARGE)),
        t.sql("decode-per-row", "SELECT sum(length(decode(repeat(md5(t), 20000), 'hex'))) FROM crowd", Cancelled(TOO_LARGE)),
        t.sql("md5-of-much-per-row", "SELECT max(md5(repeat(t, 20000))) FROM crowd", Cancelled(TOO_LARGE)),
        t.sql("numeric-power", "SELECT length((power(9.9::numeric, 99999))::text)", Ends(&["22003", "54000", "53200", "0A000"])),
        t.sql("numeric-power-of-power", "SELECT power(power(10::numeric, 10000), 10000)", Ends(&["22003", "54000", "0A000"])),
        t.sql("factorial-100000", "SELECT factorial(100000)", Refused(&["22003", "54000", "42883", "0A000"])),
        t.made("numeric-long-division", || format!("SELECT length(({}.5 / 3.{})::text)", "9".repeat(100_000), "7".repeat(100_000)), Ends(&["22003", "54000", "22P02", "0A000"])),
        t.sql("numeric-sums-per-row", "SELECT sum(exp(a::numeric / 1000003)) FROM crowd, generate_series(1, 1000)", Cancelled(&["42883", "0A000"])),
        t.sql("overlay-per-row", "SELECT sum(length(overlay(repeat(t, 10000) placing 'y' from 3))) FROM crowd", Refused(TOO_LARGE)),
        t.sql("reverse-closed", "SELECT max(reverse(repeat(t, 300))) FROM crowd, generate_series(1, 1000)", Closed(TOO_LARGE)),
        t.sql("upper-of-much-closed", "SELECT max(upper(repeat(t, 300))) FROM crowd, generate_series(1, 1000)", Closed(TOO_LARGE)),
    ]
}

/// An expression of a few kilobytes. Its result is a text of 1,000 characters, doubled thirty
/// times: a terabyte.
fn doubled(open: &str, between: &str, close: &str) -> String {
    let columns: String = (0..30)
        .map(|step| {
            let inner = format!("v{step}");
            let outer = format!("v{}", step + 1);
            format!(", c{step} AS (SELECT {open}{inner}{between}{inner}{close} AS {outer} FROM {})", source(step))
        })
        .collect();
    format!("WITH s AS (SELECT repeat('x', 1000) AS v0){columns} SELECT length(v30) FROM c29")
}

/// The relation with the text of a step.
fn source(step: usize) -> String {
    match step.checked_sub(1) {
        None => "s".to_owned(),
        Some(before) => format!("c{before}"),
    }
}
