//! Reads at a member that follows: it asks whoever leads how far the log is, and waits until it has come so far itself. What it does not hold
//! it is brought (`copies.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use filbert_cluster::{GroupId, GroupStatus, MemberId, ReadPoint};
use filbert_grid::GridError;
use filbert_grid::replication;
use filbert_links::Channel;
use filbert_store::Millis;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::asking::Asking;
use crate::copies::Copies;
use crate::forwarding::Forwarding;
use crate::leading::FRESH;
use crate::registry::REGISTRY;
use crate::replicator::PartitionGroup;
use crate::service::{Request, read};

/// How long leaders are asked, and the log is waited for: longer than a failover takes.
const CATCHING_UP_MAX: Duration = Duration::from_secs(5);
/// How long a group is waited for that this member has just begun to follow: as long as leaving may take, and a client may be expected to wait.
const FOLLOWING_MAX: Duration = Duration::from_secs(30);
/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(20);

/// Index of an entry and a time in milliseconds, see [`ReadPoint`].
pub(crate) type Point = (u64, i64);

/// Why this member cannot read a group of partitions.
fn not_held(group: GroupId) -> GridError {
    GridError::UnsupportedOperation(format!(
        "this member does not hold group {group} of the partitions, and a query reads all of them where it is asked: \
         expected a member with data, whose memory limit leaves room for the data of the whole cluster, or as many replicas as \
         members with data (--replicas)"
    ))
}

/// What reads at this member wait for.
pub(crate) struct Reading {
    pub(crate) asking: Arc<Asking>,
    pub(crate) to: Arc<Forwarding>,
    pub(crate) copies: Arc<Copies>,
}

impl Reading {
    /// Waits until this member has applied all that was acknowledged before this call, in all groups of partitions and the registry.
    ///
    /// # Errors
    /// This member cannot hold a group, or nobody who leads it was reached.
    pub(crate) async fn catch_up(&self) -> Result<(), GridError> {
        self.copies.note_asked();
        self.catch_up_unasked().await
    }

    /// As [`Reading::catch_up`], for no statement.
    ///
    /// # Errors
    /// As [`Reading::catch_up`].
    pub(crate) async fn catch_up_unasked(&self) -> Result<(), GridError> {
        let begun = Instant::now();
        let mut missing: Vec<GroupId> = (0..).map(GroupId).take(self.to.groups.len()).chain([REGISTRY]).collect();
        loop {
            missing = self.round(missing, begun).await?;
            let Some(group) = missing.iter().find(|group| Instant::now() > self.deadline(**group, begun)) else {
                if missing.is_empty() {
                    return Ok(());
                }
                sleep(PAUSE).await;
                continue;
            };
            let hint = match *group {
                REGISTRY => "the leader of the cluster's registry was not reached",
                group if self.votes(group) => "its leader was not reached",
                _ => "it is being brought what it needs to answer statements",
            };
            let (group, hint) = (replication::GroupId(group.0), hint.to_owned());
            return Err(replication::SubmitError::NotLeader { group, hint }.into());
        }
    }

    /// Until when a group is waited for.
    fn deadline(&self, group: GroupId, begun: Instant) -> Instant {
        begun + if self.votes(group) { CATCHING_UP_MAX } else { FOLLOWING_MAX }
    }

    /// Asks the leaders of groups, and waits; the groups that are still missing.
    async fn round(&self, groups: Vec<GroupId>, begun: Instant) -> Result<Vec<GroupId>, GridError> {
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
            let (groups, lacking): (Vec<GroupId>, Vec<GroupId>) =
                groups.into_iter().partition(|group| self.holds(*group));
            if let Some(group) = lacking.first().filter(|_| !self.copies.may_follow()) {
                return Err(not_held(*group));
            }
            missing.extend(lacking);
            if groups.is_empty() {
                continue;
            }
            // It is on its way before the answers of others are waited for.
            let request = Request::ReadPoints(groups.iter().map(|group| group.0).collect()).write();
            asked.push((groups, self.to.links.call(leader, Channel::Requests, request)));
        }
        let points = self.points(&here.iter().map(|group| group.0).collect::<Vec<_>>()).await;
        for (group, point) in here.into_iter().zip(points) {
            // Should this member lead no more when it reads, it reads at that time.
            match point {
                Some(point) if self.reach(group, point, begun).await => {}
                _ => missing.push(group),
            }
        }
        for (groups, answer) in asked {
            let answer = timeout_at(begun + CATCHING_UP_MAX, answer).await.ok().and_then(Result::ok);
            let points: Option<Vec<Option<Point>>> = answer.and_then(|answer| read(&answer).ok());
            let mut points = points.unwrap_or_default().into_iter();
            for group in groups {
                match points.next().flatten() {
                    Some(point) if self.reach(group, point, begun).await => {}
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

    fn status(&self, group: GroupId) -> Option<GroupStatus> {
        usize::try_from(group.0).ok().and_then(|at| self.to.groups.get(at)).map(PartitionGroup::status)
    }

    /// Whether this member has a vote in a group; all follow the registry.
    fn votes(&self, group: GroupId) -> bool {
        let has_vote = |status: GroupStatus| status.voters.contains(&self.to.member);
        self.status(group).is_none_or(has_vote) && self.holds(group)
    }

    /// Whether the log of a group comes to this member: as far as that itself says, unless the leader has said otherwise.
    fn holds(&self, group: GroupId) -> bool {
        let (member, now) = (self.to.member, std::time::Instant::now());
        self.status(group).is_none_or(|it| {
            let is_there = it.voters.contains(&member) || it.learners.contains(&member);
            let since = now.checked_sub(FRESH).unwrap_or(now);
            is_there && !self.to.views.is_without(group, member, it.term, since)
        })
    }

    /// Waits until a group has come to a point; whether it has.
    async fn reach(&self, group: GroupId, (index, time): Point, begun: Instant) -> bool {
        let deadline = self.deadline(group, begun);
        let point = ReadPoint { index, time: Millis(time) };
        let reached = async {
            match usize::try_from(group.0).ok().and_then(|at| self.to.groups.get(at)) {
                Some(held) => held.reach(point).await,
                None => self.asking.group().reach(point).await,
            }
        };
        tokio::select! {
            biased;
            () = reached => true,
            () = sleep_until(deadline) => false,
            // No more of its log comes here, until it is brought as a copy.
            () = self.taken_out(group) => false,
        }
    }

    /// Waits until the leader of a group says that this member neither votes in it nor follows, though it does by the log that is here: the entry by
    /// which it was taken out does not come to it. For ever if the leader does not say so.
    async fn taken_out(&self, group: GroupId) {
        let since = std::time::Instant::now();
        loop {
            sleep(PAUSE).await;
            let Some(status) = self.status(group) else { continue };
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
