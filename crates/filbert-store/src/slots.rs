//! The slots of a map's entries: each entry has a number as long as it exists, dense from 0 on.
//! Indexes and columns refer to entries by slot.

/// The used and free slots. The record of a slot is found by the hash of its key, and by comparing
/// the slots of the records with this hash.
#[derive(Default)]
pub(crate) struct Slots {
    /// The hash of the key of the entry in each slot. Undefined for free slots.
    hashes: Vec<u64>,
    /// The free slots below the end. The slot that was freed last is used first.
    free: Vec<u32>,
}

impl Slots {
    /// Allocates a slot. Slots always fit into `u32`, because each entry takes at least 40 bytes.
    pub(crate) fn take(&mut self, hash: u64) -> u32 {
        if let Some(slot) = self.free.pop()
            && let Some(place) = self.hashes.get_mut(slot as usize)
        {
            *place = hash;
            return slot;
        }
        let slot = self.hashes.len() as u32;
        if self.hashes.len() == self.hashes.capacity() {
            // Grows by a quarter instead of doubling: unused capacity would cost memory for every
            // entry.
            self.hashes.reserve_exact((self.hashes.len() / 4).max(8));
        }
        self.hashes.push(hash);
        slot
    }

    pub(crate) fn free(&mut self, slot: u32) {
        if slot as usize + 1 == self.hashes.len() {
            self.hashes.pop();
        } else {
            self.free.push(slot);
        }
        if self.free.len() == self.hashes.len() {
            *self = Slots::default();
        }
    }

    /// The hash of the key of the entry in a slot.
    #[inline]
    pub(crate) fn hash(&self, slot: u32) -> Option<u64> {
        self.hashes.get(slot as usize).copied()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>() + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_slots_are_taken_again_and_no_entry_owns_no_memory() {
        let mut slots = Slots::default();
        let taken: Vec<u32> = (0..10).map(|hash| slots.take(hash)).collect();
        assert_eq!(taken, (0..10).collect::<Vec<u32>>());
        slots.free(3);
        slots.free(9);
        assert_eq!((slots.take(33), slots.hash(3)), (3, Some(33)));
        assert_eq!(slots.take(99), 9);
        for slot in 0..10 {
            slots.free(slot);
        }
        assert_eq!(slots.bytes(), 0);
    }
}
