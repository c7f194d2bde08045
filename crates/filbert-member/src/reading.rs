//! Consistent reads at a follower: the member asks the leader for a read point, and waits until it
//! has applied the log up to that point.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use filbert_cluster::{GroupId, MemberId, ReadPoint};
use filbert_grid::replication;
use filbert_grid::{GridError, ReadView};
use filbert_links::Channel;
use filbert_store::Millis;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::forwarding::Forwarding;
use crate::messages::{Request, read};
use crate::registry::REGISTRY;
use crate::registry_client::RegistryClient;
use crate::releasing::Releases;

/// The maximum time for asking leaders and waiting for the log: longer than a failover takes.
const CATCHING_UP_MAX: Duration = Duration::from_secs(5);
/// The same for a member that leaves the cluster: shorter than the time in which a front door that
/// closes ends its statements, so that they end with a better error.
const CATCHING_UP_WHILE_LEAVING_MAX: Duration = Duration::from_secs(1);
/// The pause between two rounds.
const PAUSE: Duration = Duration::from_millis(20);

/// The index of an entry and a time in milliseconds, see [`ReadPoint`].
pub(crate) type Point = (u64, i64);

/// The outcome of waiting for a read point.
enum Reached {
    Point,
    NotYet,
    /// This member does not hold the group any more.
    NotHeld,
}

/// Brings this member up to date before a read.
pub(crate) struct Reading {
    pub(crate) registry_client: Arc<RegistryClient>,
    pub(crate) to: Arc<Forwarding>,
    pub(crate) releases: Arc<Releases>,
}

impl Reading {
    /// Waits until this member has applied all changes that were acknowledged before this call, in
    /// the registry and in all groups of partitions that it holds. The groups that it does not hold
    /// must be read at their leaders.
    ///
    /// # Errors
    /// No leader of a group was reached, or this member was removed from the cluster.
    pub(crate) async fn catch_up(&self) -> Result<ReadView, GridError> {
        let begin = Instant::now();
        let pin = self.releases.pin();
        let mut caught_up = vec![true; self.to.groups.len()];
        let mut missing: Vec<GroupId> = (0..).map(GroupId).take(self.to.groups.len()).chain([REGISTRY]).collect();
        loop {
            let is_leaving = self.is_leaving();
            let deadline = begin + if is_leaving { CATCHING_UP_WHILE_LEAVING_MAX } else { CATCHING_UP_MAX };
            missing = self.round(missing, &mut caught_up, deadline).await?;
            let Some(group) = missing.first() else { return Ok(ReadView::of_groups(&caught_up).pinned(pin)) };
            if Instant::now() > deadline {
                if is_leaving {
                    return Err(GridError::NotActive);
                }
                let hint = match *group == REGISTRY {
                    true => "the leader of the cluster's registry was not reached".to_owned(),
                    false => "its leader was not reached".to_owned(),
                };
                return Err(replication::SubmitError::NotLeader { group: replication::GroupId(group.0), hint }.into());
            }
            sleep(PAUSE).await;
        }
    }

