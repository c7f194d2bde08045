//! A complete message in a buffer, and the traits that encode and decode the types of the table.
//! The table uses this module, not the reverse.

use std::fmt;

use crate::{
    WireError,
    codec::Reader,
    error::Fault,
    frame::{FRAME_HEADER_BYTES, Frame, FrameHeader, Frames, Writer, flags},
    id::{COMMON_HEADER_BYTES, CorrelationId, Direction, MessageId},
    sample::Source,
    spec::{FieldSpec, MessageSpec},
};

/// One complete message, borrowed from a buffer: contiguous frames with verified lengths.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    id: MessageId,
    correlation: CorrelationId,
    first: Frame<'a>,
    /// The frames after the first.
    rest: Frames<'a>,
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads the header of a message, and checks that `bytes` consist of its frames up to the final
    /// frame, without a gap.
    ///
    /// # Errors
    ///
    /// `bytes` are not exactly one complete message, or they are a fragment.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, WireError> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let header = FrameHeader::read(rest)?.ok_or(WireError::Truncated { bytes: bytes.len() })?;
            if header.length > rest.len() {
                return Err(WireError::Truncated { bytes: bytes.len() });
            }
            at += header.length;
            if header.flags & flags::FINAL != 0 {
                break;
            }
        }
        if at != bytes.len() {
            return Err(WireError::TrailingBytes { bytes: bytes.len() - at });
        }
        let mut rest = Frames::new(bytes);
        let first = rest.next().ok_or(WireError::Truncated { bytes: bytes.len() })?;
        if first.flags & flags::UNFRAGMENTED != flags::UNFRAGMENTED {
            return Err(WireError::UnexpectedFragment);
        }
        let (&[a, b, c, d, correlation @ ..], after) =
            first.content.split_first_chunk::<COMMON_HEADER_BYTES>().ok_or(WireError::HeaderTooShort {
                bytes: first.content.len(),
                expected: Direction::Response.header_bytes(),
            })?;
        if after.is_empty() {
            let expected = Direction::Response.header_bytes();
            return Err(WireError::HeaderTooShort { bytes: first.content.len(), expected });
        }
        Ok(Message {
            id: MessageId(u32::from_le_bytes([a, b, c, d])),
            correlation: CorrelationId(i64::from_le_bytes(correlation)),
            first,
            rest,
            bytes,
        })
    }

    /// The bytes of the message.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The id of the message.
    #[inline]
    pub fn id(&self) -> MessageId {
        self.id
    }

    /// The correlation id of its request or registration.
    #[inline]
    pub fn correlation_id(&self) -> CorrelationId {
        self.correlation
    }

    /// The flags of the first frame, see [`flags`].
    #[inline]
    pub fn flags(&self) -> u16 {
        self.first.flags
    }

    /// Whether the message has the event flag.
    #[inline]
    pub fn is_event(&self) -> bool {
        self.first.flags & flags::EVENT != 0
    }

    /// The partition of a request or an event; -1 for none. Meaningless for responses.
    #[inline]
    pub fn partition_id(&self) -> i32 {
        let bytes = self.first.content.get(COMMON_HEADER_BYTES..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map_or(-1, |bytes| i32::from_le_bytes(*bytes))
    }

    /// The number of backup acknowledgements that follow a response. Meaningless for requests and
    /// events.
    #[inline]
    pub fn backup_acks(&self) -> u8 {
        self.first.content.get(COMMON_HEADER_BYTES).copied().unwrap_or(0)
    }

    /// All frames except the first.
    #[inline]
    pub fn frames(&self) -> Frames<'a> {
        self.rest
    }

    /// Decodes the fields.
    ///
    /// # Errors
    ///
    /// The message does not have the type `T`, or one of its fields is invalid.
    #[inline]
    pub fn decode<T: Decode<'a>>(&self) -> Result<T, WireError> {
        T::decode(self)
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("id", &format_args!("{}", self.id))
            .field("correlation", &self.correlation.0)
            .field("flags", &format_args!("{:#06x}", self.first.flags))
            .field("bytes", &(FRAME_HEADER_BYTES + self.first.content.len() + self.rest.rest().len()))
            .finish()
    }
}

