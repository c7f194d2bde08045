//! Signatures: a summary of one index over all partitions of a member. It finds the partitions that
//! may have a key, so that a lookup does not access all partitions.
//!
//! A signature is a Bloom filter for each partition, stored transposed: each row has one bit for
//! each partition. A key selects four rows. A partition may have the key if its bit is set in all
//! four rows. So a lookup reads four short ranges of memory, regardless of the number of
//! partitions.
//!
//! ```text
//!            partition 0 1 2 3 4 ...
//!   row of hash 1      1 0 1 0 1
//!   row of hash 2      1 1 0 0 1    -->  and: partitions 0 and 4
//!   row of hash 3      1 0 1 1 1
//!   row of hash 4      1 1 0 1 1
//! ```
//!
//! Bits are set under the lock of their partition, and never cleared. When the number of added keys
//! reaches the capacity, a new signature is created from the current keys, and replaces the old
//! one.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use filbert_data::PartitionId;
use foldhash::quality::FixedState;

/// The maximum number of partitions of a signature.
pub const SIGNATURE_PARTITIONS_MAX: u32 = 1_024;
const WORDS_MAX: usize = SIGNATURE_PARTITIONS_MAX as usize / 64;
/// The number of rows for each key of a partition. A new signature has 16 to 32, because their
/// number is a power of two. Of a thousand partitions without the key, a lookup finds at most 3.
const ROWS_PER_KEY: usize = 16;
/// The number of rows for each key of a partition when the signature is full. Then a lookup finds
/// one of a hundred partitions without the key.
const ROWS_PER_KEY_MIN: usize = 10;
const ROWS_MIN: usize = 1_024;

/// A summary of one index over all partitions of a member.
pub struct Signature {
    hasher: FixedState,
    words_per_row: usize,
    /// Rows of `words_per_row` words each. Empty in a signature that only counts.
    rows: Box<[AtomicU64]>,
    /// The partitions with entries whose keys are not known.
    unread: [AtomicU64; WORDS_MAX],
    /// The number of rows minus one. The number of rows is a power of two.
    mask: usize,
    /// The number of keys added by partitions, which report them in batches.
    insertions: AtomicUsize,
    insertions_max: usize,
}

impl Signature {
    /// A signature without rows, which only counts keys until there are `insertions_max` of them.
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

    /// An empty signature for a total of `keys` keys. A secret `seed` prevents clients from
    /// creating keys that fill the same rows. There are at most [`SIGNATURE_PARTITIONS_MAX`]
    /// partitions.
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

    /// Whether the signature has no rows and only counts keys.
    #[must_use]
    pub fn is_counting(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether more keys were added than the capacity.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.insertions.load(Ordering::Relaxed) > self.insertions_max
    }

    /// The bytes of the rows.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.len() * size_of::<AtomicU64>()
    }

    /// Adds a key of a partition.
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

    /// Adds to the number of added keys.
    pub(super) fn count(&self, keys: usize) {
        self.insertions.fetch_add(keys, Ordering::Relaxed);
    }

    /// Adds to `partitions` the partitions that may have a key, or that have an entry whose keys
    /// are not known. No other partition has the key. A signature that only counts adds all
    /// partitions.
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
        // Each row uses its own 16 bits. With more than 65,536 rows some bits are shared, which
        // makes little difference.
        let at = |shift: u32| (hash.rotate_right(shift) as usize) & self.mask;
        [at(0), at(16), at(32), at(48)]
    }
}

/// A set of the partitions of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionSet {
    words: [u64; WORDS_MAX],
    /// All partitions from this number on are in the set.
    all_from: u32,
    partition_count: u32,
}

impl PartitionSet {
    /// The empty set, of `partition_count` partitions.
    #[must_use]
    pub fn none_of(partition_count: u32) -> PartitionSet {
        PartitionSet { words: [0; WORDS_MAX], all_from: partition_count, partition_count }
    }

    /// The set of all of `partition_count` partitions.
    #[must_use]
    pub fn all_of(partition_count: u32) -> PartitionSet {
        PartitionSet { words: [0; WORDS_MAX], all_from: 0, partition_count }
    }

    /// Whether a partition is in the set.
    #[must_use]
    pub fn contains(&self, partition: PartitionId) -> bool {
        let number = partition.0;
        let word = self.words.get(number as usize / 64).copied().unwrap_or(0);
        number < self.partition_count && (number >= self.all_from || word >> (number % 64) & 1 == 1)
    }

    /// The partitions in the set, in order.
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
    fn sets_of_partitions_contain_what_was_added() {
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
