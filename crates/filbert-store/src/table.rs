//! The hash table of one map in one partition: extendible hashing over the top bits of the key's
//! 64-bit hash.
//!
//! ```text
//! hash  1 0 1 | 1 0 1 1 0 ... | t t t t t t t t   directory   segments
//!       '---'                   '-------------'   000 ----> [tags; records]  depth 1: hashes 0...
//!       first `depth` bits      tag, compared     001 --/
//!       select the segment      before the record 100 ----> [tags; records]  depth 2: hashes 10...
//! ```
//!
//! A lookup accesses the directory, the segment's line of tags, the slot and the record. A full
//! segment is split by the next bit of the hash, which moves at most [`SLOTS`] pointers: the table
//! is never rehashed as a whole, so there are no long pauses. Segments with few records merge again
//! and free memory; an empty table owns no memory.
//!
//! Keys with hashes that share a long prefix would need a directory of unlimited size. Therefore
//! the directory has at most [`DIRECTORY_RATIO_MAX`] entries per segment. Records that do not fit
//! into a segment then go into one tree for the whole table, the overflow, in the order of hashes.
//!
//! A segment covers one range of hashes. Iteration processes the ranges in order, each as a whole.
//! A position of an iteration is a hash, so it stays valid when segments are split and merged.

mod segment;
mod walk;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;

use crate::record::Record;
use segment::{SLOTS, Segment};

/// The maximum number of directory entries per segment. Hashes of ordinary keys need 2 to 4.
const DIRECTORY_RATIO_MAX: usize = 8;
/// The size up to which the directory may always grow.
const DIRECTORY_FREE_SIZE: usize = 16;
/// The maximum number of hash bits that select a segment. A position of an iteration has 32 bits.
const DEPTH_MAX: u32 = 26;
/// After a removal, a segment with at most this many records tries to merge with its neighbour.
const MERGE_TRY_LEN: usize = SLOTS / 4;
/// The maximum number of records of two segments that merge. It is far below the number at which a
/// segment is split.
const MERGE_LEN_MAX: usize = SLOTS / 2;

/// The place of a record. Valid until the table changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordPlace {
    Slot { segment: u32, slot: u32 },
    Overflow { hash: u64, index: usize },
}

/// Records by key. `S` computes the hash; tests use hashes that collide.
pub(crate) struct Table<S = FixedState> {
    hasher: S,
    /// 2^depth indexes into `segments`, by the first bits of the hash. Empty in an empty table.
    directory: Vec<u32>,
    depth: u32,
    segments: Vec<Segment>,
    /// The number of segments with the depth of the directory. If it is 0, the directory is halved.
    deepest_count: usize,
    overflow: BTreeMap<u64, Vec<Record>>,
    overflow_len: usize,
    len: usize,
    slots_allocated: usize,
}