/// A type that can be decoded from a [`Message`].
pub trait Decode<'a>: Sized {
    /// Decodes the fields of `message`.
    ///
    /// # Errors
    ///
    /// The message has another type, or one of its fields is invalid.
    fn decode(message: &Message<'a>) -> Result<Self, WireError>;
}

/// The fields of one message of the table. The macro of the table implements this trait. Users of
/// the crate need [`Request`], [`Response`], [`Event`] and [`Decode`] instead.
pub trait Payload<'a>: Sized {
    /// The id of the message.
    const ID: MessageId;
    /// The direction of the message.
    const DIRECTION: Direction;
    /// The fields, in the order of their declaration.
    const FIELDS: &'static [FieldSpec];

    /// Appends the fields of fixed size, in the order of their declaration.
    fn put_fixed(&self, out: &mut Vec<u8>);
    /// Appends the other fields as frames, in the order of their declaration.
    fn put_variable(&self, writer: &mut Writer<'_>);
    /// The minimum size of the fields in bytes. Exact if there are no lists or structures.
    fn size_hint(&self) -> usize;
    /// Reads all fields.
    ///
    /// # Errors
    ///
    /// A field is missing, null or invalid.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault>;
    /// Creates a valid value from random bytes, for tests.
    fn sample(source: &mut Source<'a>) -> Self;
}

impl<'a, P: Payload<'a>> Decode<'a> for P {
    #[inline]
    fn decode(message: &Message<'a>) -> Result<Self, WireError> {
        if message.id != P::ID {
            return Err(WireError::WrongMessage { expected: P::ID, found: message.id });
        }
        let header_bytes = P::DIRECTION.header_bytes();
        let Some(fixed) = message.first.content.get(header_bytes..) else {
            return Err(WireError::HeaderTooShort { bytes: message.first.content.len(), expected: header_bytes });
        };
        P::read(&mut Reader::new(fixed, message.rest)).map_err(|fault| fault.into_error(P::ID))
    }
}

/// Appends a message to `out`. `partition` is written for requests and events only. A response is
/// written with 0 backup acknowledgements.
///
/// The typed variants are [`Request::encode`], [`Response::encode`] and [`Event::encode`].
#[inline]
pub fn encode<'a, P: Payload<'a>>(payload: &P, correlation: CorrelationId, partition: i32, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.reserve(FRAME_HEADER_BYTES + P::DIRECTION.header_bytes() + payload.size_hint());
    let mut first_flags = flags::UNFRAGMENTED;
    if matches!(P::DIRECTION, Direction::Event) {
        first_flags |= flags::EVENT;
    }
    writer.frame_with(first_flags, |out| {
        out.extend_from_slice(&P::ID.0.to_le_bytes());
        out.extend_from_slice(&correlation.0.to_le_bytes());
        match P::DIRECTION {
            Direction::Response => out.push(0),
            Direction::Request | Direction::Event => out.extend_from_slice(&partition.to_le_bytes()),
        }
        payload.put_fixed(out);
    });
    payload.put_variable(&mut writer);
    writer.finish();
}

/// A message that a client sends.
pub trait Request {
    /// The id of the message.
    const ID: MessageId;
    /// The row of the request in the table.
    const SPEC: &'static MessageSpec;
    /// The type of the response, unless the response is an error.
    type Response<'r>: Decode<'r>;

    /// Appends the message to `out`; `partition` is -1 for none.
    fn encode(&self, correlation: CorrelationId, partition: i32, out: &mut Vec<u8>);
}

/// The response to a request.
pub trait Response {
    /// The id of the message.
    const ID: MessageId;

    /// Appends the message to `out`, with 0 backup acknowledgements.
    fn encode(&self, correlation: CorrelationId, out: &mut Vec<u8>);
}

/// A message that a member sends with the correlation id of a registration.
pub trait Event {
    /// The id of the message.
    const ID: MessageId;

    /// Appends the message to `out`, marked as an event; `partition` is -1 for none.
    fn encode(&self, correlation: CorrelationId, partition: i32, out: &mut Vec<u8>);
}

/// A message type of the table without its lifetime, for code that is generic over all messages.
/// See [`table::visit_all`](crate::table::visit_all).
pub trait Family {
    /// The id of the message.
    const ID: MessageId;
    /// The direction of the message.
    const DIRECTION: Direction;
    /// The message type with the lifetime `'r`.
    type Of<'r>: Payload<'r> + fmt::Debug + PartialEq + Clone;
}
