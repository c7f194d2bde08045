//! The member's deterministic source of identifiers. The same seed gives the same UUIDs, so that
//! tests and simulations are repeatable. The values are not secret.

use parking_lot::Mutex;
use uuid::{Builder, Uuid};

/// SplitMix64 (Steele, Lea and Flood, 2014): every seed gives a sequence of full period.
#[derive(Debug)]
pub(crate) struct SplitMix(u64);

impl SplitMix {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn next_uuid(&mut self) -> Uuid {
        let high = self.next_u64().to_be_bytes();
        let low = self.next_u64().to_be_bytes();
        let mut bytes = [0; 16];
        for (byte, value) in bytes.iter_mut().zip(high.into_iter().chain(low)) {
            *byte = value;
        }
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// Generates UUIDs of listeners, from any thread.
#[derive(Debug)]
pub(crate) struct UuidSource(Mutex<SplitMix>);

impl UuidSource {
    pub(crate) fn new(generator: SplitMix) -> Self {
        Self(Mutex::new(generator))
    }

    pub(crate) fn next(&self) -> Uuid {
        self.0.lock().next_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_uuids_and_another_seed_others() {
        let (mut one, mut same, mut other) = (SplitMix::new(7), SplitMix::new(7), SplitMix::new(8));
        let first = one.next_uuid();
        assert_eq!(first, same.next_uuid());
        assert_ne!(first, other.next_uuid());
        assert_ne!(first, one.next_uuid());
        assert_eq!(first.get_version_num(), 4);
    }
}
