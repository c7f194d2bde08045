//! Where messages begin and end in a read buffer, and fragmented messages put together.

use crate::{
    WireError,
    frame::{FRAME_HEADER_BYTES, FrameHeader, change_flags, flags},
};

/// What a peer may make this side hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message, and of all incomplete fragmented messages together. The default of 1 GiB is above any
    /// value that a map should hold and leaves room for a bulk load, yet stops a broken length field at once.
    pub message_bytes_max: usize,
    /// Fragmented messages that may be incomplete at once. Stock clients send their fragments in one piece, so that
    /// more than one at a time is rare; the default of 16 allows for a client that interleaves them.
    pub fragmented_messages_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_bytes_max: 1 << 30, fragmented_messages_max: 16 }
    }
}

/// What lies at the front of the read buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// The first n bytes are one message.
    Whole(usize),
    /// The first n bytes were a fragment, kept.
    Fragment(usize),
    /// The first n bytes were the last fragment of this message.
    Assembled(usize, Vec<u8>),
}

/// Finds message boundaries in a growing read buffer and puts fragments together.
///
/// It remembers how far it has looked, so that a large message that arrives in many pieces is looked at once and not
/// once per piece.
#[derive(Debug, Default)]
pub struct Splitter {
    limits: Limits,
    /// Bytes at the front of the buffer that are whole or begun frames of the message at hand: where the next frame's
    /// header is expected. 0 at the begin of a message.
    scanned: usize,
    /// Messages of which the first fragment came and the last did not: fragmentation id and frames so far.
    incomplete: Vec<(i64, Vec<u8>)>,
}

impl Splitter {
    /// A splitter for one connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, scanned: 0, incomplete: Vec::new() }
    }

    /// Looks at the front of `buf`. `Ok(None)`: more bytes are needed.
    ///
    /// After `Some` the caller removes the first n bytes; after `None` it calls again with the same bytes and more
    /// behind them.
    ///
    /// # Errors
    ///
    /// The bytes cannot become a message within the limits. The connection cannot go on: where the next message
    /// begins is unknown.
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

    /// Forgets how far it has looked: the next call of [`Splitter::split`] gets bytes that were split before. Only
    /// whole messages can be given back; a fragment is kept from the moment it is split off.
    pub fn rewind(&mut self) {
        self.scanned = 0;
    }

    /// Bytes held for incomplete fragmented messages.
    pub fn kept_bytes(&self) -> usize {
        self.incomplete.iter().map(|(_, frames)| frames.len()).sum()
    }

    /// How many bytes there will be at least before the message at the front of `buf` is whole, as far as its frames say.
    pub fn expected_bytes(&self, buf: &[u8]) -> usize {
        let header = buf.get(self.scanned..).and_then(|rest| FrameHeader::read(rest).ok().flatten());
        self.scanned.saturating_add(header.map_or(FRAME_HEADER_BYTES, |header| header.length))
    }

    /// The end of the final frame of the chain that `buf` begins with.
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

/// Takes the FINAL flag off the frames from `at` on: a fragment's last frame is not the message's.
fn clear_final(frames: &mut [u8], mut at: usize) {
    while let Some(rest) = frames.get_mut(at..)
        && let Ok(Some(header)) = FrameHeader::read(rest)
    {
        change_flags(rest, |bits| bits & !flags::FINAL);
        at += header.length;
    }
}
