//! Columns that a primary key determines. A query that groups by the primary key of a table may use
//! the table's other columns.
//!
//! These columns become groups as well, which does not add any group. PostgreSQL has the same rule,
//! for primary keys alone: columns of subqueries determine none.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, Select, SelectItem, Value, ValueWithSpan, Visitor,
};
use filbert_dialect::{is_aggregate, walk};

use super::sources::{Relation, Scope};
use super::{Output, Resolver};

impl Resolver<'_> {
    /// Adds the columns that the groups determine to the groups, if the query uses them outside of
    /// aggregates.
    pub(super) fn group_by_decided(&self, select: &mut Select, order: Option<&OrderBy>, outputs: &[Output]) {
        let Some(scope) = self.scopes.last().filter(|scope| scope.relations.iter().any(Relation::has_primary_key))
        else {
            return;
        };
        let GroupByExpr::Expressions(groups, modifiers) = &select.group_by else { return };
        let has_sets = |group: &Expr| matches!(group, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
        if groups.is_empty() || !modifiers.is_empty() || groups.iter().any(has_sets) {
            return;
        }
        let columns: Vec<Vec<Ident>> =
            groups.iter().flat_map(parts).filter_map(|group| column(group, scope, outputs)).collect();
        let is_grouped = |relation: &Relation, name: &str| columns.iter().any(|column| relation.has(column, name));
        let decided = |relation: &&Relation| {
            relation.has_primary_key() && relation.primary_key.iter().all(|name| is_grouped(relation, name))
        };
        let mut relations = scope.relations.iter().filter(decided).peekable();
        if relations.peek().is_none() {
            return;
        }
        let mut named = Named::default();
        let is_wildcard =
            |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
        let names_all = select.projection.iter().any(is_wildcard);
        let _ = walk::read(&select.projection, &mut named);
        let _ = walk::read(&select.distinct, &mut named);
        let _ = walk::read(&select.having, &mut named);
        let _ = walk::read(&select.qualify, &mut named);
        let _ = walk::read(&select.named_window, &mut named);
        let _ = order.map(|order| walk::read(order, &mut named));
        let mut more = Vec::new();
        for relation in relations {
            for name in relation.columns.iter().flatten() {
                if (names_all || named.names.contains(name)) && !is_grouped(relation, name) {
                    let qualified = relation.name.iter().cloned().chain([Ident::with_quote('"', name)]);
                    more.push(Expr::CompoundIdentifier(qualified.collect()));
                }
            }
        }
        if let GroupByExpr::Expressions(groups, _) = &mut select.group_by {
            groups.extend(more);
        }
    }
}

impl Relation {
    fn has_primary_key(&self) -> bool {
        !self.primary_key.is_empty()
    }

    /// Whether a column name, with its qualifier, refers to this column of the relation.
    fn has(&self, column: &[Ident], name: &str) -> bool {
        let Some((last, qualifier)) = column.split_last() else { return false };
        let own = self.name.iter().rev().map(|ident| &ident.value);
        last.value == name
            && qualifier.len() <= self.name.len()
            && qualifier.iter().rev().map(|ident| &ident.value).zip(own).all(|(one, other)| one == other)
    }
}

/// The expressions of a group.
fn parts(group: &Expr) -> Vec<&Expr> {
    match group {
        Expr::Tuple(items) => items.iter().collect(),
        other => vec![other],
    }
}

/// The column that a group is, with its qualifier.
fn column(group: &Expr, scope: &Scope, outputs: &[Output]) -> Option<Vec<Ident>> {
    match group {
        Expr::Nested(inner) => column(inner, scope, outputs),
        Expr::CompoundIdentifier(parts) => Some(parts.clone()),
        Expr::Identifier(name) => match scope.named(&name.value).as_slice() {
            [found] => qualified(&found.expression, scope),
            _ => {
                let output = outputs.iter().find(|output| output.name.as_deref() == Some(name.value.as_str()))?;
                qualified(output.expression.as_ref()?, scope)
            }
        },
        Expr::Value(ValueWithSpan { value: Value::Number(place, _), .. }) => {
            let place = place.parse::<usize>().ok()?.checked_sub(1)?;
            qualified(outputs.get(place)?.expression.as_ref()?, scope)
        }
        _ => None,
    }
}

/// A column of the relations, with its qualifier.
fn qualified(expression: &Expr, scope: &Scope) -> Option<Vec<Ident>> {
    match expression {
        Expr::Nested(inner) => qualified(inner, scope),
        Expr::CompoundIdentifier(parts) => Some(parts.clone()),
        Expr::Identifier(name) => match scope.named(&name.value).as_slice() {
            [found] => match &found.expression {
                Expr::CompoundIdentifier(parts) => Some(parts.clone()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The last parts of the names outside of aggregates.
#[derive(Default)]
struct Named {
    names: HashSet<String>,
    /// The number of enclosing aggregates.
    aggregates: usize,
}

impl Visitor for Named {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(function) if is_aggregate(function) => self.aggregates += 1,
            _ if self.aggregates > 0 => {}
            Expr::Identifier(name) => {
                self.names.insert(name.value.clone());
            }
            Expr::CompoundIdentifier(parts) => self.names.extend(parts.last().map(|name| name.value.clone())),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if matches!(expression, Expr::Function(function) if is_aggregate(function)) {
            self.aggregates = self.aggregates.saturating_sub(1);
        }
        ControlFlow::Continue(())
    }
}
