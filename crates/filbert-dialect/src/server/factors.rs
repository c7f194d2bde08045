//! Functions in a FROM clause.

use std::ops::ControlFlow;

use filbert_grid::query::{Dialect, SqlError, parsing_error};
use sqlparser::ast::{
    DataType, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, SelectItem, TableAlias, TableAliasColumnDef,
    TableFactor, Value,
};
use sqlparser::parser::Parser;

use super::super::grammar::grammar;
use super::super::json::call;
use super::{records, values};
use crate::names::REPEATED;
use crate::{system, work};

/// Rewrites a function of a FROM clause for DataFusion.
pub(super) fn rewrite(factor: &mut TableFactor, derived: &mut usize) -> ControlFlow<SqlError> {
    match rewritten(factor, derived) {
        Ok(rewritten) => {
            rewritten.into_iter().for_each(|rewritten| *factor = rewritten);
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(error),
    }
}

fn rewritten(factor: &mut TableFactor, derived: &mut usize) -> Result<Option<TableFactor>, SqlError> {
    let (name, arguments, alias, is_numbered) = match factor {
        TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } => {
            (name, std::mem::take(&mut args.args), alias, *with_ordinality)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            (name, std::mem::take(args), alias, *with_ordinality)
        }
        // The grammar supports it.
        TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
            return of_arrays(std::mem::take(array_exprs), *with_ordinality, alias.take()).map(Some);
        }
        _ => return Ok(None),
    };
    super::unqualify(name);
    let function = name.to_string().to_ascii_lowercase();
    let alias = alias.take();
    let values = |arguments: Vec<FunctionArg>| arguments.into_iter().filter_map(expression).collect::<Vec<Expr>>();
    Ok(Some(match function.as_str() {
        "unnest" => of_arrays(values(arguments), is_numbered, alias)?,
        // A series that is known only at run time becomes an array, and the elements of the array
        // become rows.
        "generate_series" if is_numbered || !arguments.iter().all(is_number) => {
            let series = call(&function, values(arguments), Vec::new(), None);
            rows(vec![series], is_numbered, with_column(alias, &function, &function), &[])?
        }
        "generate_series" => TableFactor::Function {
            lateral: false,
            name: Ident::new(function.as_str()).into(),
            args: arguments,
            with_ordinality: false,
            alias: Some(with_column(alias, &function, &function)),
        },
        "generate_stream" if !is_numbered => TableFactor::Function {
            lateral: false,
            name: Ident::new(function.as_str()).into(),
            args: arguments,
            with_ordinality: false,
            alias,
        },
        // Members of a document: names and values.
        "json_each" | "json_each_text" | "jsonb_each" | "jsonb_each_text" => {
            let document = values(arguments);
            document.iter().try_for_each(work::copy)?;
            let stem = function.trim_end_matches("_text");
            let texts = if stem == function { "values" } else { "texts" };
            let of = |what: &str| call(&format!("{stem}_{what}"), document.clone(), Vec::new(), None);
            let alias = alias.unwrap_or_else(|| named(&function));
            rows(vec![of("names"), of(texts)], is_numbered, alias, &["key", "value"])?
        }
        _ if values::is_of_rows(&function) => {
            let array = call(&function, values(arguments), Vec::new(), None);
            match function.ends_with("_elements") || function.contains("_elements_") {
                // An output parameter names the column.
                true => rows(vec![array], is_numbered, alias.unwrap_or_else(|| named(&function)), &["value"])?,
                false => rows(vec![array], is_numbered, with_column(alias, &function, &function), &[])?,
            }
        }
        _ if is_numbered && (function == "generate_stream" || system::is_table_function(&function)) => {
            return Err(parsing_error(format!("{function} WITH ORDINALITY is not served")).with_sqlstate("0A000"));
        }
        // The content of these relations does not depend on the arguments in any relevant way.
        _ if system::is_table_function(&function) => {
            let alias = Some(alias.unwrap_or_else(|| named(&function)));
            let parts = vec![Ident::new(system::PG_CATALOG), Ident::with_quote('"', function)];
            relation(ObjectName::from(parts), alias)
        }
        _ => {
            *derived += 1;
            let value = call(&function, values(arguments), Vec::new(), None);
            let columns: &[&str] = if is_numbered { &[ORDINALITY] } else { &[] };
            let alias = with_columns(with_column(alias, &function, &function), columns, 1)?;
            one_row(value, alias).ok_or_else(|| {
                parsing_error(format!("function {function} cannot stand in FROM")).with_sqlstate("42883")
            })?
        }
    }))
}

