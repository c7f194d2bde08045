//! The Hazelcast Open Binary Client Protocol, version 2, without I/O: frames, the table of messages, codecs.
//!
//! This crate turns bytes into typed messages and back. It must not know sockets, async, maps, partitions' owners or
//! what a serialized value means ([`Data`] stays opaque): front doors, the client and the load generator bring those.
//!
//! # The way of the bytes
//!
//! ```text
//! read buffer ──► Splitter ──► Split::Whole(n) ─────────────┐
//!                    │                                      ▼
//!                    └──► fragments kept ──► Assembled ──► Message ──► decode::<map::put::Request>()
//!
//! map::get::Response { .. }.encode(correlation, &mut out) ──► write buffer
//! ```
//!
//! # The layout
//!
//! A connection opens with the three bytes of [`PREAMBLE`]; after them both sides send messages. A message is a chain
//! of frames, and a frame is
//!
//! ```text
//! ┌──────────────────────┬────────────────┬──────────────────┐
//! │ length i32 LE, ≥ 6   │ flags u16 LE   │ length - 6 bytes │
//! └──────────────────────┴────────────────┴──────────────────┘
//! ```
//!
//! The first frame holds the header and, in the order of declaration, every field of fixed size. Each other field
//! follows as one frame, or as frames between a BEGIN and an END. The last frame carries the FINAL flag.
//!
//! ```text
//! first frame of a request or an event: id i32 │ correlation i64 │ partition i32 │ fixed fields
//! first frame of a response:            id i32 │ correlation i64 │ backup acks u8 │ fixed fields
//! ```
//!
//! # Invariants
//!
//! - Decoding never panics, does not recurse with the depth of its input, and allocates in proportion to the bytes
//!   that are there, never to a count that they claim.
//! - A field added by a later protocol version than its message reads as its default where an older peer left it out;
//!   bytes and frames which a newer peer added behind the known fields are skipped. Encoding writes every field.
//! - A null where a value is required is an error, except that a null UUID reads as the nil UUID, since stock members
//!   send such.
//! - A decoded message borrows its text and its values from the buffer it was read from.
//!
//! # Where to start
//!
//! [`Message`] and the traits beside it, then one service of the [`table`], for example [`table::map`]; then
//! [`Splitter`]. How a type becomes bytes is [`codec::Field`].

mod error;
mod fragment;
mod message;
mod skip;
mod split;

pub mod codec;
pub mod error_message;
pub mod frame;
pub mod sample;
pub mod sql_page;
pub mod structure;
pub mod table;

pub use error::{Problem, WireError};
pub use fragment::encode_fragmented;
pub use message::{
    CorrelationId, Decode, Direction, Event, Family, Message, MessageId, Payload, Request, Response, encode,
};
pub use skip::Skipper;
pub use split::{Limits, Split, Splitter};
pub use table::{EventSpec, FieldSpec, MessageSpec, Partitioning, ProtocolVersion, ServiceSpec};

pub use uuid::Uuid;

/// A serialized value as the client sent it: opaque to this crate.
pub type Data<'a> = &'a [u8];

/// The first bytes a client sends on a connection: protocol 2 in its binary form.
pub const PREAMBLE: [u8; 3] = *b"CP2";
