//! The map handles that a connection caches. A request finds its map without a lock and without
//! counting references.

use std::{collections::HashMap, sync::Arc};

use filbert_grid::{Grid, GridError, Map};

/// The handles by name, and the last one used, which most requests use again.
#[derive(Debug)]
pub(crate) struct Handles {
    latest: Option<Arc<Map>>,
    by_name: HashMap<Box<str>, Arc<Map>>,
    handles_max: usize,
}

impl Handles {
    pub(crate) fn new(handles_max: usize) -> Self {
        Self { latest: None, by_name: HashMap::new(), handles_max }
    }

    /// The map with this name. A destroyed map is created again, as in Hazelcast when a proxy is
    /// used after its destruction.
    #[inline]
    pub(crate) fn find(&mut self, grid: &Grid, name: &str) -> Result<&Arc<Map>, GridError> {
        let is_latest = self.latest.as_ref().is_some_and(|map| map.name() == name && !map.is_destroyed());
        if !is_latest {
            self.latest = Some(self.look_up(grid, name)?);
        }
        self.latest.as_ref().ok_or(GridError::NotActive)
    }

    #[inline(never)]
    fn look_up(&mut self, grid: &Grid, name: &str) -> Result<Arc<Map>, GridError> {
        if let Some(map) = self.by_name.get(name).filter(|map| !map.is_destroyed()) {
            return Ok(map.clone());
        }
        let map = grid.map(name)?;
        if self.by_name.len() >= self.handles_max {
            self.by_name = HashMap::new();
        }
        self.by_name.insert(name.into(), map.clone());
        Ok(map)
    }
}
