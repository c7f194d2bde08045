//! The numbering of a map's entries: each has a slot, dense from 0 on, as long as it lives. Indexes and columns name
//! entries by it.

/// Which slots are taken, and how to find the record of one: by the hash of its key, among whose records one has the slot.
#[derive(Default)]
pub(crate) struct Slots {
    /// The hash of the key of the entry in each slot; anything in a free one.
    hashes: Vec<u64>,
    /// Free slots below the end, the last freed first to be taken.
    free: Vec<u32>,
}

impl Slots {
    /// Takes a slot. A partition has fewer entries than there are slots: each takes some 40 bytes.
    pub(crate) fn take(&mut self, hash: u64) -> u32 {
        if let Some(slot) = self.free.pop()
            && let Some(place) = self.hashes.get_mut(slot as usize)
        {
            *place = hash;
            return slot;
        }
        let slot = self.hashes.len() as u32;
        if self.hashes.len() == self.hashes.capacity() {
            // Grows by a quarter: twofold slack would count against every entry.
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
