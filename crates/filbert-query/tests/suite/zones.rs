//! The session's time zone: an expression has the same value in every kind of plan. Each session
//! gets the values for its own time zone, whichever session's plan is in the cache.

use std::sync::Arc;

use crate::common::Member;
use filbert_grid::query::{Dialect, Session};

/// Expressions over the columns of `e`.
const EXPRESSIONS: &[&str] = &[
    "tz",
    "tz || ''",
    "tz::date",
    "tz::timestamp",
    "tz::time",
    "ts::timestamptz",
    "d::timestamptz",
    "t::timestamptz",
    "extract(hour from tz)",
    "to_char(tz, 'YYYY-MM-DD HH24:MI')",
    "date_trunc('day', tz)",
    "tz - ts",
    "ts = tz",
    "ts < tz",
    "d = tz",
    "coalesce(ts, tz)",
    "greatest(ts, tz)",
    "CASE WHEN tz::date = d THEN ts ELSE tz END",
    "tz + interval '1 month'",
    "date_part('day', tz + interval '1 day')",
    "concat(tz, ' ', ts)",
    "format('%s', tz)",
    "tz = '2024-07-01 22:00'",
    "tz IN ('2024-07-01 22:00', '2024-01-01')",
    "tz BETWEEN '2024-07-01' AND '2024-07-02'",
    "tz = ANY ('{2024-07-01 22:00}')",
    "make_timestamptz(2024, 7, 1, 22, 0, 0)",
    "array[tz, ts::timestamptz]",
    "array_to_string(array[tz], ',')",
    "timestamptz '2024-07-01 22:00'",
];

fn set(member: &Member, zone: &str) {
    member.run(&format!("SET TimeZone TO '{zone}'"), &[]).unwrap();
}

fn member(zone: &str) -> Member {
    let member = Member::of(Dialect::Postgres);
    set(&member, zone);
    member.change(
        "CREATE TABLE e (id int PRIMARY KEY, ts timestamp, tz timestamptz, d date, t text, v text, more int DEFAULT 0)",
    );
    member.change(
        "INSERT INTO e VALUES (1, '2024-07-01 22:00', '2024-07-01 22:00', '2024-07-01', '2024-07-01 22:00'), \
         (2, '2024-01-01', '2024-01-01 00:00+00', '2024-01-01', '2024-01-01')",
    );
    member
}

#[test]
fn an_expression_has_one_value_on_every_way() {
    for zone in ["UTC", "America/New_York", "Asia/Kolkata"] {
        let member = member(zone);
        member.change("CREATE TABLE copied (v text)");
        member.change("CREATE VIEW viewed AS SELECT * FROM e");
        for expression in EXPRESSIONS {
            let text = format!("({expression})::text");
            let expected = member.rows(&format!("SELECT {text} FROM e WHERE id + more = 1"));
            let check = |way: &str, found: Vec<String>| assert_eq!(found, expected, "{expression}, {way}, {zone}");
            for way in [
                format!("SELECT {text} FROM e WHERE id = 1"),
                format!("SELECT {text} FROM e WHERE id IN (1, 3)"),
                format!("SELECT {text} FROM viewed AS e WHERE id = 1"),
                format!("SELECT max({text}) FROM e WHERE id + more = 1"),
                format!("SELECT min({text}) FROM e WHERE id = 1"),
                format!("SELECT {text} FROM e WHERE id + more = 1 GROUP BY 1"),
                format!("SELECT {text} FROM e WHERE id = 1 AND {text} = '{}'", expected[0]),
                format!("SELECT x FROM (SELECT id, {text} AS x FROM e) AS e WHERE id = 1"),
                format!("UPDATE e SET more = more WHERE id = 1 RETURNING {text}"),
                format!("UPDATE e SET more = more WHERE id + more = 1 RETURNING {text}"),
                format!("INSERT INTO e (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET more = 0 RETURNING {text}"),
            ] {
                check(&way, member.rows(&way));
                // Once more, from the plan cache.
                check(&way, member.rows(&way));
            }
            let stored = || member.rows("SELECT v FROM e WHERE id + more = 1");
            for way in [
                format!("UPDATE e SET v = {text} WHERE id = 1"),
                format!("UPDATE e SET v = {text} WHERE id + more = 1"),
                format!("UPDATE e SET v = {expression} WHERE id = 1"),
                format!("INSERT INTO e (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET v = {text}"),
            ] {
                member.change("UPDATE e SET v = NULL WHERE id = 1");
                assert_eq!(member.change(&way), 1, "{way}");
                check(&way, stored());
            }
            member.change(&format!("INSERT INTO copied SELECT {text} FROM e WHERE id = 1"));
            check("INSERT .. SELECT", member.rows("SELECT v FROM copied"));
            member.change("DELETE FROM copied");
            member.change("CREATE TABLE altered AS SELECT id, ts, tz, d, t, NULL::text AS v FROM e WHERE id = 1");
            member.change(&format!("ALTER TABLE altered ALTER v TYPE text USING {text}"));
            check("ALTER .. USING", member.rows("SELECT v FROM altered"));
            member.change("DROP TABLE altered");
        }
    }
}

#[test]
fn each_session_has_its_own_time_zone() {
    let mut member = member("America/New_York");
    let first = member.session.clone();
    let statements: Vec<String> = EXPRESSIONS
        .iter()
        .flat_map(|expression| {
            [
                format!("SELECT ({expression})::text FROM e WHERE id = 1"),
                format!("SELECT max(({expression})::text) FROM e WHERE id + more = 1"),
                format!("UPDATE e SET v = ({expression})::text WHERE id = 1 RETURNING v"),
            ]
        })
        .collect();
    let all = |member: &Member| statements.iter().map(|text| member.rows(text)).collect::<Vec<_>>();
    let in_new_york = all(&member);
    set(&member, "Asia/Kolkata");
    let in_kolkata = all(&member);
    assert_ne!(in_new_york, in_kolkata);
    // A new session uses the cached plans of the first session, which now has another time zone.
    member.session = Some(Arc::new(Session::new(Dialect::Postgres, "another")));
    set(&member, "America/New_York");
    assert_eq!(all(&member), in_new_york);
    member.session = first;
    assert_eq!(all(&member), in_kolkata);
}

#[test]
fn elements_of_arrays_are_in_the_time_zone() {
    let member = member("America/New_York");
    member.change("CREATE TABLE a (id int PRIMARY KEY, a timestamptz[])");
    for value in [
        "'{2024-07-01 00:00}'",
        "'{2024-07-01 00:00}'::timestamptz[]",
        "array[timestamp '2024-07-01']",
        "array[date '2024-07-01']",
        "array['2024-07-01']::timestamptz[]",
    ] {
        for way in [
            format!("INSERT INTO a VALUES (1, {value})"),
            format!("INSERT INTO a SELECT 1, {value}"),
            format!("INSERT INTO a VALUES (2, NULL), (1, {value})"),
        ] {
            member.change("DELETE FROM a");
            member.change(&way);
            let found =
                member.rows("SELECT a[1]::text, a = array[timestamptz '2024-07-01 04:00+00'] FROM a WHERE id = 1");
            assert_eq!(found, ["2024-07-01 00:00:00-04|true"], "{way}");
            assert_eq!(member.rows("SELECT id FROM a WHERE '2024-07-01' = ANY (a)"), ["1"], "{way}");
        }
    }
}
