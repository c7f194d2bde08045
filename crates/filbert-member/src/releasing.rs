//! The replicas that this member gives up: their groups have other voters, and nothing on this
//! member reads them any more. Their memory becomes free.
//!
//! ```text
//!  marked: no view contains the group ──► views made before are gone ──► the leader confirms
//!       ▲                                  (they hold the pin)                  │
//!       └── the group is wanted here again: the mark is taken back ◄────────────┤
//!                                                                               ▼
//!                                                        Group::give_up: log and state are empty
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use filbert_cluster::{GroupId, MemberId};
use filbert_grid::ReplicaPin;
use parking_lot::Mutex;

use crate::partitions::PartitionGroup;
use crate::registry_client::RegistryClient;
use crate::view::Views;

/// The interval between two checks.
const PAUSE: Duration = Duration::from_millis(500);
/// A replica is kept for this time after the group has other voters: a member that has just joined
/// may leave again, and then the replica lacks little.
const KEPT: Duration = Duration::from_secs(5);

/// The marks of the groups that are given up, and the pin of the views.
#[derive(Default)]
pub(crate) struct Releases(Mutex<Marks>);

#[derive(Default)]
struct Marks {
    /// The groups that no further view may contain.
    groups: BTreeSet<GroupId>,
    /// The pin of the views that are made now.
    pin: ReplicaPin,
    /// The pins of views that may contain one of the groups.
    before: Vec<ReplicaPin>,
}

impl Releases {
    /// The pin for a view. It must be taken before the view's groups are decided.
    pub(crate) fn pin(&self) -> ReplicaPin {
        self.0.lock().pin.clone()
    }

    /// Whether a group is being given up: no view may contain it.
    pub(crate) fn contains(&self, group: GroupId) -> bool {
        self.0.lock().groups.contains(&group)
    }

    /// Marks exactly these groups. Returns the groups that are in no view: they were marked before
    /// the oldest view that exists.
    pub(crate) fn mark(&self, groups: BTreeSet<GroupId>) -> BTreeSet<GroupId> {
        let mut marks = self.0.lock();
        if !groups.is_subset(&marks.groups) {
            // Views with the current pin may contain the new ones.
            let pin = std::mem::take(&mut marks.pin);
            marks.before.push(pin);
        }
        marks.groups = groups;
        marks.before.retain(ReplicaPin::is_shared);
        if marks.before.is_empty() { marks.groups.clone() } else { BTreeSet::new() }
    }
}

/// The task that gives up replicas.
pub(crate) struct Releasing {
    pub(crate) member: MemberId,
    pub(crate) groups: Vec<PartitionGroup>,
    pub(crate) registry_client: Arc<RegistryClient>,
    pub(crate) views: Arc<Views>,
    pub(crate) releases: Arc<Releases>,
}

impl Releasing {
    /// Gives up replicas until the future is dropped.
    pub(crate) async fn run(self) {
        let mut unwanted: BTreeMap<GroupId, Instant> = BTreeMap::new();
        loop {
            tokio::time::sleep(PAUSE).await;
            let now = Instant::now();
            let before = std::mem::take(&mut unwanted);
            let since = |id| (id, before.get(&id).copied().unwrap_or(now));
            unwanted = self.unwanted().map(since).collect();
            let due = unwanted.iter().filter(|(_, since)| now.duration_since(**since) >= KEPT);
            let unread = self.releases.mark(due.map(|(id, _)| *id).collect());
            let mut given_up = 0;
            for (id, group) in (0..).map(GroupId).zip(&self.groups).filter(|(id, _)| unread.contains(id)) {
                let Some((leader, _)) = self.views.leader_and_term(id) else { continue };
                match group.give_up(leader).await {
                    Ok(is_given_up) => given_up += usize::from(is_given_up),
                    Err(error) => tracing::error!("{error}"),
                }
            }
            if given_up > 0 {
                tracing::info!("{given_up} replicas that other members have taken over were given up here");
            }
        }
    }

    /// The groups with a replica on this member that other members are to hold, and that have no
    /// vote of this member any more.
    fn unwanted(&self) -> impl Iterator<Item = GroupId> {
        let state = self.registry_client.registry().state();
        let is_unwanted = move |(id, group): &(GroupId, &PartitionGroup)| {
            let places = state.places(*id);
            let votes = || group.votes() && !self.views.is_without(*id, self.member, group.term());
            !group.is_empty() && !places.is_empty() && !places.contains(&self.member) && !votes()
        };
        (0..).map(GroupId).zip(&self.groups).filter(is_unwanted).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_free_once_all_views_that_may_contain_it_are_gone() {
        let (releases, first, second) = (Releases::default(), GroupId(1), GroupId(2));
        let none = BTreeSet::new();
        let before = releases.pin();
        assert_eq!(releases.mark([first].into()), none);
        assert!(releases.contains(first) && !releases.contains(second));
        // Later views do not contain it, and are not waited for.
        let between = releases.pin();
        drop(before);
        assert_eq!(releases.mark([first].into()), [first].into());
        // A view that was made before the second group was marked.
        assert_eq!(releases.mark([first, second].into()), none);
        drop(between);
        assert_eq!(releases.mark([first, second].into()), [first, second].into());
        assert_eq!(releases.mark([second].into()), [second].into());
        assert!(!releases.contains(first), "its mark is taken back");
    }
}
