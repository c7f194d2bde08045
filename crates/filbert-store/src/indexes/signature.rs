//! Which partitions may have a key: a summary of one index over all partitions of a member, so that a lookup need not ask
//! each of them.
//!
//! It is a Bloom filter for each partition, stored across: row by row, with a bit for each partition in every row. A key
//! chooses four rows, and what is set in all of them are the partitions that may have it. So a lookup reads four short runs of
//! memory, however many partitions there are.
//!
//! ```text
//!            partition 0 1 2 3 4 ...
//!   row of hash 1      1 0 1 0 1
//!   row of hash 2      1 1 0 0 1    -->  and: partitions 0 and 4
//!   row of hash 3      1 0 1 1 1
//!   row of hash 4      1 1 0 1 1
//! ```
//!
//! Bits are set under the lock of their partition and never cleared. When as many keys have come as it was made for, another
//! one is made of the keys that are there, and takes its place.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use filbert_data::PartitionId;
use foldhash::quality::FixedState;

/// Partitions that a signature is made for, at most.
pub const SIGNATURE_PARTITIONS_MAX: u32 = 1_024;
const WORDS_MAX: usize = SIGNATURE_PARTITIONS_MAX as usize / 64;
/// Rows for each key of a partition: 16 to 32 when it is made, which finds at most 3 partitions of a thousand too many.
const ROWS_PER_KEY: usize = 16;
/// Rows for each key of a partition when it is full, which finds one partition of a hundred too many.
const ROWS_PER_KEY_MIN: usize = 10;
const ROWS_MIN: usize = 1_024;

/// A summary of one index over all partitions of a member.
pub struct Signature {
    hasher: FixedState,
    words_per_row: usize,
    /// Rows of `words_per_row` words each; none in a signature that only counts.
    rows: Box<[AtomicU64]>,
    /// Partitions with entries whose keys are not known.
    unread: [AtomicU64; WORDS_MAX],
    /// Number of rows less one; they are a power of two.
    mask: usize,
    /// Keys that partitions have brought in, counted once in a while.
    insertions: AtomicUsize,
    insertions_max: usize,
}

impl Signature {
    /// A signature that tells nothing, but counts keys until there are `insertions_max` of them.
    #[must_use]
    pub fn counting(insertions_max: usize) -> Signature {
        Signature {
            hasher: FixedState::with_seed(0),
            words_per_row: 0,
            rows: Box::new([]),
            unread: [const { AtomicU64::new(0) }; WORDS_MAX],
            mask: 0,
            insertions: AtomicUsize::new(0),
            insertions_max,
        }
    }

    /// An empty signature for so many keys in all. A secret `seed` keeps clients from making keys that fill the same rows.
    /// There are at most [`SIGNATURE_PARTITIONS_MAX`] partitions.
    #[must_use]
    pub fn new(partition_count: u32, keys: usize, seed: u64) -> Signature {
        let partitions = partition_count.clamp(1, SIGNATURE_PARTITIONS_MAX) as usize;
        let row_count = (keys / partitions * ROWS_PER_KEY).next_power_of_two().max(ROWS_MIN);
        let words_per_row = partitions.div_ceil(64);
        Signature {
            hasher: FixedState::with_seed(seed),
            words_per_row,
            rows: (0..row_count * words_per_row).map(|_| AtomicU64::new(0)).collect(),
            unread: [const { AtomicU64::new(0) }; WORDS_MAX],
            mask: row_count - 1,
            insertions: AtomicUsize::new(0),
            insertions_max: row_count / ROWS_PER_KEY_MIN * partitions,
        }
    }

    /// Whether it tells anything.
    #[must_use]
    pub fn is_counting(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether more keys have come than it was made for.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.insertions.load(Ordering::Relaxed) > self.insertions_max
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.len() * size_of::<AtomicU64>()
    }

    /// Notes that a partition has a key.
    pub(super) fn insert(&self, partition: PartitionId, key: &[u8]) {
        if self.is_counting() {
            return;
        }
        let (word, bit) = (partition.0 as usize / 64, 1 << (partition.0 % 64));
        for row in self.rows_of(key) {
            if let Some(cell) = self.rows.get(row * self.words_per_row + word).filter(|_| word < self.words_per_row)
                && cell.load(Ordering::Relaxed) & bit == 0
            {
                cell.fetch_or(bit, Ordering::Release);
            }
        }
    }

    /// Notes that a partition has an entry whose keys are not known.
    pub(super) fn insert_unread(&self, partition: PartitionId) {
        if let Some(word) = self.unread.get(partition.0 as usize / 64) {
            word.fetch_or(1 << (partition.0 % 64), Ordering::Release);
        }
    }

    /// Counts keys that were brought in.
    pub(super) fn count(&self, keys: usize) {
        self.insertions.fetch_add(keys, Ordering::Relaxed);
    }

