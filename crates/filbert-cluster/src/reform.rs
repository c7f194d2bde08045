//! A group whose majority is lost for good goes on with a copy that is left.
//!
//! Consensus has no such step, and needs none: what forces it is the word of a leader, with a vote that nobody else has. Whoever decides on
//! it (an operator, or a setting for pairs) goes through three steps, of which this module has what a member does in each:
//!
//! 1. Each member that is left says how its copy stands ([`Group::copy`]).
//! 2. Each gives its vote to a leader that does not exist, in a term of its own ([`Group::fence`]): from then on its copy changes by
//!    nobody else, and it elects nobody. It says again how its copy stands.
//! 3. The member with the most advanced copy takes one entry of that leader: that it is the only voter. It is committed with all
//!    entries before it, and the member leads ([`Group::reform`]). Others follow it and get votes as in any group.
//!
//! The most advanced copy is the one whose last entry has the latest term and, of these, the greatest index: it has all that was committed
//! on any of the copies. What was committed on members that are not there alone, is lost. Members that are not there may come back, and have a
//! majority in their own eyes: they are in an earlier [`Epoch`](crate::Epoch), in which nobody listens to them who was part of this.

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
/// Between two looks at whether this member leads.
const PAUSE: Duration = Duration::from_millis(10);
/// How long it may take to lead alone.
const LEADING_MAX: Duration = Duration::from_secs(5);

/// Where a log ends. The greater one is more advanced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Term of the last entry.
    pub term: u64,
    /// Its index.
    pub index: u64,
}

/// How a member's copy of a group stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCopy {
    /// Where its log ends; nothing, if it never had an entry.
    pub last: Option<Position>,
    /// The latest term that it knows of.
    pub term: u64,
    /// The voters, by its log; two sets while they are being changed, none if it never had an entry.
    pub voters: Vec<BTreeSet<MemberId>>,
    /// Whether this member leads, and has a majority.
    pub leads: bool,
}

impl<R: AsyncRuntime, S: StateMachine> Group<R, S> {
    /// How this member's copy stands.
    #[must_use]
    pub fn copy(&self) -> GroupCopy {
        let position = |id: LogId| Position { term: **id.committed_leader_id(), index: id.index };
        let metrics = self.0.raft.metrics();
        let now = metrics.borrow_watched();
        GroupCopy {
            last: self.0.log.last().map(position),
            term: now.current_term,
            voters: now.membership_config.membership().get_joint_config().clone(),
            leads: self.has_lease().is_some(),
        }
    }

    /// Gives this member's vote in a term to nobody: its copy, which is returned, changes by [`Group::reform`] alone, or by who is elected in
    /// a later term.
    ///
    /// `there` are the members that are left: a leader among them has no majority, and another one that was heard of a moment ago may have one.
    ///
    /// # Errors
    /// The member knows of a later term, or has heard of a leader that is not among those that are left, or has stopped.
    pub async fn fence(&self, term: u64, there: &BTreeSet<MemberId>) -> Result<GroupCopy, GroupError> {
        let after_all = LogId::new(Committed::new(u64::MAX), u64::MAX);
        let leader = self.0.raft.metrics().borrow_watched().current_leader;
        // As if it were handed over: the lease of such a leader is not waited for.
        let leadership_transfer = leader.is_none_or(|leader| there.contains(&leader));
        let request = VoteRequest { vote: Vote::new(term, NOBODY), last_log_id: Some(after_all), leadership_transfer };
        let answer = self.0.raft.vote(request).await.map_err(|error| self.not_reformed(error.to_string()))?;
        if !answer.vote_granted {
            let known = answer.vote.leader_id.term;
            let why = match known > term {
                true => format!("it knows of term {known}, expected at most {term}"),
                false => "it has heard of its leader a moment ago".to_owned(),
            };
            return Err(self.not_reformed(why));
        }
        self.0.lease.withdraw();
        // What others had committed beyond it is lost.
        let copy = self.copy();
        self.0.replica.telling.cut_after(copy.last.map(|last| last.index));
        Ok(copy)
    }

    /// Makes this member the only voter, with what its copy has, and has it lead. Only where all members that are left were asked for
    /// [`Group::fence`] in this term, no other copy of theirs is more advanced, and a majority of the voters is lost for good.
    ///
    /// # Errors
    /// It was not asked for its vote in this term, knows of a later one, or does not lead within some seconds.
    pub async fn reform(&self, term: u64) -> Result<(), GroupError> {
        let last = self.0.log.last();
        let log_id = LogId::new(Committed::new(term), last.map_or(0, |last| last.index.saturating_add(1)));
        let alone: BTreeSet<MemberId> = [self.0.member].into();
        let nodes: std::collections::BTreeMap<_, _> = [(self.0.member, EmptyNode::new())].into();
        let membership = Membership::new(vec![alone], nodes).map_err(|error| self.not_reformed(error.to_string()))?;
        let entry = Entry { log_id, payload: Payload::Membership(membership) };
        // What was on its way is committed by it, and nobody else tells of it.
        self.0.replica.telling.leads(term);
        let append = AppendEntriesRequest {
            vote: Vote::new_committed(term, NOBODY),
            prev_log_id: last,
            entries: vec![entry],
            leader_commit: Some(log_id),
        };
        let answer = self.0.raft.append_entries(append).await.map_err(|error| self.not_reformed(error.to_string()))?;
        if !matches!(answer, AppendEntriesResponse::Success) {
            return Err(self.not_reformed(format!("its copy has changed meanwhile: {answer}")));
        }
        let elected = self.0.raft.trigger().elect(false).await;
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
