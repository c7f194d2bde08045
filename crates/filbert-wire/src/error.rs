//! What can be wrong with bytes from a peer, in the words of the person who looks for the cause.

use crate::{MessageId, frame::FrameKind};

/// Why bytes are no message, or no message of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A frame's length field does not cover the frame's own header.
    #[error("a frame claims {length} bytes; at least 6 are expected")]
    FrameTooShort {
        /// The length field as sent.
        length: i32,
    },
    /// A message would be longer than the limit, as far as its frames' length fields tell.
    #[error("a message of at least {bytes} bytes; at most {limit} are expected")]
    MessageTooLong {
        /// Bytes of the message up to the end of the frame that crosses the limit.
        bytes: u64,
        /// [`Limits::message_bytes_max`](crate::Limits::message_bytes_max).
        limit: usize,
    },
    /// The bytes end inside a frame, or before a frame marked as final.
    #[error("the message ends after {bytes} bytes, before its final frame does")]
    Truncated {
        /// Bytes that were there.
        bytes: usize,
    },
    /// There are bytes behind the frame marked as final.
    #[error("{bytes} bytes follow the message's final frame; none are expected")]
    TrailingBytes {
        /// Bytes behind the final frame.
        bytes: usize,
    },
    /// The first frame is too short for the message's header.
    #[error("the first frame holds {bytes} bytes; a message's header needs {expected}")]
    HeaderTooShort {
        /// Bytes of content in the first frame.
        bytes: usize,
        /// Bytes of the header.
        expected: usize,
    },
    /// The message is a fragment, which only a [`Splitter`](crate::Splitter) can put together.
    #[error("a fragment where a whole message is expected")]
    UnexpectedFragment,
    /// A fragment's first frame does not hold its fragmentation id.
    #[error("the first frame of a fragment holds {bytes} bytes; a fragmentation id of 8 is expected")]
    FragmentWithoutId {
        /// Bytes of content in the first frame.
        bytes: usize,
    },
    /// A fragment continues a message whose first fragment never came.
    #[error("fragment of message {id}: its first fragment is missing")]
    FragmentWithoutBegin {
        /// The fragmentation id.
        id: i64,
    },
    /// A first fragment carries the id of a message that is not complete yet.
    #[error("fragment of message {id}: a second first fragment, before the message was complete")]
    FragmentBeginsTwice {
        /// The fragmentation id.
        id: i64,
    },
    /// More messages are incomplete at once than the limit allows.
    #[error("more than {limit} fragmented messages are incomplete at once")]
    TooManyFragmentedMessages {
        /// [`Limits::fragmented_messages_max`](crate::Limits::fragmented_messages_max).
        limit: usize,
    },
    /// One frame does not fit into a fragment of the size asked for.
    #[error("a fragment of {fragment_bytes} bytes; at least {expected} are needed, since frames are never split")]
    FragmentTooSmall {
        /// The size asked for.
        fragment_bytes: usize,
        /// The size that would do for the frame at hand.
        expected: usize,
    },
    /// The message is of another kind than the one asked for.
    #[error("{found} where {expected} is expected")]
    WrongMessage {
        /// The kind asked for.
        expected: MessageId,
        /// The kind of the message.
        found: MessageId,
    },
    /// The table has no message of this id.
    #[error("{0} is not in the table of messages")]
    UnknownMessage(MessageId),
    /// A field of a known message cannot be read.
    #[error("{message}: field \"{field}\": {problem}")]
    Field {
        /// The message.
        message: MessageId,
        /// The field; fields of nested structures are joined by dots.
        field: String,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// What is wrong with one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The message ends before the field.
    #[error("missing")]
    Missing,
    /// The field is null and may not be.
    #[error("null where a value is required")]
    Null,
    /// The frame is of another kind than the field's type has.
    #[error("{found} where {expected} is expected")]
    UnexpectedFrame {
        /// The frame that is there.
        found: FrameKind,
        /// The frame that should be.
        expected: FrameKind,
    },
    /// A list or a structure has no end frame.
    #[error("its end frame is missing")]
    Unterminated,
    /// Text is not UTF-8.
    #[error("not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// Bytes of valid text before the offence.
        at: usize,
    },
    /// A packed list does not divide into items.
    #[error("{bytes} bytes do not divide into items of {item_bytes}")]
    BrokenList {
        /// Bytes of the list's frame.
        bytes: usize,
        /// Bytes of one item.
        item_bytes: usize,
    },
    /// Keys and values of an entry list that come apart differ in number.
    #[error("{keys} keys beside {values} values")]
    UnequalEntries {
        /// Number of keys.
        keys: usize,
        /// Number of values.
        values: usize,
    },
    /// A column of an SQL page is of a type that this version does not know.
    #[error("{0} is not the type of an SQL column")]
    UnknownColumnType(i32),
    /// A column of an SQL page is not laid out as its first byte says.
    #[error("a broken SQL column: {0}")]
    BrokenColumn(&'static str),
}

/// A problem on its way up to the message: it gathers the names of the fields that it lies in.
///
/// Boxed, so that the results of the decoders stay small; it is made once per broken message.
#[derive(Debug)]
pub struct Fault(Box<(Problem, Vec<&'static str>)>);

impl Fault {
    /// Adds the name of the field that the fault lies in, from the inside out.
    #[cold]
    #[must_use]
    pub fn within(mut self, field: &'static str) -> Self {
        self.0.1.push(field);
        self
    }

    /// What is wrong, without where.
    pub fn problem(&self) -> Problem {
        self.0.0
    }

    /// The error for the whole message.
    #[cold]
    pub(crate) fn into_error(self, message: MessageId) -> WireError {
        let (problem, names) = *self.0;
        let names: Vec<String> = names.iter().rev().map(|name| crate::table::CamelCase(name).to_string()).collect();
        WireError::Field { message, field: names.join("."), problem }
    }
}

impl From<Problem> for Fault {
    #[cold]
    fn from(problem: Problem) -> Self {
        Fault(Box::new((problem, Vec::new())))
    }
}
