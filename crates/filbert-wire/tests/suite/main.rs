//! Tests of messages, through the public items of the crate.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod golden;
mod refused;
mod round_trip;
mod table;
