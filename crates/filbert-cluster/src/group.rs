//! A group on one member: what is asked of it, and what other members ask of it.

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
use crate::appending::Hurry;
use crate::clock::GroupClock;
use crate::counters::{Counting, add};
use crate::lease::Lease;
use crate::link::Links;
use crate::partitions::Partitions;
use crate::proposer::{self, Awaits, Waiting};
use crate::raft_log::{RaftLog, Size};
use crate::replica::{Machine, Replica};
use crate::snapshot::{SnapshotData, Taking};
use crate::state_machine::StateMachine;
use crate::telling::Telling;
use crate::transport::Transport;
use crate::types::{LogId, Raft, Vote};
use crate::wire::{Request, Response, Source};
use crate::{
    GroupCounters, GroupError, GroupId, GroupSettings, MemberId, OriginId, OwnedReply, ReadError, RequestError,
    SubmitError, upkeep,
};

/// The time of day, in milliseconds since the Unix epoch. It may jump: groups make it go forward.
pub trait WallClock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Millis;
}

/// Whose a submission is, see [`Group::submit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// As [`Group::open_origin`] named it.
    pub origin: OriginId,
    /// Number of the submission; the first is 1, and each is one more than the one before.
    pub sequence: u64,
    /// The first submission whose answer may still be asked for.
    pub unanswered: u64,
}

pub(crate) struct Shared<R: AsyncRuntime, S: StateMachine> {
    pub(crate) member: MemberId,
    pub(crate) settings: GroupSettings,
    pub(crate) raft: Raft<R, S>,
    pub(crate) replica: Arc<Replica<S, R::Instant>>,
    pub(crate) lease: Lease,
    pub(crate) log_size: Arc<Size>,
    pub(crate) log: RaftLog,
    pub(crate) clock: Arc<GroupClock>,
    /// When requests were sent that members have acknowledged, in nanoseconds.
    pub(crate) acknowledged_ns: Arc<Acknowledged<u64>>,
    hurry: Arc<Hurry>,
    pub(crate) counting: Arc<Counting>,
    /// What the lease's nanoseconds are counted from.
    base: R::Instant,
    /// The leader's number and 1; 0 = not known.
    pub(crate) leader: AtomicU64,
    pub(crate) waiting: Arc<Waiting<S, R::Instant>>,
    taking: Mutex<Option<Taking<S>>>,
    stopped: AtomicBool,
}

fn nanoseconds_since<R: AsyncRuntime>(base: R::Instant, at: R::Instant) -> u64 {
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

/// A group on one member, over the state machine that its log changes. Clones are the same group.
pub struct Group<R: AsyncRuntime, S: StateMachine = Partitions>(pub(crate) Arc<Shared<R, S>>);

impl<R: AsyncRuntime, S: StateMachine> Clone for Group<R, S> {
    fn clone(&self) -> Self {
        Group(Arc::clone(&self.0))
    }
}

/// A point of a group's log, and of its time: see [`Group::read_point`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPoint {
    /// Index of an entry.
    pub index: u64,
    /// A time of the leader's reads. Entries that its reads had kept alive beyond it are told to the log before the index.
    pub time: Millis,
}

impl<R: AsyncRuntime, S: StateMachine> Group<R, S> {
    /// Starts a member's copy of a group, over a state machine with nothing in it. It takes part when others make it a learner, or by [`Group::form`].
    ///
    /// # Errors
    /// The settings contradict each other.
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
        let telling = Arc::<Telling>::default();
        let replica = Arc::new(Replica::new(group, state, settings.origins, Arc::clone(&clock), Arc::clone(&telling)));
        let log = RaftLog::new(settings.entry_bytes_max.saturating_mul(4));
        let (timeout, page_bytes) = (settings.request_timeout(), settings.page_bytes);
        let install_timeout = timeout.max(Duration::from_millis(settings.install_ms_max));
        let (commit_hold, hurry) = (Duration::from_millis(settings.commit_hold_ms), Arc::<Hurry>::default());
        let bytes_per_s_max = settings.snapshot_bytes_per_s_max.max(1);
        let of_links = Arc::clone(&clock);
        let state = PhantomData;
        let counting = Arc::<Counting>::default();
        let of_counting = Arc::clone(&counting);
        let (acknowledged_ns, base) = (Arc::<Acknowledged<u64>>::default(), R::Instant::now());
        let now_ns = move || nanoseconds_since::<R>(base, R::Instant::now());
        let links = Links {
            transport,
            member,
            group,
            clock: of_links,
            acknowledged_ns: Arc::clone(&acknowledged_ns),
            now_ns: Arc::new(now_ns),
            timeout,
            install_timeout,
            commit_hold,
            hurry: Arc::clone(&hurry),
            telling,
            page_bytes,
            bytes_per_s_max,
            counting: of_counting,
            state,
        };
        let machine = Machine(Arc::clone(&replica));
        let started = Raft::<R, S>::new(member, Arc::new(config), links, log.clone(), machine).await;
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
            hurry,
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

