//! A whole message in place in a buffer, and the traits that tie the table's types to its bytes.

use std::fmt;

use crate::{
    WireError,
    codec::Reader,
    error::Fault,
    frame::{FRAME_HEADER_BYTES, Frame, FrameHeader, Frames, Writer, flags},
    sample::Source,
    table::{self, FieldSpec, MessageSpec},
};

/// Which message this is: the service in bits 16 to 23, the method in bits 8 to 15, and in the lowest byte 0 for the
/// request, 1 for the response, 2 and up for events. `MessageId(0x01_01_00)` is the request of `Map.put`; 0 is an
/// error, which answers any request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub u32);

impl MessageId {
    /// The id of the message that answers a request with an error.
    pub const ERROR: MessageId = MessageId(0);

    /// The id of the method's request.
    pub const fn request(service: u8, method: u8) -> Self {
        MessageId((service as u32) << 16 | (method as u32) << 8)
    }

    /// The id of another message of the same method: 0 its request, 1 its response, 2 and up its events.
    pub const fn part(self, part: u8) -> Self {
        MessageId(self.0 & !0xff | part as u32)
    }

    /// The byte that tells the service.
    pub const fn service(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// The byte that tells the method within its service.
    pub const fn method(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

/// The message's name as people know it, `Map.put`, with what it is unless it is a request; the number if unknown.
impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == MessageId::ERROR {
            return f.write_str("error");
        }
        let Some(spec) = table::find(*self) else { return write!(f, "message 0x{:06x}", self.0) };
        match self.0 & 0xff {
            0 => write!(f, "{spec}"),
            1 => write!(f, "{spec} response"),
            _ => match spec.events.iter().find(|event| event.id == *self) {
                Some(event) => write!(f, "{spec} {}", event.name),
                None => write!(f, "{spec} message 0x{:06x}", self.0),
            },
        }
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId(0x{:06x})", self.0)
    }
}

/// Ties a response to its request, and an event to the registration that asked for it. Chosen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CorrelationId(pub i64);

/// Which way a message goes; it decides the layout of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client, with a partition id.
    Request,
    /// The answer, with a count of backups.
    Response,
    /// From the member under the correlation id of a registration, with a partition id.
    Event,
}

/// Bytes of id and correlation id, with which every header begins.
const COMMON_HEADER_BYTES: usize = 12;

impl Direction {
    /// Bytes of the message's header in its first frame, before the fixed fields.
    #[inline]
    pub const fn header_bytes(self) -> usize {
        match self {
            Direction::Response => COMMON_HEADER_BYTES + 1,
            Direction::Request | Direction::Event => COMMON_HEADER_BYTES + 4,
        }
    }
}

/// One whole message in place in a buffer: contiguous frames whose lengths were checked.
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
    /// Reads the header of the message that `bytes` are, and checks that its frames follow each other without a gap
    /// up to the final one.
    ///
    /// # Errors
    ///
    /// `bytes` are not exactly one whole message.
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

    /// All of it.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Which message this is.
    #[inline]
    pub fn id(&self) -> MessageId {
        self.id
    }

    /// What ties it to its request or registration.
    #[inline]
    pub fn correlation_id(&self) -> CorrelationId {
        self.correlation
    }

    /// The flags of the first frame, see [`flags`].
    #[inline]
    pub fn flags(&self) -> u16 {
        self.first.flags
    }

    /// Whether the sender marked it as an event.
    #[inline]
    pub fn is_event(&self) -> bool {
        self.first.flags & flags::EVENT != 0
    }

    /// The partition that a request or an event is about, -1 for none. Meaningless for responses.
    #[inline]
    pub fn partition_id(&self) -> i32 {
        let bytes = self.first.content.get(COMMON_HEADER_BYTES..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map_or(-1, |bytes| i32::from_le_bytes(*bytes))
    }

    /// How many backups will acknowledge, in a response. Meaningless for requests and events.
    #[inline]
    pub fn backup_acks(&self) -> u8 {
        self.first.content.get(COMMON_HEADER_BYTES).copied().unwrap_or(0)
    }

    /// All frames but the first.
    #[inline]
    pub fn frames(&self) -> Frames<'a> {
        self.rest
    }

    /// Reads the fields.
    ///
    /// # Errors
    ///
    /// The message is of another kind than `T`, or a field of it is broken.
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

/// A type that can be read from a [`Message`].
pub trait Decode<'a>: Sized {
    /// Reads the fields of `message`.
    ///
    /// # Errors
    ///
    /// The message is of another kind, or a field of it is broken.
    fn decode(message: &Message<'a>) -> Result<Self, WireError>;
}

/// The fields of one message of the table; what the table's macro writes for each. Its users want [`Request`],
/// [`Response`], [`Event`] and [`Decode`].
pub trait Payload<'a>: Sized {
    /// Which message this is.
    const ID: MessageId;
    /// Which way it goes.
    const DIRECTION: Direction;
    /// Its fields, in the order of declaration.
    const FIELDS: &'static [FieldSpec];

    /// Appends the fields of fixed size, in the order of declaration.
    fn put_fixed(&self, out: &mut Vec<u8>);
    /// Appends the other fields as frames, in the order of declaration.
    fn put_variable(&self, writer: &mut Writer<'_>);
    /// Bytes that the fields need at least; exact unless there are lists or structures among them.
    fn size_hint(&self) -> usize;
    /// Reads all fields.
    ///
    /// # Errors
    ///
    /// A field is missing, null, or broken.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault>;
    /// A valid value made of random bytes, for tests.
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

/// Appends a message to `out`. `partition` is written for requests and events; a response gets no backups.
///
/// The typed ways are [`Request::encode`], [`Response::encode`] and [`Event::encode`].
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
    /// Which message this is.
    const ID: MessageId;
    /// Its row in the table.
    const SPEC: &'static MessageSpec;
    /// What answers it, unless an error does.
    type Response<'r>: Decode<'r>;

    /// Appends the message to `out`; `partition` is -1 for none.
    fn encode(&self, correlation: CorrelationId, partition: i32, out: &mut Vec<u8>);
}

/// A message that answers a request.
pub trait Response {
    /// Which message this is.
    const ID: MessageId;

    /// Appends the message to `out`, with no backups to wait for.
    fn encode(&self, correlation: CorrelationId, out: &mut Vec<u8>);
}

/// A message that a member sends under the correlation id of a registration.
pub trait Event {
    /// Which message this is.
    const ID: MessageId;

    /// Appends the message to `out`, marked as an event; `partition` is -1 for none.
    fn encode(&self, correlation: CorrelationId, partition: i32, out: &mut Vec<u8>);
}

/// A message of the table without its lifetime, so that code can be generic over all of them; see
/// [`table::visit_all`].
pub trait Family {
    /// Which message this is.
    const ID: MessageId;
    /// Which way it goes.
    const DIRECTION: Direction;
    /// The message, borrowed for `'r`.
    type Of<'r>: Payload<'r> + fmt::Debug + PartialEq + Clone;
}
