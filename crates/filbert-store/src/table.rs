//! The hash table of one map in one partition: extendible hashing over the top bits of the key's 64-bit hash.
//!
//! ```text
//! hash  1 0 1 | 1 0 1 1 0 ... | t t t t t t t t        directory   segments
//!       '---'                   '-------------'         000 ----> [tags; records]  depth 1: hashes 0...
//!       first `depth` bits      tag, compared           001 --/
//!       choose the segment      before the record       100 ----> [tags; records]  depth 2: hashes 10...
//! ```
//!
//! A lookup touches the directory, the segment's line of tags, the slot and the record. A full segment splits in two by
//! the next bit of the hash, which moves at most [`SLOTS`] pointers: there is no pause in which a whole table is hashed
//! again. Segments that empty merge again and give their memory back; an empty table owns no memory.
//!
//! Keys whose hashes share a long prefix would make a directory of any size without parting. So it stays below
//! [`DIRECTORY_RATIO_MAX`] times the number of segments, and what then does not fit into a segment goes into one tree
//! for the whole table, in order of hash.
//!
//! A segment covers one range of hashes. Iteration walks the ranges in order and takes each as a whole, so a position
//! in it, a hash, stays right however segments split and merge meanwhile.

mod segment;
mod walk;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;

use crate::record::Record;
use segment::{SLOTS, Segment};

/// Entries of the directory per segment, at most. Hashes of ordinary keys need 2 to 4.
const DIRECTORY_RATIO_MAX: usize = 8;
/// Directories up to this size need no reason.
const DIRECTORY_FREE_SIZE: usize = 16;
/// Bits of the hash that can choose a segment, at most; a position in an iteration has 32.
const DEPTH_MAX: u32 = 26;
/// A segment with at most this many records looks whether it can merge with its neighbour.
const MERGE_TRY_LEN: usize = SLOTS / 4;
/// Two segments merge when they have at most this many records together: far enough from a split.
const MERGE_LEN_MAX: usize = SLOTS / 2;

/// Where a record is, until the table changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Slot { segment: u32, slot: u32 },
    Overflow { hash: u64, index: usize },
}

/// Records by key. `S` makes the hash; tests give hashes that collide.
pub(crate) struct Table<S = FixedState> {
    hasher: S,
    /// 2^depth indexes into `segments`, by the first bits of the hash; empty in an empty table.
    directory: Vec<u32>,
    depth: u32,
    segments: Vec<Segment>,
    /// Segments as deep as the directory; with none left, the directory halves.
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

    /// What makes the hash, apart from the table, for use while its records change.
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

    /// Bytes of directory, segments, slots and overflow; records apart.
    pub(crate) fn bytes(&self) -> usize {
        self.directory.capacity() * size_of::<u32>()
            + self.segments.capacity() * size_of::<Segment>()
            + self.slots_allocated * size_of::<Record>()
            + self.overflow_len * (size_of::<u64>() + size_of::<Vec<Record>>() + size_of::<Record>())
    }

