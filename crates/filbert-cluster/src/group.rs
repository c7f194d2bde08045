//! A group on one member: its operations, and the handling of requests from other members.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use filbert_data::PartitionId;
use filbert_store::{Millis, Partition};
use openraft::async_runtime::WatchReceiver;
use openraft::errors::RaftError;
use openraft::impls::EmptyNode;
use openraft::{AsyncRuntime, Instant};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::acknowledged::Acknowledged;
use crate::clock::GroupClock;
use crate::consensus_link::LinkContext;
use crate::counters::{Counting, add};
use crate::lease::Lease;
use crate::partitions::Partitions;
use crate::raft_log::RaftLog;
use crate::replica::{Machine, ReadPoint, Replica};
use crate::reporting::Reporting;
use crate::shared::{Raft, Shared, nanoseconds_since};
use crate::snapshot::{Received, SnapshotData, Taking};
use crate::state_machine::StateMachine;
use crate::transport::Transport;
use crate::types::{LogId, Vote};
use crate::urgent_commits::UrgentCommits;
use crate::waiting::Awaits;
use crate::wire::{Request, Response, Source};
use crate::{
    GroupCounters, GroupError, GroupId, GroupSettings, MemberId, OriginId, OwnedReply, ReadError, RequestError,
    SubmitError, WallClock, proposer, upkeep,
};

/// The origin and the sequence number of a submission, see [`Group::submit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The origin, as returned by [`Group::open_origin`].
    pub origin: OriginId,
    /// The number of the submission. The first is 1, and each is one more than the one before.
    pub sequence: u64,
    /// The first submission that may still be retried, because its answer has not been received.
    pub unanswered: u64,
}

/// A group on one member, over the state machine that its log changes. Clones refer to the same
/// group.
pub struct Group<R: AsyncRuntime, S: StateMachine = Partitions>(pub(crate) Arc<Shared<R, S>>);

impl<R: AsyncRuntime, S: StateMachine> Clone for Group<R, S> {
    fn clone(&self) -> Self {
        Group(Arc::clone(&self.0))
    }
}

impl<R: AsyncRuntime, S: StateMachine> Group<R, S> {
    /// Starts a member's replica of a group, over an empty state machine. The replica takes part
    /// once another member makes it a learner, or after [`Group::form`].
    ///
    /// # Errors
    /// The settings are inconsistent.
    pub async fn start(
        member: MemberId,
        group: GroupId,
        settings: GroupSettings,
        transport: Arc<dyn Transport>,
        wall: Arc<dyn WallClock>,
        state: Arc<S>,
    ) -> Result<Self, GroupError> {
        let failed = |why: String| GroupError { group, what: "cannot be started", why };
        let config = settings.consensus().validate().map_err(|error| failed(error.to_string()))?;
        let clock = Arc::new(GroupClock::new(wall, settings.clock_reserve_ms()));
        let reporting = Arc::<Reporting>::default();
        let of_log = Arc::clone(&state);
        let on_change = Box::new(move |bytes| of_log.log_changed(bytes));
        let log = RaftLog::new(settings.entry_bytes_max.saturating_mul(4), on_change);
        let replica =
            Arc::new(Replica::new(group, state, settings.origins, Arc::clone(&clock), Arc::clone(&reporting)));
        let (timeout, page_bytes) = (settings.request_timeout(), settings.page_bytes);
        let install_timeout = timeout.max(Duration::from_millis(settings.install_ms_max));
        let (commit_hold, urgent_commits) =
            (Duration::from_millis(settings.commit_hold_ms), Arc::<UrgentCommits>::default());
        let bytes_per_s_max = settings.snapshot_bytes_per_s_max.max(1);
        let of_context = Arc::clone(&clock);
        let state = PhantomData;
        let counting = Arc::<Counting>::default();
        let of_counting = Arc::clone(&counting);
        let (acknowledged_ns, base) = (Arc::<Acknowledged<u64>>::default(), R::Instant::now());
        let now_ns = move || nanoseconds_since::<R>(base, R::Instant::now());
        let context = LinkContext {
            transport,
            member,
            group,
            clock: of_context,
            acknowledged_ns: Arc::clone(&acknowledged_ns),
            now_ns: Arc::new(now_ns),
            timeout,
            install_timeout,
            commit_hold,
            urgent_commits: Arc::clone(&urgent_commits),
            reporting,
            page_bytes,
            bytes_per_s_max,
            counting: of_counting,
            state,
        };
        let machine = Machine(Arc::clone(&replica));
        let started = Raft::<R, S>::new(member, Arc::new(config), context, log.clone(), machine).await;
        let raft = started.map_err(|error| failed(error.to_string()))?;
        let shared = Arc::new(Shared {
            member,
            settings,
            raft,
            replica,
            lease: Lease::default(),
            log_size: log.size(),
            log,
            clock,
            acknowledged_ns,
            urgent_commits,
            counting,
            base,
            leader: AtomicU64::new(0),
            waiting: Arc::default(),
            taking: Mutex::new(None),
            stopped: AtomicBool::new(false),
        });
        drop(R::spawn(proposer::run(Arc::clone(&shared))));
        drop(R::spawn(upkeep::run(Arc::clone(&shared))));
        Ok(Group(shared))
    }

