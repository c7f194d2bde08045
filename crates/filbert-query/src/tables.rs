//! Resolves names of statements to tables: mappings, and maps without a mapping. The columns of
//! such a map are inferred from a stored entry.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use datafusion::sql::sqlparser::ast::{ObjectName, Query};
use filbert_data::{Blob, FieldPath, FieldType, Formats, IdsLayout, SchemaSource, Side};
use filbert_dialect::{self as dialect, Parsed, walk};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode, SqlSubject};
use filbert_grid::replication::{EntrySelection, LeaderRead};
use filbert_grid::{Cluster, ColumnConfig, Definitions, Grid, GridError, Map, PartitionId, ReadView};
use tokio::sync::oneshot;

use crate::catalog::{Catalog, EntryFormat, Mapping, MappingColumn, View};
use crate::paths::Path;
use crate::plan_sources::{Definition, looked_up};
use crate::scan::table::{MapTable, TableColumn};

/// The schema of mappings, views and maps.
pub(crate) const SCHEMA: &str = "public";
/// The schema in which Hazelcast finds maps without a mapping.
pub(crate) const PARTITIONED: &str = "partitioned";

/// The column of the stored key, for statements that change entries.
pub(crate) const RAW_KEY: &str = "$key";
/// The column of the stored value, for statements that change entries.
pub(crate) const RAW_VALUE: &str = "$value";

/// The schema in which every table exposes its stored keys and values as columns.
pub(crate) const RAW_SCHEMA: &str = "$raw";

/// Finds tables by name.
pub(crate) struct Tables {
    grid: Weak<Grid>,
    catalog: Arc<Catalog>,
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

/// The columns of a table.
pub(crate) struct Columns {
    /// Their names and types, and whether `*` omits them.
    pub(crate) columns: Vec<(String, FieldType, bool)>,
    /// A column that is never null.
    pub(crate) key: Option<String>,
    /// The columns of a table's primary key, if they are visible; empty for a mapping.
    pub(crate) primary_key: Vec<String>,
}

/// The definition of a view.
pub(crate) struct ViewQuery {
    pub(crate) query: Query,
    /// The dialect of the query.
    pub(crate) dialect: Dialect,
    /// The names of its columns when it was created.
    pub(crate) columns: Vec<String>,
}

/// A mapping with its map.
pub(crate) struct Mapped {
    pub(crate) mapping: Arc<Mapping>,
    pub(crate) table: Arc<MapTable>,
}

/// How long a statement waits until this member knows all of a change of a table. It takes
/// milliseconds.
const ALTERED_WAIT_MAX: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const ALTERED_PAUSE: Duration = Duration::from_millis(1);

/// The error of a member that cannot answer statements now. Another member may be able to, or this
/// one soon.
fn not_caught_up(error: GridError) -> SqlError {
    match error {
        GridError::UnsupportedOperation(text) => SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("0A000"),
        error => {
            let text = format!("this member of the cluster cannot answer statements now: {error}");
            SqlError::new(SqlErrorCode::ConnectionProblem, text).with_sqlstate("57P03")
        }
    }
}

impl Tables {
    pub(crate) fn new(grid: Weak<Grid>, catalog: Arc<Catalog>) -> Self {
        Tables { grid, catalog }
    }

    /// Shares the tables with all members of a cluster.
    pub(crate) fn join_cluster(self: &Arc<Self>, cluster: &Arc<dyn Cluster>) {
        self.catalog.join_cluster(cluster);
        let tables = Arc::downgrade(self);
        cluster.on_definitions(Box::new(move |definitions| {
            if let Some(tables) = tables.upgrade() {
                tables.follow(definitions);
            }
        }));
    }

    /// Whether the member is in a cluster, where other members change the tables as well.
    pub(crate) fn is_in_cluster(&self) -> bool {
        self.catalog.is_in_cluster()
    }

    /// Waits until statements see every change that any member of the cluster has acknowledged.
    /// Returns the places from which the statement reads the partitions.
    ///
    /// # Errors
    /// This member cannot answer statements now: it does not reach the other members.
    pub(crate) async fn catch_up(&self) -> Result<ReadView, SqlError> {
        if !self.is_in_cluster() {
            return Ok(ReadView::complete());
        }
        let (sender, caught_up) = oneshot::channel();
        // A cancelled statement stops waiting.
        self.grid()?.catch_up(Box::new(move |result| _ = sender.send(result)));
        caught_up.await.unwrap_or(Err(GridError::NotActive)).map_err(not_caught_up)
    }

