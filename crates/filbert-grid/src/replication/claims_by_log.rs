//! Claims and writes of a statement through the logs: several partitions at a time. Blocks until
//! the answers arrive.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use filbert_data::PartitionId;
use filbert_store::{Batch, Caller, Change, Command, Reply};

use super::{Forwards, Pending, Submissions};
use crate::errors::GridError;
use crate::groups::SubmitError;
use crate::map::Map;
use crate::replicator::{PendingAnswer, WhenLocked};
use crate::threads;
use crate::together::{CHANGES_PER_LOCK_MAX, NotMade};

/// The maximum size, in bytes, of a statement's commands in flight. The log must also carry other
/// entries.
const BYTES_IN_FLIGHT_MAX: usize = 1 << 20;

/// The maximum time for which a statement repeats its writes while partitions have no leader or
/// have too many commands in flight. A new leader takes over within two seconds.
pub(super) const REPEATED_FOR: Duration = Duration::from_secs(10);

/// The pause before writes are repeated.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// The commands of one statement in flight, each with its context `T`.
pub(super) struct StatementCommands<'m, T> {
    map: &'m Map,
    owner: Caller,
    to: Submissions,
    /// The commands for the leaders, including this member, if other members may lead partitions.
    forwards: Forwards,
    pending: Vec<(T, Pending)>,
}

impl<'m, T> StatementCommands<'m, T> {
    pub(super) fn new(map: &'m Map, owner: Caller) -> Self {
        StatementCommands {
            map,
            owner,
            to: map.submissions(),
            forwards: Forwards::new(&map.shared, None),
            pending: Vec::new(),
        }
    }

    pub(super) fn submit(&mut self, partition: PartitionId, change: Change<'_>, about: T) -> Result<(), GridError> {
        let (reply, pending) = Pending::new();
        let command = Command { map: self.map.core.id, now: self.map.shared.now(), caller: self.owner, change };
        if self.map.forwards() {
            self.forwards.push(partition, &command.into(), reply);
            self.pending.push((about, pending));
            return Ok(());
        }
        let answer = PendingAnswer::reply(&self.map.core, WhenLocked::Answer, reply);
        self.to.push(partition, &command.into(), answer).map_err(|(answer, error)| {
            answer.fail(&self.map.shared, partition, &error, None);
            error
        })?;
        self.pending.push((about, pending));
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.to.bytes() + self.forwards.bytes() > BYTES_IN_FLIGHT_MAX
    }

    /// Sends the commands. The iterator blocks for each answer.
    pub(super) fn answers(&mut self) -> impl Iterator<Item = (T, Result<Reply<'static>, GridError>)> {
        self.to.send();
        self.forwards.send();
        std::mem::take(&mut self.pending).into_iter().map(|(about, pending)| (about, pending.wait()))
    }
}

impl Map {
    /// Claims the keys of all batches, and adds those without the expected values to `differing`.
    pub(crate) fn claim_by_log<'b>(
        &self,
        owner: Caller,
        batches: impl Iterator<Item = (PartitionId, &'b Batch)>,
        differing: &mut Vec<Box<[u8]>>,
    ) -> Result<(), NotMade> {
        let mut commands = StatementCommands::new(self, owner);
        for (partition, batch) in batches {
            for (from, part) in batch.parts(CHANGES_PER_LOCK_MAX) {
                threads::give_way();
                commands.submit(partition, Change::Claim { batch: part }, (batch, from)).map_err(NotMade::Error)?;
                if commands.is_full() {
                    self.take_claims(&mut commands, differing)?;
                }
            }
        }
        self.take_claims(&mut commands, differing)
    }

    fn take_claims(
        &self,
        commands: &mut StatementCommands<'_, (&Batch, u32)>,
        differing: &mut Vec<Box<[u8]>>,
    ) -> Result<(), NotMade> {
        let mut taken = Ok(());
        // Waits for all answers, because the caller releases all claims that exist in the end.
        for ((batch, from), answer) in commands.answers() {
            let claimed = answer.map_err(not_claimed).and_then(|reply| self.claimed(batch, from, reply, differing));
            taken = taken.and(claimed);
        }
        taken
    }

