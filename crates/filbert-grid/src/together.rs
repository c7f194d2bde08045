//! A set of changes of several keys of one map that are applied together: by partition, at most one
//! change of each key.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::BuildHasher;

use filbert_data::{PartitionId, partition_of};
use filbert_store::{Batch, BatchItem, BatchPlace, Expected, Reply};
use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::errors::GridError;
use crate::map::Map;
use crate::map_core::RECORD_OVERHEAD_BYTES;

/// The memory overhead of a change beside its key and values: its header in the batch and its place
/// in the table of keys.
const CHANGE_BYTES: usize = 32;

/// The maximum number of changes that are claimed or written under one hold of a partition's lock.
/// Other threads can acquire the lock in between.
pub(crate) const CHANGES_PER_LOCK_MAX: usize = 256;

/// Changes of one map, by key. Each key has at most one change.
#[derive(Default)]
pub struct Together {
    pub(crate) batches: BTreeMap<PartitionId, Batch>,
    /// The places of the changes, by key.
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
    /// An empty set of changes of a map.
    pub fn new(map: &Map) -> Together {
        Together { partition_count: map.partition_count(), ..Together::default() }
    }

    /// Adds the change of a key. `false` if the key has a change already, which stays.
    ///
    /// # Errors
    /// The changes of one partition exceed 4 GiB.
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

    /// Removes the change of a key. Returns whether there was one.
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

    /// The number of changes.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The approximate memory of the changes, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<(PartitionId, BatchPlace)> {
        self.places.find(hash, |(partition, place)| is_at(&self.batches, *partition, *place, key)).copied()
    }

    /// The growth of the map by these changes, in bytes, as the memory limit counts it.
    pub(crate) fn growth(&self) -> usize {
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

/// The reason why changes were not applied. None of them was applied, unless the error is
/// [`SubmitError::Unknown`](crate::replication::SubmitError::Unknown).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// Another caller has locked or claimed this key. All claims were released: the caller may wait
    /// until the key is free.
    Held(Box<[u8]>),
    /// These keys do not have the expected values. All keys stay claimed, so that no other caller
    /// changes them while the caller computes new changes.
    Differ(Vec<Box<[u8]>>),
    /// The changes cannot be applied.
    Error(GridError),
}

impl Map {
    /// Evaluates the answer to a claim of a part of a batch, which starts at `from`. Adds keys
    /// without the expected values to `differing`.
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
}
