//! The claims and writes of a statement through the logs: several partitions at a time, waiting for the answers.

use filbert_data::PartitionId;
use filbert_store::{Batch, Caller, Change, Command, Reply};

use super::awaited::Awaited;
use super::{Forwards, Pending, Submissions, SubmitError, WhenLocked};
use crate::errors::GridError;
use crate::map::Map;
use crate::threads;
use crate::together::{CHANGES_PER_LOCK_MAX, NotMade};

/// Bytes of a statement that are on their way at a time. A log has other entries to carry as well.
const BYTES_ON_WAY_MAX: usize = 1 << 20;

/// Commands of one statement that are on their way, each with what it is about.
struct Asking<'m, T> {
    map: &'m Map,
    owner: Caller,
    to: Submissions,
    /// To whichever member leads, this one included, where there are several.
    forwards: Forwards,
    asked: Vec<(T, Pending)>,
}

impl<'m, T> Asking<'m, T> {
    fn new(map: &'m Map, owner: Caller) -> Self {
        Asking { map, owner, to: map.submissions(), forwards: Forwards::new(&map.shared, None), asked: Vec::new() }
    }

    fn ask(&mut self, partition: PartitionId, change: Change<'_>, about: T) -> Result<(), GridError> {
        let (reply, pending) = Pending::new();
        let command = Command { map: self.map.core.id, now: self.map.shared.now(), caller: self.owner, change };
        if self.map.forwards() {
            self.forwards.push(partition, &command.into(), reply);
            self.asked.push((about, pending));
            return Ok(());
        }
        let awaited = Awaited::reply(&self.map.core, WhenLocked::Answer, reply);
        self.to.push(partition, &command.into(), awaited).map_err(|(awaited, error)| {
            awaited.fail(&self.map.shared, partition, &error, None);
            error
        })?;
        self.asked.push((about, pending));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.to.bytes() + self.forwards.bytes() > BYTES_ON_WAY_MAX
    }

    /// Waits for all answers.
    fn answers(&mut self) -> impl Iterator<Item = (T, Result<Reply<'static>, GridError>)> {
        self.to.send();
        self.forwards.send();
        std::mem::take(&mut self.asked).into_iter().map(|(about, pending)| (about, pending.wait()))
    }
}

impl Map {
    /// Claims the keys of all batches, and notes which are not as expected.
    pub(crate) fn claim_by_log<'b>(
        &self,
        owner: Caller,
        batches: impl Iterator<Item = (PartitionId, &'b Batch)>,
        differing: &mut Vec<Box<[u8]>>,
    ) -> Result<(), NotMade> {
        let mut asking = Asking::new(self, owner);
        for (partition, batch) in batches {
            for (from, part) in batch.parts(CHANGES_PER_LOCK_MAX) {
                threads::give_way();
                asking.ask(partition, Change::Claim { batch: part }, (batch, from)).map_err(NotMade::Error)?;
                if asking.is_full() {
                    self.take_claims(&mut asking, differing)?;
                }
            }
        }
        self.take_claims(&mut asking, differing)
    }

    fn take_claims(
        &self,
        asking: &mut Asking<'_, (&Batch, u32)>,
        differing: &mut Vec<Box<[u8]>>,
    ) -> Result<(), NotMade> {
        let mut taken = Ok(());
        // All are waited for: what is claimed in the end is given back by whoever asked.
        for ((batch, from), answer) in asking.answers() {
            let claimed = answer.map_err(not_claimed).and_then(|reply| self.claimed(batch, from, reply, differing));
            taken = taken.and(claimed);
        }
        taken
    }

    /// Makes the changes whose keys are claimed, and gives the claims back.
    pub(crate) fn write_by_log<'b>(
        &self,
        owner: Caller,
        batches: impl Iterator<Item = (PartitionId, &'b Batch)>,
    ) -> Result<(), NotMade> {
        let mut asking = Asking::new(self, owner);
        let mut written = Written::default();
        for (partition, batch) in batches {
            for (_, part) in batch.parts(CHANGES_PER_LOCK_MAX) {
                threads::give_way();
                written.note(asking.ask(partition, Change::WriteBatch { batch: part }, ()));
            }
            written.note(asking.ask(partition, Change::Unclaim, ()));
            if asking.is_full() {
                asking.answers().for_each(|((), answer)| written.note(answer.map(|_| ())));
            }
            if written.failed.is_some() && !written.any {
                break;
            }
        }
        asking.answers().for_each(|((), answer)| written.note(answer.map(|_| ())));
        let group = self.shared.group_of(PartitionId(0));
        match written.failed {
            None => Ok(()),
            // The claims of what was not written are given back: nobody can finish it.
            Some(_) if written.any => Err(NotMade::Error(SubmitError::Unknown { group }.into())),
            Some(error) => Err(NotMade::Error(error)),
        }
    }

    /// Gives the claims of partitions back.
    pub(crate) fn unclaim_by_log(&self, owner: Caller, partitions: Vec<PartitionId>) {
        let (mut to, mut forwards) = (self.submissions(), Forwards::new(&self.shared, None));
        for partition in partitions {
            self.shared.push_unclaim(&mut to, &mut forwards, partition, self.core.id, owner);
        }
        to.send();
        forwards.send();
    }

    /// Whether other members may lead what this one does not.
    pub(super) fn forwards(&self) -> bool {
        self.shared.replication.as_ref().is_some_and(|replication| replication.replicator.forwards())
    }
}

/// Whether a claim was made or not: nothing was changed.
fn not_claimed(error: GridError) -> NotMade {
    NotMade::Error(match error {
        GridError::Submit(SubmitError::Unknown { group }) => {
            SubmitError::NotLeader { group, hint: "it lost its leader before anything was written".to_owned() }.into()
        }
        error => error,
    })
}

/// What has become of the parts of a statement.
#[derive(Default)]
struct Written {
    any: bool,
    failed: Option<GridError>,
}

impl Written {
    fn note(&mut self, outcome: Result<(), GridError>) {
        match outcome {
            Ok(()) => self.any = true,
            Err(error) => _ = self.failed.get_or_insert(error),
        }
    }
}
