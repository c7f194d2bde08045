//! The descriptions in the table of messages: services, messages, events, fields, and their first
//! protocol versions.

use std::fmt;

use crate::id::MessageId;

/// A version of the client protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion {
    /// The major version; 2 for all messages of the table.
    pub major: u8,
    /// The minor version; incremented when messages or fields are added.
    pub minor: u8,
}

impl ProtocolVersion {
    /// Parses a version such as `2.7`. The literals of all rows have this form; a test checks them.
    pub(crate) const fn parse(text: &str) -> Self {
        let mut bytes = text.as_bytes();
        let mut version = ProtocolVersion { major: 0, minor: 0 };
        let mut behind_dot = false;
        while let [byte, rest @ ..] = bytes {
            if *byte == b'.' {
                behind_dot = true;
            } else if behind_dot {
                version.minor = version.minor * 10 + (*byte - b'0');
            } else {
                version.major = version.major * 10 + (*byte - b'0');
            }
            bytes = rest;
        }
        version
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// How a client determines the partition of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Partitioning {
    /// The request has no partition, or any member can process it.
    None,
    /// By the hash of the field `key`.
    Key,
    /// By the hash of the object's name.
    Name,
    /// Given by the field `partition_id`.
    PartitionId,
    /// A random partition, to spread the requests over all partitions.
    Random,
    /// By the hash of any key; all keys belong to one partition.
    AnyKey,
    /// By the hash of the task's name.
    TaskName,
    /// By the transaction's id.
    Xid,
    /// The partition of the sequence number.
    Sequence,
}

/// One service and its messages.
#[derive(Debug)]
pub struct ServiceSpec {
    /// The name, such as `Map` in `Map.put`.
    pub name: &'static str,
    /// The number, see [`MessageId::service`].
    pub id: u8,
    /// The messages, ordered by id.
    pub messages: &'static [&'static MessageSpec],
}

/// One row of the table. `Display` shows the name in the protocol, such as `Map.putIfAbsent`.
#[derive(Debug)]
pub struct MessageSpec {
    /// The service's name.
    pub service: &'static str,
    /// The method's name in snake case.
    pub method: &'static str,
    /// The name of the method in the protocol, if it is not [`MessageSpec::method`] in camel case.
    pub(crate) label: Option<&'static str>,
    /// The id of the request.
    pub id: MessageId,
    /// The first protocol version.
    pub since: ProtocolVersion,
    /// Whether a client may retry the request if its outcome is unknown.
    pub retryable: bool,
    /// How a client determines the partition of the request.
    pub partition: Partitioning,
    /// The request's fields.
    pub request: &'static [FieldSpec],
    /// The response's fields.
    pub response: &'static [FieldSpec],
    /// The events that members send for a registration by this message.
    pub events: &'static [EventSpec],
}

impl fmt::Display for MessageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.service)?;
        match self.label {
            Some(label) => f.write_str(label),
            None => CamelCase(self.method).fmt(f),
        }
    }
}

/// An event of a row.
#[derive(Debug)]
pub struct EventSpec {
    /// The name of the struct, for example `EntryEvent`.
    pub name: &'static str,
    /// The id of the event.
    pub id: MessageId,
    /// The first protocol version.
    pub since: ProtocolVersion,
    /// The fields of the event.
    pub fields: &'static [FieldSpec],
}

/// A field of a message.
#[derive(Debug)]
pub struct FieldSpec {
    /// The name in snake case.
    pub name: &'static str,
    /// The Rust type, as text.
    pub kind: &'static str,
    /// Whether the field may be null.
    pub nullable: bool,
    /// The first protocol version.
    pub since: ProtocolVersion,
}

/// Displays a name in snake case as camel case.
pub(crate) struct CamelCase(pub(crate) &'static str);

impl fmt::Display for CamelCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = self.0.split('_');
        f.write_str(words.next().unwrap_or_default())?;
        for word in words {
            let mut letters = word.chars();
            if let Some(first) = letters.next() {
                write!(f, "{}{}", first.to_ascii_uppercase(), letters.as_str())?;
            }
        }
        Ok(())
    }
}
