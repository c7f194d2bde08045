//! Rewrites comparisons of rows, which DataFusion does not support, to comparisons of their
//! columns.
//!
//! | source | becomes |
//! |---|---|
//! | `(a, b) = (c, d)`, `<>` | `a = c AND b = d`, `a <> c OR b <> d` |
//! | `(a, b) < (c, d)`, .. | `CASE WHEN a = c THEN b < d WHEN a <> c THEN a < c END` |
//! | `(a, b) IS NULL`, `IS NOT NULL` | both are null, neither is null |
//! | `(a, b) IS DISTINCT FROM (c, d)` | `a IS DISTINCT FROM c OR b IS DISTINCT FROM d` |
//! | `(a, b) IN ((c, d), ..)`, `BETWEEN` | comparisons of the rows |
//! | `(a, b) IN (SELECT c, d ..)` | true for an equal row, else unknown for a possible one |

use std::ops::ControlFlow;

use filbert_grid::query::{Dialect, SqlError, parsing_error};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, SetExpr,
    TableAliasColumnDef, TableFactor, TableWithJoins, UnaryOperator, Value,
};
use sqlparser::parser::Parser;

use super::super::grammar::grammar;
use super::super::rewrite::alias_of;
use super::{all_of, refuse, taken};
use crate::{walk, work};

/// The relation name of the subquery's rows.
pub const ROWS: &str = "$rows";

/// The maximum number of columns of a row that is ordered, with the columns of rows within it. The
/// comparison of each column is nested in that of the column before it.
const ORDERED_COLUMNS_MAX: usize = 128;

/// The columns of a row constructor: `(a, b)`, `ROW(a)`.
pub fn columns(expression: &Expr) -> Option<Vec<Expr>> {
    match expression {
        Expr::Tuple(columns) => Some(columns.clone()),
        Expr::Nested(inner) => columns(inner),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else { return None };
            let column = |argument: &FunctionArg| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) => Some(column.clone()),
                _ => None,
            };
            list.args.iter().map(column).collect()
        }
        _ => None,
    }
}

/// The number of columns of a row, with those of rows within it; 1 for other expressions.
fn width(expression: &Expr) -> usize {
    match expression {
        Expr::Tuple(columns) => columns.iter().map(width).sum(),
        Expr::Nested(inner) => width(inner),
        Expr::Function(Function { name, args: FunctionArguments::List(list), .. })
            if name.to_string().eq_ignore_ascii_case("row") =>
        {
            let column = |argument: &FunctionArg| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) => width(column),
                _ => 1,
            };
            list.args.iter().map(column).sum()
        }
        _ => 1,
    }
}

/// Turns `(a, b) = ANY (query)` into `IN`, and `(a, b) <> ALL (query)` into `NOT IN`; returns
/// whether the expression was one of these.
pub(super) fn among(expression: &mut Expr) -> bool {
    let (Expr::AnyOp { left, compare_op, right, .. } | Expr::AllOp { left, compare_op, right }) = &*expression else {
        return false;
    };
    let negated = match (expression as &Expr, compare_op) {
        (Expr::AnyOp { .. }, BinaryOperator::Eq) => false,
        (Expr::AllOp { .. }, BinaryOperator::NotEq) => true,
        _ => return false,
    };
    let mut query = right.as_ref();
    while let Expr::Nested(inner) = query {
        query = inner;
    }
    let (Some(_), Expr::Subquery(subquery)) = (columns(left), query) else { return false };
    *expression = Expr::InSubquery { expr: left.clone(), subquery: subquery.clone(), negated };
    true
}

