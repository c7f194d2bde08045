//! The cluster as doors tell clients of it, made of the registry and of what is known of leaders.

use std::fmt;
use std::sync::Arc;

use filbert_cluster::{GroupId, MemberId};
use filbert_data::PartitionId;
use filbert_grid::{ClusterView, MemberView, ViewCallback};
use parking_lot::{Mutex, RwLock};

use crate::leading::{Leaders, Leading};
use crate::registry::{REGISTRY, Registry, RegistryState};

/// What this member knows of the cluster.
pub(crate) struct Views {
    registry: Arc<Registry>,
    leaders: Mutex<Leaders>,
    view: RwLock<Arc<ClusterView>>,
    changed: Mutex<Vec<ViewCallback>>,
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.read().fmt(f)
    }
}

impl Views {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Views { registry, leaders: Mutex::default(), view: RwLock::default(), changed: Mutex::default() }
    }

    /// Takes note of what a member says that it leads.
    pub(crate) fn hear(&self, member: MemberId, leading: &Leading) {
        let groups = self.registry.state().settings.groups;
        let is_group = |group: GroupId| group.0 < groups || group == REGISTRY;
        if self.leaders.lock().hear(member, leading, is_group) {
            self.renew();
        }
    }

    /// The version of the registry that this member knows.
    pub(crate) fn registry_version(&self) -> u64 {
        self.registry.state().version
    }

    /// The cluster now.
    pub(crate) fn view(&self) -> Arc<ClusterView> {
        self.view.read().clone()
    }

    /// See [`filbert_grid::Cluster::on_change`].
    pub(crate) fn on_change(&self, changed: ViewCallback) {
        self.changed.lock().push(changed);
    }

    /// Who leads a group, as far as is known.
    pub(crate) fn leader(&self, group: GroupId) -> Option<MemberId> {
        self.leaders.lock().leader(group)
    }

    /// Whether a member votes in any group, as the leaders have said last.
    pub(crate) fn votes(&self, member: MemberId) -> bool {
        self.leaders.lock().votes(member)
    }

    /// Makes the view anew, and tells of it if it is another one.
    pub(crate) fn renew(&self) {
        let state = self.registry.state();
        {
            // Held throughout, so that no older view comes after a newer one.
            let leaders = self.leaders.lock();
            let view = view(&state, &leaders);
            let mut published = self.view.write();
            if **published == view {
                return;
            }
            *published = Arc::new(view);
        }
        self.changed.lock().iter().for_each(|changed| changed());
    }
}

fn view(state: &RegistryState, leaders: &Leaders) -> ClusterView {
    let members = state.members().map(|(_, facts)| MemberView {
        uuid: facts.uuid,
        host: facts.client_host.clone(),
        port: facts.client_port,
        is_lite: facts.is_lite,
    });
    let groups = state.settings.groups;
    let leader = |partition| {
        let group = GroupId::of(PartitionId(partition), groups);
        Some(state.member(leaders.leader(group)?)?.uuid)
    };
    ClusterView {
        members: members.collect(),
        members_version: state.members_version,
        leaders: (0..state.settings.partitions).map(leader).collect(),
        // A leader that is no member any more is not told: that is a change as well.
        leaders_version: leaders.version().saturating_add(state.members_version),
    }
}

