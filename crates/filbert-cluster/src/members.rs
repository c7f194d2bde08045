//! Changes of a group's members by its leader, and hand-over of leadership.
//!
//! A change is refused if it could cost the group its majority, or undo a concurrent change: see
//! [`MembershipError`]. The wanted members are decided elsewhere.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::impls::EmptyNode;
use openraft::raft::Precondition;
use openraft::{AsyncRuntime, ChangeMembers, Instant, RaftMetrics};
use tokio::sync::oneshot;

use crate::state_machine::StateMachine;
use crate::types::Types;
use crate::waiting::Awaits;
use crate::wire::Source;
use crate::{Group, GroupError, MemberId, MembershipError, upkeep};

impl<R: AsyncRuntime, S: StateMachine> Group<R, S> {
    /// Adds a member as a learner without a vote, and replicates the log to it. Called on the
    /// leader.
    ///
    /// # Errors
    /// This member does not lead, or another change is in progress.
    pub async fn add_learner(&self, member: MemberId) -> Result<(), MembershipError> {
        let added = self.current_owned().raft.add_learner(member, EmptyNode::new(), false).await;
        added.map(|_| ()).map_err(|error| self.refused("cannot add a learner", error))
    }

    /// Removes a learner. Called on the leader.
    ///
    /// # Errors
    /// This member does not lead, or another change is in progress.
    pub async fn remove_learner(&self, member: MemberId) -> Result<(), MembershipError> {
        let gone = ChangeMembers::RemoveNodes([member].into());
        let removed = self.current_owned().raft.change_membership(gone, false).await;
        removed.map(|_| ()).map_err(|error| self.refused("cannot forget a learner", error))
    }

    /// Changes the voters in one joint change. Voters that are not wanted any more leave the group.
    /// Called on the leader, with the current voters as `from` (see
    /// [`GroupStatus::voters`](crate::GroupStatus)): a concurrent change is not undone.
    ///
    /// # Errors
    /// See each [`MembershipError`]. If leadership was lost in between, the change may be half
    /// complete (`is_joint`): check the voters, and retry.
    pub async fn change_voters(
        &self,
        from: &BTreeSet<MemberId>,
        to: BTreeSet<MemberId>,
    ) -> Result<(), MembershipError> {
        let (group, member) = (self.group(), self.member());
        let replica = self.current_owned();
        let based_on = {
            let metrics = replica.raft.metrics();
            let now = metrics.borrow_watched();
            if now.current_leader == Some(member) && !to.contains(&member) {
                return Err(MembershipError::OwnVote { member, group });
            }
            let found: BTreeSet<MemberId> = now.membership_config.voter_ids().collect();
            if found != *from {
                return Err(MembershipError::Changed { group, expected: from.clone(), found });
            }
            let configs = now.membership_config.membership().get_joint_config();
            configs.iter().chain([&to]).try_for_each(|voters| self.has_majority(&now, voters))?;
            *now.membership_config.log_id()
        };
        let unchanged = Precondition::LastMembershipLogId { last_membership_log_id: based_on };
        let changed = replica.raft.change_membership_if(to, false, [unchanged]).await;
        changed.map(|_| ()).map_err(|error| self.refused("cannot change its voters", error))
    }

    /// Checks whether a majority of voters has answered within one lease.
    fn has_majority(&self, now: &RaftMetrics<Types<R>>, voters: &BTreeSet<MemberId>) -> Result<(), MembershipError> {
        let (group, member) = (self.group(), self.member());
        let Some(heard) = &now.heartbeat else {
            return Err(MembershipError::NotLeader { member, group, leader: now.current_leader });
        };
        let lease = Duration::from_millis(self.settings().lease_ms);
        let is_there = |voter: &&MemberId| {
            let at = heard.get(*voter).copied().flatten();
            **voter == member || at.is_some_and(|at| at.elapsed() < lease)
        };
        let (answered, needed) = (voters.iter().filter(is_there).count(), voters.len() / 2 + 1);
        if answered < needed {
            return Err(MembershipError::NoMajority { group, voters: voters.clone(), answered, needed });
        }
        Ok(())
    }

    fn refused(&self, what: &'static str, error: RaftError<Types<R>, ClientWriteError<Types<R>>>) -> MembershipError {
        let (group, member) = (self.group(), self.member());
        match error {
            RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => {
                MembershipError::NotLeader { member, group, leader: forward.leader_id }
            }
            // The basis of the change is out of date, or becomes so during the request.
            RaftError::APIError(
                ClientWriteError::ChangeMembershipError(ChangeMembershipError::InProgress(_))
                | ClientWriteError::PreconditionFailed(_),
            ) => MembershipError::InProgress { group },
            error => MembershipError::Failed(self.failed(what, error.to_string())),
        }
    }

    /// Hands leadership over. From now on this member serves no reads in its term, and accepts no
    /// writes, even if the other member does not take over: then the members hold an election.
    /// Before that, reads that keep entries alive are recorded in the log, and all entries in
    /// flight are applied here. So this member reports all changes that were proposed under it, and
    /// the next leader reports all others. Submissions wait meanwhile.
    ///
    /// # Errors
    /// The group has stopped, or the entries in flight take longer than the time limit of a
    /// request: then this member continues to lead.
    pub async fn transfer_leadership(&self, to: MemberId) -> Result<(), GroupError> {
        let touches = if self.has_lease().is_some() { upkeep::touches(&self.current()) } else { Bytes::new() };
        if !touches.is_empty() {
            // Without the touches, entries expire earlier than their reads would allow. That is no
            // reason to keep the leadership.
            let (sender, applied) = oneshot::channel();
            let pushed = self.push(Source::Plain, touches, Awaits::Applied(sender));
            if pushed.is_ok() {
                let _applied = R::timeout(self.settings().request_timeout(), applied).await;
            }
        }
        let replica = self.current_owned();
        let _held = replica.waiting.hold();
        let timeout = self.settings().request_timeout();
        if R::timeout(timeout, replica.waiting.landed()).await.is_err() {
            let why = format!("what is on its way was not applied within {timeout:?}");
            return Err(self.failed("does not hand leadership over yet", why));
        }
        let term = replica.raft.metrics().borrow_watched().current_term;
        replica.lease.revoke(term);
        let triggered = replica.raft.trigger().transfer_leader(to).await;
        triggered.map_err(|error| self.failed("cannot hand leadership over", error.to_string()))
    }
}
