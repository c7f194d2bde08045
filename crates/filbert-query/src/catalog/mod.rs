//! The catalog: mappings of maps, and views, by name.
//!
//! Every change is noted with its names, and so is every lookup of a name by a statement's planning
//! ([`crate::plan_sources`]). A cached plan is outdated once one of its names has changed.
//!
//! A change names the definition that it was derived from. It is made only if the name still has
//! that definition ([`Catalog::replace`], [`Catalog::remove`]), so concurrent changes do not
//! overwrite each other. [`Gates`] separate concurrent statements.
//!
//! The members of a cluster share one catalog. A change is proposed to all of them together with
//! the definition that it was derived from, and each member applies it, this one included
//! (`shared.rs`).

mod ddl;
mod format;
mod gates;
mod infer;
mod mapping;
mod names;
mod sequence;
mod shared;
mod table;
mod written;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::assert_same_mapping;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use filbert_data::FieldType;
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode, SqlSubject};
use filbert_grid::{ChangeLog, Cluster};
use parking_lot::RwLock;

pub(crate) use ddl::{ddl, external_name};
use filbert_functions::nearest;
pub(crate) use format::EntryFormat;
pub(crate) use gates::{Gates, Shared};
pub(crate) use infer::infer;
pub(crate) use mapping::{Mapping, MappingColumn, resolve};
pub(crate) use names::unknown_column;
pub(crate) use sequence::{Sequence, SequenceFacts};
pub(crate) use table::{CheckFacts, ColumnFacts, Identity, ROW_ID, RowIds, TableFacts, names_column};

use filbert_dialect::DEFAULT_SCHEMAS;
use filbert_functions::error::parsing_error;

use crate::plan_sources::{Definition, looked_up};

/// A view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// Its name.
    pub(crate) name: String,
    /// Its query, as written.
    pub(crate) query: String,
    /// The dialect of the query.
    pub(crate) dialect: Dialect,
    /// The search path for names without a schema.
    pub(crate) path: Vec<String>,
    /// The names and types of its columns.
    pub(crate) columns: Vec<(String, FieldType)>,
}

/// Mappings and views by name.
pub(crate) struct Catalog {
    content: RwLock<Content>,
    changes: ChangeLog<Definition>,
    entries_max: usize,
    row_ids: Arc<RowIds>,
    gates: Gates,
    /// The cluster that shares the catalog, if the member is in one.
    cluster: OnceLock<Weak<dyn Cluster>>,
}

/// The definition of a name. A schema is no table.
#[derive(Clone)]
enum Entry {
    Mapping(Arc<Mapping>),
    View(Arc<View>),
    Schema,
}

/// A change of a name's definition; `None` = the name is removed.
enum Change {
    Relation(String, Option<Entry>),
    Schema(String, bool),
}

impl Change {
    fn definition(&self) -> Definition {
        match self {
            Change::Relation(name, _) => Definition::Relation(name.clone()),
            Change::Schema(name, _) => Definition::Schema(name.clone()),
        }
    }
}

#[derive(Default)]
struct Content {
    mappings: BTreeMap<String, Arc<Mapping>>,
    views: BTreeMap<String, Arc<View>>,
    /// Schemas that were created explicitly, beside the default one. Other schemas exist as long as
    /// they contain a table.
    schemas: BTreeSet<String>,
    /// The versions of the cluster's definitions, by their names.
    versions: BTreeMap<String, u64>,
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog").field("changes", &self.changes.count()).finish_non_exhaustive()
    }
}

/// The current use of a name.
enum Used {
    Mapping,
    View,
}

impl Content {
    fn has_schema(&self, schema: &str) -> bool {
        self.schemas.contains(schema) || self.in_schema(schema).next().is_some()
    }

    fn in_schema<'c>(&'c self, schema: &'c str) -> impl Iterator<Item = &'c String> {
        let is_in = move |name: &&String| name.strip_prefix(schema).is_some_and(|rest| rest.starts_with('.'));
        self.mappings.keys().chain(self.views.keys()).filter(is_in)
    }

