//! A read buffer for bytes that were received and not yet consumed.

/// The initial capacity, which limits the first read. It is many times larger than the replies to a
/// window of 100 small gets.
const START_BYTES: usize = 64 * 1024;

/// Received bytes, consumed from the front. It grows only if one message fills it, and only in
/// proportion to the received bytes.
#[derive(Debug)]
pub struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    /// Creates an empty buffer.
    pub fn new() -> Self {
        Self { bytes: vec![0; START_BYTES], start: 0, end: 0 }
    }

    /// Returns the space for the next read. It is never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.bytes.len() - self.end < self.bytes.len() / 4 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.bytes.len() - self.end < self.bytes.len() / 4 {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    /// Marks the first `count` bytes of [`ReadBuffer::space`] as received.
    pub fn received(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// Returns the received bytes that are not consumed yet.
    pub fn filled(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Removes the first `count` bytes.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }
}

impl Default for ReadBuffer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in_whatever_the_pieces() {
        let sent: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
        let mut buffer = ReadBuffer::new();
        let (mut at, mut seen) = (0, Vec::new());
        let mut piece = 1;
        while seen.len() < sent.len() {
            let space = buffer.space();
            assert!(!space.is_empty());
            let count = space.len().min(piece).min(sent.len() - at);
            space[..count].copy_from_slice(&sent[at..at + count]);
            at += count;
            buffer.received(count);
            // Leaves a remainder sometimes, as a partial message does.
            let take = if at == sent.len() { buffer.filled().len() } else { buffer.filled().len() * 2 / 3 };
            seen.extend_from_slice(&buffer.filled()[..take]);
            buffer.consume(take);
            piece = piece * 7 % 100_003 + 1;
        }
        assert_eq!(seen, sent);
    }

    #[test]
    fn a_message_larger_than_the_buffer_makes_it_grow() {
        let mut buffer = ReadBuffer::new();
        let mut received = 0;
        while received < 10 * START_BYTES {
            let count = buffer.space().len();
            buffer.received(count);
            received += count;
        }
        assert_eq!(buffer.filled().len(), received);
    }
}
