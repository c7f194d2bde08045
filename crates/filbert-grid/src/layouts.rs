//! What each map keeps beside its records, indexes and columns: declared by configuration, clients and mappings, built
//! partition by partition while reads and writes go on, and shown to queries once it is complete.
//!
//! ```text
//! declaration --> checked, numbered --> MapLayout (not ready) --> each partition under its lock --> MapLayout (ready)
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use filbert_data::{FieldPath, FieldReader, FieldType, Formats, IdsLayout, SchemaSource};
use filbert_store::{ColumnId, ColumnLayout, IndexId, IndexKind, IndexLayout, Layout, SeenKinds};
use parking_lot::{Mutex, RwLock};

use crate::config::{ColumnConfig, IndexConfig, MapConfig};
use crate::errors::GridError;
use crate::indexes;
use crate::map::Map;
use crate::signatures::Signatures;

/// Counts the layouts of all maps, so that no two have the same number.
static VERSIONS: AtomicU64 = AtomicU64::new(1);

/// An index of a map.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// Which one it is.
    pub id: IndexId,
    /// Its name, unique within the map.
    pub name: String,
    /// What it is for.
    pub kind: IndexKind,
    /// The indexed fields, in order.
    pub fields: Vec<FieldPath>,
    /// What the fields have had in them: a key finds what is converted before it is compared only if these say so.
    pub seen: Arc<SeenKinds>,
    /// Whether it is complete: others are being built, and must not be used.
    pub ready: bool,
    /// As it was declared.
    pub config: IndexConfig,
}

/// A column of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnInfo {
    /// Which one it is.
    pub id: ColumnId,
    /// The field that it holds.
    pub field: FieldPath,
    /// The type that values are converted to.
    pub field_type: FieldType,
    /// Whether it is complete: others are being built, and must not be used.
    pub ready: bool,
}

/// What a map keeps beside its records, at one moment.
#[derive(Clone, Debug)]
pub struct MapLayout {
    /// Another number after every change, and another for every map.
    pub version: u64,
    /// The indexes, in the order of their declaration.
    pub indexes: Vec<IndexInfo>,
    /// The columns, in the order of their declaration.
    pub columns: Vec<ColumnInfo>,
    key_layout: Option<Arc<IdsLayout>>,
    value_layout: Option<Arc<IdsLayout>>,
    /// Grows when entries must be read anew.
    epoch: u64,
}

/// What the next ones are numbered by.
#[derive(Default)]
struct Numbers {
    index: u32,
    column: u32,
}

/// The layout of one map, and who changes it.
pub(crate) struct Layouts {
    schemas: Arc<dyn SchemaSource>,
    current: RwLock<Arc<MapLayout>>,
    /// Held while partitions are built: one change after the other.
    changing: Mutex<Numbers>,
    /// What partitions were given last, by version: all are given the same.
    compiled: Mutex<Option<(u64, Option<Arc<Layout>>)>>,
    pub(crate) signatures: Signatures,
}

impl Layouts {
    /// What the configuration declares, whose validation has refused what cannot be. A map without entries has it
    /// at once.
    pub(crate) fn of_config(map: &str, config: &MapConfig, schemas: Arc<dyn SchemaSource>) -> Self {
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
            schemas,
            current: RwLock::new(Arc::new(layout)),
            changing: Mutex::new(numbers),
            compiled: Mutex::default(),
            signatures: Signatures::default(),
        }
    }

    /// Keeps others from changing the layout, unless someone does so right now.
    pub(crate) fn try_begin_change(&self) -> Option<impl Drop> {
        self.changing.try_lock()
    }

    pub(crate) fn current(&self) -> Arc<MapLayout> {
        self.current.read().clone()
    }

    /// What partitions are given.
    pub(crate) fn compiled(&self) -> Option<Arc<Layout>> {
        self.compiled_of(&self.current())
    }

    fn compiled_of(&self, layout: &MapLayout) -> Option<Arc<Layout>> {
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

    fn publish(&self, layout: &MapLayout) {
        let version = VERSIONS.fetch_add(1, Ordering::Relaxed);
        *self.current.write() = Arc::new(MapLayout { version, ..layout.clone() });
    }

    /// Publishes the current layout as complete, for which partitions need nothing else than they were given.
    fn publish_finished(&self, layout: &MapLayout) {
        let before = self.current().version;
        self.publish(layout);
        if let Some((version, _)) = &mut *self.compiled.lock()
            && *version == before
        {
            *version = self.current().version;
        }
    }
}