    /// Fails unless a name still refers to this mapping.
    fn check_same(&self, expected: &Arc<Mapping>) -> Result<(), SqlError> {
        let name = expected.name.as_str();
        match self.mappings.get(name) {
            Some(found) if Arc::ptr_eq(found, expected) => Ok(()),
            // A definition that came back from the cluster is equal to the proposed one, but a
            // different object.
            Some(found) if !self.versions.is_empty() && **found == **expected => Ok(()),
            _ => {
                let text = format!("{name:?} was changed or dropped by another statement meanwhile");
                Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("40001"))
            }
        }
    }

    /// Applies changes.
    fn make(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Relation(name, entry) => {
                    self.mappings.remove(&name);
                    self.views.remove(&name);
                    match entry {
                        Some(Entry::Mapping(mapping)) => _ = self.mappings.insert(name, mapping),
                        Some(Entry::View(view)) => _ = self.views.insert(name, view),
                        Some(Entry::Schema) | None => {}
                    }
                }
                Change::Schema(name, true) => _ = self.schemas.insert(name),
                Change::Schema(name, false) => _ = self.schemas.remove(&name),
            }
        }
    }

    /// The changes that replace a mapping, which may get another name.
    fn replacing(&self, expected: &Arc<Mapping>, new: &Arc<Mapping>) -> Result<Vec<Change>, SqlError> {
        self.check_same(expected)?;
        let mut changes = Vec::new();
        if new.name != expected.name {
            if self.use_of(&new.name).is_some() {
                return Err(used(&new.name, format!("relation {:?} already exists", new.name)));
            }
            changes.push(Change::Relation(expected.name.clone(), None));
        }
        changes.push(Change::Relation(new.name.clone(), Some(Entry::Mapping(new.clone()))));
        Ok(changes)
    }

    fn use_of(&self, name: &str) -> Option<Used> {
        if self.mappings.contains_key(name) {
            Some(Used::Mapping)
        } else if self.views.contains_key(name) {
            Some(Used::View)
        } else {
            None
        }
    }
}

impl Catalog {
    /// An empty catalog of at most `entries_max` mappings and views together.
    pub(crate) fn new(entries_max: usize) -> Self {
        let (content, changes, row_ids, gates, cluster) = Default::default();
        Catalog { content, changes, entries_max, row_ids, gates, cluster }
    }

    /// Makes a change that depends on the current content. `settle` makes the further effects of
    /// the change under the same lock, or, if a cluster shares the catalog, right after the change.
    /// `None` if there is nothing to change.
    fn change<R>(
        &self,
        decide: impl Fn(&Content) -> Result<Vec<Change>, SqlError>,
        settle: impl FnOnce() -> Result<R, SqlError>,
    ) -> Result<Option<R>, SqlError> {
        if let Some(cluster) = self.cluster.get() {
            return self.change_for_all(cluster, decide)?.then(settle).transpose();
        }
        let mut content = self.content.write();
        let changes = decide(&content)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let settled = settle()?;
        let changed: Vec<Definition> = changes.iter().map(Change::definition).collect();
        content.make(changes);
        for definition in changed {
            self.changed(definition);
        }
        Ok(Some(settled))
    }

    /// All changes of definitions.
    pub(crate) fn changes(&self) -> &ChangeLog<Definition> {
        &self.changes
    }

    /// Whether a cluster shares the catalog, so other members change it as well.
    #[inline]
    pub(crate) fn is_in_cluster(&self) -> bool {
        self.cluster.get().is_some()
    }

    /// Notes a change of a definition. Also for a change that plans depend on but the catalog does
    /// not contain: an index, or columns.
    pub(crate) fn changed(&self, definition: Definition) {
        self.changes.note(definition);
    }

    /// The source of keys for rows without a primary key.
    pub(crate) fn row_ids(&self) -> &Arc<RowIds> {
        &self.row_ids
    }

    /// The locks on names.
    pub(crate) fn gates(&self) -> &Gates {
        &self.gates
    }

    /// The mapping of a name together with the result of `read` for it. Both are taken under one
    /// lock, so neither changes in between.
    pub(crate) fn mapping_with<R>(
        &self,
        name: &str,
        read: impl FnOnce(&Arc<Mapping>) -> R,
    ) -> Option<(Arc<Mapping>, R)> {
        looked_up(|| Definition::Relation(name.to_owned()));
        let content = self.content.read();
        let mapping = content.mappings.get(name)?;
        Some((mapping.clone(), read(mapping)))
    }

    /// The mapping of a name.
    pub(crate) fn mapping(&self, name: &str) -> Option<Arc<Mapping>> {
        looked_up(|| Definition::Relation(name.to_owned()));
        self.content.read().mappings.get(name).cloned()
    }

    /// Whether a schema other than the default one exists: it was created, or contains a table or a
    /// view.
    pub(crate) fn has_schema(&self, schema: &str) -> bool {
        looked_up(|| Definition::Schema(schema.to_owned()));
        self.content.read().has_schema(schema)
    }

