//! The rows of a result have the order of `ORDER BY`, whatever the plan computes above the sort,
//! over many batches and on several threads.

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
    // The queries have different values of `kind`, which is constant within each query.
    for (first, second) in [
        ("select 2 as kind, id from t where id <= 4000", "select 1, id from t where id > 4000"),
        ("select k as kind, id from t where k = 2", "select k, id from t where k = 1 and id > 4000"),
        ("select kind, id from (select 2 as kind, id from t) x where id < 9", "select 1, id + 100 from t where id < 9"),
    ] {
        for limit in [1, 7, 100] {
            let all = member.rows(&format!("{first} union all {second} order by kind, id"));
            // It is random which query produces its rows first.
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
            // With a subquery of VALUES, the optimizer does not know that the columns are equal.
            let rows = member.rows(union).join("), (").replace('|', "', '");
            let rows = rows.replace("), (", "'), ('");
            let order = order.replace("id", "id::int");
            let expected =
                format!("select kind, id::int, s from (values ('{rows}')) v(kind, id, s) order by {order}{limit}");
            assert_eq!(member.rows(&text), member.rows(&expected), "{text}");
        }
    }
}
