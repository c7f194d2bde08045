//! A hash of keys that is the same in every replica and every version: for what replicas have to agree on and what
//! travels in snapshots. The table's own hash is seeded per member and serves no such purpose.

/// FNV-1a with 64 bits (Fowler, Noll, Vo), whose bits are then mixed as SplitMix64 does.
///
/// No secret protects it: who makes keys that collide makes others wait a moment longer than they had to, no more.
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
        // Claims and unlocks in the snapshots of other versions have these.
        assert_eq!(stable_hash(b""), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(stable_hash(b"a"), 0x02c0_bdbf_4814_20f8);
        assert_eq!(stable_hash(b"some key"), 0x29ed_7953_3770_e310);
    }
}
