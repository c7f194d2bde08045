//! Changes of several keys of a map that are made together, or not at all.
//!
//! ```text
//!  Together (by partition) ── make_together ──┬─ partition by partition: claim, and check what is there
//!                                             │    held by someone else: nothing is claimed any more, and the caller waits
//!                                             │    not as expected:      the claims stay, and the caller thinks again
//!                                             └─ partition by partition: write, and give the claim back
//! ```
//!
//! Partitions are claimed in their order and waited for by nobody who has claims, so that two such changes cannot wait for each
//! other. Between the first write and the last, readers may see some of the changes and not yet the others; other writers
//! wait, and what fails, fails before the first.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::Ordering;

use filbert_data::{PartitionId, partition_of};
use filbert_store::{Batch, BatchItem, BatchPlace, Caller, Change, Command, Expected, Reply};
use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::cell::{Cell, CellState};
use crate::errors::GridError;
use crate::map::Map;
use crate::map_core::RECORD_OVERHEAD_BYTES;
use crate::shared::Shared;
use crate::{eviction, threads};

/// Bytes that a change takes beside its key and values: its head in the batch and its place in the table of keys.
const CHANGE_BYTES: usize = 32;

/// Changes that one hold of a partition's lock claims or writes: others get at the partition in between.
pub(crate) const CHANGES_PER_LOCK_MAX: usize = 256;

/// Changes of a map, by their keys; no key is changed twice.
#[derive(Default)]
pub struct Together {
    batches: BTreeMap<PartitionId, Batch>,
    /// Where the change of each key is.
    places: HashTable<(PartitionId, BatchPlace)>,
    hasher: RandomState,
    partition_count: u32,
    bytes: usize,
}

impl fmt::Debug for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Together").field("len", &self.len()).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Together {
    /// No changes of a map yet.
    pub fn new(map: &Map) -> Together {
        Together { partition_count: map.partition_count(), ..Together::default() }
    }

    /// Adds the change of a key; `false` if there is one already, which stays.
    ///
    /// # Errors
    /// There are too many changes.
    pub fn add(&mut self, key: &[u8], expected: Expected<'_>, value: Option<&[u8]>) -> Result<bool, GridError> {
        let hash = self.hasher.hash_one(key);
        if self.find(hash, key).is_some() {
            return Ok(false);
        }
        let partition = partition_of(key, self.partition_count);
        let batch = self.batches.entry(partition).or_default();
        let before = batch.as_bytes().len();
        let Some(place) = batch.push(&BatchItem { key, expected, value }) else {
            let text = "a statement changes more than 4 GiB in one partition, expected less";
            return Err(GridError::IllegalArgument(text.to_owned()));
        };
        self.bytes += batch.as_bytes().len() - before + CHANGE_BYTES;
        let (batches, hasher) = (&self.batches, &self.hasher);
        let rehash = |(partition, place): &(PartitionId, BatchPlace)| {
            let item = batches.get(partition).and_then(|batch| batch.at(*place));
            hasher.hash_one(item.map_or(&[][..], |item| item.key))
        };
        self.places.insert_unique(hash, (partition, place), rehash);
        Ok(true)
    }

    /// The change of a key, if there is one.
    pub fn get(&self, key: &[u8]) -> Option<BatchItem<'_>> {
        let (partition, place) = self.find(self.hasher.hash_one(key), key)?;
        self.batches.get(&partition)?.at(place)
    }

    /// Takes the change of a key out; whether there was one.
    pub fn take_out(&mut self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key);
        let batches = &self.batches;
        let is_it = |(partition, place): &(PartitionId, BatchPlace)| is_at(batches, *partition, *place, key);
        let Ok(found) = self.places.find_entry(hash, is_it) else { return false };
        let ((partition, place), _) = found.remove();
        if let Some(batch) = self.batches.get_mut(&partition) {
            batch.take_out(place);
        }
        true
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of memory that they take, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<(PartitionId, BatchPlace)> {
        self.places.find(hash, |(partition, place)| is_at(&self.batches, *partition, *place, key)).copied()
    }

    /// Bytes by which a map grows with them, as the memory limit counts.
    fn growth(&self) -> usize {
        let of_item = |item: BatchItem<'_>| match (item.value, item.expected) {
            (None, _) => 0,
            (Some(value), Expected::Value(old)) => value.len().saturating_sub(old.len()),
            (Some(value), _) => item.key.len() + value.len() + RECORD_OVERHEAD_BYTES,
        };
        self.batches.values().flat_map(Batch::items).map(|(_, item)| of_item(item)).sum()
    }
}