    /// The schemas beside the default one, sorted.
    pub(crate) fn schemas(&self) -> Vec<String> {
        looked_up(|| Definition::Catalog);
        let content = self.content.read();
        let of_tables = content.mappings.values().filter(|mapping| mapping.table.is_some());
        let of_tables = of_tables.filter_map(|mapping| Some(mapping.name.split_once('.')?.0.to_owned()));
        content.schemas.iter().cloned().chain(of_tables).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The names of tables, mappings and views of a schema beside the default one.
    pub(crate) fn in_schema(&self, schema: &str) -> Vec<String> {
        looked_up(|| Definition::Schema(schema.to_owned()));
        self.content.read().in_schema(schema).cloned().collect()
    }

    /// Creates a schema; returns whether it is new.
    ///
    /// # Errors
    /// It exists and `if_not_exists` is not set, or there are too many.
    pub(crate) fn put_schema(&self, name: &str, if_not_exists: bool) -> Result<bool, SqlError> {
        let made = self.change(
            |content| {
                let is_there = DEFAULT_SCHEMAS.contains(&name) || content.has_schema(name);
                if is_there && !if_not_exists {
                    return Err(parsing_error(format!("schema {name:?} already exists")).with_sqlstate("42P06"));
                }
                if content.schemas.len() >= self.entries_max {
                    let text = format!("there are {} schemas, no more are allowed", self.entries_max);
                    return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("53400"));
                }
                Ok(if is_there { Vec::new() } else { vec![Change::Schema(name.to_owned(), true)] })
            },
            || Ok(()),
        )?;
        Ok(made.is_some())
    }

