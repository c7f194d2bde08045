//! The errors in bytes from a peer, with texts for the diagnosis.

use crate::{frame_kind::FrameKind, id::MessageId, spec::CamelCase};

/// The reason why bytes are not a message, or not a message of the requested type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The length field of a frame is smaller than the frame header.
    #[error("a frame claims {length} bytes; at least 6 are expected")]
    FrameTooShort {
        /// The length field as sent.
        length: i32,
    },
    /// A message exceeds the size limit, according to the length fields of its frames.
    #[error("a message of at least {bytes} bytes; at most {limit} are expected")]
    MessageTooLong {
        /// The size up to the end of the frame that exceeds the limit, in bytes.
        bytes: u64,
        /// [`Limits::message_bytes_max`](crate::Limits::message_bytes_max).
        limit: usize,
    },
    /// The bytes end inside a frame, or before the final frame.
    #[error("the message ends after {bytes} bytes, before its final frame does")]
    Truncated {
        /// The number of bytes of the input.
        bytes: usize,
    },
    /// There are bytes after the final frame.
    #[error("{bytes} bytes follow the message's final frame; none are expected")]
    TrailingBytes {
        /// The number of bytes after the final frame.
        bytes: usize,
    },
    /// The first frame is too short for the message header.
    #[error("the first frame holds {bytes} bytes; a message's header needs {expected}")]
    HeaderTooShort {
        /// Bytes of content in the first frame.
        bytes: usize,
        /// Bytes of the header.
        expected: usize,
    },
    /// The message is a fragment. Only a [`Splitter`](crate::Splitter) can reassemble fragments.
    #[error("a fragment where a whole message is expected")]
    UnexpectedFragment,
    /// The first frame of a fragment does not contain the fragmentation id.
    #[error("the first frame of a fragment holds {bytes} bytes; a fragmentation id of 8 is expected")]
    FragmentWithoutId {
        /// Bytes of content in the first frame.
        bytes: usize,
    },
    /// A fragment continues a message without a first fragment.
    #[error("fragment of message {id}: its first fragment is missing")]
    FragmentWithoutBegin {
        /// The fragmentation id.
        id: i64,
    },
    /// A first fragment has the id of an incomplete message.
    #[error("fragment of message {id}: a second first fragment, before the message was complete")]
    FragmentBeginsTwice {
        /// The fragmentation id.
        id: i64,
    },
    /// The number of incomplete messages exceeds the limit.
    #[error("more than {limit} fragmented messages are incomplete at once")]
    TooManyFragmentedMessages {
        /// [`Limits::fragmented_messages_max`](crate::Limits::fragmented_messages_max).
        limit: usize,
    },
    /// A frame does not fit into a fragment of the requested size.
    #[error("a fragment of {fragment_bytes} bytes; at least {expected} are needed, since frames are never split")]
    FragmentTooSmall {
        /// The requested size in bytes.
        fragment_bytes: usize,
        /// The size that the frame requires, in bytes.
        expected: usize,
    },
    /// The message does not have the requested type.
    #[error("{found} where {expected} is expected")]
    WrongMessage {
        /// The requested type.
        expected: MessageId,
        /// The type of the message.
        found: MessageId,
    },
    /// The table has no message with this id.
    #[error("{0} is not in the table of messages")]
    UnknownMessage(MessageId),
    /// A field of a known message cannot be read.
    #[error("{message}: field \"{field}\": {problem}")]
    Field {
        /// The message.
        message: MessageId,
        /// The field; fields of nested structures are joined by dots.
        field: String,
        /// The problem of the field.
        problem: Problem,
    },
}

/// The problem of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The message ends before the field.
    #[error("missing")]
    Missing,
    /// The field is null, but a value is required.
    #[error("null where a value is required")]
    Null,
    /// The frame does not have the kind that the type of the field requires.
    #[error("{found} where {expected} is expected")]
    UnexpectedFrame {
        /// The kind of the frame.
        found: FrameKind,
        /// The required kind.
        expected: FrameKind,
    },
    /// A list or a structure has no end frame.
    #[error("its end frame is missing")]
    Unterminated,
    /// Text is not UTF-8.
    #[error("not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// The number of valid bytes before the error.
        at: usize,
    },
    /// The size of a packed list is not a multiple of the item size.
    #[error("{bytes} bytes do not divide into items of {item_bytes}")]
    BrokenList {
        /// Bytes of the list's frame.
        bytes: usize,
        /// Bytes of one item.
        item_bytes: usize,
    },
    /// The numbers of keys and values of an entry list differ.
    #[error("{keys} keys beside {values} values")]
    UnequalEntries {
        /// The number of keys.
        keys: usize,
        /// The number of values.
        values: usize,
    },
    /// A column of an SQL page has a type that this version does not know.
    #[error("{0} is not the type of an SQL column")]
    UnknownColumnType(i32),
    /// The encoding of a column of an SQL page is invalid.
    #[error("a broken SQL column: {0}")]
    BrokenColumn(&'static str),
}

/// A problem and the path of its field. Each enclosing field adds its name while the error is
/// returned.
///
/// Boxed, so that the results of the decoders stay small. The allocation happens once per invalid
/// message.
#[derive(Debug)]
pub struct Fault(Box<(Problem, Vec<&'static str>)>);

impl Fault {
    /// Adds the name of the enclosing field. Names are added from the inside out.
    #[cold]
    #[must_use]
    pub fn within(mut self, field: &'static str) -> Self {
        self.0.1.push(field);
        self
    }

    /// The problem without the path.
    pub fn problem(&self) -> Problem {
        self.0.0
    }

    /// The error for the whole message.
    #[cold]
    pub(crate) fn into_error(self, message: MessageId) -> WireError {
        let (problem, names) = *self.0;
        let names: Vec<String> = names.iter().rev().map(|name| CamelCase(name).to_string()).collect();
        WireError::Field { message, field: names.join("."), problem }
    }
}

impl From<Problem> for Fault {
    #[cold]
    fn from(problem: Problem) -> Self {
        Fault(Box::new((problem, Vec::new())))
    }
}
