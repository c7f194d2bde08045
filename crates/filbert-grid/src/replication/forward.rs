//! Changes of partitions that another member leads: sent to the leader, submitted there, and
//! answered here.
//!
//! ```text
//!  here: Forwards ── Replicator::forward(group, changes) ──► leader: Grid::apply_forwarded
//!                                                                │ Map::submit, its log
//!        pending replies ◄── one answer for each change ◄────────┘
//! ```
//!
//! The leader makes its own decisions (memory limit, order of waiters). A change is applied once,
//! or its outcome is unknown: this module never sends a change again that may have been applied.

use std::sync::Arc;
use std::time::Duration;

use filbert_data::PartitionId;
use filbert_store::{Change, CodecError, Decoder, Encoder, LogCommand, Millis, Reply};
use parking_lot::Mutex;

use super::Submissions;
use crate::errors::GridError;
use crate::grid::Grid;
use crate::groups::{GroupId, SubmitError};
use crate::map::{Map, Refused};
use crate::map_core::MapCore;
use crate::replicator::{ForwardedAnswer, PendingAnswer, WhenLocked};
use crate::shared::Shared;
use crate::waiters::ParkedReply;

/// Changes on their way to the leaders of their groups.
pub(crate) struct Forwards {
    shared: Arc<Shared>,
    wait: Option<Duration>,
    open: Vec<(GroupId, Encoder, Vec<ParkedReply>)>,
}

impl Forwards {
    /// Creates an empty set. `wait` is the time for which each change waits for a locked key.
    /// Without it, the answer is [`Reply::Locked`].
    pub(crate) fn new(shared: &Arc<Shared>, wait: Option<Duration>) -> Self {
        Forwards { shared: shared.clone(), wait, open: Vec::new() }
    }

    /// Bytes of changes that are not sent yet.
    pub(crate) fn bytes(&self) -> usize {
        self.open.iter().map(|(_, changes, _)| changes.as_bytes().len()).sum()
    }

    /// Adds a change.
    pub(crate) fn push(&mut self, partition: PartitionId, command: &LogCommand<'_>, reply: ParkedReply) {
        let Some(replication) = &self.shared.replication else { return };
        let group = replication.group_of(partition);
        let place = self.open.iter().position(|(of, ..)| *of == group).unwrap_or_else(|| {
            self.open.push((group, Encoder::default(), Vec::new()));
            self.open.len() - 1
        });
        let Some((_, changes, replies)) = self.open.get_mut(place) else { return };
        match changes.push(partition, command) {
            Ok(()) => replies.push(reply),
            Err(too_long) => reply(Err(GridError::IllegalArgument(too_long.to_string()))),
        }
    }

    /// Sends all changes. Must not be called under a partition's lock.
    pub(crate) fn send(&mut self) {
        let Some(replication) = &self.shared.replication else { return };
        for (group, mut changes, replies) in std::mem::take(&mut self.open) {
            let done = Box::new(move |answers| deliver_answers(group, answers, replies));
            replication.replicator.forward(group, changes.take(), self.wait, done);
        }
    }
}

fn deliver_answers(group: GroupId, answers: Result<Vec<ForwardedAnswer>, SubmitError>, replies: Vec<ParkedReply>) {
    match answers {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for reply in replies {
                reply(answers.next().unwrap_or(Err(SubmitError::Unknown { group }.into())));
            }
        }
        Err(why) => replies.into_iter().for_each(|reply| reply(Err(why.clone().into()))),
    }
}

/// Whether a change was not applied because another member leads the partition, so that it can be
/// forwarded.
pub(crate) fn is_led_elsewhere<T>(outcome: &Result<T, Refused>) -> bool {
    matches!(outcome, Err(Refused::Error(GridError::Submit(SubmitError::NotLeader { .. }))))
}

/// Collects the answers to the changes of another member.
struct AnswerCollector {
    answers: Mutex<CollectedAnswers>,
}

struct CollectedAnswers {
    answers: Vec<Option<ForwardedAnswer>>,
    missing: usize,
    done: Option<Box<dyn FnOnce(Vec<ForwardedAnswer>) + Send>>,
}

impl AnswerCollector {
    fn answer(&self, place: usize, answer: ForwardedAnswer) {
        let mut collected = self.answers.lock();
        if let Some(slot @ None) = collected.answers.get_mut(place) {
            *slot = Some(answer);
            collected.missing -= 1;
        }
        if collected.missing > 0 {
            return;
        }
        let Some(done) = collected.done.take() else { return };
        let answers = std::mem::take(&mut collected.answers);
        drop(collected);
        done(answers.into_iter().flatten().collect());
    }

