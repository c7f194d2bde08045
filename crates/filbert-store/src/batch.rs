//! Changes of several keys of one partition that are applied together, as one piece of memory.
//! Commands and logs contain batches in this format.
//!
//! The items follow each other; all lengths are little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | bits 0 and 1: the expectation, 0 = anything, 1 = no entry, 2 = a value |
//! | | bit 2: a value is written; bit 3: the item was removed from the batch |
//! | 4 | length of the key |
//! | 4 | length of the expected value |
//! | 4 | length of the new value |
//! | .. | key, expected value, new value |

/// The state of the entry that a change expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected<'b> {
    /// Any state.
    Anything,
    /// No entry.
    Nothing,
    /// An entry with this value, byte for byte.
    Value(&'b [u8]),
}

/// The change of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchItem<'b> {
    /// The key's bytes.
    pub key: &'b [u8],
    /// The expected state of the entry.
    pub expected: Expected<'b>,
    /// The new value; `None` = the entry is removed.
    pub value: Option<&'b [u8]>,
}

const HEAD_BYTES: usize = 13;
const NOTHING: u8 = 1;
const VALUE: u8 = 2;
const EXPECTATIONS: u8 = 3;
const WRITES: u8 = 4;
const TAKEN_OUT: u8 = 8;
const KINDS: u8 = EXPECTATIONS | WRITES | TAKEN_OUT;

/// Changes of keys of one partition. No key occurs twice.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    len: usize,
}

/// The place of an item in a batch, in bytes from the beginning.
pub type BatchPlace = u32;

impl Batch {
    /// A batch from the bytes of a command.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Batch {
        Batch { bytes: bytes.to_vec(), len: items(bytes).count() }
    }

    /// Adds a change. Returns its place, or `None` if the batch has reached 4 GiB or a part of the
    /// item exceeds 4 GiB.
    pub fn push(&mut self, item: &BatchItem<'_>) -> Option<BatchPlace> {
        let (kind, expected) = match item.expected {
            Expected::Anything => (0, [].as_slice()),
            Expected::Nothing => (NOTHING, [].as_slice()),
            Expected::Value(value) => (VALUE, value),
        };
        let place = BatchPlace::try_from(self.bytes.len()).ok()?;
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).ok().map(u32::to_le_bytes);
        let value = item.value.unwrap_or_default();
        let lengths = [length(item.key)?, length(expected)?, length(value)?];
        self.bytes.reserve(HEAD_BYTES + item.key.len() + expected.len() + value.len());
        self.bytes.push(kind | if item.value.is_some() { WRITES } else { 0 });
        lengths.iter().for_each(|length| self.bytes.extend_from_slice(length));
        [item.key, expected, value].iter().for_each(|bytes| self.bytes.extend_from_slice(bytes));
        self.len += 1;
        Some(place)
    }

    /// The item at a place; `None` if it was removed.
    #[must_use]
    pub fn at(&self, place: BatchPlace) -> Option<BatchItem<'_>> {
        let (kind, item, _) = decode(self.bytes.get(place as usize..)?)?;
        (kind & TAKEN_OUT == 0).then_some(item)
    }

    /// Removes an item.
    pub fn take_out(&mut self, place: BatchPlace) {
        if let Some(kind) = self.bytes.get_mut(place as usize).filter(|kind| **kind & TAKEN_OUT == 0) {
            *kind |= TAKEN_OUT;
            self.len -= 1;
        }
    }

    /// Number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes for a command.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Splits the batch into parts of at most `changes_max` changes. Each part has the place where
    /// it begins.
    pub fn parts(&self, changes_max: usize) -> impl Iterator<Item = (BatchPlace, &[u8])> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let rest = self.bytes.get(from..).filter(|rest| !rest.is_empty())?;
            let (mut left, mut count) = (rest, 0);
            while count < changes_max
                && let Some((kind, _, after)) = decode(left)
            {
                left = after;
                count += usize::from(kind & TAKEN_OUT == 0);
            }
            let part = rest.get(..rest.len() - left.len()).filter(|part| !part.is_empty())?;
            let place = BatchPlace::try_from(from).ok()?;
            from += part.len();
            Some((place, part))
        })
    }

    /// The changes, each with its place.
    pub fn items(&self) -> impl Iterator<Item = (BatchPlace, BatchItem<'_>)> {
        items(&self.bytes)
    }
}

