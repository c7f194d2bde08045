//! A hash of keys that is the same in every replica and every version. It is used for snapshots,
//! and for state on which replicas must agree. The table's own hash is not suitable, because its
//! seed can differ between replicas.

/// FNV-1a with 64 bits (Fowler, Noll, Vo). The bits are then mixed as in SplitMix64.
///
/// It has no secret seed: a client that creates colliding keys can only make other callers wait a
/// little longer than necessary.
pub(crate) fn stable_hash(key: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in key {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_never_changes() {
        // Claims and unlocks in snapshots of other versions contain these hashes.
        assert_eq!(stable_hash(b""), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(stable_hash(b"a"), 0x02c0_bdbf_4814_20f8);
        assert_eq!(stable_hash(b"some key"), 0x29ed_7953_3770_e310);
    }
}
