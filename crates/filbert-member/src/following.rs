//! Who follows the definitions of the registry on this member, and how far they have come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use filbert_grid::{Definitions, DefinitionsCallback};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::registry::RegistryState;

/// Who follows definitions, and how far they have come.
pub(crate) struct Followed {
    known: Mutex<Arc<Definitions>>,
    followers: Mutex<Vec<DefinitionsCallback>>,
    /// How many maps had been made: followers have something to do with new ones.
    maps: AtomicU32,
    /// The registry's version up to which all followers have been called.
    version: watch::Sender<u64>,
}

impl Followed {
    pub(crate) fn new() -> Self {
        let (known, followers, maps) = Default::default();
        Followed { known, followers, maps, version: watch::Sender::new(0) }
    }

    /// Tells the followers of another state of the registry. Called for one state after another.
    pub(crate) fn follow(&self, state: &RegistryState) {
        let is_known = self.known.lock().version == state.definitions_version();
        let has_new_maps = self.maps.swap(state.maps_made(), Ordering::SeqCst) != state.maps_made();
        if !is_known || has_new_maps {
            let definitions = Arc::new(state.definitions());
            // Held throughout: one who comes meanwhile is told of the newest ones.
            let followers = self.followers.lock();
            *self.known.lock() = definitions.clone();
            followers.iter().for_each(|follower| follower(&definitions));
        }
        self.version.send_replace(state.version);
    }

    /// Waits until a version of the registry is known to the grid and all followers.
    pub(crate) async fn reached(&self, version: u64) {
        // The sender is here as long as this is.
        let mut versions = self.version.subscribe();
        let _version = versions.wait_for(|found| *found >= version).await;
    }

    /// All definitions, as the followers know them.
    pub(crate) fn definitions(&self) -> Arc<Definitions> {
        self.known.lock().clone()
    }

    /// Calls a follower with all definitions, and from now on after each change.
    pub(crate) fn add(&self, follower: DefinitionsCallback) {
        let mut followers = self.followers.lock();
        let known = self.known.lock().clone();
        follower(&known);
        followers.push(follower);
    }
}
