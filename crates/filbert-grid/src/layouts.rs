//! The layout of each map: its indexes and columns. They are declared by the configuration, by
//! clients and by mappings, and visible to queries once they are complete. This module must not
//! know how the partitions build them.

use std::collections::BTreeSet;
use std::sync::Arc;

use filbert_data::{FieldPath, FieldReader, FieldType, Formats, IdsLayout, SchemaSource};
use filbert_store::{ColumnId, ColumnLayout, IndexId, IndexKind, IndexLayout, Layout, SeenKinds};
use parking_lot::{Mutex, RwLock};

use crate::change_log::ChangeLog;
use crate::config::{ColumnConfig, MapConfig};
use crate::errors::GridError;
use crate::indexes::{self, IndexConfig};
use crate::signatures::Signatures;

/// Counts the layout changes of a member by the names of the maps, so that no two layouts have the
/// same version.
///
/// A change is noted whenever indexes or columns of a map change, and whenever a map is destroyed.
/// A query plan from before it may refer to a destroyed map or index, or lack a new one.
pub type LayoutChanges = ChangeLog<String>;

/// An index of a map.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// The id of the index.
    pub id: IndexId,
    /// Its name, unique within the map.
    pub name: String,
    /// The kind of the index.
    pub kind: IndexKind,
    /// The indexed fields, in order.
    pub fields: Vec<FieldPath>,
    /// The kinds of values that the fields have had. They decide whether a lookup by key is
    /// complete for a predicate that converts values before it compares them.
    pub seen: Arc<SeenKinds>,
    /// Whether the index is complete. An incomplete index must not be used.
    pub ready: bool,
    /// The declaration.
    pub config: IndexConfig,
}

/// A column of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnInfo {
    /// The id of the column.
    pub id: ColumnId,
    /// The field of the column.
    pub field: FieldPath,
    /// The type of the column's values. Field values are converted to it.
    pub field_type: FieldType,
    /// Whether the column is complete. An incomplete column must not be used.
    pub ready: bool,
}

/// A snapshot of a map's layout.
#[derive(Clone, Debug)]
pub struct MapLayout {
    /// Different after every change, and different for every map.
    pub version: u64,
    /// The indexes, in the order of declaration.
    pub indexes: Vec<IndexInfo>,
    /// The columns, in the order of declaration.
    pub columns: Vec<ColumnInfo>,
    pub(crate) key_layout: Option<Arc<IdsLayout>>,
    pub(crate) value_layout: Option<Arc<IdsLayout>>,
    /// Increases when all entries must be decoded again.
    pub(crate) epoch: u64,
}

/// The ids of the next index and column.
#[derive(Default)]
pub(crate) struct Numbers {
    index: u32,
    column: u32,
}

/// The layout of one map, with the state for changing it.
pub(crate) struct Layouts {
    /// The name of the map.
    map: String,
    schemas: Arc<dyn SchemaSource>,
    changes: LayoutChanges,
    current: RwLock<Arc<MapLayout>>,
    /// Held while partitions are rebuilt. Serializes changes of the layout.
    pub(crate) changing: Mutex<Numbers>,
    /// The compiled layout of a version. All partitions share it.
    compiled: Mutex<Option<(u64, Option<Arc<Layout>>)>>,
    pub(crate) signatures: Signatures,
}

impl Layouts {
    /// Creates the layout that the configuration declares. The configuration is already validated.
    /// A map without entries has it immediately.
    pub(crate) fn of_config(
        map: &str,
        config: &MapConfig,
        schemas: Arc<dyn SchemaSource>,
        changes: LayoutChanges,
    ) -> Self {
        let mut layout = MapLayout {
            version: 0,
            indexes: Vec::new(),
            columns: Vec::new(),
            key_layout: None,
            value_layout: None,
            epoch: 0,
        };
        let mut numbers = Numbers::default();
        for index in &config.indexes {
            if let Ok(index) = indexes::normalized(map, index.clone()) {
                let _ = layout.add_index(map, index, &mut numbers, usize::MAX);
            }
        }
        layout.set_columns(config.columns.clone(), &mut numbers);
        layout.finish();
        Layouts {
            map: map.to_owned(),
            schemas,
            changes,
            current: RwLock::new(Arc::new(layout)),
            changing: Mutex::new(numbers),
            compiled: Mutex::default(),
            signatures: Signatures::default(),
        }
    }

    /// Prevents other changes of the layout until the guard is dropped; `None` if a change is in
    /// progress.
    pub(crate) fn try_begin_change(&self) -> Option<impl Drop> {
        self.changing.try_lock()
    }

    pub(crate) fn current(&self) -> Arc<MapLayout> {
        self.current.read().clone()
    }

    /// The compiled layout for partitions.
    pub(crate) fn compiled(&self) -> Option<Arc<Layout>> {
        self.compiled_of(&self.current())
    }

