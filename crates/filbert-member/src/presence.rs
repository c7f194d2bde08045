//! This member in its cluster, for its grid and its doors: implements [`Cluster`] with all parts of
//! this crate.

use std::sync::{Arc, mpsc};

use filbert_cluster::MemberId;
use filbert_grid::{
    Cluster, ClusterCounters, ClusterOrder, ClusterStatus, ClusterView, Definitions, DefinitionsCallback, Done,
    GridError, OrderDone, ReadView, Redefinition, ViewCallback,
};
use tokio::runtime::Handle;

use crate::administration::Administration;
use crate::errors::MemberError;
use crate::following::Followed;
use crate::reading::Reading;
use crate::registry::{Command, Reply, redefine};
use crate::registry_client::RegistryClient;
use crate::view::Views;

/// This member in its cluster.
pub(crate) struct Presence {
    pub(crate) member: MemberId,
    pub(crate) views: Arc<Views>,
    pub(crate) registry_client: Arc<RegistryClient>,
    pub(crate) reading: Arc<Reading>,
    pub(crate) followed: Arc<Followed>,
    pub(crate) administration: Administration,
    /// The runtime of registry commands: they must not run on the caller's thread, which waits.
    pub(crate) runtime: Handle,
}

impl Presence {
    /// Applies a command of the registry, and waits until the followers of definitions on this
    /// member know of it.
    fn execute(&self, command: Command) -> Result<Reply, MemberError> {
        let (sender, answer) = mpsc::sync_channel(1);
        let (registry_client, followed) = (self.registry_client.clone(), self.followed.clone());
        self.runtime.spawn(async move {
            let reply = registry_client.execute(command).await;
            followed.reached(registry_client.registry().state().version).await;
            // The caller waits only for this message.
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

    fn status(&self) -> Option<ClusterStatus> {
        Some(self.views.status(self.member))
    }

    fn counters(&self) -> ClusterCounters {
        self.administration.counters()
    }

    fn order(&self, order: ClusterOrder, done: OrderDone) {
        self.administration.order(order, done);
    }

    fn catch_up(&self, done: Done<ReadView>) {
        let (reading, registry_client, followed) =
            (self.reading.clone(), self.registry_client.clone(), self.followed.clone());
        self.runtime.spawn(async move {
            let caught_up = reading.catch_up().await;
            followed.reached(registry_client.registry().state().version).await;
            done(caught_up);
        });
    }

    fn definitions(&self) -> Arc<Definitions> {
        self.followed.definitions()
    }

    fn on_definitions(&self, changed: DefinitionsCallback) {
        self.followed.add(changed);
    }

    fn redefine(&self, changes: Vec<Redefinition>) -> Result<bool, GridError> {
        match self.execute(redefine(changes))? {
            Reply::Done => Ok(true),
            Reply::Stale => Ok(false),
            Reply::Refused(why) => Err(GridError::IllegalState(why)),
            reply => Err(GridError::Internal(format!("a change of definitions was answered by {reply:?}"))),
        }
    }

    fn take_numbers(&self, name: &str, count: u64) -> Result<u64, GridError> {
        match self.execute(Command::TakeNumbers { name: name.to_owned(), count })? {
            Reply::Numbers(first) => Ok(first),
            Reply::Refused(why) => Err(GridError::IllegalState(why)),
            reply => Err(GridError::Internal(format!("taking numbers was answered by {reply:?}"))),
        }
    }

    fn member_number(&self) -> u64 {
        self.member.0
    }
}
