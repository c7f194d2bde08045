//! Where a member stands in a group, for who looks after the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::{AsyncRuntime, Instant};

use crate::state_machine::StateMachine;
use crate::{Group, MemberId};

/// Where a member stands in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// The latest term that it knows.
    pub term: u64,
    /// Whether it leads in that term.
    pub leads: bool,
    /// The term in which it leads and its state machine knows of that; it has a lease in no other.
    pub serves: Option<u64>,
    /// Who leads.
    pub leader: Option<MemberId>,
    /// The last entry known to be committed.
    pub committed: Option<u64>,
    /// The last entry applied.
    pub applied: Option<u64>,
    /// The last entry purged.
    pub purged: Option<u64>,
    /// Who votes.
    pub voters: BTreeSet<MemberId>,
    /// Who follows without a vote.
    pub learners: BTreeSet<MemberId>,
    /// What followers have of the log, as their leader knows; nothing on others.
    pub matched: BTreeMap<MemberId, u64>,
    /// How long ago voters and learners have answered, as their leader knows; nothing on others.
    pub heard: BTreeMap<MemberId, Duration>,
    /// Whether the voters are being changed.
    pub is_joint: bool,
    /// Bytes of the log.
    pub log_bytes: usize,
    /// Entries of the log.
    pub log_entries: usize,
    /// Bytes of submissions that wait for an entry.
    pub waiting_bytes: usize,
    /// Why the group stopped here, if it did by itself.
    pub failure: Option<String>,
}

impl<R: AsyncRuntime, S: StateMachine> Group<R, S> {
    /// Where this member stands.
    #[must_use]
    pub fn status(&self) -> GroupStatus {
        let metrics = self.0.raft.metrics();
        let now = metrics.borrow_watched();
        let (matched, heard) = (now.replication.iter().flatten(), now.heartbeat.iter().flatten());
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
            heard: heard.flat_map(|(id, at)| Some((*id, at.as_ref()?.elapsed()))).collect(),
            is_joint: now.membership_config.get_joint_config().len() > 1,
            log_bytes: self.0.log_size.bytes.load(Ordering::Relaxed),
            log_entries: self.0.log_size.entries.load(Ordering::Relaxed),
            waiting_bytes: self.0.waiting.bytes(),
            failure: now.running_state.as_ref().err().map(ToString::to_string),
        }
    }
}
