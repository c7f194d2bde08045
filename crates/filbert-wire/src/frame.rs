//! Frames: their flags, reading frames from a message without copying, and appending frames to a
//! buffer.

use crate::WireError;
pub use crate::frame_kind::FrameKind;

/// The size of a frame header in bytes: the length of the whole frame (i32, little endian) and the
/// flags (u16).
pub const FRAME_HEADER_BYTES: usize = 6;

/// The maximum size of the content of a frame in bytes: the length field is a signed 32-bit number.
pub const CONTENT_BYTES_MAX: usize = i32::MAX as usize - FRAME_HEADER_BYTES;

/// The bits of a frame's flags.
pub mod flags {
    /// On a first frame: the message, or its first fragment, starts here.
    pub const BEGIN_FRAGMENT: u16 = 1 << 15;
    /// On a first frame: the message, or its last fragment, ends with this sequence of frames.
    pub const END_FRAGMENT: u16 = 1 << 14;
    /// Both flags above: the message is not fragmented.
    pub const UNFRAGMENTED: u16 = BEGIN_FRAGMENT | END_FRAGMENT;
    /// The last frame of a message or of a fragment.
    pub const FINAL: u16 = 1 << 13;
    /// A list or a structure begins.
    pub const BEGIN: u16 = 1 << 12;
    /// A list or a structure ends.
    pub const END: u16 = 1 << 11;
    /// The frame is a null.
    pub const NULL: u16 = 1 << 10;
    /// On a first frame: the message is an event.
    pub const EVENT: u16 = 1 << 9;
    /// On a first frame of a request: the client can count backup acknowledgements.
    pub const BACKUP_AWARE: u16 = 1 << 8;
    /// On a first frame: the event is a backup acknowledgement.
    pub const BACKUP_EVENT: u16 = 1 << 7;
}

/// One frame: its flags and the bytes after its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The flags, see [`flags`].
    pub flags: u16,
    /// The content, without the header.
    pub content: &'a [u8],
}

impl Frame<'_> {
    /// The kind of the frame.
    #[inline]
    pub fn kind(&self) -> FrameKind {
        match self.flags & (flags::BEGIN | flags::END | flags::NULL) {
            0 => FrameKind::Value,
            bits if bits & flags::NULL != 0 => FrameKind::Null,
            bits if bits & flags::END != 0 => FrameKind::End,
            _ => FrameKind::Begin,
        }
    }
}

/// The header of a frame, read before the content has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// The size of the whole frame in bytes, header included; at least [`FRAME_HEADER_BYTES`].
    pub(crate) length: usize,
    pub(crate) flags: u16,
}

impl FrameHeader {
    /// Reads the header at the front of `bytes`. Returns `None` if `bytes` is shorter than
    /// [`FRAME_HEADER_BYTES`].
    ///
    /// # Errors
    ///
    /// [`WireError::FrameTooShort`] if the length is negative or smaller than the header.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<FrameHeader>, WireError> {
        let Some((&[a, b, c, d, e, f], _)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = i32::from_le_bytes([a, b, c, d]);
        match usize::try_from(length) {
            Ok(bytes) if bytes >= FRAME_HEADER_BYTES => {
                Ok(Some(FrameHeader { length: bytes, flags: u16::from_le_bytes([e, f]) }))
            }
            _ => Err(WireError::FrameTooShort { length }),
        }
    }
}

/// An iterator over the frames of a message, borrowed from its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Frames<'a> {
    /// Reads frames from `bytes`, which begin with a frame's header.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The unread bytes.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the next frame without consuming it; `None` at the end, or if the bytes are not a
    /// complete frame.
    #[inline]
    pub fn peek(&self) -> Option<Frame<'a>> {
        Frames { rest: self.rest }.next()
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    #[inline]
    fn next(&mut self) -> Option<Frame<'a>> {
        let (&[a, b, c, d, e, f], after) = self.rest.split_first_chunk::<FRAME_HEADER_BYTES>()?;
        let length = usize::try_from(i32::from_le_bytes([a, b, c, d])).ok()?;
        let (content, rest) = after.split_at_checked(length.checked_sub(FRAME_HEADER_BYTES)?)?;
        self.rest = rest;
        Some(Frame { flags: u16::from_le_bytes([e, f]), content })
    }
}

/// Appends frames to a buffer. Records the position of the last frame, to mark it as final.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    last_frame: usize,
}

impl<'o> Writer<'o> {
    /// Creates a writer that appends to `out`.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        let last_frame = out.len();
        Self { out, last_frame }
    }

    /// Reserves memory for `bytes` more bytes, so that a message needs at most one allocation.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    /// Appends a frame with `content`.
    ///
    /// # Panics
    ///
    /// If `content` is longer than [`CONTENT_BYTES_MAX`]: no peer could read such a frame. The size
    /// of values is limited far below this when they enter the system.
    #[inline]
    pub fn frame(&mut self, flags: u16, content: &[u8]) {
        let length = Self::length(content.len() + FRAME_HEADER_BYTES);
        let [a, b, c, d] = length;
        let [e, f] = flags.to_le_bytes();
        self.last_frame = self.out.len();
        self.out.extend_from_slice(&[a, b, c, d, e, f]);
        self.out.extend_from_slice(content);
    }

    /// Appends a null frame.
    #[inline]
    pub fn null(&mut self) {
        self.frame(flags::NULL, &[]);
    }

    /// Appends the BEGIN frame of a list or a structure.
    #[inline]
    pub fn begin(&mut self) {
        self.frame(flags::BEGIN, &[]);
    }

    /// Appends the END frame of a list or a structure.
    #[inline]
    pub fn end(&mut self) {
        self.frame(flags::END, &[]);
    }

    /// Appends a frame. `fill` appends the content, for content that is not contiguous yet.
    ///
    /// # Panics
    ///
    /// As [`Writer::frame`].
    #[inline]
    pub fn frame_with(&mut self, flags: u16, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.frame(flags, &[]);
        fill(self.out);
        let length = Self::length(self.out.len() - start);
        if let Some(field) = self.out.get_mut(start..start + 4) {
            field.copy_from_slice(&length);
        }
    }

    /// Marks the last frame as the final frame of the message.
    #[inline]
    pub fn finish(self) {
        let at = self.last_frame;
        set_flags(self.out.get_mut(at..).unwrap_or_default(), flags::FINAL);
    }

    #[inline]
    fn length(frame_bytes: usize) -> [u8; 4] {
        assert!(frame_bytes <= i32::MAX as usize, "a frame holds at most {CONTENT_BYTES_MAX} bytes");
        (frame_bytes as i32).to_le_bytes()
    }
}

/// Sets bits in the flags of the frame at the front of `frame`, for example [`flags::BACKUP_AWARE`]
/// on an encoded request. Does nothing if there is no frame.
#[inline]
pub fn set_flags(frame: &mut [u8], bits: u16) {
    change_flags(frame, |flags| flags | bits);
}

/// Replaces the flags of the frame at the front of `frame`.
#[inline]
pub(crate) fn change_flags(frame: &mut [u8], change: impl FnOnce(u16) -> u16) {
    if let Some([_, _, _, _, e, f, ..]) = frame.first_chunk_mut::<FRAME_HEADER_BYTES>() {
        [*e, *f] = change(u16::from_le_bytes([*e, *f])).to_le_bytes();
    }
}
