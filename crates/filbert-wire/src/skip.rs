//! Skips a message without storing it. Only the headers of the frames are read.

use crate::{
    WireError,
    frame::{FRAME_HEADER_BYTES, FrameHeader, flags},
};

/// The state of a partially skipped message.
#[derive(Clone, Debug, Default)]
pub struct Skipper {
    /// The number of remaining content bytes of the current frame.
    left: usize,
    /// Whether the current frame is the final frame.
    is_final: bool,
    /// The received bytes of the next frame header.
    header: Vec<u8>,
}

impl Skipper {
    /// Skips the next bytes of the message; the first call starts at the beginning of the message.
    /// Returns the number of bytes that belong to the message, and whether the message ends with
    /// them.
    ///
    /// # Errors
    /// The bytes are not frames. The start of the next message is then unknown.
    pub fn skip(&mut self, bytes: &[u8]) -> Result<(usize, bool), WireError> {
        let mut at = 0;
        loop {
            let passed = self.left.min(bytes.len() - at);
            self.left -= passed;
            at += passed;
            if self.left == 0 && self.is_final {
                return Ok((at, true));
            }
            let rest = bytes.get(at..).unwrap_or_default();
            if self.left > 0 || rest.is_empty() {
                return Ok((at, false));
            }
            let wanted = FRAME_HEADER_BYTES - self.header.len();
            let taken = rest.get(..wanted).unwrap_or(rest);
            self.header.extend_from_slice(taken);
            at += taken.len();
            if let Some(header) = FrameHeader::read(&self.header)? {
                self.left = header.length.saturating_sub(FRAME_HEADER_BYTES);
                self.is_final = header.flags & flags::FINAL != 0;
                self.header.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(content: usize, bits: u16) -> Vec<u8> {
        let length = i32::try_from(FRAME_HEADER_BYTES + content).unwrap();
        [&length.to_le_bytes()[..], &bits.to_le_bytes(), &vec![7; content]].concat()
    }

    #[test]
    fn a_message_ends_where_it_does_however_it_comes() {
        let message = [frame(100, flags::UNFRAGMENTED), frame(0, 0), frame(1_000, 0), frame(0, flags::FINAL)].concat();
        let two = [message.clone(), b"behind".to_vec()].concat();
        for part in [1, 2, 5, 6, 7, 64, two.len()] {
            let (mut skipper, mut passed, mut is_over) = (Skipper::default(), 0, false);
            for bytes in two.chunks(part) {
                let (count, ends) = skipper.skip(bytes).unwrap();
                passed += count;
                if ends {
                    is_over = true;
                    break;
                }
                assert_eq!(count, bytes.len());
            }
            assert!(is_over);
            assert_eq!(passed, message.len(), "{part}");
        }
        assert!(Skipper::default().skip(&[0; 6]).is_err());
    }
}
