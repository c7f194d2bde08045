//! The Hazelcast Open Binary Client Protocol, version 2, without I/O: frames, the table of
//! messages, codecs.
//!
//! This crate converts bytes to typed messages and back. It must not know sockets, async code,
//! maps, partition owners, or the meaning of a serialized value ([`Data`] stays opaque). The
//! protocol servers, the client and the load generator provide these.
//!
//! # The path of the bytes
//!
//! ```text
//! read buffer ──► Splitter ──► Split::Whole(n) ────────┐
//!                    │                                 ▼
//!                    └──► fragments ──► Assembled ──► Message ──► decode::<map::put::Request>()
//!
//! map::get::Response { .. }.encode(correlation, &mut out) ──► write buffer
//! ```
//!
//! # The layout
//!
//! A client opens a connection with the three bytes of [`PREAMBLE`]. Then both sides send messages.
//! A message is a sequence of frames. The layout of a frame:
//!
//! ```text
//! ┌──────────────────────┬────────────────┬──────────────────┐
//! │ length i32 LE, ≥ 6   │ flags u16 LE   │ length - 6 bytes │
//! └──────────────────────┴────────────────┴──────────────────┘
//! ```
//!
//! The first frame holds the header and all fields of fixed size, in the order of their
//! declaration. Every other field follows as one frame, or as several frames between BEGIN and END.
//! The last frame has the FINAL flag.
//!
//! ```text
//! first frame of a request or an event: id i32 │ correlation i64 │ partition i32 │ fixed fields
//! first frame of a response:            id i32 │ correlation i64 │ backup acks u8 │ fixed fields
//! ```
//!
//! # Invariants
//!
//! - Decoding never panics. It does not recurse with the nesting depth of the input. It allocates
//!   in proportion to the bytes of the input, never to a count that the input claims.
//! - A field with a later protocol version than its message decodes to its default if an older peer
//!   omits it. Bytes and frames that a newer peer adds after the known fields are skipped. Encoding
//!   writes every field.
//! - A null in the place of a required value is an error. The exception is a null UUID: it decodes
//!   to the nil UUID, because Hazelcast members send such nulls.
//! - A decoded message borrows its strings and values from the input buffer.
//!
//! # Modules, from bottom to top
//!
//! Each module uses only the modules before it. `id` and `spec` describe messages, `error` the
//! errors in the input. `frame` reads and writes frames. `split` and `skip` find messages in a
//! stream of frames; `fragment` divides a message into fragments. `codec` reads and writes fields.
//! `message` contains the traits of messages, `payload` and `structure` the macros that generate
//! types from rows. `error_message` is the error response, `sql_page` a page of an SQL result.
//! `table` contains all messages and their names.
//!
//! # Where to start
//!
//! [`Message`] and the traits of its module, then one service of the [`table`], for example
//! [`table::map`], then [`Splitter`]. [`codec::Field`] is the encoding of a type.

mod error;
mod fragment;
mod frame_kind;
mod id;
mod message;
mod payload;
mod skip;
mod spec;
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
pub use id::{CorrelationId, Direction, MessageId};
pub use message::{Decode, Event, Family, Message, Payload, Request, Response, encode};
pub use skip::Skipper;
pub use spec::{EventSpec, FieldSpec, MessageSpec, Partitioning, ProtocolVersion, ServiceSpec};
pub use split::{Limits, Split, Splitter};

pub use uuid::Uuid;

/// A serialized value, opaque to this crate.
pub type Data<'a> = &'a [u8];

/// The first bytes that a client sends on a connection: they select version 2 of the binary
/// protocol.
pub const PREAMBLE: [u8; 3] = *b"CP2";

/// The examples of the README, run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;
