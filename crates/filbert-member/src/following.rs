//! The followers of the registry's definitions on this member, and their progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use filbert_grid::{Definitions, DefinitionsCallback};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::registry::RegistryState;

/// The followers of definitions, and their progress.
pub(crate) struct Followed {
    known: Mutex<Arc<Definitions>>,
    followers: Mutex<Vec<DefinitionsCallback>>,
    /// The upper bound of map ids at the last call: followers are also called after a new map.
    maps: AtomicU32,
    /// The registry's version up to which the grid knows all maps.
    maps_version: watch::Sender<u64>,
    /// The registry's version up to which all followers have been called.
    version: watch::Sender<u64>,
}

impl Followed {
    pub(crate) fn new() -> Self {
        let (known, followers, maps) = Default::default();
        Followed { known, followers, maps, maps_version: watch::Sender::new(0), version: watch::Sender::new(0) }
    }

    /// Records that the grid knows the maps of a state of the registry. Called in the order of the
    /// states, before [`Followed::follow`], which may take long: it builds indexes and columns.
    pub(crate) fn follow_maps(&self, state: &RegistryState) {
        self.maps_version.send_replace(state.version);
    }

    /// Calls the followers for a new state of the registry. Called in the order of the states.
    pub(crate) fn follow(&self, state: &RegistryState) {
        let is_known = self.known.lock().version == state.definitions_version();
        let has_new_maps = self.maps.swap(state.maps_made(), Ordering::SeqCst) != state.maps_made();
        if !is_known || has_new_maps {
            let definitions = Arc::new(state.definitions());
            // Held throughout: a follower that is added meanwhile is called with the newest
            // definitions.
            let followers = self.followers.lock();
            *self.known.lock() = definitions.clone();
            followers.iter().for_each(|follower| follower(&definitions));
        }
        self.version.send_replace(state.version);
    }

    /// Waits until a version of the registry is known to the grid and to all followers.
    pub(crate) async fn reached(&self, version: u64) {
        reached(&self.version, version).await;
    }

    /// Waits until the grid knows the maps of a version of the registry.
    pub(crate) async fn reached_maps(&self, version: u64) {
        reached(&self.maps_version, version).await;
    }

    /// All definitions, as passed to the followers.
    pub(crate) fn definitions(&self) -> Arc<Definitions> {
        self.known.lock().clone()
    }

    /// Adds a follower. Calls it at once with all definitions, and later after each change.
    pub(crate) fn add(&self, follower: DefinitionsCallback) {
        let mut followers = self.followers.lock();
        let known = self.known.lock().clone();
        follower(&known);
        followers.push(follower);
    }
}

async fn reached(versions: &watch::Sender<u64>, version: u64) {
    // The sender lives as long as the caller's `Followed`: the wait does not fail.
    let mut versions = versions.subscribe();
    let _version = versions.wait_for(|found| *found >= version).await;
}
