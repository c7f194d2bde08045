//! Views: they are created, replaced and dropped, and they are protected from changes of their
//! tables.
//!
//! A view is stored as a text, and its names are resolved each time it is read. In PostgreSQL a
//! view stays bound to the tables and columns that it was created with. A change of a table that
//! would give a name in a view of PostgreSQL's dialect another meaning, or none, is therefore
//! rejected with SQLSTATE 2BP01. In the other dialects, as there, a view reads whatever its names
//! mean now.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, JoinConstraint, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
    Value, ValueWithSpan, Visitor,
};
use filbert_dialect::{AlterAction, schema_of, walk};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, Severity, SqlError, SqlErrorCode};

use super::{kept, skipped};
use crate::catalog::View;
use crate::client_context::ClientContext;
use crate::parts::Parts;
use crate::plan::planner::plan_query;
use crate::plan::scope;
use crate::tables::{Tables, relations_of};

/// A view to create.
pub(super) struct NewView<'s> {
    pub(super) name: &'s str,
    pub(super) or_replace: bool,
    pub(super) if_not_exists: bool,
    pub(super) query_text: &'s str,
    pub(super) query: &'s Query,
}

/// Creates a view.
///
/// # Errors
/// Its query cannot be planned, the name is in use, or PostgreSQL would not replace the view.
pub(super) async fn create(engine: &Parts, client: &ClientContext, new: &NewView<'_>) -> Result<(), SqlError> {
    let state = engine.sessions.planning(client.dialect());
    let planned = plan_query(state, &engine.tables, client, new.query.clone()).await?;
    let columns = planned.columns.iter().map(|column| (column.name.clone(), column.field_type.clone()));
    let view = View {
        name: new.name.to_owned(),
        query: new.query_text.to_owned(),
        dialect: client.dialect(),
        path: crate::paths::schemas(client),
        columns: columns.collect(),
    };
    if view.dialect == Dialect::Postgres {
        check_names(&view)?;
        let old = engine.tables.catalog().view(new.name).filter(|_| new.or_replace);
        if let Some(old) = old {
            check_replaced(&engine.tables, &old, &view)?;
        }
    }
    if !engine.tables.catalog().put_view(view, new.or_replace, new.if_not_exists)? {
        kept(client, "relation", new.name, "42P07");
    }
    Ok(())
}

/// Checks that the columns of a view have different names.
fn check_names(view: &View) -> Result<(), SqlError> {
    for (at, (name, _)) in view.columns.iter().enumerate() {
        if view.columns.iter().take(at).any(|(other, _)| other == name) {
            let text = format!("column {name:?} specified more than once");
            return Err(parsing_error(text).with_sqlstate("42701"));
        }
    }
    Ok(())
}

/// Checks that a view has all columns of the view that it replaces, in their places, as PostgreSQL
/// asks. Other views may read them.
fn check_replaced(tables: &Tables, old: &View, new: &View) -> Result<(), SqlError> {
    let refused = |text: String| Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("42P16"));
    if new.columns.len() < old.columns.len() {
        return refused("cannot drop columns from view".to_owned());
    }
    for ((before, before_type), (name, field_type)) in old.columns.iter().zip(&new.columns) {
        if before != name {
            return refused(format!("cannot change name of view column {before:?} to {name:?}"));
        }
        if before_type != field_type {
            let text = format!("cannot change data type of view column {name:?} from {before_type} to {field_type}");
            return refused(text);
        }
    }
    let added = new.columns.iter().skip(old.columns.len());
    added.map(|(name, _)| Effect::Adds(name)).try_for_each(|effect| check_readers(tables, &old.name, effect))
}

