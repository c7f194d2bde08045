//! A member's copy of a group: its partitions, and what the log decides beside them. Knows nothing of leaders.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use filbert_data::PartitionId;
use filbert_store::{
    Caller, Change, Command, Decoder, Encoder, LayoutSource, LogCommand, MapId, Millis, NoLayouts, NoObserver,
    Partition, PartitionSettings,
};
use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::{AsyncRuntime, OptionalSend};
use parking_lot::Mutex;

use crate::clock::GroupClock;
use crate::origins::{OriginLimits, Origins, Turn};
use crate::snapshot::{SnapshotData, Taken};
use crate::types::{Batch, LogId, Payload, SnapshotMeta, StoredMembership, Types};
use crate::wire::{Answer, OwnedReply, Source, Submission, read_batch, read_replies, write_replies};
use crate::{GroupId, OriginId};

/// What the log decides beside the partitions.
#[derive(Clone, Default)]
pub(crate) struct Applied {
    pub(crate) last: Option<LogId>,
    pub(crate) membership: StoredMembership,
    pub(crate) origins: Origins,
}

/// A member's copy of a group, shared by readers, the log and snapshots.
pub(crate) struct Replica {
    pub(crate) group: GroupId,
    groups: u32,
    partitions: Vec<Mutex<Partition>>,
    pub(crate) applied: Mutex<Applied>,
    clock: Arc<GroupClock>,
    limits: OriginLimits,
    hash_seed: u64,
    pub(crate) exporting: AtomicBool,
}

impl Replica {
    pub(crate) fn new(
        group: GroupId,
        groups: u32,
        partitions: u32,
        limits: OriginLimits,
        hash_seed: u64,
        clock: Arc<GroupClock>,
    ) -> Self {
        let ids = (0..partitions).filter(|id| GroupId::of(PartitionId(*id), groups) == group);
        let make = |id| Mutex::new(Partition::new(PartitionSettings { id: PartitionId(id), hash_seed }));
        Replica {
            group,
            groups: groups.max(1),
            partitions: ids.map(make).collect(),
            applied: Mutex::default(),
            clock,
            limits,
            hash_seed,
            exporting: AtomicBool::new(false),
        }
    }

    /// The partition's cell, if it is of this group.
    pub(crate) fn cell(&self, partition: PartitionId) -> Option<&Mutex<Partition>> {
        let place = usize::try_from(partition.0 / self.groups).ok()?;
        self.partitions.get(place).filter(|_| GroupId::of(partition, self.groups) == self.group)
    }