    pub(crate) fn compiled_of(&self, layout: &MapLayout) -> Option<Arc<Layout>> {
        let mut compiled = self.compiled.lock();
        if let Some((version, layout_then)) = &*compiled
            && *version == layout.version
        {
            return layout_then.clone();
        }
        let made = layout.compile(&self.schemas).map(Arc::new);
        *compiled = Some((layout.version, made.clone()));
        made
    }

    pub(crate) fn publish(&self, layout: &MapLayout) {
        let version = self.changes.note(self.map.clone());
        *self.current.write() = Arc::new(MapLayout { version, ..layout.clone() });
    }

    /// Publishes the current layout as complete. The partitions keep the compiled layout that they
    /// have.
    pub(crate) fn publish_finished(&self, layout: &MapLayout) {
        let before = self.current().version;
        self.publish(layout);
        if let Some((version, _)) = &mut *self.compiled.lock()
            && *version == before
        {
            *version = self.current().version;
        }
    }
}

impl MapLayout {
    /// Whether there are no indexes and no columns.
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty() && self.columns.is_empty()
    }

    /// Adds an index. `false` if there is one with this name.
    pub(crate) fn add_index(
        &mut self,
        map: &str,
        config: IndexConfig,
        numbers: &mut Numbers,
        indexes_max: usize,
    ) -> Result<bool, GridError> {
        let name = config.name.clone().unwrap_or_default();
        if self.indexes.iter().any(|known| known.name == name) {
            return Ok(false);
        }
        if self.indexes.len() >= indexes_max {
            return Err(GridError::LimitReached {
                what: "indexes of one map",
                setting: "indexes_max",
                limit: indexes_max,
            });
        }
        let fields = indexes::fields_of(map, &config)?;
        let id = IndexId(numbers.index);
        numbers.index += 1;
        let seen = Arc::new(SeenKinds::new(fields.len()));
        self.indexes.push(IndexInfo { id, name, kind: config.kind, fields, seen, ready: false, config });
        Ok(true)
    }

    /// Replaces the columns: keeps existing ones that are wanted, adds missing ones, and drops the
    /// others. Returns whether anything changed.
    pub(crate) fn set_columns(&mut self, wanted: Vec<ColumnConfig>, numbers: &mut Numbers) -> bool {
        let before = std::mem::take(&mut self.columns);
        for column in wanted {
            let same = |known: &&ColumnInfo| known.field == column.field && known.field_type == column.field_type;
            if self.columns.iter().any(|known| same(&known)) {
                continue;
            }
            let column = before.iter().find(same).cloned().unwrap_or_else(|| {
                let id = ColumnId(numbers.column);
                numbers.column += 1;
                ColumnInfo { id, field: column.field, field_type: column.field_type, ready: false }
            });
            self.columns.push(column);
        }
        // Columns are built together: a new column rebuilds all of them.
        let changed = !self.columns.iter().map(|column| column.id).eq(before.iter().map(|column| column.id));
        if changed {
            self.columns.iter_mut().for_each(|column| column.ready = false);
        }
        changed
    }

    pub(crate) fn finish(&mut self) {
        self.indexes.iter_mut().for_each(|index| index.ready = true);
        self.columns.iter_mut().for_each(|column| column.ready = true);
    }

    fn compile(&self, schemas: &Arc<dyn SchemaSource>) -> Option<Layout> {
        if self.is_empty() {
            return None;
        }
        let mut fields: Vec<FieldPath> = Vec::new();
        let mut number_of = |field: &FieldPath| {
            fields.iter().position(|known| known == field).unwrap_or_else(|| {
                fields.push(field.clone());
                fields.len() - 1
            })
        };
        let mut indexes = Vec::new();
        for index in &self.indexes {
            let fields = index.fields.iter().map(&mut number_of).collect();
            indexes.push(IndexLayout { id: index.id, kind: index.kind, fields, seen: index.seen.clone() });
        }
        let indexed = self.indexes.iter().flat_map(|index| &index.fields).collect::<BTreeSet<_>>().len();
        let mut columns = Vec::new();
        for column in &self.columns {
            let field_type = column.field_type.clone();
            columns.push(ColumnLayout { id: column.id, field: number_of(&column.field), field_type });
        }
        let finds_many: Vec<bool> = fields.iter().map(|field| field.path.finds_many()).collect();
        let formats = Formats {
            schemas: schemas.clone(),
            key_layout: self.key_layout.clone(),
            value_layout: self.value_layout.clone(),
        };
        // Indexed fields come first, so that they have the same numbers in a reader of indexed
        // fields only.
        let key_fields = fields.iter().take(indexed).cloned().collect();
        let key_reader = Arc::new(FieldReader::new(key_fields, formats.clone()));
        let reader = Arc::new(FieldReader::new(fields, formats));
        let layout = Layout::new(reader, &finds_many, indexes, columns, self.epoch);
        Some(layout.with_key_reader(key_reader))
    }
}
