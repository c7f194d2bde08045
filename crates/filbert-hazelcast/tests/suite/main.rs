//! Tests of the Hazelcast door, with clients that send whole messages over real sockets.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod bad_input;
mod common;
mod handshake;
mod limits;
mod locks_and_events;
mod maps;
mod queries;
mod query_caches;