    /// Forms a new group of voters without data. Called on one of them, once.
    ///
    /// # Errors
    /// The group has a log already.
    pub async fn form(&self, voters: &BTreeSet<MemberId>) -> Result<(), GroupError> {
        let nodes: std::collections::BTreeMap<_, _> = voters.iter().map(|id| (*id, EmptyNode::new())).collect();
        self.0.raft.initialize(nodes).await.map_err(|error| self.failed("cannot be formed", error.to_string()))
    }

    pub(crate) fn failed(&self, what: &'static str, why: String) -> GroupError {
        GroupError { group: self.0.replica.group, what, why }
    }

    /// The counters of this member's replica since it started.
    #[must_use]
    pub fn counters(&self) -> GroupCounters {
        self.0.counting.read()
    }

    /// The id of this member.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.0.member
    }

    /// The leader, as far as this member knows.
    #[must_use]
    pub fn leader(&self) -> Option<MemberId> {
        self.0.leader.load(Ordering::SeqCst).checked_sub(1).map(MemberId)
    }

    /// The latest term that this member knows.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.0.raft.metrics().borrow_watched().current_term
    }

    /// Whether this member has a vote in the group, by its own log.
    #[must_use]
    pub fn votes(&self) -> bool {
        let metrics = self.0.raft.metrics();
        let now = metrics.borrow_watched();
        now.membership_config.voter_ids().any(|voter| voter == self.0.member)
    }

    /// The term in which the state machine has been notified that this member leads.
    pub(crate) fn leading(&self) -> Option<u64> {
        let term = self.0.replica.leading.load(Ordering::SeqCst);
        (term != 0).then_some(term)
    }

    /// The state machine.
    #[must_use]
    pub fn state_machine(&self) -> &Arc<S> {
        &self.0.replica.state
    }

    /// Submits commands. They are applied together, in order, at the leader's time. Does not wait:
    /// `awaiting` is passed to the state machine with the entry or with an error
    /// ([`StateMachine::answer`]), or is dropped if the outcome is unknown.
    ///
    /// # Errors
    /// The commands were not accepted, and nothing was changed. Returns `awaiting`.
    pub fn propose(&self, commands: Bytes, awaiting: S::Awaiting) -> Result<(), (SubmitError, S::Awaiting)> {
        if let Err(error) = self.0.replica.state.check(&commands) {
            return Err((error, awaiting));
        }
        self.push(Source::Plain, commands, Awaits::Replies(awaiting)).map_err(|(error, awaits)| match awaits {
            Awaits::Replies(awaiting) => (error, awaiting),
            Awaits::Origin(_) | Awaits::Applied(_) => unreachable!("what was pushed comes back"),
        })
    }

    pub(crate) fn push(
        &self,
        source: Source,
        commands: Bytes,
        awaits: Awaits<S>,
    ) -> Result<(), (SubmitError, Awaits<S>)> {
        let (group, member) = (self.0.replica.group, self.0.member);
        let leader = self.leader();
        if leader != Some(member) || self.0.has_stopped() {
            return Err((SubmitError::NotLeader { member, group, leader }, awaits));
        }
        let (bytes, bytes_max) = (commands.len(), self.0.settings.submission_bytes_max());
        if bytes > bytes_max {
            return Err((SubmitError::TooLong { group, bytes, bytes_max }, awaits));
        }
        let limit_bytes = self.0.settings.log_bytes_max;
        if self.0.log_size.bytes.load(Ordering::Relaxed) > limit_bytes {
            return Err((SubmitError::Overloaded { group, limit_bytes }, awaits));
        }
        let limit_bytes = self.0.settings.waiting_bytes_max;
        let pushed = self.0.waiting.push(source, commands, awaits, limit_bytes);
        pushed.map_err(|awaits| (SubmitError::Overloaded { group, limit_bytes }, awaits))
    }

    /// Opens an origin, which submits in sequence. When there are too many origins, the origin that
    /// has been unused for longest is forgotten.
    ///
    /// # Errors
    /// As [`Group::submit`]. A retry is safe.
    pub async fn open_origin(&self) -> Result<OriginId, SubmitError> {
        let (sender, answer) = oneshot::channel();
        self.push(Source::Open, Bytes::new(), Awaits::Origin(sender)).map_err(|(error, _)| error)?;
        answer.await.unwrap_or(Err(SubmitError::Unknown { group: self.0.replica.group }))
    }

    /// The term in which this member may serve reads now.
    #[must_use]
    pub fn has_lease(&self) -> Option<u64> {
        self.0.lease.check(self.0.nanoseconds(R::Instant::now()))
    }

    /// Returns the read point for consistent reads at another member: once that member has applied
    /// the log up to it, reads there see all changes that were acknowledged before this call.
    ///
    /// Entries that reads here have kept alive, and that other members would find expired by then,
    /// are recorded in the log first.
    ///
    /// # Errors
    /// This member does not lead, or has no lease.
    pub async fn read_point(&self) -> Result<ReadPoint, SubmitError> {
        let before = self.has_lease();
        while before.is_some() && self.has_lease() == before {
            // In this order: reads before that time are recorded by touches, and applied touches
            // are before the index.
            let time = self.0.clock.read();
            let touches = upkeep::touches(&self.0);
            if touches.is_empty() {
                let point = ReadPoint { index: self.0.replica.begun.load(Ordering::SeqCst), time };
                // The caller waits until its member has learned of the commit.
                self.0.urgent_commits.request_up_to(point.index);
                // If the lease has ended in between, another leader may have acknowledged more
                // changes.
                if self.has_lease() == before {
                    return Ok(point);
                }
                break;
            }
            let (sender, applied) = oneshot::channel();
            self.push(Source::Plain, touches, Awaits::Applied(sender)).map_err(|(error, _)| error)?;
            applied.await.map_err(|_| SubmitError::Unknown { group: self.0.replica.group })?;
        }
        let (member, group) = (self.0.member, self.0.replica.group);
        let leader = self.leader().filter(|leader| *leader != member);
        Err(SubmitError::NotLeader { member, group, leader })
    }

    /// Waits until this member has applied the log up to a read point of the leader: reads here
    /// then see what reads of the leader saw. The member may be the leader or a follower. Waits for
    /// ever if this member does not follow the group.
    pub async fn reach(&self, point: ReadPoint) {
        self.0.replica.reach(point).await;
    }

    /// The time of reads on this member. Every later leader will know of it. On a leader this is
    /// its own read time, else the time of the latest [`Group::reach`]. Entries that the log has
    /// added since are visible as well. Entries that expire later are still visible.
    #[must_use]
    pub fn read_time(&self) -> Millis {
        let leads = self.0.replica.leading.load(Ordering::SeqCst) != 0;
        let reached = if leads { None } else { self.0.clock.latest_reached() };
        reached.unwrap_or_else(|| self.0.clock.read())
    }

    /// The index of the last entry applied here, and the logged state as bytes: with the same
    /// index, it is the same on all members. Needs memory for the whole state. For tests and for
    /// debugging.
    #[must_use]
    pub fn state(&self) -> (Option<u64>, Vec<u8>) {
        self.0.replica.state()
    }

    /// The index and the sets of voters (two of them during a change) of the membership entries in
    /// the log of this member. For tests.
    #[must_use]
    pub fn voters_in_log(&self) -> Vec<(u64, Vec<BTreeSet<MemberId>>)> {
        self.0.log.voters()
    }

    /// The index and the term of the entries in the log of this member. For tests.
    #[must_use]
    pub fn log_ids(&self) -> Vec<(u64, u64)> {
        self.0.log.ids()
    }

    /// Stops this member's replica.
    pub async fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        self.0.lease.withdraw();
        self.0.waiting.wake();
        if self.0.raft.shutdown().await.is_err() {
            tracing::warn!(group = self.0.replica.group.0, "the group did not stop in order");
        }
    }

    /// Answers a request that carries the sender's time. That time is recorded first. The answer
    /// carries this member's time, read last: see `clock.rs`.
    pub(crate) async fn answer(&self, time: Millis, request: Request<R>) -> Result<Bytes, RequestError> {
        self.0.clock.learn(time);
        let answer = self.handle(request).await?;
        Ok(answer.write(self.0.clock.known_time()))
    }

    async fn handle(&self, request: Request<R>) -> Result<Response<R>, RequestError> {
        let raft = &self.0.raft;
        match request {
            Request::Append(append) => {
                self.record_other_leader(append.vote, append.leader_commit);
                raft.append_entries(append).await.map(Response::Append)
            }
            Request::Vote(vote) => raft.vote(vote).await.map(Response::Vote),
            Request::PreVote(vote) => raft.pre_vote(vote).await.map(Response::Vote),
            Request::Transfer(transfer) => {
                // A leader that hands over has applied all of its log, and reported the changes.
                self.record_other_leader(*transfer.from_leader(), transfer.last_log_id().copied());
                let handled = raft.handle_transfer_leader(transfer).await;
                handled.map(|accepted| Response::Transfer { accepted: accepted.is_ok() }).map_err(RaftError::Fatal)
            }
            Request::Page { vote, snapshot, number, page } => {
                return self.take_page(vote, snapshot, number, page).await;
            }
        }
        .map_err(|error| self.has_failed(&error))
    }

    /// Records that another member leads, and its commit index, before its request is handled.
    fn record_other_leader(&self, vote: Vote, committed: Option<LogId>) {
        let own = || self.0.raft.metrics().borrow_watched().local_committed.map(|last| last.index);
        self.0.replica.reporting.record_other_term(vote.leader_id.term, committed.map(|last| last.index), own);
    }

    fn has_failed(&self, error: &impl ToString) -> RequestError {
        RequestError::Stopped { group: self.0.replica.group, why: error.to_string() }
    }

    /// Takes a page over. A page that arrived before is acknowledged again. A page that cannot be
    /// used cancels the snapshot.
    async fn take_page(
        &self,
        vote: Vote,
        snapshot: u64,
        number: u64,
        page: Bytes,
    ) -> Result<Response<R>, RequestError> {
        let group = self.0.replica.group;
        add(&self.0.counting.snapshot_bytes_received, page.len());
        let brought = {
            let mut slot = self.0.taking.lock();
            if number == 0 && slot.as_ref().is_none_or(|taking| taking.snapshot != snapshot) {
                *slot = Some(Taking::new(vote, snapshot));
            }
            let Some(taking) = slot.as_mut().filter(|taking| (taking.snapshot, taking.vote) == (snapshot, vote)) else {
                let why = format!("page {number} of a snapshot that did not begin");
                return Err(RequestError::Snapshot { group, why });
            };
            taking.last_ns = self.0.nanoseconds(R::Instant::now());
            if number != taking.next {
                return Ok(Response::NextPage(taking.next));
            }
            match taking.page(&self.0.replica.state, page) {
                Ok(Received::Page) => return Ok(Response::NextPage(taking.next)),
                Ok(Received::NoRoom) => {
                    *slot = None;
                    return Ok(Response::NextPage(0));
                }
                Ok(Received::Whole(meta, taken)) => {
                    *slot = None;
                    (meta, taken)
                }
                Err(why) => {
                    *slot = None;
                    return Err(RequestError::Snapshot { group, why });
                }
            }
        };
        let (meta, taken) = brought;
        self.record_other_leader(vote, meta.last_log_id);
        let snapshot = openraft::Snapshot { meta, snapshot: SnapshotData::Taken(Box::new(taken)) };
        let installed = self.0.raft.install_full_snapshot(vote, snapshot).await;
        installed.map(|answer| Response::Installed(answer.vote)).map_err(|error| self.has_failed(&error))
    }
}

