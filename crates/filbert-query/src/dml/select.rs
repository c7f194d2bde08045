//! The queries that find the entries of an UPDATE or a DELETE, and the columns of joined tables.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, SelectItem, SetExpr, Statement, TableWithJoins, Value as SqlValue, With,
};
use datafusion::sql::sqlparser::parser::Parser;
use filbert_dialect::HazelcastDialect;
use filbert_functions::error::parsing_error;
use filbert_grid::query::SqlError;

use crate::tables::{RAW_KEY, RAW_SCHEMA, RAW_VALUE};

/// `SELECT "$key", "$value", <items> FROM <table> WHERE <selection>`, over the table that exposes
/// stored entries as columns.
pub(crate) fn entries(table: &str, alias: &str, items: &[Expr], selection: Option<&Expr>) -> Result<Query, SqlError> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let text = format!(
        "SELECT {alias}.{}, {alias}.{} FROM {}.{} AS {alias}",
        quoted(RAW_KEY),
        quoted(RAW_VALUE),
        quoted(RAW_SCHEMA),
        quoted(table),
        alias = quoted(alias),
    );
    let unreadable = || parsing_error(format!("{table:?} cannot be the name of a mapping"));
    let mut statements = Parser::parse_sql(&HazelcastDialect, &text).map_err(|_| unreadable())?;
    let Some(Statement::Query(mut query)) = statements.pop() else { return Err(unreadable()) };
    let SetExpr::Select(select) = &mut *query.body else { return Err(unreadable()) };
    for (number, item) in items.iter().enumerate() {
        // Distinct aliases, because two items may be the same expression.
        let alias = Ident::with_quote('"', format!("${number}"));
        select.projection.push(SelectItem::ExprWithAlias { expr: item.clone(), alias });
    }
    select.selection = selection.cloned();
    Ok(*query)
}

/// `SELECT *`, without tables.
pub(crate) fn all() -> Result<Query, SqlError> {
    let unreadable = || parsing_error("the columns of a statement's tables cannot be queried");
    let mut statements = Parser::parse_sql(&HazelcastDialect, "SELECT * FROM t").map_err(|_| unreadable())?;
    let Some(Statement::Query(mut query)) = statements.pop() else { return Err(unreadable()) };
    if let SetExpr::Select(select) = &mut *query.body {
        select.from.clear();
    }
    Ok(*query)
}

/// The same query joined with more tables, and with queries that it may read by name. Each entry
/// occurs once for each combination of the tables' rows that the condition allows.
pub(crate) fn joined(mut query: Query, with: Option<&With>, others: &[TableWithJoins]) -> Query {
    query.with = with.cloned();
    if let SetExpr::Select(select) = &mut *query.body {
        select.from.extend_from_slice(others);
    }
    query
}

/// The same query restricted to some entries.
pub(crate) fn among(query: &Query, alias: &str, keys: &[Box<[u8]>]) -> Query {
    let mut narrowed = query.clone();
    if let SetExpr::Select(select) = &mut *narrowed.body {
        let quote = |name: &str| Ident::with_quote('"', name);
        let list = keys.iter().map(|key| Expr::value(SqlValue::HexStringLiteral(hex(key)))).collect();
        let is_one = Expr::InList {
            expr: Box::new(Expr::CompoundIdentifier(vec![quote(alias), quote(RAW_KEY)])),
            list,
            negated: false,
        };
        select.selection = Some(match select.selection.take() {
            None => is_one,
            Some(selection) => Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(selection))),
                op: BinaryOperator::And,
                right: Box::new(is_one),
            },
        });
    }
    narrowed
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