    fn reply(self: &Arc<Self>, place: usize) -> ParkedReply {
        let collector = self.clone();
        Box::new(move |answer| collector.answer(place, answer.map(Reply::into_owned)))
    }
}

impl Grid {
    /// Applies the changes that another member has forwarded, encoded by [`Encoder`], and calls
    /// `done` with one answer for each. A change with a locked key waits for `wait`. Without
    /// `wait`, it is answered with [`Reply::Locked`].
    ///
    /// # Errors
    /// The changes cannot be decoded. None was applied.
    pub fn apply_forwarded(
        self: &Arc<Self>,
        changes: &[u8],
        wait: Option<Duration>,
        done: Box<dyn FnOnce(Vec<ForwardedAnswer>) + Send>,
    ) -> Result<(), CodecError> {
        let commands: Vec<(PartitionId, LogCommand<'_>)> = Decoder::new(changes)?.collect::<Result<_, _>>()?;
        let missing = commands.len();
        if missing == 0 {
            done(Vec::new());
            return Ok(());
        }
        let answers = (0..missing).map(|_| None).collect();
        let collector =
            Arc::new(AnswerCollector { answers: Mutex::new(CollectedAnswers { answers, missing, done: Some(done) }) });
        let mut to = Submissions::new(&self.shared);
        let deadline = wait.map(|wait| self.shared.now().plus(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)));
        for (place, (partition, command)) in commands.iter().enumerate() {
            if let Err(error) = self.submit_forwarded(&mut to, *partition, command, deadline, collector.reply(place)) {
                collector.answer(place, error);
            }
        }
        to.send();
        Ok(())
    }

    /// Submits one change. The error is an answer that is already known.
    fn submit_forwarded(
        &self,
        to: &mut Submissions,
        partition: PartitionId,
        command: &LogCommand<'_>,
        deadline: Option<Millis>,
        reply: ParkedReply,
    ) -> Result<(), ForwardedAnswer> {
        let LogCommand::Change(command) = command else {
            return Err(Err(GridError::IllegalArgument("a member forwarded what is no change of a map".to_owned())));
        };
        let Some(core) = self.shared.map_by_id(command.map) else {
            if self.shared.maps.read().replaced.contains(&command.map) {
                return Err(Err(GridError::BeingReplaced { map: format!("with the number {}", command.map.0) }));
            }
            return Err(Err(GridError::Destroyed {
                service: crate::names::MAP_SERVICE.to_owned(),
                name: format!("with the number {}", command.map.0),
            }));
        };
        if command.change.key().is_none() {
            return push_whole(to, &core, partition, command.caller, command.change, reply);
        }
        let map = Map { core, shared: self.shared.clone() };
        let when = deadline.map_or(WhenLocked::Answer, |deadline| WhenLocked::Wait(Some(deadline)));
        match map.submit(to, partition, command.caller, command.change, when, reply) {
            Ok(_) => Ok(()),
            Err(Refused::Locked { free_at }) => Err(Ok(Reply::Locked { free_at })),
            Err(Refused::Error(error)) => Err(Err(error)),
        }
    }
}

/// Proposes a change that is not of a single key: a claim, write or release of a statement, or the
/// removal of all entries.
fn push_whole(
    to: &mut Submissions,
    core: &Arc<MapCore>,
    partition: PartitionId,
    caller: filbert_store::Caller,
    change: Change<'_>,
    reply: ParkedReply,
) -> Result<(), ForwardedAnswer> {
    let refused = match (&change, core.check_held()) {
        (Change::Claim { .. } | Change::ClaimAll | Change::Clear | Change::EvictAll, Err(error)) => Some(error),
        (
            Change::Claim { .. }
            | Change::ClaimAll
            | Change::WriteBatch { .. }
            | Change::Unclaim
            | Change::Clear
            | Change::EvictAll,
            _,
        ) => None,
        _ => Some(GridError::IllegalArgument("a member forwarded what only a leader decides".to_owned())),
    };
    if let Some(error) = refused {
        return Err(Err(error));
    }
    let now = to.shared().now();
    let command = filbert_store::Command { map: core.id, now, caller, change };
    let answer = PendingAnswer::reply(core, WhenLocked::Answer, reply);
    to.push(partition, &command.into(), answer).map_err(|(answer, error)| {
        answer.give_up();
        Err(error)
    })
}
