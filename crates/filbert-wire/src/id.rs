//! The identification of messages: message id, correlation id and direction.
//!
//! This module must not know the names of messages. The table knows them and implements `Display`
//! for [`MessageId`].

use std::fmt;

/// The id of a message type: the service in bits 16 to 23, the method in bits 8 to 15, and in the
/// lowest byte 0 for the request, 1 for the response, 2 and up for events. `MessageId(0x01_01_00)`
/// is the request of `Map.put`. 0 is an error, the response to any failed request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub u32);

impl MessageId {
    /// The id of the error message, the response to a failed request.
    pub const ERROR: MessageId = MessageId(0);

    /// The id of the method's request.
    pub const fn request(service: u8, method: u8) -> Self {
        MessageId((service as u32) << 16 | (method as u32) << 8)
    }

    /// The id of another message of the same method: `part` is 0 for the request, 1 for the
    /// response, 2 and up for events.
    pub const fn part(self, part: u8) -> Self {
        MessageId(self.0 & !0xff | part as u32)
    }

    /// The number of the service.
    pub const fn service(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// The number of the method within its service.
    pub const fn method(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId(0x{:06x})", self.0)
    }
}

/// The number that connects a response with its request, and an event with its registration. Chosen
/// by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CorrelationId(pub i64);

/// The direction of a message. It determines the layout of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to a member, with a partition id.
    Request,
    /// From the member as the response to a request, with a number of backup acknowledgements.
    Response,
    /// From the member, with the correlation id of a registration and a partition id.
    Event,
}

/// The size of the message id and the correlation id in bytes. Every header begins with them.
pub(crate) const COMMON_HEADER_BYTES: usize = 12;

impl Direction {
    /// The size of the message header in bytes. In the first frame it precedes the fixed fields.
    #[inline]
    pub const fn header_bytes(self) -> usize {
        match self {
            Direction::Response => COMMON_HEADER_BYTES + 1,
            Direction::Request | Direction::Event => COMMON_HEADER_BYTES + 4,
        }
    }
}
