//! Written forms: what members send each other and what the log holds. Each begins with a version, and another version is
//! refused. All numbers are little-endian; *bytes* are 4 bytes of length and as many bytes.
//!
//! Whatever the bytes are, reading them neither panics nor takes memory by what they claim.

mod batch;
mod bundle;
mod messages;
mod reader;
mod replies;
#[cfg(test)]
mod tests;

pub(crate) use batch::{BatchEntry, Source, Submission, read_batch, write_batch};
pub(crate) use bundle::{is_bundle, read_answers, read_requests, write_answers, write_requests};
pub(crate) use messages::{Head, Request, Response, append_log_id, append_membership, read_log_id, read_membership};
pub(crate) use reader::{Reader, append_bytes};
pub use replies::{OwnedReply, read_replies, write_replies};
