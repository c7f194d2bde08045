//! The three protocols from the side of a client that keeps no rules: bytes are sent as a load wants them, and read when it wants to.
//!
//! Drivers would refuse to send most of what is sent here. It must not know loads.

pub(crate) mod grid;
pub(crate) mod http;
pub(crate) mod postgres;
