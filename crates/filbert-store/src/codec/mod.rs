//! Commands as bytes: the form in which a log keeps them and members send them to each other.
//!
//! A buffer holds any number of commands, of any partitions. It is written once, by [`Encoder`], and read in place, by
//! [`Decoder`]: keys and values are borrowed from it. All numbers are little-endian; *bytes* are 4 bytes of length and as many
//! bytes; *caller* is 16 bytes of client and 8 of thread (signed).
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version of the format: 1 |
//! | .. | commands, one after the other, up to the end |
//!
//! A command:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | kind, from the table below |
//! | 4 | partition |
//! | 4 | map |
//! | 8 | kinds below 32: time, in milliseconds since the Unix epoch, signed |
//! | 24 | kinds below 32: caller |
//! | .. | by kind |
//!
//! | kind | command | what follows |
//! |---|---|---|
//! | 1 | Put | mode, 1: 1 put, 2 set, 3 if absent, 4 transient, 5 try, 6 replace, 7 metadata; time to live, 8, signed; max idle, 8, signed; for metadata: created, updated, accessed, expires, 8 each, signed; hits, version, 8 each; its time to live and max idle, 8 each, signed; then key, value, bytes |
//! | 2 | ReplaceIfSame | key, expected, value, bytes |
//! | 3, 4 | Remove, Delete | key, bytes |
//! | 5 | RemoveIfSame | key, expected, bytes |
//! | 6 | Evict | key, bytes |
//! | 7 | SetTtl | time to live, 8, signed; key, bytes |
//! | 8 | Lock | 1: whether there is a lease; lease, 8, signed (0 without); reference, 8, signed; key, bytes |
//! | 9, 10 | Unlock, ForceUnlock | reference, 8, signed; key, bytes |
//! | 11 | Await | key, bytes |
//! | 12, 13 | Claim, WriteBatch | a [`Batch`](crate::Batch), bytes |
//! | 14, 15, 16 | Unclaim, Clear, EvictAll | nothing |
//! | 17 | ReleaseLocks | client, 16 |
//! | 18 | Expire | limit, 8 |
//! | 19 | EvictKeys | a [`KeyList`](crate::KeyList), bytes |
//! | 20 | Touch | read at, 8, signed; key, bytes |
//! | 32 | CreateMap | settings: time to live, max idle, 8 each, signed; sample size, 8; unlocks remembered, 8; 1: whether there is a journal; its capacity, 8 (0 without); its time to live, 8, signed (0 without) |
//! | 33 | DestroyMap | nothing |
//! | 34 | SetLayout | 1: whether there is a layout; its number, 8 (0 without) |
//!
//! Whatever the bytes are, reading them neither panics nor takes memory by what they claim. A replica that cannot read a
//! command must not go on to the next one: the decoder ends with the first error.

mod decode;
mod encode;
mod error;
mod reader;

pub use decode::Decoder;
pub use encode::{Encoder, TooLong};
pub use error::{CodecError, Problem};
pub use reader::Reader;

pub(crate) use decode::settings as read_settings;
pub(crate) use encode::{append_bytes, append_caller, append_settings};

/// The version of the format that is written, and the only one that is read, see [`Reader::version`].
pub const COMMANDS_VERSION: u8 = 1;

/// The kinds of commands, as they are written.
mod kind {
    pub(super) const PUT: u8 = 1;
    pub(super) const REPLACE_IF_SAME: u8 = 2;
    pub(super) const REMOVE: u8 = 3;
    pub(super) const DELETE: u8 = 4;
    pub(super) const REMOVE_IF_SAME: u8 = 5;
    pub(super) const EVICT: u8 = 6;
    pub(super) const SET_TTL: u8 = 7;
    pub(super) const LOCK: u8 = 8;
    pub(super) const UNLOCK: u8 = 9;
    pub(super) const FORCE_UNLOCK: u8 = 10;
    pub(super) const AWAIT: u8 = 11;
    pub(super) const CLAIM: u8 = 12;
    pub(super) const WRITE_BATCH: u8 = 13;
    pub(super) const UNCLAIM: u8 = 14;
    pub(super) const CLEAR: u8 = 15;
    pub(super) const EVICT_ALL: u8 = 16;
    pub(super) const RELEASE_LOCKS: u8 = 17;
    pub(super) const EXPIRE: u8 = 18;
    pub(super) const EVICT_KEYS: u8 = 19;
    pub(super) const TOUCH: u8 = 20;
    /// From here on, commands have neither time nor caller.
    pub(super) const CREATE_MAP: u8 = 32;
    pub(super) const DESTROY_MAP: u8 = 33;
    pub(super) const SET_LAYOUT: u8 = 34;
}
