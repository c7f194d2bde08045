//! Changes of partitions that another member leads: sent to it, made there as its own, answered here.
//!
//! ```text
//!  here: Forwards ── Replicator::forward(group, changes) ──► the leader: Grid::make_for_other ── Map::submit, its log
//!        whoever awaits it ◄── answers, one for each change ◄───────────────┘
//! ```
//!
//! What the leader alone decides (memory, who waits for whom) is decided there. A change is made once or its outcome is not known:
//! nothing here sends one again that may have been made.

use std::sync::Arc;
use std::time::Duration;

use filbert_data::PartitionId;
use filbert_store::{Change, CodecError, Decoder, Encoder, LogCommand, Millis, Reply};
use parking_lot::Mutex;

use super::awaited::Awaited;
use super::{GroupId, Submissions, SubmitError, WhenLocked};
use crate::errors::GridError;
use crate::grid::Grid;
use crate::map::{Map, Refused};
use crate::map_core::MapCore;
use crate::shared::Shared;
use crate::waiters::ParkedReply;

/// What became of a change.
pub type ForwardedAnswer = Result<Reply<'static>, GridError>;

/// Called with the answers to changes that were forwarded, one for each in their order, or with what became of all of them.
pub type ForwardedReply = Box<dyn FnOnce(Result<Vec<ForwardedAnswer>, SubmitError>) + Send>;

/// Changes on their way to the members that lead their groups.
pub(crate) struct Forwards {
    shared: Arc<Shared>,
    wait: Option<Duration>,
    open: Vec<(GroupId, Encoder, Vec<ParkedReply>)>,
}

impl Forwards {
    /// None yet. `wait` is how long each waits for a key that is locked; without it, it is answered by [`Reply::Locked`].
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

    /// Sends them. Not to be called under a partition's lock.
    pub(crate) fn send(&mut self) {
        let Some(replication) = &self.shared.replication else { return };
        for (group, mut changes, replies) in std::mem::take(&mut self.open) {
            let told = Box::new(move |answers| tell(group, answers, replies));
            replication.replicator.forward(group, changes.take(), self.wait, told);
        }
    }
}

fn tell(group: GroupId, answers: Result<Vec<ForwardedAnswer>, SubmitError>, replies: Vec<ParkedReply>) {
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

/// Whether a change was not made because another member leads, so that it can be asked.
pub(crate) fn is_led_elsewhere<T>(outcome: &Result<T, Refused>) -> bool {
    matches!(outcome, Err(Refused::Error(GridError::Submit(SubmitError::NotLeader { .. }))))
}

/// The answers to the changes of another member, as they come.
struct Answering {
    answers: Mutex<Gathered>,
}

struct Gathered {
    answers: Vec<Option<ForwardedAnswer>>,
    missing: usize,
    done: Option<Box<dyn FnOnce(Vec<ForwardedAnswer>) + Send>>,
}

impl Answering {
    fn answer(&self, place: usize, answer: ForwardedAnswer) {
        let mut gathered = self.answers.lock();
        if let Some(slot @ None) = gathered.answers.get_mut(place) {
            *slot = Some(answer);
            gathered.missing -= 1;
        }
        if gathered.missing > 0 {
            return;
        }
        let Some(done) = gathered.done.take() else { return };
        let answers = std::mem::take(&mut gathered.answers);
        drop(gathered);
        done(answers.into_iter().flatten().collect());
    }

    fn reply(self: &Arc<Self>, place: usize) -> ParkedReply {
        let answering = self.clone();
        Box::new(move |answer| answering.answer(place, answer.map(Reply::into_owned)))
    }
}

impl Grid {
    /// Makes the changes that another member has forwarded, as [`Encoder`] writes them, and calls `done` with an answer for each. A change
    /// whose key is locked waits that long, or is answered by [`Reply::Locked`].
    ///
    /// # Errors
    /// They cannot be read; none was made.
    pub fn make_for_other(
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
        let answering = Arc::new(Answering { answers: Mutex::new(Gathered { answers, missing, done: Some(done) }) });
        let mut to = Submissions::new(&self.shared);
        let deadline = wait.map(|wait| self.shared.now().plus(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)));
        for (place, (partition, command)) in commands.iter().enumerate() {
            if let Err(error) = self.make_one(&mut to, *partition, command, deadline, answering.reply(place)) {
                answering.answer(place, error);
            }
        }
        to.send();
        Ok(())
    }

    /// Makes one change; the answer where it is known already.
    fn make_one(
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
            return Err(Err(GridError::Destroyed {
                service: crate::objects::MAP_SERVICE.to_owned(),
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

/// Proposes what is of no single key: what a statement claims, writes or gives back, and the end of all entries.
fn push_whole(
    to: &mut Submissions,
    core: &Arc<MapCore>,
    partition: PartitionId,
    caller: filbert_store::Caller,
    change: Change<'_>,
    reply: ParkedReply,
) -> Result<(), ForwardedAnswer> {
    let refused = match (&change, core.check_held()) {
        (Change::Claim { .. } | Change::Clear | Change::EvictAll, Err(error)) => Some(error),
        (Change::Claim { .. } | Change::WriteBatch { .. } | Change::Unclaim | Change::Clear | Change::EvictAll, _) => {
            None
        }
        _ => Some(GridError::IllegalArgument("a member forwarded what only a leader decides".to_owned())),
    };
    if let Some(error) = refused {
        return Err(Err(error));
    }
    let now = to.shared().now();
    let command = filbert_store::Command { map: core.id, now, caller, change };
    let awaited = Awaited::reply(core, WhenLocked::Answer, reply);
    to.push(partition, &command.into(), awaited).map_err(|(awaited, error)| {
        awaited.give_up();
        Err(error)
    })
}
