//! The encoding of frames, without I/O.
//!
//! | bytes | contents |
//! |---|---|
//! | 4 | length of the rest, little-endian as all numbers |
//! | 1 | kind: 1 request, 2 answer, 3 refusal, 4 alive, 5 member |
//! | 1 | request: channel; else 0 |
//! | 8 | request, answer, refusal: number of the request; member: the sender's id; alive: 0 |
//! | rest | request, answer: contents; refusal: text, at most 1,024 bytes; else empty |

use bytes::{Buf, Bytes, BytesMut};
use filbert_cluster::MemberId;

use crate::Channel;

/// The size of the head before the payload in bytes.
pub(crate) const HEAD_BYTES: usize = 14;
/// The part of the head that is included in the length.
const COUNTED_BYTES: usize = HEAD_BYTES - 4;
/// The maximum size of a refusal's text in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 1_024;
/// The room for received bytes if the length of the next frame is unknown.
const READ_BYTES: usize = 16 << 10;
/// The minimum room in a buffer. With less, a new buffer is allocated.
const READ_BYTES_MIN: usize = 1 << 10;

const REQUEST: u8 = 1;
const ANSWER: u8 = 2;
const REFUSAL: u8 = 3;
const ALIVE: u8 = 4;
const MEMBER: u8 = 5;

/// The unit of transmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Request {
        channel: Channel,
        number: u64,
        request: Bytes,
    },
    Answer {
        number: u64,
        answer: Bytes,
    },
    /// Sent instead of an answer.
    Refusal {
        number: u64,
        text: String,
    },
    /// A sign of life: requests are being answered.
    Alive,
    /// The dialling member has got its id.
    Member(MemberId),
}

/// Why bytes are not a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame is too long.
    #[error("a frame has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLong {
        /// The claimed length.
        bytes: usize,
        /// The maximum length.
        bytes_max: usize,
    },
    /// The frame is too short.
    #[error("a frame has {0} bytes, expected at least {COUNTED_BYTES}")]
    TooShort(usize),
    /// The kind is unknown.
    #[error("a frame is of kind {0}, expected 1 to 5")]
    Kind(u8),
    /// The channel is unknown, or belongs to another kind of connection.
    #[error("a frame of kind {kind} is for channel {channel}, which does not go over this connection")]
    Channel {
        /// The kind of the frame.
        kind: u8,
        /// The channel.
        channel: u8,
    },
    /// The contents do not fit the kind.
    #[error("a frame of kind {kind} has {bytes} bytes besides its head, or a number, that its kind does not have")]
    Content {
        /// The kind of the frame.
        kind: u8,
        /// The number of bytes.
        bytes: usize,
    },
    /// The peer must not send this frame, or not now.
    #[error("a {0} came, which was not to be expected here")]
    Unexpected(&'static str),
}

impl Frame {
    /// Returns the head and the payload.
    pub(crate) fn write(self) -> ([u8; HEAD_BYTES], Bytes) {
        let (kind, channel, number, payload) = match self {
            Frame::Request { channel, number, request } => (REQUEST, channel.byte(), number, request),
            Frame::Answer { number, answer } => (ANSWER, 0, number, answer),
            Frame::Refusal { number, mut text } => {
                text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
                (REFUSAL, 0, number, text.into())
            }
            Frame::Alive => (ALIVE, 0, 0, Bytes::new()),
            Frame::Member(member) => (MEMBER, 0, member.0, Bytes::new()),
        };
        // Lengths were checked before against a limit below 4 GiB.
        let length = u32::try_from(payload.len() + COUNTED_BYTES).unwrap_or(u32::MAX);
        let [l0, l1, l2, l3] = length.to_le_bytes();
        let [n0, n1, n2, n3, n4, n5, n6, n7] = number.to_le_bytes();
        ([l0, l1, l2, l3, kind, channel, n0, n1, n2, n3, n4, n5, n6, n7], payload)
    }

    /// Takes the first frame from the received bytes, if it is complete. `bytes_max` is the maximum
    /// size of the payload.
    pub(crate) fn read(came: &mut BytesMut, bytes_max: usize) -> Result<Option<Frame>, FrameError> {
        let Some(length) = length(came) else { return Ok(None) };
        if length < COUNTED_BYTES {
            return Err(FrameError::TooShort(length));
        }
        let bytes = length - COUNTED_BYTES;
        if bytes > bytes_max {
            return Err(FrameError::TooLong { bytes, bytes_max });
        }
        if came.len() - 4 < length {
            return Ok(None);
        }
        came.advance(4);
        let mut frame = came.split_to(length).freeze();
        let (kind, channel, number) = (frame.get_u8(), frame.get_u8(), frame.get_u64_le());
        if kind != REQUEST && channel != 0 {
            return Err(FrameError::Channel { kind, channel });
        }
        let content = FrameError::Content { kind, bytes };
        match kind {
            REQUEST => {
                let channel = Channel::of_byte(channel).ok_or(FrameError::Channel { kind, channel })?;
                Ok(Some(Frame::Request { channel, number, request: frame }))
            }
            ANSWER => Ok(Some(Frame::Answer { number, answer: frame })),
            REFUSAL if bytes <= TEXT_BYTES_MAX => match std::str::from_utf8(&frame) {
                Ok(text) => Ok(Some(Frame::Refusal { number, text: text.to_owned() })),
                Err(_) => Err(content),
            },
            ALIVE if bytes == 0 && number == 0 => Ok(Some(Frame::Alive)),
            MEMBER if bytes == 0 => Ok(Some(Frame::Member(MemberId(number)))),
            REFUSAL | ALIVE | MEMBER => Err(content),
            _ => Err(FrameError::Kind(kind)),
        }
    }
}

