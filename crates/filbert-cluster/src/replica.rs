//! A member's copy of a group: its state machine, and what the log decides beside it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::{AsyncRuntime, Instant, OptionalSend};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::awaiting::Awaiting;
use crate::clock::GroupClock;
use crate::group::ReadPoint;
use crate::origins::{OriginLimits, Origins, Turn};
use crate::proposer::Awaits;
use crate::snapshot::{SnapshotData, Taken};
use crate::state_machine::{Applying, EntryAt, StateMachine};
use crate::telling::Telling;
use crate::types::{Batch, LogId, Payload, SnapshotMeta, StoredMembership, Types};
use crate::wire::{Source, Submission, read_batch, read_replies, write_replies};
use crate::{GroupId, OriginId, SubmitError};

/// What the log decides beside the state machine.
#[derive(Clone, Default)]
pub(crate) struct Applied {
    pub(crate) last: Option<LogId>,
    pub(crate) membership: StoredMembership,
    pub(crate) origins: Origins,
}

/// A member's copy of a group, shared by readers, the log and snapshots. `T` is a moment of the group's runtime.
pub(crate) struct Replica<S: StateMachine, T> {
    pub(crate) group: GroupId,
    pub(crate) state: Arc<S>,
    pub(crate) applied: Mutex<Applied>,
    pub(crate) awaiting: Awaiting<Option<Awaits<S>>, T>,
    /// The term in which this member leads; 0 = it does not.
    pub(crate) leading: AtomicU64,
    pub(crate) telling: Arc<Telling>,
    /// Index of the entry that is being applied, or was last. Whatever was acknowledged here is in none after it.
    pub(crate) begun: AtomicU64,
    /// The term of the last entry that was applied.
    term: AtomicU64,
    /// Index of the last entry applied.
    pub(crate) reached: watch::Sender<u64>,
    clock: Arc<GroupClock>,
    limits: OriginLimits,
}

