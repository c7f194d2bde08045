//! Subqueries in SELECT lists: there DataFusion plans only those that are one value, so `EXISTS` and `IN` become such.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, GroupByExpr, Ident, Query, SelectItem, SetExpr, TableAliasColumnDef, TableFactor,
    TableWithJoins, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use filbert_grid::query::SqlError;

use super::rewrite::alias_of;

/// `IN (subquery)` and `EXISTS` as expressions over numbers of rows.
pub(super) struct ValueSubqueries<'n> {
    pub(super) number: &'n mut usize,
    /// Queries that are open: what is within them is theirs.
    pub(super) depth: usize,
}

impl VisitorMut for ValueSubqueries<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<SqlError> {
        match expression {
            _ if self.depth > 0 => {}
            Expr::Exists { subquery, negated } => {
                let rows = match counted(subquery) {
                    Some(rows) => rows,
                    None => count(self.derived(subquery, &[])),
                };
                *expression = at_least_one(rows, !*negated);
            }
            Expr::InSubquery { expr, subquery, negated } => {
                let column = "$value";
                let rows = self.derived(subquery, &[column]);
                let value = || Expr::Identifier(Ident::with_quote('"', column));
                let having = |condition: Expr| at_least_one(count_where(rows.clone(), condition), true);
                let equal = Expr::BinaryOp { left: Box::new(value()), op: BinaryOperator::Eq, right: expr.clone() };
                // Three-valued: among no rows it is not, for a null or among nulls it is unknown.
                let conditions = vec![
                    CaseWhen { condition: at_least_one(count(rows.clone()), false), result: boolean(*negated) },
                    CaseWhen { condition: Expr::IsNull(expr.clone()), result: Expr::value(Value::Null) },
                    CaseWhen { condition: having(equal), result: boolean(!*negated) },
                    CaseWhen { condition: having(Expr::IsNull(Box::new(value()))), result: Expr::value(Value::Null) },
                ];
                *expression = Expr::Case {
                    case_token: AttachedToken::empty(),
                    end_token: AttachedToken::empty(),
                    operand: None,
                    conditions,
                    else_result: Some(Box::new(boolean(*negated))),
                };
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl ValueSubqueries<'_> {
    /// A subquery as the relation of another.
    fn derived(&mut self, subquery: &Query, columns: &[&str]) -> TableFactor {
        *self.number += 1;
        let mut alias = alias_of(&format!("$derived{}", self.number));
        alias.columns = columns
            .iter()
            .map(|name| TableAliasColumnDef { name: Ident::with_quote('"', *name), data_type: None })
            .collect();
        TableFactor::Derived { lateral: false, subquery: Box::new(subquery.clone()), alias: Some(alias), sample: None }
    }
}

/// The number of a query's rows, if it is plain enough for that to stand in its SELECT list: then it may refer to the outer row.
fn counted(query: &Query) -> Option<Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let is_plain = |item: &SelectItem| match item {
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => true,
        SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => match expression {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => true,
            Expr::Cast { expr, .. } => matches!(expr.as_ref(), Expr::Value(_)),
            _ => false,
        },
        _ => false,
    };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let limited = query.limit_clause.is_some() || query.fetch.is_some();
    if is_grouped
        || limited
        || select.having.is_some()
        || select.distinct.is_some()
        || !select.projection.iter().all(is_plain)
    {
        return None;
    }
    let Expr::Subquery(count) = count_query(None, None) else { return None };
    let SetExpr::Select(counting) = *count.body else { return None };
    let mut query = query.clone();
    query.order_by = None;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = counting.projection;
    }
    Some(Expr::Subquery(Box::new(query)))
}

fn boolean(value: bool) -> Expr {
    Expr::value(Value::Boolean(value))
}

fn count(rows: TableFactor) -> Expr {
    count_query(Some(rows), None)
}

fn count_where(rows: TableFactor, condition: Expr) -> Expr {
    count_query(Some(rows), Some(condition))
}

/// `(SELECT count(*) FROM rows WHERE condition)`
fn count_query(rows: Option<TableFactor>, condition: Option<Expr>) -> Expr {
    // The rest of a SELECT is many empty fields: those of the smallest statement.
    let mut parser = Parser::new(&super::HazelcastDialect);
    parser = match parser.try_with_sql("SELECT count(*)") {
        Ok(parser) => parser,
        Err(_) => return Expr::value(Value::Null),
    };
    let Ok(mut query) = parser.parse_query() else { return Expr::value(Value::Null) };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = rows.into_iter().map(|relation| TableWithJoins { relation, joins: Vec::new() }).collect();
        select.selection = condition;
    }
    Expr::Subquery(query)
}

fn at_least_one(count: Expr, yes: bool) -> Expr {
    let op = if yes { BinaryOperator::Gt } else { BinaryOperator::Eq };
    let zero = Expr::value(Value::Number("0".to_owned(), false));
    Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(count), op, right: Box::new(zero) }))
}