fn length(came: &BytesMut) -> Option<usize> {
    came.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize)
}

/// Makes room for further bytes: for the rest of an incomplete frame, but not for more than has
/// already been received of it.
///
/// A request keeps the buffer in which it arrived as long as it is kept, for instance in a log. So
/// a buffer is used up before a new one is allocated, and a small request does not keep a large
/// buffer alone.
pub(crate) fn make_room(came: &mut BytesMut) {
    let rest = length(came).map_or(0, |length| length.saturating_add(4).saturating_sub(came.len()));
    if came.capacity() - came.len() < rest.clamp(READ_BYTES_MIN, READ_BYTES) {
        came.reserve(rest.min(came.len()).max(READ_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn frames() -> impl Strategy<Value = Frame> {
        let bytes = || vec(any::<u8>(), 0..300).prop_map(Bytes::from);
        let channel = prop::sample::select(&Channel::ALL[..]);
        prop_oneof![
            (channel, any::<u64>(), bytes()).prop_map(|(channel, number, request)| Frame::Request {
                channel,
                number,
                request
            }),
            (any::<u64>(), bytes()).prop_map(|(number, answer)| Frame::Answer { number, answer }),
            (any::<u64>(), ".{0,40}").prop_map(|(number, text)| Frame::Refusal { number, text }),
            Just(Frame::Alive),
            any::<u64>().prop_map(|member| Frame::Member(MemberId(member))),
        ]
    }

    fn write(frames: &[Frame]) -> Vec<u8> {
        let written = frames.iter().map(|frame| frame.clone().write());
        written.flat_map(|(head, payload)| [&head[..], &payload[..]].concat()).collect()
    }

    proptest! {
        #[test]
        fn frames_are_read_as_written_however_they_are_cut(frames in vec(frames(), 1..20), cut in 1_usize..50) {
            let (mut came, mut read) = (BytesMut::new(), Vec::new());
            for part in write(&frames).chunks(cut) {
                came.extend_from_slice(part);
                while let Some(frame) = Frame::read(&mut came, 300).unwrap() {
                    read.push(frame);
                }
            }
            prop_assert_eq!(read, frames);
            prop_assert!(came.is_empty());
        }

        #[test]
        fn any_bytes_give_frames_or_an_error(bytes in vec(any::<u8>(), 0..200), bytes_max in 0_usize..100) {
            let mut came = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = Frame::read(&mut came, bytes_max) {}
        }

        #[test]
        fn frames_with_wrong_bytes_give_frames_or_an_error(
            frames in vec(frames(), 1..5), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut bytes = write(&frames);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let mut came = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = Frame::read(&mut came, 1_000) {}
        }
    }

    #[test]
    fn a_claimed_length_makes_no_room_before_bytes_come() {
        let mut came = BytesMut::from(&[0, 0, 0, 1, 1, 0][..]);
        assert_eq!(Frame::read(&mut came, 1 << 30), Ok(None));
        make_room(&mut came);
        assert!(came.capacity() <= 2 * READ_BYTES);
        came.extend_from_slice(&[0; 100_000]);
        let before = came.capacity();
        make_room(&mut came);
        assert!(came.capacity() <= before + 100_006);
        assert_eq!(Frame::read(&mut came, 1_000), Err(FrameError::TooLong { bytes: (1 << 24) - 10, bytes_max: 1_000 }));
    }

    #[test]
    fn small_requests_that_are_kept_share_their_buffers() {
        let (head, payload) = Frame::Answer { number: 1, answer: Bytes::from_static(&[7; 100]) }.write();
        let (mut came, mut kept, mut buffers) = (BytesMut::new(), Vec::new(), 0);
        for _ in 0..1_000 {
            let before = came.capacity();
            make_room(&mut came);
            buffers += usize::from(came.capacity() > before);
            came.extend_from_slice(&head);
            came.extend_from_slice(&payload);
            kept.push(Frame::read(&mut came, 1_000).unwrap());
        }
        assert!(buffers < 10, "{buffers}");
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let (_, payload) = Frame::Refusal { number: 1, text: "€".repeat(1_000) }.write();
        assert_eq!(std::str::from_utf8(&payload).unwrap(), "€".repeat(341));
    }
}
