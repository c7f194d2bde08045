//! The rows of a result come in the order of `ORDER BY`, whatever is computed above the sort, and
//! over many batches on several threads.

use std::sync::Arc;

use crate::common::Member;
use filbert_grid::query::{Dialect, Session};
use filbert_query::QueryConfig;

/// More rows than a few batches have.
const ROWS: usize = 60_000;

#[track_caller]
fn check(member: &Member, text: &str, rows: usize) {
    let found: Vec<i64> = member.rows(text).iter().map(|row| row.split('|').next().unwrap().parse().unwrap()).collect();
    assert_eq!(found.len(), rows, "{text}");
    let descent = found.windows(2).find(|pair| !pair.is_sorted());
    assert_eq!(descent, None, "{text}");
}

#[test]
fn rows_come_in_order() {
    let config = QueryConfig { threads: Some(4), ..QueryConfig::default() };
    let session = Some(Arc::new(Session::new(Dialect::Postgres, "somebody")));
    let member = Member { session, ..Member::with(config) };
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