    /// Adopts the table definitions of the cluster, and updates the columns and layouts of the
    /// maps.
    fn follow(&self, definitions: &Definitions) {
        let Ok(grid) = self.grid() else { return };
        self.catalog.row_ids().not_before(grid.now().0);
        let (come, gone) = self.catalog.follow(definitions);
        for mapping in gone.iter().filter(|mapping| mapping.columnar) {
            if let Some(map) = grid.existing_map(&mapping.external_name)
                && let Err(error) = map.set_columns(Vec::new())
            {
                tracing::debug!(map = mapping.external_name, "its columns are not dropped: {error}");
            }
        }
        // Includes the maps of new mappings.
        for mapping in self.catalog.mappings() {
            if let Some(map) = grid.existing_map(&mapping.external_name)
                && let Err(error) = keep_in(&map, &mapping)
            {
                tracing::warn!(mapping = mapping.name, "its columns are not kept here: {}", error.message);
            }
        }
        // The columns of their maps have changed since the catalog did.
        for mapping in come.iter().chain(&gone) {
            self.catalog.changed(Definition::Relation(mapping.name.clone()));
        }
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub(crate) fn grid(&self) -> Result<Arc<Grid>, SqlError> {
        self.grid.upgrade().ok_or_else(|| GridError::NotActive.into())
    }

    /// The formats of a map's entries, for a map without a mapping.
    pub(crate) fn formats(&self, map: &Map) -> Result<Formats, SqlError> {
        let grid = self.grid()?;
        let mapping = self.catalog.mapping_of_map(map.name());
        let schemas: Arc<dyn SchemaSource> = grid.schemas().clone();
        Ok(match mapping {
            Some(mapping) => formats_of(&mapping, schemas),
            None => Formats { schemas, key_layout: None, value_layout: None },
        })
    }

    /// The table with this name. `None` if no such mapping exists, and no map with entries to infer
    /// the columns from.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Mapped>, SqlError> {
        self.find_as(name, false)
    }

    pub(crate) fn find_as(&self, name: &str, raw: bool) -> Result<Option<Mapped>, SqlError> {
        let until = Instant::now() + ALTERED_WAIT_MAX;
        loop {
            let found = self.find_once(name, raw)?;
            let facts = found.as_ref().and_then(|found| Some((found.mapping.table.as_ref()?, found.table.map())));
            if facts.is_none_or(|(facts, map)| map.replacement().is_none_or(|id| facts.map == Some(id))) {
                return Ok(found);
            }
            // Another member has altered the table: this member has the new map, and not the new
            // mapping yet.
            if Instant::now() >= until {
                let text = format!("relation {name:?} was altered, and this member does not know the change yet");
                return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("40001"));
            }
            std::thread::sleep(ALTERED_PAUSE);
        }
    }

    fn find_once(&self, name: &str, raw: bool) -> Result<Option<Mapped>, SqlError> {
        let grid = self.grid()?;
        let of_mapping = |mapping: &Arc<Mapping>| {
            looked_up(|| Definition::Map(mapping.external_name.clone()));
            grid.existing_map(&mapping.external_name).ok_or(())
        };
        let found = match self.catalog.mapping_with(name, of_mapping) {
            Some((mapping, Ok(map))) => Some((mapping, Ok(map))),
            // Another member may have renamed the table: a map with the former name must not be
            // made.
            Some((_, Err(()))) if self.is_in_cluster() => {
                self.catalog.catch_up()?;
                self.catalog.mapping_with(name, |mapping| grid.map(&mapping.external_name))
            }
            _ => self.catalog.mapping_with(name, |mapping| grid.map(&mapping.external_name)),
        };
        let (mapping, map) = match found {
            Some(found) => found,
            None => match self.inferred(name)? {
                Some(mapping) => {
                    let map = grid.map(&mapping.external_name);
                    (Arc::new(mapping), map)
                }
                None => return Ok(None),
            },
        };
        let map = map?;
        let table = Arc::new(table_of(&mapping, map, grid.schemas().clone(), raw));
        Ok(Some(Mapped { mapping, table }))
    }

    /// The mapping inferred from a stored entry of a map without a mapping. Without entries here,
    /// it waits for the leaders of the partitions.
    pub(crate) fn inferred(&self, name: &str) -> Result<Option<Mapping>, SqlError> {
        self.inferred_by(name, sample)
    }

    /// The same from an entry of this member, without waiting.
    pub(crate) fn inferred_here(&self, name: &str) -> Result<Option<Mapping>, SqlError> {
        self.inferred_by(name, |map| Ok(sample_here(map)))
    }

