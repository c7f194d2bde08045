//! A member's replica of a group: its state machine, and the state that the log decides beside it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use filbert_store::Millis;
use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::{AsyncRuntime, Instant, OptionalSend};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tracing::Instrument;

use crate::applied::Applied;
use crate::awaiting::Awaiting;
use crate::clock::GroupClock;
use crate::origins::{OriginLimits, SequenceCheck};
use crate::reporting::Reporting;
use crate::snapshot::{SnapshotData, Taken};
use crate::state_machine::{Applying, EntryAt, StateMachine};
use crate::types::{Batch, LogId, Payload, SnapshotMeta, StoredMembership, Types};
use crate::waiting::Awaits;
use crate::wire::{Source, Submission, read_batch, read_replies, write_replies};
use crate::{GroupId, OriginId, SubmitError};

/// A point in a group's log and time, see [`Group::read_point`](crate::Group::read_point).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPoint {
    /// The index of an entry.
    pub index: u64,
    /// A time of the leader's reads. Entries that its reads had kept alive beyond it are recorded
    /// in the log before the index.
    pub time: Millis,
}

/// A member's replica of a group, shared by readers, the log and snapshots. `T` is an instant of
/// the group's runtime.
pub(crate) struct Replica<S: StateMachine, T> {
    pub(crate) group: GroupId,
    pub(crate) state: Arc<S>,
    pub(crate) applied: Mutex<Applied>,
    pub(crate) awaiting: Awaiting<Option<Awaits<S>>, T>,
    /// The term in which this member leads. 0 = it does not lead.
    pub(crate) leading: AtomicU64,
    pub(crate) reporting: Arc<Reporting>,
    /// The index of the entry that is being applied, or was applied last. No later entry has been
    /// acknowledged here.
    pub(crate) begun: AtomicU64,
    /// The term of the last applied entry.
    term: AtomicU64,
    /// The index of the last applied entry.
    pub(crate) reached: watch::Sender<u64>,
    clock: Arc<GroupClock>,
    limits: OriginLimits,
    /// Whether this replica changes the state machine no more: another replica does.
    is_closed: RwLock<bool>,
}

impl<S: StateMachine, T: Instant> Replica<S, T> {
    pub(crate) fn new(group: GroupId, state: Arc<S>, limits: OriginLimits, clock: Arc<GroupClock>) -> Self {
        Replica {
            group,
            state,
            applied: Mutex::default(),
            awaiting: Awaiting::default(),
            leading: AtomicU64::new(0),
            reporting: Arc::default(),
            begun: AtomicU64::new(0),
            term: AtomicU64::new(0),
            reached: watch::Sender::new(0),
            clock,
            limits,
            is_closed: RwLock::new(false),
        }
    }

    /// Resets the state machine, and ends its changes by this replica.
    pub(crate) fn close(&self) {
        let mut is_closed = self.is_closed.write();
        *is_closed = true;
        *self.applied.lock() = Applied::default();
        self.state.reset();
    }

