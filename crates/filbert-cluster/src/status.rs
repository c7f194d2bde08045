//! The status of a member in a group, for the maintenance of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::{AsyncRuntime, Instant};

use crate::state_machine::StateMachine;
use crate::{Group, MemberId};

/// The status of a member in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// The latest term that the member knows.
    pub term: u64,
    /// Whether the member leads in that term.
    pub leads: bool,
    /// The term in which the member leads and its state machine has been notified. It has a lease
    /// in no other term.
    pub serves: Option<u64>,
    /// The leader.
    pub leader: Option<MemberId>,
    /// The index of the last entry known to be committed.
    pub committed: Option<u64>,
    /// The index of the last entry applied.
    pub applied: Option<u64>,
    /// The index of the last entry purged.
    pub purged: Option<u64>,
    /// The voters.
    pub voters: BTreeSet<MemberId>,
    /// The learners, which follow without a vote.
    pub learners: BTreeSet<MemberId>,
    /// The index of the last entry that each follower has. Only on the leader, else empty.
    pub matched: BTreeMap<MemberId, u64>,
    /// The time since the last answer of each voter and learner. Only on the leader, else empty.
    pub since_answer: BTreeMap<MemberId, Duration>,
    /// Whether a change of voters is in progress.
    pub is_joint: bool,
    /// The size of the log in bytes.
    pub log_bytes: usize,
    /// The number of entries in the log.
    pub log_entries: usize,
    /// The size of submissions that wait for an entry, in bytes.
    pub waiting_bytes: usize,
    /// The reason why the group has stopped on this member, if it has failed.
    pub failure: Option<String>,
}

impl<R: AsyncRuntime, S: StateMachine> Group<R, S> {
    /// Returns the status of this member.
    #[must_use]
    pub fn status(&self) -> GroupStatus {
        let replica = self.current();
        let metrics = replica.raft.metrics();
        let now = metrics.borrow_watched();
        let (matched, since_answer) = (now.replication.iter().flatten(), now.heartbeat.iter().flatten());
        GroupStatus {
            term: now.current_term,
            leads: now.state == openraft::ServerState::Leader,
            serves: self.leading(),
            leader: now.current_leader,
            committed: now.local_committed.map(|id| id.index),
            applied: now.last_applied.map(|id| id.index),
            purged: now.purged.map(|id| id.index),
            voters: now.membership_config.voter_ids().collect(),
            learners: now.membership_config.membership().learner_ids().collect(),
            matched: matched.flat_map(|(id, upto)| Some((*id, upto.as_ref()?.index))).collect(),
            since_answer: since_answer.flat_map(|(id, at)| Some((*id, at.as_ref()?.elapsed()))).collect(),
            is_joint: now.membership_config.get_joint_config().len() > 1,
            log_bytes: replica.log_size.bytes.load(Ordering::Relaxed),
            log_entries: replica.log_size.entries.load(Ordering::Relaxed),
            waiting_bytes: replica.waiting.bytes(),
            failure: now.running_state.as_ref().err().map(ToString::to_string),
        }
    }
}