    fn inferred_by(
        &self,
        name: &str,
        sample: impl FnOnce(&Map) -> Result<Entry, SqlError>,
    ) -> Result<Option<Mapping>, SqlError> {
        let grid = self.grid()?;
        looked_up(|| Definition::Map(name.to_owned()));
        // Requesting a map would create it.
        if grid.map_names().binary_search_by(|known| known.as_str().cmp(name)).is_err() {
            return Ok(None);
        }
        let map = grid.map(name)?;
        let Some((key, value)) = sample(&map)? else { return Ok(None) };
        crate::catalog::infer(name, &key, &value, grid.schemas().as_ref()).map(Some)
    }

    /// The columns that `*` stands for, for a table that has hidden columns.
    pub(crate) fn visible_columns(&self, name: &ObjectName) -> Option<Vec<String>> {
        let name = dialect::catalog_name(name).ok()?;
        let mapping = match self.catalog.mapping(&name) {
            Some(mapping) => mapping,
            None => Arc::new(self.inferred(&name).ok()??),
        };
        let hides = mapping.columns.iter().any(|column| column.hidden);
        let visible = mapping.columns.iter().filter(|column| !column.hidden);
        hides.then(|| visible.map(|column| column.name.clone()).collect())
    }

    /// The columns of a table; `None` if no table or mapping has this name.
    pub(crate) fn columns(&self, name: &ObjectName) -> Option<Columns> {
        let name = dialect::catalog_name(name).ok()?;
        let mapping = match self.catalog.mapping(&name) {
            Some(mapping) => mapping,
            None => Arc::new(self.inferred(&name).ok()??),
        };
        let is_key = |column: &&MappingColumn| match &mapping.table {
            Some(_) => column.path.side == Side::Key,
            None => column.path == FieldPath::KEY,
        };
        let key = mapping.columns.iter().find(is_key).map(|column| column.name.clone());
        let columns = mapping.columns.iter();
        let columns = columns.map(|column| (column.name.clone(), column.field_type.clone(), column.hidden)).collect();
        let of_key =
            mapping.columns.iter().filter(|column| mapping.table.is_some() && is_key(column) && !column.hidden);
        let primary_key = of_key.map(|column| column.name.clone()).collect();
        Some(Columns { columns, key, primary_key })
    }

    /// The definition of a view; `None` if no view has this name.
    pub(crate) fn view(&self, name: &ObjectName) -> Result<Option<ViewQuery>, SqlError> {
        let Ok(name) = dialect::catalog_name(name) else { return Ok(None) };
        let Some(view) = self.catalog.view(&name) else { return Ok(None) };
        Ok(Some(ViewQuery {
            query: self.query_of(&view)?,
            dialect: view.dialect,
            columns: view.columns.iter().map(|(name, _)| name.clone()).collect(),
        }))
    }

    /// The parsed query of a view.
    pub(crate) fn query_of(&self, view: &View) -> Result<Query, SqlError> {
        // Names in the view resolve by the search path of the view's creator.
        let path = Path::new(&self.catalog, view.path.clone(), view.dialect);
        match dialect::parse(&view.query, view.dialect, &dialect::Limits::default(), &path)?.parsed {
            Parsed::Query(query) => Ok(*query),
            _ => Err(parsing_error(format!("view {:?} is not defined by a query", view.name))),
        }
    }

    /// The views that read a table, directly or through other views.
    pub(crate) fn views_over(&self, table: &str) -> Vec<String> {
        let mut over = Vec::new();
        let mut reads: Vec<(String, Vec<String>)> = Vec::new();
        for view in self.catalog.views() {
            let Ok(query) = self.query_of(&view) else { continue };
            reads.push((view.name.clone(), relations_of(&query)));
        }
        let mut found = vec![table.to_owned()];
        while let Some(next) = found.pop() {
            for (view, read) in &reads {
                if read.contains(&next) && !over.contains(view) {
                    over.push(view.clone());
                    found.push(view.clone());
                }
            }
        }
        over
    }

    /// The error for an unknown table name.
    pub(crate) fn not_found(&self, name: &str) -> SqlError {
        let mut text = format!("Object '{name}' not found, did you forget to CREATE MAPPING?");
        let nearest = self.catalog.nearest(name);
        if let Some(nearest) = &nearest {
            text.push_str(&format!(" A mapping or view {nearest:?} is there."));
        }
        let error = SqlError::new(SqlErrorCode::ObjectNotFound, text).with_sqlstate("42P01");
        error.about(SqlSubject::Relation { name: name.to_owned(), nearest })
    }
}

