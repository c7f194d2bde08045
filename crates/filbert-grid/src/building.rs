//! Builds the indexes and columns of maps, one partition after the other, while reads and writes
//! continue. Builds the summaries of indexes.
//!
//! ```text
//! declaration ─► validated ─► MapLayout (not ready) ─► each partition ─► MapLayout (ready)
//! ```
//!
//! The first summary of an index only counts keys. When it has counted many, or when a summary has
//! more keys than its capacity, the sweep builds a new one. During the rebuild there is no summary,
//! and lookups visit all partitions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use filbert_data::IdsLayout;
use filbert_store::{IndexId, SIGNATURE_PARTITIONS_MAX, Signature};

use crate::cell::Cell;
use crate::config::ColumnConfig;
use crate::definitions;
use crate::errors::GridError;
use crate::indexes::{self, IndexConfig};
use crate::layouts::{MapLayout, Numbers};
use crate::map::Map;
use crate::map_core::MapCore;
use crate::shared::Shared;

/// The minimum number of keys of an index for a summary. With fewer keys, a visit of every
/// partition costs little more than a summary.
const KEYS_MIN: usize = 10_000;

impl Map {
    /// The current layout of the map.
    #[inline]
    pub fn layout(&self) -> Arc<MapLayout> {
        self.core.layouts.current()
    }

    /// Declares an index and builds it, one partition after the other, while reads and writes
    /// continue. If there is an index with this name, nothing changes. Returns when the index is
    /// complete, and whether it is new.
    ///
    /// # Errors
    /// The declaration is invalid, the map has the maximum number of indexes or was destroyed, or
    /// the memory limit leaves no room for the index.
    pub fn add_index(&self, index: IndexConfig) -> Result<bool, GridError> {
        let name = self.name();
        let index = indexes::normalized(name, index)?;
        if let Some(cluster) = self.shared.cluster.get()
            && !definitions::define_index(&**cluster, name, &index)?
        {
            return Ok(false);
        }
        let added = self.make_index(index)?;
        // The callback for the cluster's definitions may have added it already.
        Ok(added || self.shared.cluster.get().is_some())
    }

    fn make_index(&self, index: IndexConfig) -> Result<bool, GridError> {
        let (name, indexes_max) = (self.name(), self.shared.config.indexes_max);
        self.change_layout(|layout, numbers| layout.add_index(name, index, numbers, indexes_max))
    }

    /// Creates the indexes that the cluster defines, and drops the others. Indexes of the
    /// configuration stay.
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

    /// Drops an index. Returns whether there was one with this name. Queries that use it at this
    /// time scan all entries instead.
    ///
    /// # Errors
    /// The map was destroyed.
    pub fn drop_index(&self, name: &str) -> Result<bool, GridError> {
        let Some(cluster) = self.shared.cluster.get() else { return self.unmake_index(name) };
        // An index of the configuration is not in the cluster's definitions: it is created again at
        // the next start.
        let is_defined = definitions::undefine_index(&**cluster, self.name(), name)?;
        Ok(is_defined | self.unmake_index(name)?)
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

    /// Sets the columns of the map in addition to those of the configuration. Builds new columns
    /// and drops the others. Returns when the columns are complete.
    ///
    /// # Errors
    /// A type does not support columns, a path can have many values, the map was destroyed, or the
    /// memory limit leaves no room for the columns.
    pub fn set_columns(&self, columns: Vec<ColumnConfig>) -> Result<(), GridError> {
        for column in &columns {
            column.check(self.name())?;
        }
        let all = self.config().columns.iter().cloned().chain(columns).collect();
        self.change_layout(|layout, numbers| Ok(layout.set_columns(all, numbers))).map(|_| ())
    }

    /// Sets the layouts of IdentifiedDataSerializable keys and values, as a mapping declares them.
    /// Rebuilds indexes and columns if a layout has changed.
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

    /// Changes the layout by `edit`, which returns whether it has changed anything. Returns the
    /// same.
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
        // From here on, dropped indexes and columns are no longer used. New ones are not used yet.
        layouts.publish(&layout);
        self.shared.drop_signatures(&self.core, &layout);
        let installed = self.install();
        if installed.is_err() {
            // Restores the previous layout, which needs no additional memory.
            layout = (*before).clone();
            let _ = self.install_with(&layout, |_| Ok(()));
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
        self.install_with(&self.layout(), |needed| match self.shared.memory.lacks_room_for_maps(0) {
            Some((used, max)) if needed > 0 => Err(GridError::OutOfMemory { needed, used, max }),
            _ => Ok(()),
        })
    }

    /// Installs the layout in every partition. `check` is called after each with the growth of
    /// the partition. An error stops the installation.
    fn install_with(
        &self,
        layout: &MapLayout,
        check: impl Fn(usize) -> Result<(), GridError>,
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
            check(after.saturating_sub(before))?;
        }
        Ok(())
    }
}