    /// Asks the leaders of groups for read points, and waits for them. Returns the groups that
    /// still lack one. Marks the groups that this member does not hold as not caught up.
    async fn round(
        &self,
        groups: Vec<GroupId>,
        caught_up: &mut [bool],
        deadline: Instant,
    ) -> Result<Vec<GroupId>, GridError> {
        let mut by_leader: BTreeMap<MemberId, Vec<GroupId>> = BTreeMap::new();
        let mut outcomes: Vec<(GroupId, Reached)> = Vec::with_capacity(groups.len());
        for group in groups {
            match self.leader(group) {
                _ if !self.holds(group) => outcomes.push((group, self.not_held()?)),
                Some(leader) => by_leader.entry(leader).or_default().push(group),
                None => outcomes.push((group, Reached::NotYet)),
            }
        }
        let (mut remote_reads, mut here) = (Vec::new(), Vec::new());
        for (leader, groups) in by_leader {
            if leader == self.to.member {
                here = groups;
                continue;
            }
            // The request is sent before any answer is awaited.
            let request = Request::ReadPoints(groups.iter().map(|group| group.0).collect()).write();
            remote_reads.push((groups, self.to.links.call(leader, Channel::Requests, request)));
        }
        let of_here = self.points(&here.iter().map(|group| group.0).collect::<Vec<_>>()).await;
        // If this member is no leader any more when it reads, it reads at that time.
        let mut points: Vec<(GroupId, Option<Point>)> = here.into_iter().zip(of_here).collect();
        for (groups, answer) in remote_reads {
            let answer = timeout_at(deadline, answer).await.ok().and_then(Result::ok);
            let of_leader: Option<Vec<Option<Point>>> = answer.and_then(|answer| read(&answer).ok());
            let of_leader = of_leader.unwrap_or_default().into_iter().chain(std::iter::repeat(None));
            points.extend(groups.into_iter().zip(of_leader));
        }
        for (group, point) in points {
            let reached = match point {
                Some(point) => self.reach(group, point, deadline).await?,
                None => Reached::NotYet,
            };
            outcomes.push((group, reached));
        }
        let mut missing = Vec::new();
        for (group, reached) in outcomes {
            match (reached, usize::try_from(group.0).ok().and_then(|at| caught_up.get_mut(at))) {
                (Reached::Point, _) => {}
                (Reached::NotYet, _) => missing.push(group),
                (Reached::NotHeld, Some(caught_up)) => *caught_up = false,
                (Reached::NotHeld, None) => debug_assert!(false, "every member follows the registry"),
            }
        }
        Ok(missing)
    }

    fn leader(&self, group: GroupId) -> Option<MemberId> {
        match group == REGISTRY {
            true => self.registry_client.group().leader(),
            false => self.to.leader(replication::GroupId(group.0)),
        }
    }

    /// Whether this member leaves the cluster, or has left it.
    fn is_leaving(&self) -> bool {
        let state = self.registry_client.registry().state();
        state.is_leaving(self.to.member) || state.member(self.to.member).is_none()
    }

    /// The outcome for a group that this member does not hold. A member that leaves reads at the
    /// leaders until the others have removed it: clients of the cluster send it statements until
    /// then.
    ///
    /// # Errors
    /// This member was removed from the cluster.
    fn not_held(&self) -> Result<Reached, GridError> {
        match self.registry_client.registry().state().member(self.to.member) {
            Some(_) => Ok(Reached::NotHeld),
            None => Err(GridError::NotActive),
        }
    }

    /// Whether this member votes in a group, by its own log and by the leader's announcement: a
    /// member that was removed may never receive the entry that removes it. A member without a vote
    /// may lack most entries. A group that is being given up is held no more.
    fn holds(&self, group: GroupId) -> bool {
        let held = usize::try_from(group.0).ok().and_then(|at| self.to.groups.get(at));
        held.is_none_or(|held| {
            held.votes()
                && !self.to.views.is_without(group, self.to.member, held.term())
                && !self.releases.contains(group)
        })
    }

    /// Waits until a group has reached a read point, or this member was removed from the group and
    /// receives no more of its log.
    ///
    /// # Errors
    /// This member was removed from the cluster.
    async fn reach(&self, group: GroupId, (index, time): Point, deadline: Instant) -> Result<Reached, GridError> {
        let point = ReadPoint { index, time: Millis(time) };
        let reached = async {
            match usize::try_from(group.0).ok().and_then(|at| self.to.groups.get(at)) {
                Some(held) => held.reach(point).await,
                None => self.registry_client.group().reach(point).await,
            }
        };
        tokio::select! {
            biased;
            () = reached => Ok(Reached::Point),
            () = sleep_until(deadline) => Ok(Reached::NotYet),
            () = self.taken_out(group) => self.not_held(),
        }
    }

    /// Waits until this member does not hold a group any more.
    async fn taken_out(&self, group: GroupId) {
        while self.holds(group) {
            sleep(PAUSE).await;
        }
    }

    /// The read points of the groups. `None` for groups that this member does not lead.
    pub(crate) async fn points(&self, groups: &[u32]) -> Vec<Option<Point>> {
        let mut points = Vec::with_capacity(groups.len());
        for group in groups {
            let point = match usize::try_from(*group).ok().and_then(|at| self.to.groups.get(at)) {
                Some(held) => held.read_point().await.ok(),
                None if *group == REGISTRY.0 => self.registry_client.group().read_point().await.ok(),
                None => None,
            };
            points.push(point.map(|point| (point.index, point.time.0)));
        }
        points
    }
}
