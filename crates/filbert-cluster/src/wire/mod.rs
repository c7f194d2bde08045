//! Encodings of the messages between members and of the contents of the log. Each begins with a
//! version, and another version is refused. All numbers are little-endian. *Bytes* are 4 bytes of
//! length and then that many bytes.
//!
//! Decoding arbitrary bytes neither panics nor allocates memory for claimed lengths.

mod batch;
mod bundle;
mod messages;
mod reader;
mod replies;
#[cfg(test)]
mod tests;

pub(crate) use batch::{BatchEntry, Source, Submission, read_batch, write_batch};
pub(crate) use bundle::{is_bundle, read_answers, read_requests, write_answers, write_requests};
pub(crate) use messages::{
    Head, Removal, Request, Response, append_log_id, append_membership, read_log_id, read_membership,
};
pub(crate) use reader::{Reader, append_bytes};
pub use replies::{OwnedReply, read_replies, write_replies};
