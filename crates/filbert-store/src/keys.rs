//! Several keys of one partition as one piece of memory. Commands and logs contain lists of keys in
//! this format.
//!
//! The keys follow each other: 4 bytes of length, little-endian, then the key.

/// A list of keys of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyList {
    bytes: Vec<u8>,
    len: usize,
}

impl KeyList {
    /// Adds a key. Returns `false` if its length does not fit into 4 bytes.
    pub fn push(&mut self, key: &[u8]) -> bool {
        let Ok(length) = u32::try_from(key.len()) else { return false };
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.len += 1;
        true
    }

    /// Removes all keys. The memory is kept for further keys.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes for a command.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        keys(&self.bytes)
    }
}

/// The keys of a list in the bytes of a command. Ends at bytes that are not a list of keys.
pub(crate) fn keys(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (key, after) = decode(rest)?;
        rest = after;
        Some(key)
    })
}

/// The offset of the first byte that is not part of a list; `None` if the list is valid.
pub(crate) fn broken_at(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some((_, after)) = decode(rest) else { return Some(bytes.len() - rest.len()) };
        rest = after;
    }
    None
}

fn decode(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_what_was_put_into_it_and_broken_bytes_end_it() {
        let mut list = KeyList::default();
        for key in [b"one".as_slice(), b"", b"three"] {
            assert!(list.push(key));
        }
        assert_eq!(list.iter().collect::<Vec<_>>(), [b"one".as_slice(), b"", b"three"]);
        assert_eq!((list.len(), broken_at(list.as_bytes())), (3, None));
        for end in 0..list.as_bytes().len() {
            let cut = &list.as_bytes()[..end];
            let whole = [0, 7, 11].contains(&end);
            assert_eq!(broken_at(cut).is_none(), whole, "{end}");
            assert!(keys(cut).count() < 3);
        }
    }
}
