//! Tests of the PostgreSQL door, with a stock client and with raw bytes over real sockets.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod authentication;
mod bad_input;
mod common;
mod memory;
mod sessions;
