//! Tests of the client, with a fake member on a real socket.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod connections;
mod queries;
mod support;
