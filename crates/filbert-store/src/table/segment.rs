//! A segment of the table: up to 32 records whose hashes begin with the same bits, and their tags
//! in one cache line.

use crate::record::Record;

use super::walk::Range;

/// The maximum number of records of a segment. With 32, everything else in a segment fits into one
/// cache line, and a split is cheap.
pub(super) const SLOTS: usize = 32;

/// The number of slots that are allocated together. A segment is two thirds full on average, so it
/// does not pay for the last third.
const SLOT_STEP: usize = 4;

/// One cache line; the slots are allocated elsewhere.
#[repr(align(64))]
pub(super) struct Segment {
    /// The low byte of each record's hash, in the order of `records`. Undefined beyond their
    /// number.
    tags: [u8; SLOTS],
    pub(super) records: Vec<Record>,
    /// The first `depth` bits of the hashes in this segment.
    pub(super) prefix: u32,
    depth: u8,
    /// Whether the table's overflow contains records of this segment.
    pub(super) overflowed: bool,
}

impl Segment {
    pub(super) fn new(prefix: u32, depth: u32) -> Self {
        // Depths are at most 26.
        Segment { tags: [0; SLOTS], records: Vec::new(), prefix, depth: depth as u8, overflowed: false }
    }

    pub(super) fn depth(&self) -> u32 {
        u32::from(self.depth)
    }

    /// The range of the hashes that belong to this segment.
    pub(super) fn range(&self) -> Range {
        Range::of_prefix(self.prefix, self.depth())
    }

    /// The slot of the first record with the tag of the hash that `is_it` accepts.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(&Record) -> bool) -> Option<u32> {
        let wanted = LOW_BITS * u64::from(tag(hash));
        let (chunks, _) = self.tags.as_chunks::<8>();
        for (chunk, base) in chunks.iter().zip((0..).step_by(8)) {
            let mut candidates = zero_bytes(u64::from_le_bytes(*chunk) ^ wanted);
            while candidates != 0 {
                let slot = base + candidates.trailing_zeros() / 8;
                // Slots beyond the records may have old tags, but have no record.
                if self.records.get(slot as usize).is_some_and(&is_it) {
                    return Some(slot);
                }
                candidates &= candidates - 1;
            }
        }
        None
    }

    /// Adds a record to a segment that is not full. Returns the number of newly allocated slots.
    pub(super) fn push(&mut self, hash: u64, record: Record) -> usize {
        let before = self.records.capacity();
        if self.records.len() == before {
            self.records.reserve_exact(SLOT_STEP);
        }
        if let Some(slot) = self.tags.get_mut(self.records.len()) {
            *slot = tag(hash);
        }
        self.records.push(record);
        self.records.capacity() - before
    }

    pub(super) fn remove(&mut self, slot: usize) -> Option<Record> {
        if slot >= self.records.len() {
            return None;
        }
        let removed = self.records.swap_remove(slot);
        let last_tag = self.tags.get(self.records.len()).copied().unwrap_or_default();
        if let Some(freed) = self.tags.get_mut(slot) {
            *freed = last_tag;
        }
        if self.records.capacity() - self.records.len() > 2 * SLOT_STEP {
            self.records.shrink_to(self.records.len().next_multiple_of(SLOT_STEP));
        }
        Some(removed)
    }

    /// Increases the depth by one: keeps the records whose next bit is 0, and returns a segment
    /// with the other records.
    pub(super) fn split(&mut self, hash_of: impl Fn(&[u8]) -> u64) -> Segment {
        let bit = 63 - self.depth();
        self.depth += 1;
        self.prefix <<= 1;
        let mut upper = Segment::new(self.prefix | 1, self.depth());
        upper.overflowed = self.overflowed;
        for record in std::mem::take(&mut self.records) {
            let hash = hash_of(record.key());
            if hash >> bit & 1 == 0 {
                self.push(hash, record)
            } else {
                upper.push(hash, record)
            };
        }
        upper
    }

    /// Decreases the depth by one, and takes the records of the neighbour.
    pub(super) fn absorb(&mut self, neighbour: &mut Segment) {
        self.depth -= 1;
        self.prefix >>= 1;
        let count = self.records.len() + neighbour.records.len();
        self.records.reserve_exact(count.next_multiple_of(SLOT_STEP) - self.records.len());
        for (record, neighbour_tag) in neighbour.records.drain(..).zip(neighbour.tags) {
            // `push` uses only the low byte of the hash, which is the tag.
            self.push(u64::from(neighbour_tag), record);
        }
    }
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit of each byte that is zero. May also set the high bit of a higher byte that is
/// not zero, which is a false candidate.
#[inline]
fn zero_bytes(bytes: u64) -> u64 {
    bytes.wrapping_sub(LOW_BITS) & !bytes & HIGH_BITS
}

/// The low byte of the hash. It is independent of the first bits, which are equal in a segment.
#[inline]
fn tag(hash: u64) -> u8 {
    hash as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_one_cache_line() {
        assert_eq!(size_of::<Segment>(), 64);
    }
}
