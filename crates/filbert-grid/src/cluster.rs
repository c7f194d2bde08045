//! The cluster as doors tell clients of it: which members there are, and who leads which partition. Whoever knows brings it
//! ([`Grid::join_cluster`]); a grid without one is its only member and leads everything.

use std::fmt;
use std::sync::Arc;

use filbert_data::PartitionId;
use uuid::Uuid;

use crate::grid::Grid;

/// A member, as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// Its id, which no other member ever has.
    pub uuid: Uuid,
    /// Host name or address at which it serves clients.
    pub host: String,
    /// The port there.
    pub port: u16,
    /// Whether it holds no data.
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

/// Who knows the cluster.
pub trait Cluster: Send + Sync {
    /// The cluster now.
    fn view(&self) -> Arc<ClusterView>;

    /// Has `changed` called after each change of the view, for as long as the cluster is there.
    fn on_change(&self, changed: ViewCallback);
}

impl fmt::Debug for dyn Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl Grid {
    /// Makes this member one of a cluster. The first one stays; whether this was it.
    pub fn join_cluster(&self, cluster: Arc<dyn Cluster>) -> bool {
        self.cluster.set(cluster).is_ok()
    }

    /// The cluster that this member is in, if it is in one.
    #[inline]
    pub fn cluster(&self) -> Option<&Arc<dyn Cluster>> {
        self.cluster.get()
    }
}