    /// Applies the batch of an entry.
    async fn apply(&self, term: u64, index: u64, batch: &Batch) -> Result<(), io::Error> {
        let entry = read_batch(batch.bytes.clone()).map_err(io::Error::other)?;
        self.state.reached(entry.requirement).await;
        // A partition that has seen a later time uses that time.
        self.clock.applied(entry.stamp);
        let mut awaiting = self.awaiting.take(batch.ticket).into_iter();
        let mut applying = Vec::with_capacity(entry.submissions.len());
        let (mut of_origins, mut applied_senders) = (Vec::new(), Vec::new());
        {
            let mut applied = self.applied.lock();
            for (place, submission) in (0u64..).zip(entry.submissions) {
                let Submission { source, touches, commands } = submission;
                let awaits = awaiting.next().flatten();
                if source == Source::Open {
                    let id = OriginId(index << 16 | place);
                    applied.origins.open(id, index, &self.limits);
                    if let Some(Awaits::Origin(sender)) = awaits {
                        // The waiter may have gone.
                        let _gone = sender.send(Ok(id));
                    }
                    continue;
                }
                let awaiting = match awaits {
                    Some(Awaits::Replies(awaiting)) => Some(awaiting),
                    Some(Awaits::Applied(sender)) => {
                        applied_senders.push(sender);
                        None
                    }
                    Some(Awaits::Origin(_)) | None => None,
                };
                let Source::Origin { origin, sequence, unanswered } = source else {
                    applying.push(Applying { touches, commands, awaiting, wants_replies: false });
                    continue;
                };
                let is_here_twice = of_origins.iter().any(|(_, of, at)| (*of, *at) == (origin, sequence));
                let answer = match applied.origins.check_sequence(origin, sequence, unanswered, index) {
                    // The first answer does not exist yet: the origin will retry.
                    _ if is_here_twice => Err(SubmitError::Unknown { group: self.group }),
                    SequenceCheck::Next => {
                        of_origins.push((applying.len(), origin, sequence));
                        applying.push(Applying { touches, commands, awaiting, wants_replies: true });
                        continue;
                    }
                    SequenceCheck::Repeated(answer) => Ok(read_replies(answer).map_err(io::Error::other)?),
                    SequenceCheck::Refused(why) => Err(SubmitError::Origin(why)),
                };
                if let Some(awaiting) = awaiting {
                    self.state.answer(awaiting, answer);
                }
            }
        }
        // Another member may lead in a later term, although this member has not noticed it.
        let leads = self.leading.load(Ordering::SeqCst) == term;
        let at = EntryAt { stamp: entry.stamp, leads, reports_events: self.reporting.reports(term, index) };
        let replies = {
            let is_closed = self.is_closed.read();
            if *is_closed {
                return Ok(());
            }
            self.state.apply(at, applying).map_err(io::Error::other)?
        };
        applied_senders.into_iter().for_each(|sender| _ = sender.send(()));
        if !of_origins.is_empty() {
            let mut applied = self.applied.lock();
            for (place, origin, sequence) in of_origins {
                let replies = replies.get(place).map_or(&[][..], Vec::as_slice);
                applied.origins.answered(origin, sequence, write_replies(replies), &self.limits);
            }
        }
        Ok(())
    }

    /// Replaces the state of this replica with a snapshot.
    fn install(&self, meta: &SnapshotMeta, taken: Taken<S>) {
        let is_closed = self.is_closed.read();
        if *is_closed {
            return;
        }
        let mut applied = self.applied.lock();
        self.clock.applied(self.state.install(taken.import));
        *applied = Applied { last: meta.last_log_id, membership: meta.last_membership.clone(), origins: taken.origins };
        let index = meta.last_log_id.map_or(0, |last| last.index);
        self.begun.store(index, Ordering::SeqCst);
        self.reached.send_replace(index);
    }

    /// Waits until a read point is reached: its entry is applied here, and the clock has recorded
    /// its time.
    pub(crate) async fn reach(&self, point: ReadPoint) {
        // The sender lives as long as `self`: the wait does not fail.
        let mut reached = self.reached.subscribe();
        let _index = reached.wait_for(|reached| *reached >= point.index).await;
        self.clock.reached(point.time);
    }

    /// Forgets reads that are not recorded in the log, when the first entry of a later term is
    /// applied: another member has led since, or could have.
    fn enter_term(&self, term: u64) {
        if self.term.fetch_max(term, Ordering::SeqCst) < term {
            self.state.forget_reads();
        }
    }

    /// The index of the last applied entry, and the logged state as bytes. Two replicas with the
    /// same index have the same bytes. Needs memory for the whole state. For tests and for
    /// debugging.
    pub(crate) fn state(&self) -> (Option<u64>, Vec<u8>) {
        let applied = self.applied.lock();
        let mut out = Vec::new();
        applied.origins.append(&mut out);
        out.extend_from_slice(&self.state.logged_state());
        (applied.last.map(|last| last.index), out)
    }

