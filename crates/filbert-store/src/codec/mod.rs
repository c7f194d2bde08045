//! Commands as bytes: the format of commands in a log and between members.
//!
//! A buffer contains any number of commands of any partitions. [`Encoder`] writes it once, and
//! [`Decoder`] reads it in place: keys and values are borrowed from the buffer.
//!
//! The types of fields, all little-endian:
//!
//! | type | content |
//! |---|---|
//! | *u8*, *u32*, *u64* | unsigned numbers of 1, 4 and 8 bytes |
//! | *i64* | a signed number of 8 bytes |
//! | *flag* | 1 byte, 0 or 1 |
//! | *bytes* | the length, *u32*, then as many bytes |
//! | *caller* | the client, 16 bytes, then the thread, *i64* |
//!
//! A buffer:
//!
//! | type | content |
//! |---|---|
//! | *u8* | the version of the format: 1 |
//! | .. | the commands, one after the other, to the end |
//!
//! A command:
//!
//! | type | content |
//! |---|---|
//! | *u8* | the kind, see below |
//! | *u32* | the partition |
//! | *u32* | the map |
//! | *i64* | kinds below 32: the time, in milliseconds since the Unix epoch |
//! | *caller* | kinds below 32: the caller |
//! | .. | the fields of the kind |
//!
//! | kind | command | fields |
//! |---|---|---|
//! | 1 | Put | mode, *u8*; expiry; metadata, for mode 7 only; key, value, *bytes* |
//! | 2 | ReplaceIfSame | key, expected, value, *bytes* |
//! | 3, 4 | Remove, Delete | key, *bytes* |
//! | 5 | RemoveIfSame | key, expected, *bytes* |
//! | 6 | Evict | key, *bytes* |
//! | 7 | SetTtl | time to live, *i64*; key, *bytes* |
//! | 8 | Lock | has a lease, *flag*; lease, *i64* (0 without); reference, *i64*; key, *bytes* |
//! | 9, 10 | Unlock, ForceUnlock | reference, *i64*; key, *bytes* |
//! | 11 | Await | key, *bytes* |
//! | 12, 13 | Claim, WriteBatch | a [`Batch`](crate::Batch), *bytes* |
//! | 14, 15, 16 | Unclaim, Clear, EvictAll | none |
//! | 17 | ReleaseLocks | client, 16 bytes |
//! | 18 | Expire | limit, *u64* |
//! | 19 | EvictKeys | a [`KeyList`](crate::KeyList), *bytes* |
//! | 20 | Touch | time of the read, *i64*; key, *bytes* |
//! | 21 | ClaimAll | none |
//! | 32 | CreateMap | settings |
//! | 33 | DestroyMap | none |
//! | 34 | SetLayout | has a layout, *flag*; its number, *u64* (0 without) |
//!
//! The modes of Put: 1 put, 2 set, 3 if absent, 4 transient, 5 try, 6 replace, 7 metadata.
//!
//! | part | fields |
//! |---|---|
//! | expiry | time to live, max idle, *i64* |
//! | metadata | created, updated, accessed, expires, *i64*; hits, version, *u64*; expiry |
//! | settings | time to live, max idle, *i64*; sample size, remembered unlocks, *u64*; journal |
//! | journal | has a journal, *flag*; capacity, *u64*; time to live, *i64* (both 0 without) |
//!
//! Reading arbitrary bytes does not panic, and does not allocate memory for sizes that the bytes
//! only claim. A replica that cannot read a command must not continue with the next one: the
//! decoder ends with the first error.

mod decode;
mod encode;
mod error;
mod reader;

pub use decode::{Decoder, read_metadata};
pub use encode::{Encoder, TooLong, append_metadata};
pub use error::{CodecError, Problem};
pub use reader::Reader;

pub(crate) use decode::settings as read_settings;
pub(crate) use encode::{append_bytes, append_caller, append_settings};

/// The version of the format that is written. It is also the only version that is read, see
/// [`Reader::version`].
pub const COMMANDS_VERSION: u8 = 1;

/// The encoded kinds of commands.
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
    pub(super) const CLAIM_ALL: u8 = 21;
    /// Commands from this kind on have neither time nor caller.
    pub(super) const CREATE_MAP: u8 = 32;
    pub(super) const DESTROY_MAP: u8 = 33;
    pub(super) const SET_LAYOUT: u8 = 34;
}