impl<S: StateMachine, T: Instant> Replica<S, T> {
    pub(crate) fn new(
        group: GroupId,
        state: Arc<S>,
        limits: OriginLimits,
        clock: Arc<GroupClock>,
        telling: Arc<Telling>,
    ) -> Self {
        let (applied, awaiting) = Default::default();
        let (leading, begun, term, reached) =
            (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), watch::Sender::new(0));
        Replica { group, state, applied, awaiting, leading, telling, begun, term, reached, clock, limits }
    }

    /// Applies an entry's batch.
    async fn apply(&self, term: u64, index: u64, batch: &Batch) -> Result<(), io::Error> {
        let entry = read_batch(batch.bytes.clone()).map_err(io::Error::other)?;
        self.state.reached(entry.requirement).await;
        // A partition that has seen a later time takes that one.
        self.clock.applied(entry.stamp);
        let mut awaiting = self.awaiting.take(batch.ticket).into_iter();
        let mut applying = Vec::with_capacity(entry.submissions.len());
        let (mut of_origins, mut told) = (Vec::new(), Vec::new());
        {
            let mut applied = self.applied.lock();
            for (place, submission) in (0u64..).zip(entry.submissions) {
                let Submission { source, touches, commands } = submission;
                let awaits = awaiting.next().flatten();
                if source == Source::Open {
                    let id = OriginId(index << 16 | place);
                    applied.origins.open(id, index, &self.limits);
                    if let Some(Awaits::Origin(sender)) = awaits {
                        // Whoever asked may have gone.
                        let _gone = sender.send(Ok(id));
                    }
                    continue;
                }
                let awaiting = match awaits {
                    Some(Awaits::Replies(awaiting)) => Some(awaiting),
                    Some(Awaits::Applied(sender)) => {
                        told.push(sender);
                        None
                    }
                    Some(Awaits::Origin(_)) | None => None,
                };
                let Source::Origin { origin, sequence, unanswered } = source else {
                    applying.push(Applying { touches, commands, awaiting, wants_replies: false });
                    continue;
                };
                let is_here_twice = of_origins.iter().any(|(_, of, at)| (*of, *at) == (origin, sequence));
                let answer = match applied.origins.turn(origin, sequence, unanswered, index) {
                    // The answer is not there yet: it is asked for again.
                    _ if is_here_twice => Err(SubmitError::Unknown { group: self.group }),
                    Turn::Next => {
                        of_origins.push((applying.len(), origin, sequence));
                        applying.push(Applying { touches, commands, awaiting, wants_replies: true });
                        continue;
                    }
                    Turn::Again(answer) => Ok(read_replies(answer).map_err(io::Error::other)?),
                    Turn::Refused(why) => Err(SubmitError::Origin(why)),
                };
                if let Some(awaiting) = awaiting {
                    self.state.answer(awaiting, answer);
                }
            }
        }
        // Another member may lead in a later term, though this one has not noticed.
        let leads = self.leading.load(Ordering::SeqCst) == term;
        let at = EntryAt { stamp: entry.stamp, leads, tells: self.telling.tells(term, index) };
        let replies = self.state.apply(at, applying).map_err(io::Error::other)?;
        told.into_iter().for_each(|sender| _ = sender.send(()));
        if !of_origins.is_empty() {
            let mut applied = self.applied.lock();
            for (place, origin, sequence) in of_origins {
                let replies = replies.get(place).map_or(&[][..], Vec::as_slice);
                applied.origins.answered(origin, sequence, write_replies(replies), &self.limits);
            }
        }
        Ok(())
    }

    /// Takes the place of what is here with what a snapshot has.
    fn install(&self, meta: &SnapshotMeta, taken: Taken<S>) {
        let mut applied = self.applied.lock();
        self.clock.applied(self.state.install(taken.import));
        *applied = Applied { last: meta.last_log_id, membership: meta.last_membership.clone(), origins: taken.origins };
        let index = meta.last_log_id.map_or(0, |last| last.index);
        self.begun.store(index, Ordering::SeqCst);
        self.reached.send_replace(index);
    }

    /// Waits until an entry is applied here, or was before; a time that reads of a leader had is known here then.
    pub(crate) async fn reach(&self, point: ReadPoint) {
        // The sender is here as long as this is.
        let mut reached = self.reached.subscribe();
        let _index = reached.wait_for(|reached| *reached >= point.index).await;
        self.clock.reached(point.time);
    }

    /// Forgets what reads here have kept alive, unknown to the log, when entries of a later term come: another member has led since, or
    /// could have.
    fn enter_term(&self, term: u64) {
        if self.term.fetch_max(term, Ordering::SeqCst) < term {
            self.state.forget_reads();
        }
    }

    /// Index of the last entry applied, and all that the log decided, as bytes: those of two replicas with the same index are the
    /// same. Takes memory for everything: for tests, and for whoever looks for a defect.
    pub(crate) fn state(&self) -> (Option<u64>, Vec<u8>) {
        let applied = self.applied.lock();
        let mut out = Vec::new();
        applied.origins.append(&mut out);
        out.extend_from_slice(&self.state.logged_state());
        (applied.last.map(|last| last.index), out)
    }

    fn meta(&self) -> SnapshotMeta {
        let applied = self.applied.lock();
        SnapshotMeta { last_log_id: applied.last, last_membership: applied.membership.clone() }
    }

    /// Touches that the log needs, see [`StateMachine::touches_until`].
    pub(crate) fn touches_until(&self, lease_ms: u64, limit: usize) -> Bytes {
        let now = self.clock.read();
        let ahead_ms = i64::try_from(lease_ms.saturating_mul(2)).unwrap_or(i64::MAX);
        self.state.touches_until(now, now.plus(ahead_ms), limit)
    }
}

/// The replica as the state machine of its log.
pub(crate) struct Machine<S: StateMachine, T>(pub(crate) Arc<Replica<S, T>>);

/// A snapshot is made when a member needs one: until then it is what its log position says.
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
                Payload::Normal(batch) => self.0.apply(term, entry.log_id.index, batch).await?,
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

    /// Runs between two entries, so that all of the state machine is as it was at one entry of the log.
    async fn get_current_snapshot(&mut self) -> Result<Option<SnapshotOf<R, S>>, io::Error> {
        let snapshot = SnapshotData::begin(&self.0);
        Ok(Some(openraft::Snapshot { meta: self.0.meta(), snapshot }))
    }
}
