//! The rows of a result come in the order of `ORDER BY`, whatever is computed above the sort, and
//! over many batches on several threads.

use std::sync::Arc;

use crate::common::Member;
use filbert_grid::query::{Dialect, Session};
use filbert_query::QueryConfig;

/// More rows than a few batches have.
const ROWS: usize = 60_000;

/// A member with four query threads, and a session in PostgreSQL's dialect.
fn member() -> Member {
    let config = QueryConfig { threads: Some(4), ..QueryConfig::default() };
    let session = Some(Arc::new(Session::new(Dialect::Postgres, "somebody")));
    Member { session, ..Member::with(config) }
}

#[track_caller]
fn check(member: &Member, text: &str, rows: usize) {
    let found: Vec<i64> = member.rows(text).iter().map(|row| row.split('|').next().unwrap().parse().unwrap()).collect();
    assert_eq!(found.len(), rows, "{text}");
    let descent = found.windows(2).find(|pair| !pair.is_sorted());
    assert_eq!(descent, None, "{text}");
}

#[test]
fn rows_come_in_order() {
    let member = member();
    member.change("create table t (id int primary key, c char(5), v varchar(9), n numeric(10,2), j jsonb, a int[])");
    member.change(&format!(
        "insert into t select g, 'c' || g % 7, 'v' || g % 9, g / 4.0, ('{{\"a\":' || g || '}}')::jsonb, array[g] \
         from generate_series(1, {ROWS}) s(g)"
    ));
    for items in ["c", "c, v", "upper(c)", "c || 'x', n * 2", "j -> 'a', a", "row_number() over (order by id), c"] {
        check(&member, &format!("select id, {items} from t order by id"), ROWS);
        check(&member, &format!("select id, {items} from t where id % 2 = 0 order by id"), ROWS / 2);
        check(&member, &format!("select * from (select id, {items} from t) x order by id"), ROWS);
        check(&member, &format!("select id, {items} from t order by id limit 20000 offset 7"), 20_000);
    }
    check(&member, "select id, c, sum(n) over (order by id) from t order by id", ROWS);
    check(&member, "select a.id, a.c, b.c from t a join t b on a.id = b.id order by a.id", ROWS);
    check(&member, "select id, min(c) from t group by id order by id", ROWS);
    check(&member, "select distinct id, c from t order by id", ROWS);
    check(&member, "select id, c from t union all select id, c from t order by id", 2 * ROWS);
}

#[test]
fn a_limit_counts_the_rows_of_all_queries_of_a_union() {
    let member = member();
    member.change("create table t (id int primary key, k int)");
    member.change("insert into t select g, g % 3 from generate_series(1, 5000) s(g)");
    // The queries differ in `kind`, which is constant in each of them.
    for (first, second) in [
        ("select 2 as kind, id from t where id <= 4000", "select 1, id from t where id > 4000"),
        ("select k as kind, id from t where k = 2", "select k, id from t where k = 1 and id > 4000"),
        ("select kind, id from (select 2 as kind, id from t) x where id < 9", "select 1, id + 100 from t where id < 9"),
    ] {
        for limit in [1, 7, 100] {
            let all = member.rows(&format!("{first} union all {second} order by kind, id"));
            // Which query has its rows first is chance.
            for _ in 0..5 {
                for outer in ["", "select kind, id from ("] {
                    let end = if outer.is_empty() { "" } else { ") x" };
                    let text = format!("{outer}{first} union all {second} order by kind, id desc limit {limit}{end}");
                    let found = member.rows(&text);
                    let mut expected = member.rows(&format!("{first} union all {second} order by kind, id desc"));
                    expected.truncate(limit);
                    assert_eq!(found, expected, "{text}");
                }
                let text = format!("{first} union all {second} order by kind, id limit {limit}");
                assert_eq!(member.rows(&text), all[..limit.min(all.len())], "{text}");
            }
        }
    }
}

#[test]
fn rows_of_a_union_come_in_an_order_of_equal_columns() {
    let member = member();
    member.change("create table t (id int primary key, s text)");
    member.change("insert into t select g, 's' || g % 7 from generate_series(1, 100) s(g)");
    let union = "select s as kind, id, s from t union all (select s, id, s from t where id > 50 order by id limit 5)";
    for order in ["kind desc, id, s", "s, kind desc, id", "id desc, s, kind"] {
        for limit in ["", " limit 7"] {
            let text = format!("{union} order by {order}{limit}");
            // In a subquery of VALUES the columns are not known to be equal.
            let rows = member.rows(union).join("), (").replace('|', "', '");
            let rows = rows.replace("), (", "'), ('");
            let order = order.replace("id", "id::int");
            let expected =
                format!("select kind, id::int, s from (values ('{rows}')) v(kind, id, s) order by {order}{limit}");
            assert_eq!(member.rows(&text), member.rows(&expected), "{text}");
        }
    }
}