    /// The partitions that may have a key, or an entry whose keys are not known, added to `partitions`; all others have
    /// not. One that only counts adds all.
    pub fn add_partitions_of(&self, key: &[u8], partitions: &mut PartitionSet) {
        if self.is_counting() {
            partitions.all_from = 0;
            return;
        }
        let mut found = [u64::MAX; WORDS_MAX];
        for row in self.rows_of(key) {
            let start = row * self.words_per_row;
            let words = self.rows.get(start..start + self.words_per_row).unwrap_or_default();
            for (found, word) in found.iter_mut().zip(words) {
                *found &= word.load(Ordering::Acquire);
            }
        }
        let found = found.into_iter().zip(&self.unread).take(self.words_per_row);
        for (word, (found, unread)) in partitions.words.iter_mut().zip(found) {
            *word |= found | unread.load(Ordering::Acquire);
        }
    }

    fn rows_of(&self, key: &[u8]) -> [usize; 4] {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        let hash = hasher.finish();
        // 16 bits of its own for each row; those of more than 65,536 rows share some, which makes little difference.
        let at = |shift: u32| (hash.rotate_right(shift) as usize) & self.mask;
        [at(0), at(16), at(32), at(48)]
    }
}

/// Some of a member's partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionSet {
    words: [u64; WORDS_MAX],
    /// All from here on are in it.
    all_from: u32,
    partition_count: u32,
}

impl PartitionSet {
    /// None of so many.
    #[must_use]
    pub fn none_of(partition_count: u32) -> PartitionSet {
        PartitionSet { words: [0; WORDS_MAX], all_from: partition_count, partition_count }
    }

    /// All of so many.
    #[must_use]
    pub fn all_of(partition_count: u32) -> PartitionSet {
        PartitionSet { words: [0; WORDS_MAX], all_from: 0, partition_count }
    }

    /// Whether a partition is in it.
    #[must_use]
    pub fn contains(&self, partition: PartitionId) -> bool {
        let number = partition.0;
        let word = self.words.get(number as usize / 64).copied().unwrap_or(0);
        number < self.partition_count && (number >= self.all_from || word >> (number % 64) & 1 == 1)
    }

    /// The partitions, in order.
    pub fn iter(&self) -> impl Iterator<Item = PartitionId> + use<> {
        let words = self.words;
        let named = (0u32..).step_by(64).zip(words).flat_map(|(first, word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(first + bit)
            })
        });
        let (all_from, partition_count) = (self.all_from, self.partition_count);
        named.take_while(move |number| *number < all_from).chain(all_from..partition_count).map(PartitionId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_misses_no_partition_and_finds_few_too_many() {
        const PARTITIONS: u32 = 271;
        let signature = Signature::new(PARTITIONS, 100_000, 7);
        let key = |number: u32| [&[2u8][..], &number.to_be_bytes()].concat();
        for number in 0..100_000u32 {
            signature.insert(PartitionId(number % PARTITIONS), &key(number));
        }
        signature.count(100_000);
        assert!(!signature.is_full());
        let mut found = 0;
        for number in 0..100_000u32 {
            let mut partitions = PartitionSet::none_of(PARTITIONS);
            signature.add_partitions_of(&key(number), &mut partitions);
            assert!(partitions.contains(PartitionId(number % PARTITIONS)));
            found += partitions.iter().count();
        }
        assert!(found < 100_000 * 2, "{found} partitions for 100,000 keys");
        signature.count(200_000);
        assert!(signature.is_full());
        assert!(signature.bytes() < 100_000 * 6);
    }

    #[test]
    fn sets_of_partitions_tell_what_is_in_them() {
        let all = PartitionSet::all_of(2_000);
        assert_eq!(all.iter().map(|id| id.0).collect::<Vec<_>>(), (0..2_000).collect::<Vec<_>>());
        assert!(all.contains(PartitionId(1_999)) && !all.contains(PartitionId(2_000)));
        assert_eq!(PartitionSet::none_of(271).iter().count(), 0);
        let signature = Signature::new(130, 1, 1);
        signature.insert(PartitionId(129), b"a");
        signature.insert(PartitionId(5), b"a");
        let mut set = PartitionSet::none_of(130);
        signature.add_partitions_of(b"a", &mut set);
        assert_eq!(set.iter().collect::<Vec<_>>(), [PartitionId(5), PartitionId(129)]);
        signature.insert_unread(PartitionId(7));
        let mut set = PartitionSet::none_of(130);
        signature.add_partitions_of(b"absent", &mut set);
        assert_eq!(set.iter().collect::<Vec<_>>(), [PartitionId(7)]);
        Signature::counting(1).add_partitions_of(b"a", &mut set);
        assert_eq!(set.iter().count(), 130);
    }
}
