//! Functions in a FROM clause.

use std::ops::ControlFlow;

use filbert_grid::query::{Dialect, SqlError};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, TableAlias, TableAliasColumnDef, TableFactor, Value,
};
use sqlparser::parser::Parser;

use super::super::grammar::grammar;
use super::super::json::call;
use super::values;
use crate::{system, work};

/// Rewrites a function of a FROM clause for DataFusion.
pub(super) fn rewrite(factor: &mut TableFactor, derived: &mut usize) -> ControlFlow<SqlError> {
    let (name, arguments, alias) = match factor {
        TableFactor::Table { name, args: Some(args), alias, .. } => (name, std::mem::take(&mut args.args), alias),
        TableFactor::Function { name, args, alias, .. } => (name, std::mem::take(args), alias),
        // The grammar supports it.
        TableFactor::UNNEST { alias, array_exprs, .. } if array_exprs.len() == 1 => {
            *alias = Some(with_column(alias.take(), "unnest", "unnest"));
            return ControlFlow::Continue(());
        }
        _ => return ControlFlow::Continue(()),
    };
    super::unqualify(name);
    let function = name.to_string().to_ascii_lowercase();
    let alias = alias.take();
    *factor = match function.as_str() {
        "unnest" => TableFactor::UNNEST {
            alias: Some(with_column(alias, &function, "unnest")),
            array_exprs: arguments.into_iter().filter_map(expression).collect(),
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        },
        // A series that is known only at run time becomes an array, and the elements of the array
        // become rows.
        "generate_series" if !arguments.iter().all(is_number) => {
            let alias = Some(with_column(alias, &function, "generate_series"));
            let series = call(&function, arguments.into_iter().filter_map(expression).collect(), Vec::new(), None);
            TableFactor::UNNEST {
                alias,
                array_exprs: vec![series],
                with_offset: false,
                with_offset_alias: None,
                with_ordinality: false,
            }
        }
        "generate_series" => TableFactor::Function {
            lateral: false,
            name: Ident::new(function.as_str()).into(),
            args: arguments,
            with_ordinality: false,
            alias: Some(with_column(alias, &function, "generate_series")),
        },
        "generate_stream" => TableFactor::Function {
            lateral: false,
            name: Ident::new(function.as_str()).into(),
            args: arguments,
            with_ordinality: false,
            alias,
        },
        // Members of a document: names and values.
        "json_each" | "json_each_text" | "jsonb_each" | "jsonb_each_text" => {
            let alias = Some(with_columns(alias, &function, &["key", "value"]));
            let document: Vec<Expr> = arguments.into_iter().filter_map(expression).collect();
            if let Err(error) = document.iter().try_for_each(work::copy) {
                return ControlFlow::Break(error);
            }
            let stem = function.trim_end_matches("_text");
            let values = if stem == function { "values" } else { "texts" };
            let of = |what: &str| call(&format!("{stem}_{what}"), document.clone(), Vec::new(), None);
            TableFactor::UNNEST {
                alias,
                array_exprs: vec![of("names"), of(values)],
                with_offset: false,
                with_offset_alias: None,
                with_ordinality: false,
            }
        }
        _ if values::is_of_rows(&function) => {
            let column =
                if function.ends_with("_elements") || function.contains("_elements_") { "value" } else { &function };
            let alias = Some(with_column(alias, &function, column));
            let rows = call(&function, arguments.into_iter().filter_map(expression).collect(), Vec::new(), None);
            TableFactor::UNNEST {
                alias,
                array_exprs: vec![rows],
                with_offset: false,
                with_offset_alias: None,
                with_ordinality: false,
            }
        }
        // The content of these relations does not depend on the arguments in any relevant way.
        _ if system::is_table_function(&function) => {
            let alias = Some(alias.unwrap_or_else(|| named(&function)));
            let parts = vec![Ident::new(system::PG_CATALOG), Ident::with_quote('"', function)];
            relation(ObjectName::from(parts), alias)
        }
        _ => {
            *derived += 1;
            let value = call(&function, arguments.into_iter().filter_map(expression).collect(), Vec::new(), None);
            match one_row(value, &function, alias) {
                Some(row) => row,
                None => return super::refuse(format!("function {function} cannot stand in FROM"), "42883"),
            }
        }
    };
    ControlFlow::Continue(())
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

/// The alias of a function with several columns.
fn with_columns(alias: Option<TableAlias>, function: &str, columns: &[&str]) -> TableAlias {
    let mut alias = alias.unwrap_or_else(|| named(function));
    for column in columns.iter().skip(alias.columns.len()) {
        alias.columns.push(TableAliasColumnDef { name: Ident::with_quote('"', *column), data_type: None });
    }
    alias
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

/// `(SELECT value AS function) AS alias`
fn one_row(value: Expr, function: &str, alias: Option<TableAlias>) -> Option<TableFactor> {
    let alias = with_column(alias, function, function);
    let mut parser = Parser::new(grammar(Dialect::Postgres)).try_with_sql("SELECT 1").ok()?;
    let mut subquery = parser.parse_query().ok()?;
    if let sqlparser::ast::SetExpr::Select(select) = subquery.body.as_mut() {
        let column = alias.columns.first().map(|column| column.name.clone())?;
        select.projection = vec![sqlparser::ast::SelectItem::ExprWithAlias { expr: value, alias: column }];
    }
    Some(TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None })
}