/// A number that grows whenever a map's indexes or columns change and whenever a map is destroyed, of any member of the
/// process: what was planned with another number may hold maps and indexes that are gone, or miss new ones.
#[inline]
pub fn layout_changes() -> u64 {
    VERSIONS.load(Ordering::Acquire)
}

/// Notes that a map is gone.
pub(crate) fn note_destroyed() {
    VERSIONS.fetch_add(1, Ordering::AcqRel);
}

impl MapLayout {
    /// Whether anything is kept at all.
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty() && self.columns.is_empty()
    }

    /// Adds an index; `false` if its name is taken.
    fn add_index(
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

    /// Keeps the columns that are wanted and there, and adds those that are not; whether anything changed.
    fn set_columns(&mut self, wanted: Vec<ColumnConfig>, numbers: &mut Numbers) -> bool {
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
        // Columns are built together: with one of them, all of them are.
        let changed = !self.columns.iter().map(|column| column.id).eq(before.iter().map(|column| column.id));
        if changed {
            self.columns.iter_mut().for_each(|column| column.ready = false);
        }
        changed
    }

    fn finish(&mut self) {
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
        // Indexed fields come first, so that a reader of them alone has the same numbers for them.
        let key_fields = fields.iter().take(indexed).cloned().collect();
        let key_reader = Arc::new(FieldReader::new(key_fields, formats.clone()));
        let reader = Arc::new(FieldReader::new(fields, formats));
        let layout = Layout::new(reader, &finds_many, indexes, columns, self.epoch);
        Some(layout.with_key_reader(key_reader))
    }
}

impl Map {
    /// What the map keeps beside its records now.
    #[inline]
    pub fn layout(&self) -> Arc<MapLayout> {
        self.core.layouts.current()
    }

    /// Declares an index and builds it, partition by partition, while reads and writes go on; one whose name is taken
    /// changes nothing. Returns when it is complete, and whether it is new.
    ///
    /// # Errors
    /// The declaration cannot be that of an index, the map has as many as the settings allow or was destroyed, or the
    /// memory limit does not leave room for it.
    pub fn add_index(&self, index: IndexConfig) -> Result<bool, GridError> {
        let name = self.name();
        let index = indexes::normalized(name, index)?;
        if !self.shared.define_index(name, &index)? {
            return Ok(false);
        }
        let added = self.make_index(index)?;
        // It may have come here with what all members know.
        Ok(added || self.shared.cluster.get().is_some())
    }

    fn make_index(&self, index: IndexConfig) -> Result<bool, GridError> {
        let (name, indexes_max) = (self.name(), self.shared.config.indexes_max);
        self.change_layout(|layout, numbers| layout.add_index(name, index, numbers, indexes_max))
    }

    /// Makes the indexes that all members know, and drops those that they do not: those of the configuration stay.
    pub(crate) fn follow_indexes(&self, wanted: Vec<IndexConfig>) -> Result<(), GridError> {
        let normalized = |index: &IndexConfig| indexes::normalized(self.name(), index.clone()).ok();
        let of_config: Vec<Option<String>> =
            self.config().indexes.iter().filter_map(normalized).map(|index| index.name).collect();
        for index in self.indexes() {
            let stays = of_config.contains(&index.name) || wanted.iter().any(|wanted| wanted.name == index.name);
            if !stays && let Some(name) = &index.name {
                self.unmake_index(name)?;
            }
        }
        wanted.into_iter().try_for_each(|index| self.make_index(index).map(|_| ()))
    }

    /// Drops an index; whether there was one of that name. Queries that use it meanwhile look at all entries instead.
    ///
    /// # Errors
    /// The map was destroyed.
    pub fn drop_index(&self, name: &str) -> Result<bool, GridError> {
        let is_defined = self.shared.undefine_index(self.name(), name)?;
        match self.shared.cluster.get() {
            // One of the configuration is known to no log: it comes back with the next start.
            Some(_) => Ok(is_defined | self.unmake_index(name)?),
            None => self.unmake_index(name),
        }
    }

