//! A member gives up its replica of a group after it was removed from the group: it drops the log
//! and the state, and frees their memory.
//!
//! A member that is removed from the voters may never receive the entry that removes it. A member
//! without its log is a danger to other members: a candidate that does not know of the removal may
//! use the vote of this member, although the candidate lacks entries of the dropped log. So:
//!
//! 1. The member holds back the requests of other members.
//! 2. It asks the leader. The leader confirms if the latest configuration is committed, and does
//!    not contain the member. The confirmation contains the vote of the leader, and the index of
//!    that configuration.
//! 3. The member keeps its replica if it knows a later term than the leader's: a later leader may
//!    have added it again, and may rely on its entries.
//! 4. Otherwise an empty replica with the leader's vote replaces the old replica. Because of the
//!    vote, it refuses earlier leaders. Until its log has reached the index of step 2, it votes for
//!    no member, and is not a candidate itself. Candidates that know of the removal do not request
//!    its vote.
//!
//! If the group adds the member again later, it receives the group as a new member does.

use openraft::AsyncRuntime;
use tokio::sync::oneshot;

use crate::seat::Successor;
use crate::state_machine::StateMachine;
use crate::transport::Lane;
use crate::wire::{Head, Removal, Request, Response};
use crate::{Group, GroupError, MemberId};

impl<R: AsyncRuntime, S: StateMachine> Group<R, S> {
    /// Gives up this member's replica, if the leader confirms that the member was removed from the
    /// group: forgets its log and its state. Returns whether it did. Reads of the state must have
    /// ended before, and must not begin before the member has a vote again.
    ///
    /// # Errors
    /// The empty replica cannot be started. The group has stopped on this member then.
    pub async fn give_up(&self, leader: MemberId) -> Result<bool, GroupError> {
        // Requests are held back only if the leader confirms once before: often it does not.
        if leader == self.member() || self.confirmed_removal(leader).await.is_none() {
            return Ok(false);
        }
        // In a task of its own: the caller may go, and the group must not be left without a
        // replica.
        let (group, (sender, done)) = (self.clone(), oneshot::channel());
        drop(R::spawn(async move { _ = sender.send(group.replace_replica(leader).await) }));
        done.await.unwrap_or(Ok(false))
    }

    async fn replace_replica(&self, leader: MemberId) -> Result<bool, GroupError> {
        let limit = self.settings().request_timeout();
        let Ok(_held) = R::timeout(limit, self.0.hold_requests()).await else { return Ok(false) };
        let Some(Removal { vote, index }) = self.confirmed_removal(leader).await else { return Ok(false) };
        let old = self.current_owned();
        let is_later = || old.log.vote().filter(|own| own.leader_id.term > vote.leader_id.term);
        if is_later().is_some() || old.has_stopped() {
            return Ok(false);
        }
        old.stop().await;
        // A task of consensus may still apply entries.
        old.replica.close();
        // Before it stopped, the old replica may have stood for election.
        let successor = Successor { vote: is_later().unwrap_or(vote), votes_from: index };
        self.0.replace(self.0.common.start_replica(Some(successor)).await?);
        Ok(true)
    }

    /// Asks the leader whether this member was removed from the group.
    async fn confirmed_removal(&self, leader: MemberId) -> Option<Removal> {
        let common = &self.0.common;
        let (epoch, time) = (common.transport.epoch(), common.clock.known_time());
        let head = Head { to: leader, group: common.group, epoch, time };
        let request = Request::<R>::Removed { member: common.member }.write(&head);
        let answer = common.transport.call(leader, Lane::Control, request);
        let answer = R::timeout(common.settings.request_timeout(), answer).await.ok()?.ok()?;
        let (time, answer) = Response::<R>::read(answer).ok()?;
        common.clock.learn(time);
        match answer {
            Response::Removed(removal) => removal,
            _ => None,
        }
    }
}
