//! Frames: their flags, reading them from a message in place, and writing them at the end of a buffer.

use std::fmt;

use crate::WireError;

/// Bytes of a frame before its content: the length (i32, little endian, these bytes included) and the flags (u16).
pub const FRAME_HEADER_BYTES: usize = 6;

/// The longest content of a frame, in bytes: the length field is a signed 32-bit number.
pub const CONTENT_BYTES_MAX: usize = i32::MAX as usize - FRAME_HEADER_BYTES;

/// The bits of a frame's flags.
pub mod flags {
    /// On a first frame: the message, or its first fragment, begins here.
    pub const BEGIN_FRAGMENT: u16 = 1 << 15;
    /// On a first frame: the message, or its last fragment, ends with this chain of frames.
    pub const END_FRAGMENT: u16 = 1 << 14;
    /// Both of the above: the whole message is one chain of frames.
    pub const UNFRAGMENTED: u16 = BEGIN_FRAGMENT | END_FRAGMENT;
    /// The last frame of a message or of a fragment.
    pub const FINAL: u16 = 1 << 13;
    /// A list or a structure begins.
    pub const BEGIN: u16 = 1 << 12;
    /// A list or a structure ends.
    pub const END: u16 = 1 << 11;
    /// The frame stands for a null.
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
    /// See [`flags`].
    pub flags: u16,
    /// What the frame carries, without its header.
    pub content: &'a [u8],
}

impl Frame<'_> {
    /// What the frame stands for inside a message.
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

/// What a frame stands for inside a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Content.
    Value,
    /// The begin of a list or a structure.
    Begin,
    /// The end of a list or a structure.
    End,
    /// A null in the place of a value.
    Null,
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FrameKind::Value => "a value",
            FrameKind::Begin => "the begin of a structure",
            FrameKind::End => "the end of a structure",
            FrameKind::Null => "a null",
        })
    }
}

/// The header of a frame, read before its content is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Bytes of the whole frame, its header included; at least [`FRAME_HEADER_BYTES`].
    pub(crate) length: usize,
    pub(crate) flags: u16,
}

impl FrameHeader {
    /// Reads the header at the front of `bytes`; `None` when fewer than [`FRAME_HEADER_BYTES`] are there.
    ///
    /// # Errors
    ///
    /// [`WireError::FrameTooShort`] when the length does not even cover the header, negative lengths included.
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

/// The frames of a message, one after the other, borrowed from its bytes.
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

    /// The bytes that were not read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next frame without moving past it; `None` at the end, and where the bytes are not a whole frame.
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

/// Appends frames to a buffer and knows where the last of them begins, so that it can be marked as the final one.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    last_frame: usize,
}

impl<'o> Writer<'o> {
    /// Writes behind what `out` holds.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        let last_frame = out.len();
        Self { out, last_frame }
    }

    /// Makes room for `bytes` more, so that a message needs one allocation at most.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    /// One frame with `content`.
    ///
    /// # Panics
    ///
    /// When `content` is longer than [`CONTENT_BYTES_MAX`]: no peer could read such a frame. Values are limited far
    /// below that where they enter.
    #[inline]
    pub fn frame(&mut self, flags: u16, content: &[u8]) {
        let length = Self::length(content.len() + FRAME_HEADER_BYTES);
        let [a, b, c, d] = length;
        let [e, f] = flags.to_le_bytes();
        self.last_frame = self.out.len();
        self.out.extend_from_slice(&[a, b, c, d, e, f]);
        self.out.extend_from_slice(content);
    }

    /// A frame that stands for a null.
    #[inline]
    pub fn null(&mut self) {
        self.frame(flags::NULL, &[]);
    }

    /// The begin of a list or a structure.
    #[inline]
    pub fn begin(&mut self) {
        self.frame(flags::BEGIN, &[]);
    }

    /// The end of a list or a structure.
    #[inline]
    pub fn end(&mut self) {
        self.frame(flags::END, &[]);
    }

    /// One frame whose content `fill` appends, for contents that are not in one piece yet.
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

    /// Marks the last frame as the message's final one.
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

/// Sets bits in the flags of the frame at the front of `frame`, for example [`flags::BACKUP_AWARE`] on an encoded
/// request. Does nothing when there is no frame.
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
