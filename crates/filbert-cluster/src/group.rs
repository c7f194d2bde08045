//! A group on one member, and its operations.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::Guard;
use bytes::Bytes;
use filbert_data::PartitionId;
use filbert_store::{Millis, Partition};
use openraft::async_runtime::WatchReceiver;
use openraft::impls::EmptyNode;
use openraft::{AsyncRuntime, Instant};
use tokio::sync::oneshot;

use crate::clock::GroupClock;
use crate::partitions::Partitions;
use crate::replica::ReadPoint;
use crate::seat::{Common, Seat};
use crate::shared::Shared;
use crate::state_machine::StateMachine;
use crate::transport::Transport;
use crate::waiting::Awaits;
use crate::wire::{Request, Source};
use crate::{
    GroupCounters, GroupError, GroupId, GroupSettings, MemberId, OriginId, OwnedReply, ReadError, RequestError,
    SubmitError, WallClock, upkeep,
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
pub struct Group<R: AsyncRuntime, S: StateMachine = Partitions>(pub(crate) Arc<Seat<R, S>>);

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
        let clock = Arc::new(GroupClock::new(wall, settings.clock_reserve_ms()));
        let common = Common { member, group, settings, transport, clock, state, counting: Arc::default() };
        Ok(Group(Arc::new(Seat::new(common).await?)))
    }

    /// The current replica, for a short use.
    pub(crate) fn current(&self) -> Guard<Arc<Shared<R, S>>> {
        self.0.current()
    }

    /// The current replica, for a use that waits for something.
    pub(crate) fn current_owned(&self) -> Arc<Shared<R, S>> {
        self.0.current_owned()
    }

    pub(crate) fn group(&self) -> GroupId {
        self.0.common.group
    }

    pub(crate) fn settings(&self) -> &GroupSettings {
        &self.0.common.settings
    }

    /// Forms a new group of voters without data. Called on one of them, once.
    ///
    /// # Errors
    /// The group has a log already.
    pub async fn form(&self, voters: &BTreeSet<MemberId>) -> Result<(), GroupError> {
        let nodes: std::collections::BTreeMap<_, _> = voters.iter().map(|id| (*id, EmptyNode::new())).collect();
        self.current_owned()
            .raft
            .initialize(nodes)
            .await
            .map_err(|error| self.failed("cannot be formed", error.to_string()))
    }

    pub(crate) fn failed(&self, what: &'static str, why: String) -> GroupError {
        self.0.common.failed(what, why)
    }

    /// The counters of this member's replica since it started.
    #[must_use]
    pub fn counters(&self) -> GroupCounters {
        self.0.common.counting.read()
    }

    /// The id of this member.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.0.common.member
    }

    /// The leader, as far as this member knows.
    #[must_use]
    pub fn leader(&self) -> Option<MemberId> {
        self.current().leader.load(Ordering::SeqCst).checked_sub(1).map(MemberId)
    }

    /// The latest term that this member knows.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.current().raft.metrics().borrow_watched().current_term
    }

    /// Whether this member has nothing of the group: no entry and no snapshot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current().log.last().is_none()
    }

    /// Whether this member has a vote in the group, by its own log.
    #[must_use]
    pub fn votes(&self) -> bool {
        let metrics = self.current().raft.metrics();
        let now = metrics.borrow_watched();
        now.membership_config.voter_ids().any(|voter| voter == self.member())
    }

    /// The term in which the state machine has been notified that this member leads.
    pub(crate) fn leading(&self) -> Option<u64> {
        let term = self.current().replica.leading.load(Ordering::SeqCst);
        (term != 0).then_some(term)
    }

    /// The state machine.
    #[must_use]
    pub fn state_machine(&self) -> &Arc<S> {
        &self.0.common.state
    }

    /// Submits commands. They are applied together, in order, at the leader's time. Does not wait:
    /// `awaiting` is passed to the state machine with the entry or with an error
    /// ([`StateMachine::answer`]), or is dropped if the outcome is unknown.
    ///
    /// # Errors
    /// The commands were not accepted, and nothing was changed. Returns `awaiting`.
    pub fn propose(&self, commands: Bytes, awaiting: S::Awaiting) -> Result<(), (SubmitError, S::Awaiting)> {
        if let Err(error) = self.state_machine().check(&commands) {
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
        let (group, member, replica) = (self.group(), self.member(), self.current());
        let leader = self.leader();
        if leader != Some(member) || replica.has_stopped() {
            return Err((SubmitError::NotLeader { member, group, leader }, awaits));
        }
        let (bytes, bytes_max) = (commands.len(), self.settings().submission_bytes_max());
        if bytes > bytes_max {
            return Err((SubmitError::TooLong { group, bytes, bytes_max }, awaits));
        }
        let limit_bytes = self.settings().log_bytes_max;
        if replica.log_size.bytes.load(Ordering::Relaxed) > limit_bytes {
            return Err((SubmitError::Overloaded { group, limit_bytes }, awaits));
        }
        let limit_bytes = self.settings().waiting_bytes_max;
        let pushed = replica.waiting.push(source, commands, awaits, limit_bytes);
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
        answer.await.unwrap_or(Err(SubmitError::Unknown { group: self.group() }))
    }

    /// The term in which this member may serve reads now.
    #[must_use]
    pub fn has_lease(&self) -> Option<u64> {
        let replica = self.current();
        replica.lease.check(replica.nanoseconds(R::Instant::now()))
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
            let time = self.0.common.clock.read();
            let touches = upkeep::touches(&self.current());
            if touches.is_empty() {
                let point = ReadPoint { index: self.current().replica.begun.load(Ordering::SeqCst), time };
                // The caller waits until its member has learned of the commit.
                self.current().urgent_commits.request_up_to(point.index);
                // If the lease has ended in between, another leader may have acknowledged more
                // changes.
                if self.has_lease() == before {
                    return Ok(point);
                }
                break;
            }
            let (sender, applied) = oneshot::channel();
            self.push(Source::Plain, touches, Awaits::Applied(sender)).map_err(|(error, _)| error)?;
            applied.await.map_err(|_| SubmitError::Unknown { group: self.group() })?;
        }
        let (member, group) = (self.member(), self.group());
        let leader = self.leader().filter(|leader| *leader != member);
        Err(SubmitError::NotLeader { member, group, leader })
    }

    /// Waits until this member has applied the log up to a read point of the leader: reads here
    /// then see what reads of the leader saw. The member may be the leader or a follower. Waits for
    /// ever if this member does not follow the group.
    pub async fn reach(&self, point: ReadPoint) {
        self.current_owned().replica.reach(point).await;
    }

    /// The time of reads on this member. Every later leader will know of it. On a leader this is
    /// its own read time, else the time of the latest [`Group::reach`]. Entries that the log has
    /// added since are visible as well. Entries that expire later are still visible.
    #[must_use]
    pub fn read_time(&self) -> Millis {
        let leads = self.current().replica.leading.load(Ordering::SeqCst) != 0;
        let reached = if leads { None } else { self.0.common.clock.latest_reached() };
        reached.unwrap_or_else(|| self.0.common.clock.read())
    }

    /// The index of the last entry applied here, and the logged state as bytes: with the same
    /// index, it is the same on all members. Needs memory for the whole state. For tests and for
    /// debugging.
    #[must_use]
    pub fn state(&self) -> (Option<u64>, Vec<u8>) {
        self.current().replica.state()
    }

    /// The index and the sets of voters (two of them during a change) of the membership entries in
    /// the log of this member. For tests.
    #[must_use]
    pub fn voters_in_log(&self) -> Vec<(u64, Vec<BTreeSet<MemberId>>)> {
        self.current().log.voters()
    }

    /// The index and the term of the entries in the log of this member. For tests.
    #[must_use]
    pub fn log_ids(&self) -> Vec<(u64, u64)> {
        self.current().log.ids()
    }

    /// Stops this member's replica.
    pub async fn stop(&self) {
        self.current_owned().stop().await;
    }

    /// Answers a request that carries the sender's time. That time is recorded first. The answer
    /// carries this member's time, read last: see `clock.rs`.
    pub(crate) async fn answer(&self, time: Millis, request: Request<R>) -> Result<Bytes, RequestError> {
        let clock = &self.0.common.clock;
        clock.learn(time);
        let _handled = self.0.begin_request().await;
        let answer = self.current_owned().handle(request).await?;
        Ok(answer.write(clock.known_time()))
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
        self.state_machine().check(&commands)?;
        let source = turn.map_or(Source::Plain, |turn| Source::Origin {
            origin: turn.origin,
            sequence: turn.sequence,
            unanswered: turn.unanswered,
        });
        let (sender, answer) = oneshot::channel();
        self.push(source, commands, Awaits::Replies(sender)).map_err(|(error, _)| error)?;
        answer.await.unwrap_or(Err(SubmitError::Unknown { group: self.group() }))
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
        let (group, member) = (self.group(), self.member());
        let Some(cell) = self.state_machine().cell(partition) else {
            return Err(ReadError::OtherGroup { partition, group });
        };
        let mut locked = cell.lock();
        let before = self.has_lease();
        if before.is_some() {
            let now = self.0.common.clock.read();
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
        self.state_machine().cell(partition).map(|cell| look(&mut cell.lock()))
    }
}