/// Rewrites a comparison of rows, if the expression is one.
pub(super) fn rewrite(expression: &mut Expr) -> ControlFlow<SqlError> {
    let done = match &mut *expression {
        Expr::BinaryOp { left, op, right } => match (columns(left), columns(right)) {
            (Some(lefts), Some(rights)) => compared(&lefts, op, &rights),
            (Some(_), None) | (None, Some(_)) if is_comparison(op) => {
                return refuse("a row is compared with a row that is written out", "0A000");
            }
            _ => return ControlFlow::Continue(()),
        },
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            let (Some(lefts), Some(rights)) = (columns(left), columns(right)) else {
                compare_with_literal(expression);
                return ControlFlow::Continue(());
            };
            distinct(&lefts, &rights)
        }
        Expr::IsNull(row) | Expr::IsNotNull(row) => {
            let Some(columns) = columns(row) else { return ControlFlow::Continue(()) };
            let negated = matches!(expression, Expr::IsNotNull(_));
            let is = |column: Expr| match negated {
                false => Expr::IsNull(Box::new(column)),
                true => Expr::IsNotNull(Box::new(column)),
            };
            Ok(all_of(columns.into_iter().map(is), &BinaryOperator::And).unwrap_or_else(|| boolean(true)))
        }
        Expr::InList { expr, list, negated } => {
            let Some(lefts) = columns(expr) else { return ControlFlow::Continue(()) };
            in_list(&lefts, list, *negated)
        }
        Expr::InSubquery { expr, subquery, negated } => {
            let Some(row) = columns(expr) else { return ControlFlow::Continue(()) };
            if row.iter().any(has_window) {
                return refuse("a window function in a row among the rows of a subquery is not served", "0A000");
            }
            match work::copy(subquery).map(|()| in_subquery(&row, subquery)) {
                Ok(Some(found)) => Ok(not_if(*negated, found)),
                Ok(None) => return refuse("a row is among the rows of a subquery with as many columns", "0A000"),
                Err(error) => Err(error),
            }
        }
        Expr::Between { expr, negated, low, high } => {
            let (Some(row), Some(low), Some(high)) = (columns(expr), columns(low), columns(high)) else {
                return ControlFlow::Continue(());
            };
            let bounds = compared(&row, &BinaryOperator::GtEq, &low)
                .and_then(|low| Ok((low, compared(&row, &BinaryOperator::LtEq, &high)?)));
            let negated = *negated;
            bounds.map(|(low, high)| not_if(negated, both(low, BinaryOperator::And, high)))
        }
        _ => return ControlFlow::Continue(()),
    };
    match done {
        Ok(rewritten) => {
            let negated = matches!(expression, Expr::IsNotDistinctFrom(..));
            *expression = Expr::Nested(Box::new(not_if(negated, rewritten)));
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(error),
    }
}

/// Rewrites `x IS NOT DISTINCT FROM 'literal'` to `(x = 'literal') IS TRUE`: a literal is not null,
/// and takes the type of the other operand of `=`.
fn compare_with_literal(expression: &mut Expr) {
    let (left, right, is_distinct) = match expression {
        Expr::IsDistinctFrom(left, right) => (left, right, true),
        Expr::IsNotDistinctFrom(left, right) => (left, right, false),
        _ => return,
    };
    if is_literal(left) == is_literal(right) {
        return;
    }
    let equal = Box::new(Expr::Nested(Box::new(both(taken(left), BinaryOperator::Eq, taken(right)))));
    *expression = if is_distinct { Expr::IsNotTrue(equal) } else { Expr::IsTrue(equal) };
}

fn is_literal(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn boolean(value: bool) -> Expr {
    Expr::value(Value::Boolean(value))
}

fn both(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn not_if(negated: bool, expression: Expr) -> Expr {
    if negated {
        Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expression))) }
    } else {
        expression
    }
}

#[cold]
fn unequal() -> SqlError {
    parsing_error("unequal number of entries in row expressions").with_sqlstate("42601")
}