/// Drops views; returns an error before the first is dropped if one of them cannot be.
///
/// # Errors
/// A view does not exist, or another one reads it and `cascade` is not set.
pub(super) fn drop(
    tables: &Tables,
    client: &ClientContext,
    names: &[String],
    if_exists: bool,
    cascade: bool,
) -> Result<(), SqlError> {
    let catalog = tables.catalog();
    let is_there = |name: &str| catalog.view(name).is_some();
    if !if_exists && let Some(missing) = names.iter().find(|name| !is_there(name)) {
        return catalog.drop_view(missing, false).map(|_| ());
    }
    let over: Vec<String> = names.iter().flat_map(|name| tables.views_over(name)).collect();
    if !cascade {
        check_dropped(client, "view", names, &over)?;
    }
    for name in names {
        if !catalog.drop_view(name, if_exists)? {
            skipped(client, "view", name);
        }
    }
    if cascade {
        drop_over(tables, client, &over)?;
    }
    Ok(())
}

/// Checks that no view reads relations that are dropped, except views that are dropped with them.
/// In the other dialects a view stays, and reports the missing relation when it is queried.
///
/// # Errors
/// SQLSTATE 2BP01.
pub(super) fn check_dropped(
    client: &ClientContext,
    what: &str,
    names: &[String],
    over: &[String],
) -> Result<(), SqlError> {
    let reader = over.iter().find(|view| !names.contains(view));
    match reader.filter(|_| client.dialect() == Dialect::Postgres) {
        None => Ok(()),
        Some(view) => {
            let text = format!("cannot drop {what} {} because the view {view:?} depends on it", names.join(", "));
            Err(depends(text).with_suggestion("Use DROP ... CASCADE to drop the dependent objects too."))
        }
    }
}

/// Drops views over other relations that were dropped, and notifies the client.
pub(super) fn drop_over(tables: &Tables, client: &ClientContext, over: &[String]) -> Result<(), SqlError> {
    for view in over {
        if tables.catalog().drop_view(view, true)?
            && let Some(session) = client.session()
        {
            session.tell(Severity::Notice, "00000", format!("drop cascades to view {}", schema_of(view).1));
        }
    }
    Ok(())
}

/// Checks that no view would change its meaning with a change of a table that it reads.
///
/// # Errors
/// SQLSTATE 2BP01.
pub(super) fn check_altered(tables: &Tables, table: &str, actions: &[AlterAction]) -> Result<(), SqlError> {
    let mut effects = Vec::new();
    for action in actions {
        match action {
            AlterAction::RenameTo(_) => effects.push(Effect::Moves),
            AlterAction::AddColumn(definition, _) => effects.push(Effect::Adds(&definition.name)),
            AlterAction::DropColumn(name, _) | AlterAction::Type(name, ..) => effects.push(Effect::Changes(name)),
            AlterAction::RenameColumn(from, to) => effects.extend([Effect::Changes(from), Effect::Adds(to)]),
            AlterAction::Default(..)
            | AlterAction::NotNull(..)
            | AlterAction::AddConstraint(_)
            | AlterAction::DropConstraint(..)
            | AlterAction::Set(_)
            | AlterAction::Reset(_)
            | AlterAction::ValidateConstraint(_)
            | AlterAction::Nothing => {}
        }
    }
    effects.into_iter().try_for_each(|effect| check_readers(tables, table, effect))
}

