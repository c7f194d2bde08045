//! A map that replaces another map on all members of a cluster.
//!
//! ```text
//!  WholeClaim: all keys of the old map are claimed, in every partition
//!    ─► the new map is created on all members, hidden
//!    ─► the records are read at their leaders, rewritten, and written into the new map
//!    ─► one command of the registry: the new map has the name, the old map is dropped, and
//!       definitions change
//! ```
//!
//! Claims are in the logs, so no member changes the old map meanwhile, whoever leads its
//! partitions. Changes of clients wait. Reads of the old map continue until it is dropped. If the
//! member that replaces a map dies, the others release its claims, and drop its hidden map.
//! ([why](../../../../docs/decisions/0040-tables-are-rewritten-behind-a-claim-of-all-keys.md))

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use filbert_data::{Blob, PartitionId};
use filbert_store::{Caller, Change, Expected, Expiry, Metadata, PutMode, Reply};

use super::claims_by_log::{PAUSE, REPEATED_FOR, StatementCommands, is_repeatable};
use super::{EntrySelection, LeaderRead};
use crate::claim_owners::ClaimOwner;
use crate::claims::Claims;
use crate::cluster::{ReadView, Redefinition};
use crate::definitions;
use crate::errors::GridError;
use crate::grid::Grid;
use crate::groups::{GroupId, SubmitError};
use crate::indexes::IndexConfig;
use crate::map::Map;
use crate::names::check_name;
use crate::replicator::{NewMap, Replication};
use crate::threads;
use crate::together::{NotMade, Together};

/// All keys of a map, claimed for one statement. Released on drop.
pub struct WholeClaim<'m> {
    claims: Claims<'m>,
    /// The partitions that are not claimed yet.
    left: Vec<PartitionId>,
}

/// A map that is about to replace another one on all members. If it is dropped unfinished, the old
/// map stays unchanged.
pub struct SharedReplacement<'m> {
    grid: Arc<Grid>,
    old: &'m Map,
    new: Arc<Map>,
    outcome: Outcome,
    /// Released after everything else.
    claim: WholeClaim<'m>,
}

/// The outcome of a replacement.
#[derive(PartialEq)]
enum Outcome {
    /// The old map stays.
    NotReplaced,
    /// The new map has replaced the old one.
    Replaced,
    /// The registry may replace the old map, also later.
    Unknown,
}

/// One entry of the new map.
struct Record {
    key: Blob,
    value: Blob,
    metadata: Metadata,
}

/// Computes the new key and value of an entry.
pub type Rewriter<'r, E> = dyn FnMut(&[u8], &[u8]) -> Result<(Blob, Blob), E> + 'r;

impl Map {
    /// A claim of all keys of this map, initially of none.
    pub fn whole_claim(&self) -> WholeClaim<'_> {
        WholeClaim { claims: self.claims(), left: (0..self.partition_count()).map(PartitionId).collect() }
    }
}

impl fmt::Debug for WholeClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WholeClaim").field("left", &self.left.len()).finish_non_exhaustive()
    }
}

impl WholeClaim<'_> {
    /// The owner of the claim: its changes do not wait.
    pub fn owner(&self) -> Caller {
        self.claims.owner()
    }

    /// Claims all keys that are not claimed yet. Returns whether all are claimed; `false` if other
    /// callers hold keys, or a partition has no leader now. The claims stay. Blocks.
    ///
    /// # Errors
    /// The map was destroyed, or the member is shutting down.
    pub fn attempt(&mut self) -> Result<bool, GridError> {
        // If several statements claim the map, only the statement that has claimed the first
        // partition continues. It may keep its claims while it waits for single keys, because the
        // owners of single keys never wait while they have claims.
        let Some(first) = self.left.first().copied().filter(|first| *first == PartitionId(0)) else {
            return self.attempt_these(self.left.clone());
        };
        self.attempt_these(vec![first])?;
        if self.left.first() == Some(&first) { Ok(false) } else { self.attempt_these(self.left.clone()) }
    }

    fn attempt_these(&mut self, partitions: Vec<PartitionId>) -> Result<bool, GridError> {
        let map = self.claims.map();
        map.shared.check_active()?;
        if map.is_destroyed() {
            return Err(map.core.destroyed_error());
        }
        let mut commands = StatementCommands::new(map, self.claims.owner());
        for partition in partitions {
            self.claims.note(partition);
            if let Err(error) = commands.submit(partition, Change::ClaimAll, partition)
                && !is_repeatable(&error)
            {
                return Err(error);
            }
        }
        let mut outcome = Ok(());
        for (partition, answer) in commands.answers() {
            match answer {
                Ok(Reply::Claimed(_)) => self.left.retain(|left| *left != partition),
                Ok(Reply::Held(_)) => {}
                Ok(reply) => outcome = Err(GridError::Internal(format!("a claim was answered by {reply:?}"))),
                Err(error) if is_repeatable(&error) => {}
                Err(error) => outcome = Err(error),
            }
        }
        outcome.map(|()| self.left.is_empty())
    }
}

