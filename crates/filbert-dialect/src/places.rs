//! Schemas of names without a schema.
//!
//! The parser marks such names. After parsing, the mark is replaced by a schema: for existing
//! tables the schema in which the name is found, for new objects the schema in which they are
//! created.

use std::ops::ControlFlow;

use filbert_grid::query::SqlError;
use sqlparser::ast::{Cte, Ident, ObjectName, ObjectNamePart, Query, TableFactor, VisitMut, VisitorMut, With};

use super::names::{catalog_name, in_schema};
use super::rewrite::alias_of;
use super::{AlterAction, Parsed, ShowWhat, TableStatement};
use crate::{walk, with_order};

/// The mark before a name without a schema.
const MARK: char = '\u{2}';

/// Provides the schemas of names without one; `None` = the default schema.
pub trait Places {
    /// The schema of an existing table or view.
    fn of_known(&self, name: &str) -> Option<String>;

    /// The schema of a new table or view.
    fn of_new(&self) -> Option<String>;
}

/// Puts every name without a schema into the default schema.
#[derive(Clone, Copy, Debug)]
pub struct DefaultPlace;

impl Places for DefaultPlace {
    fn of_known(&self, _: &str) -> Option<String> {
        None
    }

    fn of_new(&self) -> Option<String> {
        None
    }
}

/// The catalog name of a name in a statement, with a mark if it has no schema.
pub(super) fn marked_name(name: &ObjectName) -> Result<String, SqlError> {
    let plain = catalog_name(name)?;
    Ok(if name.0.len() == 1 { format!("{MARK}{plain}") } else { plain })
}

fn settled(name: &str, schema: impl FnOnce(&str) -> Option<String>) -> String {
    match name.strip_prefix(MARK) {
        None => name.to_owned(),
        Some(bare) => schema(bare).map_or_else(|| bare.to_owned(), |schema| in_schema(&schema, bare)),
    }
}

/// Gives every name of a statement its schema.
pub(super) fn settle(parsed: &mut Parsed, places: &dyn Places) {
    let known = |name: &mut String| *name = settled(name, |bare| places.of_known(bare));
    let new = |name: &mut String| *name = settled(name, |_| places.of_new());
    let plain = |name: &mut String| *name = settled(name, |_| None);
    match parsed {
        Parsed::CreateMapping(statement) => {
            let bare = settled(&statement.name, |_| None);
            new(&mut statement.name);
            // The map keeps its unqualified name.
            if statement.name != bare {
                statement.external_name.get_or_insert(bare);
            }
        }
        Parsed::DropMapping { name, .. } => known(name),
        Parsed::DropView { names, .. } => names.iter_mut().for_each(known),
        Parsed::CreateIndex(statement) => {
            statement.name.iter_mut().for_each(plain);
            known(&mut statement.map);
        }
        Parsed::DropIndex { name, map, .. } => {
            plain(name);
            map.iter_mut().for_each(known);
        }
        Parsed::CreateView { name, query, .. } => {
            new(name);
            relations(query.as_mut(), places);
        }
        Parsed::Table(statement) => table_statement(statement, places),
        Parsed::Copy(copy) => {
            copy.table.iter_mut().chain(&mut copy.exported).for_each(known);
            copy.query.iter_mut().for_each(|query| relations(query.as_mut(), places));
        }
        Parsed::Show(ShowWhat::Resources(name) | ShowWhat::Indexes(Some(name))) => known(name),
        Parsed::Show(_) | Parsed::Session(_) => {}
        Parsed::Insert(insert) => {
            known(&mut insert.table);
            insert.source.iter_mut().for_each(|query| relations(query.as_mut(), places));
        }
        Parsed::Update(update) => {
            known(&mut update.table);
            let mut qualify = Qualify::within(&mut update.with, places);
            update.from.iter_mut().for_each(|from| qualify.relations(from));
            let values = update.assignments.iter_mut().map(|(_, value)| value);
            values.chain(&mut update.selection).for_each(|expr| qualify.relations(expr));
        }
        Parsed::Delete(delete) => {
            known(&mut delete.table);
            let mut qualify = Qualify::within(&mut delete.with, places);
            delete.using.iter_mut().for_each(|using| qualify.relations(using));
            delete.selection.iter_mut().for_each(|selection| qualify.relations(selection));
        }
        Parsed::Query(query) => relations(query.as_mut(), places),
        Parsed::Explain { statement, .. } => settle(statement, places),
    }
}