impl<R: AsyncRuntime> Group<R, Partitions> {
    /// Like [`Group::propose`], for commands encoded by [`filbert_store::Encoder`], and with an
    /// answer. With a turn, the commands are applied once however often they are submitted, with
    /// the same answer. Without a turn, the caller must not retry commands that must not be applied
    /// twice.
    ///
    /// Dropping the future does not cancel the submission.
    ///
    /// # Errors
    /// See each [`SubmitError`]. Only [`SubmitError::Unknown`] leaves the outcome unknown.
    pub async fn submit(&self, turn: Option<Turn>, commands: Bytes) -> Result<Vec<OwnedReply>, SubmitError> {
        self.0.replica.state.check(&commands)?;
        let source = turn.map_or(Source::Plain, |turn| Source::Origin {
            origin: turn.origin,
            sequence: turn.sequence,
            unanswered: turn.unanswered,
        });
        let (sender, answer) = oneshot::channel();
        self.push(source, commands, Awaits::Replies(sender)).map_err(|(error, _)| error)?;
        answer.await.unwrap_or(Err(SubmitError::Unknown { group: self.0.replica.group }))
    }

    /// Reads a partition linearizably: the read sees all changes that were acknowledged on any
    /// member before it began. Served by a leader with a lease, under the partition's lock. `read`
    /// must change nothing beyond the effects of reads on a partition.
    ///
    /// # Errors
    /// This member has no lease, or lost it during the read.
    pub fn read<T>(
        &self,
        partition: PartitionId,
        read: impl FnOnce(&mut Partition, Millis) -> T,
    ) -> Result<T, ReadError> {
        let (group, member) = (self.0.replica.group, self.0.member);
        let Some(cell) = self.0.replica.state.cell(partition) else {
            return Err(ReadError::OtherGroup { partition, group });
        };
        let mut locked = cell.lock();
        let before = self.has_lease();
        if before.is_some() {
            let now = self.0.clock.read();
            let value = read(&mut locked, now);
            // Checked again afterwards: this thread may have been suspended in between for any
            // time.
            if self.has_lease() == before {
                return Ok(value);
            }
        }
        Err(ReadError::NoLease { member, group, leader: self.leader() })
    }

    /// Inspects a partition as it is on this member. The state may be old, or differ from the state
    /// of other members if a leader has no lease.
    pub fn inspect<T>(&self, partition: PartitionId, look: impl FnOnce(&mut Partition) -> T) -> Option<T> {
        self.0.replica.state.cell(partition).map(|cell| look(&mut cell.lock()))
    }
}
