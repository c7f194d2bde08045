//! Postings: the slots of the entries that have one key.

use roaring::RoaringBitmap;

/// The maximum length of a list. A longer list becomes a bitmap.
const LIST_LEN_MAX: usize = 64;
/// The minimum size of a bitmap. A smaller bitmap becomes a list.
const BITMAP_LEN_MIN: u64 = 32;

/// A set of slots. It is never empty in an index.
#[derive(Debug)]
pub(crate) enum Postings {
    One(u32),
    /// Sorted.
    #[allow(clippy::box_collection, reason = "most keys have one slot, and this keeps their postings small")]
    List(Box<Vec<u32>>),
    Bitmap(Box<RoaringBitmap>),
}

impl Postings {
    /// Adds a slot. Returns `false` if it was already there.
    pub(crate) fn insert(&mut self, slot: u32) -> bool {
        match self {
            Postings::One(only) if *only == slot => false,
            Postings::One(only) => {
                let (low, high) = if *only < slot { (*only, slot) } else { (slot, *only) };
                *self = Postings::List(Box::new(vec![low, high]));
                true
            }
            Postings::List(slots) => {
                let Err(at) = slots.binary_search(&slot) else { return false };
                if slots.len() < LIST_LEN_MAX {
                    slots.insert(at, slot);
                } else {
                    let mut bitmap: RoaringBitmap = slots.iter().copied().collect();
                    bitmap.insert(slot);
                    *self = Postings::Bitmap(Box::new(bitmap));
                }
                true
            }
            Postings::Bitmap(slots) => slots.insert(slot),
        }
    }

    /// Removes a slot. Returns whether it was there. A single slot is not removed: the caller drops
    /// the postings.
    pub(crate) fn remove(&mut self, slot: u32) -> bool {
        match self {
            Postings::One(only) => *only == slot,
            Postings::List(slots) => {
                let Ok(at) = slots.binary_search(&slot) else { return false };
                slots.remove(at);
                if let [only] = slots.as_slice() {
                    *self = Postings::One(*only);
                } else if slots.len() * 4 < slots.capacity() {
                    slots.shrink_to_fit();
                }
                true
            }
            Postings::Bitmap(slots) => {
                let removed = slots.remove(slot);
                if slots.len() < BITMAP_LEN_MIN {
                    *self = Postings::List(Box::new(slots.iter().collect()));
                }
                removed
            }
        }
    }

    pub(crate) fn contains(&self, slot: u32) -> bool {
        match self {
            Postings::One(only) => *only == slot,
            Postings::List(slots) => slots.binary_search(&slot).is_ok(),
            Postings::Bitmap(slots) => slots.contains(slot),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Postings::One(_) => 1,
            Postings::List(slots) => slots.len(),
            Postings::Bitmap(slots) => usize::try_from(slots.len()).unwrap_or(usize::MAX),
        }
    }

    /// Visits the slots in order until `visit` returns `false`. Returns whether it never did.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(u32) -> bool) -> bool {
        match self {
            Postings::One(slot) => visit(*slot),
            Postings::List(slots) => slots.iter().all(|slot| visit(*slot)),
            Postings::Bitmap(slots) => slots.iter().all(visit),
        }
    }

    pub(crate) fn add_to(&self, set: &mut RoaringBitmap) {
        match self {
            Postings::One(slot) => {
                set.insert(*slot);
            }
            Postings::List(slots) => set.extend(slots.iter().copied()),
            Postings::Bitmap(slots) => *set |= &**slots,
        }
    }

    /// The bytes on the heap. An estimate for a bitmap: each range of 65,536 slots takes 2 bytes
    /// per slot, but at most 8,192 bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Postings::One(_) => 0,
            Postings::List(slots) => size_of::<Vec<u32>>() + slots.capacity() * size_of::<u32>(),
            Postings::Bitmap(slots) => {
                let containers = slots.max().map_or(0, |slot| slot as usize / 65_536 + 1);
                64 + (self.len() * 2).min(containers * 8_192) + containers * 32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_hold_what_was_put_in_however_they_keep_it() {
        let mut postings = Postings::One(500);
        for slot in (0..200).map(|number| number * 7) {
            assert!(postings.insert(slot));
            assert!(!postings.insert(slot));
        }
        assert_eq!(postings.len(), 201);
        assert!(!postings.remove(1));
        for slot in (0..199).map(|number| number * 7) {
            assert!(postings.remove(slot));
        }
        let mut left = Vec::new();
        postings.for_each(&mut |slot| {
            left.push(slot);
            true
        });
        assert_eq!(left, [500, 1_393]);
        assert!(postings.remove(500));
        assert!(matches!(postings, Postings::One(1_393)));
    }

    #[test]
    fn postings_are_small() {
        assert_eq!(size_of::<Postings>(), 16);
    }
}