    fn meta(&self) -> SnapshotMeta {
        self.applied.lock().meta()
    }

    /// The touches that must be recorded in the log, see [`StateMachine::touches_until`]: of
    /// entries that would expire before another leader serves. That is a lease, a random time of up
    /// to another lease, two rounds of votes, and the time since the last touches were recorded.
    pub(crate) fn touches_until(&self, lease_ms: u64, limit: usize) -> Bytes {
        let now = self.clock.read();
        let ahead_ms = i64::try_from(lease_ms.saturating_mul(4)).unwrap_or(i64::MAX);
        self.state.touches_until(now, now.plus(ahead_ms), limit)
    }
}

/// The replica as the state machine of openraft.
pub(crate) struct Machine<S: StateMachine, T>(pub(crate) Arc<Replica<S, T>>);

/// Builds snapshots that are only a log position. The contents are exported when a member needs
/// them.
pub(crate) struct Positions<S: StateMachine, T>(Arc<Replica<S, T>>);

type SnapshotOf<R, S> = openraft::alias::SnapshotOf<Types<R>, SnapshotData<S>>;

impl<R, S> RaftSnapshotBuilder<Types<R>> for Positions<S, R::Instant>
where
    R: AsyncRuntime,
    S: StateMachine,
{
    type SnapshotData = SnapshotData<S>;

    async fn build_snapshot(&mut self) -> Result<SnapshotOf<R, S>, io::Error> {
        Ok(openraft::Snapshot { meta: self.0.meta(), snapshot: SnapshotData::Position })
    }
}

impl<R, S> RaftStateMachine<Types<R>> for Machine<S, R::Instant>
where
    R: AsyncRuntime,
    S: StateMachine,
{
    type SnapshotData = SnapshotData<S>;
    type SnapshotBuilder = Positions<S, R::Instant>;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let meta = self.0.meta();
        Ok((meta.last_log_id, meta.last_membership))
    }

    async fn apply<E>(&mut self, mut entries: E) -> Result<(), io::Error>
    where
        E: Stream<Item = Result<EntryResponder<Types<R>>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(entry) = entries.next().await {
            let (entry, responder) = entry?;
            let term = **entry.log_id.committed_leader_id();
            self.0.enter_term(term);
            self.0.begun.store(entry.log_id.index, Ordering::SeqCst);
            match &entry.payload {
                Payload::Blank => {}
                Payload::Normal(batch) => {
                    let index = entry.log_id.index;
                    let span = tracing::debug_span!("apply", group = self.0.group.0, index);
                    self.0.apply(term, index, batch).instrument(span).await?;
                }
                Payload::Membership(membership) => {
                    self.0.applied.lock().membership = StoredMembership::new(Some(entry.log_id), membership.clone());
                }
            }
            self.0.applied.lock().last = Some(entry.log_id);
            self.0.reached.send_replace(entry.log_id.index);
            if let Some(responder) = responder {
                responder.send(());
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Positions<S, R::Instant> {
        Positions(Arc::clone(&self.0))
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotData<S>) -> Result<(), io::Error> {
        match snapshot {
            SnapshotData::Taken(taken) => {
                self.0.install(meta, *taken);
                Ok(())
            }
            SnapshotData::Position | SnapshotData::Making(_) => {
                Err(io::Error::other("a snapshot that was not brought"))
            }
        }
    }

    /// Runs between two entries, so that the whole state machine is in the state after one entry of
    /// the log.
    async fn get_current_snapshot(&mut self) -> Result<Option<SnapshotOf<R, S>>, io::Error> {
        let snapshot = SnapshotData::begin(&self.0.state, &self.0.applied);
        Ok(Some(openraft::Snapshot { meta: self.0.meta(), snapshot }))
    }
}