/// The effect of a statement on the names of a relation.
#[derive(Clone, Copy)]
enum Effect<'n> {
    /// The relation gets another name.
    Moves,
    /// It gets a column with this name.
    Adds(&'n str),
    /// Its column with this name is dropped, renamed, or gets another type.
    Changes(&'n str),
}

/// Checks the views that read a relation directly.
fn check_readers(tables: &Tables, relation: &str, effect: Effect<'_>) -> Result<(), SqlError> {
    for view in tables.catalog().views() {
        if view.dialect != Dialect::Postgres {
            continue;
        }
        let Ok(query) = tables.query_of(&view) else { continue };
        if !relations_of(&query).iter().any(|read| read == relation) {
            continue;
        }
        let used = Used::of(&query);
        let is_touched = match effect {
            Effect::Moves => true,
            Effect::Changes(column) => used.all || used.top || used.names(column),
            Effect::Adds(column) => {
                used.all || used.names(column) || used.top && view.columns.iter().any(|(name, _)| name == column)
            }
        };
        if is_touched {
            let (table, view) = (schema_of(relation).1, schema_of(&view.name).1);
            let text = match effect {
                Effect::Moves => format!("cannot rename {table:?} because the view {view:?} depends on it"),
                Effect::Adds(column) => {
                    format!("{table:?} cannot have a column {column:?}: the view {view:?} would read it")
                }
                Effect::Changes(column) => {
                    format!("cannot alter column {column:?} of {table:?} because the view {view:?} depends on it")
                }
            };
            return Err(depends(text).with_suggestion("Drop the view before, and create it again afterwards."));
        }
    }
    Ok(())
}

fn depends(text: String) -> SqlError {
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("2BP01")
}

/// The columns that a query uses.
#[derive(Default)]
struct Used {
    /// The names in expressions and `USING`, of columns of any relation.
    columns: Vec<String>,
    /// Whether the meaning of the query changes with any column: a `*` within it, or `NATURAL`.
    all: bool,
    /// Whether the list of the query itself has a `*`. A view reads only the columns that it was
    /// created with (`plan/scope/sources.rs`).
    top: bool,
    /// The number of SELECTs that were visited.
    selects: usize,
}

impl Used {
    fn of(query: &Query) -> Used {
        let mut used = Used::default();
        match renamed(query) {
            Some(inner) => {
                let _ = walk::read(inner, &mut used);
                // The names are those of the columns in their order.
                used.all |= used.top;
            }
            None => {
                let _ = walk::read(query, &mut used);
                used.all |= used.top && !is_by_name(query);
            }
        }
        used
    }

    fn names(&self, column: &str) -> bool {
        self.columns.iter().any(|used| used == column)
    }

    fn joins(&mut self, tree: &TableWithJoins) {
        for join in &tree.joins {
            let mut operator = join.join_operator.clone();
            match scope::constraint(&mut operator) {
                Some(JoinConstraint::Natural) => self.all = true,
                Some(JoinConstraint::Using(names)) => {
                    let names = names.iter().filter_map(|name| name.0.last().and_then(|part| part.as_ident()));
                    self.columns.extend(names.map(|name| name.value.clone()));
                }
                Some(JoinConstraint::On(_) | JoinConstraint::None) | None => {}
            }
        }
    }
}

impl Visitor for Used {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_first = self.selects == 0;
        self.selects += 1;
        let has_all = select
            .projection
            .iter()
            .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
        if is_first {
            self.top = has_all;
        } else {
            self.all |= has_all;
        }
        select.from.iter().for_each(|tree| self.joins(tree));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.joins(table_with_joins);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.columns.push(name.value.clone()),
            Expr::CompoundIdentifier(names) => self.columns.extend(names.last().map(|name| name.value.clone())),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The query within the one that gives names to its columns, if a view has a list of names.
fn renamed(query: &Query) -> Option<&Query> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    match (select.projection.as_slice(), select.from.as_slice()) {
        ([SelectItem::Wildcard(_)], [TableWithJoins { relation: TableFactor::Derived { subquery, .. }, joins }])
            if joins.is_empty() && select.selection.is_none() && query.with.is_none() =>
        {
            Some(subquery)
        }
        _ => None,
    }
}

/// Whether further columns of a query's `*` change nothing about its other columns: it is one plain
/// SELECT, and refers to none of its columns by their number.
fn is_by_name(query: &Query) -> bool {
    let is_number = |expr: &Expr| matches!(expr, Expr::Value(ValueWithSpan { value: Value::Number(..), .. }));
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let sorted_by_number = query.order_by.as_ref().is_some_and(|order| match &order.kind {
        OrderByKind::Expressions(keys) => keys.iter().any(|key| is_number(&key.expr)),
        OrderByKind::All(_) => true,
    });
    let grouped_by_number = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => keys.iter().any(is_number),
        GroupByExpr::All(_) => true,
    };
    // A `WITH` is visited before the list of the query itself.
    query.with.is_none() && select.distinct.is_none() && !sorted_by_number && !grouped_by_number
}
