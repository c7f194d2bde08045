//! The place of a group on one member, with the member's replica of the group.
//!
//! A replica is replaced by an empty one when the member gives it up ([`Group::give_up`]). Requests
//! of other members wait meanwhile.
//!
//! [`Group::give_up`]: crate::Group::give_up

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use openraft::{AsyncRuntime, Instant};
use parking_lot::Mutex;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::clock::GroupClock;
use crate::consensus_link::LinkContext;
use crate::counters::Counting;
use crate::raft_log::RaftLog;
use crate::replica::{Machine, Replica};
use crate::shared::{Raft, Shared, VoteLimit, nanoseconds_since};
use crate::state_machine::StateMachine;
use crate::transport::Transport;
use crate::types::Vote;
use crate::{GroupError, GroupId, GroupSettings, MemberId, proposer, upkeep};

/// The parts of a group that all its replicas on one member share, one after the other.
pub(crate) struct Common<S> {
    pub(crate) member: MemberId,
    pub(crate) group: GroupId,
    pub(crate) settings: GroupSettings,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: Arc<GroupClock>,
    pub(crate) state: Arc<S>,
    pub(crate) counting: Arc<Counting>,
}

/// The beginning of an empty replica that takes the place of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Successor {
    /// The latest vote that this member has given or accepted.
    pub(crate) vote: Vote,
    /// The index of the configuration that this member is not in. The replica neither votes nor
    /// stands for election before its log has reached it, see `giving_up.rs`.
    pub(crate) votes_from: u64,
}

pub(crate) struct Seat<R: AsyncRuntime, S: StateMachine> {
    pub(crate) common: Common<S>,
    current: ArcSwap<Shared<R, S>>,
    requests: RwLock<()>,
}

impl<R: AsyncRuntime, S: StateMachine> Seat<R, S> {
    pub(crate) async fn new(common: Common<S>) -> Result<Self, GroupError> {
        let first = common.start_replica::<R>(None).await?;
        Ok(Seat { common, current: ArcSwap::new(first), requests: RwLock::default() })
    }

    /// The current replica, for a short use.
    pub(crate) fn current(&self) -> Guard<Arc<Shared<R, S>>> {
        self.current.load()
    }

    /// The current replica, for a use that waits for something.
    pub(crate) fn current_owned(&self) -> Arc<Shared<R, S>> {
        self.current.load_full()
    }

    pub(crate) fn replace(&self, replica: Arc<Shared<R, S>>) {
        self.current.store(replica);
    }

    /// To be held while a request of another member is handled.
    pub(crate) async fn begin_request(&self) -> RwLockReadGuard<'_, ()> {
        self.requests.read().await
    }

    /// Waits until no request of another member is being handled. Further requests wait.
    pub(crate) async fn hold_requests(&self) -> RwLockWriteGuard<'_, ()> {
        self.requests.write().await
    }
}

impl<S: StateMachine> Common<S> {
    pub(crate) fn failed(&self, what: &'static str, why: String) -> GroupError {
        GroupError { group: self.group, what, why }
    }

    /// Starts an empty replica, and its tasks.
    pub(crate) async fn start_replica<R: AsyncRuntime>(
        &self,
        successor: Option<Successor>,
    ) -> Result<Arc<Shared<R, S>>, GroupError> {
        let failed = |why: String| self.failed("cannot be started", why);
        let settings = self.settings.clone();
        let config = settings.consensus(successor.is_none()).validate().map_err(|error| failed(error.to_string()))?;
        let of_log = Arc::clone(&self.state);
        let on_change = Box::new(move |bytes| of_log.log_changed(bytes));
        let vote = successor.map(|successor| successor.vote);
        let log = RaftLog::new(settings.entry_bytes_max.saturating_mul(4), vote, on_change);
        let replica =
            Arc::new(Replica::new(self.group, Arc::clone(&self.state), settings.origins, Arc::clone(&self.clock)));
        let (acknowledged_ns, urgent_commits) = (Arc::default(), Arc::default());
        let timeout = settings.request_timeout();
        let base = R::Instant::now();
        let context = LinkContext {
            transport: Arc::clone(&self.transport),
            member: self.member,
            group: self.group,
            clock: Arc::clone(&self.clock),
            acknowledged_ns: Arc::clone(&acknowledged_ns),
            now_ns: Arc::new(move || nanoseconds_since::<R>(base, R::Instant::now())),
            timeout,
            install_timeout: timeout.max(Duration::from_millis(settings.install_ms_max)),
            commit_hold: Duration::from_millis(settings.commit_hold_ms),
            urgent_commits: Arc::clone(&urgent_commits),
            reporting: Arc::clone(&replica.reporting),
            page_bytes: settings.page_bytes,
            bytes_per_s_max: settings.snapshot_bytes_per_s_max.max(1),
            counting: Arc::clone(&self.counting),
            state: PhantomData,
        };
        let machine = Machine(Arc::clone(&replica));
        let started = Raft::<R, S>::new(self.member, Arc::new(config), context, log.clone(), machine).await;
        let raft = started.map_err(|error| failed(error.to_string()))?;
        let shared = Arc::new(Shared {
            member: self.member,
            settings,
            transport: Arc::clone(&self.transport),
            raft,
            replica,
            lease: Default::default(),
            log_size: log.size(),
            log,
            clock: Arc::clone(&self.clock),
            acknowledged_ns,
            urgent_commits,
            counting: Arc::clone(&self.counting),
            base,
            leader: AtomicU64::new(0),
            waiting: Arc::default(),
            taking: Mutex::new(None),
            vote_limit: VoteLimit::new(successor.map_or(0, |successor| successor.votes_from), self.transport.epoch()),
            stopped: AtomicBool::new(false),
        });
        drop(R::spawn(proposer::run(Arc::clone(&shared))));
        drop(R::spawn(upkeep::run(Arc::clone(&shared))));
        Ok(shared)
    }
}
