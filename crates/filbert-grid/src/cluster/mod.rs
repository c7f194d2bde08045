//! The cluster as doors tell clients of it: which members there are, and who leads which partition; and as operators see it ([`status`]).
//! Whoever knows brings it ([`Grid::join_cluster`]); a grid without one is its only member and leads everything.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use filbert_data::PartitionId;
use uuid::Uuid;

use crate::errors::GridError;
use crate::grid::Grid;

mod status;

pub use status::{
    ClusterCounters, ClusterStatus, ClusterWarning, GroupStatus, LinkCounters, MemberState, MemberStatus,
};

/// A member, as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// Its id, which no other member ever has.
    pub uuid: Uuid,
    /// Host name or address at which it serves clients.
    pub host: String,
    /// The port there.
    pub port: u16,
    /// Whether it holds no data, or is about to leave: clients ask others statements.
    pub is_lite: bool,
}

/// The cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// The members, the one that is there for longest first.
    pub members: Vec<MemberView>,
    /// Grows with each change of the members, and is the same on all of them.
    pub members_version: i32,
    /// By partition, the member that leads it; `None` while nobody does, as far as this member knows.
    pub leaders: Vec<Option<Uuid>>,
    /// Grows with each change of leaders, and does not go back for a client that asks another member.
    pub leaders_version: i32,
    /// What partitions have lost, by partition. Empty as long as none has lost anything.
    pub losses: Vec<Option<PartitionLoss>>,
}

/// A partition went on, by an operator's order, without most of the members that held it: what only those had acknowledged is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLoss {
    /// Grows with each such order.
    pub epoch: u64,
    /// The member that had the copy with which it went on.
    pub kept_by: Uuid,
    /// Copies that are lost.
    pub copies_lost: u32,
}

impl ClusterView {
    /// A member by its id.
    #[must_use]
    pub fn member(&self, uuid: Uuid) -> Option<&MemberView> {
        self.members.iter().find(|member| member.uuid == uuid)
    }

    /// The member that leads a partition.
    #[must_use]
    pub fn leader(&self, partition: PartitionId) -> Option<&MemberView> {
        let leader = self.leaders.get(partition.0 as usize).copied().flatten()?;
        self.member(leader)
    }
}

/// Called after the view has changed, from any thread; must neither block nor call back.
pub type ViewCallback = Box<dyn Fn() + Send + Sync>;

/// Called once, on another thread.
pub type Done<T> = Box<dyn FnOnce(Result<T, GridError>) + Send>;

/// What all members know under a name beside maps: a table, a view, an index. Its text means nothing here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Another one with each change of what stands under the name, and after its end.
    pub version: u64,
    /// What is known.
    pub text: Arc<str>,
}

/// All definitions at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Grows with each change.
    pub version: u64,
    /// By name.
    pub by_name: BTreeMap<String, Definition>,
}

/// One of several changes of definitions that are made together, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redefinition {
    /// The name.
    pub name: String,
    /// The version that must be there; `None` = nothing must be.
    pub expected: Option<u64>,
    /// What is to be there; `None` = nothing.
    pub text: Option<String>,
}

/// Called with all definitions after a change of them, from a thread that nobody waits for.
pub type DefinitionsCallback = Box<dyn Fn(&Definitions) + Send + Sync>;

/// What an operator orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterOrder {
    /// A member is to leave: others take over what it holds, then its process ends. Done when it has begun.
    Leave(u64),
    /// A member that is dead is to be taken out now. Done when it is.
    Remove(u64),
    /// Groups whose majority is lost are to go on with what is left of them.
    Recover {
        /// Whether that is meant: else it is only told what would be lost.
        accepts_data_loss: bool,
    },
}

/// Told once what became of an order, from any thread: sentences for the operator, if there is more to say than that it is done.
pub type OrderDone = Box<dyn FnOnce(Result<String, GridError>) + Send>;