fn is_at(batches: &BTreeMap<PartitionId, Batch>, partition: PartitionId, place: BatchPlace, key: &[u8]) -> bool {
    batches.get(&partition).and_then(|batch| batch.at(place)).is_some_and(|item| item.key == key)
}

/// Why changes were not made; none of them was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// Someone else has locked or claimed this key. Nothing is claimed any more: the caller may wait until the key is free.
    Held(Box<[u8]>),
    /// These keys are not as expected. All keys stay claimed, so that nobody changes them while the caller thinks again.
    Differ(Vec<Box<[u8]>>),
    /// They cannot be made.
    Error(GridError),
}

/// What a statement has claimed of a map. Given back when it is dropped.
#[derive(Debug)]
pub struct Claims<'m> {
    map: &'m Map,
    owner: Caller,
    partitions: Vec<PartitionId>,
}

impl Claims<'_> {
    /// Notes that something may be claimed in a partition.
    fn note(&mut self, partition: PartitionId) {
        if !self.partitions.contains(&partition) {
            self.partitions.push(partition);
        }
    }

    /// Gives back what is claimed.
    pub fn give_back(&mut self) {
        let partitions = std::mem::take(&mut self.partitions);
        if self.map.is_replicated() {
            return self.map.unclaim_by_log(self.owner, partitions);
        }
        for partition in partitions {
            let Some(cell) = self.map.shared.cell(partition) else { continue };
            self.map.apply_together(cell, &mut cell.lock(), self.owner, Change::Unclaim, |_| ());
        }
    }

    /// Writes what is claimed in a partition, and claims it no more.
    fn write(&self, partition: PartitionId, batch: &Batch) {
        let (shared, core) = (&*self.map.shared, &*self.map.core);
        let Some(cell) = shared.cell(partition) else { return };
        let mut parts = batch.parts(CHANGES_PER_LOCK_MAX).peekable();
        while let Some((_, part)) = parts.next() {
            threads::give_way();
            let mut state = cell.lock();
            self.map.apply_together(cell, &mut state, self.owner, Change::WriteBatch { batch: part }, |_| ());
            if parts.peek().is_none() {
                self.map.apply_together(cell, &mut state, self.owner, Change::Unclaim, |_| ());
            }
            core.note_deadlines(shared, cell, &Change::WriteBatch { batch: &[] }, shared.now());
            if core.evicts && !eviction::make_room_after_many(shared, core, cell, &mut state) {
                drop(state);
                eviction::make_room_elsewhere(shared, core, partition, None);
            }
        }
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        self.give_back();
        self.map.core.claiming.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Memory of the member that is set aside for what is about to be written.
struct Reserved<'s>(&'s Shared, usize);

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.0.memory_bytes.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Map {
    /// The claims of a statement that has none yet.
    pub fn claims(&self) -> Claims<'_> {
        self.core.claiming.fetch_add(1, Ordering::SeqCst);
        let thread = self.shared.statements.fetch_add(1, Ordering::Relaxed);
        Claims { map: self, owner: Caller { client: self.shared.member, thread }, partitions: Vec::new() }
    }

    /// Makes all changes, or none of them. `claims` are those of the statement that makes them, from an earlier attempt.
    ///
    /// # Errors
    /// See [`NotMade`].
    pub fn make_together(&self, changes: &Together, claims: &mut Claims<'_>) -> Result<(), NotMade> {
        let made = self.try_together(changes, claims);
        if !matches!(made, Err(NotMade::Differ(_))) {
            claims.give_back();
        }
        made
    }

    fn try_together(&self, changes: &Together, claims: &mut Claims<'_>) -> Result<(), NotMade> {
        let (shared, core) = (&*self.shared, &*self.core);
        shared.check_active().map_err(NotMade::Error)?;
        if self.is_destroyed() {
            return Err(NotMade::Error(core.destroyed_error()));
        }
        core.check_held().map_err(NotMade::Error)?;
        let _reserved = self.reserve(changes)?;
        let mut differing = Vec::new();
        let batches = changes.batches.iter().filter(|(_, batch)| !batch.is_empty());
        if self.is_replicated() {
            batches.clone().for_each(|(partition, _)| claims.note(*partition));
            self.claim_by_log(claims.owner, batches.clone().map(|(id, batch)| (*id, batch)), &mut differing)?;
        } else {
            for (partition, batch) in batches.clone() {
                self.claim(*partition, batch, claims, &mut differing)?;
            }
        }
        if !differing.is_empty() {
            return Err(NotMade::Differ(differing));
        }
        if self.is_replicated() {
            self.write_by_log(claims.owner, batches.map(|(id, batch)| (*id, batch)))?;
        } else {
            batches.for_each(|(partition, batch)| claims.write(*partition, batch));
        }
        // What was written is claimed no more.
        claims.partitions.retain(|partition| changes.batches.get(partition).is_none_or(Batch::is_empty));
        Ok(())
    }

    /// Sets memory aside for what is to be written.
    fn reserve(&self, changes: &Together) -> Result<Option<Reserved<'_>>, NotMade> {
        let shared = &*self.shared;
        let Some(max) = shared.config.memory_bytes_max else { return Ok(None) };
        let needed = changes.growth();
        let used = shared.memory_bytes.fetch_add(needed, Ordering::Relaxed);
        let reserved = Reserved(shared, needed);
        if needed > 0 && used.saturating_add(needed) > max {
            return Err(NotMade::Error(GridError::OutOfMemory { needed, used, max }));
        }
        Ok(Some(reserved))
    }

    /// Claims the keys of a batch, and notes which are not as expected.
    fn claim(
        &self,
        partition: PartitionId,
        batch: &Batch,
        claims: &mut Claims<'_>,
        differing: &mut Vec<Box<[u8]>>,
    ) -> Result<(), NotMade> {
        let Some(cell) = self.shared.cell(partition) else { return Ok(()) };
        claims.note(partition);
        for (from, part) in batch.parts(CHANGES_PER_LOCK_MAX) {
            threads::give_way();
            let change = Change::Claim { batch: part };
            self.apply_together(cell, &mut cell.lock(), claims.owner, change, |reply| {
                self.claimed(batch, from, reply, differing)
            })?;
        }
        Ok(())
    }

    /// What the answer to a claim says about a part of a batch.
    pub(crate) fn claimed(
        &self,
        batch: &Batch,
        from: BatchPlace,
        reply: Reply<'_>,
        differing: &mut Vec<Box<[u8]>>,
    ) -> Result<(), NotMade> {
        let key_at = |place| Box::from(batch.at(place).map_or(&[][..], |item| item.key));
        match reply {
            Reply::Claimed(places) => {
                differing.extend(places.into_iter().map(|place| key_at(from + place)));
                Ok(())
            }
            Reply::Held(place) => Err(NotMade::Held(key_at(from + place))),
            Reply::Refused(error) => Err(NotMade::Error(self.core.refusal(error))),
            reply => Err(NotMade::Error(GridError::Internal(format!("a claim was answered by {reply:?}")))),
        }
    }

    fn apply_together<R>(
        &self,
        cell: &Cell,
        state: &mut CellState,
        owner: Caller,
        change: Change<'_>,
        reply: impl FnOnce(Reply<'_>) -> R,
    ) -> R {
        let (shared, core) = (&*self.shared, &*self.core);
        let command = Command { map: core.id, now: shared.now(), caller: owner, change };
        shared.apply(cell, state, core, &command, reply)
    }
}