/// `left <op> right`, as a row comparison if both are rows.
fn pair(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Expr, SqlError> {
    match (columns(left), columns(right)) {
        (Some(lefts), Some(rights)) => Ok(Expr::Nested(Box::new(compared(&lefts, op, &rights)?))),
        _ => {
            work::copy(left)?;
            work::copy(right)?;
            Ok(both(left.clone(), op.clone(), right.clone()))
        }
    }
}

/// A comparison of rows; an error if they have different numbers of columns.
fn compared(lefts: &[Expr], op: &BinaryOperator, rights: &[Expr]) -> Result<Expr, SqlError> {
    if lefts.len() != rights.len() {
        return Err(unequal());
    }
    let pairs = lefts.iter().zip(rights);
    match op {
        BinaryOperator::Eq | BinaryOperator::NotEq => {
            let joined = if *op == BinaryOperator::Eq { BinaryOperator::And } else { BinaryOperator::Or };
            let terms = pairs.map(|(left, right)| pair(left, op, right)).collect::<Result<Vec<_>, SqlError>>()?;
            Ok(all_of(terms.into_iter(), &joined).unwrap_or_else(|| boolean(*op == BinaryOperator::Eq)))
        }
        _ => {
            // The first different pair decides; a null before it makes the result unknown.
            if lefts.iter().map(width).sum::<usize>() > ORDERED_COLUMNS_MAX {
                let text = format!("rows of more than {ORDERED_COLUMNS_MAX} columns have no order");
                return Err(parsing_error(text).with_sqlstate("54001"));
            }
            let strict = match op {
                BinaryOperator::LtEq => &BinaryOperator::Lt,
                BinaryOperator::GtEq => &BinaryOperator::Gt,
                other => other,
            };
            let mut decided: Option<Expr> = None;
            for (left, right) in pairs.rev() {
                decided = Some(match decided {
                    None => pair(left, op, right)?,
                    Some(rest) => Expr::Case {
                        case_token: AttachedToken::empty(),
                        end_token: AttachedToken::empty(),
                        operand: None,
                        conditions: vec![
                            CaseWhen { condition: pair(left, &BinaryOperator::Eq, right)?, result: rest },
                            CaseWhen {
                                condition: pair(left, &BinaryOperator::NotEq, right)?,
                                result: pair(left, strict, right)?,
                            },
                        ],
                        else_result: None,
                    },
                });
            }
            decided.ok_or_else(unequal)
        }
    }
}

fn distinct(lefts: &[Expr], rights: &[Expr]) -> Result<Expr, SqlError> {
    if lefts.len() != rights.len() {
        return Err(unequal());
    }
    let differ = |(left, right): (&Expr, &Expr)| match (columns(left), columns(right)) {
        (Some(lefts), Some(rights)) => distinct(&lefts, &rights),
        _ => Ok(Expr::IsDistinctFrom(Box::new(left.clone()), Box::new(right.clone()))),
    };
    let terms = lefts.iter().zip(rights).map(differ).collect::<Result<Vec<_>, SqlError>>()?;
    Ok(Expr::Nested(Box::new(all_of(terms.into_iter(), &BinaryOperator::Or).unwrap_or_else(|| boolean(false)))))
}

fn in_list(lefts: &[Expr], list: &mut [Expr], negated: bool) -> Result<Expr, SqlError> {
    let mut terms = Vec::with_capacity(list.len());
    for item in list {
        let Some(rights) = columns(item) else { return Err(unequal()) };
        taken(item);
        terms.push(Expr::Nested(Box::new(compared(lefts, &BinaryOperator::Eq, &rights)?)));
    }
    let any = all_of(terms.into_iter(), &BinaryOperator::Or).unwrap_or_else(|| boolean(false));
    Ok(not_if(negated, any))
}

/// `EXISTS (equal row) OR (EXISTS (row that may be equal) AND NULL)`.
fn in_subquery(row: &[Expr], subquery: &Query) -> Option<Expr> {
    let names: Vec<String> = (0..row.len()).map(|number| format!("$column{number}")).collect();
    let pairs = row
        .iter()
        .zip(&names)
        .map(|(value, name)| both(Expr::Identifier(Ident::with_quote('"', name)), BinaryOperator::Eq, value.clone()));
    let same = Expr::Nested(Box::new(all_of(pairs, &BinaryOperator::And)?));
    let there = |condition: Expr| -> Option<Expr> {
        let mut alias = alias_of(ROWS);
        let column = |name: &String| TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None };
        alias.columns = names.iter().map(column).collect();
        let relation = TableFactor::Derived {
            lateral: false,
            subquery: Box::new(subquery.clone()),
            alias: Some(alias),
            sample: None,
        };
        let mut parser = Parser::new(grammar(Dialect::Postgres)).try_with_sql("SELECT 1").ok()?;
        let mut query = parser.parse_query().ok()?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
            select.selection = Some(condition);
        }
        Some(Expr::Exists { subquery: query, negated: false })
    };
    let unknown = both(there(Expr::IsNull(Box::new(same.clone())))?, BinaryOperator::And, Expr::value(Value::Null));
    Some(both(there(same)?, BinaryOperator::Or, Expr::Nested(Box::new(unknown))))
}

/// Whether an expression contains a window function.
fn has_window(expression: &Expr) -> bool {
    let found = walk::expressions(expression, |inner| match inner {
        Expr::Function(function) if function.over.is_some() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    fn rewritten(text: &str) -> String {
        let mut expression =
            Parser::new(&PostgreSqlDialect {}).try_with_sql(text).and_then(|mut parser| parser.parse_expr()).unwrap();
        match rewrite(&mut expression) {
            ControlFlow::Continue(()) => expression.to_string(),
            ControlFlow::Break(error) => error.sqlstate().to_owned(),
        }
    }

    #[test]
    fn rows_are_compared_column_by_column() {
        for (text, expected) in [
            ("(a, b) = (c, d)", "(a = c AND b = d)"),
            ("(a, b) <> (c, d)", "(a <> c OR b <> d)"),
            ("ROW(a, b) < (c, d)", "(CASE WHEN a = c THEN b < d WHEN a <> c THEN a < c END)"),
            ("(a, b) >= (c, d)", "(CASE WHEN a = c THEN b >= d WHEN a <> c THEN a > c END)"),
            ("(a, b) IS NULL", "(a IS NULL AND b IS NULL)"),
            ("(a, b) IS NOT NULL", "(a IS NOT NULL AND b IS NOT NULL)"),
            ("(a, b) NOT IN ((1, 2), (3, 4))", "(NOT ((a = 1 AND b = 2) OR (a = 3 AND b = 4)))"),
            ("(a, b) = (1, 2, 3)", "42601"),
            ("a = 1", "a = 1"),
        ] {
            assert_eq!(rewritten(text), expected, "{text}");
        }
    }
}
