//! Changes of a group's members, which its leader makes, and handing leadership over.
//!
//! A change is refused where it could cost the group its majority, or undo what another operator has done meanwhile: see
//! [`MembershipError`]. Which members there should be is decided elsewhere.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::impls::EmptyNode;
use openraft::raft::Precondition;
use openraft::{AsyncRuntime, ChangeMembers, Instant, RaftMetrics};
use tokio::sync::oneshot;

use crate::proposer::Awaits;
use crate::state_machine::StateMachine;
use crate::types::Types;
use crate::wire::Source;
use crate::{Group, GroupError, MemberId, MembershipError, upkeep};

impl<R: AsyncRuntime, S: StateMachine> Group<R, S> {
    /// Lets a member follow without a vote, and brings it what it lacks. Asked of the leader.
    ///
    /// # Errors
    /// This member does not lead, or another change is on its way.
    pub async fn add_learner(&self, member: MemberId) -> Result<(), MembershipError> {
        let added = self.0.raft.add_learner(member, EmptyNode::new(), false).await;
        added.map(|_| ()).map_err(|error| self.refused("cannot add a learner", error))
    }

    /// Forgets a member that follows without a vote. Asked of the leader.
    ///
    /// # Errors
    /// This member does not lead, or another change is on its way.
    pub async fn remove_learner(&self, member: MemberId) -> Result<(), MembershipError> {
        let gone = ChangeMembers::RemoveNodes([member].into());
        let removed = self.0.raft.change_membership(gone, false).await;
        removed.map(|_| ()).map_err(|error| self.refused("cannot forget a learner", error))
    }

    /// Changes the voters, in one joint change: those that are no longer among them leave the group. Asked of the leader, by whoever has
    /// seen that `from` are the voters (see [`GroupStatus::voters`](crate::GroupStatus)): another change since then is not undone.
    ///
    /// # Errors
    /// As each [`MembershipError`] says. If leadership was lost on the way, the change may be half done (`is_joint`): look again at who votes, and
    /// ask for it again.
    pub async fn change_voters(
        &self,
        from: &BTreeSet<MemberId>,
        to: BTreeSet<MemberId>,
    ) -> Result<(), MembershipError> {
        self.change(from, to, false).await
    }

    /// As [`Group::change_voters`], but those that are no longer among them follow on without a vote: at no moment do they lack what is new.
    ///
    /// # Errors
    /// As [`Group::change_voters`].
    pub async fn change_voters_and_keep(
        &self,
        from: &BTreeSet<MemberId>,
        to: BTreeSet<MemberId>,
    ) -> Result<(), MembershipError> {
        self.change(from, to, true).await
    }

    async fn change(
        &self,
        from: &BTreeSet<MemberId>,
        to: BTreeSet<MemberId>,
        keeps: bool,
    ) -> Result<(), MembershipError> {
        let group = self.0.replica.group;
        let based_on = {
            let metrics = self.0.raft.metrics();
            let now = metrics.borrow_watched();
            let found: BTreeSet<MemberId> = now.membership_config.voter_ids().collect();
            if found != *from {
                return Err(MembershipError::Changed { group, expected: from.clone(), found });
            }
            let configs = now.membership_config.membership().get_joint_config();
            configs.iter().chain([&to]).try_for_each(|voters| self.has_majority(&now, voters))?;
            *now.membership_config.log_id()
        };
        let unchanged = Precondition::LastMembershipLogId { last_membership_log_id: based_on };
        let changed = self.0.raft.change_membership_if(to, keeps, [unchanged]).await;
        changed.map(|_| ()).map_err(|error| self.refused("cannot change its voters", error))
    }

    /// Whether a majority of voters has answered within one lease.
    fn has_majority(&self, now: &RaftMetrics<Types<R>>, voters: &BTreeSet<MemberId>) -> Result<(), MembershipError> {
        let (group, member) = (self.0.replica.group, self.0.member);
        let Some(heard) = &now.heartbeat else {
            return Err(MembershipError::NotLeader { member, group, leader: now.current_leader });
        };
        let lease = Duration::from_millis(self.0.settings.lease_ms);
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
        let (group, member) = (self.0.replica.group, self.0.member);
        match error {
            RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => {
                MembershipError::NotLeader { member, group, leader: forward.leader_id }
            }
            // What the change was based on has gone, or goes while it is asked for.
            RaftError::APIError(
                ClientWriteError::ChangeMembershipError(ChangeMembershipError::InProgress(_))
                | ClientWriteError::PreconditionFailed(_),
            ) => MembershipError::InProgress { group },
            error => MembershipError::Failed(self.failed(what, error.to_string())),
        }
    }

    /// Hands leadership over. From now on this member serves no reads in its term, and takes no writes, whether the other one takes over
    /// or not: then the others elect. What reads have kept alive is told to the log before, and what is on its way is applied here, so that this
    /// member tells of all that was proposed under it, and the next one of all else: meanwhile submissions wait.
    ///
    /// # Errors
    /// The group has stopped, or what is on its way takes longer than a request may: then this member leads on.
    pub async fn transfer_leadership(&self, to: MemberId) -> Result<(), GroupError> {
        let touches = if self.has_lease().is_some() { upkeep::touches(&self.0) } else { Bytes::new() };
        if !touches.is_empty() {
            // Without them entries expire earlier than their reads would have it; that is no reason to stay.
            let (sender, applied) = oneshot::channel();
            let told = self.push(Source::Plain, touches, Awaits::Applied(sender));
            if told.is_ok() {
                let _applied = R::timeout(self.0.settings.request_timeout(), applied).await;
            }
        }
        let _held = self.0.waiting.hold();
        let timeout = self.0.settings.request_timeout();
        if R::timeout(timeout, self.0.waiting.landed()).await.is_err() {
            let why = format!("what is on its way was not applied within {timeout:?}");
            return Err(self.failed("does not hand leadership over yet", why));
        }
        let term = self.0.raft.metrics().borrow_watched().current_term;
        self.0.lease.revoke(term);
        let triggered = self.0.raft.trigger().transfer_leader(to).await;
        triggered.map_err(|error| self.failed("cannot hand leadership over", error.to_string()))
    }
}
