//! Reads at a member that follows: it asks whoever leads how far the log is, and waits until it has come so far itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use filbert_cluster::{GroupId, MemberId, ReadPoint};
use filbert_grid::GridError;
use filbert_grid::replication;
use filbert_links::Channel;
use filbert_store::Millis;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::asking::Asking;
use crate::forwarding::Forwarding;
use crate::registry::REGISTRY;
use crate::replicator::PartitionGroup;
use crate::service::{Request, read};

/// How long leaders are asked, and the log is waited for: longer than a failover takes.
const CATCHING_UP_MAX: Duration = Duration::from_secs(5);
/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(20);

/// Index of an entry and a time in milliseconds, see [`ReadPoint`].
pub(crate) type Point = (u64, i64);

/// Why this member cannot read a group of partitions.
fn not_held(group: GroupId) -> GridError {
    GridError::UnsupportedOperation(format!(
        "this member does not hold group {group} of the partitions, and a query reads all of them where it is asked: \
         in a cluster, expected as many replicas as members with data (--replicas), and a member with data"
    ))
}

/// What reads at this member wait for.
pub(crate) struct Reading {
    pub(crate) asking: Arc<Asking>,
    pub(crate) to: Arc<Forwarding>,
}

impl Reading {
    /// Waits until this member has applied all that was acknowledged before this call, in all groups of partitions and the registry.
    ///
    /// # Errors
    /// This member does not hold a group, or nobody who leads it was reached.
    pub(crate) async fn catch_up(&self) -> Result<(), GridError> {
        let deadline = Instant::now() + CATCHING_UP_MAX;
        let mut missing: Vec<GroupId> = (0..).map(GroupId).take(self.to.groups.len()).chain([REGISTRY]).collect();
        loop {
            missing = self.round(missing, deadline).await?;
            let Some(group) = missing.first() else { return Ok(()) };
            if Instant::now() > deadline {
                let hint = match *group == REGISTRY {
                    true => "the leader of the cluster's registry was not reached".to_owned(),
                    false => "its leader was not reached".to_owned(),
                };
                return Err(replication::SubmitError::NotLeader { group: replication::GroupId(group.0), hint }.into());
            }
            sleep(PAUSE).await;
        }
    }

    /// Asks the leaders of groups, and waits; the groups that are still missing.
    async fn round(&self, groups: Vec<GroupId>, deadline: Instant) -> Result<Vec<GroupId>, GridError> {
        let mut by_leader: BTreeMap<MemberId, Vec<GroupId>> = BTreeMap::new();
        let mut missing = Vec::new();
        for group in groups {
            match self.leader(group) {
                Some(leader) => by_leader.entry(leader).or_default().push(group),
                None => missing.push(group),
            }
        }
        let (mut asked, mut here) = (Vec::new(), Vec::new());
        for (leader, groups) in by_leader {
            if leader == self.to.member {
                here = groups;
                continue;
            }
            for group in &groups {
                self.check_held(*group)?;
            }
            // It is on its way before the answers of others are waited for.
            let request = Request::ReadPoints(groups.iter().map(|group| group.0).collect()).write();
            asked.push((groups, self.to.links.call(leader, Channel::Requests, request)));
        }
        let points = self.points(&here.iter().map(|group| group.0).collect::<Vec<_>>()).await;
        for (group, point) in here.into_iter().zip(points) {
            // Should this member lead no more when it reads, it reads at that time.
            match point {
                Some(point) if self.reach(group, point, deadline).await? => {}
                _ => missing.push(group),
            }
        }
        for (groups, answer) in asked {
            let answer = timeout_at(deadline, answer).await.ok().and_then(Result::ok);
            let points: Option<Vec<Option<Point>>> = answer.and_then(|answer| read(&answer).ok());
            let mut points = points.unwrap_or_default().into_iter();
            for group in groups {
                match points.next().flatten() {
                    Some(point) if self.reach(group, point, deadline).await? => {}
                    _ => missing.push(group),
                }
            }
        }
        Ok(missing)
    }

    fn leader(&self, group: GroupId) -> Option<MemberId> {
        match group == REGISTRY {
            true => self.asking.group().leader(),
            false => self.to.leader(replication::GroupId(group.0)),
        }
    }

    fn check_held(&self, group: GroupId) -> Result<(), GridError> {
        let held = usize::try_from(group.0).ok().and_then(|at| self.to.groups.get(at));
        let Some(held) = held else { return Ok(()) };
        let (status, member) = (held.status(), self.to.member);
        if status.voters.contains(&member) || status.learners.contains(&member) {
            return Ok(());
        }
        Err(not_held(group))
    }

    /// Waits until a group has come to a point; whether it has.
    ///
    /// # Errors
    /// This member was taken out of the group: no more of its log comes here.
    async fn reach(&self, group: GroupId, (index, time): Point, deadline: Instant) -> Result<bool, GridError> {
        let point = ReadPoint { index, time: Millis(time) };
        let reached = async {
            match usize::try_from(group.0).ok().and_then(|at| self.to.groups.get(at)) {
                Some(held) => held.reach(point).await,
                None => self.asking.group().reach(point).await,
            }
        };
        tokio::select! {
            biased;
            () = reached => Ok(true),
            () = sleep_until(deadline) => Ok(false),
            () = self.taken_out(group) => Err(not_held(group)),
        }
    }

    /// Waits until the leader of a group says that this member does not vote in it, though it does by the log that is here: the entry by which it
    /// was taken out does not come to it. For ever if the leader does not say so.
    async fn taken_out(&self, group: GroupId) {
        let since = std::time::Instant::now();
        loop {
            sleep(PAUSE).await;
            let held = usize::try_from(group.0).ok().and_then(|at| self.to.groups.get(at)).map(PartitionGroup::status);
            let Some(status) = held.filter(|status| status.voters.contains(&self.to.member)) else { continue };
            if self.to.views.is_without(group, self.to.member, status.term, since) {
                return;
            }
        }
    }

    /// How far the logs of groups are that this member leads; `None` for those that it does not.
    pub(crate) async fn points(&self, groups: &[u32]) -> Vec<Option<Point>> {
        let mut points = Vec::with_capacity(groups.len());
        for group in groups {
            let point = match usize::try_from(*group).ok().and_then(|at| self.to.groups.get(at)) {
                Some(held) => held.read_point().await.ok(),
                None if *group == REGISTRY.0 => self.asking.group().read_point().await.ok(),
                None => None,
            };
            points.push(point.map(|point| (point.index, point.time.0)));
        }
        points
    }
}
