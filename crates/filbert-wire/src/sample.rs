//! Valid messages made of random bytes, for property tests and fuzzing here and in the crates above.

/// Random bytes that values are drawn from. When they run out, numbers are 0 and lists, texts and values are empty, so
/// that every value can be made from any bytes and a shorter input makes a simpler value.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    bytes: &'a [u8],
}

impl<'a> Source<'a> {
    /// Draws from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    /// `N` bytes, zeros behind the end.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array.iter_mut().zip(taken).for_each(|(to, from)| *to = *from);
        array
    }

    /// The length of a list: 0 to 4.
    pub fn count(&mut self) -> usize {
        usize::from(self.byte() % 5)
    }

    /// 0 to 15 bytes.
    pub fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte() % 16);
        self.take(length)
    }

    /// Text of 0 to 15 bytes.
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
