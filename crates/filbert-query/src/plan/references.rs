//! The tables that a query reads by name.
//!
//! DataFusion collects them as well, but visits a `WITH` query twice for each enclosing `WITH`
//! query. Thirty levels would take days.

use std::collections::{BTreeSet, HashSet};

use datafusion::common::{Result, TableReference};
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::Query;
use filbert_dialect::Reads;

/// The names of the tables and views of a query, and of its parameters. The query's names are
/// resolved, so that each `WITH` query has a name of its own.
///
/// # Errors
/// A name is no name of a table.
pub(crate) fn of(query: &Query) -> Result<(BTreeSet<TableReference>, HashSet<String>)> {
    let Reads { names, queries, parameters } = Reads::of(query);
    // As the planner does, which takes names as they are.
    let names = names.into_iter().map(|name| object_name_to_table_reference(name, false));
    let mut read: BTreeSet<TableReference> = names.collect::<Result<_>>()?;
    read.retain(|name| name.schema().is_some() || !queries.contains(name.table()));
    Ok((read, parameters))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn read_by(text: &str) -> Vec<String> {
        let query = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap().parse_query().unwrap();
        of(&query).unwrap().0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn with_queries_are_no_tables() {
        let text = "WITH a AS (SELECT * FROM t), b AS (SELECT * FROM a) SELECT * FROM b JOIN s.a ON true, b AS c";
        assert_eq!(read_by(text), ["t", "s.a"]);
    }

    #[test]
    fn time_does_not_double_with_each_level() {
        let text = (0..40).fold("SELECT x FROM t".to_owned(), |inner, level| {
            format!("WITH w{level} AS ({inner}) SELECT x FROM w{level}")
        });
        assert_eq!(read_by(&text), ["t"]);
    }
}