impl Shared {
    /// Drops the summaries of indexes that are not ready. Called while no other thread changes the
    /// map's layout.
    pub(crate) fn drop_signatures(&self, core: &MapCore, layout: &MapLayout) {
        let stays = |id: &IndexId| layout.indexes.iter().any(|index| index.id == *id && index.ready);
        let mut signatures = core.layouts.signatures.by_index.write();
        let before: usize = signatures.values().map(|signature| signature.bytes()).sum();
        signatures.retain(|id, _| stays(id));
        let after: usize = signatures.values().map(|signature| signature.bytes()).sum();
        self.account(before, after);
        core.account(before, after);
    }

    /// Adds a summary to each index without one. Called while no other thread changes the map's
    /// layout.
    pub(crate) fn add_signatures(&self, core: &MapCore, layout: &MapLayout) {
        if self.config.partition_count > SIGNATURE_PARTITIONS_MAX {
            return;
        }
        for index in &layout.indexes {
            let is_there = core.layouts.signatures.by_index.read().contains_key(&index.id);
            if !is_there && self.set_signature(core, index.id, Signature::counting(KEYS_MIN)) {
                self.renew_signature(core, index.id);
            }
        }
    }

    /// Adds missing summaries to the indexes of maps. Skips a map while another thread changes its
    /// layout, because that thread adds them too.
    pub(crate) fn add_missing_signatures(&self, maps: &[Arc<MapCore>]) {
        for core in maps {
            if let Some(_changing) = core.layouts.try_begin_change() {
                self.add_signatures(core, &core.layouts.current());
            }
        }
    }

    /// Rebuilds the summaries with more keys than their capacity.
    pub(crate) fn renew_signatures(&self, core: &MapCore) {
        let full = |core: &MapCore| {
            let signatures = core.layouts.signatures.by_index.read();
            signatures.iter().filter(|(_, signature)| signature.is_full()).map(|(id, _)| *id).collect::<Vec<_>>()
        };
        if full(core).is_empty() {
            return;
        }
        let Some(_changing) = core.layouts.try_begin_change() else { return };
        for id in full(core) {
            self.renew_signature(core, id);
        }
    }

    fn renew_signature(&self, core: &MapCore, index: IndexId) {
        let is_full = core.layouts.signatures.by_index.read().get(&index).is_some_and(|signature| signature.is_full());
        if !is_full {
            return;
        }
        let of_cell = |cell: &Cell| {
            cell.lock().partition.index_statistics(core.id, index).map_or(0, |statistics| statistics.distinct)
        };
        let keys: usize = self.cells.iter().map(of_cell).sum();
        let signature = if keys < KEYS_MIN / 2 {
            Signature::counting(KEYS_MIN)
        } else {
            Signature::new(self.config.partition_count, keys, self.signature_seed)
        };
        let fits = self.memory.lacks_room_for_maps(signature.bytes()).is_none();
        let signature = if fits { signature } else { Signature::counting(keys.saturating_mul(2)) };
        self.set_signature(core, index, signature);
    }

    /// Installs the summary of an index in all partitions, then publishes it for lookups. Returns
    /// whether the index exists.
    fn set_signature(&self, core: &MapCore, index: IndexId, signature: Signature) -> bool {
        let (signature, signatures) = (Arc::new(signature), &core.layouts.signatures);
        let epoch = signatures.epoch.load(Ordering::SeqCst);
        let before = signatures.take(index).map_or(0, |signature| signature.bytes());
        let mut is_there = true;
        for cell in &self.cells {
            is_there &= cell.lock().partition.set_signature(core.id, index, Some(signature.clone()));
        }
        let mut after = 0;
        let mut published = signatures.by_index.write();
        // Destroying a map marks it first, then drops its summaries.
        let is_whole = is_there && epoch == signatures.epoch.load(Ordering::SeqCst);
        if is_whole && !core.destroyed.load(Ordering::Acquire) {
            after = signature.bytes();
            published.insert(index, signature);
        }
        drop(published);
        self.account(before, after);
        core.account(before, after);
        is_there
    }

    /// Drops all summaries of a map.
    pub(crate) fn clear_signatures(&self, core: &MapCore) {
        let before = core.layouts.signatures.by_index.write().drain().map(|(_, signature)| signature.bytes()).sum();
        self.account(before, 0);
    }
}
