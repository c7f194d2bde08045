//! The order of the queries of `WITH RECURSIVE`, which may read queries that are written behind
//! them.
//!
//! Each one comes behind those that it reads, as in a `WITH` without `RECURSIVE`. Queries that read
//! each other stay where they are.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{Cte, ObjectName, ObjectNamePart, Query, Visitor, With};

use crate::walk;

/// Puts the queries into their order.
pub(crate) fn settle(with: &mut With) {
    if !with.recursive || with.cte_tables.len() < 2 {
        return;
    }
    let reads: Vec<HashSet<String>> = with.cte_tables.iter().map(|cte| names_read_by(&cte.query)).collect();
    let mut left: Vec<(Cte, HashSet<String>)> = std::mem::take(&mut with.cte_tables).into_iter().zip(reads).collect();
    while !left.is_empty() {
        let waits_for = |(at, reads): (usize, &HashSet<String>)| {
            let mut others = left.iter().enumerate().filter(|(other, _)| *other != at);
            others.any(|(_, (cte, _))| reads.contains(&cte.alias.name.value))
        };
        let next = left.iter().enumerate().position(|(at, (_, reads))| !waits_for((at, reads)));
        with.cte_tables.push(left.remove(next.unwrap_or(0)).0);
    }
}

/// The names without a schema that a query reads, without those of its own `WITH` queries.
pub fn names_read_by(query: &Query) -> HashSet<String> {
    let mut names = Names::default();
    let _ = walk::read(query, &mut names);
    let Names { mut read, own } = names;
    read.retain(|name| !own.contains(name));
    read
}

#[derive(Default)]
struct Names {
    read: HashSet<String>,
    own: HashSet<String>,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let own = query.with.iter().flat_map(|with| &with.cte_tables);
        self.own.extend(own.map(|cte| cte.alias.name.value.clone()));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        if let [ObjectNamePart::Identifier(bare)] = name.0.as_slice() {
            self.read.insert(bare.value.clone());
        }
        ControlFlow::Continue(())
    }
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
}
