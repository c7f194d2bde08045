//! Tests of links between members, over real sockets.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod calls;
mod certificates;
mod common;
mod faults;
mod group;
mod refusals;
