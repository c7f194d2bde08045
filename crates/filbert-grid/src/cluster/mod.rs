//! The view of the cluster for clients (its members and the leaders of its partitions) and for
//! operators ([`status`]). Another crate provides the cluster
//! ([`Grid::join_cluster`](crate::Grid::join_cluster)). A grid without a cluster is its only member
//! and leads all partitions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use filbert_data::PartitionId;
use uuid::Uuid;

use crate::errors::GridError;

mod read_view;
mod status;

pub use read_view::{ReadView, ReplicaPin};
pub use status::{
    ClusterCounters, ClusterStatus, ClusterWarning, GroupStatus, LinkCounters, MemberState, MemberStatus,
};

/// A member, as reported to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// The member's UUID. No other member ever has it.
    pub uuid: Uuid,
    /// The host name or address for clients.
    pub host: String,
    /// The port for clients.
    pub port: u16,
    /// Whether clients must not count on its data: it holds none (a lite member), or it leaves.
    pub is_lite: bool,
}

/// A snapshot of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// The members, in the order in which they joined.
    pub members: Vec<MemberView>,
    /// Increases with each change of the members. The same on all members.
    pub members_version: i32,
    /// The leader of each partition, by partition; `None` if this member knows no leader.
    pub leaders: Vec<Option<Uuid>>,
    /// Increases with each change of the leaders. It does not decrease for a client that switches
    /// to another member.
    pub leaders_version: i32,
    /// The data losses of partitions, by partition. Empty if no partition has lost data.
    pub losses: Vec<Option<PartitionLoss>>,
}

/// The loss of a partition that continued, by an operator's order, without a majority of its
/// replicas. Changes that only the missing replicas had acknowledged are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLoss {
    /// Increases with each such order.
    pub epoch: u64,
    /// The member that held the replica from which the partition continued.
    pub kept_by: Uuid,
    /// The number of lost replicas.
    pub copies_lost: u32,
}

impl ClusterView {
    /// The member with this UUID.
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

/// Called after each change of the view, from any thread. It must neither block nor call back into
/// the cluster.
pub type ViewCallback = Box<dyn Fn() + Send + Sync>;

/// Called exactly once with the result, on another thread.
pub type Done<T> = Box<dyn FnOnce(Result<T, GridError>) + Send>;

/// A definition that all members share under a name: a table, a view, a schema or an index. This
/// module does not interpret its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Different after each change of the definition, and after it was deleted and created again.
    pub version: u64,
    /// The content of the definition.
    pub text: Arc<str>,
}

/// A snapshot of all definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Increases with each change.
    pub version: u64,
    /// The definitions by name.
    pub by_name: BTreeMap<String, Definition>,
}

/// One of several changes of definitions that are applied atomically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redefinition {
    /// The name of the definition.
    pub name: String,
    /// The expected version; `None` = the definition must not exist.
    pub expected: Option<u64>,
    /// The new text; `None` = delete the definition.
    pub text: Option<String>,
}

/// Called with all definitions after each change of them, from a thread that may block.
pub type DefinitionsCallback = Box<dyn Fn(&Definitions) + Send + Sync>;

/// An operator's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterOrder {
    /// A member leaves: other members take over its replicas, then its process ends. Done when the
    /// member has started to leave.
    Leave(u64),
    /// A dead member is removed from the cluster now. Done when it is removed.
    Remove(u64),
    /// Groups that have lost their majority continue with the remaining replicas.
    Recover {
        /// Whether data loss is accepted. If not, the order only reports what would be lost.
        accepts_data_loss: bool,
    },
}

/// Called once with the result of an order, from any thread: a text for the operator, which is
/// empty if there are no details.
pub type OrderDone = Box<dyn FnOnce(Result<String, GridError>) + Send>;

/// The cluster of a member.
pub trait Cluster: Send + Sync {
    /// The current view of the cluster.
    fn view(&self) -> Arc<ClusterView>;

    /// Registers a callback for changes of the view. It is called as long as the cluster exists.
    fn on_change(&self, changed: ViewCallback);

    /// Calls `done` when reads of this member's replicas, whoever leads the partitions, see all
    /// changes that were acknowledged before this call, and the definitions are as recent. This
    /// also holds if leaders change meanwhile. Such a read must not return older data. The view
    /// says which partitions this member holds; all others must be read at their leaders.
    ///
    /// It fails if a partition that this member holds has no leader.
    fn catch_up(&self, done: Done<ReadView>) {
        done(Err(GridError::UnsupportedOperation(
            "this cluster knows nothing of reads at members that follow".to_owned(),
        )));
    }

    /// The current definitions.
    fn definitions(&self) -> Arc<Definitions> {
        Arc::default()
    }

    /// Calls `changed` with all definitions immediately, after each change of them, and after maps
    /// were created.
    fn on_definitions(&self, _changed: DefinitionsCallback) {}

    /// Changes definitions atomically, if all have the expected versions. Returns after the
    /// callbacks of [`Cluster::on_definitions`] on this member were called with the new
    /// definitions. `false` if a definition has another version.
    ///
    /// Blocks. Must not be called on a thread for which other threads wait.
    ///
    /// # Errors
    /// The registry cannot be reached, or there are too many definitions.
    fn redefine(&self, _changes: Vec<Redefinition>) -> Result<bool, GridError> {
        Err(GridError::UnsupportedOperation("this cluster keeps no definitions".to_owned()))
    }

    /// Allocates `count` consecutive numbers of the definition `name`, and returns the first one.
    /// No member receives a number twice. The first number is 0. A definition's numbers are deleted
    /// with it.
    ///
    /// Blocks. Must not be called on a thread for which other threads wait.
    ///
    /// # Errors
    /// The registry cannot be reached, or there is no such definition.
    fn take_numbers(&self, _name: &str, _count: u64) -> Result<u64, GridError> {
        Err(GridError::UnsupportedOperation("this cluster keeps no numbers".to_owned()))
    }

    /// The number of this member. No other member of the cluster ever has it.
    fn member_number(&self) -> u64 {
        0
    }

    /// The status of the cluster for an operator; `None` if only the view is known.
    fn status(&self) -> Option<ClusterStatus> {
        None
    }

    /// The counters of this member's part of the cluster.
    fn counters(&self) -> ClusterCounters {
        ClusterCounters::default()
    }

    /// Executes an order, and reports its result to `done`. An order that would cause harm is
    /// refused with the reason.
    fn order(&self, order: ClusterOrder, done: OrderDone) {
        done(Err(GridError::UnsupportedOperation(format!("{order:?} is not an order that this cluster takes"))));
    }
}

impl fmt::Debug for dyn Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}
