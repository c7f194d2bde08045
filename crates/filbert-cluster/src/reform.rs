//! Re-forming a group that has lost its majority for good: it continues with a surviving copy.
//!
//! Consensus has no such step, and needs none: the step is an append from a leader with a vote that
//! no real member has. The decision is made by an operator, or by a setting for pairs. It has three
//! steps. This module has the part of a member in each step:
//!
//! 1. Each surviving member reports the state of its copy ([`Group::copy`]).
//! 2. Each surviving member gives its vote to a leader that does not exist, in a new term
//!    ([`Group::fence`]): from then on no other leader changes its copy, and it elects no other
//!    member. It reports the state of its copy again.
//! 3. The member with the most advanced copy appends one entry of that leader: it makes the member
//!    the only voter. The entry is committed with all entries before it, and the member leads
//!    ([`Group::reform`]). Other members follow it and get votes as in any group.
//!
//! The most advanced copy is the one with the latest term in its last entry and, of these, the
//! greatest index: it has all entries that were committed on any of the copies. Entries that were
//! committed only on missing members are lost. Missing members may come back, and consider
//! themselves a majority: they are in an earlier [`Epoch`](crate::Epoch), and all members that took
//! part in the recovery ignore them.

use std::collections::BTreeSet;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::impls::EmptyNode;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, VoteRequest};
use openraft::{AsyncRuntime, Instant};

use crate::state_machine::StateMachine;
use crate::types::{Committed, Entry, LogId, Membership, Payload, Vote};
use crate::{Group, GroupError, MemberId};

/// The leader that does not exist. No member has this id.
const NOBODY: MemberId = MemberId(u64::MAX - 1);
/// The pause between two checks whether this member leads.
const PAUSE: Duration = Duration::from_millis(10);
/// The maximum time until this member leads alone.
const LEADING_MAX: Duration = Duration::from_secs(5);

/// The end of a log. The greater position is more advanced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The term of the last entry.
    pub term: u64,
    /// The index of the last entry.
    pub index: u64,
}

/// The state of a member's copy of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCopy {
    /// The end of its log. `None` if it never had an entry.
    pub last: Option<Position>,
    /// The latest term that the member knows.
    pub term: u64,
    /// The voters according to its log. Two sets during a change of voters. Empty if the log never
    /// had an entry.
    pub voters: Vec<BTreeSet<MemberId>>,
    /// Whether this member leads with a majority.
    pub leads: bool,
}

impl<R: AsyncRuntime, S: StateMachine> Group<R, S> {
    /// Returns the state of this member's copy.
    #[must_use]
    pub fn copy(&self) -> GroupCopy {
        let position = |id: LogId| Position { term: **id.committed_leader_id(), index: id.index };
        let replica = self.current();
        let metrics = replica.raft.metrics();
        let now = metrics.borrow_watched();
        GroupCopy {
            last: replica.log.last().map(position),
            term: now.current_term,
            voters: now.membership_config.membership().get_joint_config().clone(),
            leads: self.has_lease().is_some(),
        }
    }

    /// Gives this member's vote in a term to a leader that does not exist. Returns the state of its
    /// copy. From then on only [`Group::reform`] changes the copy, or a leader that is elected in a
    /// later term.
    ///
    /// `there` are the surviving members. A leader among them has no majority. Another leader that
    /// was heard of recently may have one.
    ///
    /// # Errors
    /// The member knows a later term, has recently heard of a leader outside `there`, or has
    /// stopped.
    pub async fn fence(&self, term: u64, there: &BTreeSet<MemberId>) -> Result<GroupCopy, GroupError> {
        // The replica is not given up between the vote and the report of its copy.
        let _handled = self.0.begin_request().await;
        let replica = self.current_owned();
        let after_all = LogId::new(Committed::new(u64::MAX), u64::MAX);
        let leader = replica.raft.metrics().borrow_watched().current_leader;
        // As in a hand-over: the lease of such a leader need not expire first.
        let leadership_transfer = leader.is_none_or(|leader| there.contains(&leader));
        let request = VoteRequest { vote: Vote::new(term, NOBODY), last_log_id: Some(after_all), leadership_transfer };
        let answer = replica.raft.vote(request).await.map_err(|error| self.not_reformed(error.to_string()))?;
        if !answer.vote_granted {
            let known = answer.vote.leader_id.term;
            let why = match known > term {
                true => format!("it knows of term {known}, expected at most {term}"),
                false => "it has heard of its leader a moment ago".to_owned(),
            };
            return Err(self.not_reformed(why));
        }
        replica.lease.withdraw();
        // Entries beyond it that other members had committed are lost.
        let copy = self.copy();
        replica.replica.reporting.cut_after(copy.last.map(|last| last.index));
        Ok(copy)
    }

    /// Makes this member the only voter, with the entries of its copy, and makes it the leader. To
    /// be called only if [`Group::fence`] was called for this term on all surviving members, no
    /// other copy of theirs is more advanced, and a majority of the voters is lost for good.
    ///
    /// # Errors
    /// This member has not given its vote in this term, knows a later term, or does not lead within
    /// some seconds.
    pub async fn reform(&self, term: u64) -> Result<(), GroupError> {
        let replica = self.current_owned();
        let last = replica.log.last();
        let log_id = LogId::new(Committed::new(term), last.map_or(0, |last| last.index.saturating_add(1)));
        let alone: BTreeSet<MemberId> = [self.member()].into();
        let nodes: std::collections::BTreeMap<_, _> = [(self.member(), EmptyNode::new())].into();
        let membership = Membership::new(vec![alone], nodes).map_err(|error| self.not_reformed(error.to_string()))?;
        let entry = Entry { log_id, payload: Payload::Membership(membership) };
        // Entries that were in flight are committed by this entry. No other member reports them.
        replica.replica.reporting.record_own_term(term);
        let append = AppendEntriesRequest {
            vote: Vote::new_committed(term, NOBODY),
            prev_log_id: last,
            entries: vec![entry],
            leader_commit: Some(log_id),
        };
        let answer = replica.raft.append_entries(append).await.map_err(|error| self.not_reformed(error.to_string()))?;
        if !matches!(answer, AppendEntriesResponse::Success) {
            return Err(self.not_reformed(format!("its copy has changed meanwhile: {answer}")));
        }
        let elected = replica.raft.trigger().elect(false).await;
        elected.map_err(|error| self.not_reformed(error.to_string()))?;
        let begun = R::Instant::now();
        while self.has_lease().is_none() {
            if begun.elapsed() > LEADING_MAX {
                return Err(self.not_reformed(format!("it does not lead after {LEADING_MAX:?}")));
            }
            R::sleep(PAUSE).await;
        }
        Ok(())
    }

    fn not_reformed(&self, why: String) -> GroupError {
        self.failed("cannot go on with the copy that is left", why)
    }
}