    pub(crate) fn cells(&self) -> &[Mutex<Partition>] {
        &self.partitions
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = PartitionId> + use<> {
        let (group, groups) = (self.group.0, self.groups);
        (0..self.partitions.len() as u32).map(move |place| PartitionId(place * groups + group))
    }

    pub(crate) fn settings(&self, id: PartitionId) -> PartitionSettings {
        PartitionSettings { id, hash_seed: self.hash_seed }
    }

    pub(crate) fn layouts(&self) -> &dyn LayoutSource {
        &NoLayouts
    }

    /// The touches that go ahead of commands, see [`Partition::touches_for`].
    pub(crate) fn touches_for(&self, commands: &Bytes, stamp: Millis) -> Bytes {
        let mut touches = Encoder::default();
        for (partition, command) in Decoder::new(commands).into_iter().flatten().flatten() {
            let (LogCommand::Change(command), Some(cell)) = (command, self.cell(partition)) else { continue };
            let mut touch = touching(&mut touches, partition, stamp);
            cell.lock().touches_for(&Command { now: stamp, ..command }, &mut touch);
        }
        if touches.is_empty() { Bytes::new() } else { touches.take().into() }
    }

    /// The touches that the log needs so that a new leader does not forget reads, see [`Partition::touches_until`].
    pub(crate) fn touches_until(&self, now: Millis, until: Millis, limit: usize) -> Bytes {
        let mut touches = Encoder::default();
        for (partition, cell) in self.ids().zip(&self.partitions) {
            let mut touch = touching(&mut touches, partition, now);
            cell.lock().touches_until(now, until, limit, &mut touch);
        }
        if touches.is_empty() { Bytes::new() } else { touches.take().into() }
    }

    /// Forgets the reads of earlier terms, see [`Partition::forget_reads`].
    pub(crate) fn forget_reads(&self) {
        self.partitions.iter().for_each(|cell| cell.lock().forget_reads());
    }

    /// Applies an entry's batch.
    fn apply(&self, index: u64, batch: &Batch, wants_answers: bool) -> Result<Vec<Answer>, io::Error> {
        let (stamp, submissions) = read_batch(batch.0.clone()).map_err(io::Error::other)?;
        // A partition that has seen a later time takes that one.
        let now = stamp;
        self.clock.applied(stamp);
        let mut applied = self.applied.lock();
        let mut answers = Vec::new();
        for (place, submission) in (0u64..).zip(&submissions) {
            let answer = match submission.source {
                Source::Plain => Answer::Replies(self.apply_commands(submission, now)?),
                Source::Open => {
                    let id = OriginId(index << 16 | place);
                    applied.origins.open(id, index, &self.limits);
                    Answer::Opened(id)
                }
                Source::Origin { origin, sequence, unanswered } => {
                    match applied.origins.turn(origin, sequence, unanswered, index) {
                        Turn::Next => {
                            let replies = self.apply_commands(submission, now)?;
                            applied.origins.answered(origin, write_replies(&replies), &self.limits);
                            Answer::Replies(replies)
                        }
                        Turn::Again(answer) => Answer::Replies(read_replies(answer).map_err(io::Error::other)?),
                        Turn::Refused(why) => Answer::Refused(why),
                    }
                }
            };
            if wants_answers {
                answers.push(answer);
            }
        }
        drop(applied);
        Ok(answers)
    }

    fn apply_commands(&self, submission: &Submission, now: Millis) -> Result<Vec<OwnedReply>, io::Error> {
        let mut replies = Vec::new();
        for (bytes, is_touch) in [(&submission.touches, true), (&submission.commands, false)] {
            if bytes.is_empty() {
                continue;
            }
            for command in Decoder::new(bytes).map_err(io::Error::other)? {
                let (id, command) = command.map_err(io::Error::other)?;
                let command = match command {
                    // The leader's stamp is the time at which everything of a batch happens.
                    LogCommand::Change(command) => LogCommand::Change(Command { now, ..command }),
                    command => command,
                };
                let Some(cell) = self.cell(id) else {
                    return Err(io::Error::other(format!("{id} is not of group {}", self.group)));
                };
                let mut partition = cell.lock();
                let reply = partition.apply_logged(&command, self.layouts(), &mut NoObserver);
                if !is_touch {
                    replies.push(reply.into());
                }
            }
        }
        Ok(replies)
    }

    /// Takes the place of what is here with what a snapshot has.
    fn install(&self, meta: &SnapshotMeta, taken: Taken) -> Result<(), io::Error> {
        if taken.partitions.len() != self.partitions.len() {
            return Err(io::Error::other("a snapshot with another number of partitions"));
        }
        let mut applied = self.applied.lock();
        for (cell, partition) in self.partitions.iter().zip(taken.partitions) {
            self.clock.applied(partition.time());
            *cell.lock() = partition;
        }
        *applied = Applied { last: meta.last_log_id, membership: meta.last_membership.clone(), origins: taken.origins };
        Ok(())
    }

    /// Index of the last entry applied, and all that the log decided, as bytes: those of two replicas with the same index are the
    /// same. Takes memory for everything: for tests, and for who looks for a defect.
    pub(crate) fn state(&self) -> (Option<u64>, Vec<u8>) {
        let applied = self.applied.lock();
        let mut out = Vec::new();
        applied.origins.append(&mut out);
        self.partitions.iter().for_each(|cell| out.extend_from_slice(&cell.lock().logged_state()));
        (applied.last.map(|last| last.index), out)
    }
}

fn touching(touches: &mut Encoder, partition: PartitionId, now: Millis) -> impl FnMut(MapId, &[u8], Millis) {
    move |map, key, read_at| {
        let change = Change::Touch { key, read_at };
        // A key that is in the store is short enough.
        let _fits = touches.push(partition, &Command { map, now, caller: Caller::default(), change }.into());
    }
}

/// The replica as the state machine of its log.
pub(crate) struct Machine(pub(crate) Arc<Replica>);

/// A snapshot is made when a member needs one: until then it is what its log position says.
pub(crate) struct Positions(Arc<Replica>);

impl Replica {
    fn meta(&self) -> SnapshotMeta {
        let applied = self.applied.lock();
        SnapshotMeta { last_log_id: applied.last, last_membership: applied.membership.clone() }
    }
}

impl<R: AsyncRuntime> RaftSnapshotBuilder<Types<R>> for Positions {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> Result<openraft::alias::SnapshotOf<Types<R>, SnapshotData>, io::Error> {
        Ok(openraft::Snapshot { meta: self.0.meta(), snapshot: SnapshotData::Position })
    }
}

impl<R: AsyncRuntime> RaftStateMachine<Types<R>> for Machine {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = Positions;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let meta = self.0.meta();
        Ok((meta.last_log_id, meta.last_membership))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<Types<R>>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(entry) = entries.next().await {
            let (entry, responder) = entry?;
            let answers = match &entry.payload {
                Payload::Blank => Vec::new(),
                Payload::Normal(batch) => self.0.apply(entry.log_id.index, batch, responder.is_some())?,
                Payload::Membership(membership) => {
                    self.0.applied.lock().membership = StoredMembership::new(Some(entry.log_id), membership.clone());
                    Vec::new()
                }
            };
            self.0.applied.lock().last = Some(entry.log_id);
            if let Some(responder) = responder {
                responder.send(answers);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Positions {
        Positions(Arc::clone(&self.0))
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotData) -> Result<(), io::Error> {
        match snapshot {
            SnapshotData::Taken(taken) => self.0.install(meta, *taken),
            SnapshotData::Position | SnapshotData::Making(_) => {
                Err(io::Error::other("a snapshot that was not brought"))
            }
        }
    }

    /// Runs between two entries, so that all partitions are as they were at one entry of the log.
    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<openraft::alias::SnapshotOf<Types<R>, SnapshotData>>, io::Error> {
        let snapshot = SnapshotData::begin(&self.0);
        Ok(Some(openraft::Snapshot { meta: self.0.meta(), snapshot }))
    }
}
