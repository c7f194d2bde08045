//! Valid messages from random bytes, for property tests and fuzzing in this crate and in its
//! dependents.

/// A source of random bytes for values. After the last byte, numbers are 0, and lists, strings and
/// values are empty. So any input produces a value, and a shorter input produces a simpler value.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    bytes: &'a [u8],
}

impl<'a> Source<'a> {
    /// Creates a source from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns one byte.
    pub fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    /// Returns `N` bytes; zeros after the end.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array.iter_mut().zip(taken).for_each(|(to, from)| *to = *from);
        array
    }

    /// Returns the length of a list: 0 to 4.
    pub fn count(&mut self) -> usize {
        usize::from(self.byte() % 5)
    }

    /// Returns 0 to 15 bytes.
    pub fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte() % 16);
        self.take(length)
    }

    /// Returns a string of 0 to 15 bytes.
    pub fn text(&mut self) -> &'a str {
        let bytes = self.bytes();
        match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                bytes.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok()).unwrap_or_default()
            }
        }
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at_checked(count).unwrap_or((self.bytes, &[]));
        self.bytes = rest;
        taken
    }
}