/// The names of the relations that a query reads, and of its `WITH` queries.
pub(crate) fn relations_of(query: &Query) -> Vec<String> {
    let mut read = Vec::new();
    let _ = walk::relations(query, |relation| {
        read.extend(dialect::catalog_name(relation));
        ControlFlow::<()>::Continue(())
    });
    read
}

/// The key and the value of an entry, if there is one.
type Entry = Option<(Blob, Blob)>;

/// A stored entry of a map, of this member or of another one.
pub(crate) fn sample(map: &Map) -> Result<Entry, SqlError> {
    let mut found = sample_here(map);
    if found.is_some() || !map.is_replicated() {
        return Ok(found);
    }
    let nothing_here = ReadView::of_groups(&[false]);
    let reads = LeaderRead::beside(map, &nothing_here, &Arc::new(EntrySelection::All), &|_| true);
    map.visit_at_leaders(reads, &|| Ok(()), &mut |page| {
        page.for_each(&mut |key, value| found = Some((Blob::from(key), Blob::from(value))));
        Ok(found.is_none())
    })?;
    Ok(found)
}

fn sample_here(map: &Map) -> Entry {
    let mut found = None;
    for partition in (0..map.partition_count()).map(PartitionId) {
        map.fetch(partition, filbert_grid::Cursor::START, 1, &mut |key, value| {
            if found.is_none() {
                found = Some((Blob::from(key), Blob::from(value)));
            }
        });
        if found.is_some() {
            break;
        }
    }
    found
}

/// The formats of a mapping's entries.
pub(crate) fn formats_of(mapping: &Mapping, schemas: Arc<dyn SchemaSource>) -> Formats {
    let layout = |format: &EntryFormat| -> Option<Arc<IdsLayout>> {
        match format {
            EntryFormat::Ids(layout) => Some(Arc::new(layout.clone())),
            _ => None,
        }
    };
    Formats { schemas, key_layout: layout(&mapping.key_format), value_layout: layout(&mapping.value_format) }
}

/// The table of a mapping. With `raw`, it also exposes the stored keys and values.
pub(crate) fn table_of(mapping: &Mapping, map: Arc<Map>, schemas: Arc<dyn SchemaSource>, raw: bool) -> MapTable {
    let mut columns: Vec<TableColumn> = mapping
        .columns
        .iter()
        .map(|column| TableColumn {
            name: column.name.clone(),
            field_type: column.field_type.clone(),
            path: column.path.clone(),
            hidden: column.hidden,
        })
        .collect();
    if raw {
        for (name, path) in [(RAW_KEY, FieldPath::KEY), (RAW_VALUE, FieldPath::THIS)] {
            columns.push(TableColumn { name: name.to_owned(), field_type: FieldType::Object, path, hidden: true });
        }
    }
    let table = MapTable::new(mapping.name.clone(), map, columns, formats_of(mapping, schemas))
        .with_members(|index| mapping.members(index))
        .with_pg_types(|index| mapping.pg_type(index));
    match (&mapping.table, &mapping.key_format) {
        (Some(_), EntryFormat::Compact { type_name }) => table.declared().with_composite_key(type_name),
        (Some(_), _) => table.declared(),
        (None, _) => table,
    }
}

/// Applies the declarations of a mapping to a map: layouts of values, and columns. The map is the
/// mapping's map, or will become it.
pub(crate) fn keep_in(map: &Map, mapping: &Mapping) -> Result<(), SqlError> {
    let layout = |format: &EntryFormat| match format {
        EntryFormat::Ids(layout) => Some(Arc::new(layout.clone())),
        _ => None,
    };
    map.set_ids_layouts(layout(&mapping.key_format), layout(&mapping.value_format))?;
    // Some types have no columns: they are read from the rows.
    let is_kept = |field_type: &FieldType| mapping.table.is_none() || has_columns(field_type);
    let columns = mapping.columns.iter().filter(|column| !column.hidden && !column.path.path.finds_many());
    let columns = columns.filter(|column| is_kept(&column.field_type));
    let columns =
        columns.map(|column| ColumnConfig { field: column.path.clone(), field_type: column.field_type.clone() });
    map.set_columns(if mapping.columnar { columns.collect() } else { Vec::new() })?;
    Ok(())
}

/// Whether a map can keep columns of a type.
fn has_columns(field_type: &FieldType) -> bool {
    !matches!(
        field_type,
        FieldType::Decimal(None | Some((39.., _)))
            | FieldType::Uuid
            | FieldType::Object
            | FieldType::Binary
            | FieldType::Interval
            | FieldType::Array(_)
    )
}