impl<S: BuildHasher> Table<S> {
    pub(crate) fn new(hasher: S) -> Self {
        Table {
            hasher,
            directory: Vec::new(),
            depth: 0,
            segments: Vec::new(),
            deepest_count: 0,
            overflow: BTreeMap::new(),
            overflow_len: 0,
            len: 0,
            slots_allocated: 0,
        }
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// The hash function, independent of the table, for use while records are changed.
    pub(crate) fn hasher(&self) -> impl Fn(&[u8]) -> u64 + use<S>
    where
        S: Clone,
    {
        let hasher = self.hasher.clone();
        move |key| {
            let mut hasher = hasher.build_hasher();
            hasher.write(key);
            hasher.finish()
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes of directory, segments, slots and overflow, without the records.
    pub(crate) fn bytes(&self) -> usize {
        self.directory.capacity() * size_of::<u32>()
            + self.segments.capacity() * size_of::<Segment>()
            + self.slots_allocated * size_of::<Record>()
            + self.overflow_len * (size_of::<u64>() + size_of::<Vec<Record>>() + size_of::<Record>())
    }

    // Inlined: otherwise the result is written to memory and read again in pieces of other sizes,
    // which costs a put a quarter of its time.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<RecordPlace> {
        self.find_where(hash, |record| record.key() == key)
    }

    /// The first record that `is_it` accepts, among the records with the tag of `hash`. `is_it`
    /// must compare the key or its hash.
    #[inline(always)]
    fn find_where(&self, hash: u64, is_it: impl Fn(&Record) -> bool) -> Option<RecordPlace> {
        let segment_index = *self.directory.get(self.directory_index(hash))?;
        let segment = self.segments.get(segment_index as usize)?;
        if let Some(slot) = segment.find(hash, &is_it) {
            return Some(RecordPlace::Slot { segment: segment_index, slot });
        }
        if !segment.overflowed {
            return None;
        }
        let index = self.overflow.get(&hash)?.iter().position(is_it)?;
        Some(RecordPlace::Overflow { hash, index })
    }

    /// The first record with exactly this hash that `is_it` accepts.
    pub(crate) fn find_hash(&self, hash: u64, is_it: impl Fn(&Record) -> bool) -> Option<RecordPlace> {
        self.find_where(hash, |record| self.hash(record.key()) == hash && is_it(record))
    }

    /// The record with a slot. `hash` is the hash of its key.
    #[inline]
    pub(crate) fn find_slot(&self, hash: u64, slot: u32) -> Option<&Record> {
        self.at(self.find_where(hash, |record| record.slot() == Some(slot))?)
    }

    /// All records. The order is not specified, but is the same for the same history. Each record
    /// may be replaced by another one of the same key.
    pub(crate) fn records_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        let in_segments = self.segments.iter_mut().flat_map(|segment| segment.records.iter_mut());
        in_segments.chain(self.overflow.values_mut().flatten())
    }

    #[inline]
    pub(crate) fn get(&self, hash: u64, key: &[u8]) -> Option<&Record> {
        self.at(self.find(hash, key)?)
    }

    #[inline]
    pub(crate) fn at(&self, place: RecordPlace) -> Option<&Record> {
        match place {
            RecordPlace::Slot { segment, slot } => self.segments.get(segment as usize)?.records.get(slot as usize),
            RecordPlace::Overflow { hash, index } => self.overflow.get(&hash)?.get(index),
        }
    }

    /// The record at a place. It may be replaced by another one of the same key.
    #[inline]
    pub(crate) fn at_mut(&mut self, place: RecordPlace) -> Option<&mut Record> {
        match place {
            RecordPlace::Slot { segment, slot } => {
                self.segments.get_mut(segment as usize)?.records.get_mut(slot as usize)
            }
            RecordPlace::Overflow { hash, index } => self.overflow.get_mut(&hash)?.get_mut(index),
        }
    }

    /// Adds a record. The key must not exist.
    pub(crate) fn insert(&mut self, hash: u64, record: Record) {
        self.len += 1;
        if self.directory.is_empty() {
            self.directory = vec![0];
            self.segments.reserve_exact(1);
            self.segments.push(Segment::new(0, 0));
            self.deepest_count = 1;
        }
        loop {
            let Some(segment_index) = self.segment_index(hash) else { return };
            let Some(segment) = self.segments.get_mut(segment_index) else { return };
            if segment.records.len() < SLOTS {
                self.slots_allocated += segment.push(hash, record);
                return;
            }
            if !self.split(segment_index) {
                if let Some(segment) = self.segments.get_mut(segment_index) {
                    segment.overflowed = true;
                }
                self.overflow.entry(hash).or_default().push(record);
                self.overflow_len += 1;
                return;
            }
        }
    }

    pub(crate) fn remove(&mut self, place: RecordPlace) -> Option<Record> {
        let removed = match place {
            RecordPlace::Slot { segment, slot } => self.remove_from_segment(segment as usize, slot as usize),
            RecordPlace::Overflow { hash, index } => self.remove_from_overflow(hash, index),
        };
        if removed.is_some() {
            self.len -= 1;
        }
        if self.len == 0 {
            self.give_back();
        }
        removed
    }

    /// Removes and returns all records, in the order of segments. The empty table owns no memory.
    pub(crate) fn take_all(&mut self) -> Vec<Record> {
        let mut all = Vec::with_capacity(self.len);
        let mut position = Some(0);
        while let Some(start) = position {
            let range = self.range_at(start);
            if let Some(index) = self.segment_index(start)
                && let Some(segment) = self.segments.get_mut(index)
            {
                all.append(&mut segment.records);
                if segment.overflowed {
                    let hashes: Vec<u64> =
                        self.overflow.range(range.first..=range.last).map(|(hash, _)| *hash).collect();
                    for hash in hashes {
                        all.append(&mut self.overflow.remove(&hash).unwrap_or_default());
                    }
                }
            }
            position = range.next();
        }
        self.give_back();
        all
    }

    fn give_back(&mut self) {
        self.directory = Vec::new();
        self.segments = Vec::new();
        self.overflow = BTreeMap::new();
        (self.depth, self.deepest_count, self.overflow_len, self.len, self.slots_allocated) = (0, 0, 0, 0, 0);
    }

    #[inline]
    fn directory_index(&self, hash: u64) -> usize {
        // A shift by 64 bits is not defined; with a depth of 0 the index is 0.
        hash.checked_shr(64 - self.depth).unwrap_or(0) as usize
    }

    #[inline]
    fn segment_index(&self, hash: u64) -> Option<usize> {
        self.directory.get(self.directory_index(hash)).map(|index| *index as usize)
    }

    /// Splits a full segment. Returns `false` if it cannot be split any more.
    fn split(&mut self, index: usize) -> bool {
        let Some(segment) = self.segments.get(index) else { return false };
        let depth = segment.depth();
        if depth >= DEPTH_MAX || (depth == self.depth && !self.double_directory()) {
            return false;
        }
        let Some(segment) = self.segments.get_mut(index) else { return false };
        let old_capacity = segment.records.capacity();
        let hasher = &self.hasher;
        let upper = segment.split(|key| {
            let mut hash = hasher.build_hasher();
            hash.write(key);
            hash.finish()
        });
        self.slots_allocated += segment.records.capacity() + upper.records.capacity();
        self.slots_allocated -= old_capacity;
        let (depth, lower_prefix, upper_prefix) = (upper.depth(), segment.prefix, upper.prefix);
        if self.segments.len() == self.segments.capacity() {
            // Grows by an eighth instead of doubling: unused capacity would cost memory for every
            // entry.
            self.segments.reserve_exact(self.segments.len() / 8 + 1);
        }
        self.segments.push(upper);
        self.point(upper_prefix, depth, self.segments.len() - 1);
        if depth == self.depth {
            self.deepest_count += 2;
        }
        self.refill(self.directory_start(lower_prefix, depth));
        self.refill(self.directory_start(upper_prefix, depth));
        true
    }

    fn double_directory(&mut self) -> bool {
        let size = self.directory.len() * 2;
        if size > DIRECTORY_FREE_SIZE && size > self.segments.len() * DIRECTORY_RATIO_MAX {
            return false;
        }
        self.directory = self.directory.iter().flat_map(|index| [*index, *index]).collect();
        self.depth += 1;
        self.deepest_count = 0;
        true
    }

    fn directory_start(&self, prefix: u32, depth: u32) -> usize {
        (prefix as usize) << (self.depth - depth)
    }

    /// Makes the directory entries of a prefix point to a segment.
    fn point(&mut self, prefix: u32, depth: u32, index: usize) {
        let start = self.directory_start(prefix, depth);
        let count = 1usize << (self.depth - depth);
        for entry in self.directory.iter_mut().skip(start).take(count) {
            *entry = index as u32;
        }
    }

    /// Moves records from the overflow into a segment that has room again.
    fn refill(&mut self, directory_index: usize) {
        let Some(index) = self.directory.get(directory_index).map(|index| *index as usize) else { return };
        let Some(segment) = self.segments.get_mut(index) else { return };
        if !segment.overflowed {
            return;
        }
        let range = segment.range();
        while segment.records.len() < SLOTS {
            let Some((&hash, records)) = self.overflow.range_mut(range.first..=range.last).next() else { break };
            if let Some(record) = records.pop() {
                self.slots_allocated += segment.push(hash, record);
                self.overflow_len -= 1;
            }
            if records.is_empty() {
                self.overflow.remove(&hash);
            }
        }
        segment.overflowed = self.overflow.range(range.first..=range.last).next().is_some();
    }

    fn remove_from_segment(&mut self, index: usize, slot: usize) -> Option<Record> {
        let segment = self.segments.get_mut(index)?;
        let capacity = segment.records.capacity();
        let removed = segment.remove(slot)?;
        self.slots_allocated -= capacity - segment.records.capacity();
        let (prefix, depth, len, overflowed) =
            (segment.prefix, segment.depth(), segment.records.len(), segment.overflowed);
        if overflowed {
            self.refill(self.directory_start(prefix, depth));
        } else if len <= MERGE_TRY_LEN {
            self.merge(prefix, depth);
        }
        Some(removed)
    }

    fn remove_from_overflow(&mut self, hash: u64, index: usize) -> Option<Record> {
        let records = self.overflow.get_mut(&hash)?;
        if index >= records.len() {
            return None;
        }
        let removed = records.swap_remove(index);
        if records.is_empty() {
            self.overflow.remove(&hash);
        }
        self.overflow_len -= 1;
        self.refill(self.directory_index(hash));
        Some(removed)
    }

    /// Merges the segment of a prefix with its neighbour, and the result with its neighbour, as
    /// long as they are small.
    fn merge(&mut self, mut prefix: u32, mut depth: u32) {
        while depth > 0 {
            let lower = self.directory.get(self.directory_start(prefix & !1, depth)).map(|index| *index as usize);
            let upper = self.directory.get(self.directory_start(prefix | 1, depth)).map(|index| *index as usize);
            let (Some(lower), Some(upper)) = (lower, upper) else { return };
            let (Some(first), Some(second)) = (self.segments.get(lower), self.segments.get(upper)) else { return };
            let fits = first.records.len() + second.records.len() <= MERGE_LEN_MAX;
            // If the neighbour was split, its depth is different.
            if first.depth() != second.depth() || !fits || first.overflowed || second.overflowed {
                return;
            }
            prefix >>= 1;
            self.merge_pair(lower, upper, prefix, depth);
            depth -= 1;
            self.halve_directory();
        }
    }

    fn merge_pair(&mut self, lower: usize, upper: usize, prefix: u32, depth: u32) {
        let last = self.segments.len() - 1;
        let mut removed = self.segments.swap_remove(upper);
        // The last segment has moved to the place of the removed one.
        let lower = if lower == last { upper } else { lower };
        if let Some(moved) = self.segments.get(upper) {
            self.point(moved.prefix, moved.depth(), upper);
        }
        self.point(prefix, depth - 1, lower);
        if depth == self.depth {
            self.deepest_count -= 2;
        }
        self.slots_allocated -= removed.records.capacity();
        if let Some(target) = self.segments.get_mut(lower) {
            let capacity = target.records.capacity();
            target.absorb(&mut removed);
            self.slots_allocated += target.records.capacity();
            self.slots_allocated -= capacity;
        }
        if self.segments.len() * 2 < self.segments.capacity() {
            self.segments.shrink_to(self.segments.len() + self.segments.len() / 8);
        }
    }

    fn halve_directory(&mut self) {
        while self.depth > 0 && self.deepest_count == 0 {
            self.directory = self.directory.iter().step_by(2).copied().collect();
            self.depth -= 1;
            self.deepest_count = self.segments.iter().filter(|segment| segment.depth() == self.depth).count();
        }
    }
}

#[cfg(test)]
mod tests;
