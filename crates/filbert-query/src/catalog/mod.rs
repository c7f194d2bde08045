//! What names of statements stand for: mappings of maps, and views.
//!
//! The catalog's version grows with every change, so that whoever keeps what followed from it (plans) sees that it is old.

mod ddl;
mod declared;
mod format;
mod infer;
mod mapping;
mod names;
mod table;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use filbert_data::FieldType;
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode, SqlSubject};
use parking_lot::RwLock;

pub(crate) use ddl::{ddl, external_name};
pub(crate) use declared::{DeclaredType, ObjectPolicy, member_of};
pub(crate) use format::EntryFormat;
pub(crate) use infer::infer;
pub(crate) use mapping::{Mapping, MappingColumn, resolve};
pub(crate) use names::{nearest, unknown_column};
pub(crate) use table::{CheckFacts, ColumnFacts, Expression, Identity, ROW_ID, RowIds, Sequence, TableFacts};

use crate::dialect::DEFAULT_SCHEMAS;
use crate::error::parsing_error;

/// A view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// Its name.
    pub(crate) name: String,
    /// Its query, as written.
    pub(crate) query: String,
    /// Whose SQL that is.
    pub(crate) dialect: Dialect,
    /// The schemas in which its names without one are looked for.
    pub(crate) path: Vec<String>,
    /// Names and types of its columns.
    pub(crate) columns: Vec<(String, FieldType)>,
}

/// Mappings and views by name.
pub(crate) struct Catalog {
    content: RwLock<Content>,
    version: AtomicU64,
    entries_max: usize,
    row_ids: Arc<RowIds>,
}

#[derive(Default)]
struct Content {
    mappings: BTreeMap<String, Arc<Mapping>>,
    views: BTreeMap<String, Arc<View>>,
    /// Schemas that were made, beside the default one. Others are there as long as they have a table.
    schemas: BTreeSet<String>,
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog").field("version", &self.version()).finish_non_exhaustive()
    }
}

/// What a name is already used for.
enum Used {
    Mapping,
    View,
}

