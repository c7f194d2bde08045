//! Whole rows as documents, `row_to_json(t)`, `to_jsonb(t)`, `json_agg(t)` and
//! `row_to_json(row(1, 2))`, and whole rows in `ORDER BY t`.
//!
//! A row is not a value. As a document it becomes a function call with the names and the values of
//! its columns; in an order it becomes its columns.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, OrderByExpr,
    OrderByOptions, Value,
};
use filbert_dialect::{REPEATED, call, columns_of_row};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, SqlError};

use super::names::whole_row;
use super::sources::Relation;
use super::{Output, Resolver};

/// The function for a row, with names and values in turn.
const DOCUMENT: &str = "json_of_row";
/// The function that takes rows only.
const OF_ROW: &str = "row_to_json";
/// The function of the items of `json_agg`.
const ITEM: &str = "json_item";
/// Functions that take rows as well as other values, by their names at name resolution.
const OF_ANY: [&str; 8] = [
    "to_json",
    "to_jsonb",
    ITEM,
    "json_pair",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
];

impl Resolver<'_> {
    /// Expands rows in the arguments of a function. Returns the expression that replaces the
    /// function, if any.
    pub(super) fn rows_as_documents(&self, function: &mut Function) -> Result<Option<Expr>, SqlError> {
        let name = function.name.to_string().to_ascii_lowercase();
        let is_of_row = name == OF_ROW;
        if self.dialect == Dialect::Hazelcast || !(is_of_row || OF_ANY.contains(&name.as_str())) {
            return Ok(None);
        }
        let FunctionArguments::List(list) = &mut function.args else { return Ok(None) };
        for argument in &mut list.args {
            let FunctionArg::Unnamed(argument) = argument else { continue };
            if let Some(document) = self.document(argument)? {
                *argument = FunctionArgExpr::Expr(document);
                // An array of rows has each row on a line of its own.
                if name == ITEM {
                    function.name = ObjectName::from(Ident::new("json_item_of_row"));
                }
            }
        }
        match list.args.as_mut_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(document))] if is_of_row && is_document(document) => {
                Ok(Some(std::mem::replace(document, Expr::value(Value::Null))))
            }
            [_, _] if is_of_row => {
                Err(parsing_error("row_to_json is served without line feeds alone").with_sqlstate("0A000"))
            }
            _ => Ok(None),
        }
    }

    /// The document of a row; `None` for other values.
    fn document(&self, argument: &FunctionArgExpr) -> Result<Option<Expr>, SqlError> {
        match argument {
            FunctionArgExpr::QualifiedWildcard(name) => {
                let scope = self.scopes.last();
                let relation = scope.and_then(|scope| scope.relations.iter().find(|relation| relation.is_called(name)));
                relation.map_or_else(|| Err(whole_row(name)), document_of).map(Some)
            }
            FunctionArgExpr::Expr(Expr::Identifier(name)) => self.relation(name).map(document_of).transpose(),
            FunctionArgExpr::Expr(row) => Ok(columns_of_row(row).map(|columns| {
                let named = columns.into_iter().enumerate().map(|(at, column)| (format!("f{}", at + 1), column));
                written(named)
            })),
            FunctionArgExpr::Wildcard | FunctionArgExpr::WildcardWithOptions(_) => Ok(None),
        }
    }

    /// Expands rows in `ORDER BY t` into their columns. Within a row a null sorts after all other
    /// values, independent of `NULLS FIRST`.
    pub(super) fn rows_in_order(&self, items: &mut Vec<OrderByExpr>, outputs: &[Output]) -> Result<(), SqlError> {
        if self.dialect == Dialect::Hazelcast {
            return Ok(());
        }
        let is_row = |item: &OrderByExpr| match &item.expr {
            Expr::Identifier(name) if outputs.iter().all(|output| output.name.as_ref() != Some(&name.value)) => {
                self.relation(name)
            }
            _ => None,
        };
        if !items.iter().any(|item| is_row(item).is_some()) {
            return Ok(());
        }
        for item in std::mem::take(items) {
            let Some(relation) = is_row(&item) else {
                items.push(item);
                continue;
            };
            let (Some(columns), false) = (&relation.columns, relation.nullable) else {
                return Err(whole_row(&ObjectName::from(relation.name.clone())));
            };
            let nulls_first = Some(item.options.asc == Some(false));
            items.extend(columns.iter().map(|name| OrderByExpr {
                expr: column_of(relation, name),
                options: OrderByOptions { nulls_first, ..item.options },
                ..item.clone()
            }));
        }
        Ok(())
    }

    /// The relation that a name refers to, if no column has it.
    fn relation(&self, name: &Ident) -> Option<&Relation> {
        for scope in self.scopes.iter().rev() {
            if scope.open || !scope.named(&name.value).is_empty() {
                return None;
            }
            let is_it = |relation: &&Relation| relation.name.last().is_some_and(|own| own.value == name.value);
            if let Some(relation) = scope.relations.iter().find(is_it) {
                return Some(relation);
            }
        }
        None
    }
}

fn column_of(relation: &Relation, name: &str) -> Expr {
    let mut parts = relation.name.clone();
    parts.push(Ident::with_quote('"', name));
    Expr::CompoundIdentifier(parts)
}

fn document_of(relation: &Relation) -> Result<Expr, SqlError> {
    let column = |name: &str| column_of(relation, name);
    let refused = || whole_row(&ObjectName::from(relation.name.clone()));
    let columns = relation.columns.as_ref().ok_or_else(refused)?;
    let shown = |name: &String| name.split(REPEATED).next().unwrap_or(name).to_owned();
    let document = written(columns.iter().map(|name| (shown(name), column(name))));
    if !relation.nullable {
        return Ok(document);
    }
    // A row that an outer join added is null as a whole.
    let key = relation.key.as_ref().ok_or_else(refused)?;
    let is_made_up = CaseWhen { condition: Expr::IsNull(Box::new(column(key))), result: Expr::value(Value::Null) };
    let else_result = Some(Box::new(document));
    let (case_token, end_token) = (AttachedToken::empty(), AttachedToken::empty());
    Ok(Expr::Case { case_token, end_token, operand: None, conditions: vec![is_made_up], else_result })
}

fn written(columns: impl Iterator<Item = (String, Expr)>) -> Expr {
    let pairs = columns.flat_map(|(name, column)| [Expr::value(Value::SingleQuotedString(name)), column]);
    call(DOCUMENT, pairs.collect(), Vec::new(), None)
}

fn is_document(expression: &Expr) -> bool {
    match expression {
        Expr::Function(function) => function.name.to_string() == DOCUMENT,
        Expr::Case { else_result: Some(result), .. } => is_document(result),
        _ => false,
    }
}
