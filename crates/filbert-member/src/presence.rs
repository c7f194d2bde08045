//! This member in its cluster, as its grid and its doors ask about it: [`Cluster`] for the whole of this crate.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};

use filbert_cluster::MemberId;
use filbert_grid::{
    Cluster, ClusterView, Definitions, DefinitionsCallback, Done, GridError, Redefinition, ViewCallback,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use uuid::Uuid;

use crate::asking::Asking;
use crate::errors::MemberError;
use crate::reading::Reading;
use crate::registry::{Change, Command, RegistryState, Reply};
use crate::view::Views;

/// Definitions of a cluster, at most.
const DEFINITIONS_MAX: usize = 100_000;

/// This member in its cluster.
pub(crate) struct Presence {
    pub(crate) member: MemberId,
    pub(crate) views: Arc<Views>,
    pub(crate) asking: Arc<Asking>,
    pub(crate) reading: Arc<Reading>,
    pub(crate) followed: Arc<Followed>,
    /// Where commands of the registry run: not on the caller's thread, which waits.
    pub(crate) runtime: Handle,
}

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

    async fn reached(&self, version: u64) {
        // The sender is here as long as this is.
        let mut versions = self.version.subscribe();
        let _version = versions.wait_for(|found| *found >= version).await;
    }
}

impl Presence {
    /// Has a command of the registry applied, and waits until those who follow definitions here know of it.
    fn ask(&self, command: Command) -> Result<Reply, MemberError> {
        let (sender, answer) = mpsc::sync_channel(1);
        let (asking, followed) = (self.asking.clone(), self.followed.clone());
        self.runtime.spawn(async move {
            let reply = asking.ask(command).await;
            followed.reached(asking.registry().state().version).await;
            // Whoever asked waits for this alone.
            let _gone = sender.send(reply);
        });
        answer.recv().unwrap_or(Err(MemberError::Unknown))
    }
}

impl Cluster for Presence {
    fn view(&self) -> Arc<ClusterView> {
        self.views.view()
    }

    fn on_change(&self, changed: ViewCallback) {
        self.views.on_change(changed);
    }

    fn catch_up(&self, done: Done<()>) {
        let (reading, asking, followed) = (self.reading.clone(), self.asking.clone(), self.followed.clone());
        self.runtime.spawn(async move {
            let caught_up = reading.catch_up().await;
            followed.reached(asking.registry().state().version).await;
            done(caught_up);
        });
    }

    fn definitions(&self) -> Arc<Definitions> {
        self.followed.known.lock().clone()
    }

    fn on_definitions(&self, changed: DefinitionsCallback) {
        let mut followers = self.followed.followers.lock();
        let known = self.followed.known.lock().clone();
        changed(&known);
        followers.push(changed);
    }

    fn redefine(&self, changes: Vec<Redefinition>) -> Result<bool, GridError> {
        let change = |Redefinition { name, expected, text }| Change { name, expected, text };
        let changes = changes.into_iter().map(change).collect();
        let command = Command::Redefine { id: Uuid::new_v4(), changes, definitions_max: DEFINITIONS_MAX };
        match self.ask(command)? {
            Reply::Done => Ok(true),
            Reply::Stale => Ok(false),
            Reply::Refused(why) => Err(GridError::IllegalState(why)),
            reply => Err(GridError::Internal(format!("a change of definitions was answered by {reply:?}"))),
        }
    }

    fn take_numbers(&self, name: &str, count: u64) -> Result<u64, GridError> {
        match self.ask(Command::TakeNumbers { name: name.to_owned(), count })? {
            Reply::Numbers(first) => Ok(first),
            Reply::Refused(why) => Err(GridError::IllegalState(why)),
            reply => Err(GridError::Internal(format!("taking numbers was answered by {reply:?}"))),
        }
    }

    fn member_number(&self) -> u64 {
        self.member.0
    }
}
