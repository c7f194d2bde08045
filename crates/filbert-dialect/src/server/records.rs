//! Functions of documents in FROM that return rows of the columns that their alias declares:
//! `jsonb_to_recordset(d) AS x(a int)` becomes
//! `(SELECT (v ->> 'a')::int AS a FROM jsonb_array_elements(d::jsonb) AS d(v)) AS x`.

use std::ops::ControlFlow;

use filbert_grid::query::{Dialect, SqlError, parsing_error};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, SelectItem, SetExpr,
    TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs,
};
use sqlparser::parser::Parser;

use super::super::grammar::grammar;
use super::super::json::text;
use super::{taken, values};
use crate::{walk, work};

/// The functions, with the functions that return their documents.
const FUNCTIONS: [(&str, &str); 4] = [
    ("json_to_record", "unnest"),
    ("json_to_recordset", "json_array_elements"),
    ("jsonb_to_record", "unnest"),
    ("jsonb_to_recordset", "jsonb_array_elements"),
];

/// Whether a function takes the columns that its alias declares.
pub(crate) fn takes_columns(name: &ObjectName) -> bool {
    function(name).is_some()
}

fn function(name: &ObjectName) -> Option<(&'static str, &'static str)> {
    let name = name.0.last()?.as_ident()?;
    FUNCTIONS.iter().find(|(known, _)| name.value.eq_ignore_ascii_case(known)).copied()
}

/// Rewrites such a function; the result is rewritten further.
pub(super) fn rewrite(factor: &mut TableFactor) -> ControlFlow<SqlError> {
    let (name, arguments, alias, is_numbered) = match factor {
        TableFactor::Table { name, args: Some(TableFunctionArgs { args, .. }), alias, with_ordinality, .. } => {
            (name, args, alias, *with_ordinality)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => (name, args, alias, *with_ordinality),
        _ => return ControlFlow::Continue(()),
    };
    let Some((function, elements)) = function(name) else { return ControlFlow::Continue(()) };
    let refuse = |text: &str, sqlstate| ControlFlow::Break(parsing_error(text).with_sqlstate(sqlstate));
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(document))] = arguments.as_mut_slice() else {
        return refuse(&format!("{function} takes a document"), "42883");
    };
    let declared = alias.take().filter(|alias| alias.columns.iter().any(|column| column.data_type.is_some()));
    let Some(alias) = declared else {
        return refuse("a column definition list is required for functions returning \"record\"", "42601");
    };
    if is_numbered {
        return refuse("WITH ORDINALITY cannot be used with a column definition list", "42601");
    }
    match rows(taken(document), function, elements, alias) {
        Ok(rows) => {
            *factor = rows;
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(error),
    }
}

fn rows(document: Expr, function: &str, elements: &str, alias: TableAlias) -> Result<TableFactor, SqlError> {
    let (kind, shape) =
        if function.starts_with("jsonb") { ("jsonb", DataType::JSONB) } else { ("json", DataType::JSON) };
    let source = match elements {
        "unnest" => format!("SELECT 1 FROM unnest(ARRAY[NULL::{kind}]) AS d(v)"),
        elements => format!("SELECT 1 FROM {elements}(NULL::{kind}) AS d(v)"),
    };
    let parsed =
        Parser::new(grammar(Dialect::Postgres)).try_with_sql(&source).and_then(|mut parser| parser.parse_query());
    let mut subquery = parsed.map_err(|error| parsing_error(error.to_string()))?;
    let lateral = names_columns(&document);
    let TableAlias { name, columns, .. } = alias;
    if let SetExpr::Select(select) = subquery.body.as_mut() {
        let mut document = Some(values::cast(document, shape));
        for tree in &mut select.from {
            place(&mut tree.relation, &mut document);
        }
        work::copy(select.as_ref())?;
        select.projection = columns.into_iter().map(item).collect::<Result<_, _>>()?;
    }
    let alias = TableAlias { explicit: true, name, columns: Vec::new(), at: None };
    Ok(TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None })
}

/// Whether an expression may refer to columns of relations before it, which have one value for each
/// row.
pub(super) fn names_columns(expression: &Expr) -> bool {
    walk::expressions(expression, |expression| match expression {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// Puts the document into the place that the source has for it.
fn place(source: &mut TableFactor, document: &mut Option<Expr>) {
    let argument = match source {
        TableFactor::UNNEST { array_exprs, .. } => array_exprs.first_mut(),
        TableFactor::Table { args: Some(args), .. } => match args.args.first_mut() {
            Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))) => Some(argument),
            _ => None,
        },
        _ => None,
    };
    let place = match argument {
        Some(Expr::Array(array)) => array.elem.first_mut(),
        other => other,
    };
    if let (Some(place), Some(document)) = (place, document.take()) {
        *place = document;
    }
}

/// A member of the document as a column.
fn item(column: TableAliasColumnDef) -> Result<SelectItem, SqlError> {
    let Some(data_type) = column.data_type else {
        let text = "a column definition list is required for functions returning \"record\"";
        return Err(parsing_error(text).with_sqlstate("42601"));
    };
    let member = |op| Expr::BinaryOp {
        left: Box::new(Expr::CompoundIdentifier(vec![Ident::new("d"), Ident::new("v")])),
        op,
        right: Box::new(text(&column.name.value)),
    };
    let written = || member(BinaryOperator::LongArrow);
    let value = match data_type {
        // The null of a document is the null of SQL.
        DataType::JSON | DataType::JSONB => {
            let (case_token, end_token) = (AttachedToken::empty(), AttachedToken::empty());
            let condition = Expr::IsNotNull(Box::new(written()));
            let conditions = vec![CaseWhen { condition, result: member(BinaryOperator::Arrow) }];
            Expr::Case { case_token, end_token, operand: None, conditions, else_result: None }
        }
        _ => written(),
    };
    Ok(SelectItem::ExprWithAlias { expr: values::cast(value, data_type), alias: column.name })
}
