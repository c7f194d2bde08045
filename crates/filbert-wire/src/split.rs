//! Finds the boundaries of messages in a read buffer, and reassembles fragmented messages.

use crate::{
    WireError,
    frame::{FRAME_HEADER_BYTES, FrameHeader, change_flags, flags},
};

/// The limits of the memory that a peer can occupy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of one message, and of all incomplete fragmented messages together, in
    /// bytes. Default: 1 GiB. This is more than any value that a map should hold, and enough for a
    /// bulk load, but it rejects an invalid length field at once.
    pub message_bytes_max: usize,
    /// The maximum number of incomplete fragmented messages. Hazelcast's own clients send the
    /// fragments of a message without interruption, so more than one incomplete message is rare.
    /// Default: 16, for clients that interleave fragments.
    pub fragmented_messages_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_bytes_max: 1 << 30, fragmented_messages_max: 16 }
    }
}

/// The data at the front of the read buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// The first n bytes are one message.
    Whole(usize),
    /// The first n bytes are a fragment. The splitter keeps a copy of it.
    Fragment(usize),
    /// The first n bytes are the last fragment of this message.
    Assembled(usize, Vec<u8>),
}

/// Finds message boundaries in a growing read buffer, and reassembles fragments.
///
/// It remembers the scanned position, so that a large message that arrives in many pieces is
/// scanned once and not once per piece.
#[derive(Debug, Default)]
pub struct Splitter {
    limits: Limits,
    /// The position of the next expected frame header in the buffer. All bytes before it belong to
    /// frames of the current message. 0 at the start of a message.
    scanned: usize,
    /// The messages without their last fragment: the fragmentation id and the frames received so
    /// far.
    incomplete: Vec<(i64, Vec<u8>)>,
}

impl Splitter {
    /// Creates a splitter for one connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, scanned: 0, incomplete: Vec::new() }
    }

    /// Examines the front of `buf`. `Ok(None)` means that more bytes are needed.
    ///
    /// After `Some` the caller removes the first n bytes. After `None` the caller calls again with
    /// the same bytes, followed by more bytes.
    ///
    /// # Errors
    ///
    /// The bytes cannot become a message within the limits. The connection must be closed, because
    /// the start of the next message is unknown.
    #[inline]
    pub fn split(&mut self, buf: &[u8]) -> Result<Option<Split>, WireError> {
        let Some(end) = self.find_end(buf)? else { return Ok(None) };
        self.scanned = 0;
        let bytes = buf.get(..end).unwrap_or_default();
        let first_flags = FrameHeader::read(bytes)?.map_or(0, |header| header.flags);
        if first_flags & flags::UNFRAGMENTED == flags::UNFRAGMENTED {
            return Ok(Some(Split::Whole(end)));
        }
        self.keep_fragment(bytes, first_flags).map(Some)
    }

    /// Resets the scanned position, so that the next call of [`Splitter::split`] can receive bytes
    /// that were split before. This works for complete messages only: the splitter already has a
    /// copy of a fragment.
    pub fn rewind(&mut self) {
        self.scanned = 0;
    }

    /// The number of bytes kept for incomplete fragmented messages.
    pub fn kept_bytes(&self) -> usize {
        self.incomplete.iter().map(|(_, frames)| frames.len()).sum()
    }

    /// The minimum size of the message at the front of `buf` in bytes, according to the frame
    /// headers received so far.
    pub fn expected_bytes(&self, buf: &[u8]) -> usize {
        let header = buf.get(self.scanned..).and_then(|rest| FrameHeader::read(rest).ok().flatten());
        self.scanned.saturating_add(header.map_or(FRAME_HEADER_BYTES, |header| header.length))
    }

    /// Returns the end of the final frame of the message or fragment at the front of `buf`.
    #[inline]
    fn find_end(&mut self, buf: &[u8]) -> Result<Option<usize>, WireError> {
        while let Some(header) = FrameHeader::read(buf.get(self.scanned..).unwrap_or_default())? {
            let end = self.scanned.saturating_add(header.length);
            if end > self.limits.message_bytes_max {
                return Err(WireError::MessageTooLong { bytes: end as u64, limit: self.limits.message_bytes_max });
            }
            if header.flags & flags::FINAL != 0 {
                return Ok((end <= buf.len()).then_some(end));
            }
            self.scanned = end;
        }
        Ok(None)
    }

    #[cold]
    fn keep_fragment(&mut self, fragment: &[u8], first_flags: u16) -> Result<Split, WireError> {
        let opening = FrameHeader::read(fragment)?.map_or(FRAME_HEADER_BYTES, |header| header.length);
        let (opening, frames) = fragment.split_at_checked(opening).unwrap_or((fragment, &[]));
        let content = opening.get(FRAME_HEADER_BYTES..).unwrap_or_default();
        let id = content.first_chunk::<8>().ok_or(WireError::FragmentWithoutId { bytes: content.len() })?;
        let id = i64::from_le_bytes(*id);

        let total = self.kept_bytes() + frames.len();
        if total > self.limits.message_bytes_max {
            return Err(WireError::MessageTooLong { bytes: total as u64, limit: self.limits.message_bytes_max });
        }
        let found = self.incomplete.iter().position(|(incomplete, _)| *incomplete == id);
        if first_flags & flags::BEGIN_FRAGMENT != 0 {
            if found.is_some() {
                return Err(WireError::FragmentBeginsTwice { id });
            }
            if self.incomplete.len() >= self.limits.fragmented_messages_max {
                return Err(WireError::TooManyFragmentedMessages { limit: self.limits.fragmented_messages_max });
            }
            let mut kept = frames.to_vec();
            change_flags(&mut kept, |bits| bits | flags::UNFRAGMENTED);
            clear_final(&mut kept, 0);
            self.incomplete.push((id, kept));
            return Ok(Split::Fragment(fragment.len()));
        }
        let at = found.ok_or(WireError::FragmentWithoutBegin { id })?;
        let is_last = first_flags & flags::END_FRAGMENT != 0;
        if let Some((_, kept)) = self.incomplete.get_mut(at) {
            let joint = kept.len();
            kept.extend_from_slice(frames);
            if joint == 0 {
                change_flags(kept, |bits| bits | flags::UNFRAGMENTED);
            }
            if !is_last {
                clear_final(kept, joint);
            }
        }
        if is_last {
            let (_, message) = self.incomplete.swap_remove(at);
            return Ok(Split::Assembled(fragment.len(), message));
        }
        Ok(Split::Fragment(fragment.len()))
    }
}

/// Clears the FINAL flag of the frames from `at` on: the last frame of a fragment is not the last
/// frame of the message.
fn clear_final(frames: &mut [u8], mut at: usize) {
    while let Some(rest) = frames.get_mut(at..)
        && let Ok(Some(header)) = FrameHeader::read(rest)
    {
        change_flags(rest, |bits| bits & !flags::FINAL);
        at += header.length;
    }
}
