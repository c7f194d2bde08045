//! The state that the handles and the tasks of a group share on one member.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use openraft::{AsyncRuntime, Instant};
use parking_lot::Mutex;

use crate::acknowledged::Acknowledged;
use crate::clock::GroupClock;
use crate::counters::Counting;
use crate::lease::Lease;
use crate::raft_log::{RaftLog, Size};
use crate::replica::{Machine, Replica};
use crate::snapshot::Taking;
use crate::state_machine::StateMachine;
use crate::transport::Transport;
use crate::types::Types;
use crate::urgent_commits::UrgentCommits;
use crate::waiting::Waiting;
use crate::{Epoch, GroupSettings, MemberId};

pub(crate) type Raft<R, S> = openraft::Raft<Types<R>, Machine<S, <R as AsyncRuntime>::Instant>>;

/// The shared state of a group on one member.
pub(crate) struct Shared<R: AsyncRuntime, S: StateMachine> {
    pub(crate) member: MemberId,
    pub(crate) settings: GroupSettings,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) raft: Raft<R, S>,
    pub(crate) replica: Arc<Replica<S, R::Instant>>,
    pub(crate) lease: Lease,
    pub(crate) log_size: Arc<Size>,
    pub(crate) log: RaftLog,
    pub(crate) clock: Arc<GroupClock>,
    /// The send times of requests that members have acknowledged, in nanoseconds.
    pub(crate) acknowledged_ns: Arc<Acknowledged<u64>>,
    pub(crate) urgent_commits: Arc<UrgentCommits>,
    pub(crate) counting: Arc<Counting>,
    /// The origin of the lease's nanoseconds.
    pub(crate) base: R::Instant,
    /// The leader's id plus 1. 0 = unknown.
    pub(crate) leader: AtomicU64,
    pub(crate) waiting: Arc<Waiting<S, R::Instant>>,
    pub(crate) taking: Mutex<Option<Taking<S>>>,
    pub(crate) vote_limit: VoteLimit,
    pub(crate) stopped: AtomicBool,
}

/// A replica that takes the place of one that was given up neither votes nor stands for election at
/// first, see `giving_up.rs`.
pub(crate) struct VoteLimit {
    /// The index that the log must have reached before. 0 = there is no limit.
    from: AtomicU64,
    /// The epoch of the members that may ask for a vote without knowing better. Members in another
    /// epoch are not heard.
    epoch: Epoch,
}

impl VoteLimit {
    /// No limit, or until the log has reached an index, within an epoch.
    pub(crate) fn new(from: u64, epoch: Epoch) -> Self {
        VoteLimit { from: AtomicU64::new(from), epoch }
    }

    /// Whether the limit holds.
    pub(crate) fn holds(&self) -> bool {
        self.from.load(Ordering::SeqCst) != 0
    }

    /// Ends the limit if the log has come to an index that is far enough, or in another epoch.
    /// Returns whether it has ended now.
    pub(crate) fn end(&self, last: Option<u64>, epoch: Epoch) -> bool {
        let from = self.from.load(Ordering::SeqCst);
        let ends = from != 0 && (last >= Some(from) || epoch != self.epoch);
        if ends {
            self.from.store(0, Ordering::SeqCst);
        }
        ends
    }
}

/// The nanoseconds from the start of a group on this member to an instant.
pub(crate) fn nanoseconds_since<R: AsyncRuntime>(base: R::Instant, at: R::Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(base).as_nanos()).unwrap_or(u64::MAX)
}

impl<R: AsyncRuntime, S: StateMachine> Shared<R, S> {
    pub(crate) fn nanoseconds(&self, at: R::Instant) -> u64 {
        nanoseconds_since::<R>(self.base, at)
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}