fn table_statement(statement: &mut TableStatement, places: &dyn Places) {
    let known = |name: &mut String| *name = settled(name, |bare| places.of_known(bare));
    match statement {
        TableStatement::Create(table) => {
            table.name = settled(&table.name, |_| places.of_new());
            table.like.iter_mut().for_each(|like| known(&mut like.table));
            table.source.iter_mut().for_each(|query| relations(query.as_mut(), places));
        }
        TableStatement::Drop { names, .. }
        | TableStatement::Truncate { names, .. }
        | TableStatement::KeepUp { names, .. } => names.iter_mut().for_each(known),
        TableStatement::Alter(alter) => {
            known(&mut alter.name);
            let schema = super::schema_of(&alter.name).0.map(str::to_owned);
            for action in &mut alter.actions {
                // A renamed table stays in its schema.
                if let AlterAction::RenameTo(name) = action {
                    *name = settled(name, |_| schema.clone());
                }
            }
        }
        TableStatement::Comment(comment) => known(&mut comment.table),
        TableStatement::CreateSchema { .. } | TableStatement::DropSchema { .. } => {}
    }
}

/// Adds schemas to the relations of a query, or of an expression with queries.
fn relations<T: VisitMut>(tree: &mut T, places: &dyn Places) {
    Qualify { places, open: Vec::new() }.relations(tree);
}

struct Qualify<'p> {
    places: &'p dyn Places,
    /// The enclosing queries.
    open: Vec<Open>,
}

/// An enclosing query, with the names of its `WITH` clause.
struct Open {
    named: Vec<String>,
    is_recursive: bool,
    /// The number of `WITH` queries already visited. The next one sees these, and itself if it is
    /// recursive.
    behind: usize,
}

impl Open {
    fn of(with: Option<&With>) -> Open {
        let named = with.iter().flat_map(|with| &with.cte_tables);
        let named = named.map(|cte: &Cte| cte.alias.name.value.clone()).collect();
        Open { named, is_recursive: with.is_some_and(|with| with.recursive), behind: 0 }
    }

    fn sees(&self, name: &str) -> bool {
        let seen = if self.is_recursive { self.behind.saturating_add(1) } else { self.behind };
        self.named.iter().take(seen).any(|named| named == name)
    }
}

impl<'p> Qualify<'p> {
    /// For the parts of a statement that may read the queries of a `WITH`, which get schemas here.
    fn within(with: &mut Option<With>, places: &'p dyn Places) -> Qualify<'p> {
        let mut qualify = Qualify { places, open: vec![Open::of(with.as_ref())] };
        qualify.relations(with);
        qualify
    }

    fn relations<T: VisitMut>(&mut self, tree: &mut T) {
        let _ = walk::change(tree, self);
    }
}

impl VisitorMut for Qualify<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        query.with.iter_mut().for_each(with_order::settle);
        self.open.push(Open::of(query.with.as_ref()));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.open.pop();
        // The queries of a WITH are visited before the rest of the enclosing query.
        if let Some(around) = self.open.last_mut() {
            around.behind = around.behind.saturating_add(1);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return ControlFlow::Continue(()) };
        let [ObjectNamePart::Identifier(bare)] = name.0.as_slice() else { return ControlFlow::Continue(()) };
        if self.open.iter().any(|query| query.sees(&bare.value)) {
            return ControlFlow::Continue(());
        }
        if let Some(schema) = self.places.of_known(&bare.value) {
            let bare = bare.clone();
            // Its columns are qualified by the name as written.
            alias.get_or_insert_with(|| alias_of(&bare.value));
            *name = ObjectName::from(vec![Ident::with_quote('"', schema), bare]);
        }
        ControlFlow::Continue(())
    }
}