/// Who knows the cluster.
pub trait Cluster: Send + Sync {
    /// The cluster now.
    fn view(&self) -> Arc<ClusterView>;

    /// Has `changed` called after each change of the view, for as long as the cluster is there.
    fn on_change(&self, changed: ViewCallback);

    /// Calls `done` when reads of this member's partitions, whoever leads them, find all that was acknowledged before this call, and
    /// definitions are as new. Nothing that such a read finds may be old; a read goes on to find it if leaders change meanwhile.
    ///
    /// An error where this member cannot hold all partitions, or nobody leads one of them.
    fn catch_up(&self, done: Done<()>) {
        done(Err(GridError::UnsupportedOperation(
            "this cluster knows nothing of reads at members that follow".to_owned(),
        )));
    }

    /// All definitions, as of now.
    fn definitions(&self) -> Arc<Definitions> {
        Arc::default()
    }

    /// Has `changed` called with all definitions now, after each change of them, and after maps were made.
    fn on_definitions(&self, _changed: DefinitionsCallback) {}

    /// Changes definitions together, if all are as expected, and waits until whoever asked for [`Cluster::on_definitions`] here has been called
    /// with them; `false` if one is not as expected.
    ///
    /// Not to be called by a thread that others wait for.
    ///
    /// # Errors
    /// Nobody could be asked, or there are too many.
    fn redefine(&self, _changes: Vec<Redefinition>) -> Result<bool, GridError> {
        Err(GridError::UnsupportedOperation("this cluster keeps no definitions".to_owned()))
    }

    /// Numbers of a name that no member was given before, `count` of them from the one that is returned on; the first is 0. A name's numbers
    /// go with the definition of that name.
    ///
    /// Not to be called by a thread that others wait for.
    ///
    /// # Errors
    /// Nobody could be asked, or there is no such definition.
    fn take_numbers(&self, _name: &str, _count: u64) -> Result<u64, GridError> {
        Err(GridError::UnsupportedOperation("this cluster keeps no numbers".to_owned()))
    }

    /// A number of this member that no other member of the cluster has, or ever had.
    fn member_number(&self) -> u64 {
        0
    }

    /// The cluster as an operator sees it; nothing where nobody knows more than the view.
    fn status(&self) -> Option<ClusterStatus> {
        None
    }

    /// What this member's part of it has done.
    fn counters(&self) -> ClusterCounters {
        ClusterCounters::default()
    }

    /// Has an order carried out, and `done` told of it. What cannot be done without harm is refused with the reason.
    fn order(&self, order: ClusterOrder, done: OrderDone) {
        done(Err(GridError::UnsupportedOperation(format!("{order:?} is not an order that this cluster takes"))));
    }
}

impl fmt::Debug for dyn Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl Grid {
    /// Makes this member one of a cluster. The first one stays; whether this was it.
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

    /// The cluster that this member is in, if it is in one.
    #[inline]
    pub fn cluster(&self) -> Option<&Arc<dyn Cluster>> {
        self.shared.cluster.get()
    }

    /// As [`Cluster::catch_up`]; done at once where there is no cluster.
    pub fn catch_up(&self, done: Done<()>) {
        match self.cluster() {
            Some(cluster) => cluster.catch_up(done),
            None => done(Ok(())),
        }
    }

    /// As [`Grid::catch_up`], waiting in this thread, which must not be one that others wait for.
    ///
    /// # Errors
    /// As [`Cluster::catch_up`].
    pub fn catch_up_blocking(&self) -> Result<(), GridError> {
        let Some(cluster) = self.cluster() else { return Ok(()) };
        let (sender, caught_up) = std::sync::mpsc::sync_channel(1);
        // Whoever waits is there until it has come.
        cluster.catch_up(Box::new(move |result| _ = sender.send(result)));
        caught_up.recv().unwrap_or(Err(GridError::NotActive))
    }
}