    // Where it is not inlined, its result goes through memory in pieces of other sizes than it is read in, which costs a put a
    // quarter of its time.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<Place> {
        self.find_where(hash, |record| record.key() == key)
    }

    /// The first record whose hash may be `hash` (its key must be compared, or hashed) and that `is_it` accepts.
    #[inline(always)]
    fn find_where(&self, hash: u64, is_it: impl Fn(&Record) -> bool) -> Option<Place> {
        let segment_index = *self.directory.get(self.directory_index(hash))?;
        let segment = self.segments.get(segment_index as usize)?;
        if let Some(slot) = segment.find(hash, &is_it) {
            return Some(Place::Slot { segment: segment_index, slot });
        }
        if !segment.overflowed {
            return None;
        }
        let index = self.overflow.get(&hash)?.iter().position(is_it)?;
        Some(Place::Overflow { hash, index })
    }

    /// The first record with exactly this hash that `is_it` accepts.
    pub(crate) fn find_hash(&self, hash: u64, is_it: impl Fn(&Record) -> bool) -> Option<Place> {
        self.find_where(hash, |record| self.hash(record.key()) == hash && is_it(record))
    }

    /// The record in a slot of the map's numbering, whose key has this hash.
    #[inline]
    pub(crate) fn find_slot(&self, hash: u64, slot: u32) -> Option<&Record> {
        self.at(self.find_where(hash, |record| record.slot() == Some(slot))?)
    }

    /// All records, in no particular order, but the same one for the same history. Each may be replaced by another of
    /// the same key.
    pub(crate) fn records_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        let in_segments = self.segments.iter_mut().flat_map(|segment| segment.records.iter_mut());
        in_segments.chain(self.overflow.values_mut().flatten())
    }

    #[inline]
    pub(crate) fn get(&self, hash: u64, key: &[u8]) -> Option<&Record> {
        self.at(self.find(hash, key)?)
    }

    #[inline]
    pub(crate) fn at(&self, place: Place) -> Option<&Record> {
        match place {
            Place::Slot { segment, slot } => self.segments.get(segment as usize)?.records.get(slot as usize),
            Place::Overflow { hash, index } => self.overflow.get(&hash)?.get(index),
        }
    }

    /// The record at a place; it may be replaced by another of the same key.
    #[inline]
    pub(crate) fn at_mut(&mut self, place: Place) -> Option<&mut Record> {
        match place {
            Place::Slot { segment, slot } => self.segments.get_mut(segment as usize)?.records.get_mut(slot as usize),
            Place::Overflow { hash, index } => self.overflow.get_mut(&hash)?.get_mut(index),
        }
    }

    /// Adds a record whose key is not there yet.
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

    pub(crate) fn remove(&mut self, place: Place) -> Option<Record> {
        let removed = match place {
            Place::Slot { segment, slot } => self.remove_from_segment(segment as usize, slot as usize),
            Place::Overflow { hash, index } => self.remove_from_overflow(hash, index),
        };
        if removed.is_some() {
            self.len -= 1;
        }
        if self.len == 0 {
            self.give_back();
        }
        removed
    }

    /// All records, in order of hash, leaving an empty table that owns no memory.
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
        // A shift by all 64 bits is not defined, and with no bits to look at the index is 0.
        hash.checked_shr(64 - self.depth).unwrap_or(0) as usize
    }

    #[inline]
    fn segment_index(&self, hash: u64) -> Option<usize> {
        self.directory.get(self.directory_index(hash)).map(|index| *index as usize)
    }

    /// Makes room by splitting a full segment; `false` when it may not be split any more.
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
            // Grows by an eighth and not twofold: the slack would count against every entry.
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

    /// Lets the directory's entries for a prefix point to a segment.
    fn point(&mut self, prefix: u32, depth: u32, index: usize) {
        let start = self.directory_start(prefix, depth);
        let count = 1usize << (self.depth - depth);
        for entry in self.directory.iter_mut().skip(start).take(count) {
            *entry = index as u32;
        }
    }

    /// Moves records that had to overflow back into a segment that now has room.
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

    /// Merges the segment of a prefix with its neighbour, and the result with its own, as long as they are small.
    fn merge(&mut self, mut prefix: u32, mut depth: u32) {
        while depth > 0 {
            let lower = self.directory.get(self.directory_start(prefix & !1, depth)).map(|index| *index as usize);
            let upper = self.directory.get(self.directory_start(prefix | 1, depth)).map(|index| *index as usize);
            let (Some(lower), Some(upper)) = (lower, upper) else { return };
            let (Some(first), Some(second)) = (self.segments.get(lower), self.segments.get(upper)) else { return };
            let fits = first.records.len() + second.records.len() <= MERGE_LEN_MAX;
            // A neighbour that is split more finely has another depth.
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
        // The segment that was last is now where the removed one was.
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