    /// Writes the changes of claimed keys. Partitions that change their leader meanwhile, or have
    /// too many commands in flight, are written again, for [`REPEATED_FOR`] at most. The claims
    /// stay: they are released after all writes, and a partition writes nothing without them. So a
    /// batch that was sent twice, or that arrives late, has no further effect.
    pub(crate) fn write_by_log<'b>(
        &self,
        owner: Caller,
        batches: impl Iterator<Item = (PartitionId, &'b Batch)>,
    ) -> Result<(), NotMade> {
        let mut left: Vec<(PartitionId, &Batch)> = batches.collect();
        let until = Instant::now() + REPEATED_FOR;
        let mut is_any_written = false;
        loop {
            let Written { failed, is_any, is_over } = self.write_once(owner, &left);
            is_any_written |= is_any;
            let Some((partition, error)) = failed.first_key_value() else { return Ok(()) };
            let may_repeat = !is_over && failed.values().all(is_repeatable) && Instant::now() < until;
            if !may_repeat {
                // The caller releases the claims of unwritten changes: no code can complete them.
                let unknown = || SubmitError::Unknown { group: self.shared.group_of(*partition) }.into();
                return Err(NotMade::Error(if is_any_written { unknown() } else { error.clone() }));
            }
            std::thread::sleep(PAUSE);
            left.retain(|(partition, _)| failed.contains_key(partition));
        }
    }

    fn write_once(&self, owner: Caller, batches: &[(PartitionId, &Batch)]) -> Written {
        let mut commands = StatementCommands::new(self, owner);
        let mut written = Written::default();
        for (partition, batch) in batches {
            for (_, part) in batch.parts(CHANGES_PER_LOCK_MAX) {
                threads::give_way();
                if let Err(error) = commands.submit(*partition, Change::WriteBatch { batch: part }, *partition) {
                    written.note(*partition, Err(error));
                }
            }
            if commands.is_full() {
                commands.answers().for_each(|(partition, answer)| written.note(partition, answer));
            }
        }
        commands.answers().for_each(|(partition, answer)| written.note(partition, answer));
        written
    }

    /// Releases the claims in some partitions.
    pub(crate) fn unclaim_by_log(&self, owner: Caller, partitions: Vec<PartitionId>) {
        let (mut to, mut forwards) = (self.submissions(), Forwards::new(&self.shared, None));
        for partition in partitions {
            self.shared.push_unclaim(&mut to, &mut forwards, partition, self.core.id, owner);
        }
        to.send();
        forwards.send();
    }

    /// Whether other members may lead partitions.
    pub(super) fn forwards(&self) -> bool {
        self.shared.replication.as_ref().is_some_and(|replication| replication.replicator.forwards())
    }
}

/// The error of a claim. An unknown outcome becomes a retryable error, because a claim changes no
/// entry.
fn not_claimed(error: GridError) -> NotMade {
    NotMade::Error(match error {
        GridError::Submit(SubmitError::Unknown { group }) => {
            SubmitError::NotLeader { group, hint: "it lost its leader before anything was written".to_owned() }.into()
        }
        error => error,
    })
}

/// The results of the writes of a statement.
#[derive(Default)]
struct Written {
    /// The partitions with a failed write, each with its first error.
    failed: BTreeMap<PartitionId, GridError>,
    /// Whether any write was applied, or may have been.
    is_any: bool,
    /// Whether a partition had no claims of the statement: this member was removed meanwhile.
    is_over: bool,
}

impl Written {
    fn note(&mut self, partition: PartitionId, answer: Result<Reply<'static>, GridError>) {
        let error = match answer {
            Ok(Reply::Flag(false)) => {
                (self.is_any, self.is_over) = (true, true);
                GridError::NotActive
            }
            Ok(_) => {
                self.is_any = true;
                return;
            }
            Err(error) => {
                self.is_any |= matches!(error, GridError::Submit(SubmitError::Unknown { .. }));
                error
            }
        };
        self.failed.entry(partition).or_insert(error);
    }
}

/// Whether a command failed because its partition had no leader, lost it, or had too many commands
/// in flight.
pub(super) fn is_repeatable(error: &GridError) -> bool {
    matches!(
        error,
        GridError::Submit(SubmitError::NotLeader { .. } | SubmitError::Unknown { .. } | SubmitError::Overloaded { .. })
    )
}
