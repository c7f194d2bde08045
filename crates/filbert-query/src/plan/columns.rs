//! Columns of results: expands `*`, and names expressions that have no name.
//!
//! Every statement may use the whole key (`__key`) and the whole value (`this`) of a map, but `*`
//! omits them where their fields are columns. Plans have no hidden columns, so `*` is expanded
//! here. An expression without an alias is named `EXPR$` and its number, as in Hazelcast.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias,
    TableFactor, TableWithJoins, VisitorMut, WildcardAdditionalOptions,
};
use filbert_dialect::{REPEATED, walk};

/// Returns the columns that `*` stands for, for a table with hidden columns; `None` if it has none.
pub(crate) type VisibleColumns<'c> = &'c dyn Fn(&ObjectName) -> Option<Vec<String>>;

/// Expands `*` everywhere in a query, and names the columns of its result.
pub(crate) fn name_columns(query: &mut Query, visible: VisibleColumns<'_>) {
    let _ = walk::change(query, &mut WriteOut { visible });
    name_result(&mut query.body);
}

struct WriteOut<'c> {
    visible: VisibleColumns<'c>,
}

impl VisitorMut for WriteOut<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        write_out_body(&mut query.body, self.visible);
        ControlFlow::Continue(())
    }
}

fn write_out_body(body: &mut SetExpr, visible: VisibleColumns<'_>) {
    match body {
        SetExpr::Select(select) => write_out(select, visible),
        SetExpr::SetOperation { left, right, .. } => {
            write_out_body(left, visible);
            write_out_body(right, visible);
        }
        _ => {}
    }
}

fn write_out(select: &mut Select, visible: VisibleColumns<'_>) {
    let sources: Vec<Source> =
        select.from.iter().flat_map(relations).filter_map(|factor| source(factor, visible)).collect();
    let hides = sources.iter().any(|source| source.visible.is_some());
    let all = select.from.iter().flat_map(relations).count() == sources.len();
    if !hides || !all {
        return;
    }
    let mut items = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match &item {
            SelectItem::Wildcard(options) if is_plain(options) => {
                sources.iter().for_each(|source| source.append(&mut items));
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                if is_plain(options) =>
            {
                match sources.iter().find(|source| source.is_called(name)) {
                    Some(source) => source.append(&mut items),
                    None => items.push(item),
                }
            }
            _ => items.push(item),
        }
    }
    select.projection = items;
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    options.opt_except.is_none()
        && options.opt_exclude.is_none()
        && options.opt_ilike.is_none()
        && options.opt_rename.is_none()
        && options.opt_replace.is_none()
}

/// One relation of a FROM clause.
struct Source {
    /// The qualifier of its columns.
    name: ObjectName,
    /// Its visible columns, if it has hidden ones.
    visible: Option<Vec<String>>,
}

impl Source {
    fn append(&self, items: &mut Vec<SelectItem>) {
        match &self.visible {
            Some(columns) => items.extend(columns.iter().map(|column| {
                let mut parts: Vec<Ident> = idents(&self.name);
                parts.push(Ident::with_quote('"', column));
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))
            })),
            None => items.push(SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(self.name.clone()),
                WildcardAdditionalOptions::default(),
            )),
        }
    }

    fn is_called(&self, name: &ObjectName) -> bool {
        let (own, wanted) = (idents(&self.name), idents(name));
        let value = |ident: Option<&Ident>| ident.map(|ident| ident.value.clone());
        value(own.last()) == value(wanted.last())
    }
}

fn idents(name: &ObjectName) -> Vec<Ident> {
    name.0.iter().filter_map(|part| part.as_ident().cloned()).collect()
}

fn relations(from: &TableWithJoins) -> Vec<&TableFactor> {
    let joined = from.joins.iter().map(|join| &join.relation);
    std::iter::once(&from.relation).chain(joined).flat_map(flattened).collect()
}

fn flattened(factor: &TableFactor) -> Vec<&TableFactor> {
    match factor {
        TableFactor::NestedJoin { table_with_joins, alias: None } => relations(table_with_joins),
        other => vec![other],
    }
}

fn source(factor: &TableFactor, visible: VisibleColumns<'_>) -> Option<Source> {
    let aliased = |alias: &TableAlias| ObjectName::from(vec![alias.name.clone()]);
    match factor {
        TableFactor::Table { name, alias, args: None, .. } => {
            // An alias that renames columns has to see all of them.
            let renames = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
            let visible = if renames { None } else { visible(name) };
            Some(Source { name: alias.as_ref().map_or_else(|| name.clone(), aliased), visible })
        }
        TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::TableFunction { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } => Some(Source { name: aliased(alias), visible: None }),
        _ => None,
    }
}