impl fmt::Debug for SharedReplacement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReplacement").field("old", &self.old.name()).field("new", &self.new.name()).finish()
    }
}

impl Grid {
    /// Starts to replace a map by an empty map with the name `new` on all members. All keys of the
    /// old map are claimed. Blocks.
    ///
    /// # Errors
    /// `new` is the name of another map or longer than [`NAME_BYTES_MAX`](crate::NAME_BYTES_MAX), or
    /// the other members were not reached.
    pub fn replace_on_all<'m>(
        self: &Arc<Self>,
        old: &'m Map,
        claim: WholeClaim<'m>,
        new: &str,
    ) -> Result<SharedReplacement<'m>, GridError> {
        debug_assert!(claim.left.is_empty(), "all keys are claimed");
        check_name("map", new)?;
        let replication = self.replication()?;
        let config = self.shared.config.maps.find(new)?.clone();
        if new != old.name() && self.shared.maps.read().by_name.contains_key(new) {
            return Err(GridError::IllegalArgument(format!("there is a map {new:?} already")));
        }
        let replacing = NewMap::Replacing { old: old.core.id, name: new };
        let (id, settings) = replication.replicator.create_map(replacing, self.map_settings(&config))?;
        let new = self.hidden_map(id, new, settings)?;
        self.shared.create_where_leading(&new.core, true);
        Ok(SharedReplacement { grid: self.clone(), old, new, outcome: Outcome::NotReplaced, claim })
    }

    fn replication(&self) -> Result<&Replication, GridError> {
        let none = || GridError::Internal("a map is to be replaced on all members, without a cluster".to_owned());
        self.shared.replication.as_ref().ok_or_else(none)
    }
}

