//! `EXCEPT ALL` and `INTERSECT ALL`, which count the occurrences of a row.
//!
//! DataFusion only checks whether a row occurs. Equal rows of each side are therefore numbered, and
//! the number becomes a further column. Of a row that occurs three times on the left and twice on
//! the right, `INTERSECT ALL` returns two, and `EXCEPT ALL` returns one.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Ident, Query, SelectItem, SetExpr, SetOperator, TableFactor, VisitorMut};
use datafusion::sql::sqlparser::parser::Parser;
use filbert_dialect::{HazelcastDialect, walk};
use filbert_functions::error::parsing_error;
use filbert_grid::query::SqlError;

/// The rows of both sides of a set operation with ALL, under the names of the left side.
pub(super) fn counted(
    left: &mut SetExpr,
    right: &mut SetExpr,
    op: SetOperator,
    names: &[String],
) -> Result<SetExpr, SqlError> {
    let columns: Vec<String> = (0..names.len()).map(|number| format!("\"$column{number}\"")).collect();
    let columns = columns.join(", ");
    let side = |name: &str| {
        format!(
            "SELECT {columns}, row_number() OVER (PARTITION BY {columns}) AS \"$number\" \
             FROM (SELECT 1) AS \"{name}\"({columns})"
        )
    };
    let text = format!("SELECT {columns} FROM ({} {op} {}) AS \"$counted\"", side("$left"), side("$right"));
    let parsed = Parser::new(&HazelcastDialect).try_with_sql(&text).and_then(|mut parser| parser.parse_query());
    let mut query = parsed.map_err(|error| parsing_error(error.to_string()))?;
    let mut sides =
        Sides { left: Some(std::mem::replace(left, nothing())), right: Some(std::mem::replace(right, nothing())) };
    let _ = walk::change(&mut query, &mut sides);
    if let SetExpr::Select(select) = query.body.as_mut() {
        for (item, name) in select.projection.iter_mut().zip(names) {
            if let SelectItem::UnnamedExpr(expr) = item {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
            }
        }
    }
    Ok(*query.body)
}

/// Puts the sides into a template query.
struct Sides {
    left: Option<SetExpr>,
    right: Option<SetExpr>,
}

impl VisitorMut for Sides {
    type Break = ();

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Derived { subquery, alias: Some(alias), .. } = factor else {
            return ControlFlow::Continue(());
        };
        let side = match alias.name.value.as_str() {
            "$left" => self.left.take(),
            "$right" => self.right.take(),
            _ => None,
        };
        if let Some(side) = side {
            put(subquery, side);
        }
        ControlFlow::Continue(())
    }
}

fn put(subquery: &mut Query, side: SetExpr) {
    *subquery.body = side;
}

fn nothing() -> SetExpr {
    super::names::nothing_set()
}