/// The column with the numbers of the rows.
const ORDINALITY: &str = "ordinality";

/// `unnest(arrays)`
fn of_arrays(arrays: Vec<Expr>, is_numbered: bool, alias: Option<TableAlias>) -> Result<TableFactor, SqlError> {
    match arrays.len() {
        1 => rows(arrays, is_numbered, with_column(alias, "unnest", "unnest"), &[]),
        several => rows(arrays, is_numbered, alias.unwrap_or_else(|| named("unnest")), &vec!["unnest"; several]),
    }
}

/// The elements of arrays as rows, with their numbers if asked for. `columns` are the names of
/// columns that the alias does not name.
fn rows(
    mut arrays: Vec<Expr>,
    is_numbered: bool,
    alias: TableAlias,
    columns: &[&str],
) -> Result<TableFactor, SqlError> {
    let named = arrays.len() - columns.len().min(arrays.len());
    let mut names = columns.to_vec();
    if is_numbered {
        arrays.iter().try_for_each(work::copy)?;
        arrays.push(call("array_ordinals", arrays.clone(), Vec::new(), None));
        names.push(ORDINALITY);
    }
    Ok(TableFactor::UNNEST {
        alias: Some(with_columns(alias, &names, named)?),
        array_exprs: arrays,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: false,
    })
}

fn expression(argument: FunctionArg) -> Option<Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression))
        | FunctionArg::Named { arg: FunctionArgExpr::Expr(expression), .. } => Some(expression),
        _ => None,
    }
}

/// Whether an argument is a numeric literal.
fn is_number(argument: &FunctionArg) -> bool {
    let (FunctionArg::Unnamed(argument) | FunctionArg::Named { arg: argument, .. }) = argument else { return false };
    let mut expression = match argument {
        FunctionArgExpr::Expr(expression) => expression,
        _ => return false,
    };
    while let Expr::UnaryOp { expr, .. } | Expr::Nested(expr) = expression {
        expression = expr;
    }
    matches!(expression, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}

fn named(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::with_quote('"', name), columns: Vec::new(), at: None }
}

/// The alias of a function with one column. The column has the name of the alias, unless the alias
/// names it.
fn with_column(alias: Option<TableAlias>, function: &str, column: &str) -> TableAlias {
    let column = alias.as_ref().map_or_else(|| Ident::with_quote('"', column), |alias| alias.name.clone());
    let mut alias = alias.unwrap_or_else(|| named(function));
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: column, data_type: None });
    }
    alias
}

/// The alias of a function with further columns after the first `known` ones. A name that is there
/// already gets a mark, which is removed where columns are described.
fn with_columns(mut alias: TableAlias, columns: &[&str], known: usize) -> Result<TableAlias, SqlError> {
    let count = columns.len() + known;
    if alias.columns.len() > count {
        let (name, given) = (&alias.name.value, alias.columns.len());
        let text = format!("table \"{name}\" has {count} columns available but {given} columns specified");
        return Err(parsing_error(text).with_sqlstate("42P10"));
    }
    for column in columns.iter().skip(alias.columns.len().saturating_sub(known)) {
        let at = alias.columns.len();
        let is_there = alias.columns.iter().any(|known| known.name.value == *column);
        let name = if is_there { format!("{column}{REPEATED}{at}") } else { (*column).to_owned() };
        alias.columns.push(TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None });
    }
    Ok(alias)
}

fn relation(name: ObjectName, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

/// `(SELECT value AS column, 1 AS ordinality) AS alias`, with the columns of the alias.
fn one_row(value: Expr, alias: TableAlias) -> Option<TableFactor> {
    let lateral = records::names_columns(&value);
    let mut parser = Parser::new(grammar(Dialect::Postgres)).try_with_sql("SELECT 1").ok()?;
    let mut subquery = parser.parse_query().ok()?;
    if let sqlparser::ast::SetExpr::Select(select) = subquery.body.as_mut() {
        let number = values::cast(Expr::value(Value::Number("1".to_owned(), false)), DataType::BigInt(None));
        let columns = [value, number].into_iter().zip(&alias.columns);
        let item = |(expr, column): (Expr, &TableAliasColumnDef)| SelectItem::ExprWithAlias {
            expr,
            alias: column.name.clone(),
        };
        select.projection = columns.map(item).collect();
    }
    Some(TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None })
}