impl Content {
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
        Catalog { content: RwLock::default(), version: AtomicU64::new(0), entries_max, row_ids: Arc::default() }
    }

    /// Grows with every change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Counts a change that plans depend on and the catalog does not hold: an index, columns.
    pub(crate) fn changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Where rows without a primary key get their keys.
    pub(crate) fn row_ids(&self) -> &Arc<RowIds> {
        &self.row_ids
    }

    /// The mapping of a name.
    pub(crate) fn mapping(&self, name: &str) -> Option<Arc<Mapping>> {
        self.content.read().mappings.get(name).cloned()
    }

    /// Whether there is a schema beside the default one: it was made, or has a table or a view.
    pub(crate) fn has_schema(&self, schema: &str) -> bool {
        self.content.read().schemas.contains(schema) || !self.in_schema(schema).is_empty()
    }

    /// The schemas beside the default one, sorted.
    pub(crate) fn schemas(&self) -> Vec<String> {
        let content = self.content.read();
        let of_tables = content.mappings.values().filter(|mapping| mapping.table.is_some());
        let of_tables = of_tables.filter_map(|mapping| Some(mapping.name.split_once('.')?.0.to_owned()));
        content.schemas.iter().cloned().chain(of_tables).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The names of tables, mappings and views of a schema beside the default one.
    pub(crate) fn in_schema(&self, schema: &str) -> Vec<String> {
        let content = self.content.read();
        let is_in = |name: &&String| name.strip_prefix(schema).is_some_and(|rest| rest.starts_with('.'));
        content.mappings.keys().chain(content.views.keys()).filter(is_in).cloned().collect()
    }

    /// Makes a schema.
    ///
    /// # Errors
    /// It is there and that is not expected, or there are too many.
    pub(crate) fn put_schema(&self, name: &str, if_not_exists: bool) -> Result<(), SqlError> {
        let is_there = DEFAULT_SCHEMAS.contains(&name) || self.has_schema(name);
        if is_there && !if_not_exists {
            return Err(parsing_error(format!("schema {name:?} already exists")).with_sqlstate("42P06"));
        }
        let mut content = self.content.write();
        if content.schemas.len() >= self.entries_max {
            let text = format!("there are {} schemas, no more are allowed", self.entries_max);
            return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("53400"));
        }
        if !is_there {
            content.schemas.insert(name.to_owned());
            self.changed();
        }
        Ok(())
    }

    /// Takes a schema out; whether it was there.
    ///
    /// # Errors
    /// There is none and that is not expected.
    pub(crate) fn drop_schema(&self, name: &str, if_exists: bool) -> Result<bool, SqlError> {
        let dropped = self.content.write().schemas.remove(name);
        if dropped {
            self.changed();
        } else if !if_exists {
            let text = format!("schema {name:?} does not exist");
            return Err(SqlError::new(SqlErrorCode::ObjectNotFound, text).with_sqlstate("3F000"));
        }
        Ok(dropped)
    }

    /// A mapping of a map: the one of the map's name, else the first by name.
    pub(crate) fn mapping_of_map(&self, map: &str) -> Option<Arc<Mapping>> {
        let content = self.content.read();
        let of_name = content.mappings.get(map).filter(|mapping| mapping.external_name == map);
        of_name.or_else(|| content.mappings.values().find(|mapping| mapping.external_name == map)).cloned()
    }

    /// The view of a name.
    pub(crate) fn view(&self, name: &str) -> Option<Arc<View>> {
        self.content.read().views.get(name).cloned()
    }

    /// All mappings, by name.
    pub(crate) fn mappings(&self) -> Vec<Arc<Mapping>> {
        self.content.read().mappings.values().cloned().collect()
    }

    /// All views, by name.
    pub(crate) fn views(&self) -> Vec<Arc<View>> {
        self.content.read().views.values().cloned().collect()
    }

    /// The names of all mappings, sorted.
    pub(crate) fn mapping_names(&self) -> Vec<String> {
        self.content.read().mappings.keys().cloned().collect()
    }

    /// The names of all views, sorted.
    pub(crate) fn view_names(&self) -> Vec<String> {
        self.content.read().views.keys().cloned().collect()
    }

    /// The mapping or view whose name is nearest to one that is not there.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
        let content = self.content.read();
        let names = content.mappings.keys().chain(content.views.keys()).map(String::as_str);
        nearest(name, names).map(str::to_owned)
    }

    /// Keeps a mapping; whether anything changed.
    ///
    /// # Errors
    /// The name is used, or there are too many mappings and views.
    pub(crate) fn put_mapping(
        &self,
        mapping: Mapping,
        or_replace: bool,
        if_not_exists: bool,
    ) -> Result<bool, SqlError> {
        let mut content = self.content.write();
        if !self.makes_room(&content, "Mapping", &mapping.name, Used::Mapping, or_replace, if_not_exists)? {
            return Ok(false);
        }
        content.mappings.insert(mapping.name.clone(), Arc::new(mapping));
        self.changed();
        Ok(true)
    }

    /// Keeps a view; whether anything changed.
    ///
    /// # Errors
    /// As [`Catalog::put_mapping`].
    pub(crate) fn put_view(&self, view: View, or_replace: bool, if_not_exists: bool) -> Result<bool, SqlError> {
        let mut content = self.content.write();
        if !self.makes_room(&content, "View", &view.name, Used::View, or_replace, if_not_exists)? {
            return Ok(false);
        }
        content.views.insert(view.name.clone(), Arc::new(view));
        self.changed();
        Ok(true)
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

    /// Takes a mapping out; the map stays.
    ///
    /// # Errors
    /// There is none and that is not expected.
    pub(crate) fn drop_mapping(&self, name: &str, if_exists: bool) -> Result<Option<Arc<Mapping>>, SqlError> {
        let dropped = self.content.write().mappings.remove(name);
        match dropped {
            Some(_) => self.changed(),
            None if !if_exists => return Err(self.absent("Mapping", name)),
            None => {}
        }
        Ok(dropped)
    }

    /// Takes a view out; whether it was there.
    ///
    /// # Errors
    /// There is none and that is not expected.
    pub(crate) fn drop_view(&self, name: &str, if_exists: bool) -> Result<bool, SqlError> {
        let dropped = self.content.write().views.remove(name).is_some();
        match dropped {
            true => self.changed(),
            false if !if_exists => return Err(self.absent("View", name)),
            false => {}
        }
        Ok(dropped)
    }

    fn absent(&self, what: &str, name: &str) -> SqlError {
        let nearest = self.nearest(name);
        let hint = nearest.as_ref().map(|nearest| format!(", did you mean '{nearest}'?")).unwrap_or_default();
        let message = format!("{what} does not exist: {name}{hint}");
        let error = SqlError::new(SqlErrorCode::ObjectNotFound, message).with_sqlstate("42P01");
        error.about(SqlSubject::Relation { name: name.to_owned(), nearest })
    }
}

/// The error for a name that something else has.
fn used(name: &str, message: String) -> SqlError {
    parsing_error(message).with_sqlstate("42P07").about(SqlSubject::UsedName { name: name.to_owned() })
}