    /// Removes a schema; returns whether it existed.
    ///
    /// # Errors
    /// It does not exist and `if_exists` is not set, or it contains tables or views.
    pub(crate) fn drop_schema(&self, name: &str, if_exists: bool) -> Result<bool, SqlError> {
        let dropped = self.change(
            |content| {
                if let Some(table) = content.in_schema(name).next() {
                    let text = format!("schema {name:?} has tables, such as {table:?}: CASCADE drops them too");
                    return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("2BP01"));
                }
                let is_there = content.schemas.contains(name);
                if !is_there && !if_exists {
                    let text = format!("schema {name:?} does not exist");
                    return Err(SqlError::new(SqlErrorCode::ObjectNotFound, text).with_sqlstate("3F000"));
                }
                Ok(if is_there { vec![Change::Schema(name.to_owned(), false)] } else { Vec::new() })
            },
            || Ok(()),
        )?;
        Ok(dropped.is_some())
    }

    /// The mapping of a map: the one with the map's name, otherwise the first by name.
    pub(crate) fn mapping_of_map(&self, map: &str) -> Option<Arc<Mapping>> {
        looked_up(|| Definition::Catalog);
        let content = self.content.read();
        let of_name = content.mappings.get(map).filter(|mapping| mapping.external_name == map);
        of_name.or_else(|| content.mappings.values().find(|mapping| mapping.external_name == map)).cloned()
    }

    /// The view of a name.
    pub(crate) fn view(&self, name: &str) -> Option<Arc<View>> {
        looked_up(|| Definition::Relation(name.to_owned()));
        self.content.read().views.get(name).cloned()
    }

    /// All mappings, by name.
    pub(crate) fn mappings(&self) -> Vec<Arc<Mapping>> {
        looked_up(|| Definition::Catalog);
        self.content.read().mappings.values().cloned().collect()
    }

    /// All views, by name.
    pub(crate) fn views(&self) -> Vec<Arc<View>> {
        looked_up(|| Definition::Catalog);
        self.content.read().views.values().cloned().collect()
    }

    /// The names of all mappings, sorted.
    pub(crate) fn mapping_names(&self) -> Vec<String> {
        looked_up(|| Definition::Catalog);
        self.content.read().mappings.keys().cloned().collect()
    }

    /// The names of all views, sorted.
    pub(crate) fn view_names(&self) -> Vec<String> {
        looked_up(|| Definition::Catalog);
        self.content.read().views.keys().cloned().collect()
    }

    /// The mapping or view with the name most similar to an unknown name.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
        looked_up(|| Definition::Catalog);
        let content = self.content.read();
        let names = content.mappings.keys().chain(content.views.keys()).map(String::as_str);
        nearest(name, names).map(str::to_owned)
    }

    /// Adds a mapping; returns whether anything changed.
    ///
    /// # Errors
    /// The name is in use, or there are too many mappings and views.
    pub(crate) fn put_mapping(
        &self,
        mapping: impl Into<Arc<Mapping>>,
        or_replace: bool,
        if_not_exists: bool,
    ) -> Result<bool, SqlError> {
        let mapping = mapping.into();
        let name = mapping.name.clone();
        let put = |content: &Content| {
            let makes = self.makes_room(content, "Mapping", &name, Used::Mapping, or_replace, if_not_exists)?;
            let change = || Change::Relation(name.clone(), Some(Entry::Mapping(mapping.clone())));
            Ok(makes.then(change).into_iter().collect())
        };
        Ok(self.change(put, || Ok(()))?.is_some())
    }

    /// Adds a view; returns whether anything changed.
    ///
    /// # Errors
    /// Like [`Catalog::put_mapping`].
    pub(crate) fn put_view(&self, view: View, or_replace: bool, if_not_exists: bool) -> Result<bool, SqlError> {
        let (name, view) = (view.name.clone(), Arc::new(view));
        let put = |content: &Content| {
            let makes = self.makes_room(content, "View", &name, Used::View, or_replace, if_not_exists)?;
            let change = || Change::Relation(name.clone(), Some(Entry::View(view.clone())));
            Ok(makes.then(change).into_iter().collect())
        };
        Ok(self.change(put, || Ok(()))?.is_some())
    }

    fn makes_room(
        &self,
        content: &Content,
        what: &str,
        name: &str,
        kind: Used,
        or_replace: bool,
        if_not_exists: bool,
    ) -> Result<bool, SqlError> {
        let is_table = content.mappings.get(name).is_some_and(|mapping| mapping.table.is_some());
        if or_replace && is_table {
            let text = format!("{name:?} is a table: a mapping or view does not take its place, DROP TABLE drops it");
            return Err(parsing_error(text).with_sqlstate("42809"));
        }
        match (content.use_of(name), kind) {
            (Some(Used::Mapping), Used::Mapping) | (Some(Used::View), Used::View) => {
                if if_not_exists {
                    return Ok(false);
                }
                if !or_replace {
                    return Err(used(name, format!("{what} or view already exists: {name}")));
                }
            }
            (Some(Used::Mapping), Used::View) => {
                return Err(used(name, format!("a mapping is called {name}, a view cannot be")));
            }
            (Some(Used::View), Used::Mapping) => {
                return Err(used(name, format!("a view is called {name}, a mapping cannot be")));
            }
            (None, _) if content.mappings.len() + content.views.len() >= self.entries_max => {
                let message = format!("there are {} mappings and views, no more are allowed", self.entries_max);
                return Err(SqlError::new(SqlErrorCode::Generic, message).with_sqlstate("53400"));
            }
            (None, _) => {}
        }
        Ok(true)
    }

    /// Replaces the mapping that the new one was derived from. The new one may have another name.
    /// `settle` makes the further effects of the change under the same lock.
    ///
    /// # Errors
    /// The name has another definition by now, the new name is in use, or `settle` fails. Nothing
    /// was changed then.
    pub(crate) fn replace(
        &self,
        expected: &Arc<Mapping>,
        new: Arc<Mapping>,
        settle: impl FnOnce() -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.change(|content| content.replacing(expected, &new), settle).map(|_| ())
    }

    /// Removes a mapping that was found before. `settle` makes the further effects under the same
    /// lock.
    ///
    /// # Errors
    /// The name has another definition by now, or `settle` fails.
    pub(crate) fn remove<R>(
        &self,
        expected: &Arc<Mapping>,
        settle: impl FnOnce() -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let remove = |content: &Content| {
            content.check_same(expected)?;
            Ok(vec![Change::Relation(expected.name.clone(), None)])
        };
        let removed = self.change(remove, settle)?;
        removed.ok_or_else(|| self.no_mapping(&expected.name))
    }

    /// The error for an unknown mapping.
    pub(crate) fn no_mapping(&self, name: &str) -> SqlError {
        self.absent("Mapping", name)
    }

    /// Removes a view; returns whether it existed.
    ///
    /// # Errors
    /// It does not exist and `if_exists` is not set.
    pub(crate) fn drop_view(&self, name: &str, if_exists: bool) -> Result<bool, SqlError> {
        let is_view = |content: &Content| content.views.contains_key(name);
        let drop = |content: &Content| {
            Ok(is_view(content).then(|| Change::Relation(name.to_owned(), None)).into_iter().collect())
        };
        match self.change(drop, || Ok(()))?.is_some() {
            false if !if_exists => Err(self.absent("View", name)),
            dropped => Ok(dropped),
        }
    }

    fn absent(&self, what: &str, name: &str) -> SqlError {
        let nearest = self.nearest(name);
        let hint = nearest.as_ref().map(|nearest| format!(", did you mean '{nearest}'?")).unwrap_or_default();
        let message = format!("{what} does not exist: {name}{hint}");
        let error = SqlError::new(SqlErrorCode::ObjectNotFound, message).with_sqlstate("42P01");
        error.about(SqlSubject::Relation { name: name.to_owned(), nearest })
    }
}

/// The error for a name in use.
fn used(name: &str, message: String) -> SqlError {
    parsing_error(message).with_sqlstate("42P07").about(SqlSubject::UsedName { name: name.to_owned() })
}