    fn unmake_index(&self, name: &str) -> Result<bool, GridError> {
        self.change_layout(|layout, _| {
            let before = layout.indexes.len();
            layout.indexes.retain(|index| index.name != name);
            Ok(layout.indexes.len() < before)
        })
    }

    /// The declared indexes, those of the configuration first.
    pub fn indexes(&self) -> Vec<IndexConfig> {
        self.layout().indexes.iter().map(|index| index.config.clone()).collect()
    }

    /// Keeps these columns, and those of the configuration; builds those that are new and drops others. Returns when
    /// they are complete.
    ///
    /// # Errors
    /// There are no columns of a type, a path finds many values, the map was destroyed, or the memory limit does not
    /// leave room for them.
    pub fn set_columns(&self, columns: Vec<ColumnConfig>) -> Result<(), GridError> {
        for column in &columns {
            column.check(self.name())?;
        }
        let all = self.config().columns.iter().cloned().chain(columns).collect();
        self.change_layout(|layout, numbers| Ok(layout.set_columns(all, numbers))).map(|_| ())
    }

    /// Says how keys and values that are IdentifiedDataSerializable are laid out, as a mapping declares it. Indexes and columns
    /// are made anew if that is news.
    ///
    /// # Errors
    /// The map was destroyed.
    pub fn set_ids_layouts(&self, key: Option<Arc<IdsLayout>>, value: Option<Arc<IdsLayout>>) -> Result<(), GridError> {
        self.change_layout(|layout, _| {
            if layout.key_layout == key && layout.value_layout == value {
                return Ok(false);
            }
            (layout.key_layout, layout.value_layout) = (key, value);
            layout.epoch += 1;
            layout.indexes.iter_mut().for_each(|index| index.ready = false);
            layout.columns.iter_mut().for_each(|column| column.ready = false);
            Ok(true)
        })
        .map(|_| ())
    }

    /// Changes the layout as `edit` says, unless that answers that there is nothing to change; whether there was.
    fn change_layout(
        &self,
        edit: impl FnOnce(&mut MapLayout, &mut Numbers) -> Result<bool, GridError>,
    ) -> Result<bool, GridError> {
        let layouts = &self.core.layouts;
        let mut numbers = layouts.changing.lock();
        if self.is_destroyed() {
            return Err(self.core.destroyed_error());
        }
        self.core.check_held()?;
        let before = layouts.current();
        let mut layout = (*before).clone();
        if !edit(&mut layout, &mut numbers)? {
            return Ok(false);
        }
        // What goes is not used any more from here on, what is new not yet.
        layouts.publish(&layout);
        self.shared.drop_signatures(&self.core, &layout);
        let installed = self.install();
        if installed.is_err() {
            // As it was, which needs no more memory than there was.
            layout = (*before).clone();
            let _ = self.install_with(&layout, |_, _| Ok(()));
        }
        layout.finish();
        self.shared.add_signatures(&self.core, &layout);
        match installed {
            Ok(()) => layouts.publish_finished(&layout),
            Err(_) => layouts.publish(&layout),
        }
        installed.map(|()| true)
    }

    fn install(&self) -> Result<(), GridError> {
        let max = self.shared.config.memory_bytes_max;
        self.install_with(&self.layout(), |used, needed| match max {
            Some(max) if used > max && needed > 0 => Err(GridError::OutOfMemory { needed, used, max }),
            _ => Ok(()),
        })
    }

    /// Gives the layout to every partition, as long as `check` agrees with the member's bytes and by how many they grew.
    fn install_with(
        &self,
        layout: &MapLayout,
        check: impl Fn(usize, usize) -> Result<(), GridError>,
    ) -> Result<(), GridError> {
        let (shared, core) = (&*self.shared, &*self.core);
        let layout = core.layouts.compiled_of(layout);
        for cell in &shared.cells {
            let mut state = cell.lock();
            let before = state.partition.bytes();
            state.partition.set_layout(core.id, layout.clone());
            let after = state.partition.bytes();
            shared.account(before, after);
            core.account(before, after);
            drop(state);
            check(shared.memory_bytes.load(Ordering::Relaxed), after.saturating_sub(before))?;
        }
        Ok(())
    }
}
