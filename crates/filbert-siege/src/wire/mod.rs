//! The three protocols from a client without rules: it sends any bytes and reads only on request.
//!
//! Drivers would refuse to send most of these messages. This module must not know loads.

pub(crate) mod grid;
pub(crate) mod http;
pub(crate) mod postgres;