/// The changes of a batch in the bytes of a command, each with its place. Ends at bytes that are
/// not a batch.
pub(crate) fn items(bytes: &[u8]) -> impl Iterator<Item = (BatchPlace, BatchItem<'_>)> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        loop {
            let place = BatchPlace::try_from(bytes.len() - rest.len()).ok()?;
            let (kind, item, after) = decode(rest)?;
            rest = after;
            if kind & TAKEN_OUT == 0 {
                return Some((place, item));
            }
        }
    })
}

/// The offset of the first byte that is not part of a batch; `None` if the batch is valid.
pub(crate) fn broken_at(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match decode(rest) {
            Some((kind, _, after)) if kind & !KINDS == 0 && kind & EXPECTATIONS != EXPECTATIONS => rest = after,
            _ => return Some(bytes.len() - rest.len()),
        }
    }
    None
}

fn decode(bytes: &[u8]) -> Option<(u8, BatchItem<'_>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let [kind, lengths @ ..] = head;
    let (lengths, _) = lengths.as_chunks::<4>();
    let [key, expected, value] = lengths else { return None };
    let length = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
    let (key, rest) = rest.split_at_checked(length(key))?;
    let (expected, rest) = rest.split_at_checked(length(expected))?;
    let (value, rest) = rest.split_at_checked(length(value))?;
    let expected = match kind & EXPECTATIONS {
        NOTHING => Expected::Nothing,
        VALUE => Expected::Value(expected),
        _ => Expected::Anything,
    };
    Some((*kind, BatchItem { key, expected, value: (kind & WRITES != 0).then_some(value) }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_holds_what_was_put_into_it() {
        let all = [
            BatchItem { key: b"a", expected: Expected::Nothing, value: Some(b"1") },
            BatchItem { key: b"", expected: Expected::Anything, value: Some(b"") },
            BatchItem { key: b"ccc", expected: Expected::Value(b""), value: None },
            BatchItem { key: b"d", expected: Expected::Value(b"old"), value: Some(b"new") },
        ];
        let mut batch = Batch::default();
        let places: Vec<_> = all.iter().map(|item| batch.push(item).unwrap()).collect();
        let found: Vec<_> = batch.items().collect();
        assert_eq!(found, places.iter().copied().zip(all).collect::<Vec<_>>());
        batch.take_out(places[1]);
        batch.take_out(places[1]);
        assert_eq!(batch.len(), 3);
        assert_eq!(batch.at(places[1]), None);
        assert_eq!(batch.at(places[3]), Some(all[3]));
        assert_eq!(batch.items().map(|(place, _)| place).collect::<Vec<_>>(), [places[0], places[2], places[3]]);
        for changes_max in 1..4 {
            let parts = batch.parts(changes_max);
            let of_part = |(from, part)| items(part).map(move |(place, item)| (from + place, item)).collect::<Vec<_>>();
            let found: Vec<_> = parts.map(of_part).collect();
            assert_eq!(found.concat(), batch.items().collect::<Vec<_>>());
            assert!(found.iter().all(|part| part.len() <= changes_max));
            assert_eq!(found.len(), 3usize.div_ceil(changes_max));
        }
    }

    #[test]
    fn bytes_that_are_no_batch_end_it() {
        let mut batch = Batch::default();
        batch.push(&BatchItem { key: b"key", expected: Expected::Nothing, value: Some(b"value") });
        for end in 0..batch.as_bytes().len() {
            assert_eq!(items(&batch.as_bytes()[..end]).count(), 0);
            assert_eq!(broken_at(&batch.as_bytes()[..end]), (end > 0).then_some(0));
        }
        assert_eq!(broken_at(batch.as_bytes()), None);
        for kind in [3, 16, 255] {
            let mut bytes = batch.as_bytes().to_vec();
            bytes.extend_from_slice(batch.as_bytes());
            bytes[batch.as_bytes().len()] = kind;
            assert_eq!(broken_at(&bytes), Some(batch.as_bytes().len()));
        }
    }
}