/// The name of a plan's column in the result.
pub(crate) fn result_name(name: &str) -> &str {
    name.split(REPEATED).next().unwrap_or(name)
}

/// The tables with all their columns in a SELECT list.
#[derive(Default)]
struct Stars {
    /// Whether all tables are included.
    all: bool,
    /// The names of the tables that are included by name.
    of: Vec<String>,
}

impl Stars {
    fn of(items: &[SelectItem]) -> Stars {
        let mut stars = Stars::default();
        for item in items {
            match item {
                SelectItem::Wildcard(_) => stars.all = true,
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    stars.of.extend(idents(name).last().map(|name| name.value.clone()));
                }
                _ => {}
            }
        }
        stars
    }

    /// Whether a column with this name, and this table if given, may be included.
    fn may_have(&self, column: &[Ident]) -> bool {
        match column {
            [.., table, _] => self.all || self.of.contains(&table.value),
            _ => self.all || !self.of.is_empty(),
        }
    }
}

/// Gives unique names to columns that have the name of an earlier column, or of a column from `*`.
fn part_names(select: &mut Select) {
    let stars = Stars::of(&select.projection);
    let mut names: Vec<String> = Vec::new();
    let mut qualified: Vec<Vec<String>> = Vec::new();
    for item in &mut select.projection {
        let (expr, name, is_there) = match &*item {
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias.value.clone(), false),
            SelectItem::UnnamedExpr(expr @ Expr::Identifier(name)) => {
                (expr, name.value.clone(), stars.may_have(std::slice::from_ref(name)))
            }
            // Qualified names of different tables differ in plans.
            SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(parts)) => {
                let written: Vec<String> = parts.iter().map(|part| part.value.clone()).collect();
                let name = written.last().cloned().unwrap_or_default();
                let is_there = stars.may_have(parts) || qualified.contains(&written);
                qualified.push(written);
                if !is_there {
                    continue;
                }
                (expr, name, true)
            }
            _ => continue,
        };
        if is_there || names.contains(&name) {
            let alias = Ident::with_quote('"', format!("{name}{REPEATED}{}", names.len()));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
        names.push(name);
    }
}

/// Names the expressions of the outermost SELECT.
fn name_result(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            part_names(select);
            for (number, item) in select.projection.iter_mut().enumerate() {
                let SelectItem::UnnamedExpr(expr) = item else { continue };
                if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
                    continue;
                }
                let alias = Ident::with_quote('"', format!("EXPR${number}"));
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
        }
        SetExpr::SetOperation { left, .. } => name_result(left),
        SetExpr::Query(query) => name_result(&mut query.body),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut statements = Parser::parse_sql(&GenericDialect {}, text).unwrap();
        let Some(Statement::Query(mut query)) = statements.pop() else { panic!("not a query: {text}") };
        let visible = |name: &ObjectName| (name.to_string() == "m").then(|| vec!["a".to_owned(), "b".to_owned()]);
        name_columns(&mut query, &visible);
        assert_eq!(query.to_string(), expected);
    }

    #[test]
    fn a_star_leaves_out_what_a_table_hides() {
        check("SELECT * FROM m", r#"SELECT m."a", m."b" FROM m"#);
        check("SELECT x.* FROM m AS x", r#"SELECT x."a", x."b" FROM m AS x"#);
        check("SELECT * FROM m JOIN o ON m.a = o.a", r#"SELECT m."a", m."b", o.* FROM m JOIN o ON m.a = o.a"#);
        check("SELECT * FROM o", "SELECT * FROM o");
        check("SELECT s.c FROM (SELECT * FROM m) AS s", r#"SELECT s.c FROM (SELECT m."a", m."b" FROM m) AS s"#);
    }

    #[test]
    fn an_expression_without_a_name_is_called_by_its_number() {
        check("SELECT a, count(*), 1 AS one FROM o", r#"SELECT a, count(*) AS "EXPR$1", 1 AS one FROM o"#);
        check("SELECT a, * FROM o", "SELECT a AS \"a\u{1}0\", * FROM o");
        check("SELECT o.a, p.b, o.* FROM o, p", "SELECT o.a AS \"a\u{1}0\", p.b, o.* FROM o, p");
        check("SELECT o.a, o.a, p.a FROM o, p", "SELECT o.a, o.a AS \"a\u{1}0\", p.a FROM o, p");
        check("SELECT 1 UNION SELECT 2", r#"SELECT 1 AS "EXPR$0" UNION SELECT 2"#);
    }
}
