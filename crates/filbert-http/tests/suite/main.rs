//! Tests of the HTTP door, with requests over real sockets.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod cluster;
mod common;
mod requests;
mod statements;
