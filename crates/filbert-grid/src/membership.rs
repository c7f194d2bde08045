//! A member in a cluster: joins it, applies the definitions that all members share, and catches up
//! with the other members.

use std::sync::Arc;

use crate::cluster::{Cluster, Definitions, Done, ReadView, Redefinition};
use crate::definitions;
use crate::errors::GridError;
use crate::grid::Grid;

impl Grid {
    /// Makes this member part of a cluster. The first cluster stays. Returns whether this was the
    /// first one.
    pub fn join_cluster(self: &Arc<Self>, cluster: Arc<dyn Cluster>) -> bool {
        if self.shared.cluster.set(cluster.clone()).is_err() {
            return false;
        }
        self.schemas().join_cluster(&cluster);
        let grid = Arc::downgrade(self);
        cluster.on_definitions(Box::new(move |definitions| {
            if let Some(grid) = grid.upgrade() {
                grid.follow_definitions(definitions);
            }
        }));
        true
    }

    /// The cluster of this member, if it is in one.
    #[inline]
    pub fn cluster(&self) -> Option<&Arc<dyn Cluster>> {
        self.shared.cluster.get()
    }

    /// As [`Cluster::catch_up`]. Without a cluster, it calls `done` immediately.
    pub fn catch_up(&self, done: Done<ReadView>) {
        match self.cluster() {
            Some(cluster) => cluster.catch_up(done),
            None => done(Ok(ReadView::complete())),
        }
    }

    /// As [`Grid::catch_up`], but blocks. Must not be called on a thread for which other threads
    /// wait.
    ///
    /// # Errors
    /// As [`Cluster::catch_up`].
    pub fn catch_up_blocking(&self) -> Result<ReadView, GridError> {
        let Some(cluster) = self.cluster() else { return Ok(ReadView::complete()) };
        let (sender, caught_up) = std::sync::mpsc::sync_channel(1);
        // The receiver exists until the result arrives.
        cluster.catch_up(Box::new(move |result| _ = sender.send(result)));
        caught_up.recv().unwrap_or(Err(GridError::NotActive))
    }

    /// The schemas of this member, from clients or from statements, that are not defined in the
    /// cluster. They must be announced, because members that join later need them.
    pub fn schemas_to_announce(&self) -> Vec<Redefinition> {
        let Some(cluster) = self.cluster() else { return Vec::new() };
        let known = cluster.definitions();
        let all = self.schemas().all().into_iter().map(|schema| definitions::of_schema(&schema));
        all.filter(|schema| !known.by_name.contains_key(&schema.name)).collect()
    }

    /// Applies the definitions that all members share: schemas, and indexes of this member's maps.
    fn follow_definitions(&self, definitions: &Definitions) {
        for (name, schema) in definitions::schemas_in(definitions) {
            match schema.map(|schema| self.schemas().put(schema)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => tracing::warn!("{name} of the cluster is not known here: {error}"),
                None => tracing::warn!("{name} of the cluster cannot be read"),
            }
        }
        for name in self.map_names() {
            let Some(map) = self.existing_map(&name) else { continue };
            if let Err(error) = map.follow_indexes(definitions::indexes_in(definitions, &name)) {
                tracing::warn!(map = name, "an index of the cluster is not made here: {error}");
            }
        }
    }
}
