//! The partition of a key, computed with the algorithm of all clients.

use std::fmt;

use crate::BLOB_HEADER_BYTES;

/// The seed of the hash in all clients.
const SEED: u32 = 0x0100_0193;

/// The id of a partition of the cluster, from 0 to the number of partitions minus 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionId(pub u32);

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The hash that selects a key's partition: the hash in the header if it is not 0 (clients set it
/// to keep several keys in one partition), else the murmur3 hash of the payload, which follows the
/// 8 bytes of the header.
#[inline]
pub fn partition_hash(blob: &[u8]) -> i32 {
    match blob.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes)) {
        Some(hash) if hash != 0 => hash,
        _ => murmur3(blob.get(BLOB_HEADER_BYTES..).unwrap_or_default(), SEED).cast_signed(),
    }
}

/// The partition of a key: the absolute value of the hash modulo `partition_count`. It is 0 if the
/// hash has no absolute value (`i32::MIN`), and 0 if the count is 0.
#[inline]
pub fn partition_of(blob: &[u8], partition_count: u32) -> PartitionId {
    let hash = partition_hash(blob).checked_abs().unwrap_or(0).unsigned_abs();
    PartitionId(hash.checked_rem(partition_count).unwrap_or(0))
}

/// MurmurHash3, the 32-bit variant for x86 by Austin Appleby.
#[inline]
fn murmur3(bytes: &[u8], seed: u32) -> u32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = seed;
    for block in blocks {
        hash ^= scramble(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let last = tail.iter().rev().fold(0, |last, byte| last << 8 | u32::from(*byte));
        hash ^= scramble(last);
    }
    // The algorithm takes the length modulo 2^32.
    hash ^= bytes.len() as u32;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[inline]
fn scramble(block: u32) -> u32 {
    block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_in_the_header_wins_over_the_payload() {
        let mut blob = vec![0, 0, 1, 0, 0xff, 0xff, 0xff, 0xf9, 0, 0, 0, 1];
        assert_eq!(partition_hash(&blob), 256);
        let other_payload = {
            *blob.last_mut().unwrap() = 2;
            partition_hash(&blob)
        };
        assert_eq!(other_payload, 256);
    }

    #[test]
    fn the_smallest_hash_belongs_to_partition_0() {
        let blob = [0x80, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(partition_hash(&blob), i32::MIN);
        assert_eq!(partition_of(&blob, 271), PartitionId(0));
    }

    #[test]
    fn negative_hashes_count_by_their_absolute_value() {
        let blob = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        assert_eq!(partition_of(&blob, 271), PartitionId(1));
    }

    #[test]
    fn any_bytes_have_a_partition() {
        for length in 0..20 {
            assert!(partition_of(&vec![0; length], 271).0 < 271);
            assert_eq!(partition_of(&vec![7; length], 0), PartitionId(0));
        }
    }
}