impl SharedReplacement<'_> {
    /// The id of the new map, see [`Map::replacement`].
    pub fn id(&self) -> u32 {
        self.new.core.id.0
    }

    /// The reads of all entries of the old map, one for each group, for [`SharedReplacement::copy`].
    pub fn reads(&self) -> Vec<LeaderRead> {
        let nothing_here = ReadView::of_groups(&[false]);
        let reads = LeaderRead::beside(self.old, &nothing_here, &Arc::new(EntrySelection::All), &|_| true);
        reads.into_iter().map(LeaderRead::with_metadata).collect()
    }

    /// Copies entries. `rewrite` computes the new key and value of each. `check` is called often.
    /// Returns the new key that two entries have, if there is one. Blocks.
    ///
    /// # Errors
    /// `rewrite` or `check` has failed, a leader was not found for ten seconds, or the new entries
    /// do not fit into the memory of a member.
    pub fn copy<E: From<GridError>>(
        &self,
        read: LeaderRead,
        check: &dyn Fn() -> Result<(), E>,
        rewrite: &mut Rewriter<'_, E>,
    ) -> Result<Option<Blob>, E> {
        let mut outcome = Ok(None);
        self.old.visit_at_leaders(vec![read], &|| Ok(()), &mut |page| {
            let (mut records, mut failed, mut number, mut keys_change) = (Vec::new(), None, 0, false);
            page.for_each_record(&mut |key, metadata, value| {
                threads::give_way_at(number);
                number += 1;
                if failed.is_none() {
                    match rewrite(key, value) {
                        Ok((new_key, new_value)) => {
                            keys_change |= *new_key != *key;
                            records.push(Record { key: new_key, value: new_value, metadata });
                        }
                        Err(error) => failed = Some(error),
                    }
                }
            });
            outcome = match failed {
                Some(error) => Err(error),
                None => check().and_then(|()| Ok(self.write(&records, keys_change)?)),
            };
            Ok(matches!(outcome, Ok(None)))
        })?;
        outcome
    }

    /// Writes records into the new map. Returns a key that the map has already, if `keys_change`.
    fn write(&self, records: &[Record], keys_change: bool) -> Result<Option<Blob>, GridError> {
        let claim_owner = ClaimOwner::new(&self.grid.shared);
        let owner = claim_owner.caller();
        if !keys_change {
            return self.put(owner, records).map(|()| None);
        }
        let mut together = Together::new(&self.new);
        for record in records {
            if !together.add(&record.key, Expected::Nothing, Some(&[]))? {
                return Ok(Some(record.key.clone()));
            }
        }
        let mut differing = Vec::new();
        let batches = || together.batches.iter().map(|(partition, batch)| (*partition, batch));
        let until = Instant::now() + REPEATED_FOR;
        let claimed = loop {
            match self.new.claim_by_log(owner, batches(), &mut differing) {
                Err(NotMade::Error(error)) if is_repeatable(&error) && Instant::now() < until => {
                    differing.clear();
                    std::thread::sleep(PAUSE);
                }
                Err(NotMade::Error(error)) => break Err(error),
                // Nobody else knows the new map: the release of claims for earlier records is under
                // way.
                Err(NotMade::Held(_)) if Instant::now() < until => {
                    differing.clear();
                    std::thread::sleep(PAUSE);
                }
                Err(NotMade::Held(_)) => break Err(GridError::LockTimeout { map: self.new.name().to_owned() }),
                Err(NotMade::Differ(_)) | Ok(()) => break Ok(()),
            }
        };
        let written = claimed.and_then(|()| if differing.is_empty() { self.put(owner, records) } else { Ok(()) });
        self.new.unclaim_by_log(owner, together.batches.keys().copied().collect());
        written.map(|()| differing.first().map(|key| Blob::from(&**key)))
    }

    /// Puts records. Partitions that change their leader meanwhile, or have too many commands in
    /// flight, get them again. A put with an unknown outcome is not repeated: it may come late,
    /// when clients have changed the entry. The copy fails then, and its map is dropped.
    fn put(&self, owner: Caller, records: &[Record]) -> Result<(), GridError> {
        let until = Instant::now() + REPEATED_FOR;
        let not_put = |(record, answer): (_, Result<Reply<'static>, GridError>)| match answer {
            Ok(Reply::Locked { .. }) => Some((record, GridError::LockTimeout { map: self.new.name().to_owned() })),
            answer => Some((record, answer.err()?)),
        };
        let mut left: Vec<&Record> = records.iter().collect();
        loop {
            let mut failed: Vec<(&Record, GridError)> = Vec::new();
            let mut commands = StatementCommands::new(&self.new, owner);
            for record in left {
                let (key, value) = (&*record.key, &*record.value);
                let put = Change::Put { key, value, expiry: Expiry::DEFAULT, mode: PutMode::Metadata(record.metadata) };
                if let Err(error) = commands.submit(self.new.partition_of(key), put, record) {
                    failed.push((record, error));
                }
                if commands.is_full() {
                    failed.extend(commands.answers().filter_map(not_put));
                }
            }
            failed.extend(commands.answers().filter_map(not_put));
            let is_unknown = |error: &GridError| matches!(error, GridError::Submit(SubmitError::Unknown { .. }));
            if let Some(group) =
                failed.iter().find(|(_, error)| is_unknown(error)).map(|(record, _)| self.group_of(record))
            {
                let hint = "it lost its leader while rows were copied".to_owned();
                return Err(SubmitError::NotLeader { group, hint }.into());
            }
            let Some((_, error)) = failed.first() else { return Ok(()) };
            if Instant::now() >= until || !failed.iter().all(|(_, error)| is_repeatable(error)) {
                return Err(error.clone());
            }
            std::thread::sleep(PAUSE);
            left = failed.into_iter().map(|(record, _)| record).collect();
        }
    }

    fn group_of(&self, record: &Record) -> GroupId {
        self.grid.shared.group_of(self.new.partition_of(&record.key))
    }

    /// Replaces the old map by the new map on all members, and changes definitions with it: these,
    /// and those of the map's indexes. Returns `false`, and changes nothing, if a definition is not
    /// the expected one. Blocks.
    ///
    /// # Errors
    /// The old map was destroyed, another map has the new name, or the other members were not
    /// reached. The outcome may be unknown.
    pub fn put_in_place(
        &mut self,
        mut redefinitions: Vec<Redefinition>,
        indexes: &[IndexConfig],
    ) -> Result<bool, GridError> {
        if let Some(cluster) = self.grid.cluster() {
            let (old, new) = (self.old.name(), self.new.name());
            redefinitions.extend(definitions::replace_indexes(&cluster.definitions(), old, new, indexes));
        }
        let replication = self.grid.replication()?;
        self.outcome = Outcome::Unknown;
        let is_replaced = replication.replicator.replace_map(self.new.core.id, redefinitions)?;
        self.outcome = if is_replaced { Outcome::Replaced } else { Outcome::NotReplaced };
        Ok(is_replaced)
    }
}

impl Drop for SharedReplacement<'_> {
    fn drop(&mut self) {
        if self.outcome == Outcome::Replaced {
            return;
        }
        // If the outcome is unknown, the registry may replace the old map until it has abandoned
        // the new one. Changes that clients make meanwhile would be lost: the claims stay.
        let kept = (self.outcome == Outcome::Unknown).then(|| self.claim.claims.detach());
        let (grid, id) = (self.grid.clone(), self.new.core.id);
        // The registry is asked, which takes a while: others may wait for this thread.
        std::thread::spawn(move || {
            while let Err(error) = grid.replication().and_then(|replication| replication.replicator.abandon_map(id)) {
                tracing::warn!("a map that was to replace another one is not abandoned yet: {error}");
                if grid.shared.check_active().is_err() {
                    return;
                }
                std::thread::sleep(PAUSE);
            }
            drop(kept);
        });
    }
}

impl Map {
    /// The id of the map, if it has replaced another map of its cluster. A table knows the id of
    /// such a map: with another map, this member is about to learn of a change of the table.
    pub fn replacement(&self) -> Option<u32> {
        self.core.is_replacement.load(Ordering::Acquire).then_some(self.core.id.0)
    }
}
