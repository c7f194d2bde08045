//! The order of the queries of `WITH RECURSIVE`. A query there may read queries that are written
//! after it.
//!
//! Each query is moved behind the queries that it reads, as in a `WITH` without `RECURSIVE`.
//! Queries that read each other keep their order.

use std::collections::{BTreeSet, HashMap};

use sqlparser::ast::{Cte, With};

use crate::reads::Reads;

/// Orders the queries. Queries without a required order keep the order of the text.
pub(crate) fn settle(with: &mut With) {
    if !with.recursive || with.cte_tables.len() < 2 {
        return;
    }
    let reads: Vec<Vec<usize>> = read_by_each(&with.cte_tables);
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); reads.len()];
    for (reader, read) in reads.iter().enumerate() {
        for place in read {
            readers.get_mut(*place).into_iter().for_each(|readers| readers.push(reader));
        }
    }
    // The number of queries that each one still waits for.
    let mut waits: Vec<usize> = reads.iter().map(Vec::len).collect();
    let mut ready: BTreeSet<usize> = (0..waits.len()).filter(|place| waits.get(*place) == Some(&0)).collect();
    let mut left: Vec<Option<Cte>> = std::mem::take(&mut with.cte_tables).into_iter().map(Some).collect();
    while let Some(next) = ready.pop_first() {
        with.cte_tables.extend(left.get_mut(next).and_then(Option::take));
        for reader in readers.get(next).into_iter().flatten() {
            let Some(waits) = waits.get_mut(*reader) else { continue };
            *waits -= 1;
            if *waits == 0 {
                ready.insert(*reader);
            }
        }
    }
    with.cte_tables.extend(left.into_iter().flatten());
}

/// Whether a query of `WITH` reads one that comes behind it. After [`settle`], these are queries
/// that read each other.
pub fn reads_one_behind(with: &With) -> bool {
    let read = read_by_each(&with.cte_tables);
    read.iter().enumerate().any(|(reader, read)| read.iter().any(|place| *place > reader))
}

/// For each query, the places of the others that it reads.
fn read_by_each(queries: &[Cte]) -> Vec<Vec<usize>> {
    let places: HashMap<&str, usize> =
        queries.iter().enumerate().map(|(place, cte)| (cte.alias.name.value.as_str(), place)).collect();
    let of_one = |(reader, cte): (usize, &Cte)| {
        let reads = Reads::of(&cte.query);
        let others = reads.from_outside().filter_map(|name| places.get(name).copied());
        let others: BTreeSet<usize> = others.filter(|place| *place != reader).collect();
        others.into_iter().collect()
    };
    queries.iter().enumerate().map(of_one).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let query = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap().parse_query().unwrap();
        let mut with = query.with.unwrap();
        settle(&mut with);
        let names: Vec<&str> = with.cte_tables.iter().map(|cte| cte.alias.name.value.as_str()).collect();
        assert_eq!(names, expected, "{text}");
    }

    #[test]
    fn a_query_comes_behind_those_that_it_reads() {
        check(
            "WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT * FROM c), c AS (SELECT 1) SELECT 1",
            &["c", "b", "a"],
        );
        check("WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a), b AS (SELECT * FROM a) SELECT 1", &["a", "b"]);
        check("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT 1", &["a", "b"]);
        check("WITH RECURSIVE a AS (WITH b AS (SELECT 1) SELECT * FROM b), b AS (SELECT 1) SELECT 1", &["a", "b"]);
        check("WITH RECURSIVE a AS (SELECT * FROM s.b), b AS (SELECT 1) SELECT 1", &["a", "b"]);
    }

    #[test]
    fn queries_that_read_each_other_stay() {
        check(
            "WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT * FROM a), c AS (SELECT 1) SELECT 1",
            &["c", "a", "b"],
        );
    }

    #[test]
    fn time_does_not_grow_faster_than_the_queries() {
        let queries: Vec<String> = (0..5_000).map(|at| format!("w{at} AS (SELECT * FROM w{})", at + 1)).collect();
        let text = format!("WITH RECURSIVE {}, w5000 AS (SELECT 1) SELECT 1", queries.join(", "));
        let query = Parser::new(&PostgreSqlDialect {}).try_with_sql(&text).unwrap().parse_query().unwrap();
        let mut with = query.with.unwrap();
        settle(&mut with);
        assert_eq!(with.cte_tables.first().unwrap().alias.name.value, "w5000");
        assert!(!reads_one_behind(&with));
    }
}