    /// Makes a new group of voters that hold nothing. Asked of one of them, once.
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

    /// What this member's copy has done since it started.
    #[must_use]
    pub fn counters(&self) -> GroupCounters {
        self.0.counting.read()
    }

    /// This member.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.0.member
    }

    /// Who leads, as far as this member knows.
    #[must_use]
    pub fn leader(&self) -> Option<MemberId> {
        self.0.leader.load(Ordering::SeqCst).checked_sub(1).map(MemberId)
    }

    /// The term in which the state machine has been told that this member leads.
    pub(crate) fn leading(&self) -> Option<u64> {
        let term = self.0.replica.leading.load(Ordering::SeqCst);
        (term != 0).then_some(term)
    }

    /// The state machine.
    #[must_use]
    pub fn state_machine(&self) -> &Arc<S> {
        &self.0.replica.state
    }

    /// Submits commands: applied together, in their order, at the leader's time. Neither waits nor tells anybody: `awaiting` goes to the state
    /// machine with the entry, or is told later ([`StateMachine::answer`]), or is dropped where the outcome is not known.
    ///
    /// # Errors
    /// They were not taken, and nothing was changed; `awaiting` comes back.
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
        let limit_bytes = self.0.settings.log_bytes_max.saturating_mul(2);
        if self.0.log_size.bytes.load(Ordering::Relaxed) > limit_bytes {
            return Err((SubmitError::Overloaded { group, limit_bytes }, awaits));
        }
        let limit_bytes = self.0.settings.waiting_bytes_max;
        let pushed = self.0.waiting.push(source, commands, awaits, limit_bytes);
        pushed.map_err(|awaits| (SubmitError::Overloaded { group, limit_bytes }, awaits))
    }

    /// Makes an origin, which submits in sequence. One that is not used is forgotten in favour of others.
    ///
    /// # Errors
    /// As [`Group::submit`]; repeating it does no harm.
    pub async fn open_origin(&self) -> Result<OriginId, SubmitError> {
        let (sender, answer) = oneshot::channel();
        self.push(Source::Open, Bytes::new(), Awaits::Origin(sender)).map_err(|(error, _)| error)?;
        answer.await.unwrap_or(Err(SubmitError::Unknown { group: self.0.replica.group }))
    }

    /// The term in which this member may serve reads at this moment.
    #[must_use]
    pub fn has_lease(&self) -> Option<u64> {
        self.0.lease.check(self.0.nanoseconds(R::Instant::now()))
    }

    /// Where the log must be applied to on a member, so that reads there find all that was acknowledged before this call.
    ///
    /// Entries that reads here have kept alive, and that others would find expired by then, are told to the log first.
    ///
    /// # Errors
    /// This member does not lead, or has no lease.
    pub async fn read_point(&self) -> Result<ReadPoint, SubmitError> {
        let before = self.has_lease();
        while before.is_some() && self.has_lease() == before {
            // In this order: what had been read by that time is in touches, and those that are applied are before the index.
            let time = self.0.clock.read();
            let touches = upkeep::touches(&self.0);
            if touches.is_empty() {
                let point = ReadPoint { index: self.0.replica.begun.load(Ordering::SeqCst), time };
                // Whoever asked waits until it has heard of the commit.
                self.0.hurry.to(point.index);
                // Another leader could have acknowledged more if the lease had ended in between.
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

    /// Waits until this member, whether it leads or not, has applied the log up to a point that the leader gave: reads here find
    /// what reads there found. Waits for ever if this member does not follow the group.
    pub async fn reach(&self, point: ReadPoint) {
        self.0.replica.reach(point).await;
    }

    /// The time at which a reader reads here, which every later leader will know of: the leader's own time where this member leads, else that
    /// of the latest [`Group::reach`]. Entries that the log has since brought are there as well; those that expire later are there still.
    #[must_use]
    pub fn read_time(&self) -> Millis {
        let leads = self.0.replica.leading.load(Ordering::SeqCst) != 0;
        let reached = if leads { None } else { self.0.clock.latest_reached() };
        reached.unwrap_or_else(|| self.0.clock.read())
    }

    /// Index of the last entry applied here, and all that the log decided: with the same index, it is the same on all members. Takes
    /// memory for everything: for tests, and for who looks for a defect.
    #[must_use]
    pub fn state(&self) -> (Option<u64>, Vec<u8>) {
        self.0.replica.state()
    }

    /// Index and sets of voters (two of them during a change) of the entries of the log that are here. For tests.
    #[must_use]
    pub fn voters_in_log(&self) -> Vec<(u64, Vec<BTreeSet<MemberId>>)> {
        self.0.log.voters()
    }

    /// Index and term of the entries of the log that are here. For tests.
    #[must_use]
    pub fn log_ids(&self) -> Vec<(u64, u64)> {
        self.0.log.ids()
    }

    /// Stops this member's copy.
    pub async fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        self.0.lease.withdraw();
        self.0.waiting.wake();
        if self.0.raft.shutdown().await.is_err() {
            tracing::warn!(group = self.0.replica.group.0, "the group did not stop in order");
        }
    }

    /// Answers a request that carries the sender's time. The time is taken note of first, and told last: see `clock.rs`.
    pub(crate) async fn answer(&self, time: Millis, request: Request<R>) -> Result<Bytes, RequestError> {
        self.0.clock.learn(time);
        let answer = self.handle(request).await?;
        Ok(answer.write(self.0.clock.told()))
    }

    async fn handle(&self, request: Request<R>) -> Result<Response<R>, RequestError> {
        let raft = &self.0.raft;
        match request {
            Request::Append(append) => {
                self.heard(append.vote, append.leader_commit);
                raft.append_entries(append).await.map(Response::Append)
            }
            Request::Vote(vote) => raft.vote(vote).await.map(Response::Vote),
            Request::PreVote(vote) => raft.pre_vote(vote).await.map(Response::Vote),
            Request::Transfer(transfer) => {
                // Who hands over has applied all of its log, and told of it.
                self.heard(*transfer.from_leader(), transfer.last_log_id().copied());
                let handled = raft.handle_transfer_leader(transfer).await;
                handled.map(|accepted| Response::Transfer { accepted: accepted.is_ok() }).map_err(RaftError::Fatal)
            }
            Request::Page { vote, snapshot, number, page } => {
                return self.take_page(vote, snapshot, number, page).await;
            }
        }
        .map_err(|error| self.has_failed(&error))
    }

    /// Takes note that another member leads, and of what it has committed, before that is followed.
    fn heard(&self, vote: Vote, committed: Option<LogId>) {
        let own = || self.0.raft.metrics().borrow_watched().local_committed.map(|last| last.index);
        self.0.replica.telling.heard(vote.leader_id.term, committed.map(|last| last.index), own);
    }

    fn has_failed(&self, error: &impl ToString) -> RequestError {
        RequestError::Stopped { group: self.0.replica.group, why: error.to_string() }
    }

    /// Takes a page over. A page that came before is answered again; one that cannot be used ends the snapshot.
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
            if number != taking.next {
                return Ok(Response::NextPage(taking.next));
            }
            match taking.page(&self.0.replica.state, page) {
                Ok(None) => return Ok(Response::NextPage(taking.next)),
                Ok(Some(brought)) => {
                    *slot = None;
                    brought
                }
                Err(why) => {
                    *slot = None;
                    return Err(RequestError::Snapshot { group, why });
                }
            }
        };
        let (meta, taken) = brought;
        self.heard(vote, meta.last_log_id);
        let snapshot = openraft::Snapshot { meta, snapshot: SnapshotData::Taken(Box::new(taken)) };
        let installed = self.0.raft.install_full_snapshot(vote, snapshot).await;
        installed.map(|answer| Response::Installed(answer.vote)).map_err(|error| self.has_failed(&error))
    }
}