/// Values of a type, of which several become the same in other types.
const VALUES: [(&str, &[&str]); 13] = [
    ("smallint", &["3", "2", "1", "0"]),
    ("integer", &["16777217", "16777216", "3", "1", "0"]),
    ("bigint", &["9007199254740993", "9007199254740992", "16777217", "16777216", "2", "1", "0"]),
    ("real", &["2.4", "2.3", "1.9", "0.4", "0.3"]),
    ("double precision", &["2.4000000001", "2.4", "1.9", "0.4", "0.3"]),
    ("numeric(6,2)", &["2.41", "2.4", "1.9", "0.4", "0.3"]),
    ("boolean", &["true", "false"]),
    ("text", &["3", "2", " 2", "02", "1", "true", "t"]),
    ("varchar(9)", &["2024-01-01 02:00", "2024-01-1", "20240101"]),
    ("date", &["2024-01-02", "2024-01-01"]),
    ("timestamp", &["2024-01-01 03:00", "2024-01-01 02:00", "2024-01-01 00:00", "2023-12-31 23:00"]),
    ("timestamptz", &["2024-11-03 06:30Z", "2024-11-03 05:45Z", "2024-11-03 05:30Z", "2024-11-03 04:00Z"]),
    ("interval", &["1 mon", "30 days", "29 days 24:00", "1 day"]),
];

/// The types of dialects other than PostgreSQL's.
fn name_in(dialect: Dialect, data_type: &str) -> Option<&str> {
    match (dialect, data_type) {
        (Dialect::Postgres, name) => Some(name),
        (_, "double precision") => Some("double"),
        (Dialect::Hazelcast, "numeric(6,2)") => Some("decimal(6,2)"),
        (Dialect::Hazelcast, "text" | "varchar(9)") => Some("varchar"),
        (Dialect::Hazelcast, "timestamptz") => Some("timestamp with time zone"),
        (Dialect::Hazelcast, "interval") | (Dialect::Crate, "interval" | "date") => None,
        (_, name) => Some(name),
    }
}

/// The optimizer concludes from a condition which values a column may have. Several values may have
/// the same cast.
#[test]
fn rows_come_in_order_whatever_a_filter_says_of_their_casts() {
    let mut compared = 0;
    for dialect in [Dialect::Postgres, Dialect::Crate, Dialect::Hazelcast] {
        for (of, values) in VALUES {
            let Some(of) = name_in(dialect, of) else { continue };
            let member = Member::of(dialect);
            // Twice the same hour.
            let _others_have_none = member.run("set time zone 'America/New_York'", &[]);
            let rows: Vec<String> =
                values.iter().enumerate().map(|(id, value)| format!("({id}, cast('{value}' as {of}))")).collect();
            let from = format!("(values {}) t (id, a)", rows.join(", "));
            let Ok(ordered) = member.try_rows(&format!("select id from {from} order by a, id"), &[]) else { continue };
            for (to, _) in VALUES {
                let Some(to) = name_in(dialect, to) else { continue };
                let cast = format!("cast(a as {to})");
                let Ok(casts) = member.try_rows(&format!("select distinct cast({cast} as varchar) from {from}"), &[])
                else {
                    continue;
                };
                for value in casts {
                    let value = format!("cast('{value}' as {to})");
                    for condition in [
                        format!("{cast} = {value}"),
                        format!("{cast} >= {value} and {cast} <= {value}"),
                        format!("{cast} between {value} and {value}"),
                        format!("{cast} in ({value})"),
                        format!("not {cast} <> {value}"),
                        cast.clone(),
                        format!("- {cast} = - {value}"),
                        format!("{cast} * 0 = 0"),
                        format!("{cast} + 1e30 = 1e30"),
                        format!("a * 0 = 0 and {cast} = {value}"),
                    ] {
                        let text = format!("select id from {from} where {condition} order by a, id");
                        let Ok(found) = member.try_rows(&text, &[]) else { continue };
                        let expected: Vec<_> = ordered.iter().filter(|id| found.contains(id)).cloned().collect();
                        assert_eq!(found, expected, "{text} in {dialect:?}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}