impl<R: AsyncRuntime> Group<R, Partitions> {
    /// As [`Group::propose`], for commands as [`filbert_store::Encoder`] writes them, and with an answer. With a turn, they are applied once
    /// however often they are submitted, and answered alike; without one, do not repeat what must not happen twice.
    ///
    /// Dropping the future does not take the submission back.
    ///
    /// # Errors
    /// As each [`SubmitError`] says; only [`SubmitError::Unknown`] leaves open what happened.
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

    /// Reads a partition as it is: all that was acknowledged anywhere before the read began is there. Served by a leader with a lease, under
    /// the partition's lock; `read` must not change anything but what reads of a partition change.
    ///
    /// # Errors
    /// This member has no lease, or lost it while it read.
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
            // Asked again afterwards: this thread may have been stopped in between for any time.
            if self.has_lease() == before {
                return Ok(value);
            }
        }
        Err(ReadError::NoLease { member, group, leader: self.leader() })
    }

    /// Looks at what this member has of a partition, which may be old or, on a leader without a lease, not be what others see.
    pub fn inspect<T>(&self, partition: PartitionId, look: impl FnOnce(&mut Partition) -> T) -> Option<T> {
        self.0.replica.state.cell(partition).map(|cell| look(&mut cell.lock()))
    }
}
